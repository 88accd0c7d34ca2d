// Selections for Lua.
//
//   A:select(kind, models) -> S
//       kind: "launchers", "modelled", "backward" or "unified"; models[number of a name] = { sheet, from 1,
//       has_backward, outermost }: op_model in selection.h
//   S:combos() -> columns, a row for each combo, and nested, a number
//       { name, arguments, track, kernel, model_name, model_arguments, first_kernel, kernels, uid, count };
//       arguments are -1 if there are none; model_...: of the forward op, if this is a backward;
//       first_kernel: the one that decides the op's category (analysis.h), or ""
//   S:kernels(combo) -> { name, ... }                                  in the order of the selection
//   S:group(map, groups, specs) -> columns { count, uid, combo }, and at 1, 2, ... for each spec columns
//       { mean, median, deviation, rounding, min, max, sum, count }. map[combo] = group, or nil: left out;
//       spec = { "time" | "computing" | "subtree" | "duration", work }, work[combo]: the value is work / time
//   S:details(map, groups) -> columns kernel_details_summary, trunc_kernel_details; nil: no kernels
//   S:instances(map, group) -> columns, a row for each instance
//       { uid, start, stop, time, kernel }: its first kernel's start, its last one's end, its longest kernel
#include <algorithm>
#include <cmath>
#include <cstring>

#include "groups.h"
#include "lua_types.h"
#include "selection.h"

namespace trace {

namespace {

selection &selection_argument(lua_State *lua) {
    return argument<selection>(lua, SELECTION_TYPE, 2);
}

// Whether the field `key` of the table on top is true.
bool is_set(lua_State *lua, const char *key) {
    lua_getfield(lua, -1, key);
    bool value = lua_toboolean(lua, -1);
    lua_pop(lua, 1);
    return value;
}

// The models in the table at `index`, if there is one.
op_models models_argument(lua_State *lua, int index, const trace &of) {
    op_models models(of.names.size());
    if (!lua_istable(lua, index)) return models;
    lua_pushnil(lua);
    while (lua_next(lua, index)) {
        auto number = size_t(lua_tointeger(lua, -2));
        luaL_checktype(lua, -1, LUA_TTABLE);
        lua_getfield(lua, -1, "sheet");
        auto sheet = uint8_t(lua_tointeger(lua, -1));
        lua_pop(lua, 1);
        if (number < models.size())
            models[number] = {sheet, is_set(lua, "has_backward"), is_set(lua, "outermost")};
        lua_pop(lua, 1);
    }
    return models;
}

int select(lua_State *lua) {
    const analysis &of = check_analysis(lua);
    static const char *const kinds[] = {"launchers", "modelled", "backward", "unified", nullptr};
    int kind = luaL_checkoption(lua, 2, nullptr, kinds);
    auto &to = push_new<selection>(lua, SELECTION_TYPE, 1);
    op_models models = models_argument(lua, 3, *of.of);
    switch (kind) {
    case 0: select_launchers(of, to); break;
    case 1: select_modelled(of, models, to); break;
    case 2: select_backward(of, models, to); break;
    default: select_unified(of, models, to); break;
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
    set_list(lua, "name", rows, [&](size_t i) { push_text(lua, names, of.op(first(i)).name); });
    set_list(lua, "arguments", rows, [&](size_t i) {
        uint32_t number = of.op(first(i)).arguments;
        lua_pushinteger(lua, number == NONE ? -1 : lua_Integer(number));
    });
    set_list(lua, "track", rows, [&](size_t i) { push_number_of(lua, of.op(first(i)).track); });
    set_list(lua, "kernel", rows, [&](size_t i) { push_text(lua, names, first(i).kernel); });
    auto forward = [&](size_t i) { // or the op itself
        uint32_t number = first(i).forward;
        return number == NONE ? of.op(first(i)) : names.events[number];
    };
    set_list(lua, "model_name", rows, [&](size_t i) { push_text(lua, names, forward(i).name); });
    set_list(lua, "model_arguments", rows, [&](size_t i) {
        uint32_t number = forward(i).arguments;
        lua_pushinteger(lua, number == NONE ? -1 : lua_Integer(number));
    });
    set_list(lua, "first_kernel", rows,
             [&](size_t i) { push_text(lua, names, of.of->first_kernels[first(i).op]); });
    set_list(lua, "kernels", rows, [&](size_t i) { lua_pushinteger(lua, lua_Integer(end(i) - begin(i))); });
    set_list(lua, "uid", rows, [&](size_t i) { lua_pushinteger(lua, lua_Integer(first(i).uid)); });
    set_list(lua, "count", rows, [&](size_t i) { lua_pushinteger(lua, lua_Integer(of.combos[i].count)); });
    return 1;
}

int push_kernels(lua_State *lua) {
    const selection &of = selection_argument(lua);
    auto combo = size_t(luaL_checkinteger(lua, 2) - 1);
    luaL_argcheck(lua, combo < of.combos.size(), 2, "no such combo");
    uint32_t instance = of.combos[combo].instance;
    push_list(lua, of.first[instance + 1] - of.first[instance], [&](size_t i) {
        push_text(lua, *of.of->of, of.of->at(of.gpu_at(of.first[instance] + i)).name);
    });
    return 1;
}

// The grouping of map (2) and groups (3).
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
        set_list(lua, key, rows.size(), [&](size_t i) {
            auto value = rows[i].*member;
            lua_pushnumber(lua, double(value));
        });
    };
    set("mean", &statistics::mean);
    set("median", &statistics::median);
    set("deviation", &statistics::deviation);
    set("rounding", &statistics::rounding);
    set("min", &statistics::min);
    set("max", &statistics::max);
    set("sum", &statistics::sum);
    set("count", &statistics::count);
}

// Pushes the columns of the spec on top of the stack; pops the spec.
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
    set_list(lua, "count", rows, [&](size_t i) { lua_pushinteger(lua, lua_Integer(count(i))); });
    set_list(lua, "uid", rows, [&](size_t i) { push_number_of(lua, count(i) ? first(i).uid : NONE); });
    set_list(lua, "combo", rows,
             [&](size_t i) { lua_pushinteger(lua, count(i) ? lua_Integer(first(i).combo) + 1 : 0); });
    for (lua_Integer i = 1; i <= lua_Integer(lua_rawlen(lua, 4)); i++) {
        lua_rawgeti(lua, 4, i);
        measure_spec(lua, of, groups);
        lua_rawseti(lua, -2, i);
    }
    return 1;
}

// Two texts for each group, in the form of the sheets.
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
        push_text(lua, whole);
        lua_rawseti(lua, -3, lua_Integer(i) + 1);
        push_text(lua, brief);
        lua_rawseti(lua, -2, lua_Integer(i) + 1);
    }
    return 2;
}

// The longest GPU event of an instance; nullptr: it has none.
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
        set_list(lua, key, chosen.size(), [&](size_t i) { lua_pushnumber(lua, value(chosen[i])); });
    };
    lua_newtable(lua);
    set_list(lua, "uid", chosen.size(),
             [&](size_t i) { lua_pushinteger(lua, lua_Integer(of.instances[chosen[i]].uid)); });
    set("start", [&](uint32_t i) { return of.gpu_at(of.first[i]).start; });
    set("stop", [&](uint32_t i) { return last_end(of, i); });
    set("time", [&](uint32_t i) { return of.instances[i].time; });
    set_list(lua, "kernel", chosen.size(),
             [&](size_t i) { push_text(lua, *of.of->of, of.of->at(*longest(of, chosen[i])).name); });
    return 1;
}

} // namespace

int lua_select(lua_State *lua) {
    return guarded<select>(lua);
}

void make_selection_type(lua_State *lua) {
    static const luaL_Reg methods[] = {
        {"combos", guarded<push_combos>}, {"kernels", guarded<push_kernels>}, {"group", guarded<group>},
        {"details", guarded<details>},    {"instances", guarded<instances>},  {nullptr, nullptr},
    };
    make_type<selection>(lua, SELECTION_TYPE, methods);
}

} // namespace trace
