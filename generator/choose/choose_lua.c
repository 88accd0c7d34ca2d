// require "core.choose": choices for Lua. A failure gives nil, message.
//
// - classes(rows, slice, options): see classes.c.
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
//     incumbent     a table whose choices stay if they are within noise
//     same_bits_as  a strategy: only strategies with the same bits may win
//     regret        the loss that a cell may have for the sake of fewer borders, as a share (default: 0)
#include <lauxlib.h>
#include <lua.h>

#include "choose.h"
#include "classes.h"
#include "rows/rows_lua.h"
#include "select_options.h"
#include "table/table_lua.h"

static void take_incumbent(lua_State *lua, struct selection *selection) {
    if (lua_getfield(lua, 2, "incumbent") != LUA_TNIL) selection->incumbent = table_lua_check(lua, -1);
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
    take_incumbent(lua, &selection);
    struct table **table = table_lua_push(lua);
    *table = table_select(rows, &selection, lists, &problem);
    if (*table != NULL) return 1;
    lua_pushnil(lua);
    lua_pushstring(lua, problem.text);
    return 2;
}

int luaopen_core_choose(lua_State *lua);
int luaopen_core_choose(lua_State *lua) {
    static const luaL_Reg functions[] = {
        {"classes", choose_lua_classes}, {"select", lua_select}, {NULL, NULL}};
    luaL_newlib(lua, functions);
    return 1;
}
