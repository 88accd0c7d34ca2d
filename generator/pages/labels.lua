-- What inputs that stand side by side are called.
local fail = require "base.fail"

local labels = {}

-- One label for each of `inputs`, { label =, path = }: those given (by --label, once for each, in their
-- order), else the inputs' own, with as much of the path as it takes to tell them apart.
function labels.of(inputs, given)
  local out, seen = {}, {}
  if given and #given ~= #inputs then
    fail.input("--label is given %d times for %d inputs; once for each, in their order, would be right",
      #given, #inputs)
  end
  for i, input in ipairs(inputs) do
    local label = given and given[i] or input.label
    if seen[label] and not given then label = input.path end
    if label == "" or seen[label] then
      fail.input("two inputs are called %q; --label L for each would tell them apart", label)
    end
    seen[label], out[i] = true, label
  end
  return out
end

return labels
