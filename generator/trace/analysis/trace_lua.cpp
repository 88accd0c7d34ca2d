// Traces for Lua: core.trace.
//
//   trace.open(path[, { workers = n, chunk_size = bytes, frames, launched (true) }]) -> t | nil, message
//                 frames: also the functions of Python, for A:stacks(); launched: for t:attribute of others
//   t:info() -> { rank, world_size, base_nanoseconds, devices, device_name, multiprocessors, events,
//                 kept_events, host_events (ops and calls), gpu_events, linked_by,
//                 steps = { N... } (of marks ProfilerStep#N; nil: none), is_cut (true after t:keep),
//                 computed_in = { [type of operands] = type }, after t:attribute: graph_events,
//                 flaws = { { name, count, first_byte | first_uid }... } }
//   t:event(i) -> one of the kept events, i from 1: { uid, kind, name, start, duration, pid, tid, link,
//                 process_name, process_label, thread_name, external, device, stream, sequence, parent (i),
//                 dims, types, strides, concrete, collective = { name, dtype, group, ranks, in_split,
//                 out_split, in_elements, out_elements, group_size } }
//   t:marks() -> { { name, start, stop, track }... }: the annotations, in order of the file
//   t:keep { { start, stop }... } removes all events that begin in none of these windows of the time, GPU
//                 events by their launches; before the first analysis. Windows are in order, do not overlap,
//                 and do not contain their stops
//   t:kept() -> these windows; {}: all events are kept
//   t:attribute { t... } gives GPU events of replayed graphs the ops of these captured traces (captures.h);
//                 before t:keep and the first analysis
//   t:analysis() -> the base of reports: analysis_lua.cpp
//   t:collectives(), t:collective_durations(): collectives.cpp
//   t:close() frees the memory before t is collected
//
// A fact that the file does not have is nil. Times are in µs.
#include "trace_lua.h"
#include "captures.h"

#include <algorithm>
#include <charconv>
#include <new>
#include <string_view>
#include <thread>

namespace trace {

namespace {

const char *const TRACE_TYPE = "gentables.trace";

// Names of the flaws, in order of their enum, and whether the first is located by its byte.
constexpr struct {
    const char *name;
    bool has_byte;
} FLAWS[] = {{"malformed", true},
             {"mended", true},
             {"negative", true},
             {"overlapping", false},
             {"unlinked", false},
             {"graph kernels without an op", false},
             {"graph kernels with several captured graphs", false},
             {"graph kernels not compared", false}};
static_assert(sizeof FLAWS / sizeof *FLAWS == size_t(flaw::count));

void push_flaws(lua_State *lua, const trace &from) {
    lua_newtable(lua);
    lua_Integer row = 0;
    for (size_t i = 0; i < size_t(flaw::count); i++) {
        if (from.flaws[i] == 0) continue;
        lua_createtable(lua, 0, 3);
        set_text(lua, "name", FLAWS[i].name);
        set_integer(lua, "count", from.flaws[i]);
        set_integer(lua, FLAWS[i].has_byte ? "first_byte" : "first_uid", from.first_flaw[i]);
        lua_rawseti(lua, -2, ++row);
    }
    if (from.is_attributed && from.graph_events == 0) {
        lua_createtable(lua, 0, 2);
        set_text(lua, "name", "no launch of a graph");
        set_integer(lua, "count", 0);
        lua_rawseti(lua, -2, ++row);
    }
}

// The numbers of marks ProfilerStep#N, in order of the file.
void set_steps(lua_State *lua, const trace &from) {
    constexpr std::string_view PREFIX = "ProfilerStep#";
    std::vector<uint64_t> steps;
    for (const event &one : from.events) {
        std::string_view name = from.names[one.name];
        if (one.kind != kind::mark || name.substr(0, PREFIX.size()) != PREFIX) continue;
        uint64_t number = 0;
        auto read = std::from_chars(name.data() + PREFIX.size(), name.data() + name.size(), number);
        if (read.ec == std::errc() && read.ptr == name.data() + name.size()) steps.push_back(number);
    }
    if (steps.empty()) return;
    set_list(lua, "steps", steps.size(), [&](size_t i) { lua_pushinteger(lua, lua_Integer(steps[i])); });
}

void set_computed_in(lua_State *lua, const trace &from) {
    if (from.computed_in.empty()) return;
    lua_newtable(lua);
    for (const auto &[type, computed_in] : from.computed_in) set_text(lua, type.c_str(), computed_in);
    lua_setfield(lua, -2, "computed_in");
}

int info(lua_State *lua) {
    const trace &from = check_trace(lua, 1);
    auto gpu_events = std::count_if(from.events.begin(), from.events.end(),
                                    [](const event &event) { return is_gpu(event.kind); });
    lua_createtable(lua, 0, 15);
    set_known(lua, "rank", from.rank);
    set_known(lua, "world_size", from.world_size);
    set_integer(lua, "base_nanoseconds", from.base_nanoseconds);
    set_integer(lua, "devices", from.devices);
    if (!from.device_name.empty()) {
        set_text(lua, "device_name", from.device_name);
        set_known(lua, "multiprocessors", from.multiprocessors);
    }
    set_integer(lua, "events", from.events_in_file);
    set_integer(lua, "kept_events", from.events.size());
    set_integer(lua, "host_events", from.host.size());
    set_integer(lua, "gpu_events", gpu_events);
    set_text(lua, "linked_by", from.linked_by_correlation ? "correlation" : "External id");
    push_flaws(lua, from);
    lua_setfield(lua, -2, "flaws");
    set_computed_in(lua, from);
    set_steps(lua, from);
    if (!from.kept.empty()) {
        lua_pushboolean(lua, true);
        lua_setfield(lua, -2, "is_cut");
    }
    if (from.is_attributed) set_integer(lua, "graph_events", from.graph_events);
    return 1;
}

void set_arguments(lua_State *lua, const trace &from, const event &event) {
    if (event.arguments == NONE) return;
    if (is_gpu(event.kind)) {
        lua_createtable(lua, 0, 9);
        set_collective(lua, from, from.collectives[event.arguments]);
        lua_setfield(lua, -2, "collective");
        return;
    }
    const argument_set &set = from.argument_sets[event.arguments];
    set_known_text(lua, "dims", from, set.dims);
    set_known_text(lua, "types", from, set.types);
    set_known_text(lua, "strides", from, set.strides);
    set_known_text(lua, "concrete", from, set.concrete);
}

void set_track(lua_State *lua, const trace &from, const track &track) {
    set_text(lua, "pid", from, track.pid);
    set_text(lua, "tid", from, track.tid);
    set_text(lua, "process_name", from, track.process_name);
    set_text(lua, "process_label", from, track.process_label);
    set_text(lua, "thread_name", from, track.thread_name);
}

int push_event(lua_State *lua) {
    static const char *const KINDS[] = {"cpu_op", "runtime", "driver", "kernel",
                                        "memcpy", "memset",  "mark",   "frame"};
    const trace &from = check_trace(lua, 1);
    lua_Integer number = luaL_checkinteger(lua, 2);
    luaL_argcheck(lua, number >= 1 && uint64_t(number) <= from.events.size(), 2, "no such event");
    const event &event = from.events[size_t(number) - 1];
    lua_createtable(lua, 0, 20);
    set_integer(lua, "uid", event.uid);
    set_text(lua, "kind", KINDS[size_t(event.kind)]);
    set_text(lua, "name", from, event.name);
    set_number(lua, "start", event.start);
    set_number(lua, "duration", event.duration);
    set_track(lua, from, from.tracks[event.track]);
    set_known(lua, "link", event.link);
    set_known(lua, "external", event.external);
    if (event.device >= 0) set_integer(lua, "device", event.device);
    if (event.stream >= 0) set_integer(lua, "stream", event.stream);
    if (event.sequence >= 0) set_integer(lua, "sequence", event.sequence);
    if (event.parent != NONE) set_integer(lua, "parent", uint64_t(event.parent) + 1);
    set_arguments(lua, from, event);
    return 1;
}

int marks(lua_State *lua) {
    const trace &from = check_trace(lua, 1);
    lua_newtable(lua);
    lua_Integer row = 0;
    for (const event &one : from.events) {
        if (one.kind != kind::mark) continue;
        lua_createtable(lua, 0, 4);
        set_text(lua, "name", from, one.name);
        set_number(lua, "start", one.start);
        set_number(lua, "stop", one.end());
        set_integer(lua, "track", one.track);
        lua_rawseti(lua, -2, ++row);
    }
    return 1;
}

int kept(lua_State *lua) {
    const trace &from = check_trace(lua, 1);
    lua_newtable(lua);
    lua_Integer row = 0;
    for (const window &one : from.kept) {
        lua_createtable(lua, 2, 0);
        lua_pushnumber(lua, one.start);
        lua_rawseti(lua, -2, 1);
        lua_pushnumber(lua, one.end);
        lua_rawseti(lua, -2, 2);
        lua_rawseti(lua, -2, ++row);
    }
    return 1;
}

int keep(lua_State *lua) {
    trace &to = check_trace(lua, 1);
    luaL_argcheck(lua, lua_getiuservalue(lua, 1, 1) != LUA_TUSERDATA, 1, "the trace is analysed already");
    keep_within(to, windows_argument(lua, 2));
    return 0;
}

int attribute(lua_State *lua) {
    trace &to = check_trace(lua, 1);
    luaL_argcheck(lua, lua_getiuservalue(lua, 1, 1) != LUA_TUSERDATA, 1, "the trace is analysed already");
    luaL_checktype(lua, 2, LUA_TTABLE);
    std::vector<const trace *> captured;
    for (lua_Integer i = 1; lua_rawgeti(lua, 2, i) == LUA_TUSERDATA; i++) {
        captured.push_back(&check_trace(lua, -1));
        lua_pop(lua, 1);
    }
    attribute_graphs(to, captured);
    return 0;
}

int close(lua_State *lua) {
    auto **held = static_cast<trace **>(luaL_checkudata(lua, 1, TRACE_TYPE));
    delete *held;
    *held = nullptr;
    return 0;
}

int64_t option(lua_State *lua, const char *key, int64_t otherwise) {
    if (!lua_istable(lua, 2)) return otherwise;
    lua_getfield(lua, 2, key);
    int64_t value = luaL_optinteger(lua, -1, lua_Integer(otherwise));
    lua_pop(lua, 1);
    return value;
}

bool flag(lua_State *lua, const char *key) {
    if (!lua_istable(lua, 2)) return false;
    lua_getfield(lua, 2, key);
    bool value = lua_toboolean(lua, -1) != 0;
    lua_pop(lua, 1);
    return value;
}

read_options options_of(lua_State *lua) {
    enum { MOST_WORKERS = 1024 };
    read_options options;
    int64_t workers = option(lua, "workers", std::thread::hardware_concurrency());
    options.workers = int(std::clamp<int64_t>(workers, 1, MOST_WORKERS));
    options.frames = flag(lua, "frames");
    options.launched = flag(lua, "launched");
    options.chunk_size = size_t(std::max<int64_t>(1, option(lua, "chunk_size", int64_t(options.chunk_size))));
    return options;
}

// open(path[, options]). Lua owns the trace before it is filled, so that it is freed if Lua raises.
int open(lua_State *lua) {
    const char *path = luaL_checkstring(lua, 1);
    read_options options = options_of(lua);
    problem problem{};
    bool done = false;
    try {
        read_communication_patterns(lua);
        auto &to = push_new<trace>(lua, TRACE_TYPE);
        done = read(path, options, to, problem);
        if (done) link(to);
    } catch (const std::bad_alloc &) {
        done = problem_set(&problem, "%s: out of memory", path);
    }
    return done ? 1 : fail_with(lua, problem.text);
}

// The analyses have their own files.
const luaL_Reg METHODS[] = {
    {"info", info},
    {"event", push_event},
    {"marks", guarded<marks>},
    {"keep", guarded<keep>},
    {"kept", guarded<kept>},
    {"attribute", guarded<attribute>},
    {"close", close},
    {"analysis", lua_analysis},
    {"collectives", lua_collectives},
    {"collective_durations", lua_collective_durations},
    {nullptr, nullptr},
};

const luaL_Reg FUNCTIONS[] = {
    {"open", open},
    {nullptr, nullptr},
};

} // namespace

trace &check_trace(lua_State *lua, int index) {
    auto **held = static_cast<trace **>(luaL_checkudata(lua, index, TRACE_TYPE));
    if (*held == nullptr) luaL_argerror(lua, index, "the trace is closed");
    return **held;
}

std::vector<window> windows_argument(lua_State *lua, int index) {
    luaL_checktype(lua, index, LUA_TTABLE);
    std::vector<window> windows;
    for (lua_Integer i = 1; lua_rawgeti(lua, index, i) == LUA_TTABLE; i++) {
        lua_rawgeti(lua, -1, 1);
        lua_rawgeti(lua, -2, 2);
        windows.push_back({lua_tonumber(lua, -2), lua_tonumber(lua, -1)});
        lua_pop(lua, 3);
        bool is_after = windows.size() == 1 || windows.back().start >= windows[windows.size() - 2].end;
        luaL_argcheck(lua, is_after, index, "windows overlap");
    }
    lua_pop(lua, 1);
    return windows;
}

void push_text(lua_State *lua, const trace &trace, uint32_t text) {
    push_text(lua, trace.names[text]);
}

void set_collective(lua_State *lua, const trace &from, const collective &metadata) {
    set_known_text(lua, "name", from, metadata.name);
    set_known_text(lua, "dtype", from, metadata.dtype);
    set_known_text(lua, "group", from, metadata.group);
    set_known_text(lua, "ranks", from, metadata.ranks);
    set_known_text(lua, "in_split", from, metadata.in_split);
    set_known_text(lua, "out_split", from, metadata.out_split);
    set_known(lua, "in_elements", metadata.in_elements);
    set_known(lua, "out_elements", metadata.out_elements);
    set_known(lua, "group_size", metadata.group_size);
}

static int make_module(lua_State *lua) {
    make_type<trace>(lua, TRACE_TYPE, METHODS);
    luaL_newlib(lua, FUNCTIONS);
    return 1;
}

} // namespace trace

extern "C" int luaopen_core_trace(lua_State *lua);

int luaopen_core_trace(lua_State *lua) {
    return guarded<trace::make_module>(lua);
}
