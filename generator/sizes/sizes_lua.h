// Message sizes in Lua: the parts of sizes_lua.c and ways_lua.c that both use.
#ifndef GENTABLES_SIZES_LUA_H
#define GENTABLES_SIZES_LUA_H

#include <lua.h>

#include "size_points.h"

// The points at stack index `index`, which have choices; raises a Lua error if there are none. They live as
// long as that value.
const struct size_points *sizes_lua_check(lua_State *lua, int index);

// A method of points, and the type of what it gives; see ways_lua.c.
int sizes_lua_ways(lua_State *lua);
void sizes_lua_make_ways_type(lua_State *lua);

#endif
