// require "core.history": the arithmetic of a history, for Lua. Numbers count from 1; unmeasured levels are
// false.
//
//   levels(times) -> { cell, strategy, level, ... }
//                       the levels of the strategies of cells without effects on a whole launch
//                       (estimate/contrasts.h), from { cell, launch, strategy, level, ... }, sorted by cell,
//                       then by launch; levels are log2 of microseconds
//   effects(runs, { { group of each level of groups..., cell }... }) -> effects of these series (effects.h)
//     effects:set(run, { series, level, ... })    levels of a run
//     effects:solve()
//     effects:subtract({ value of each run })     subtracts these from the effects of all groups
//     effects:of(level, group) -> { value of each run }
//     effects:rest(series) -> { value of each run }
//   changes({ value of each run }, { shortest =, clips =, threshold =, p = })
//     -> { { at = run, p =, parent = index, or nil }... }     see segments.h
#include <lauxlib.h>
#include <lua.h>
#include <math.h>

#include "base/bindings.h"
#include "effects.h"
#include "estimate/contrasts.h"
#include "segments.h"

#define EFFECTS_TYPE "gentables.effects"

// Memory for `count` numbers, which the garbage collector frees.
static double *new_numbers(lua_State *lua, size_t count) {
    return lua_newuserdatauv(lua, (count + 1) * sizeof(double), 0);
}

// Element `index` of the list at `list`, or `otherwise` where that is false or nil.
static double number_at(lua_State *lua, int list, size_t index, double otherwise) {
    double value = lua_geti(lua, list, (lua_Integer)index) == LUA_TNUMBER ? lua_tonumber(lua, -1) : otherwise;
    lua_pop(lua, 1);
    return value;
}

static void push_values(lua_State *lua, const double *values, size_t count) {
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        if (isnan(values[i])) {
            lua_pushboolean(lua, 0);
        } else {
            lua_pushnumber(lua, values[i]);
        }
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
}

// ---- levels ------------------------------------------------------------------------------------

enum { TIME_FIELDS = 4 };

static size_t check_times(lua_State *lua, struct visit_time **times) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    size_t count = (size_t)luaL_len(lua, 1) / TIME_FIELDS;
    *times = lua_newuserdatauv(lua, (count + 1) * sizeof **times, 0);
    for (size_t i = 0; i < count; i++) {
        size_t at = TIME_FIELDS * i + 1;
        double strategy = number_at(lua, 1, at + 2, -1);
        luaL_argcheck(lua, strategy >= 0 && strategy < CONTRASTS_STRATEGIES_MAX, 1, "too many strategies");
        (*times)[i] =
            (struct visit_time){(uint32_t)number_at(lua, 1, at, 0), (uint32_t)number_at(lua, 1, at + 1, 0),
                                (uint8_t)strategy, number_at(lua, 1, at + 3, 0)};
    }
    return count;
}

static void push_cell(lua_State *lua, uint32_t cell, const struct cell_levels *levels) {
    for (size_t s = 0; s < levels->count; s++) {
        double fields[] = {cell, levels->strategy[s], levels->level[s]};
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
            lua_pushnumber(lua, fields[i]);
            lua_seti(lua, -2, luaL_len(lua, -2) + 1);
        }
    }
}

static int lua_levels(lua_State *lua) {
    struct visit_time *times;
    size_t count = check_times(lua, &times);
    double noise[CONTRASTS_STRATEGIES_MAX];
    if (!contrasts_noise(times, count, CONTRASTS_STRATEGIES_MAX, noise))
        return luaL_error(lua, "out of memory");
    lua_newtable(lua);
    for (size_t from = 0; from < count;) {
        size_t to = contrasts_end_of_cell(times, count, from);
        struct cell_levels levels;
        if (!contrasts_levels(times + from, to - from, noise, &levels))
            return luaL_error(lua, "out of memory");
        push_cell(lua, times[from].cell, &levels);
        contrasts_free(&levels);
        from = to;
    }
    return 1;
}

// ---- effects -----------------------------------------------------------------------------------

static struct effects *check_effects(lua_State *lua) {
    return *(struct effects **)luaL_checkudata(lua, 1, EFFECTS_TYPE);
}

static int lua_free(lua_State *lua) {
    struct effects **held = luaL_checkudata(lua, 1, EFFECTS_TYPE);
    effects_free(*held);
    *held = NULL;
    return 0;
}

// The integer argument `index`, from 1 to `most`, less 1.
static size_t check_index(lua_State *lua, int index, size_t most) {
    lua_Integer value = luaL_checkinteger(lua, index);
    luaL_argcheck(lua, value >= 1 && (size_t)value <= most, index, "out of range");
    return (size_t)value - 1;
}

static int lua_effects(lua_State *lua) {
    lua_Integer runs = luaL_checkinteger(lua, 1);
    luaL_checktype(lua, 2, LUA_TTABLE);
    size_t count = (size_t)luaL_len(lua, 2);
    luaL_argcheck(lua, runs >= 1, 1, "out of range");
    struct effects **held = lua_newuserdatauv(lua, sizeof *held, 0);
    *held = NULL;
    luaL_setmetatable(lua, EFFECTS_TYPE);
    struct effects_series *series = lua_newuserdatauv(lua, (count + 1) * sizeof *series, 0);
    for (size_t i = 0; i < count; i++) {
        lua_geti(lua, 2, (lua_Integer)i + 1);
        for (size_t level = 0; level < EFFECTS_LEVELS; level++) {
            series[i].group[level] = (size_t)number_at(lua, -1, level + 1, 1) - 1;
        }
        series[i].cell = (size_t)number_at(lua, -1, EFFECTS_LEVELS + 1, 1);
        lua_pop(lua, 1);
    }
    *held = effects_new((size_t)runs, count, series);
    if (*held == NULL) return luaL_error(lua, "out of memory");
    lua_pop(lua, 1);
    return 1;
}

static int lua_set(lua_State *lua) {
    struct effects *effects = check_effects(lua);
    size_t run = check_index(lua, 2, effects->runs), fields = (size_t)luaL_len(lua, 3);
    for (size_t i = 1; i + 1 <= fields; i += 2) {
        size_t series = (size_t)number_at(lua, 3, i, 0) - 1;
        luaL_argcheck(lua, series < effects->count, 3, "no such series");
        effects->levels[series * effects->runs + run] = number_at(lua, 3, i + 1, NAN);
    }
    return 0;
}

static int lua_solve(lua_State *lua) {
    return effects_solve(check_effects(lua)) ? 0 : luaL_error(lua, "out of memory");
}

static int lua_subtract(lua_State *lua) {
    struct effects *effects = check_effects(lua);
    for (size_t run = 0; run < effects->runs; run++) {
        double value = number_at(lua, 2, run + 1, 0);
        for (size_t level = 0; level < EFFECTS_LEVELS; level++) {
            for (size_t group = 0; group < effects->groups[level]; group++) {
                effects->effect[level][group * effects->runs + run] -= value;
            }
        }
    }
    return 0;
}

static int lua_of(lua_State *lua) {
    struct effects *effects = check_effects(lua);
    size_t level = check_index(lua, 2, EFFECTS_LEVELS);
    size_t group = check_index(lua, 3, effects->groups[level]);
    push_values(lua, effects->effect[level] + group * effects->runs, effects->runs);
    return 1;
}

static int lua_rest(lua_State *lua) {
    struct effects *effects = check_effects(lua);
    size_t series = check_index(lua, 2, effects->count);
    double *values = new_numbers(lua, effects->runs);
    effects_rest(effects, series, values);
    push_values(lua, values, effects->runs);
    return 1;
}

// ---- changes -----------------------------------------------------------------------------------

static int lua_changes(lua_State *lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_checktype(lua, 2, LUA_TTABLE);
    struct segments_options options = {.shortest = (size_t)field_number(lua, 2, "shortest"),
                                       .clips = field_boolean(lua, 2, "clips"),
                                       .threshold = field_number(lua, 2, "threshold"),
                                       .p = field_number(lua, 2, "p")};
    luaL_argcheck(lua, options.shortest >= 1 && options.threshold > 0, 2, "out of range");
    size_t runs = (size_t)luaL_len(lua, 1), count = 0;
    double *levels = new_numbers(lua, runs), *work = new_numbers(lua, 3 * runs + 2);
    size_t *run_of = lua_newuserdatauv(lua, (runs + 1) * sizeof *run_of, 0);
    for (size_t run = 1; run <= runs; run++) {
        double level = number_at(lua, 1, run, NAN);
        if (!isnan(level)) levels[count] = level, run_of[count++] = run;
    }
    struct segments_change changes[SEGMENTS_MAX];
    size_t found = segments_find(levels, count, &options, work, changes);
    lua_createtable(lua, (int)found, 0);
    for (size_t i = 0; i < found; i++) {
        lua_createtable(lua, 0, 3);
        set_integer(lua, "at", (lua_Integer)run_of[changes[i].at]);
        set_number(lua, "p", changes[i].p);
        if (changes[i].parent > 0) set_integer(lua, "parent", (lua_Integer)changes[i].parent);
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
    return 1;
}

int luaopen_core_history(lua_State *lua);
int luaopen_core_history(lua_State *lua) {
    static const luaL_Reg methods[] = {{"set", lua_set}, {"solve", lua_solve}, {"subtract", lua_subtract},
                                       {"of", lua_of},   {"rest", lua_rest},   {"__gc", lua_free},
                                       {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"levels", lua_levels}, {"effects", lua_effects}, {"changes", lua_changes}, {NULL, NULL}};
    make_type(lua, EFFECTS_TYPE, methods);
    luaL_newlib(lua, functions);
    return 1;
}
