// Times of cells with different choices in two tables, for Lua.
#ifndef GENTABLES_CELL_TIMES_H
#define GENTABLES_CELL_TIMES_H

#include <lua.h>

// core.table's times; see cell_times.c.
int table_lua_times(lua_State *lua);

#endif
