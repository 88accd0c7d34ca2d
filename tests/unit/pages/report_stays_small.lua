-- report.html of 60,000 rows with intervals and bounds stays below 3 MB and has them all; so does that of
-- half a million made-up rows, in proportion, if the tool that makes them is installed.
local lu = require "luaunit"
local lib = require "unit.pages.lib"

local function count(text, pattern)
  local found = 0
  for _ in text:gmatch(pattern) do found = found + 1 end
  return found
end

local function write_rows(folder)
  math.randomseed(1)
  local strategies = { "NCCL", "NCCL_SYMMETRIC", "ONESHOT", "TWOSHOT" }
  for _, tp in ipairs { 2, 4, 8 } do
    local out = { "world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,op,time (us),low (us)," ..
      "high (us),samples,min (us),p95 (us),p99 (us),skew (us),bound (us),mode,accumulate,placement" }
    for _, fusion in ipairs { "NONE", "RESIDUAL_RMS_NORM" } do
      for hidden = 1, 50 do
        for tokens = 1, 50 do
          for _, strategy in ipairs(strategies) do
            local time = math.exp(3 + 2 * math.random())
            out[#out + 1] = ("%d,bfloat16,%d,%d,%d,%s,%s,allreduce,%.4f,%.4f,%.4f,100,%.4f,%.4f,%.4f," ..
              "0.1,%.4f,eager,fp32,dedicated"):format(tp, 2 * hidden * 64 * tokens, tokens, hidden * 64,
              strategy, fusion, time, time * 0.98, time * 1.02, time * 0.9, time * 1.1, time * 1.2,
              time * 0.5)
          end
        end
      end
    end
    lib.write(("%s/benchmark.tp%d.sm90.csv"):format(folder, tp), table.concat(out, "\n") .. "\n")
  end
end

-- The report of the rows in this folder; it is smaller than `most` bytes and has this number of cells.
local function report(folder, most, cells)
  lib.gentables(("report --data-dir '%s' --arch sm90 --out '%s'"):format(folder, folder))
  local text = lib.read(folder .. "/report.html")
  print(("%d bytes"):format(#text))
  lu.assertTrue(#text < most)
  lu.assertEquals(count(text, "<td class=s%d+>"), cells)
  return text
end

local tests = {}

function tests.test_sixty_thousand_rows()
  local folder = lib.folder "rows"
  write_rows(folder)
  local text, times = report(folder, 3e6, 3 * 2 * 50 * 50), 0
  for column in text:gmatch('"t":"([^"]*)"') do times = times + count(column, "[^ ]+") end
  lu.assertEquals(times, 60000)
end

function tests.test_half_a_million_rows()
  local data = os.getenv "GENTABLES_DATA"
  lu.skipIf(not data, "GENTABLES_DATA is not set")
  lu.skipIf(lib.run "command -v python3" ~= 0, "no python3")
  local folder = lib.folder "large"
  assert(lib.run("python3 '%s/tools/make_rows.py' '%s' large", data, folder) == 0)
  report(folder, 3e6 * 504000 / 60000, 126000)
end

return require "suites" { { "report_stays_small", tests } }
