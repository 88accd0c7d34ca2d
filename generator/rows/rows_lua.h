// Rows in Lua, for the C modules that work on them.
#ifndef GENTABLES_ROWS_LUA_H
#define GENTABLES_ROWS_LUA_H

#include <lua.h>
#include <stdbool.h>

#include "rows.h"

// The rows at stack index `index`; raises a Lua error if there are none. They live as long as that value.
const struct rows *rows_check(lua_State *lua, int index);

// The world_size, nodes (by default 1), dtype, op, mode and splits (by default none) of the table at stack
// index `index`; the other fields of the key are 0. Raises a Lua error if it lacks one.
struct cell_key block_key_take(lua_State *lua, int index);

// The same with its fusion, hidden_size and num_tokens.
struct cell_key cell_key_take(lua_State *lua, int index);

// Sets these fields, apart from splits, in the table at the top of the stack.
void block_key_set(lua_State *lua, const struct cell_key *key);

// Sets the splits; 0, which means none, sets nothing.
void splits_set(lua_State *lua, uint64_t splits);

// The slice that the table at stack index `index` describes; raises a Lua error if it is none.
struct slice_key slice_key_take(lua_State *lua, int index);

// Pushes the value of a column; nil if the row has none. Launches are a list of times, false where a launch
// has none.
void rows_lua_push(lua_State *lua, const struct column *column, struct row *row,
                   const struct row_detail *detail);

// Slices in the order of their first rows. The rows of slice i, in their order, are row[begin[i]] to
// row[begin[i + 1] - 1].
struct slice_rows {
    struct slice_key *keys;
    size_t count;
    size_t *begin; // count + 1
    uint32_t *row; // indices of rows
};

// The slices of the rows at stack index `index`, found once and kept with them.
const struct slice_rows *rows_lua_slice_rows(lua_State *lua, int index);

// The index of a slice; `count` if no row is of it.
size_t slice_rows_find(const struct slice_rows *of, struct slice_key key);

// Methods of rows; see rows_slices.c.
int rows_lua_slices(lua_State *lua);
int rows_lua_slice(lua_State *lua);
void rows_lua_make_slices_type(lua_State *lua);

#endif
