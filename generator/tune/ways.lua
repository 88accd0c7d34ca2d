-- The ways in which an allreduce with an epilogue is measured, and whom to ask for each: fused, as a
-- candidate does it; separate, with a kernel of its own behind the sum; and the sum alone.
--
-- The bench of the host knows these ways itself, and is asked once. On GPUs each is a candidate's own: one
-- request is for all who do it whole, one for the sum alone, and both are in one order (plan.lua). An
-- allreduce with its epilogue apart is a candidate of the bench, too, called NAME_EPILOGUE there.
local lists = require "lists.lists"

local ways = {}

local APART = "_EPILOGUE"

-- The candidate that `name` is with its epilogue apart; nil: it is none of those that are made of another.
function ways.base(job, name)
  local candidate = job.candidates[name]
  local base = name:sub(-#APART) == APART and name:sub(1, -#APART - 1)
  local is_made = candidate and not candidate.usual
  return base and is_made and job.candidates[base] and base or nil
end

-- The candidate that is called `name` on GPUs, and how it does the epilogue of `cell` in a request for
-- `fusion`.
function ways.kind(job, cell, fusion, name)
  if not cell.fusion then return name, "none" end
  if fusion == "NONE" then return name, "alone" end
  local base = ways.base(job, name)
  if base then return base, "separate" end
  local row = lists.find("strategies", name)
  local has_kernel_behind = row and row.cuda and (row.cuda.nccl or row.cuda.epilogue)
  return name, has_kernel_behind and "separate" or "fused"
end

-- The requests of a cell for these candidates, as { fusion, names }.
function ways.requests(job, cell, names)
  if job.backend == "host" or not cell.fusion then return { { fusion = cell.fusion, names = names } } end
  local whole = {}
  for _, name in ipairs(names) do
    whole[#whole + 1] = name
    if ways.base(job, name .. APART) then whole[#whole + 1] = name .. APART end
  end
  return { { fusion = cell.fusion, names = whole }, { fusion = "NONE", names = names } }
end

-- Says of each candidate that was asked in which ways there is none to time.
function ways.complete(job, cell)
  if job.backend == "host" or not cell.fusion then return end
  local told = {}
  for _, list in ipairs { cell.fresh, cell.fresh_no_time } do
    for _, entry in ipairs(list) do told[entry.strategy .. " " .. entry.epilogue] = true end
  end
  for _, name in ipairs(cell.asked) do
    for _, epilogue in ipairs { "fused", "separate" } do
      if not told[name .. " " .. epilogue] then
        table.insert(cell.fresh_no_time, { strategy = name, epilogue = epilogue,
          reason = ("there is no %s epilogue of it"):format(epilogue) })
      end
    end
  end
end

return ways
