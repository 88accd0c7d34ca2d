-- Of random rows, every artifact shows the choices of the canonical table, and which of them are uncertain:
-- table.csv read back, the C header's cells, report.md, report.html and its data, best_strategy.svg,
-- pictures, the page that compares, diff. The figures beside a choice do not contradict each other. Of some
-- of the tables also the workbook, read back, the compiled header, and regret, which is computed here, too.
-- thresholds.json answers another question, by bytes. With GENTABLES_NIGHTLY=1 there are more tables.
local changes = require "table.changes"
local sweep_comparison = require "report.sweep_comparison"
local artifacts = require "unit.report.lib_artifacts"
local best_strategy = require "plots.best_strategy"
local consult = require "consult.lookup"
local report_data = require "report.report_data"
local file = require "core.file"
local formats = require "formats.list"
local json = require "codec.json"
local judge = require "formats.judge"
local lu = require "luaunit"
local model = require "formats.model"
local render = require "formats.render"
local report_html = require "report.report_html"
local rows = require "core.rows"
local sheets = require "pages.sheets"
local summary = require "formats.summary"
local picture_slices = require "pictures.picture_slices"
local workbook = require "report.workbook"
local tables = require "core.table"

local TABLES = tonumber(os.getenv "TABLES") or os.getenv "GENTABLES_NIGHTLY" == "1" and 1000 or 150
local EVERY = 75 -- tables, of which one is checked by processes: compiled, unzipped
local STRATEGIES = { "MPI", "ONESHOT", "TWOSHOT", "MPI_RING" }
local folder = os.getenv "WORK"
local csv = folder .. "/benchmark.tp2.host.csv"

-- Ascending different powers of two and sizes between them.
local function random_axis(most)
  local axis, value = {}, math.random(1, 3)
  for i = 1, math.random(1, most) do
    axis[i] = value
    value = value * math.random(2, 4) + math.random(0, 1)
  end
  return axis
end

-- Times of strategies that change places over the shapes, with noise; some are missing.
local function random_records(has_launches)
  local records, hidden_sizes, num_tokens = {}, random_axis(3), random_axis(6)
  local start, slope = {}, {}
  for _, name in ipairs(STRATEGIES) do start[name], slope[name] = 1 + 4 * math.random(), math.random() end
  for _, hidden_size in ipairs(hidden_sizes) do
    for _, tokens in ipairs(num_tokens) do
      for _, name in ipairs(STRATEGIES) do
        local time_us = start[name] * (hidden_size * tokens) ^ slope[name] * (0.8 + 0.4 * math.random())
        local half = time_us * 0.2 * math.random()
        local launches = has_launches and {} or nil
        for launch = 1, has_launches and 3 or 0 do
          launches[launch] = time_us * (0.98 + 0.04 * math.random())
        end
        if has_launches then
          local sorted = table.move(launches, 1, 3, 1, {})
          table.sort(sorted)
          time_us = sorted[2]
        end
        records[#records + 1] = math.random() < 0.9 and { world_size = 2, dtype = "bfloat16",
          size = 2 * hidden_size * tokens, num_tokens = tokens, hidden_size = hidden_size, strategy = name,
          fusion = "NONE", op = "allreduce", mode = "eager", placement = "dedicated", time_us = time_us,
          low_us = time_us - half, high_us = time_us + half, launches = launches } or nil
      end
    end
  end
  return records
end

local function strategy_of(cell) return cell.strategy end

-- hidden size -> tokens -> strategy
local function choices_of(table_of, name)
  return artifacts.of_axes(table_of:blocks()[1], function(h, t) return table_of:cell(1, 1, h, t) end,
    name or strategy_of)
end

-- The same of axes and rows of anything; name(value) is its strategy.
local function choices_in(axes, list, name)
  return artifacts.of_axes(axes, function(h, t) return list[h][t] end, name)
end

local function of_report(source, canonical)
  local found = report_data.of(source, summary.blocks(canonical))
  local names, block = report_data.strategies { found }, found.blocks[1]
  local next_letter = block.fusions[1].best:gmatch(utf8.charpattern)
  return artifacts.of_axes({ hidden_sizes = block.hidden, num_tokens = block.tokens }, next_letter,
    function(letter) return names[letter] and names[letter].name end)
end

-- What a program gets from an artifact; nil: from table.csv.
local function of_lookup(canonical, block, path)
  local shapes, out = {}, {}
  assert(file.write(folder .. "/table.csv", canonical:text("host")))
  for _, hidden_size in ipairs(block.hidden_sizes) do
    for _, num_tokens in ipairs(block.num_tokens) do
      shapes[#shapes + 1] = { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "eager",
        fusion = "NONE", hidden_size = hidden_size, num_tokens = num_tokens }
    end
  end
  for i, answer in ipairs(consult.artifact(path or folder .. "/table.csv", shapes, { unconfined = true })) do
    local line = out[shapes[i].hidden_size] or {}
    out[shapes[i].hidden_size], line[shapes[i].num_tokens] = line, answer.measured and answer.strategy or nil
  end
  os.remove(folder .. "/table.csv")
  return out
end

-- The state follows from confidence and expected loss, no runner-up loses less by more than the tolerance for
-- fewer borders, and a table loses no more than itself.
local function check_figures(canonical, judged)
  local block = canonical:blocks()[1]
  for h, hidden_size in ipairs(block.hidden_sizes) do
    for t, num_tokens in ipairs(block.num_tokens) do
      local found = judged:find { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "eager",
        fusion = "NONE", hidden_size = hidden_size, num_tokens = num_tokens }
      local cell = canonical:cell(1, 1, h, t)
      lu.assertEquals(found ~= nil, cell ~= nil)
      lu.assertEquals(found and found.old_loss, found and found.new_loss)
      if cell and cell.confidence then
        local is_right = cell.confidence >= 0.9 and cell.expected_loss <= 0.01
        lu.assertEquals(cell.state ~= "uncertain", is_right)
        lu.assertTrue(cell.worst_loss >= 0 and cell.expected_loss >= 0)
        lu.assertTrue((cell.margin or 0) >= -0.0025 - 1e-9, cell.margin)
      end
    end
  end
end

local function check_artifacts(source, canonical)
  local expected, block = choices_of(canonical), canonical:blocks()[1]
  local read = assert(tables.parse("table.csv", canonical:text("host")))
  lu.assertEquals(choices_of(read), expected)
  lu.assertEquals(of_lookup(canonical, block), expected)
  local tp_table = model.for_format(source, formats.find "c").tp_tables[1]
  lu.assertEquals(choices_in(tp_table, tp_table.fusions[1].rows, function(row) return row.name end), expected)
  lu.assertEquals(of_report(source, canonical), expected)
  local slice = picture_slices.of_folder(folder, "host"):slice(2, "NONE")
  lu.assertEquals(choices_in(slice, slice.best, strategy_of), expected)
  local comparison = sweep_comparison.of { source, source }
  local group = comparison.groups[1]
  lu.assertEquals(choices_in(group, group.cells, function(cells)
    return cells[2] and cells[2].strategy
  end), expected)
  lu.assertEquals({ group.against[2].faster, group.against[2].slower, group.against[2].changed }, { 0, 0, 0 })
  lu.assertEquals(changes.compare(read, canonical).changed, 0)
  check_figures(canonical, judge(source, read, canonical))
end

-- The same as choices_of, with "?" behind uncertain ones.
local function marked_choices_of(canonical)
  return choices_of(canonical, function(cell)
    return cell.strategy .. (cell.state == "uncertain" and "?" or "")
  end)
end

-- What reports and pictures show, read from their text.
local function check_texts(source, canonical)
  local expected, block, names = marked_choices_of(canonical), canonical:blocks()[1], {}
  for _, name in ipairs(STRATEGIES) do names[name] = name end
  lu.assertEquals(marked_choices_of(assert(tables.parse("table.csv", canonical:text("host")))), expected)
  lu.assertEquals(artifacts.of_markdown(render.text(source, formats.find "report"), names), expected)
  lu.assertEquals(artifacts.of_svg(render.text(source, formats.find "picture"), block), expected)
  lu.assertEquals(artifacts.of_html(artifacts.text_of(report_html.page { source }, folder)), expected)
  local slice = picture_slices.of_folder(folder, "host"):slice(2, "NONE")
  local marks = artifacts.of_marks(slice, function(h, t) return best_strategy.cell(slice, h, t) end)
  lu.assertEquals(marks, expected)
end

-- The mean loss of the choices at the shapes where they were measured, by the medians.
local function mean_loss(canonical, records)
  local chosen, best, of_chosen, sum, count = choices_of(canonical), {}, {}, 0, 0
  for _, record in ipairs(records) do
    local key, choice = record.num_tokens .. " " .. record.hidden_size, chosen[record.hidden_size]
    best[key] = math.min(best[key] or math.huge, record.time_us)
    if choice[record.num_tokens] == record.strategy then of_chosen[key] = record.time_us end
  end
  for key, time_us in pairs(of_chosen) do sum, count = sum + time_us / best[key] - 1, count + 1 end
  return sum / count
end

-- What needs other programs: the workbook, the compiled header and regret.
local function check_by_processes(source, canonical, records)
  local block, out = canonical:blocks()[1], folder .. "/out"
  assert(file.make_folder(out))
  if sheets.has_xlsx() and artifacts.has_unzip() then
    assert(workbook.write(source, out .. "/report.xlsx"))
    lu.assertEquals(artifacts.of_workbook(out .. "/report.xlsx"), marked_choices_of(canonical))
  end
  local header = out .. "/allreduce_table.h"
  assert(file.write(header, render.text(source, formats.find "c")))
  local command = "'%s' regret --table '%s' --rows '%s' --json --unconfined"
  local pipe <close> = assert(io.popen(command:format(gentables.program, header, csv)))
  local loss = assert(json.decode(pipe:read "a"))
  lu.assertAlmostEquals(loss.raw.mean, mean_loss(canonical, records), 1e-6)
  lu.assertEquals(of_lookup(canonical, block, header), choices_of(canonical))
  os.execute(("rm -rf '%s'"):format(out))
end

local tests = {}

function tests.test_random_tables()
  os.execute(("rm -rf '%s'"):format(folder))
  assert(file.make_folder(folder))
  math.randomseed(1)
  for number = 1, TABLES do
    local records = random_records(number % 2 == 0)
    if #records > 0 then
      assert(file.write(csv, assert(rows.text(csv, records))))
      local source = model.load(folder, "host")
      check_artifacts(source, model.canonical(source))
      check_texts(source, model.canonical(source))
      if number % EVERY == 0 then check_by_processes(source, model.canonical(source), records) end
    end
  end
end

return require "suites" { { "artifacts_agree", tests } }
