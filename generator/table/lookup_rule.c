// require "core.lookup_rule": how readers of tables find the nearest value on an ascending axis, for Lua. The
// C header's template, pages and choices by bytes use it.
//
// - border(a, b) gives the largest number that is at least as near to a as to b, as a ratio: their geometric
//   mean, rounded down.
// - borders{ 64, 256 } gives { 128, LARGEST }: for each value, the largest number to which it is the nearest.
// - nearest({ 64, 256 }, 100) gives 1: the index of the nearest value, by these borders.
// - octaves({ 3, 5, 6 }) gives { 0, 0, 1, 3... }, how many of the ascending numbers are below each power of
//   two, 2^0 to 2^30; and the most that lie between two of these, or above the last one: 2.
// - LARGEST is the largest number that a lookup takes.
#include <lauxlib.h>
#include <lua.h>

#include "base/bindings.h"
#include "grid.h"

static uint64_t check_size(lua_State *lua, int index) {
    lua_Integer size = luaL_checkinteger(lua, index);
    luaL_argcheck(lua, size > 0, index, "a size above 0 is required");
    return (uint64_t)size;
}

// The value at `item`, from 0, of the axis that is argument 1.
static uint64_t take_value(lua_State *lua, size_t item) {
    lua_geti(lua, 1, (lua_Integer)item + 1);
    uint64_t value = check_size(lua, -1);
    lua_pop(lua, 1);
    return value;
}

static int lua_border(lua_State *lua) {
    lua_pushinteger(lua, (lua_Integer)grid_border(check_size(lua, 1), check_size(lua, 2)));
    return 1;
}

static int lua_borders(lua_State *lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    size_t count = (size_t)luaL_len(lua, 1);
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        bool is_last = i + 1 == count;
        uint64_t border = is_last ? INT32_MAX : grid_border(take_value(lua, i), take_value(lua, i + 1));
        lua_pushinteger(lua, (lua_Integer)border);
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int lua_nearest(lua_State *lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    uint64_t value = check_size(lua, 2);
    luaL_argcheck(lua, value <= UINT32_MAX, 2, "too large");
    struct axis axis = {.count = (size_t)luaL_len(lua, 1)};
    axis.value = lua_newuserdatauv(lua, (axis.count + 1) * sizeof *axis.value, 0);
    for (size_t i = 0; i < axis.count; i++) axis.value[i] = (uint32_t)take_value(lua, i);
    lua_pushinteger(lua, (lua_Integer)grid_answering(&axis, (uint32_t)value, LOOKUP_NEAREST) + 1);
    return 1;
}

static int lua_octaves(lua_State *lua) {
    enum { OCTAVES = 31 }; // of a positive int
    luaL_checktype(lua, 1, LUA_TTABLE);
    lua_Integer count = luaL_len(lua, 1), below = 0, most = 0;
    lua_createtable(lua, OCTAVES, 0);
    for (int octave = 0; octave <= OCTAVES; octave++) {
        lua_Integer before = below;
        for (; below < count; below++, lua_pop(lua, 1)) {
            bool is_below = lua_rawgeti(lua, 1, below + 1) == LUA_TNUMBER &&
                            (octave == OCTAVES || lua_tointeger(lua, -1) < (lua_Integer)1 << octave);
            if (!is_below) break;
        }
        lua_settop(lua, 2);
        if (below - before > most) most = below - before;
        lua_pushinteger(lua, below);
        if (octave < OCTAVES) lua_rawseti(lua, 2, octave + 1);
    }
    lua_settop(lua, 2);
    lua_pushinteger(lua, most);
    return 2;
}

int luaopen_core_lookup_rule(lua_State *lua);
int luaopen_core_lookup_rule(lua_State *lua) {
    static const luaL_Reg functions[] = {{"border", lua_border},
                                         {"borders", lua_borders},
                                         {"nearest", lua_nearest},
                                         {"octaves", lua_octaves},
                                         {NULL, NULL}};
    luaL_newlib(lua, functions);
    set_integer(lua, "LARGEST", INT32_MAX);
    return 1;
}
