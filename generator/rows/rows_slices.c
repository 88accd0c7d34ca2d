// Rows by columns, for Lua: what pictures and pages show is a slice of one TP size, dtype, op, mode and
// fusion, and a Lua table for each of half a million rows would take half a gigabyte.
//
// - rows:slices() gives { { world_size =, dtype =, op =, mode =, fusion =, splits =, sizes_only =,
//   count = rows }... } in the order in which they begin.
// - rows:slice(one of these [, names]) gives { count =, and lists of that length: num_tokens, hidden_size,
//   size, strategy, placement, accumulate, samples, time_us, low_us, high_us, min_us, p95_us, p99_us,
//   skew_us, bound_us, or those that are named, of which launches (lists of times) may be one, too }; false
//   stands where a row does not say.
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rows_lua.h"

static void set_name(lua_State *lua, const char *field, const struct names *names, uint8_t index) {
    lua_pushstring(lua, names->name[index]);
    lua_setfield(lua, -2, field);
}

static void push_slice(lua_State *lua, struct slice_key key, const struct lists *lists) {
    lua_createtable(lua, 0, 6);
    lua_pushinteger(lua, key.world_size);
    lua_setfield(lua, -2, "world_size");
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
    struct slice_key *keys = NULL; // few; Lua's memory, so that an error leaks nothing
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

// The name in the field of the table at stack place `index`.
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
    lua_pop(lua, 1);
    key.dtype = take_name(lua, index, "dtype", &lists->dtypes);
    key.op = take_name(lua, index, "op", &lists->ops);
    key.mode = take_name(lua, index, "mode", &lists->modes);
    key.fusion = take_name(lua, index, "fusion", &lists->fusions);
    size_t length = 0;
    lua_getfield(lua, index, "splits");
    const char *splits = luaL_optlstring(lua, -1, "", &length);
    if (!splits_parse(splits, splits + length, &key.splits)) luaL_error(lua, "%s is no splits", splits);
    lua_getfield(lua, index, "sizes_only");
    key.sizes_only = lua_toboolean(lua, -1);
    lua_pop(lua, 2);
    return key;
}

// The columns of a slice, in the order in which their lists lie on the stack.
enum { TOKENS, HIDDEN, SIZE, STRATEGY, PLACEMENT, ACCUMULATE, SAMPLES, TIMES };
static const enum column time_columns[] = {COLUMN_LOW, COLUMN_HIGH, COLUMN_MIN,  COLUMN_P95,
                                           COLUMN_P99, COLUMN_SKEW, COLUMN_BOUND};
enum {
    DETAILS = sizeof time_columns / sizeof *time_columns,
    LAUNCHES = TIMES + 1 + DETAILS, // only by its name: a table for each row
    SLICE_COLUMNS
};
static const char *const column_names[TIMES + 1] = {"num_tokens", "hidden_size", "size",    "strategy",
                                                    "placement",  "accumulate",  "samples", "time_us"};

static const char *column_name(int column) {
    if (column == LAUNCHES) return rows_columns[COLUMN_LAUNCHES].key;
    return column <= TIMES ? column_names[column] : rows_columns[time_columns[column - TIMES - 1]].key;
}

static void push_number(lua_State *lua, double value) {
    if (isnan(value)) {
        lua_pushboolean(lua, false);
    } else {
        lua_pushnumber(lua, value);
    }
}

static void push_launches(lua_State *lua, const struct row_detail *detail) {
    if (detail->launches > 0) {
        rows_lua_push_launches(lua, detail);
    } else {
        lua_pushboolean(lua, false);
    }
}

static void push_name(lua_State *lua, const struct names *names, uint8_t index) {
    if (index == NAME_NONE) {
        lua_pushboolean(lua, false);
    } else {
        lua_pushlstring(lua, names->name[index], names->length[index]);
    }
}

static void push_value(lua_State *lua, int column, const struct row *row, struct row_detail *detail) {
    const struct lists *lists = lists_of(lua);
    switch (column) {
    case TOKENS: lua_pushinteger(lua, row->key.num_tokens); break;
    case HIDDEN: lua_pushinteger(lua, row->key.hidden_size); break;
    case SIZE: lua_pushinteger(lua, (lua_Integer)row->size_bytes); break;
    case STRATEGY: push_name(lua, &lists->strategies, row->strategy); break;
    case PLACEMENT: push_name(lua, &lists->placements, row->placement); break;
    case ACCUMULATE: push_name(lua, &lists->accumulates, row->accumulate); break;
    case SAMPLES: push_number(lua, detail->samples == 0 ? NAN : (double)detail->samples); break;
    case TIMES: push_number(lua, row->time_us); break;
    case LAUNCHES: push_launches(lua, detail); break;
    default: push_number(lua, *rows_detail_number(detail, time_columns[column - TIMES - 1]));
    }
}

// Which columns are wanted: those in the list at stack place 3, or all. Gives their number.
static int take_columns(lua_State *lua, int columns[SLICE_COLUMNS]) {
    int count = 0;
    bool all = lua_isnoneornil(lua, 3);
    lua_Integer named = all ? 0 : luaL_len(lua, 3);
    for (int column = 0; column < SLICE_COLUMNS; column++) {
        bool is_wanted = all && column != LAUNCHES;
        for (lua_Integer i = 1; i <= named && !is_wanted; i++) {
            lua_geti(lua, 3, i);
            is_wanted = strcmp(luaL_checkstring(lua, -1), column_name(column)) == 0;
            lua_pop(lua, 1);
        }
        if (is_wanted) columns[count++] = column;
    }
    if (!all && count != named) luaL_error(lua, "a column that rows do not have");
    return count;
}

int rows_lua_slice(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    struct slice_key key = slice_key_take(lua, 2);
    int columns[SLICE_COLUMNS], column_count = take_columns(lua, columns);
    int first = lua_gettop(lua) + 1;
    luaL_checkstack(lua, SLICE_COLUMNS + 4, "a slice");
    for (int i = 0; i < column_count; i++) lua_newtable(lua);
    lua_Integer count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        if (!slice_key_equal(slice_key_of(&rows->row[i]), key)) continue;
        struct row_detail detail = rows->detail == NULL ? rows_no_detail : rows->detail[i];
        count++;
        for (int j = 0; j < column_count; j++) {
            push_value(lua, columns[j], &rows->row[i], &detail);
            lua_seti(lua, first + j, count);
        }
    }
    lua_createtable(lua, 0, column_count + 1);
    for (int i = 0; i < column_count; i++) {
        lua_pushvalue(lua, first + i);
        lua_setfield(lua, -2, column_name(columns[i]));
    }
    lua_pushinteger(lua, count);
    lua_setfield(lua, -2, "count");
    return 1;
}
