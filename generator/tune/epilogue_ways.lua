-- The three ways to measure an allreduce with an epilogue: fused, by the candidate itself; separate, with a
-- kernel for the epilogue after the sum; and the sum alone.
--
-- The bench of the host measures all three for one request. On GPUs there are two requests, which the bench
-- interleaves (pass_input.lua): one with the epilogue, and one for the sum alone. There a candidate with a
-- separate epilogue is a candidate of its own, NAME_EPILOGUE.
local lists = require "lists.lists"

local epilogue_ways = {}

local APART = "_EPILOGUE"

-- The candidate NAME of NAME_EPILOGUE; nil for any other name.
function epilogue_ways.base(job, name)
  local candidate = job.candidates[name]
  local base = name:sub(-#APART) == APART and name:sub(1, -#APART - 1)
  local is_made = candidate and not candidate.usual
  return base and is_made and job.candidates[base] and base or nil
end

-- The candidate with this name on GPUs, and the way of its epilogue in a request of `cell` for `fusion`.
function epilogue_ways.kind(job, cell, fusion, name)
  if not cell.fusion then return name, "none" end
  if fusion == "NONE" then return name, "alone" end
  local base = epilogue_ways.base(job, name)
  if base then return base, "separate" end
  local row = lists.find("strategies", name)
  local has_kernel_behind = row and row.cuda and (row.cuda.nccl or row.cuda.epilogue)
  return name, has_kernel_behind and "separate" or "fused"
end

-- The requests of a cell for these candidates, as { fusion, names }.
function epilogue_ways.requests(job, cell, names)
  if job.backend == "host" or not cell.fusion then return { { fusion = cell.fusion, names = names } } end
  local whole = {}
  for _, name in ipairs(names) do
    whole[#whole + 1] = name
    if epilogue_ways.base(job, name .. APART) then whole[#whole + 1] = name .. APART end
  end
  return { { fusion = cell.fusion, names = whole }, { fusion = "NONE", names = names } }
end

-- Adds a reason for each way that a requested candidate does not have.
function epilogue_ways.complete(job, cell)
  if job.backend == "host" or not cell.fusion then return end
  local has = {}
  for _, list in ipairs { cell.fresh, cell.fresh_no_time } do
    for _, entry in ipairs(list) do has[entry.strategy .. " " .. entry.epilogue] = true end
  end
  for _, name in ipairs(cell.requested) do
    for _, epilogue in ipairs { "fused", "separate" } do
      if not has[name .. " " .. epilogue] then
        table.insert(cell.fresh_no_time, { strategy = name, epilogue = epilogue,
          reason = ("there is no %s epilogue of it"):format(epilogue) })
      end
    end
  end
end

return epilogue_ways
