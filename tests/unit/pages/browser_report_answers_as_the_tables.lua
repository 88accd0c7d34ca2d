-- The results of report.html for a shape are those of a program with allreduce_table.h, and those of
-- TensorRT-LLM's lookup in generated_lookup_table.cpp: on the grid, between, and beyond.
local lu = require "luaunit"
local lib = require "unit.pages.lib"

if not lib.has_browser() then return 77 end

local sizes = { 1, 2, 3, 5, 90, 91, 127, 128, 181, 182, 255, 1447, 1449, 2880, 3000, 7168, 8192, 20000,
  1000000 }

local function shapes(tp_sizes)
  local out = {}
  for _, tp in ipairs(tp_sizes) do
    for i, hidden in ipairs(sizes) do
      out[#out + 1] = { tp, sizes[#sizes + 1 - i], hidden }
      out[#out + 1] = { tp, sizes[i % #sizes + 1], hidden }
    end
  end
  return out
end

-- The results of the page, { file = strategy }..., in the order of the shapes.
local function ask(out, arch, fusion, list)
  local texts = {}
  for i, shape in ipairs(list) do texts[i] = ("[%d,%d,%d]"):format(table.unpack(shape)) end
  return lib.browse(out, ([[
    const page = await open("report.html#arch=%s&fusion=%s"), { document } = page, all = [];
    const form = document.getElementById("ask");
    for (const [tp, tokens, hidden] of [%s]) {
      form.elements.tp.value = tp;
      form.elements.tokens.value = tokens;
      form.elements.hidden.value = hidden;
      form.requestSubmit();
      all.push(Object.fromEntries([...document.querySelectorAll("#answer [data-file]")]
        .map((line) => [line.dataset.file, line.dataset.strategy])));
    }
    return all;]]):format(arch, fusion, table.concat(texts, ",")))
end

-- The results of the header in a C program.
local function ask_header(folder, arch, fusion, list)
  local calls = {}
  for i, shape in ipairs(list) do
    calls[i] = ("puts(gentables_%s_strategy_name(gentables_%s_select(%d, GENTABLES_%s_FUSION_%s, %d, %d)));")
      :format(arch, arch, shape[1], arch:upper(), fusion, shape[3], shape[2])
  end
  lib.write(folder .. "/ask.c", '#include <stdio.h>\n#include "allreduce_table.h"\nint main(void) {\n' ..
    table.concat(calls, "\n") .. "\n}\n")
  local code, text = lib.run("cd '%s' && cc -o ask ask.c && ./ask", folder)
  lu.assertEquals(code, 0, text)
  local out = {}
  for line in text:gmatch("[^\n]+") do out[#out + 1] = line end
  return out
end

local numbers = { [0] = "NCCL", [4] = "ONESHOT", [5] = "TWOSHOT", [8] = "NCCL_SYMMETRIC" }

-- A short selectStrategyLookUpTable: floors of log2; out of its range NCCL_SYMMETRIC.
local function ask_trtllm(folder, fusion_place, shape)
  local rows = {}
  local text = lib.read(folder .. "/generated_lookup_table.cpp")
  for row in text:gmatch("{([%d,]+)}") do rows[#rows + 1] = row end
  local function place(value, least, count)
    local at = math.floor(math.log(value, 2)) - least
    return at >= 0 and at < count and at or nil
  end
  local tp, hidden = place(shape[1], 1, 3), place(shape[3], 7, 7)
  local tokens = place(shape[2], 0, 15)
  if not (tp and hidden and tokens) then return "NCCL_SYMMETRIC" end
  local at = 0
  for number in rows[(tp * 4 + fusion_place) * 7 + hidden + 1]:gmatch("%d+") do
    if at == tokens then return numbers[tonumber(number)] end
    at = at + 1
  end
end

local function compare(data_dir, arch, fusion, fusion_place, tp_sizes)
  local out, list = lib.folder(arch .. fusion), shapes(tp_sizes)
  lib.gentables(("report --data-dir '%s' --arch %s --out '%s'"):format(data_dir, arch, out))
  lib.gentables(("generate --data-dir '%s' --arch %s --out '%s'"):format(data_dir, arch, out))
  local page, header, different = ask(out, arch, fusion, list), ask_header(out, arch, fusion, list), {}
  lu.assertEquals(#page, #list)
  for i, shape in ipairs(list) do
    local where = ("TP %d, %d tokens, hidden %d"):format(table.unpack(shape))
    lu.assertEquals(page[i]["allreduce_table.h"], header[i], where)
    different[header[i]] = true
    if fusion_place then
      lu.assertEquals(page[i]["TensorRT-LLM's table"], ask_trtllm(out, fusion_place, shape), where)
    end
  end
  return different
end

local tests = {}

function tests.test_host()
  local seen = compare(lib.source .. "/tables/host", "host", "NONE", nil, { 1, 2, 3, 4, 8 })
  lu.assertTrue(seen.ONESHOT and seen.TWOSHOT and seen.MPI)
end

function tests.test_gpu()
  compare(lib.source .. "/tests/golden/sm90", "sm90", "RESIDUAL_RMS_NORM", 1, { 1, 2, 3, 4, 6, 8, 9 })
end

function tests.test_wrong_shapes_are_reported()
  local out = lib.folder "wrong"
  lib.gentables(("report --data-dir '%s' --arch host --out '%s'"):format(lib.source .. "/tables/host", out))
  local said = lib.browse(out, [[
    const page = await open("report.html"), { document } = page, form = document.getElementById("ask");
    const all = [];
    for (const text of ["", "0", "-1", "1.5", "1e3", "2147483648", "<b>"]) {
      form.elements.tokens.value = text;
      form.elements.hidden.value = "1024";
      form.requestSubmit();
      all.push(document.getElementById("answer").textContent);
    }
    return all;]])
  lu.assertEquals(#said, 7)
  for _, text in ipairs(said) do lu.assertStrContains(text, "whole numbers") end
end

return require "suites" { { "browser_report_answers_as_the_tables", tests } }
