-- report.html shows the content of table.csv: every TP size and fusion of two archs, every cell, the details
-- of cells, sorting, copying, moving by keys, and the state in the address.
local lu = require "luaunit"
local lists = require "lists.lists"
local lib = require "unit.pages.lib"

if not lib.has_browser() then return 77 end

local out = lib.folder "report"
local host, sm90 = lib.source .. "/tables/host", lib.source .. "/tests/golden/sm90"
lib.gentables(("report --data-dir '%s' --arch host --data-dir '%s' --arch sm90 --out '%s'"):format(host, sm90,
  out))

-- table.csv of both, by the state that shows it.
local function expected()
  local by_state, states = {}, {}
  for _, folder in ipairs { host, sm90 } do
    for _, record in ipairs(lib.csv(folder .. "/table.csv")) do
      local state = ("arch=%s&tp=%s&fusion=%s&data=%s.%s.%s"):format(record.arch, record.world_size,
        record.fusion, record.dtype, record.op, record.mode)
      if not by_state[state] then
        by_state[state] = {}
        states[#states + 1] = state
      end
      table.insert(by_state[state], record)
    end
  end
  return by_state, states
end

local by_state, states = expected()

local columns = { "num_tokens", "hidden_size", "strategy", "time (us)", "runner_up", "margin", "state",
  "confidence", "expected loss" }

local function mark_of(record)
  if record.strategy == "unmeasured" then return "–" end
  return lists.find("strategies", record.strategy).mark .. (record.state == "uncertain" and "?" or "")
end

local tests = {}

function tests.test_every_table()
  local quoted = {}
  for i, state in ipairs(states) do quoted[i] = ("%q"):format(state) end
  local pages = lib.browse(out, [[
    const page = await open("report.html#view=best"), all = [];
    const visible = () => [...page.document.querySelectorAll(".grid")]
      .filter((grid) => grid.offsetHeight > 0);
    for (const state of []] .. table.concat(quoted, ",") .. [[]) {
      await go(page, state);
      const grid = visible()[0];
      all.push({ id: grid.id, count: visible().length,
        tokens: texts(grid.querySelectorAll("thead th")).slice(1),
        cells: [...grid.querySelectorAll("tbody tr")].map((row) => texts(row.cells)),
        list: [...page.document.querySelectorAll("#list tbody tr")].map((row) => texts(row.cells)) });
    }
    return all;]])
  lu.assertEquals(#pages, #states)
  lu.assertTrue(#states >= 12)
  for i, state in ipairs(states) do
    local records, page = by_state[state], pages[i]
    lu.assertEquals(page.id, state)
    lu.assertEquals(page.count, 1)
    lu.assertEquals(#page.list, #records)
    local cell_of = {}
    for _, row in ipairs(page.cells) do
      for t, tokens in ipairs(page.tokens) do cell_of[row[1] .. "x" .. tokens] = row[t + 1] end
    end
    for r, record in ipairs(records) do
      for c, name in ipairs(columns) do
        local shown, written = page.list[r][c], record[name]
        local are_numbers = tonumber(shown) and tonumber(written) -- a page has 1e-7, a file 1e-07
        if are_numbers then
          lu.assertAlmostEquals(tonumber(shown), tonumber(written), 5.1e-5, state .. " " .. name)
        else
          lu.assertEquals(shown, written, state .. " " .. name)
        end
      end
      lu.assertEquals(cell_of[record.hidden_size .. "x" .. record.num_tokens], mark_of(record), state)
    end
  end
end

-- The rows of TP 2 and NONE: by cell, strategy -> record.
local function rows_of_a_table()
  local by_cell = {}
  for _, record in ipairs(lib.csv(host .. "/benchmark.tp2.host.csv")) do
    if record.fusion == "NONE" then
      local key = record.num_tokens .. "x" .. record.hidden_size
      by_cell[key] = by_cell[key] or {}
      by_cell[key][record.strategy] = record
    end
  end
  return by_cell
end

-- Whether a line of the details has how much longer than the fastest it takes.
local function has_share(line, share, key)
  lu.assertTrue(math.abs(tonumber(line[5]:match("^[%d.]+")) - 100 * share) <= 0.5 + share, key)
end

-- Whether a line of the details has the times of a row, and its share of the bound.
local function has_times(line, record, key)
  local function near(text, name)
    lu.assertTrue(math.abs(tonumber(text) - tonumber(record[name])) <= 5e-3 * tonumber(record[name]), key)
  end
  local low, high = line[4]:match("^(%S+) to (%S+)$")
  near(line[3], "time (us)")
  near(low, "low (us)")
  near(high, "high (us)")
  local bound = 100 * tonumber(record["bound (us)"]) / tonumber(record["time (us)"])
  lu.assertTrue(math.abs(tonumber(line[7]:match("^%d+")) - bound) <= 0.51, key)
end

-- Whether a line of the details has the basis of its time: at most three measured shapes of its strategy, or
-- that it was measured.
local function has_basis(line, by_cell, is_measured, key)
  if is_measured then
    lu.assertTrue(line[8] == nil or line[8] == "measured", key)
    return
  end
  local name, count = line[1]:gsub(" %(.*%)$", ""):match("[%w_]+$"), 0
  for tokens, hidden_size in line[8]:match("^interpolated from (.*), …$"):gmatch("(%d+) × (%d+)") do
    lu.assertNotNil(by_cell[tokens .. "x" .. hidden_size][name], key)
    count = count + 1
  end
  lu.assertEquals(count, 3, key)
end

function tests.test_details_have_every_strategy()
  local shown = lib.browse(out, [[
    const page = await open("report.html#arch=host&tp=2&fusion=NONE"), all = {};
    const grid = page.document.querySelector(".grid.chosen"), rows = [...grid.querySelectorAll("tbody tr")];
    const tokens = texts(grid.querySelectorAll("thead th")).slice(1);
    for (const row of rows) tokens.forEach((count, t) => {
      row.cells[t + 1].dispatchEvent(new page.MouseEvent("mouseover", { bubbles: true }));
      all[count + "x" + row.cells[0].textContent] =
        [...page.document.querySelectorAll("#details tbody tr")].map((line) => texts(line.cells));
    });
    return all;]])
  local cells, by_cell = 0, rows_of_a_table()
  for key, records in pairs(by_cell) do
    local lines, last, count, measured = shown[key], 0, 0, 0
    for _ in pairs(records) do count = count + 1 end
    for i, line in ipairs(lines or {}) do -- nil: measured between the grid's lines
      local record, time = records[line[1]:gsub(" %(.*%)$", ""):match("[%w_]+$")], tonumber(line[3])
      lu.assertEquals(line[5] == "fastest", i == 1, key)
      if i > 1 then has_share(line, time / tonumber(lines[1][3]) - 1, key) end
      if record then
        measured = measured + 1
        has_times(line, record, key)
      else -- interpolated
        lu.assertEquals(line[4] .. line[7], "", key)
      end
      has_basis(line, by_cell, record ~= nil, key)
      lu.assertTrue(time >= last, key)
      last = time
    end
    if lines then
      lu.assertEquals(measured, count, key)
      cells = cells + 1
    end
  end
  lu.assertTrue(cells > 3)
end

function tests.test_sorting_copying_and_keys()
  local shown = lib.browse(out, [[
    const page = await open("report.html#arch=host&tp=4&fusion=NONE&cell=16x2880"), { document } = page;
    const result = { selected: document.querySelector("#details h3").textContent };
    let copied = "";
    const clipboard = { writeText: async (text) => { copied = text; } };
    Object.defineProperty(page.navigator, "clipboard", { value: clipboard });
    const column = (title) => [...document.querySelectorAll("#list thead th")]
      .findIndex((head) => head.textContent === title);
    const values = (at) => texts([...document.querySelectorAll("#list tbody tr")]
      .map((row) => row.cells[at]));
    const sort = () => document.querySelectorAll("#list thead button")[column("time (us)")].click();
    sort();
    result.up = values(column("time (us)"));
    sort();
    result.down = values(column("time (us)"));
    document.querySelector("#list .copy").click();
    await new Promise((resolve) => setTimeout(resolve, 10));
    result.copied = copied.trim().split("\n").length;
    document.querySelector(".grid.chosen td.current").dispatchEvent(
      new page.KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, cancelable: true }));
    result.moved = document.querySelector("#details h3").textContent;
    result.fragment = page.location.hash;
    const box = document.querySelector("#controls [name=tp]");
    box.value = "2";
    box.dispatchEvent(new page.Event("change"));
    result.other = document.querySelector(".grid.chosen").id;
    return result;]])
  local next_tokens = math.huge -- of the cell on the right
  for _, record in ipairs(by_state["arch=host&tp=4&fusion=NONE&data=bfloat16.allreduce.eager"]) do
    local num_tokens = tonumber(record.num_tokens)
    if num_tokens > 16 then next_tokens = math.min(next_tokens, num_tokens) end
  end
  lu.assertStrContains(shown.selected, "16 tokens × hidden size 2880")
  lu.assertStrContains(shown.moved, next_tokens .. " tokens × hidden size 2880")
  lu.assertStrContains(shown.fragment, ("cell=%sx2880"):format(next_tokens))
  lu.assertStrContains(shown.other, "tp=2&fusion=NONE")
  lu.assertEquals(shown.copied, #shown.up + 1)
  local filled = 0
  for i, text in ipairs(shown.up) do
    if text ~= "" then
      filled = filled + 1
      lu.assertEquals(shown.down[i] ~= "", true, "empty cells stand last")
      if i > 1 then lu.assertTrue(tonumber(text) >= tonumber(shown.up[i - 1])) end
    end
  end
  lu.assertTrue(filled > 20)
  lu.assertEquals(shown.down[1], shown.up[filled])
end

return require "suites" { { "browser_report_shows_the_table", tests } }
