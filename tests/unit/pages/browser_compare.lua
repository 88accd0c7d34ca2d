-- gentables compare: every number of the page equals that of the sweeps' table.csv; labels with markup; a
-- fact that only one sweep has is marked.
local lu = require "luaunit"
local lib = require "unit.pages.lib"

if not lib.has_browser() then return 77 end

local head = "world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,op,time (us)\n"

local function rows(folder, tp, lines)
  local out = {}
  for i, line in ipairs(lines) do
    out[i] = ("%d,bfloat16,%d,%d,%d,%s,%s,allreduce,%s\n"):format(tp, 2 * line[1] * line[2], line[1], line[2],
      line[3], line[5] or "NONE", line[4])
  end
  lib.write(("%s/benchmark.tp%d.sm90.csv"):format(folder, tp), head .. table.concat(out))
end

-- Base: NCCL wins both; other: the first is twice as slow with another winner, the second 10 % faster.
local base, other = lib.folder "base", lib.folder "other"
rows(base, 2, { { 1, 1024, "NCCL", 10 }, { 1, 1024, "ONESHOT", 12 }, { 2, 1024, "NCCL", 20 },
  { 4, 1024, "NCCL", 5 } })
rows(other, 2, { { 1, 1024, "NCCL", 25 }, { 1, 1024, "ONESHOT", 20 }, { 2, 1024, "NCCL", 18 } })
rows(base, 4, { { 1, 1024, "NCCL", 10 } })
rows(other, 8, { { 1, 1024, "NCCL", 10 } })

local labels = { [[<b>"old"</b> & 'x']], "</script><script>window.broken=1</script>" }

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

lib.gentables(("compare '%s' '%s' --label %s --label %s --out '%s/compare.html'"):format(base, other,
  quoted(labels[1]), quoted(labels[2]), other))

local seen = lib.browse(other, [[
  const page = await open("compare.html"), { document } = page;
  const table = (id, at) => [...document.querySelectorAll("#" + id + " table")[at ?? 0].tBodies[0].rows]
    .map((row) => texts(row.cells));
  return { changed: table("changed"), strategies: table("changed", 1), numbers: table("numbers"),
    missing: document.getElementById("missing").textContent, compared: table("compared"),
    heads: texts(document.querySelectorAll("#compared thead th")), broken: page.broken ?? 0,
    bold: document.querySelectorAll("b").length, title: document.title,
    lead: document.querySelector(".lead").textContent,
    maps: [...document.querySelectorAll("#maps .change td")]
      .map((cell) => cell.textContent + " " + cell.className),
    pictures: document.querySelectorAll("#maps svg").length,
    axes: [...document.querySelectorAll("#maps .axes")].map((axes) => texts(axes.querySelectorAll("span"))),
    wide: document.documentElement.scrollWidth > document.documentElement.clientWidth };]])

local tests = {}

function tests.test_labels()
  lu.assertEquals(seen.broken, 0)
  lu.assertEquals(seen.bold, 0)
  lu.assertEquals(seen.heads[2], labels[1])
  lu.assertEquals(seen.heads[3], labels[2])
  lu.assertStrContains(seen.title, labels[1])
  lu.assertFalse(seen.wide)
end

-- By hand: two shapes in common, 10 -> 20 and 20 -> 18, mean sqrt(2 * 0.9) = 1.342; NCCL would take 25 in
-- place of 20 in the first, no more time in the second.
function tests.test_numbers()
  lu.assertEquals(table.concat(seen.changed[1], "|"), "2|NONE|2|+34.2 %|1|1|1|+12.5 %|+25.0 %")
  lu.assertEquals(#seen.changed, 1)
  lu.assertStrContains(seen.lead, "34.2 % longer")
  lu.assertStrContains(seen.lead, "Clearly faster: 1, clearly slower: 1")
  lu.assertEquals(table.concat(seen.strategies[1], "|"), "ONESHOT|+66.7 %|1")
  lu.assertEquals(table.concat(seen.strategies[2], "|"), "NCCL|+50.0 %|2")
  lu.assertEquals(table.concat(seen.numbers[1], "|"), "2|NONE|1|1024|10.0000|NCCL|20.0000|ONESHOT|+100.0 %")
  lu.assertEquals(table.concat(seen.numbers[2], "|"), "2|NONE|2|1024|20.0000|NCCL|18.0000|NCCL|-10.0 %")
  lu.assertEquals(#seen.numbers, 5)
end

function tests.test_maps()
  lu.assertEquals(seen.maps, { "+100 % c7 differs", "-10 % c2", "– none" })
  -- TP 2 has both and their difference, TP 4 and 8 one each.
  lu.assertEquals(seen.pictures, 5)
  lu.assertEquals(#seen.axes, 5)
  lu.assertEquals(seen.axes[1], { "", "hidden", "1024", "1", "tokens", "4" })
end

function tests.test_missing()
  lu.assertStrContains(seen.missing, labels[2] .. " has no rows of TP 4, NONE")
  lu.assertStrContains(seen.missing, labels[1] .. " has no rows of TP 8, NONE")
  lu.assertStrContains(seen.missing, "2 shapes of " .. labels[1] .. " missing in ")
  lu.assertEquals(seen.compared[2], { "Measured", "missing", "missing" })
end

-- The base's choice has no time in the other sweep: neither its mean loss there nor its worst is known. And
-- equal values are shown without a sign.
function tests.test_unknown_loss()
  local here, there = lib.folder "loss/here", lib.folder "loss/there"
  rows(here, 2, { { 1, 1024, "ONESHOT", 10 }, { 1, 1024, "NCCL", 12 } })
  rows(there, 2, { { 1, 1024, "NCCL", 10 } })
  lib.gentables(("compare '%s' '%s' --out '%s/loss.html'"):format(here, there, there))
  local page = lib.browse(there, [[
    const page = await open("loss.html"), { document } = page;
    return { changed: texts(document.querySelector("#changed tbody tr").cells),
      lead: document.querySelector(".lead").textContent };]])
  lu.assertEquals(table.concat(page.changed, "|"), "2|NONE|1|0.0 %|0|0|1||")
  lu.assertStrContains(page.lead, "the best times are as long as those of here")
end

-- Real sweeps: the list has every shape of both tables, with the times and strategies of table.csv.
function tests.test_real_tables()
  local host, golden = lib.source .. "/tables/host", lib.source .. "/tests/golden/sm90"
  local out = lib.folder "real"
  lib.gentables(("compare '%s' '%s' '%s' --out '%s/compare.html'"):format(host, golden, host, out))
  local page = lib.browse(out, [[
    const page = await open("compare.html"), { document } = page;
    return { heads: texts(document.querySelectorAll("#compared thead th")),
      numbers: [...document.querySelector("#numbers table").tBodies[0].rows]
        .map((row) => texts(row.cells)) };]])
  lu.assertEquals(page.heads, { "", "host", "sm90", "host (2)" })
  local wanted, count = {}, 0
  for s, folder in ipairs { host, golden } do
    for _, record in ipairs(lib.csv(folder .. "/table.csv")) do
      if record.strategy ~= "unmeasured" then
        local data = record.dtype .. " " .. record.op
        if record.mode ~= "unknown" then data = data .. " " .. record.mode end
        local key = table.concat({ record.world_size, record.fusion, data, record.num_tokens,
          record.hidden_size }, "|")
        if not wanted[key] then count = count + 1 end
        wanted[key] = wanted[key] or {}
        wanted[key][s] = record
      end
    end
  end
  lu.assertEquals(#page.numbers, count)
  for _, row in ipairs(page.numbers) do
    local records = wanted[table.concat(row, "|", 1, 5)]
    for s = 1, 3 do
      local record = records[s == 3 and 1 or s]
      lu.assertEquals(row[4 + 2 * s], record and record["time (us)"] or "")
      lu.assertEquals(row[5 + 2 * s], record and record.strategy or "missing")
    end
  end
end

return require "suites" { { "browser_compare", tests } }
