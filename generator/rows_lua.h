// Rows as Lua holds them, for the C modules that take them.
#ifndef GENTABLES_ROWS_LUA_H
#define GENTABLES_ROWS_LUA_H

#include <lua.h>
#include <stdbool.h>

#include "rows.h"

// The rows at stack place `index`; raises a Lua error where there are none. They live as long as that value.
const struct rows *rows_check(lua_State *lua, int index);

// What tells slices of rows apart.
struct slice_key {
    uint64_t splits;
    uint16_t world_size;
    uint8_t dtype, op, mode, fusion;
    bool sizes_only; // no tokens and hidden sizes
};
struct slice_key slice_key_of(const struct row *row);
bool slice_key_equal(struct slice_key a, struct slice_key b);
// That of the table at stack place 2; raises where it is none.
struct slice_key slice_key_take(lua_State *lua);

// Methods of rows; see rows_slices.c and rows_classes.c.
int rows_lua_slices(lua_State *lua);
int rows_lua_slice(lua_State *lua);
int rows_lua_classes(lua_State *lua);

#endif
