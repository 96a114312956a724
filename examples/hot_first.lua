-- Stores first what an access log names first, so that a program that starts from the image reads one place.
--
-- The log has a path on each line, relative to the input or absolute as the program saw it; the argument `prefix` is
-- what to take off. It can be made with strace, for example:
--
--     strace -f -e trace=openat -o log program; grep -o '"[^"]*"' log | tr -d '"' > opened
--     mkdwarfs -i tree -o tree.dwarfs --script hot_first.lua:log=opened,prefix=/mnt/tree

local place_of = {}

function configure(args)
    assert(args.log, "hot_first.lua needs the argument log=FILE")
    local prefix = (args.prefix or ""):gsub("/$", "")
    local next_place = 1
    for path in io.lines(args.log) do
        if path:sub(1, #prefix) == prefix then
            path = path:sub(#prefix + 1):gsub("^/+", "")
            if not place_of[path] then
                place_of[path] = next_place
                next_place = next_place + 1
            end
        end
    end
end

function order(inodes)
    local hot = {}
    for _, inode in ipairs(inodes) do
        -- Equal files are one inode with several paths.
        local first
        for _, path in ipairs(inode.paths) do
            local place = place_of[path]
            if place and (not first or place < first) then
                first = place
            end
        end
        if first then
            hot[#hot + 1] = { place = first, inode = inode }
        end
    end
    table.sort(hot, function(a, b) return a.place < b.place end)
    for i, item in ipairs(hot) do
        hot[i] = item.inode
    end
    logger.info(#hot .. " of " .. #inodes .. " contents are in the log")
    -- What is not returned follows in the order that it has.
    return hot
end
