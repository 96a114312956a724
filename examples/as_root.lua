-- Makes everything belong to root, with the permissions of a fresh installation and one time for all.
--
--     mkdwarfs -i tree -o tree.dwarfs --script as_root.lua
--     mkdwarfs -i tree -o tree.dwarfs --script as_root.lua:time=1600000000

local time

function configure(args)
    time = math.tointeger(tonumber(args.time or "0")) or error("time is '" .. args.time .. "', which is no number")
    -- Says that other times are not worth their space; the command line may still ask for them.
    return { keep_all_times = false }
end

function transform(entry)
    entry.uid, entry.gid = 0, 0
    -- Directories, and files that somebody could run.
    local executable = entry.type == "dir" or entry.permissions & 0x49 ~= 0
    entry.permissions = executable and 0x1ed or 0x1a4 -- 0755 and 0644, for which Lua has no octal numbers
    local ns = time * 1000000000
    entry.mtime_ns, entry.atime_ns, entry.ctime_ns = ns, ns, ns
end
