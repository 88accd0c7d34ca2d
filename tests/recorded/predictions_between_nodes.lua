-- Choices for 6 nodes, predicted from recorded rows of 2, 3 and 4 nodes (nodes/, see README.md), lose nothing
-- for certain at most sizes, and little where the links limit the times; and the rows of 6 nodes lie in the
-- intervals of their predictions.
local held_out = require "predict.held_out"
local lu = require "luaunit"
local model = require "formats.model"

local folder = os.getenv "SOURCE" .. "/tests/recorded/nodes"
local FROM_BYTES = 256 << 10 -- the links of 100 Mbit/s limit the times from here on

local tests = {}

local function only_judgement(from_bytes)
  local judged = held_out.of_source(model.load(folder, "host", { against = "none" }), from_bytes)
  lu.assertEquals(#judged, 1)
  print(held_out.words(judged[1]))
  lu.assertEquals({ judged[1].nodes, judged[1].from }, { 6, { 2, 3, 4 } })
  return judged[1]
end

function tests.test_all_sizes()
  local result = only_judgement()
  lu.assertEquals(result.shapes, 5)
  lu.assertTrue(result.certain <= 0.05, result.certain)
  lu.assertTrue(result.mean < result.library / 2, result.mean)
  lu.assertTrue(result.inside / result.predicted >= 0.85, result.inside)
end

function tests.test_sizes_at_which_the_links_are_the_limit()
  local result = only_judgement(FROM_BYTES)
  lu.assertEquals(result.shapes, 3)
  lu.assertEquals(result.certain, 0)
  lu.assertTrue(result.mean <= 0.08, result.mean)
  lu.assertTrue(result.library > 1, result.library)
end

return require "suites" { { "Predictions between nodes", tests } }
