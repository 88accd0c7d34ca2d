-- A module that is loaded when one of its fields is first read. For modules that few runs of a verb need:
-- loading one takes longer than most work on a small table.
--
--   local spec = require "base.lazy" "room.module"
--
-- Fields can be read, not set; # and ipairs do not work.
return function(name)
  return setmetatable({}, {
    __index = function(_, key) return require(name)[key] end,
    __newindex = function() error(name .. ": a lazily loaded module is read-only") end,
  })
end
