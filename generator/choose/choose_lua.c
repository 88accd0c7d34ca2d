// require "core.choose": choices for Lua. A failure gives nil, message.
//
// - classes(rows, slice, options): see classes.c.
// - losses(shapes) gives two tables, NAME -> share, of the strategies that have a time at each of the shapes,
//   { { NAME = time }... }: the share of the best time that it loses, and how much of that is beyond noise
//   (select.c), as means over the shapes. A time is { time_us =, low_us =, high_us = (of the interval of the
//   median), launches = (a list of times, false where it was not measured) } or, of a time that was derived,
//   { time_us =, spread =, noise = }, both in log2; false and nil mean unknown.
// - along(points, regret) gives the strategy of each of the ascending points, { { badness =, excess = }... }
//   as losses gives them: the fewest borders, by the rule of select.c; false where a point has no strategy.
// - select(rows, options) gives a table. Options:
//     candidates    names of strategies; nil: all that may win
//     loopback      whether loopback rows compete
//     least         whether the least of repeated rows counts; otherwise repeated rows are an error
//     lookup        the lookup rule of the reader, which makes the bins: "nearest", "floor", "log2" or
//                   "exact" (default)
//     cells         { { world_size =, dtype =, op =, mode =, fusions = {}, hidden_sizes = {},
//                   num_tokens = {} }... }: cells that the table has in addition to those of the rows
//     only_cells    rows between `cells` make no cells, but count for the bins that they lie in
//     workload      { { hidden_size =, num_tokens =, weight = }... }
//     derived       { { world_size =, ..., num_tokens =, strategy =, time_us =, spread =, noise = }... }:
//                   times that were not measured
//     incumbent     a table that keeps its choices within noise
//     judged        { old, new }: two tables, what the choices of which lose is in the cells of the result
//     same_bits_as  a strategy: only strategies with the same bits may win
//     regret        the loss that a cell may have for the sake of fewer borders, as a share (default: 0)
#include <lauxlib.h>
#include <lua.h>
#include <math.h>

#include "choose.h"
#include "classes.h"
#include "rows/rows_lua.h"
#include "select.h"
#include "select_options.h"
#include "table/table_lua.h"

static void take_tables(lua_State *lua, struct selection *selection) {
    if (lua_getfield(lua, 2, "incumbent") != LUA_TNIL) selection->incumbent = table_lua_check(lua, -1);
    lua_pop(lua, 1);
    if (lua_getfield(lua, 2, "judged") != LUA_TNIL) {
        for (int i = 0; i < 2; i++, lua_pop(lua, 1)) {
            lua_geti(lua, -1, i + 1);
            selection->judged[i] = table_lua_check(lua, -1);
        }
    }
    lua_pop(lua, 1);
}

static int lua_select(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    const struct lists *lists = lists_of(lua);
    struct selection selection;
    struct problem problem;
    lua_settop(lua, 2);
    if (lua_isnil(lua, 2)) {
        lua_newtable(lua);
        lua_replace(lua, 2);
    }
    select_options_take(lua, 2, lists, &selection);
    take_tables(lua, &selection);
    struct table **table = table_lua_push(lua);
    *table = table_select(rows, &selection, lists, &problem);
    if (*table != NULL) return 1;
    lua_pushnil(lua);
    lua_pushstring(lua, problem.text);
    return 2;
}

// ---- choices along an axis

static double take_number(lua_State *lua, int index, const char *field, double otherwise) {
    lua_getfield(lua, index, field);
    double value = lua_type(lua, -1) == LUA_TNUMBER ? lua_tonumber(lua, -1) : otherwise;
    lua_pop(lua, 1);
    return value;
}

static size_t take_launches(lua_State *lua, int index, double launch_us[LAUNCHES_MAX]) {
    size_t count = 0;
    if (lua_getfield(lua, index, "launches") == LUA_TTABLE) {
        count = (size_t)luaL_len(lua, -1);
        luaL_argcheck(lua, count <= LAUNCHES_MAX, index, "too many launches");
        for (size_t i = 0; i < count; i++) {
            bool is_time = lua_geti(lua, -1, (lua_Integer)i + 1) == LUA_TNUMBER;
            launch_us[i] = is_time ? lua_tonumber(lua, -1) : NAN;
            lua_pop(lua, 1);
        }
    }
    lua_pop(lua, 1);
    return count;
}

static struct candidate take_candidate(lua_State *lua, int index, double launch_us[LAUNCHES_MAX]) {
    luaL_checktype(lua, index, LUA_TTABLE);
    return (struct candidate){
        .level = log2(take_number(lua, index, "time_us", NAN)),
        .low_us = take_number(lua, index, "low_us", NAN),
        .high_us = take_number(lua, index, "high_us", NAN),
        .launch_us = launch_us,
        .launches = take_launches(lua, index, launch_us),
        .spread = take_number(lua, index, "spread", 0),
        .noise = take_number(lua, index, "noise", 0),
    };
}

// Sums over shapes, by strategy.
struct loss_sums {
    double badness[NAMES_MAX], excess[NAMES_MAX];
    size_t shapes[NAMES_MAX];
};

// Adds the losses at the shape on top of the stack.
static void add_shape(lua_State *lua, const struct lists *lists, struct loss_sums *sums) {
    struct candidate candidates[NAMES_MAX];
    double launch_us[NAMES_MAX][LAUNCHES_MAX], time_us[NAMES_MAX], least_us = INFINITY;
    size_t count = 0;
    luaL_checktype(lua, -1, LUA_TTABLE);
    for (size_t s = 0; s < lists->strategies.count; s++, lua_pop(lua, 1)) {
        if (lua_getfield(lua, -1, lists->strategies.name[s]) == LUA_TNIL) continue;
        candidates[count] = take_candidate(lua, lua_gettop(lua), launch_us[count]);
        candidates[count].strategy = (uint8_t)s;
        time_us[count] = take_number(lua, -1, "time_us", NAN);
        least_us = fmin(least_us, time_us[count++]);
    }
    for (size_t i = 0; i < count; i++) candidates[i].badness = time_us[i] / least_us - 1;
    const struct candidate *best = &candidates[count == 0 ? 0 : select_best(candidates, count)];
    for (size_t i = 0; i < count; i++) {
        sums->badness[candidates[i].strategy] += candidates[i].badness;
        sums->excess[candidates[i].strategy] += select_excess(best, &candidates[i]);
        sums->shapes[candidates[i].strategy]++;
    }
}

static void push_means(lua_State *lua, const struct lists *lists, const struct loss_sums *sums,
                       const double *sum, size_t shapes) {
    lua_newtable(lua);
    for (size_t s = 0; s < lists->strategies.count; s++) {
        if (sums->shapes[s] != shapes) continue;
        lua_pushnumber(lua, sum[s] / (double)shapes);
        lua_setfield(lua, -2, lists->strategies.name[s]);
    }
}

static int lua_losses(lua_State *lua) {
    const struct lists *lists = lists_of(lua);
    struct loss_sums sums = {{0}, {0}, {0}};
    luaL_checktype(lua, 1, LUA_TTABLE);
    size_t shapes = (size_t)luaL_len(lua, 1);
    luaL_argcheck(lua, shapes > 0, 1, "at least one shape is required");
    for (size_t i = 0; i < shapes; i++, lua_pop(lua, 1)) {
        lua_geti(lua, 1, (lua_Integer)i + 1);
        add_shape(lua, lists, &sums);
    }
    push_means(lua, lists, &sums, sums.badness, shapes);
    push_means(lua, lists, &sums, sums.excess, shapes);
    return 2;
}

// The options of the point on top of the stack, in the order of the list of strategies.
static size_t take_options(lua_State *lua, const struct lists *lists, struct border_option *options) {
    size_t count = 0;
    lua_getfield(lua, -1, "badness");
    lua_getfield(lua, -2, "excess");
    luaL_checktype(lua, -1, LUA_TTABLE);
    luaL_checktype(lua, -2, LUA_TTABLE);
    for (size_t s = 0; s < lists->strategies.count; s++) {
        const char *name = lists->strategies.name[s];
        double badness = take_number(lua, -2, name, NAN);
        if (!isfinite(badness)) continue;
        options[count++] = (struct border_option){
            .badness = badness, .strategy = (uint8_t)s, .excess = take_number(lua, -1, name, badness)};
    }
    lua_pop(lua, 2);
    return count;
}

static int lua_along(lua_State *lua) {
    const struct lists *lists = lists_of(lua);
    double regret = luaL_checknumber(lua, 2);
    luaL_checktype(lua, 1, LUA_TTABLE);
    size_t count = (size_t)luaL_len(lua, 1), width = lists->strategies.count;
    struct border_option *options = lua_newuserdatauv(lua, (count * width + 1) * sizeof *options, 0);
    struct border_point *points = lua_newuserdatauv(lua, (count + 1) * sizeof *points, 0);
    for (size_t i = 0; i < count; i++, lua_pop(lua, 1)) {
        lua_geti(lua, 1, (lua_Integer)i + 1);
        struct border_option *own = options + i * width;
        points[i] = (struct border_point){.options = own, .count = take_options(lua, lists, own)};
        if (points[i].count > 0) select_allow(own, points[i].count, NAME_NONE, regret);
    }
    if (!borders_choose(points, count)) return luaL_error(lua, "out of memory");
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        if (points[i].chosen == BORDER_NONE) {
            lua_pushboolean(lua, false);
        } else {
            lua_pushstring(lua, lists->strategies.name[points[i].options[points[i].chosen].strategy]);
        }
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
    return 1;
}

int luaopen_core_choose(lua_State *lua);
int luaopen_core_choose(lua_State *lua) {
    static const luaL_Reg functions[] = {{"along", lua_along},
                                         {"classes", choose_lua_classes},
                                         {"losses", lua_losses},
                                         {"select", lua_select},
                                         {NULL, NULL}};
    luaL_newlib(lua, functions);
    return 1;
}
