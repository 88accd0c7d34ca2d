-- Pictures of rows, drawn by gnuplot: sizes, colours at known places for known cells, and their texts.
local lib = require "unit.report.lib"
local colours = require "pages.colours"
local file = require "core.file"
local geometry = require "pages.geometry"
local lists = require "lists.lists"
local lu = require "luaunit"
local pictures = require "pictures.draw"
local quantities = require "base.quantities"
local picture_slices = require "pictures.picture_slices"

if not lib.has_gnuplot() then require "skip" "there is no gnuplot here" end

local DPI = 300
local of_one_tp_size = { "heatmap", "best_strategy", "strategy_difference_heatmap", "time_vs_size",
  "crossover", "confidence", "busbw" }
local TestPictures = {}

local function slice_of(path, fusion) return picture_slices.of_files({ path }):slice(2, fusion or "NONE") end

-- Draws one picture; returns its path and its model.
local function draw(kind, rows, ending)
  local path = lib.folder() .. "/picture" .. (ending or ".png")
  local of = picture_slices.of_files({ rows })
  lu.assertEquals({ pictures.draw(kind, of, { tp = 2, fusion = "NONE", path = path }) }, { true })
  return path, require("plots." .. kind).model(of:slice(2, "NONE"))
end

-- The pixel of a cell, a share of its width and height from its upper left corner; cells are counted from
-- the left and from below, as tokens and hidden sizes are.
local function place(model, panel, t, h, share)
  local box = model.panels[panel]
  local function at(value, low, high, from, to) return from + (value - low) / (high - low) * (to - from) end
  local x = at(t - 0.5 + share, model.x_low, model.x_high, box.left, box.right)
  local y = at(h + 0.5 - share, model.y_low, model.y_high, box.bottom, box.top)
  return { x * DPI, (model.height - y) * DPI }
end

-- ONESHOT wins at 1 x 1024, TWOSHOT at 4 x 1024; at 1 x 2048 there is ONESHOT alone, and nothing at 4 x 2048.
local function example()
  return lib.rows { { 1, 1024, "ONESHOT", 10 }, { 1, 1024, "TWOSHOT", 15 }, { 1, 1024, "AUTO", 8 },
    { 4, 1024, "ONESHOT", 40 }, { 4, 1024, "TWOSHOT", 20 }, { 1, 2048, "ONESHOT", 1000 } }
end

function TestPictures.test_the_best_strategy_has_its_colour_and_missing_cells_are_grey()
  local path, model = draw("best_strategy", example())
  local found = lib.pixels(path, { place(model, 1, 1, 1, 0.15), place(model, 1, 2, 1, 0.15),
    place(model, 1, 1, 2, 0.15), place(model, 1, 2, 2, 0.04) })
  lu.assertEquals(found, { "#e69f00", "#0072b2", "#e69f00", "#e6e6e6" })
end

function TestPictures.test_hatched_strategies_are_hatched()
  local rows = lib.rows { { 1, 1024, "MPI_RING", 1 }, { 2, 1024, "MPI_RING", 1 } }
  local path, model = draw("best_strategy", rows)
  -- the diagonal from the lower left corner to the upper right one is white
  local found = lib.pixels(path, { place(model, 1, 1, 1, 0.2), place(model, 1, 2, 1, 0.2) })
  lu.assertEquals(found, { "#d55e00", "#d55e00" })
  local box = model.panels[1]
  local x = box.left + (box.right - box.left) * 0.4 -- 0.8 of the first cell
  local y = box.bottom + (box.top - box.bottom) * 0.8
  local on_line = lib.pixels(path, { { x * DPI, (model.height - y) * DPI } })[1]
  lu.assertTrue(colours.luminance(on_line) > 0.6)
end

function TestPictures.test_sizes_are_inches_times_300_as_the_file_states()
  for _, kind in ipairs { "heatmap", "best_strategy", "confidence", "crossover", "time_vs_size", "busbw" } do
    local path, model = draw(kind, example())
    local width, height, density = lib.measure(path)
    lu.assertAlmostEquals(width, model.width * DPI, 0.51)
    lu.assertAlmostEquals(height, model.height * DPI, 0.51)
    lu.assertEquals(density, 11811)
  end
end

function TestPictures.test_times_go_from_dark_to_bright_in_one_scale_for_all_strategies()
  local path, model = draw("heatmap", example())
  lu.assertEquals({ model.panels[1].title, model.panels[2].title, model.panels[3].title },
    { "ONESHOT", "TWOSHOT", "AUTO" })
  -- 8 is the least and 1000 the most; 20 is at log(2.5) / log(125) = 0.1898 of the ten colours
  local found = lib.pixels(path, { place(model, 3, 1, 1, 0.1), place(model, 1, 1, 2, 0.1),
    place(model, 2, 2, 1, 0.1), place(model, 2, 1, 2, 0.04) })
  lu.assertEquals(found, { "#440154", "#fde725", colours.at(colours.time, math.log(2.5) / math.log(125)),
    "#e6e6e6" })
end

function TestPictures.test_differences_are_white_to_red_and_AUTO_is_never_the_best()
  local path, model = draw("strategy_difference_heatmap", example())
  local found = lib.pixels(path, { place(model, 1, 1, 1, 0.1), place(model, 2, 1, 1, 0.1),
    place(model, 1, 2, 1, 0.1), place(model, 3, 1, 1, 0.1) })
  -- 15 is 50 % more than 10: half way between #fc9272 and #fb6a4a; 40 is 100 % more than 20
  lu.assertEquals(found, { "#ffffff", "#fc7e5e", "#99000d", "#9ecae1" })
  local texts = {}
  for p = 1, 3 do
    for _, text in ipairs(model.panels[p].texts) do texts[#texts + 1] = text[3] end
  end
  lu.assertEquals(table.concat(texts, " "), "0.0 100.0 0.0 50.0 0.0 faster")
  lu.assertEquals(model.texts[#model.texts - 1].text, "faster than every strategy that may be chosen")
end

-- The boxes of the names of a map in inches, within its panel.
local function boxes_of(model)
  local panel, boxes = model.panels[1], {}
  local x_inch = (panel.right - panel.left) / (model.x_high - model.x_low)
  local y_inch = (panel.top - panel.bottom) / (model.y_high - model.y_low)
  for i, name in ipairs(model.names) do
    local width, height = geometry.width_of(name.text, name.points), geometry.height_of(name.points)
    local x, y = (name.x - model.x_low) * x_inch, (name.y - model.y_low) * y_inch
    boxes[i] = { x - width / 2, y - height / 2, x + width / 2, y + height / 2, name.text }
  end
  return boxes, panel.right - panel.left, panel.top - panel.bottom
end

-- Every pattern of winners over these tokens and hidden sizes: 40 random ones.
function TestPictures.test_names_on_the_map_of_borders_do_not_collide()
  local random = 7
  for _ = 1, 40 do
    local lines = {}
    for _, hidden in ipairs { 1024, 1728, 2880, 3456, 4096, 5824, 8192 } do
      for _, tokens in ipairs { 1, 3, 4, 8, 23, 64, 181, 724, 1024 } do
        random = (random * 1103515245 + 12345) % (1 << 31)
        lines[#lines + 1] = { tokens, hidden, (random >> 16) % 3 == 0 and "ONESHOT" or "TWOSHOT", 10 }
      end
    end
    local model = require("plots.crossover").model(slice_of(lib.rows(lines)))
    local boxes, width, height = boxes_of(model)
    for i, a in ipairs(boxes) do
      lu.assertTrue(a[1] >= 0 and a[2] >= 0 and a[3] <= width and a[4] <= height, a[5] .. " leaves the axes")
      for j = 1, i - 1 do
        local b = boxes[j]
        lu.assertFalse(a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4], a[5] .. " is on " .. b[5])
      end
    end
  end
end

function TestPictures.test_the_same_is_drawn_as_svg()
  local path = draw("best_strategy", example(), ".svg")
  local svg = assert(file.read(path))
  lu.assertStrContains(svg, "rgb(230, 159,   0)") -- #e69f00, as gnuplot writes it
  lu.assertStrContains(svg, "ONESHOT: 2 of 3 cells, 66.7 %")
  lu.assertStrContains(svg, 'font-family="sans-serif" font-weight="bold"')
  lu.assertNotStrContains(svg, "Sans:Bold")
end

function TestPictures.test_of_repeated_rows_the_least_counts()
  local slice = slice_of(lib.rows { { 1, 1024, "NCCL", 9 }, { 1, 1024, "ONESHOT", 12 },
    { 1, 1024, "ONESHOT", 5 }, { 1, 1024, "ONESHOT", 7 }, { 1, 1024, "NCCL", 8 } })
  lu.assertEquals(slice.rows.ONESHOT[1][1].time_us, 5)
  lu.assertEquals(slice.rows.NCCL[1][1].time_us, 8)
  lu.assertEquals(slice.best[1][1].strategy, "ONESHOT")
  lu.assertEquals(slice.best[1][1].time_us, 5)
  lu.assertAlmostEquals(slice.best[1][1].margin, 0.6, 1e-12)
end

-- The look of the only cell: the middle of the times' colours, its strategy's colour, a text, or, without an
-- interval, hatching.
function TestPictures.test_one_cell_of_one_strategy_is_a_picture()
  local nccl = lists.find("strategies", "NCCL").colour
  local looks = { heatmap = "#22908b", best_strategy = nccl, crossover = colours.pale(nccl, 0.35),
    strategy_difference_heatmap = "#000000", time_vs_size = nccl, busbw = nccl,
    confidence = colours.missing_lines }
  local rows = lib.rows { { 1, 1024, "NCCL", 9 } }
  for _, kind in ipairs(of_one_tp_size) do
    local path, model = draw(kind, rows)
    local box, edge = model.panels[1], 0.05
    local counts = lib.colours(path, (box.left + edge) * DPI, (model.height - box.top + edge) * DPI,
      (box.right - edge) * DPI, (model.height - box.bottom - edge) * DPI)
    lu.assertTrue((counts[looks[kind]] or 0) >= 5, kind .. " has nothing in the colour " .. looks[kind])
  end
end

-- AUTO is a call through a table and never the best: rows of only AUTO have no winner to draw.
function TestPictures.test_of_AUTO_alone_there_is_no_picture_of_the_best()
  local rows = picture_slices.of_files({ lib.rows { { 1, 1024, "AUTO", 9 } } })
  for _, kind in ipairs { "best_strategy", "strategy_difference_heatmap", "crossover", "confidence" } do
    local path = lib.folder() .. "/picture.png"
    local drawn, reason, code = pictures.draw(kind, rows, { tp = 2, fusion = "NONE", path = path })
    lu.assertNil(drawn)
    lu.assertStrContains(reason, "no time of a strategy that may be chosen")
    lu.assertEquals(code, "empty")
    lu.assertNil(file.read(path))
  end
end

function TestPictures.test_a_grid_too_large_for_texts_has_a_note()
  local rows = {}
  for t = 1, 60 do
    for h = 1, 40 do rows[#rows + 1] = { t, 64 * h, "NCCL", 1 + (t * h) % 7 } end
  end
  local path, model = draw("heatmap", lib.rows(rows))
  lu.assertEquals(#model.panels[1].texts, 0)
  lu.assertStrContains(model.texts[#model.texts].text, "Too many cells")
  lu.assertTrue(#model.x_ticks < 60 and #model.y_ticks <= 40)
  local width, height = lib.measure(path)
  lu.assertTrue(width < 32767 and height < 32767)
end

-- ---- texts -------------------------------------------------------------------------------------

local function texts_of(model)
  local out = {}
  for _, text in ipairs(model.texts) do out[#out + 1] = text.text end
  return table.concat(out, "\n")
end

-- A note must not explain signs that the picture lacks.
function TestPictures.test_notes_explain_only_drawn_signs()
  local few, many = example(), {}
  for t = 1, 60 do
    for h = 1, 40 do
      many[#many + 1] = { t, 64 * h, "NCCL", 100 }
      many[#many + 1] = { t, 64 * h, "ONESHOT", 101 }
    end
  end
  many = lib.rows(many)
  local function printed(kind, rows) return texts_of(require("plots." .. kind).model(slice_of(rows))) end
  lu.assertStrContains(printed("confidence", few), "letters are the winner's")
  lu.assertNotStrContains(printed("confidence", many), "letters are the winner's")
  lu.assertNotStrContains(printed("best_strategy", many), "?:")
  lu.assertStrContains(printed("crossover", many), "Dashed")
  lu.assertNotStrContains(printed("crossover", few), "Dashed") -- too small for lines of equal size
end

local function model_of(kind, rows) return assert(require("plots." .. kind).model(slice_of(rows))) end

function TestPictures.test_without_intervals_and_bounds_there_is_neither_band_nor_line_but_a_note()
  local model = model_of("time_vs_size", example())
  lu.assertStrContains(texts_of(model), "no intervals or physical bounds")
  for _, series in ipairs(model.panels[1].series) do
    lu.assertFalse(series.band)
    lu.assertNil(series.plain)
  end
  lu.assertStrContains(texts_of(model_of("confidence", example())), "without launches have no confidence")
end

function TestPictures.test_intervals_are_bands_and_bounds_a_line()
  local model = model_of("time_vs_size", lib.rows({ { 1, 1024, "NCCL", 9, "NONE", 8, 10, 2 },
    { 4, 1024, "NCCL", 20, "NONE", 19, 22, 3 } }, 2, true))
  local nccl, bound = model.panels[1].series[1], model.panels[1].series[2]
  lu.assertTrue(nccl.band)
  lu.assertEquals(nccl.points, { { 2048, 9, 8, 10 }, { 8192, 20, 19, 22 } })
  lu.assertTrue(bound.plain)
  lu.assertEquals(bound.points, { { 2048, 2 }, { 8192, 3 } })
  lu.assertNotStrContains(texts_of(model), "no intervals")
end

function TestPictures.test_cells_of_one_size_are_one_point_at_their_median()
  local model = model_of("time_vs_size", lib.rows { { 1, 4096, "NCCL", 9 }, { 2, 2048, "NCCL", 11 },
    { 4, 1024, "NCCL", 16 } })
  lu.assertEquals(model.panels[1].series[1].points, { { 8192, 11 } })
end

function TestPictures.test_busbw_is_size_over_time_times_the_factor()
  local path = lib.rows({ { 1, 4096, "NCCL", 4 } }, 4)
  local model = require("plots.busbw").model(picture_slices.of_files({ path }):slice(4, "NONE"))
  -- 8192 bytes in 4 us are 2.048 GB/s; 2 (4 - 1) / 4 = 1.5 of that
  lu.assertAlmostEquals(model.panels[1].series[1].points[1][2], 3.072, 1e-9)
end

function TestPictures.test_scaling_needs_two_tp_sizes()
  local paths = { lib.rows({ { 1, 1024, "NCCL", 4 } }, 2), lib.rows({ { 1, 1024, "ONESHOT", 6 } }, 4) }
  local rows = picture_slices.of_files(paths)
  local scaling = require "plots.scaling"
  local model, reason = scaling.model { rows:slice(2, "NONE") }
  lu.assertNil(model)
  lu.assertStrContains(reason, "one TP size")
  model = scaling.model { rows:slice(2, "NONE"), rows:slice(4, "NONE") }
  local points = model.panels[1].series[1].points
  lu.assertEquals({ points[1][1], points[1][2], points[2][1], points[2][2] }, { 2, 4, 4, 6 })
  lu.assertStrContains(texts_of(model), "1S ONESHOT, N NCCL")
end

function TestPictures.test_borders_stand_where_the_winner_changes()
  local model = model_of("crossover", lib.rows { { 1, 1024, "NCCL", 1 }, { 1, 1024, "ONESHOT", 2 },
    { 4, 1024, "NCCL", 2 }, { 4, 1024, "ONESHOT", 1 }, { 16, 1024, "ONESHOT", 1 } })
  -- between 1 and 4 tokens: at log2 = 1, over the one row around log2 1024 = 10
  lu.assertEquals(model.borders, { { 1, 9.5, 1, 10.5 } })
end

function TestPictures.test_shares_are_shown()
  local out = {}
  for i, entry in ipairs((require("plots.best_strategy").distribution(slice_of(example())))) do
    out[i] = ("%s %d"):format(entry.strategy.name, entry.count)
  end
  lu.assertEquals(out, { "ONESHOT 2", "TWOSHOT 1" })
end

-- ---- layout -----------------------------------------------------------------------------------

function TestPictures.test_no_text_is_cut_off()
  local rows = lib.rows({ { 1, 1024, "MPI_RECURSIVE_DOUBLING", 9, "NONE", 8, 10, 2 } }, 2, true)
  local slice = slice_of(rows)
  slice.machine = ("A <machine> with \"quotes\" & $(signs) `x` "):rep(9) .. ("w"):rep(300)
  slice.reasons = { { reason = ("why "):rep(80), count = 3 } }
  slice.num_tokens[2], slice.best[1][2] = 4, nil -- so that a cell is missing, and the reason is printed
  for _, kind in ipairs(of_one_tp_size) do
    local model = require("plots." .. kind).model(slice)
    lu.assertTrue(#model.texts > 0 and #model.panels > 0, kind)
    for _, text in ipairs(model.texts) do
      local right = text.x + geometry.width_of(text.text, text.points)
      lu.assertTrue(right <= model.width, kind .. ": " .. text.text)
      lu.assertTrue(text.y > 0.05 and text.y < model.height, kind)
    end
    for _, panel in ipairs(model.panels) do
      lu.assertTrue(panel.left > 0 and panel.right < model.width)
      lu.assertTrue(panel.bottom > 0 and panel.top < model.height)
    end
  end
end

function TestPictures.test_ticks_are_few_and_within()
  local function texts(ticks)
    local out = {}
    for i, tick in ipairs(ticks) do out[i] = tick.text end
    return table.concat(out, " ")
  end
  lu.assertEquals(texts(geometry.log_ticks(0.9, 110, 12)), "1 2 5 10 20 50 100")
  lu.assertEquals(texts(geometry.log_ticks(0.9, 110, 5)), "1 3 10 30 100")
  lu.assertEquals(texts(geometry.log_ticks(3.1, 4.2, 5)), "3.1 4.2")
  lu.assertEquals(texts(geometry.byte_ticks(2048, 65536, 3)), "2 KiB 8 KiB 32 KiB")
  lu.assertEquals(quantities.three_digits(0.123), "0.12")
  lu.assertEquals(quantities.three_digits(9.996), "10.0")
  lu.assertEquals(quantities.three_digits(123456), "123k")
end

function TestPictures.test_labels_are_one_line_of_valid_text()
  lu.assertEquals(geometry.legible("a\nb\255"), "a?b?")
  lu.assertEquals(geometry.shorten("µµµµµµµµµµ", 72, 5 * 0.62), "µµµµ…")
end

-- ---- the looks of strategies ------------------------------------------------------------------

-- The look of a colour to people without one kind of cone: matrices over linear RGB (Machado, Oliveira,
-- Fernandes 2009, severity 1).
local eyes = {
  { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } },
  { { 0.152286, 1.052583, -0.204868 }, { 0.114503, 0.786281, 0.099216 }, { -0.003882, -0.048116, 1.051998 } },
  { { 0.367322, 0.860646, -0.227968 }, { 0.280085, 0.672501, 0.047413 }, { -0.011820, 0.042940, 0.968881 } },
  { { 1.255528, -0.076749, -0.178779 }, { -0.078411, 0.930809, 0.147602 }, { 0.004733, 0.691367, 0.303900 } },
}

local to_xyz = { { 0.4124, 0.3576, 0.1805 }, { 0.2126, 0.7152, 0.0722 }, { 0.0193, 0.1192, 0.9505 } }

local function multiply(matrix, vector)
  local out = {}
  for i = 1, 3 do
    out[i] = matrix[i][1] * vector[1] + matrix[i][2] * vector[2] + matrix[i][3] * vector[3]
  end
  return out
end

-- CIE Lab (D65) of "#rrggbb" as seen by `eye`.
local function lab(colour, eye)
  local linear = {}
  for i = 1, 3 do
    local value = tonumber(colour:sub(2 * i, 2 * i + 1), 16) / 255
    linear[i] = value <= 0.04045 and value / 12.92 or ((value + 0.055) / 1.055) ^ 2.4
  end
  local seen = multiply(eye, linear)
  for i = 1, 3 do seen[i] = math.max(0, math.min(1, seen[i])) end
  local xyz = multiply(to_xyz, seen)
  local function f(value) return value > 0.008856 and value ^ (1 / 3) or 7.787 * value + 16 / 116 end
  local x, y, z = f(xyz[1] / 0.95047), f(xyz[2]), f(xyz[3] / 1.08883)
  return { 116 * y - 16, 500 * (x - y), 200 * (y - z) }
end

-- Strategies that one table can have: of one backend, on the host of one MPI library, UCC's beside NCCL
-- alone; ONESHOT and TWOSHOT are in all. NCCL's channel counts look alike.
local function families()
  local open_mpi, mpich, ucc, others, nccl = {}, {}, {}, {}, {}
  for _, strategy in ipairs(lists.strategies) do
    local both = strategy.name == "ONESHOT" or strategy.name == "TWOSHOT"
    local of_mpich = strategy.mpich_algorithm ~= nil
    if (strategy.backend == "host" or both) and not of_mpich then open_mpi[#open_mpi + 1] = strategy end
    if of_mpich or both or strategy.name == "MPI" then mpich[#mpich + 1] = strategy end
    if strategy.ucc_algorithm or both or strategy.name == "NCCL" then ucc[#ucc + 1] = strategy end
    if strategy.nccl then
      if not strategy.nccl.channels then nccl[#nccl + 1] = strategy end
    elseif strategy.backend ~= "host" and not of_mpich and not strategy.ucc_algorithm or both then
      others[#others + 1] = strategy
    end
  end
  return { open_mpi, mpich, ucc, others }, nccl
end

local function share_an_op(one, other)
  for _, op in ipairs(lists.ops) do
    if lists.does(one, op.name) and lists.does(other, op.name) then return true end
  end
  return false
end

function TestPictures.test_marks_distinguish_strategies()
  local groups, nccl = families()
  groups[#groups + 1] = nccl
  for _, group in ipairs(groups) do
    local seen = {}
    for _, strategy in ipairs(group) do
      lu.assertNil(seen[strategy.mark], strategy.name .. " has the mark of another")
      lu.assertTrue(#strategy.mark <= 2)
      seen[strategy.mark] = true
    end
  end
end

function TestPictures.test_colours_of_strategies_suit_colour_blind_people()
  local LEAST = 10 -- Lab units; 2.3 are just noticeable
  for _, group in ipairs((families())) do
    for i, one in ipairs(group) do
      for j = 1, i - 1 do
        local other = group[j]
        for _, eye in ipairs(one.hatched == other.hatched and share_an_op(one, other) and eyes or {}) do
          local a, b = lab(one.colour, eye), lab(other.colour, eye)
          local distance = math.sqrt((a[1] - b[1]) ^ 2 + (a[2] - b[2]) ^ 2 + (a[3] - b[3]) ^ 2)
          lu.assertTrue(distance >= LEAST, one.name .. " and " .. other.name)
        end
      end
    end
  end
end

return require "suites" { { "TestPictures", TestPictures } }
