-- Sums over kernels that several metrics share. Times in whole nanoseconds.
local communication = require "lists.communication"
local busy_time = require "profile.busy_time"

local kernels = {}

kernels.no_communication = "communication: " .. communication.NONE

function kernels.communicating(rank)
  local communicates = rank.kernels.communicates
  return function(i) return communicates[i] end
end

function kernels.computing(rank)
  local communicates = rank.kernels.communicates
  return function(i) return not communicates[i] end
end

-- The sum of all; nil and the missing fact if it is 0.
function kernels.time(rank)
  local sum = busy_time.sum(rank.kernels)
  if sum == 0 then return nil, "kernels with a time above zero" end
  return sum
end

-- The sum of kernels that communicate; nil and the missing fact if there are none.
function kernels.communication_time(rank)
  if #rank.collectives == 0 then return nil, kernels.no_communication end
  return busy_time.sum(rank.kernels, kernels.communicating(rank))
end

-- The time in which at least one runs; nil and the missing fact if it is 0.
function kernels.active_time(rank)
  local sum = busy_time.sum(busy_time.union(rank.kernels))
  if sum == 0 then return nil, "kernels with a time above zero" end
  return sum
end

return kernels
