// require "core.borders": the fewest borders along an axis, for Lua; see borders.c.
//
// - choose(points, names) gives the name chosen for each point, or false where none is allowed. points =
//   { { badness = { NAME = share lost }, allowed = { NAME = true } }... }, ascending; names = all names there
//   are, in the order in which equal ones win.
#include <lauxlib.h>
#include <lua.h>
#include <math.h>

#include "borders.h"

// The options of the point at the top of the stack, in the order of `names` at index 2.
static size_t take_options(lua_State *lua, size_t names, struct border_option *options) {
    size_t count = 0;
    lua_getfield(lua, -1, "badness");
    lua_getfield(lua, -2, "allowed");
    luaL_checktype(lua, -1, LUA_TTABLE);
    luaL_checktype(lua, -2, LUA_TTABLE);
    for (size_t i = 0; i < names; i++) {
        lua_geti(lua, 2, (lua_Integer)i + 1);
        lua_pushvalue(lua, -1);
        bool allowed = lua_gettable(lua, -3) != LUA_TNIL && lua_toboolean(lua, -1);
        lua_pop(lua, 1);
        if (lua_gettable(lua, -3) == LUA_TNUMBER && isfinite(lua_tonumber(lua, -1))) {
            options[count++] = (struct border_option){lua_tonumber(lua, -1), (uint8_t)i, allowed};
        }
        lua_pop(lua, 1);
    }
    lua_pop(lua, 2);
    return count;
}

static int lua_choose(lua_State *lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_checktype(lua, 2, LUA_TTABLE);
    size_t count = (size_t)luaL_len(lua, 1), names = (size_t)luaL_len(lua, 2);
    luaL_argcheck(lua, names <= UINT8_MAX, 2, "too many names");
    struct border_option *options = lua_newuserdatauv(lua, (count * names + 1) * sizeof *options, 0);
    struct border_point *points = lua_newuserdatauv(lua, (count + 1) * sizeof *points, 0);
    for (size_t i = 0; i < count; i++) {
        lua_geti(lua, 1, (lua_Integer)i + 1);
        points[i].options = options + i * names;
        points[i].count = take_options(lua, names, options + i * names);
        lua_pop(lua, 1);
    }
    if (!borders_choose(points, count)) return luaL_error(lua, "out of memory");
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        if (points[i].chosen == BORDER_NONE) {
            lua_pushboolean(lua, false);
        } else {
            lua_geti(lua, 2, (lua_Integer)points[i].options[points[i].chosen].strategy + 1);
        }
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
    return 1;
}

int luaopen_core_borders(lua_State *lua);
int luaopen_core_borders(lua_State *lua) {
    static const luaL_Reg functions[] = {{"choose", lua_choose}, {NULL, NULL}};
    luaL_newlib(lua, functions);
    return 1;
}
