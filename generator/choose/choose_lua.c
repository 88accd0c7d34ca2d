// require "core.choose": choices for Lua. A failure gives nil, message.
//
// - classes(rows, slice, options): see classes.c.
// - rule = { right = a loss up to this is right, confidence =, expected_loss =, margin = of a choice that is
//   not uncertain, tolerance = }; see select.h.
// - along(points, regret) gives the strategy of each of the ascending points, { { badness = (NAME -> expected
//   loss) }... }: the fewest borders, by the rule of select.c; false where a point has no strategy.
// - select(rows, options) gives a table. Options:
//     candidates    names of strategies; nil: all that may win
//     loopback      whether loopback rows compete
//     least         whether the least of repeated rows counts; otherwise repeated rows are an error
//     lookup        the lookup rule of the reader, which makes the bins: "nearest", "floor", "log2" or
//                   "exact" (default)
//     dtype         only cells of this data type get a choice; the others count as unmeasured
//     cells         { { world_size =, dtype =, op =, mode =, fusions = {}, hidden_sizes = {},
//                   num_tokens = {} }... }: cells that the table has in addition to those of the rows
//     only_cells    rows between `cells` make no cells, but count for the bins that they lie in
//     workload      { { hidden_size =, num_tokens =, weight = }... }
//     derived       { { world_size =, ..., num_tokens =, strategy =, placement =, time_us = }... }: times
//                   that were not measured; those with predicted = true, low_us =, high_us = count in planes
//                   without rows, too
//     untried       { { world_size =, ..., num_tokens =, strategy = }... }: strategies that may do a cell,
//                   and have no time at it or near it; they win nothing, but make other choices uncertain
//     incumbent     a table that keeps the choices that lose hardly more than the best
//     judged        { old, new }: two tables; the cells of the result have the losses of their choices
//     same_bits_as  a strategy: only strategies with the same bits may win
//     stable        each row of token counts keeps to one class of equal bits: that of the choices of this
//                   table or, if `true`, the one that loses least
//     regret        the loss that a cell may have for the sake of fewer borders, as a share (default: 0)
#include <lauxlib.h>
#include <lua.h>
#include <math.h>

#include "base/bindings.h"
#include "choose.h"
#include "classes.h"
#include "estimate/losses.h"
#include "rows/rows_lua.h"
#include "select.h"
#include "select_options.h"
#include "table/table_lua.h"

static void take_tables(lua_State *lua, struct selection *selection) {
    if (lua_getfield(lua, 2, "incumbent") != LUA_TNIL) selection->incumbent = table_lua_check(lua, -1);
    lua_pop(lua, 1);
    if (lua_getfield(lua, 2, "stable") == LUA_TUSERDATA) selection->stable_as = table_lua_check(lua, -1);
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
    return *table != NULL ? 1 : push_failed(lua, problem.text);
}

// ---- choices along an axis

static double take_number(lua_State *lua, int index, const char *field, double otherwise) {
    lua_getfield(lua, index, field);
    double value = lua_type(lua, -1) == LUA_TNUMBER ? lua_tonumber(lua, -1) : otherwise;
    lua_pop(lua, 1);
    return value;
}

// The options of the point on top of the stack, in the order of the list of strategies.
static size_t take_options(lua_State *lua, const struct lists *lists, struct border_option *options) {
    size_t count = 0;
    lua_getfield(lua, -1, "badness");
    luaL_checktype(lua, -1, LUA_TTABLE);
    for (size_t s = 0; s < lists->strategies.count; s++) {
        double badness = take_number(lua, -1, lists->strategies.name[s], NAN);
        if (isfinite(badness)) options[count++] = (struct border_option){badness, (uint8_t)s, false};
    }
    lua_pop(lua, 1);
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
        if (points[i].count > 0) select_allow(own, points[i].count, NAME_NONE, regret, false);
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
    static const luaL_Reg functions[] = {
        {"along", lua_along}, {"classes", choose_lua_classes}, {"select", lua_select}, {NULL, NULL}};
    luaL_newlib(lua, functions);
    lua_createtable(lua, 0, 5);
    set_number(lua, "right", LOSSES_RIGHT);
    set_number(lua, "confidence", SELECT_CONFIDENCE);
    set_number(lua, "expected_loss", SELECT_EXPECTED_LOSS);
    set_number(lua, "margin", SELECT_MARGIN);
    set_number(lua, "tolerance", SELECT_TOLERANCE);
    lua_setfield(lua, -2, "rule");
    return 1;
}
