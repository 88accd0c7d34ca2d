-- report.html of one strategy, of one cell, of a fusion without rows: it opens, names the missing parts, and
-- shows the rest.
local lu = require "luaunit"
local lib = require "unit.pages.lib"

if not lib.has_browser() then return 77 end

local head = "world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,op,time (us)\n"

local function look(name, rows, fragment, spec)
  local out = lib.folder(name)
  lib.write(out .. "/benchmark.tp2.sm90.csv", head .. rows)
  if spec then lib.write(out .. "/spec.lua", spec) end
  lib.gentables(("report --data-dir '%s' --arch sm90 --out '%s'"):format(out, out))
  return lib.browse(out, ([[
    const page = await open("report.html#%s"), { document } = page;
    return { list: texts(document.querySelectorAll("#list tbody td")), text: document.body.innerText,
      details: document.getElementById("details").textContent,
      grids: [...document.querySelectorAll(".grid")].filter((grid) => grid.offsetHeight > 0).length };]])
    :format(fragment))
end

local tests = {}

function tests.test_one_cell()
  local page = look("one_cell", "2,bfloat16,2048,1,1024,NCCL,NONE,allreduce,9.5\n", "cell=1x1024")
  lu.assertEquals(page.grids, 1)
  lu.assertEquals(table.concat(page.list, "|"), "1|1024|NCCL|9.5000|||certain|||")
  lu.assertStrContains(page.details, "NCCL is chosen. No other strategy was measured.")
end

function tests.test_one_strategy()
  local page = look("one_strategy", "2,bfloat16,2048,1,1024,NCCL,NONE,allreduce,9.5\n" ..
    "2,bfloat16,4096,2,1024,NCCL,NONE,allreduce,9.75\n", "view=time")
  lu.assertEquals(table.concat(page.list, "|"),
    "1|1024|NCCL|9.5000|||certain||||2|1024|NCCL|9.7500|||certain|||")
end

function tests.test_fusion_without_rows()
  local spec = 'return { arch = "sm90", tp = { 2 }, dtypes = { "bfloat16" }, hidden_sizes = { 1024 }, ' ..
    'num_tokens = { 1 }, fusions = { "NONE", "RESIDUAL_RMS_NORM" }, ' ..
    'table = { dtype = "bfloat16", op = "allreduce", mode = "unknown" } }'
  local page = look("no_fusion", "2,bfloat16,2048,1,1024,NCCL,NONE,allreduce,9.5\n",
    "fusion=RESIDUAL_RMS_NORM", spec)
  lu.assertStrContains(page.text, "missing: no rows of TP 2, RESIDUAL_RMS_NORM")
end

function tests.test_fusion_that_one_tp_lacks()
  local out = lib.folder "uneven"
  lib.write(out .. "/benchmark.tp2.sm90.csv", head .. "2,bfloat16,2048,1,1024,NCCL,NONE,allreduce,9.5\n")
  lib.write(out .. "/benchmark.tp4.sm90.csv", head ..
    "4,bfloat16,2048,1,1024,NCCL,RESIDUAL_RMS_NORM,allreduce,9.5\n")
  lib.gentables(("report --data-dir '%s' --arch sm90 --out '%s'"):format(out, out))
  local text = lib.browse(out, [[
    const page = await open("report.html#tp=4&fusion=NONE");
    return page.document.getElementById("choice").innerText;]])
  lu.assertStrContains(text, "missing: no rows of sm90, TP 4, NONE")
end

-- Ranks of several nodes are a TP size of their own, also in the lookup of shapes.
function tests.test_several_nodes()
  local out = lib.folder "several_nodes"
  lib.write(out .. "/benchmark.tp4.host.csv", head .. "4,bfloat16,2048,1,1024,MPI,NONE,allreduce,9.5\n" ..
    "4,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,2.5\n")
  lib.write(out .. "/benchmark.tp4.nodes2.host.csv", head:sub(1, -2) .. ",nodes,ranks_per_node\n" ..
    "4,bfloat16,2048,1,1024,MPI,NONE,allreduce,95,2,2\n")
  lib.gentables(("report --data-dir '%s' --arch host --out '%s'"):format(out, out))
  for placement, best in pairs { ["4"] = "ONESHOT", ["4 on 2 nodes"] = "MPI" } do
    local shown = lib.browse(out, ([[
      const page = await open("report.html#tp=%s"), { document } = page;
      const form = document.getElementById("ask");
      form.elements.tokens.value = form.elements.hidden.value = "1024";
      form.requestSubmit();
      const grid = [...document.querySelectorAll(".grid")].find((each) => each.offsetHeight > 0);
      return { title: grid.querySelector("h3").textContent, tp: form.elements.tp.value,
        list: texts(document.querySelectorAll("#list tbody td")),
        answer: document.querySelector("#answer [data-file]").dataset.strategy };]]):format(placement))
    lu.assertStrContains(shown.title, ("host, TP %s, NONE"):format(placement))
    lu.assertEquals({ shown.tp, shown.list[3], shown.answer }, { placement, best, best })
  end
end

return require "suites" { { "browser_report_of_little", tests } }
