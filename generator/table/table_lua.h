// Tables in Lua, for the C modules that make them.
#ifndef GENTABLES_TABLE_LUA_H
#define GENTABLES_TABLE_LUA_H

#include <lua.h>

#include "table.h"

// The table at stack index `index`; raises a Lua error if there is none. It lives as long as that value.
struct table *table_lua_check(lua_State *lua, int index);

// Pushes a userdata with a pointer to a table, at first NULL; Lua frees the table.
struct table **table_lua_push(lua_State *lua);

// Argument `argument`, an index from 1 to `count`, as one from 0; raises a Lua error if it is none.
size_t table_lua_index(lua_State *lua, int argument, size_t count);

// A method of tables; see table_tally.c.
int table_lua_tally(lua_State *lua);

#endif
