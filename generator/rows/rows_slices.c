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

#include "base/bindings.h"
#include "rows_lua.h"

static const char slices_type[] = "gentables.slices";

// ---- the rows of each slice, found in one pass

size_t slice_rows_find(const struct slice_rows *of, struct slice_key key) {
    size_t i = 0;
    while (i < of->count && !slice_key_equal(of->keys[i], key)) i++;
    return i;
}

// Enters a new slice. `room`: for how many there is space. False: out of memory.
static bool enter_slice(struct slice_rows *of, size_t *room, struct slice_key key) {
    if (of->count == *room) {
        size_t more = 2 * *room + 16;
        struct slice_key *keys = realloc(of->keys, more * sizeof *keys);
        if (keys == NULL) return false;
        of->keys = keys, *room = more;
    }
    of->keys[of->count++] = key;
    return true;
}

// Sets slice_of[row] for all rows. Neighbours mostly are of one slice. False: out of memory.
static bool find_slices(const struct rows *rows, struct slice_rows *of, uint32_t *slice_of) {
    size_t room = 0, last = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct slice_key key = slice_key_of(&rows->row[i].key);
        if (of->count == 0 || !slice_key_equal(of->keys[last], key)) last = slice_rows_find(of, key);
        if (last == of->count && !enter_slice(of, &room, key)) return false;
        slice_of[i] = (uint32_t)last;
    }
    return true;
}

static bool make_slices(const struct rows *rows, struct slice_rows *of) {
    *of = (struct slice_rows){.keys = NULL};
    uint32_t *slice_of = malloc((rows->count + 1) * sizeof *slice_of);
    of->row = malloc((rows->count + 1) * sizeof *of->row);
    bool ok = slice_of != NULL && of->row != NULL && find_slices(rows, of, slice_of);
    // begin[i + 1] is first the next free place of slice i; when all rows are placed, it is the end.
    if (ok) of->begin = calloc(of->count + 2, sizeof *of->begin);
    ok = ok && of->begin != NULL;
    for (size_t i = 0; ok && i < rows->count; i++) {
        if (slice_of[i] + 1 < of->count) of->begin[slice_of[i] + 2]++;
    }
    for (size_t i = 2; ok && i <= of->count; i++) of->begin[i] += of->begin[i - 1];
    for (size_t i = 0; ok && i < rows->count; i++) of->row[of->begin[slice_of[i] + 1]++] = (uint32_t)i;
    free(slice_of);
    return ok;
}

static int free_slices(lua_State *lua) {
    struct slice_rows *of = luaL_checkudata(lua, 1, slices_type);
    free(of->keys);
    free(of->begin);
    free(of->row);
    *of = (struct slice_rows){.keys = NULL};
    return 0;
}

void rows_lua_make_slices_type(lua_State *lua) {
    static const luaL_Reg methods[] = {{"__gc", free_slices}, {NULL, NULL}};
    make_type(lua, slices_type, methods);
}

const struct slice_rows *rows_lua_slice_rows(lua_State *lua, int index) {
    const struct rows *rows = rows_check(lua, index);
    index = lua_absindex(lua, index);
    if (lua_getiuservalue(lua, index, 1) == LUA_TNIL) {
        struct slice_rows *made = lua_newuserdatauv(lua, sizeof *made, 0);
        *made = (struct slice_rows){.keys = NULL};
        luaL_setmetatable(lua, slices_type);
        if (!make_slices(rows, made)) luaL_error(lua, "out of memory");
        lua_setiuservalue(lua, index, 1);
        lua_pop(lua, 1);
        lua_getiuservalue(lua, index, 1);
    }
    const struct slice_rows *of = lua_touserdata(lua, -1);
    lua_pop(lua, 1);
    return of;
}

// ---- slices for Lua

void block_key_set(lua_State *lua, const struct cell_key *key) {
    const struct lists *lists = lists_of(lua);
    set_integer(lua, "world_size", key->world_size);
    set_integer(lua, "nodes", key->nodes);
    names_set(lua, "dtype", &lists->dtypes, key->dtype);
    names_set(lua, "op", &lists->ops, key->op);
    names_set(lua, "mode", &lists->modes, key->mode);
}

static void push_splits(lua_State *lua, uint64_t splits) {
    char text[SPLITS_TEXT_SIZE];
    lua_pushlstring(lua, text, (size_t)(splits_print(text, splits) - text));
}

void splits_set(lua_State *lua, uint64_t splits) {
    if (splits == 0) return;
    push_splits(lua, splits);
    lua_setfield(lua, -2, "splits");
}

static void push_slice(lua_State *lua, struct slice_key key, const struct lists *lists) {
    struct cell_key block = {
        .world_size = key.world_size, .nodes = key.nodes, .dtype = key.dtype, .op = key.op, .mode = key.mode};
    lua_createtable(lua, 0, 9);
    block_key_set(lua, &block);
    names_set(lua, "fusion", &lists->fusions, key.fusion);
    push_splits(lua, key.splits);
    lua_setfield(lua, -2, "splits");
    set_boolean(lua, "sizes_only", key.sizes_only);
}

int rows_lua_slices(lua_State *lua) {
    const struct slice_rows *of = rows_lua_slice_rows(lua, 1);
    lua_createtable(lua, (int)of->count, 0);
    for (size_t i = 0; i < of->count; i++) {
        push_slice(lua, of->keys[i], lists_of(lua));
        set_integer(lua, "count", (lua_Integer)(of->begin[i + 1] - of->begin[i]));
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
    return 1;
}

struct cell_key block_key_take(lua_State *lua, int index) {
    const struct lists *lists = lists_of(lua);
    luaL_checktype(lua, index, LUA_TTABLE);
    struct cell_key key = {.world_size = (uint16_t)field_integer(lua, index, "world_size"),
                           .dtype = names_field(lua, index, "dtype", &lists->dtypes),
                           .op = names_field(lua, index, "op", &lists->ops),
                           .mode = names_field(lua, index, "mode", &lists->modes)};
    index = lua_absindex(lua, index);
    lua_getfield(lua, index, "nodes");
    key.nodes = (uint16_t)luaL_optinteger(lua, -1, 1);
    size_t length = 0;
    lua_getfield(lua, index, "splits");
    const char *splits = luaL_optlstring(lua, -1, "", &length);
    if (!splits_parse(splits, splits + length, &key.splits)) luaL_error(lua, "%s is no splits", splits);
    lua_pop(lua, 2);
    return key;
}

struct cell_key cell_key_take(lua_State *lua, int index) {
    struct cell_key key = block_key_take(lua, index);
    key.fusion = names_field(lua, index, "fusion", &lists_of(lua)->fusions);
    key.hidden_size = (uint32_t)field_integer(lua, index, "hidden_size");
    key.num_tokens = (uint32_t)field_integer(lua, index, "num_tokens");
    return key;
}

struct slice_key slice_key_take(lua_State *lua, int index) {
    struct cell_key key = block_key_take(lua, index);
    return (struct slice_key){key.splits,
                              key.world_size,
                              key.nodes,
                              key.dtype,
                              key.op,
                              key.mode,
                              names_field(lua, index, "fusion", &lists_of(lua)->fusions),
                              field_boolean(lua, index, "sizes_only")};
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
    const struct slice_rows *of = rows_lua_slice_rows(lua, 1);
    const struct column *columns[COLUMNS_MAX];
    size_t slice = slice_rows_find(of, slice_key_take(lua, 2));
    size_t begin = slice < of->count ? of->begin[slice] : 0;
    int count = slice < of->count ? (int)(of->begin[slice + 1] - begin) : 0;
    int column_count = take_columns(lua, columns), first = lua_gettop(lua) + 1;
    luaL_checkstack(lua, COLUMNS_MAX + 4, "a slice");
    for (int i = 0; i < column_count; i++) lua_createtable(lua, count, 0);
    for (int i = 0; i < count; i++) {
        struct row row = rows->row[of->row[begin + (size_t)i]];
        const struct row_detail *detail = rows_detail_of(rows, of->row[begin + (size_t)i]);
        for (int j = 0; j < column_count; j++) {
            push_value(lua, columns[j], &row, detail);
            lua_rawseti(lua, first + j, i + 1);
        }
    }
    lua_createtable(lua, 0, column_count + 1);
    for (int i = 0; i < column_count; i++) {
        lua_pushvalue(lua, first + i);
        lua_setfield(lua, -2, columns[i]->key);
    }
    set_integer(lua, "count", count);
    return 1;
}
