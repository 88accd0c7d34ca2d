// Fields of Lua tables that describe a cell: read from the table at `index`, and set in the table at the top
// of the stack. A field of another type or with an unknown name raises.
#ifndef GENTABLES_TABLE_FIELDS_H
#define GENTABLES_TABLE_FIELDS_H

#include <lua.h>

#include "lists/names.h"
#include "rows/rows.h"

lua_Integer field_integer(lua_State *lua, int index, const char *name);
double field_number(lua_State *lua, int index, const char *name);
uint8_t field_name(lua_State *lua, int index, const char *name, const struct names *names);

// Pops the name at the top of the stack. Raises if it is none of `names`.
uint8_t pop_name(lua_State *lua, const struct names *names);

// world_size, nodes, dtype, op, mode and splits of the table at `index`; the other fields of the key are 0.
struct cell_key block_key(lua_State *lua, int index, const struct lists *lists);

// NAME_NONE sets nothing.
void set_name(lua_State *lua, const char *field, const struct names *names, uint8_t index);
// NAN sets nothing.
void set_number(lua_State *lua, const char *field, double value);
void set_integer(lua_State *lua, const char *field, lua_Integer value);
void set_boolean(lua_State *lua, const char *field, bool value);
// 0, which means no splits, sets nothing.
void set_splits(lua_State *lua, uint64_t splits);

#endif
