-- Slices of rows for pictures: their choices are those of table.csv; interpolated times have a mark.
local best_strategy = require "plots.best_strategy"
local heatmap = require "plots.heatmap"
local lib = require "unit.report.lib"
local lu = require "luaunit"
local model = require "formats.model"
local picture_slices = require "pictures.picture_slices"

local derived = os.getenv "SOURCE" .. "/tests/unit/report/derived"
local tests = {}

local function index_of(list, wanted)
  for i, value in ipairs(list) do
    if value == wanted then return i end
  end
end

-- Calls check(cell of table.csv or nil, slice, h, t) for each shape of the table.
local function each_cell(folder, check)
  local table_of = model.canonical(model.load(folder, "host"))
  local of, count = picture_slices.of_folder(folder, "host"), 0
  for b, block in ipairs(table_of:blocks()) do
    for f, fusion in ipairs(block.fusions) do
      local slice = of:slice(block.world_size, fusion)
      for h, hidden_size in ipairs(block.hidden_sizes) do
        for t, num_tokens in ipairs(block.num_tokens) do
          check(table_of:cell(b, f, h, t), slice, index_of(slice.hidden_sizes, hidden_size),
            index_of(slice.num_tokens, num_tokens))
          count = count + 1
        end
      end
    end
  end
  lu.assertTrue(count > 0)
end

function tests.test_choices_are_those_of_the_table()
  local interpolated = 0
  each_cell(derived, function(cell, slice, h, t)
    lu.assertEquals(slice.best[h][t], cell)
    if not (cell and cell.derived) then return end
    interpolated = interpolated + 1
    lu.assertStrContains(best_strategy.cell(slice, h, t).text, "~")
    local time_us, is_derived = slice.time_at(cell.strategy, h, t)
    lu.assertAlmostEquals(time_us, cell.time_us, 1e-9)
    lu.assertTrue(is_derived)
  end)
  lu.assertTrue(interpolated > 0)
end

-- At 1 token ONESHOT is faster, in the bin of that cell TWOSHOT. 2 tokens lie in it, too.
function tests.test_a_choice_is_for_its_bin()
  local rows = lib.rows { { 1, 1024, "ONESHOT", 10 }, { 1, 1024, "TWOSHOT", 10.5 },
    { 16, 1024, "ONESHOT", 40 }, { 16, 1024, "TWOSHOT", 20 } }
  lu.assertEquals(picture_slices.of_files({ rows }):slice(2, "NONE").best[1][1].strategy, "TWOSHOT")
end

function tests.test_heat_maps_have_interpolated_times()
  local slice = picture_slices.of_folder(derived, "host"):slice(2, "NONE")
  local marked = 0
  for _, panel in ipairs(heatmap.model(slice).panels) do
    for _, text in ipairs(panel.texts) do
      if text[3]:find("^~") then marked = marked + 1 end
    end
  end
  lu.assertTrue(marked > 0)
end

return require "suites" { { "slices", tests } }
