// Tables in Lua, for the C modules that make them.
#ifndef GENTABLES_TABLE_LUA_H
#define GENTABLES_TABLE_LUA_H

#include <lua.h>

#include "table.h"

// The table at stack index `index`; raises a Lua error if there is none. It lives as long as that value.
struct table *table_lua_check(lua_State *lua, int index);

// Pushes a userdata with a pointer to a table, at first NULL; Lua frees the table.
struct table **table_lua_push(lua_State *lua);

#endif
