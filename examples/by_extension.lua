-- Stores files of one extension together, the large ones first: they are alike, and compress better side by side.
--
--     mkdwarfs -i tree -o tree.dwarfs --script by_extension.lua

function order(inodes)
    local keys = {}
    for place, inode in ipairs(inodes) do
        -- Names may end in any bytes; what comes behind the last dot counts, in lower case.
        local extension = (inode.name:match("%.([^.]+)$") or ""):lower()
        keys[inode] = { extension, -inode.size, place }
    end
    table.sort(inodes, function(a, b)
        local left, right = keys[a], keys[b]
        for field = 1, 3 do
            if left[field] ~= right[field] then
                return left[field] < right[field]
            end
        end
        return false
    end)
    return inodes
end
