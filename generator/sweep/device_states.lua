-- States of a device at the ends of launches, as the bench reports them: name -> text.
local device_states = {}

-- The state over several launches, from that `before` and that of the last one, each nil where there is none;
-- it takes over the table `last`. Values over all launches, such as the least clock, the reasons for it and
-- the largest error, are joined; others are those of the last.
function device_states.join(before, last)
  for name, value in pairs(last and before or {}) do
    local former, latter = math.tointeger(tonumber(value)), math.tointeger(tonumber(last[name]))
    if former and latter and name:find("^least_") then last[name] = tostring(math.min(former, latter)) end
    if name:find("^largest_") then
      last[name] = (tonumber(last[name]) or 0) > (tonumber(value) or 0) and last[name] or value
    end
    if former and latter and name:find("_seen$") then last[name] = ("0x%x"):format(former | latter) end
  end
  return last or before
end

return device_states
