-- Adds up what `gentables prove --json` found, and compares what it read in the file with a plan.
--
--   gentables lua proof_counts.lua PLAN PROOF.json...
--
-- PLAN has lines `RANKS BYTES ALGORITHM`: the choices at measured sizes. Prints the numbers of choices that
-- were asked and obeyed, and the name of the library; fails if the file has other choices, or lacks some.
local file = require "core.file"
local json = require "codec.json"

local plan = {}
for line in io.lines(arg[1]) do
  local cell, algorithm = line:match("^(%d+ %d+) (%S+)$")
  plan[assert(cell, line)] = algorithm
end

local asked, obeyed, planned, library = 0, 0, 0, nil
for i = 2, #arg do
  local proof = assert(json.decode(file.read(arg[i])))
  assert(proof.own == 0, arg[i] .. ": the file leaves out a size")
  for _, cell in ipairs(proof.cells) do
    local choice = plan[("%d %d"):format(cell.ranks, cell.bytes)]
    assert(not choice or choice == cell.asked, ("%d ranks, %d bytes"):format(cell.ranks, cell.bytes))
    if choice then planned = planned + 1 end
  end
  asked, obeyed = asked + proof.obeyed + proof.not_obeyed, obeyed + proof.obeyed
  library = proof.library
end
assert(planned > 0 and asked > planned, "too few sizes")
print(asked, obeyed, library)
