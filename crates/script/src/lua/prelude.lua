-- What stands between the writer and a script in Lua: makes entries and inodes, calls the hooks, checks what they return.
-- Gets the functions of the host and returns a table of callers.

local host = ...
local error, getmetatable, ipairs, next, rawequal, rawget, rawset, setmetatable, tostring, type =
    error, getmetatable, ipairs, next, rawequal, rawget, rawset, setmetatable, tostring, type
local math_type, concat, pack = math.type, table.concat, table.pack
local log = host.log

-- Standard output may be where the image goes.

local function text_of(...)
    local parts = pack(...)
    for i = 1, parts.n do
        parts[i] = tostring(parts[i])
    end
    return concat(parts, "\t")
end

function print(...)
    log("info", text_of(...))
end

logger = {
    error = function(...) log("error", text_of(...)) end,
    warn = function(...) log("warn", text_of(...)) end,
    info = function(...) log("info", text_of(...)) end,
}
io.stdout = io.stderr
io.output(io.stderr)

local unfinished = ""

-- Lines that are written become messages; what is sent to io.stderr itself goes there as it is.
function io.write(...)
    local text = unfinished .. concat({ ... })
    for line in text:gmatch("([^\n]*)\n") do
        log("info", line)
    end
    unfinished = text:match("[^\n]*$")
    return io.stderr
end

-- The program would end as if all was well, without an image.
function os.exit()
    error("os.exit would end mkdwarfs; error() says what is wrong", 2)
end

local function describe(value)
    local kind = type(value)
    if kind == "string" then
        return "the string '" .. value .. "'"
    elseif kind == "number" or kind == "boolean" then
        return tostring(value)
    elseif kind == "nil" then
        return "nothing"
    end
    return "a " .. kind
end

-- Entries

local entry_meta = {
    __name = "entry",
    __index = function(_, field)
        if field == "target" then
            return nil
        end
        error("an entry has no field '" .. tostring(field) .. "'", 2)
    end,
    __newindex = function(_, field)
        error("an entry has no field '" .. tostring(field) .. "' to be set", 2)
    end,
}

local function new_entry(path, name, type, size, nlink, target, permissions, uid, gid, mtime_ns, atime_ns, ctime_ns)
    return setmetatable({
        path = path,
        name = name,
        type = type,
        size = size,
        nlink = nlink,
        target = target,
        permissions = permissions,
        uid = uid,
        gid = gid,
        mtime_ns = mtime_ns,
        atime_ns = atime_ns,
        ctime_ns = ctime_ns,
    }, entry_meta)
end

local callers = {}

-- Says which field of an entry is not what it was. There may be millions of entries, and a loop is slower.
local function changed(entry, path, name, type, size, nlink, target, permissions, uid, gid, mtime_ns, atime_ns, ctime_ns)
    return rawget(entry, "path") ~= path and "path"
        or rawget(entry, "name") ~= name and "name"
        or rawget(entry, "type") ~= type and "type"
        or rawget(entry, "size") ~= size and "size"
        or rawget(entry, "nlink") ~= nlink and "nlink"
        or rawget(entry, "target") ~= target and "target"
        or rawget(entry, "permissions") ~= permissions and "permissions"
        or rawget(entry, "uid") ~= uid and "uid"
        or rawget(entry, "gid") ~= gid and "gid"
        or rawget(entry, "mtime_ns") ~= mtime_ns and "mtime_ns"
        or rawget(entry, "atime_ns") ~= atime_ns and "atime_ns"
        or rawget(entry, "ctime_ns") ~= ctime_ns and "ctime_ns"
end

function callers.filter(hook)
    return function(...)
        local entry = new_entry(...)
        local verdict = hook(entry)
        local field = changed(entry, ...)
        if field then
            error("filter changed entry." .. field .. ", which only transform can", 0)
        elseif verdict == true or verdict == false then
            return verdict
        end
        error("filter returned " .. describe(verdict) .. " instead of true or false", 0)
    end
end

-- Returns a whole number within bounds, also if it came out of arithmetic with fractions.
local function integer(entry, field, max)
    local value = rawget(entry, field)
    local whole = math_type(value) and math.tointeger(value)
    if not whole then
        error("transform set entry." .. field .. " to " .. describe(value) .. " instead of a whole number", 0)
    elseif max and (whole < 0 or whole > max) then
        error("transform set entry." .. field .. " to " .. whole .. ", which is not between 0 and " .. max, 0)
    end
    return whole
end

function callers.transform(hook)
    return function(path, name, type, size, nlink, target, ...)
        local entry = new_entry(path, name, type, size, nlink, target, ...)
        local result = hook(entry)
        if result ~= nil and not rawequal(result, entry) then
            error("transform returned " .. describe(result) .. "; it changes the entry and returns nothing", 0)
        end
        if rawget(entry, "path") ~= path or rawget(entry, "name") ~= name then
            error("transform changed the name of an entry: a script cannot rename", 0)
        elseif rawget(entry, "type") ~= type or rawget(entry, "size") ~= size or rawget(entry, "nlink") ~= nlink
            or rawget(entry, "target") ~= target then
            error("transform changed the type, size, nlink or target of an entry, which stay as they are", 0)
        end
        return integer(entry, "permissions", 4095), integer(entry, "uid", 4294967295), integer(entry, "gid", 4294967295),
            integer(entry, "mtime_ns"), integer(entry, "atime_ns"), integer(entry, "ctime_ns")
    end
end

-- Inodes hold their number; other fields are asked for when they are first used.

local optional = { category = true, similarity = true }

function callers.order(hook)
    return function(count, fetch)
        local meta = {
            __name = "inode",
            __index = function(inode, field)
                local value = fetch(rawget(inode, 1), field)
                if value == nil then
                    if optional[field] then
                        return nil
                    end
                    error("an inode has no field '" .. tostring(field) .. "'", 2)
                end
                rawset(inode, field, value)
                return value
            end,
            __newindex = function(_, field)
                error("an inode has no field '" .. tostring(field) .. "' to be set", 2)
            end,
        }
        local inodes = {}
        for number = 1, count do
            inodes[number] = setmetatable({ number }, meta)
        end
        local result = hook(inodes)
        if result == nil then
            return nil
        elseif type(result) ~= "table" or getmetatable(result) == meta then
            error("order returned " .. describe(result) .. " instead of a list of inodes", 0)
        end
        local numbers = {}
        for place, inode in ipairs(result) do
            if type(inode) ~= "table" or getmetatable(inode) ~= meta then
                error("order returned a list with " .. describe(inode) .. " at " .. place
                    .. ", which is none of the inodes that it was given", 0)
            end
            numbers[place] = rawget(inode, 1) - 1
        end
        local size = 0
        for _ in next, result do
            size = size + 1
        end
        if size ~= #numbers then
            error("order returned a table that is no list, or has holes", 0)
        end
        return numbers
    end
end

return callers
