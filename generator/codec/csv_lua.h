// Cells of CSV for the C modules that hand them to Lua.
#ifndef GENTABLES_CSV_LUA_H
#define GENTABLES_CSV_LUA_H

#include <lua.h>

#include "csv.h"

// Pushes the text of a field.
void csv_push(lua_State *lua, const struct csv_text *field);

#endif
