// Slices of rows, by columns, for Lua. Pictures and pages show rows of one placement, dtype, op, mode and
// fusion; a Lua table for each of half a million rows would take half a gigabyte.
//
// - rows:slices() returns { { world_size =, nodes =, dtype =, op =, mode =, fusion =, splits =, sizes_only =,
//   count = rows }... } in the order of their first rows.
// - rows:slice(one of these [, keys]) returns { count =, [key] = list of that length... } with the columns of
//   `keys` (lists/columns.lua); by default all but bits, launches and those that few files have. A missing
//   value is false. TP size, nodes, dtype, op, mode, fusion and splits are the same in all rows of a slice,
//   and are not columns of it. A row with a size only has its bytes as num_tokens, HIDDEN_SIZE_NONE as
//   hidden_size.
#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>
#include <string.h>

#include "rows_lua.h"

static void set_name(lua_State *lua, const char *field, const struct names *names, uint8_t index) {
    lua_pushstring(lua, names->name[index]);
    lua_setfield(lua, -2, field);
}

static void push_slice(lua_State *lua, struct slice_key key, const struct lists *lists) {
    lua_createtable(lua, 0, 9);
    lua_pushinteger(lua, key.world_size);
    lua_setfield(lua, -2, "world_size");
    lua_pushinteger(lua, key.nodes);
    lua_setfield(lua, -2, "nodes");
    set_name(lua, "dtype", &lists->dtypes, key.dtype);
    set_name(lua, "op", &lists->ops, key.op);
    set_name(lua, "mode", &lists->modes, key.mode);
    set_name(lua, "fusion", &lists->fusions, key.fusion);
    char splits[SPLITS_TEXT_SIZE];
    lua_pushlstring(lua, splits, (size_t)(splits_print(splits, key.splits) - splits));
    lua_setfield(lua, -2, "splits");
    lua_pushboolean(lua, key.sizes_only);
    lua_setfield(lua, -2, "sizes_only");
}

int rows_lua_slices(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    struct slice_key *keys = NULL; // few; in Lua's memory, so that an error leaks nothing
    size_t *counts = NULL, found = 0, room = 0, last = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct slice_key key = slice_key_of(&rows->row[i]);
        if (found == 0 || !slice_key_equal(keys[last], key)) {
            for (last = 0; last < found && !slice_key_equal(keys[last], key); last++) continue;
        }
        if (last == room) {
            size_t more = 2 * room + 16;
            struct slice_key *all_keys = lua_newuserdatauv(lua, more * sizeof *keys, 0);
            size_t *all_counts = lua_newuserdatauv(lua, more * sizeof *counts, 0);
            if (found > 0) memcpy(all_keys, keys, found * sizeof *keys);
            if (found > 0) memcpy(all_counts, counts, found * sizeof *counts);
            keys = all_keys, counts = all_counts, room = more;
            luaL_checkstack(lua, 4, "too many slices");
        }
        if (last == found) keys[found] = key, counts[found++] = 0;
        counts[last]++;
    }
    lua_createtable(lua, (int)found, 0);
    for (size_t i = 0; i < found; i++) {
        push_slice(lua, keys[i], lists_of(lua));
        lua_pushinteger(lua, (lua_Integer)counts[i]);
        lua_setfield(lua, -2, "count");
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
    return 1;
}

// The name in a field of the table at stack index `index`.
static uint8_t take_name(lua_State *lua, int index, const char *field, const struct names *names) {
    size_t length;
    lua_getfield(lua, index, field);
    const char *text = luaL_checklstring(lua, -1, &length);
    uint8_t name = names_find(names, text, text + length);
    if (name == NAME_NONE) luaL_error(lua, "unknown %s %s", names->what, text);
    lua_pop(lua, 1);
    return name;
}

struct slice_key slice_key_take(lua_State *lua, int index) {
    const struct lists *lists = lists_of(lua);
    luaL_checktype(lua, index, LUA_TTABLE);
    index = lua_absindex(lua, index);
    lua_getfield(lua, index, "world_size");
    struct slice_key key = {.world_size = (uint16_t)luaL_checkinteger(lua, -1)};
    lua_getfield(lua, index, "nodes");
    key.nodes = (uint16_t)luaL_optinteger(lua, -1, 1);
    lua_pop(lua, 2);
    key.dtype = take_name(lua, index, "dtype", &lists->dtypes);
    key.op = take_name(lua, index, "op", &lists->ops);
    key.mode = take_name(lua, index, "mode", &lists->modes);
    key.fusion = take_name(lua, index, "fusion", &lists->fusions);
    size_t length = 0;
    lua_getfield(lua, index, "splits");
    const char *splits = luaL_optlstring(lua, -1, "", &length);
    if (!splits_parse(splits, splits + length, &key.splits)) luaL_error(lua, "splits: %s", splits);
    lua_getfield(lua, index, "sizes_only");
    key.sizes_only = lua_toboolean(lua, -1);
    lua_pop(lua, 2);
    return key;
}

// Fields that all rows of a slice share are not columns of it.
static bool is_in_slices(const struct column *column) {
    switch (column->kind) {
    case COLUMN_WORLD_SIZE:
    case COLUMN_DTYPE:
    case COLUMN_OP:
    case COLUMN_MODE:
    case COLUMN_FUSION:
    case COLUMN_SPLITS:
    case COLUMN_NODES:
    case COLUMN_RANKS_PER_NODE: return false;
    default: return true;
    }
}

// Launches and bits would make a table and a text for each row; few files have the `filled` columns.
static bool is_usual(const struct column *column) {
    return !column->filled && column->kind != COLUMN_LAUNCHES && column->kind != COLUMN_BITS;
}

// The columns with keys in the list at stack index 3, or the usual ones. Returns their number.
static int take_columns(lua_State *lua, const struct column *wanted[COLUMNS_MAX]) {
    const struct columns *columns = &lists_of(lua)->columns;
    int count = 0;
    bool usual = lua_isnoneornil(lua, 3);
    lua_Integer named = usual ? 0 : luaL_len(lua, 3);
    for (size_t c = 0; c < columns->count; c++) {
        const struct column *column = &columns->of[c];
        bool is_wanted = usual && is_usual(column);
        for (lua_Integer i = 1; i <= named && !is_wanted; i++) {
            lua_geti(lua, 3, i);
            is_wanted = strcmp(luaL_checkstring(lua, -1), column->key) == 0;
            lua_pop(lua, 1);
        }
        if (is_wanted && is_in_slices(column)) wanted[count++] = column;
    }
    if (!usual && count != named) luaL_error(lua, "a column that slices of rows do not have");
    return count;
}

static void push_value(lua_State *lua, const struct column *column, struct row *row,
                       const struct row_detail *detail) {
    switch (column->kind) {
    case COLUMN_NUM_TOKENS: lua_pushinteger(lua, row->key.num_tokens); return;
    case COLUMN_HIDDEN_SIZE: lua_pushinteger(lua, row->key.hidden_size); return;
    default: rows_lua_push(lua, column, row, detail);
    }
    if (!lua_isnil(lua, -1)) return;
    lua_pop(lua, 1);
    lua_pushboolean(lua, false);
}

int rows_lua_slice(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    struct slice_key key = slice_key_take(lua, 2);
    const struct column *columns[COLUMNS_MAX];
    int column_count = take_columns(lua, columns), first = lua_gettop(lua) + 1;
    luaL_checkstack(lua, COLUMNS_MAX + 4, "a slice");
    for (int i = 0; i < column_count; i++) lua_newtable(lua);
    lua_Integer count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        if (!slice_key_equal(slice_key_of(&rows->row[i]), key)) continue;
        struct row row = rows->row[i];
        const struct row_detail *detail = rows_detail_of(rows, i);
        count++;
        for (int j = 0; j < column_count; j++) {
            push_value(lua, columns[j], &row, detail);
            lua_seti(lua, first + j, count);
        }
    }
    lua_createtable(lua, 0, column_count + 1);
    for (int i = 0; i < column_count; i++) {
        lua_pushvalue(lua, first + i);
        lua_setfield(lua, -2, columns[i]->key);
    }
    lua_pushinteger(lua, count);
    lua_setfield(lua, -2, "count");
    return 1;
}
