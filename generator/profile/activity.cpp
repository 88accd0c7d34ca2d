// GPU activity of torch-profiler traces for Lua: core.activity. trace::read reads the trace; this file
// selects the input of metrics: kernels, copies, memsets, marks of the program, shapes of GEMMs, metadata of
// collectives.
//
//   activity.format(path) -> "json" | "gzip" | "zstd" | "sqlite" | nil, message     by the first bytes
//   activity.read(path) -> { rank, world_size, kernels, copies, sets, collectives, marks, gemms, left_out,
//                            negative } | nil, message                       JSON, or gzip or zstd of it
//
// kernels, copies and sets are columns { start, stop, name, device, stream, bytes }, by start; times are
// whole nanoseconds; bytes is -1 if unknown. negative: the number of durations below zero, which count as
// zero. activity.lua gives it its form.
extern "C" {
#include "system/file.h"
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <new>
#include <string_view>
#include <thread>
#include <vector>

#include "codec/lua_values.h"
#include "trace/reader/trace.h"

namespace {

constexpr int64_t UNKNOWN = -1;

// ---- The kept events -----------------------------------------------------------------------------

struct timed {
    int64_t start, stop; // ns
    uint32_t event;      // in trace::events
    uint32_t collective; // in trace::collectives, or NONE
};

enum list { KERNELS, COPIES, SETS, MARKS, GEMMS, LISTS };

struct activity {
    ::trace::trace trace;
    std::vector<timed> lists[LISTS];
    uint64_t left_out = 0;
};

// µs with a fraction to whole ns. Returns false for a time beyond any clock.
bool to_ns(double us, int64_t *ns) {
    if (!(std::fabs(us) < 4e15)) return false;
    double whole = std::floor(us);
    *ns = int64_t(whole) * 1000 + std::llround((us - whole) * 1000);
    return true;
}

bool is_gemm(std::string_view name) {
    return name == "aten::mm" || name == "aten::addmm" || name == "aten::bmm" || name == "aten::baddbmm" ||
           name == "aten::_scaled_mm";
}

// The list that an event belongs to, or LISTS.
list list_of(const trace::trace &trace, const trace::event &event) {
    switch (event.kind) {
    case trace::kind::kernel: return KERNELS;
    case trace::kind::memcpy: return COPIES;
    case trace::kind::memset: return SETS;
    case trace::kind::mark: return MARKS;
    case trace::kind::cpu_op: return is_gemm(trace.names[event.name]) ? GEMMS : LISTS;
    default: return LISTS;
    }
}

// The metadata of a collective are in record_param_comms; kernels of the same operation may lack them:
// External id -> number in trace::collectives.
std::map<int64_t, uint32_t> announced_in(const trace::trace &trace) {
    std::map<int64_t, uint32_t> found;
    for (const trace::announcement &announcement : trace.announced) {
        const trace::event &event = trace.events[announcement.event];
        if (event.external == trace::UNKNOWN || trace.names[event.name] != "record_param_comms") continue;
        found[event.external] = announcement.collective;
    }
    return found;
}

void take_events(activity &to) {
    const trace::trace &trace = to.trace;
    std::map<int64_t, uint32_t> announced = announced_in(trace);
    to.left_out = trace.flaws[size_t(trace::flaw::malformed)];
    for (uint32_t i = 0; i < trace.events.size(); i++) {
        const trace::event &event = trace.events[i];
        list list = list_of(trace, event);
        int64_t start, length;
        if (list == LISTS) continue;
        if (!to_ns(event.start, &start) || !to_ns(event.duration, &length)) {
            to.left_out++;
            continue;
        }
        uint32_t collective = list == KERNELS ? event.arguments : trace::NONE;
        auto found = collective == trace::NONE ? announced.find(event.external) : announced.end();
        if (list == KERNELS && found != announced.end()) collective = found->second;
        to.lists[list].push_back({start, start + length, i, collective});
    }
    for (std::vector<timed> &list : to.lists) {
        std::stable_sort(list.begin(), list.end(),
                         [](const timed &a, const timed &b) { return a.start < b.start; });
    }
}

bool read_file(const char *path, activity &to, problem &why) {
    try {
        trace::read_options options;
        options.workers = int(std::clamp(std::thread::hardware_concurrency(), 1U, 64U));
        if (!trace::read(path, options, to.trace, why)) return false;
        take_events(to);
        return true;
    } catch (const std::bad_alloc &) {
        return problem_set(&why, "%s: out of memory", path);
    }
}

// ---- Lua --------------------------------------------------------------------------------------

const char *const ACTIVITY_TYPE = "gentables.activity";

// Pushes a name that many events have. `names`: the index on the stack of the table of names pushed before.
void push_name(lua_State *lua, const trace::trace &trace, uint32_t name, int names) {
    if (lua_rawgeti(lua, names, name) != LUA_TNIL) return;
    lua_pop(lua, 1);
    push_text(lua, trace.names[name]);
    lua_pushvalue(lua, -1);
    lua_rawseti(lua, names, name);
}

int64_t bytes_of(const trace::trace &trace, uint32_t event) {
    auto found = std::lower_bound(trace.sizes.begin(), trace.sizes.end(), event,
                                  [](const trace::event_size &size, uint32_t of) { return size.event < of; });
    return found != trace.sizes.end() && found->event == event ? found->bytes : UNKNOWN;
}

void push_events(lua_State *lua, const activity &from, list list, int names) {
    const std::vector<timed> &rows = from.lists[list];
    auto column = [&](const char *key, auto value) {
        set_list(lua, key, rows.size(), [&](size_t i) { lua_pushinteger(lua, lua_Integer(value(rows[i]))); });
    };
    auto event_of = [&](const timed &row) -> const trace::event & { return from.trace.events[row.event]; };
    lua_createtable(lua, 0, 7);
    column("start", [](const timed &row) { return row.start; });
    column("stop", [](const timed &row) { return row.stop; });
    column("device", [&](const timed &row) { return event_of(row).device; });
    column("stream", [&](const timed &row) { return event_of(row).stream; });
    column("bytes", [&](const timed &row) { return bytes_of(from.trace, row.event); });
    set_list(lua, "name", rows.size(),
             [&](size_t i) { push_name(lua, from.trace, event_of(rows[i]).name, names); });
}

void push_collective(lua_State *lua, const trace::trace &trace, const trace::collective &metadata) {
    auto known = [](int64_t number) { return number == trace::UNKNOWN ? UNKNOWN : number; };
    lua_createtable(lua, 0, 6);
    set_text(lua, "name", trace.names[metadata.name]);
    set_text(lua, "dtype", trace.names[metadata.dtype]);
    push_text(lua, trace.names[metadata.group]); // several groups may have one name
    lua_pushstring(lua, " ");
    push_text(lua, trace.names[metadata.ranks]);
    lua_concat(lua, 3);
    lua_setfield(lua, -2, "group");
    set_integer(lua, "in_elements", known(metadata.in_elements));
    set_integer(lua, "out_elements", known(metadata.out_elements));
    set_integer(lua, "group_size", known(metadata.group_size));
}

// { [index in kernels] = { name, dtype, group, in_elements, out_elements, group_size } }
void push_collectives(lua_State *lua, const activity &from) {
    lua_newtable(lua);
    const std::vector<timed> &kernels = from.lists[KERNELS];
    for (size_t i = 0; i < kernels.size(); i++) {
        if (kernels[i].collective == trace::NONE) continue;
        push_collective(lua, from.trace, from.trace.collectives[kernels[i].collective]);
        lua_rawseti(lua, -2, lua_Integer(i) + 1);
    }
}

void push_gemm(lua_State *lua, const activity &from, const timed &row, int names) {
    const trace::event &event = from.trace.events[row.event];
    lua_createtable(lua, 0, 5);
    push_name(lua, from.trace, event.name, names);
    lua_setfield(lua, -2, "name");
    set_integer(lua, "thread", event.track);
    set_integer(lua, "start", row.start);
    set_integer(lua, "stop", row.stop);
    if (event.arguments == trace::NONE) return;
    set_text(lua, "dims", from.trace.names[from.trace.argument_sets[event.arguments].dims]);
}

void push_activity(lua_State *lua, const activity &from) {
    static const struct {
        const char *key;
        ::list list;
    } COLUMNS[] = {{"kernels", KERNELS}, {"copies", COPIES}, {"sets", SETS}, {"marks", MARKS}};
    lua_newtable(lua);
    int names = lua_gettop(lua);
    lua_createtable(lua, 0, 10);
    for (const auto &row : COLUMNS) {
        push_events(lua, from, row.list, names);
        lua_setfield(lua, -2, row.key);
    }
    push_collectives(lua, from);
    lua_setfield(lua, -2, "collectives");
    const std::vector<timed> &gemms = from.lists[GEMMS];
    set_list(lua, "gemms", gemms.size(), [&](size_t i) { push_gemm(lua, from, gemms[i], names); });
    if (from.trace.rank != trace::UNKNOWN) set_integer(lua, "rank", from.trace.rank);
    if (from.trace.world_size != trace::UNKNOWN) set_integer(lua, "world_size", from.trace.world_size);
    set_integer(lua, "left_out", from.left_out);
    set_integer(lua, "negative", from.trace.flaws[size_t(trace::flaw::negative)]);
}

// read(path). Lua owns the activity while tables are made of it, which may raise.
int lua_read(lua_State *lua) {
    const char *path = luaL_checkstring(lua, 1);
    auto &to = push_new<activity>(lua, ACTIVITY_TYPE);
    problem why;
    if (!read_file(path, to, why)) return fail_with(lua, why.text);
    push_activity(lua, to);
    return 1;
}

bool starts_with(const file_map &map, std::string_view bytes) {
    return map.size >= bytes.size() && std::memcmp(map.data, bytes.data(), bytes.size()) == 0;
}

const char *format_of(const file_map &map) {
    if (starts_with(map, "\x1f\x8b")) return "gzip";
    if (starts_with(map, "\x28\xb5\x2f\xfd")) return "zstd";
    if (starts_with(map, "SQLite format 3")) return "sqlite";
    return "json";
}

// format(path)
int lua_format(lua_State *lua) {
    file_map map;
    problem why;
    if (!file_open(luaL_checkstring(lua, 1), &map, &why)) return fail_with(lua, why.text);
    lua_pushstring(lua, format_of(map));
    file_close(&map);
    return 1;
}

} // namespace

extern "C" int luaopen_core_activity(lua_State *lua);
extern "C" int luaopen_core_activity(lua_State *lua) {
    static const luaL_Reg functions[] = {
        {"read", guarded<lua_read>}, {"format", lua_format}, {nullptr, nullptr}};
    make_type<activity>(lua, ACTIVITY_TYPE);
    luaL_newlib(lua, functions);
    return 1;
}
