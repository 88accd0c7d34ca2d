// Lines and fields of CSV for the C modules that hand them to Lua.
#ifndef GENTABLES_CSV_LUA_H
#define GENTABLES_CSV_LUA_H

#include <lua.h>
#include <stdbool.h>

#include "csv.h"

// Pushes the text of a field.
void csv_push(lua_State *lua, const struct csv_text *field);

// Pushes the list of a line's fields. False if a quote is broken: fills `problem`, the list is incomplete.
bool csv_push_fields(lua_State *lua, const struct csv_text *line, lua_Integer *count,
                     struct problem *problem);

#endif
