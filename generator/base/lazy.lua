-- A module that is read when something of it is asked for: for what few runs of a verb need, as reading a
-- module takes longer than most of what is done with a small table.
--
--   local spec = require "base.lazy" "room.module"
--
-- It only gives what the module has; nothing can be set in it, nor is it a list.
return function(name)
  return setmetatable({}, {
    __index = function(_, key) return require(name)[key] end,
    __newindex = function() error(name .. ": is read lazily here, and not written") end,
  })
end
