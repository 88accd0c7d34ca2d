-- trace report -b with a trace or a digest that cannot be read: the report has the other ranks, and names it.
local digests = require "unit.trace.digests.lib_digests"
local file = require "core.file"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"

local TestBrokenInBatch = {}

local bk = lib.work .. "/bk"

function TestBrokenInBatch.setUp()
  lib.clean()
  for rank = 0, 3 do
    digests.trace(rank, rank, { world_size = 4 }):write(("%s/trace_rank%d.json"):format(bk, rank))
  end
end

-- Makes the middle of a file something else.
local function break_file(path, what)
  local text = assert(file.read(path))
  assert(file.write(path, text:sub(1, #text // 2) .. what .. text:sub(#text // 2)))
end

local function report(code, ...)
  local said, errors = lib.ends_with(code, lib.run("trace", "report", "-b", bk, "-f", "rank", "--csv", ...))
  return said, errors
end

local function sheet(name) return lib.csv(("%s/bk_rank_performance_report_csvs/%s.csv"):format(bk, name)) end

local function count(text, part) return select(2, text:gsub(part, part)) end

function TestBrokenInBatch.test_a_broken_trace_costs_its_rank_only()
  break_file(bk .. "/trace_rank2.json", "}}{")
  local said, errors = report(1)
  luaunit.assertStrContains(said, "bk_rank_performance_report_csvs: 3 ranks")
  luaunit.assertEquals(count(errors, "trace_rank2"), 1, errors)
  luaunit.assertStrContains(errors, bk .. "/trace_rank2.json: byte ")
  luaunit.assertStrContains(errors, "1 trace failed, the others are in the reports")
  luaunit.assertNil(errors:find("is missing", 1, true))
  luaunit.assertEquals(#sheet "nccl_long", 3 * 24)
  local rows = sheet "incomplete"
  luaunit.assertEquals({ #rows, rows[1].rank, rows[1].count }, { 1, "2", "1" })
  luaunit.assertStrContains(rows[1].what, "trace_rank2.json: is not in this report: byte ")
end

function TestBrokenInBatch.test_the_page_names_it()
  break_file(bk .. "/trace_rank2.json", "}}{")
  report(1, "--page")
  local page = assert(file.read(bk .. "/bk_rank_performance_report.html"))
  luaunit.assertStrContains(page, "trace_rank2.json: is not in this report: byte ")
end

function TestBrokenInBatch.test_a_digest_of_another_version_costs_its_rank_only()
  digests.make(0, bk)
  for rank = 0, 3 do assert(os.remove(("%s/trace_rank%d.json"):format(bk, rank))) end
  local path = bk .. "/trace_rank3.json.digest"
  assert(file.write(path, (assert(file.read(path)):gsub("^(gentables digest %d+ of )[^\n]*", "%10.0.1"))))
  local said, errors = report(1, "-e", "digest")
  luaunit.assertStrContains(said, ": 3 ranks")
  luaunit.assertEquals(count(errors, "trace_rank3"), 1, errors)
  luaunit.assertStrContains(sheet("incomplete")[1].what,
    "trace_rank3.json.digest: is not in this report: is a digest of another version of gentables (0.0.1, ")
end

function TestBrokenInBatch.test_a_folder_without_a_readable_trace_has_no_report()
  for rank = 0, 3 do break_file(("%s/trace_rank%d.json"):format(bk, rank), "}}{") end
  digests.one_line(2, "bk: no report: ", "trace", "report", "-b", bk, "-f", "rank", "--csv")
end

return require "suites" { { "TestBrokenInBatch", TestBrokenInBatch } }
