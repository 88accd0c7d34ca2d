-- core.trace: its results for well-formed traces in any format, and for flawed ones.
-- Needs: zlib zstd
local luaunit = require "luaunit"
local lib = require "unit.trace.reader.lib"

local EVENTS = [==[
{"ph":"M","name":"process_name","pid":7,"tid":0,"args":{"name":"python"}},
{"ph":"M","name":"process_labels","pid":7,"tid":0,"args":{"labels":"CPU"}},
{"ph":"M","name":"thread_name","pid":7,"tid":8,"args":{"name":"main"}},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":8,"ts":100.125,"dur":50,"args":{"External id":5,
 "Sequence number":3,"Input Dims":[[2, 3],[3, 4]],"Input type":["float", "float"],
 "Concrete Inputs":["", "a {\"b\" ]}"]}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":8,"ts":110,"dur":5,
 "args":{"correlation":11,"External id":5}},
{"ph":"s","cat":"ac2g","id":11,"pid":7,"tid":8,"ts":110,"name":"ac2g"},
{"ph":"f","cat":"ac2g","id":11,"pid":0,"tid":20,"ts":120,"name":"ac2g","bp":"e"},
{"ph":"X","cat":"python_function","name":"f({[\"\\","pid":7,"tid":8,"ts":1,"dur":2,"args":{"a":[{}]}},
{"ph":"X","cat":"kernel","name":"ncclKernel","pid":0,"tid":20,"ts":120,"dur":30.5,"args":{"correlation":11,
 "device":0,"stream":20,"Collective name":"allreduce","In msg nelems":1024,"Out msg nelems":1024,
 "Group size":8,"dtype":"Float","Process Group Name":"0","Process Group Ranks":"[0, 1]"}}]==]

local ROOT = '"distributedInfo":{"backend":"nccl","rank":3,"world_size":8},'
  .. '"deviceProperties":[{"id":0},{"id":1}],"baseTimeNanoseconds":1767189312000000000'

local function whole(events) return "{" .. ROOT .. ',"traceEvents":[' .. events .. "]}" end

local function dump_of(text, options)
  return lib.dump(lib.write(lib.work_path("dump.json"), text), options)
end

local function event(fields) return ('{"ph":"X","pid":1,"tid":2,%s}'):format(fields) end

local function refused(text, pattern, options)
  local trace, why = lib.open(text, options)
  luaunit.assertNil(trace, text)
  luaunit.assertStrContains(why, lib.work_path("trace.json") .. ": ")
  luaunit.assertNil(why:find("\n"), why)
  if pattern then luaunit.assertStrMatches(why, ".*" .. pattern .. ".*") end
  return why
end

-- ---- Well-formed ------------------------------------------------------------------------------

local TestReader = {}

function TestReader.test_an_event_is_kept_with_all_its_facts()
  local trace = lib.open(whole(EVENTS))
  local info = trace:info()
  luaunit.assertEquals(info, { rank = 3, world_size = 8, base_nanoseconds = 1767189312000000000, devices = 2,
    events = 9, kept_events = 3, host_events = 2, gpu_events = 1, linked_by = "correlation", flaws = {} })
  luaunit.assertEquals(trace:event(1), { uid = 3, kind = "cpu_op", name = "aten::mm", start = 100.125,
    duration = 50.0, pid = "7", tid = "8", process_name = "python", process_label = "CPU",
    thread_name = "main", external = 5, sequence = 3, dims = "[[2,3],[3,4]]", types = '["float","float"]',
    concrete = [==[["","a {\"b\" ]}"]]==] })
  luaunit.assertEquals(trace:event(2).parent, 1)
  luaunit.assertEquals(trace:event(3), { uid = 8, kind = "kernel", name = "ncclKernel", start = 120.0,
    duration = 30.5, pid = "0", tid = "20", process_name = "Unknown", process_label = "Unknown",
    thread_name = "Unknown", link = 11, device = 0, stream = 20, parent = 2,
    collective = { name = "allreduce", dtype = "Float", group = "0", ranks = "[0, 1]", in_elements = 1024,
      out_elements = 1024, group_size = 8 } })
end

function TestReader.test_the_order_of_keys_and_the_dress_do_not_matter()
  local expected = dump_of(whole(EVENTS))
  luaunit.assertStrContains(expected, "parent=4")
  local list = '"traceEvents":[' .. EVENTS .. "]"
  local backwards = EVENTS:gsub('{"ph":"(%u)","cat":("[^"]*"),"name":("[^"]*"),(.-),%s*("args":%b{})}',
    '{%5,%4,"name":%3,"cat":%2,"ph":"%1"}')
  luaunit.assertNotEquals(backwards, EVENTS)
  for name, text in pairs {
    metadata_behind = "{" .. list .. "," .. ROOT .. "}",
    metadata_around = '{"a":{"traceEvents":[1]},"b":"\\"traceEvents\\":[",' .. list .. "," .. ROOT
      .. ', "c":[]}',
    indented = (whole(EVENTS):gsub('([,{])(["{])', "%1\r\n\t  %2")),
    blanks = " \n " .. whole(EVENTS):gsub('":', '" : ') .. " \n\n",
    byte_order_mark = "\xEF\xBB\xBF" .. whole(EVENTS),
    backwards = whole(backwards),
  } do
    local dump, why = dump_of(text)
    luaunit.assertEquals(dump, expected, name .. ": " .. tostring(why))
  end
end

function TestReader.test_a_bare_list_is_a_trace()
  luaunit.assertEquals(dump_of("[" .. EVENTS .. "]\n"),
    (dump_of(whole(EVENTS)):gsub("rank=3.-devices=2", "rank=-\tworld_size=-\tbase_nanoseconds=0\tdevices=0")))
  luaunit.assertEquals(lib.open("[]"):info().events, 0)
end

function TestReader.test_numbers_may_be_texts()
  local quoted = EVENTS:gsub('("%a[%w ]*":)(%d[%d.]*)', '%1"%2"')
  luaunit.assertStrContains(quoted, '"dur":"30.5"')
  luaunit.assertEquals(dump_of(whole(quoted)), dump_of(whole(EVENTS)))
  local info = lib.open('{"traceEvents":[],"distributedInfo":{"rank":"2","world_size":"4"}}'):info()
  luaunit.assertEquals({ info.rank, info.world_size }, { 2, 4 })
end

function TestReader.test_chunks_and_workers_do_not_matter()
  local many = {}
  for i = 1, 40 do
    many[i] = EVENTS:gsub("aten::mm", "aten::op" .. i % 7):gsub('"ts":(%d+)', function(ts)
      return '"ts":' .. tonumber(ts) + i * 1000
    end):gsub("([^%d])11([^%d])", "%1" .. i + 11 .. "%2")
  end
  local text = whole(table.concat(many, ",\n"))
  local expected = dump_of(text, { workers = 1 })
  luaunit.assertStrContains(expected, "kept_events=120\tgpu_events=40")
  for _, size in ipairs { 1, 64, 100, 257, 1000, 5000, 1 << 20 } do
    for _, workers in ipairs { 1, 2, 5 } do
      luaunit.assertEquals(dump_of(text, { workers = workers, chunk_size = size }), expected)
    end
  end
end

-- ---- Parents and children ---------------------------------------------------------------------

local function op(name, start, duration, more)
  return event(('"cat":"cpu_op","name":"%s","ts":%s,"dur":%s%s'):format(name, start, duration, more or ""))
end

local function parents_of(events)
  local trace = lib.open("[" .. table.concat(events, ",") .. "]")
  local parents = {}
  for i = 1, #events do
    local parent = trace:event(i).parent
    parents[trace:event(i).name] = parent and trace:event(parent).name
  end
  return parents, trace
end

function TestReader.test_host_events_nest_by_time()
  luaunit.assertEquals(parents_of { op("inner", 2, 3), op("outer", 0, 10), op("innermost", 3, 2),
    op("next", 10, 1), op("same", 2, 3) },
    { inner = "outer", same = "inner", innermost = "same" })
end

function TestReader.test_an_event_that_overlaps_has_no_parent_and_is_reported()
  local parents, trace = parents_of { op("outer", 0, 100), op("first", 0, 10), op("across", 8, 10),
    op("below", 9, 0.5), op("within", 12, 1) }
  luaunit.assertEquals(parents, { first = "outer", below = "first", within = "outer" })
  luaunit.assertEquals({ lib.flaws(trace) }, { { overlapping = 1 }, { overlapping = 2 } })
end

function TestReader.test_an_overlap_below_a_microsecond_ends_the_first()
  local parents, trace = parents_of { op("outer", 0, 100), op("first", 0, 10), op("second", 9.5, 10),
    op("third", 12, 1) }
  luaunit.assertEquals(parents, { first = "outer", second = "outer", third = "second" })
  luaunit.assertEquals(lib.flaws(trace), {})
end

function TestReader.test_tracks_have_trees_of_their_own()
  local other = op("other", 1, 2):gsub('"tid":2', '"tid":3')
  luaunit.assertEquals(parents_of { op("outer", 0, 10), other, op("inner", 1, 2) }, { inner = "outer" })
end

local function launch(name, args)
  return event(('"cat":"cuda_runtime","name":"%s","ts":1,"dur":1,"args":{%s}'):format(name, args))
end

local function kernel(name, args, tid)
  return ('{"ph":"X","cat":"kernel","pid":0,"tid":%d,"name":"%s","ts":5,"dur":1,"args":{%s}}'):format(
    tid or 0, name, args)
end

local function flow(phase, id, tid)
  return ('{"ph":"%s","cat":"ac2g","id":%d,"pid":0,"tid":%d}'):format(phase, id, tid)
end

local function launchers_of(events)
  local trace = lib.open("[" .. table.concat(events, ",") .. "]")
  local launchers = {}
  for i = 1, trace:info().kept_events do
    local one = trace:event(i)
    if one.kind == "kernel" then launchers[one.name] = one.parent and trace:event(one.parent).name end
  end
  return launchers, trace
end

function TestReader.test_without_flows_correlation_links()
  luaunit.assertEquals(launchers_of { kernel("a", '"correlation":1'),
    launch("cudaLaunchKernel", '"correlation":1'), kernel("b", '"correlation":1', 3),
    kernel("c", '"correlation":2') },
    { a = "cudaLaunchKernel", b = "cudaLaunchKernel" })
end

function TestReader.test_a_flow_leads_to_one_event_of_its_track()
  local launchers, trace = launchers_of { launch("cudaLaunchKernel", '"correlation":1'),
    kernel("here", '"correlation":1', 7), kernel("elsewhere", '"correlation":1', 8), flow("s", 1, 2),
    flow("f", 1, 7), flow("f", 2, 7), kernel("no_start", '"correlation":2', 7) }
  luaunit.assertEquals(launchers, { here = "cudaLaunchKernel" })
  luaunit.assertEquals({ lib.flaws(trace) }, { { unlinked = 2 }, { unlinked = 2 } })
end

function TestReader.test_a_graph_launch_owns_all_of_its_correlation()
  for _, name in ipairs { "cudaGraphLaunch", "hipGraphLaunch" } do
    luaunit.assertEquals(launchers_of { launch(name, '"correlation":1'), kernel("a", '"correlation":1', 7),
      kernel("b", '"correlation":1', 8), flow("s", 1, 2), flow("f", 1, 7) }, { a = name, b = name })
  end
end

function TestReader.test_without_correlation_the_external_id_links()
  local launchers, trace = launchers_of { launch("cudaLaunchKernel", '"External id":9'),
    kernel("a", '"External id":9,"correlation":1') }
  luaunit.assertEquals(launchers, { a = "cudaLaunchKernel" })
  luaunit.assertEquals(trace:info().linked_by, "External id")
end

-- ---- Flawed -----------------------------------------------------------------------------------

local FINE = op("fine", 0, 1)

local function flaws_of(text, name)
  local trace, why = lib.open(text)
  local counts, firsts = lib.flaws(assert(trace, why))
  return counts[name], firsts[name], trace
end

function TestReader.test_events_without_usable_times_are_left_out_and_reported()
  for _, dur in ipairs { "null", '"long"', "[1]", "{}", "nan", "true", "1e999", "1e300", '""', "-" } do
    local text = "[" .. FINE .. "," .. op("x", 1, dur) .. "," .. FINE .. "]"
    local count, first, trace = flaws_of(text, "malformed")
    luaunit.assertEquals({ count, first }, { 1, #FINE + 2 }, dur)
    luaunit.assertEquals(trace:event(2).uid, 2)
  end
  local halves = FINE:gsub('"X"', '"B"') .. "," .. FINE:gsub('"X"', '"E"')
  luaunit.assertEquals((flaws_of("[" .. FINE .. "," .. halves .. "]", "malformed")), 1)
  local no_dur = event('"cat":"kernel","name":"k","ts":1')
  luaunit.assertEquals((flaws_of("[" .. no_dur .. "," .. event('"cat":"kernel","ts":1,"dur":1') .. "]",
    "malformed")), 2)
end

function TestReader.test_negative_durations_are_zero_and_reported()
  local count, first, trace = flaws_of("[" .. FINE .. "," .. op("x", 5, "-0.5") .. "]", "negative")
  luaunit.assertEquals({ count, first, trace:event(2).duration }, { 1, #FINE + 2, 0.0 })
end

function TestReader.test_control_characters_and_broken_utf8_are_replaced_and_reported()
  for broken, mended in pairs { ["a\0b"] = "a b", ["\1\n\t"] = "   ", ["\xFFz"] = "?z", ["\xE4"] = "?",
    ["\xED\xA0\x80"] = "???", ["\xF4\x90\x80\x80"] = "????", ["\xC3"] = "?", ["q\\u0041\x02\\\""] = 'qA "',
    ["\1C:\\\xC3\x9Cser"] = " C:\\\xC3\x9Cser", ["\\\\\2"] = "\\ ", ["\\\3"] = "\\ ",
  } do
    local text = "[" .. FINE .. "," .. op(broken, 5, 1) .. "," .. op("gr\xC3\xBC\xC3\x9Fe", 7, 1) .. "]"
    local count, first, trace = flaws_of(text, "mended")
    local before = #FINE + #'[,{"ph":"X","pid":1,"tid":2,"cat":"cpu_op","name":"'
    luaunit.assertEquals(trace:event(2).name, mended)
    luaunit.assertEquals(trace:event(3).name, "gr\xC3\xBC\xC3\x9Fe")
    luaunit.assertEquals(count, 1)
    luaunit.assertEquals(first, before + broken:find("[\0-\31\x7F-\xFF]") - 1)
  end
  local count, first = flaws_of('{"traceName":"\xFF","traceEvents":[]}', "mended")
  luaunit.assertEquals({ count, first }, { 1, 14 })
end

function TestReader.test_an_escape_that_json_has_not_stays_as_it_is_written()
  luaunit.assertEquals(lib.open("[" .. op([[C:\xyz]], 0, 1) .. "]"):event(1).name, [[C:\xyz]])
end

function TestReader.test_missing_shapes_are_none()
  local trace = lib.open("[" .. op("aten::mm", 0, 1, ',"args":{"External id":1}') .. "," .. FINE .. ","
    .. op("aten::mm", 2, 1, ',"args":{"Input Dims":[]}') .. ","
    .. op("aten::mm", 2, 1, ',"args":null') .. "]")
  luaunit.assertNil(trace:event(1).dims)
  luaunit.assertEquals({ trace:event(1).external, trace:event(3).dims }, { 1, "[]" })
end

function TestReader.test_a_trace_without_gpu_events_is_read()
  local info = lib.open("[" .. FINE .. "]"):info()
  luaunit.assertEquals({ info.gpu_events, info.kept_events, info.flaws }, { 0, 1, {} })
end

function TestReader.test_200000_distinct_names_are_distinguished()
  local lines, count = {}, 200000
  for i = 1, count do lines[i] = op("triton_fused_kernel_number_" .. i, i, 1) end
  local trace = lib.open("[" .. table.concat(lines, ",\n") .. "]")
  luaunit.assertEquals(trace:info().kept_events, count)
  for i = 1, count do
    if trace:event(i).name ~= "triton_fused_kernel_number_" .. i then luaunit.fail("event " .. i) end
  end
end

function TestReader.test_an_event_larger_than_a_chunk_is_read()
  local dims = "[" .. ("[1, 2],"):rep(100000) .. "[]]"
  local large = op("large", 2, 1, ',"args":{"Input Dims":' .. dims .. "}")
  local trace = lib.open("[" .. FINE .. "," .. large .. "," .. FINE .. "]", { chunk_size = 1000 })
  luaunit.assertEquals(trace:info().events, 3)
  luaunit.assertEquals(#trace:event(2).dims, #dims - 100000)
end

-- ---- Refused ----------------------------------------------------------------------------------

function TestReader.test_other_files_are_rejected()
  for text, pattern in pairs {
    [""] = "byte 0: the text ends here", ["  \n"] = "byte 3: the text ends",
    ["hello"] = "byte 0: not a profiler", ["12"] = "byte 0: not a profiler trace",
    ['"x"'] = "byte 0: not a profiler trace",
    ["{}"] = "byte 1: not a profiler trace: it has no traceEvents",
    ['{"a":[1,{"traceEvents":[]}]}'] = "it has no traceEvents",
    ['{"traceEvents":5}'] = "byte 15: not a profiler trace: traceEvents is not a list",
    ['{"traceEvents":null,"a":1}'] = "traceEvents is not a list",
    ['{"traceEvents":[1,2]}'] = "byte 16: not a profiler trace: traceEvents is not a list of objects",
    ["[[]]"] = "byte 1: not a profiler trace: traceEvents is not a list of objects",
    ['{"traceEvents":[],"traceEvents":[]}'] = "a second traceEvents",
  } do
    refused(text, pattern)
  end
end

function TestReader.test_files_that_cannot_be_read_are_refused()
  local core = require "core.trace"
  local _, why = core.open(lib.work_path("nowhere.json"))
  luaunit.assertStrMatches(why, ".*/nowhere.json: cannot be read: .*")
  _, why = core.open(os.getenv("WORK"))
  luaunit.assertStrMatches(why, ".*: is not a file")
end

function TestReader.test_text_after_the_root_is_rejected()
  local text = whole(EVENTS)
  for _, more in ipairs { "x", "{}", "]", "}", ",", "\0" } do
    refused(text .. " \n" .. more, ("byte %d: not JSON: the root ended before this"):format(#text + 2))
  end
  refused("[" .. FINE .. "],", ("byte %d: not JSON: the root"):format(#FINE + 2))
end

function TestReader.test_broken_events_are_refused_alike_in_any_chunk()
  local sizes = { 1, 64, 200, 1 << 18 }
  local function alike(text, pattern)
    local expected = refused(text, pattern)
    for _, size in ipairs(sizes) do
      for workers = 1, 3 do
        luaunit.assertEquals(refused(text, nil, { chunk_size = size, workers = workers }), expected)
      end
    end
  end
  local three = FINE .. "," .. FINE
  alike("[" .. three .. " " .. FINE .. "]", ("byte %d: "):format(#three + 2))
  alike("[" .. three .. ",]", ("byte %d: "):format(#three + 2))
  alike("[" .. three .. ",," .. FINE .. "]", ("byte %d: "):format(#three + 2))
  alike("[" .. three .. ",5," .. FINE .. "]", ("byte %d: not a profiler"):format(#three + 2))
  alike("[," .. FINE .. "]")
  alike("[" .. FINE .. ',{"ph":"X" "cat":1}]')
  alike("[" .. FINE .. ',{"ph":"X","cat"}]')
  alike("[" .. FINE .. "," .. FINE:gsub('"fine"', '"fine') .. "," .. FINE .. "]")
end

function TestReader.test_a_trace_cut_off_anywhere_is_refused()
  local text = whole(EVENTS)
  for length = 0, #text - 1 do
    for _, size in ipairs { 64, 1 << 18 } do
      refused(text:sub(1, length), ("byte %d: the text ends here"):format(length), { chunk_size = size })
    end
  end
end

local function packed(text, command)
  local path = lib.write(lib.work_path("plain"), text)
  local pipe = io.popen(("%s <'%s'"):format(command, path))
  local bytes = pipe:read("a")
  luaunit.skipIf(not pipe:close(), "no program: " .. command)
  return bytes
end

local function cut_off_anywhere(command, magic)
  local text = whole(EVENTS)
  local bytes = packed(text, command)
  luaunit.assertEquals(lib.dump(lib.write(lib.work_path("trace.json"), bytes)), dump_of(text))
  luaunit.assertEquals(lib.open(packed(text:sub(1, 300), command) .. packed(text:sub(301), command)):info()
    .events, 9)
  for length = magic, #bytes - 1 do
    refused(bytes:sub(1, length), "cut off")
  end
  refused(packed("[" .. FINE .. ",", command), ("byte %d of the unpacked text: the text"):format(#FINE + 2))
  return bytes
end

function TestReader.test_gzip_cut_off_anywhere_is_refused()
  local bytes = cut_off_anywhere("gzip -c", 2)
  refused(bytes:sub(1, -7) .. "\0\0" .. bytes:sub(-4), "the gzip data are damaged") -- their checksum
end

function TestReader.test_zstd_cut_off_anywhere_is_refused()
  local bytes = cut_off_anywhere("zstd -qc", 4)
  refused(bytes:sub(1, -3) .. "\0\0", "the zstd data are damaged")
end

-- With any byte changed, the reader gives the same answer for every size of chunks.
function TestReader.test_any_changed_byte_is_read_or_refused_alike()
  local text = whole(EVENTS)
  for at = 1, #text do
    local byte = ('"\\{}[],:x0\0\xC3'):sub(at % 12 + 1, at % 12 + 1)
    local changed = text:sub(1, at - 1) .. byte .. text:sub(at + 1)
    local expected = { dump_of(changed) }
    luaunit.assertEquals({ dump_of(changed, { chunk_size = 64, workers = 2 }) }, expected, changed)
  end
end

return require "suites" { { "TestReader", TestReader } }
