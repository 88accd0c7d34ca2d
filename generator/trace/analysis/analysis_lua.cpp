// Analyses and selections for Lua. Texts and numbers of arguments and tracks go over as they are asked for:
// what a sheet needs once per distinct op, never once per event.
//
//   trace:analysis() -> A           made at the first call, then the same
//   A:counts() -> { gpu_events, unlinked, overlapping, first_overlapping }
//   A:timeline(include_unlinked, micro_idle_limit) -> { computation, exposed_communication, ... } µs
//   A:op_names() -> { number, ... }, { text, ... }                     of every cpu_op
//   A:arguments(number, as_lists) -> dims, types, strides, concrete    Python literals, or nil
//   A:argument_values(number) -> the same as Lua's values
//   A:track(number) -> process_name, process_label, thread_name
//   A:kernel_rows() -> { { parent, first_kernel, kernel, stream, count, sum, min, max, uid }, ... }
//   A:short_kernel_rows(limit) -> the same with arguments
//   A:short_kernel_histogram(limit, bins) -> begin, end, { count, ... }; nothing where none is so short
//   A:select(kind, flags) -> S
//       kind: "launchers", "modelled", "backward" or "unified"; flags[number of a name] = 1 there are sums
//       for it + 2 also for its backward + 4 only the outermost is listed + 8 * number of its sheet
//   S:combos() -> columns, a row for each combo, and nested, a number
//       { name, arguments, track, kernel, model_name, model_arguments, first_kernel, kernels, uid, count };
//       arguments are -1 where there are none; model_...: of the forward op, where this is a backward
//   S:kernels(combo) -> { name, ... }                                  in the order of the selection
//   S:group(map, groups, specs) -> columns { count, uid, combo }, and at 1, 2, ... for each spec columns
//       { mean, median, deviation, min, max, sum, count }. map[combo] = group, or nil: left out;
//       spec = { "time" | "computing" | "subtree" | "duration", work }, work[combo]: the value is work / time
//   S:details(map, groups) -> columns kernel_details_summary, trunc_kernel_details; nil: no kernels
//   S:instances(map, group) -> columns, a row for each instance
//       { uid, start, stop, time, op_start, kernel, kernel_start, kernel_time }: its first kernel's start,
//       its last one's end, and its longest kernel
#include "trace_lua.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "analysis.h"
#include "groups.h"
#include "literal.h"

namespace trace {

namespace {

const char *const ANALYSIS = "gentables.trace_analysis";
const char *const SELECTION = "gentables.trace_selection";

// Runs F; memory that runs out becomes Lua's error.
template <int (*F)(lua_State *)> int guarded(lua_State *lua) {
    try {
        return F(lua);
    } catch (const std::bad_alloc &) {
    }
    return luaL_error(lua, "not enough memory");
}

// The T that is the first argument; raises where its trace, `depth` user values away, is closed.
template <class T> T &argument(lua_State *lua, const char *type, int depth) {
    T &result = **static_cast<T **>(luaL_checkudata(lua, 1, type));
    lua_pushvalue(lua, 1);
    for (int i = 0; i < depth; i++) {
        lua_getiuservalue(lua, -1, 1);
        lua_remove(lua, -2);
    }
    check_trace(lua, lua_gettop(lua));
    lua_pop(lua, 1);
    return result;
}

template <class T> int collect(lua_State *lua) {
    delete *static_cast<T **>(lua_touserdata(lua, 1));
    return 0;
}

// Pushes a new T, empty, that keeps the value at `keeps` alive.
template <class T> T &push_new(lua_State *lua, const char *type, int keeps) {
    keeps = lua_absindex(lua, keeps);
    auto **held = static_cast<T **>(lua_newuserdatauv(lua, sizeof(T *), 1));
    *held = nullptr;
    luaL_setmetatable(lua, type);
    *held = new T;
    lua_pushvalue(lua, keeps);
    lua_setiuservalue(lua, -2, 1);
    return **held;
}

// ---- Values -----------------------------------------------------------------------------------

// A number that names something, or nil.
void push_number_of(lua_State *lua, uint32_t number) {
    if (number == NONE) {
        lua_pushnil(lua);
    } else {
        lua_pushinteger(lua, lua_Integer(number));
    }
}

// Sets `key` of the table on top to a column: push(i) pushes the value of row i (from 0).
template <class Push> void set_column(lua_State *lua, const char *key, size_t rows, Push push) {
    lua_createtable(lua, int(rows), 0);
    for (size_t i = 0; i < rows; i++) {
        push(i);
        lua_rawseti(lua, -2, lua_Integer(i) + 1);
    }
    lua_setfield(lua, -2, key);
}

// The table at `index` as a column of numbers of `count` rows.
template <class T> std::vector<T> column(lua_State *lua, int index, size_t count, T missing) {
    std::vector<T> result(count, missing);
    index = lua_absindex(lua, index);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(lua, index, lua_Integer(i) + 1);
        if (lua_isnumber(lua, -1)) result[i] = T(lua_tonumber(lua, -1));
        lua_pop(lua, 1);
    }
    return result;
}

// ---- An analysis ------------------------------------------------------------------------------

analysis &analysis_argument(lua_State *lua) {
    return argument<analysis>(lua, ANALYSIS, 1);
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

int push_timeline(lua_State *lua) {
    const analysis &of = analysis_argument(lua);
    timeline times = timeline_of(of, lua_toboolean(lua, 2), luaL_optnumber(lua, 3, 0));
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
    const trace &of = *analysis_argument(lua).of;
    const argument_set &set = set_argument(lua, of);
    bool as_lists = lua_toboolean(lua, 3);
    std::string text;
    for (uint32_t json : {set.dims, set.types, set.strides, set.concrete}) {
        text.clear();
        if (json != EMPTY_TEXT && append_python(of.names[json], as_lists, text)) {
            lua_pushlstring(lua, text.data(), text.size());
        } else {
            lua_pushnil(lua);
        }
    }
    return 4;
}

int argument_values(lua_State *lua) {
    const trace &of = *analysis_argument(lua).of;
    const argument_set &set = set_argument(lua, of);
    for (uint32_t json : {set.dims, set.types, set.strides, set.concrete}) {
        if (json == EMPTY_TEXT || !push_json(lua, of.names[json])) lua_pushnil(lua);
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
    lua_createtable(lua, int(rows.size()), 0);
    lua_Integer count = 0;
    for (const kernel_row &row : rows) {
        lua_createtable(lua, 0, 10);
        set_text(lua, "parent", of, row.parent);
        set_text(lua, "first_kernel", of, row.first_kernel);
        set_text(lua, "kernel", of, row.kernel);
        push_number_of(lua, row.arguments);
        lua_setfield(lua, -2, "arguments");
        lua_pushinteger(lua, row.stream);
        lua_setfield(lua, -2, "stream");
        set_integer(lua, "uid", of.events[row.example].uid);
        set_integer(lua, "count", row.count);
        set_number(lua, "sum", row.sum);
        set_number(lua, "min", row.min);
        set_number(lua, "max", row.max);
        lua_rawseti(lua, -2, ++count);
    }
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
    lua_createtable(lua, int(bins), 0);
    for (size_t i = 0; i < result.counts.size(); i++) {
        lua_pushinteger(lua, lua_Integer(result.counts[i]));
        lua_rawseti(lua, -2, lua_Integer(i) + 1);
    }
    return 3;
}

// ---- A selection ------------------------------------------------------------------------------

selection &selection_argument(lua_State *lua) {
    return argument<selection>(lua, SELECTION, 2);
}

// The flags of names in the table at `index`, if there is one.
model_flags flags_argument(lua_State *lua, int index, const trace &of) {
    model_flags flags(of.names.size(), 0);
    if (!lua_istable(lua, index)) return flags;
    lua_pushnil(lua);
    while (lua_next(lua, index)) {
        auto number = size_t(lua_tointeger(lua, -2));
        if (number < flags.size()) flags[number] = uint8_t(lua_tointeger(lua, -1));
        lua_pop(lua, 1);
    }
    return flags;
}

int select(lua_State *lua) {
    const analysis &of = analysis_argument(lua);
    static const char *const kinds[] = {"launchers", "modelled", "backward", "unified", nullptr};
    int kind = luaL_checkoption(lua, 2, nullptr, kinds);
    auto &to = push_new<selection>(lua, SELECTION, 1);
    model_flags flags = flags_argument(lua, 3, *of.of);
    switch (kind) {
    case 0: select_launchers(of, to); break;
    case 1: select_modelled(of, flags, to); break;
    case 2: select_backward(of, flags, to); break;
    default: select_unified(of, flags, to); break;
    }
    return 1;
}

int push_combos(lua_State *lua) {
    const selection &of = selection_argument(lua);
    const trace &names = *of.of->of;
    size_t rows = of.combos.size();
    auto first = [&of](size_t i) -> const instance & { return of.instances[of.combos[i].instance]; };
    auto begin = [&of](size_t i) { return of.first[of.combos[i].instance]; };
    auto end = [&of](size_t i) { return of.first[of.combos[i].instance + 1]; };
    lua_newtable(lua);
    set_integer(lua, "nested", of.nested);
    set_column(lua, "name", rows, [&](size_t i) { push_text(lua, names, of.op(first(i)).name); });
    set_column(lua, "arguments", rows, [&](size_t i) {
        uint32_t number = of.op(first(i)).arguments;
        lua_pushinteger(lua, number == NONE ? -1 : lua_Integer(number));
    });
    set_column(lua, "track", rows, [&](size_t i) { push_number_of(lua, of.op(first(i)).track); });
    set_column(lua, "kernel", rows, [&](size_t i) { push_text(lua, names, first(i).kernel); });
    auto forward = [&](size_t i) { // or the op itself
        uint32_t number = first(i).forward;
        return number == NONE ? of.op(first(i)) : names.events[number];
    };
    set_column(lua, "model_name", rows, [&](size_t i) { push_text(lua, names, forward(i).name); });
    set_column(lua, "model_arguments", rows, [&](size_t i) {
        uint32_t number = forward(i).arguments;
        lua_pushinteger(lua, number == NONE ? -1 : lua_Integer(number));
    });
    set_column(lua, "first_kernel", rows, [&](size_t i) { // by time, as the places in analysis::gpu are
        auto earliest = std::min_element(of.gpu.begin() + begin(i), of.gpu.begin() + end(i));
        bool has_one = begin(i) < end(i);
        push_text(lua, names, has_one ? of.of->at(of.of->gpu[*earliest]).name : EMPTY_TEXT);
    });
    set_column(lua, "kernels", rows, [&](size_t i) { lua_pushinteger(lua, lua_Integer(end(i) - begin(i))); });
    set_column(lua, "uid", rows, [&](size_t i) { lua_pushinteger(lua, lua_Integer(first(i).uid)); });
    set_column(lua, "count", rows, [&](size_t i) { lua_pushinteger(lua, lua_Integer(of.combos[i].count)); });
    return 1;
}

int push_kernels(lua_State *lua) {
    const selection &of = selection_argument(lua);
    auto combo = size_t(luaL_checkinteger(lua, 2) - 1);
    luaL_argcheck(lua, combo < of.combos.size(), 2, "no such combo");
    uint32_t instance = of.combos[combo].instance;
    lua_newtable(lua);
    lua_Integer count = 0;
    for (uint32_t i = of.first[instance]; i < of.first[instance + 1]; i++) {
        push_text(lua, *of.of->of, of.of->at(of.gpu_at(i)).name);
        lua_rawseti(lua, -2, ++count);
    }
    return 1;
}

// The grouping that map (2) and groups (3) say.
grouping grouping_argument(lua_State *lua, const selection &of) {
    luaL_checktype(lua, 2, LUA_TTABLE);
    lua_Integer groups = luaL_checkinteger(lua, 3);
    luaL_argcheck(lua, groups >= 0 && size_t(groups) <= of.combos.size(), 3, "more groups than combos");
    auto group_of = column<uint32_t>(lua, 2, of.combos.size(), 0); // 1-based
    for (uint32_t &group : group_of) group = group - 1 < uint32_t(groups) ? group - 1 : NONE;
    return grouped(of, group_of, uint32_t(groups));
}

void set_statistics(lua_State *lua, const std::vector<statistics> &rows) {
    auto set = [&](const char *key, auto member) {
        set_column(lua, key, rows.size(), [&](size_t i) {
            auto value = rows[i].*member;
            lua_pushnumber(lua, double(value));
        });
    };
    set("mean", &statistics::mean);
    set("median", &statistics::median);
    set("deviation", &statistics::deviation);
    set("min", &statistics::min);
    set("max", &statistics::max);
    set("sum", &statistics::sum);
    set("count", &statistics::count);
}

// Pushes the columns of the spec on top of the stack, which it takes off.
void measure_spec(lua_State *lua, const selection &of, const grouping &groups) {
    lua_rawgeti(lua, -1, 1);
    const char *what = luaL_checkstring(lua, -1);
    measured value = std::strcmp(what, "subtree") == 0     ? measured::subtree
                     : std::strcmp(what, "duration") == 0  ? measured::duration
                     : std::strcmp(what, "computing") == 0 ? measured::computing
                                                           : measured::time;
    lua_rawgeti(lua, -2, 2);
    std::vector<double> work;
    if (lua_istable(lua, -1)) work = column<double>(lua, -1, of.combos.size(), std::nan(""));
    lua_pop(lua, 3);
    std::vector<statistics> rows = measure_groups(of, groups, value, work);
    lua_createtable(lua, 0, 7);
    set_statistics(lua, rows);
}

int group(lua_State *lua) {
    const selection &of = selection_argument(lua);
    luaL_checktype(lua, 4, LUA_TTABLE);
    grouping groups = grouping_argument(lua, of);
    size_t rows = groups.size();
    auto first = [&](size_t i) -> const instance & {
        return of.instances[groups.instances[groups.first[i]]];
    };
    auto count = [&](size_t i) { return groups.first[i + 1] - groups.first[i]; };
    lua_newtable(lua);
    set_column(lua, "count", rows, [&](size_t i) { lua_pushinteger(lua, lua_Integer(count(i))); });
    set_column(lua, "uid", rows, [&](size_t i) { push_number_of(lua, count(i) ? first(i).uid : NONE); });
    set_column(lua, "combo", rows,
               [&](size_t i) { lua_pushinteger(lua, count(i) ? lua_Integer(first(i).combo) + 1 : 0); });
    for (lua_Integer i = 1; i <= lua_Integer(lua_rawlen(lua, 4)); i++) {
        lua_rawgeti(lua, 4, i);
        measure_spec(lua, of, groups);
        lua_rawseti(lua, -2, i);
    }
    return 1;
}

// Two texts for each group, as the sheets have them.
int details(lua_State *lua) {
    const selection &of = selection_argument(lua);
    grouping groups = grouping_argument(lua, of);
    std::string whole, brief;
    lua_createtable(lua, int(groups.size()), 0);
    lua_createtable(lua, int(groups.size()), 0);
    for (uint32_t i = 0; i < groups.size(); i++) {
        std::vector<kernel_detail> kernels = kernel_details(of, groups, i);
        if (kernels.empty()) continue;
        append_details(*of.of->of, kernels, whole, brief);
        lua_pushlstring(lua, whole.data(), whole.size());
        lua_rawseti(lua, -3, lua_Integer(i) + 1);
        lua_pushlstring(lua, brief.data(), brief.size());
        lua_rawseti(lua, -2, lua_Integer(i) + 1);
    }
    return 2;
}

// Of the GPU events of an instance the one that lasts longest; nullptr: it has none.
const gpu_event *longest(const selection &of, uint32_t instance) {
    const gpu_event *result = nullptr;
    for (uint32_t i = of.first[instance]; i < of.first[instance + 1]; i++) {
        const gpu_event &one = of.gpu_at(i);
        if (result == nullptr || one.duration > result->duration) result = &one;
    }
    return result;
}

double last_end(const selection &of, uint32_t instance) {
    double end = of.gpu_at(of.first[instance]).end;
    for (uint32_t i = of.first[instance]; i < of.first[instance + 1]; i++)
        end = std::max(end, of.gpu_at(i).end);
    return end;
}

int instances(lua_State *lua) {
    const selection &of = selection_argument(lua);
    lua_Integer group = luaL_checkinteger(lua, 3);
    std::vector<uint32_t> chosen;
    auto group_of = column<uint32_t>(lua, 2, of.combos.size(), 0);
    for (uint32_t i = 0; i < of.instances.size(); i++) {
        if (group_of[of.instances[i].combo] != uint32_t(group)) continue;
        if (of.first[i] < of.first[i + 1]) chosen.push_back(i);
    }
    auto set = [&](const char *key, auto value) {
        set_column(lua, key, chosen.size(), [&](size_t i) { lua_pushnumber(lua, value(chosen[i])); });
    };
    lua_newtable(lua);
    set_column(lua, "uid", chosen.size(),
               [&](size_t i) { lua_pushinteger(lua, lua_Integer(of.instances[chosen[i]].uid)); });
    set("start", [&](uint32_t i) { return of.gpu_at(of.first[i]).start; });
    set("stop", [&](uint32_t i) { return last_end(of, i); });
    set("time", [&](uint32_t i) { return of.instances[i].time; });
    set("op_start", [&](uint32_t i) { return of.op(of.instances[i]).start; });
    set("kernel_start", [&](uint32_t i) { return longest(of, i)->start; });
    set("kernel_time", [&](uint32_t i) { return longest(of, i)->duration; });
    set_column(lua, "kernel", chosen.size(),
               [&](size_t i) { push_text(lua, *of.of->of, of.of->at(*longest(of, chosen[i])).name); });
    return 1;
}

void make_type(lua_State *lua, const char *name, const luaL_Reg *methods, lua_CFunction collect) {
    if (!luaL_newmetatable(lua, name)) {
        lua_pop(lua, 1);
        return;
    }
    lua_pushcfunction(lua, collect);
    lua_setfield(lua, -2, "__gc");
    lua_newtable(lua);
    luaL_setfuncs(lua, methods, 0);
    lua_setfield(lua, -2, "__index");
    lua_pop(lua, 1);
}

void make_types(lua_State *lua) {
    static const luaL_Reg of_analysis[] = {
        {"counts", guarded<counts>},
        {"timeline", guarded<push_timeline>},
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
        {"select", guarded<select>},
        {nullptr, nullptr},
    };
    static const luaL_Reg of_selection[] = {
        {"combos", guarded<push_combos>}, {"kernels", guarded<push_kernels>}, {"group", guarded<group>},
        {"details", guarded<details>},    {"instances", guarded<instances>},  {nullptr, nullptr},
    };
    make_type(lua, ANALYSIS, of_analysis, collect<analysis>);
    make_type(lua, SELECTION, of_selection, collect<selection>);
}

int make_analysis(lua_State *lua) {
    const trace &of = check_trace(lua, 1);
    if (lua_getiuservalue(lua, 1, 1) == LUA_TUSERDATA) return 1;
    make_types(lua);
    auto &to = push_new<analysis>(lua, ANALYSIS, 1);
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
