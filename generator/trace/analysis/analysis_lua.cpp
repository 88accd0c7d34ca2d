// Analyses for Lua. Texts and numbers of arguments and tracks are converted when they are requested: once per
// distinct op, never once per event.
//
//   trace:analysis() -> A           made at the first call, then the same
//   A:counts() -> { gpu_events, unlinked, overlapping, first_overlapping }
//   A:timeline(include_unlinked, micro_idle_limit) -> { computation, exposed_communication, ... } µs
//   A:timelines(include_unlinked, windows) -> a list of such tables: for the work that each window (see
//       trace_lua.cpp) launched, and then for that of none
//   A:op_names() -> { number, ... }, { text, ... }                     of every cpu_op
//   A:arguments(number, as_lists) -> dims, types, strides, concrete    Python literals, or nil
//   A:argument_values(number) -> the same as Lua's values
//   A:track(number) -> process_name, process_label, thread_name
//   A:kernel_rows() -> { { parent, is_of_op, first_kernel, kernel, stream, count, sum, min, max, uid }, ... }
//   A:short_kernel_rows(limit) -> the same with arguments
//   A:short_kernel_histogram(limit, bins) -> begin, end, { count, ... }; nothing if none is so short
//   A:event_rows(), A:short_rows(), A:gpu_rows(), A:tree(), A:stacks(), A:calls()    event_rows.cpp
//   A:select(kind, models) -> S                     selection_lua.cpp
#include <algorithm>

#include "analysis.h"
#include "groups.h"
#include "lua_types.h"

namespace trace {

namespace {

analysis &analysis_argument(lua_State *lua) {
    return argument<analysis>(lua, ANALYSIS_TYPE, 1);
}

int counts(lua_State *lua) {
    const analysis &of = analysis_argument(lua);
    lua_newtable(lua);
    set_integer(lua, "gpu_events", of.gpu.size());
    set_integer(lua, "unlinked", of.unlinked);
    set_integer(lua, "overlapping", of.overlapping);
    if (of.overlapping > 0) set_integer(lua, "first_overlapping", of.of->events[of.first_overlapping].uid);
    return 1;
}

void push_times(lua_State *lua, const timeline &times) {
    lua_newtable(lua);
    set_number(lua, "computation", times.computation);
    set_number(lua, "exposed_communication", times.exposed_communication);
    set_number(lua, "exposed_copies", times.exposed_copies);
    set_number(lua, "busy", times.busy);
    set_number(lua, "idle", times.idle);
    set_number(lua, "total", times.total);
    set_number(lua, "communication", times.communication);
    set_number(lua, "copies", times.copies);
    set_number(lua, "micro_idle", times.micro_idle);
    set_number(lua, "macro_idle", times.macro_idle);
    set_number(lua, "untraced", times.untraced);
    set_integer(lua, "steps", times.steps);
    set_integer(lua, "events", times.events);
}

int push_timeline(lua_State *lua) {
    const analysis &of = analysis_argument(lua);
    push_times(lua, timeline_of(of, lua_toboolean(lua, 2), luaL_optnumber(lua, 3, 0)));
    return 1;
}

int push_timelines(lua_State *lua) {
    const analysis &of = analysis_argument(lua);
    std::vector<timeline> all = timelines_within(of, lua_toboolean(lua, 2), windows_argument(lua, 3));
    push_list(lua, all.size(), [&](size_t i) { push_times(lua, all[i]); });
    return 1;
}

int op_names(lua_State *lua) {
    const trace &of = *analysis_argument(lua).of;
    std::vector<bool> is_done(of.names.size());
    lua_newtable(lua);
    lua_newtable(lua);
    lua_Integer count = 0;
    for (const event &one : of.events) {
        if (one.kind != kind::cpu_op || is_done[one.name]) continue;
        is_done[one.name] = true;
        count++;
        lua_pushinteger(lua, lua_Integer(one.name));
        lua_rawseti(lua, -3, count);
        push_text(lua, of, one.name);
        lua_rawseti(lua, -2, count);
    }
    return 2;
}

const argument_set &set_argument(lua_State *lua, const trace &of) {
    auto number = size_t(luaL_checkinteger(lua, 2));
    luaL_argcheck(lua, number < of.argument_sets.size(), 2, "no such arguments");
    return of.argument_sets[number];
}

int arguments(lua_State *lua) {
    analysis &analysis = analysis_argument(lua);
    const trace &of = *analysis.of;
    const argument_set &set = set_argument(lua, of);
    bool as_lists = lua_toboolean(lua, 3);
    std::string text;
    for (uint32_t json : {set.dims, set.types, set.strides, set.concrete}) {
        text.clear();
        if (json != EMPTY_TEXT && analysis.arguments.append_python(of.names[json], as_lists, text)) {
            push_text(lua, text);
        } else {
            lua_pushnil(lua);
        }
    }
    return 4;
}

int argument_values(lua_State *lua) {
    analysis &analysis = analysis_argument(lua);
    const trace &of = *analysis.of;
    const argument_set &set = set_argument(lua, of);
    for (uint32_t json : {set.dims, set.types, set.strides, set.concrete}) {
        if (json == EMPTY_TEXT || !analysis.arguments.push(lua, of.names[json])) lua_pushnil(lua);
    }
    return 4;
}

int push_track(lua_State *lua) {
    const trace &of = *analysis_argument(lua).of;
    auto number = size_t(luaL_checkinteger(lua, 2));
    luaL_argcheck(lua, number < of.tracks.size(), 2, "no such track");
    const track &one = of.tracks[number];
    push_text(lua, of, one.process_name);
    push_text(lua, of, one.process_label);
    push_text(lua, of, one.thread_name);
    return 3;
}

void push_kernel_rows(lua_State *lua, const trace &of, const std::vector<kernel_row> &rows) {
    push_list(lua, rows.size(), [&](size_t i) {
        const kernel_row &row = rows[i];
        lua_createtable(lua, 0, 11);
        set_text(lua, "parent", of, row.parent);
        lua_pushboolean(lua, row.is_of_op);
        lua_setfield(lua, -2, "is_of_op");
        set_text(lua, "first_kernel", of, row.first_kernel);
        set_text(lua, "kernel", of, row.kernel);
        push_number_of(lua, row.arguments);
        lua_setfield(lua, -2, "arguments");
        set_integer(lua, "stream", row.stream);
        set_integer(lua, "uid", of.events[row.example].uid);
        set_integer(lua, "count", row.count);
        set_number(lua, "sum", row.sum);
        set_number(lua, "min", row.min);
        set_number(lua, "max", row.max);
    });
}

int push_all_kernel_rows(lua_State *lua) {
    const analysis &of = analysis_argument(lua);
    push_kernel_rows(lua, *of.of, kernel_rows(of));
    return 1;
}

int push_short_kernel_rows(lua_State *lua) {
    const analysis &of = analysis_argument(lua);
    push_kernel_rows(lua, *of.of, short_kernel_rows(of, luaL_checknumber(lua, 2)));
    return 1;
}

int push_histogram(lua_State *lua) {
    const analysis &of = analysis_argument(lua);
    lua_Integer bins = luaL_checkinteger(lua, 3);
    luaL_argcheck(lua, bins >= 1 && bins <= 1000000, 3, "out of range");
    histogram result = short_kernel_histogram(of, luaL_checknumber(lua, 2), uint32_t(bins));
    if (result.counts.empty()) return 0;
    lua_pushnumber(lua, result.begin);
    lua_pushnumber(lua, result.end);
    push_list(lua, result.counts.size(),
              [&](size_t i) { lua_pushinteger(lua, lua_Integer(result.counts[i])); });
    return 3;
}

const luaL_Reg methods[] = {
    {"counts", guarded<counts>},
    {"timeline", guarded<push_timeline>},
    {"timelines", guarded<push_timelines>},
    {"op_names", guarded<op_names>},
    {"arguments", guarded<arguments>},
    {"argument_values", guarded<argument_values>},
    {"track", guarded<push_track>},
    {"kernel_rows", guarded<push_all_kernel_rows>},
    {"short_kernel_rows", guarded<push_short_kernel_rows>},
    {"short_kernel_histogram", guarded<push_histogram>},
    {"event_rows", guarded<lua_event_rows>},
    {"short_rows", guarded<lua_short_rows>},
    {"gpu_rows", guarded<lua_gpu_rows>},
    {"tree", guarded<lua_tree>},
    {"stacks", guarded<lua_stacks>},
    {"calls", guarded<lua_calls>},
    {"select", lua_select},
    {nullptr, nullptr},
};

int make_analysis(lua_State *lua) {
    const trace &of = check_trace(lua, 1);
    if (lua_getiuservalue(lua, 1, 1) == LUA_TUSERDATA) return 1;
    make_type<analysis>(lua, ANALYSIS_TYPE, methods);
    make_selection_type(lua);
    auto &to = push_new<analysis>(lua, ANALYSIS_TYPE, 1);
    analyse(of, to);
    lua_pushvalue(lua, -1);
    lua_setiuservalue(lua, 1, 1);
    return 1;
}

} // namespace

const analysis &check_analysis(lua_State *lua) {
    return analysis_argument(lua);
}

int lua_analysis(lua_State *lua) {
    return guarded<make_analysis>(lua);
}

} // namespace trace
