-- report.html of rows by bytes, which gentables tune writes: sizes with units in place of tokens and hidden
-- sizes; every winner with its margin and confidence; bandwidths; and no look-up of shapes.
local lu = require "luaunit"
local lib = require "unit.pages.lib"

if not lib.has_browser() then return 77 end

local out = lib.folder "by_bytes"
lib.write(out .. "/benchmark.tp4.host.csv", [[
world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,op,time (us),low (us),high (us),splits
4,float32,1024,,,MPI,NONE,allgather,10,9.9,10.1,
4,float32,1024,,,DIRECT,NONE,allgather,4,3.9,4.1,
4,float32,1048576,,,MPI,NONE,allgather,100,99,101,
4,float32,1048576,,,DIRECT,NONE,allgather,150,149,151,
4,float32,4080,,,MPI,NONE,alltoallv,7,6.9,7.1,3:1
4,float32,4080,,,DIRECT,NONE,alltoallv,5,4.9,5.1,3:1
4,float32,4080,,,MPI,NONE,alltoallv,5,4.9,5.1,2:1
4,float32,4080,,,DIRECT,NONE,alltoallv,8,7.9,8.1,2:1
]])
lib.gentables(("report --data-dir '%s' --arch host --out '%s'"):format(out, out))
lib.gentables(("generate --data-dir '%s' --arch host --out '%s' --formats table"):format(out, out))

-- Margin, and no confidence without launches, as in table.csv.
local function sureness(size)
  for _, record in ipairs(lib.csv(out .. "/table.csv")) do
    if record.op == "allgather" and record.size == size then
      lu.assertEquals({ record.confidence, record.state }, { "", "certain" })
      return ("%.1f %%|"):format(100 * record.margin)
    end
  end
end

-- The text of a table of the page.
local look = [[
  const look = (document) => {
    const grid = [...document.querySelectorAll(".grid")].find((each) => each.offsetHeight > 0);
    const lines = (rows) => [...rows].map((row) => texts(row.cells).join("|"));
    return { title: grid.querySelector("h3").textContent,
      head: texts(grid.querySelectorAll(".cells thead th")),
      cells: texts(grid.querySelectorAll(".cells tbody td")),
      sizes: lines(grid.querySelectorAll(".sizes tr")), list: lines(document.querySelectorAll("#list tr")) };
  };
]]

local tests = {}

function tests.test_allgather()
  local shown = lib.browse(out, look .. [[
    const page = await open("report.html#data=float32.allgather.by.bytes.unknown&cell=1048576x1");
    return { ...look(page.document), details: page.document.getElementById("details").innerText,
      text: page.document.body.innerText, marks: page.document.querySelectorAll(".overview path").length,
      ask: page.document.getElementById("ask") !== null };]])
  lu.assertEquals(shown.title, "host, TP 4, float32 allgather by bytes")
  lu.assertEquals(shown.head, { "size", "1 KiB", "1 MiB" })
  lu.assertEquals(shown.cells, { "D", "M" })
  lu.assertEquals(shown.sizes[1],
    "size|choice|time (µs)|runner-up|margin|confidence|algbw (GB/s)|busbw (GB/s)")
  lu.assertEquals(shown.sizes[2], "1 KiB|DIRECT|4.00|MPI|" .. sureness "1024" .. "|0.26|0.19") -- 3 of 4
  lu.assertEquals(shown.sizes[3], "1 MiB|MPI|100|DIRECT|" .. sureness "1048576" .. "|10.5|7.86") -- by links
  lu.assertStrContains(shown.list[1], "size (bytes)|algbw (GB/s)|busbw (GB/s)|strategy")
  lu.assertStrContains(shown.list[3], "1048576|10.4858|7.8643|MPI|100.0000|DIRECT|")
  lu.assertStrContains(shown.details, "1 MiB, float32 allgather by bytes")
  lu.assertStrContains(shown.details, "MPI is chosen. DIRECT loses ")
  lu.assertStrContains(shown.text, "Collectives on host")
  lu.assertTrue(shown.marks >= 3)
  lu.assertFalse(shown.ask)
  for _, word in ipairs { "4294967295", "hidden", "tokens" } do
    lu.assertNil(shown.text:find(word, 1, true), word)
  end
end

-- Two splits of one op are two tables, and a size that is no multiple of a unit is printed in bytes.
function tests.test_splits()
  for splits, best in pairs { ["3:1"] = "DIRECT|5.00|MPI", ["2:1"] = "MPI|5.00|DIRECT" } do
    local shown = lib.browse(out, look .. ([[
      const page = await open("report.html#data=float32.alltoallv.%s.by.bytes.unknown");
      return look(page.document);]]):format(splits))
    lu.assertEquals(shown.title, ("host, TP 4, float32 alltoallv %s by bytes"):format(splits))
    lu.assertStrContains(shown.sizes[2], "4080 B|" .. best)
  end
end

-- Rows by bytes are compared, with their splits.
function tests.test_comparison()
  local path = out .. "/compare.html"
  lib.gentables(("compare '%s' '%s' --label before --label after --out '%s'"):format(out, out, path))
  local text = lib.read(path)
  for _, word in ipairs { "4294967295", "no rows of" } do lu.assertNil(text:find(word, 1, true), word) end
  lu.assertStrContains(text, "4080 B")
end

function tests.test_without_scripts()
  local shown = lib.browse(out, [[
    const { document } = await open("report.html", true);
    return texts(document.querySelectorAll(".sizes tbody tr:first-child td:nth-child(2)"));]])
  table.sort(shown)
  lu.assertEquals(shown, { "DIRECT", "DIRECT", "MPI" })
end

return require "suites" { { "browser_report_by_bytes", tests } }
