-- report --against: the incumbent's table is beside the new one, the cells with another choice are marked in
-- both, and the details have the cost of keeping it.
local lu = require "luaunit"
local lists = require "lists.lists"
local lib = require "unit.pages.lib"

if not lib.has_browser() then return 77 end

local head = "world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,op,time (us)\n"
local table_head = "arch,world_size,fusion,dtype,op,mode,hidden_size,num_tokens,strategy,time (us)," ..
  "runner_up,margin,confidence,regret\n"

local out = lib.folder "report"
lib.write(out .. "/benchmark.tp2.sm90.csv", head ..
  "2,bfloat16,2048,1,1024,NCCL,NONE,allreduce,10\n" ..
  "2,bfloat16,2048,1,1024,ONESHOT,NONE,allreduce,12.5\n" ..
  "2,bfloat16,4096,2,1024,NCCL,NONE,allreduce,10\n" ..
  "2,bfloat16,8192,4,1024,NCCL,NONE,allreduce,10\n" ..
  "2,bfloat16,2048,1,1024,NCCL,RESIDUAL_RMS_NORM,allreduce,10\n")
lib.write(out .. "/table.csv", table_head ..
  "sm90,2,NONE,bfloat16,allreduce,unknown,1024,1,ONESHOT,9.0000,,,,\n" ..
  "sm90,2,NONE,bfloat16,allreduce,unknown,1024,2,NCCL,9.0000,,,,\n" ..
  "sm90,2,NONE,bfloat16,allreduce,unknown,1024,4,unmeasured,,,,,\n")
lib.gentables(("report --data-dir '%s' --arch sm90 --against '%s/table.csv' --out '%s'"):format(out, out,
  out))

local seen = lib.browse(out, [[
  const page = await open("report.html#fusion=NONE&cell=1x1024"), { document } = page, result = {};
  const cells = (name) => [...document.querySelectorAll(".grid.chosen table." + name + " td")]
    .map((td) => td.textContent + (td.classList.contains("differs") ? " differs" : ""));
  result.now = cells("new");
  result.old = cells("old");
  result.details = document.getElementById("details").textContent;
  result.list = texts([...document.querySelectorAll("#list tbody tr")].map((row) => row.lastChild));
  await go(page, "fusion=NONE&view=incumbent");
  result.losses = cells("new");
  await go(page, "fusion=RESIDUAL_RMS_NORM&view=best");
  result.without = document.querySelector(".grid.chosen").textContent;
  return result;]])

local function mark(name) return lists.find("strategies", name).mark end

local tests = {}

function tests.test_marks()
  lu.assertEquals(seen.now, { mark "NCCL" .. " differs", mark "NCCL", mark "NCCL" .. " differs" })
  lu.assertEquals(seen.old, { mark "ONESHOT" .. " differs", mark "NCCL", "– differs" })
  lu.assertEquals(seen.list, { "ONESHOT", "NCCL", "" })
end

function tests.test_losses()
  lu.assertStrContains(seen.details,
    "The incumbent, ONESHOT, takes 25\u{202f}% longer than the fastest here.")
  lu.assertEquals(seen.losses, { "25\u{202f}% differs", "0.0\u{202f}%", "– differs" })
end

function tests.test_without_incumbent()
  lu.assertStrContains(seen.without, "missing: the incumbent has no such cells")
end

return require "suites" { { "browser_report_against", tests } }
