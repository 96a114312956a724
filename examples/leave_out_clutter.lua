-- Leaves out what version control keeps, compilers make and editors forget.
--
--     mkdwarfs -i project -o project.dwarfs --script leave_out_clutter.lua
--     mkdwarfs -i project -o project.dwarfs --script leave_out_clutter.lua:keep=o,keep_vcs

local vcs = { [".git"] = true, [".hg"] = true, [".svn"] = true, ["CVS"] = true, [".bzr"] = true }
local made = { o = true, obj = true, a = true, pyc = true, class = true }

function configure(args)
    if args.keep_vcs then
        vcs = {}
    end
    -- One extension that is wanted after all.
    if args.keep then
        made[args.keep] = nil
    end
    -- What only held objects is empty now.
    return { remove_empty_dirs = true }
end

function filter(entry)
    if entry.type == "dir" then
        -- Nothing below a directory that is left out is looked at.
        return not vcs[entry.name] and entry.name ~= "__pycache__"
    end
    local extension = entry.name:match("%.([^.]+)$")
    return not (made[extension] or entry.name:sub(-1) == "~")
end
