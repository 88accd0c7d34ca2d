// require "core.rows": benchmark files to rows and back, for Lua. On failure all functions return nil,
// message.
//
// - read(paths) returns rows. #rows is their number.
//   rows:files(), rows:missing()  { { path =, count =, world_size =, nodes = }... } of rows with, and
//                                 without, a time; a file without rows has no world_size and no nodes
//   rows:strategies()             { NAME = true... } of the strategies that have a row
//   rows:has_bits()               whether any row has bits
//   rows:text()                   the rows as the text of one file
//   rows:slices(), rows:slice(of [, keys])  see rows_slices.c
// - records(path...) returns { { world_size =, dtype =, ..., time_us =, low_us = ... }... }, with the keys of
//   lists/columns.lua. Rows of one node have no nodes and no ranks_per_node.
// - text(path, records) returns the text of such a file, sorted; the path is for messages only.
// - of(path, records) returns the records as rows, as if such a file had been read.
// - LAUNCHES_MAX is the number of launches that a row can have times of. HIDDEN_SIZE_NONE is the hidden size
//   of a row that has a size only; its tokens are its bytes. SHAPE_MOST is the largest token
//   count or hidden size. TIME_LEAST_US and TIME_MOST_US are the limits of a time.
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bindings.h"
#include "codec/number.h"
#include "rows_lua.h"

static const char rows_type[] = "gentables.rows";

// Pushes a value that owns rows; NULL so far. Its user value keeps their slices.
static struct rows **push_rows(lua_State *lua) {
    struct rows **rows = lua_newuserdatauv(lua, sizeof(struct rows *), 1);
    *rows = NULL;
    luaL_setmetatable(lua, rows_type);
    return rows;
}

const struct rows *rows_check(lua_State *lua, int index) {
    return *(struct rows **)luaL_checkudata(lua, index, rows_type);
}

static int lua_free(lua_State *lua) {
    struct rows **rows = luaL_checkudata(lua, 1, rows_type);
    rows_free(*rows);
    *rows = NULL;
    return 0;
}

// Reads the `count` paths on the stack from index `first`; pushes the rows. False: `problem` is filled.
static bool read_stack(lua_State *lua, int first, int count, struct problem *problem) {
    const char **paths = lua_newuserdatauv(lua, ((size_t)count + 1) * sizeof *paths, 0);
    for (int i = 0; i < count; i++) paths[i] = luaL_checkstring(lua, first + i);
    struct rows **rows = push_rows(lua);
    *rows = rows_read(paths, (size_t)count, lists_of(lua), problem);
    size_t known = lists_of(lua)->strategies.count;
    bool learned = false; // the files may name new candidates of plug-ins
    for (int i = 0; i < count && *rows == NULL; i++) learned |= lists_learn_file(lua, paths[i]);
    if (learned) *rows = rows_read(paths, (size_t)count, lists_of(lua), problem);
    if (*rows == NULL) lists_forget(lua, known);
    return *rows != NULL;
}

static int lua_read(lua_State *lua) {
    struct problem problem;
    luaL_checktype(lua, 1, LUA_TTABLE);
    int count = (int)luaL_len(lua, 1);
    luaL_checkstack(lua, count + 8, "too many files");
    for (int i = 1; i <= count; i++) lua_geti(lua, 1, i);
    return read_stack(lua, 2, count, &problem) ? 1 : push_failed(lua, problem.text);
}

static int lua_count(lua_State *lua) {
    lua_pushinteger(lua, (lua_Integer)rows_check(lua, 1)->count);
    return 1;
}

static void push_file(lua_State *lua, const struct rows *rows, const struct rows_file *file, size_t count) {
    lua_createtable(lua, 0, 4);
    if (file->count > 0) {
        set_integer(lua, "world_size", rows->row[file->first].key.world_size);
        set_integer(lua, "nodes", rows->row[file->first].key.nodes);
    }
    set_text(lua, "path", file->path);
    set_integer(lua, "count", (lua_Integer)count);
}

static int lua_files(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    lua_newtable(lua);
    for (size_t i = 0; i < rows->file_count; i++) {
        push_file(lua, rows, &rows->files[i], rows->files[i].count);
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int lua_missing(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    lua_newtable(lua);
    for (size_t i = 0; i < rows->file_count; i++) {
        if (rows->files[i].missing == 0) continue;
        push_file(lua, rows, &rows->files[i], rows->files[i].missing);
        lua_seti(lua, -2, luaL_len(lua, -2) + 1);
    }
    return 1;
}

static int lua_strategies(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    const struct lists *lists = lists_of(lua);
    bool seen[NAMES_MAX] = {false};
    for (size_t i = 0; i < rows->count; i++) seen[rows->row[i].strategy] = true;
    lua_newtable(lua);
    for (size_t i = 0; i < lists->strategies.count; i++) {
        if (!seen[i]) continue;
        set_boolean(lua, lists->strategies.name[i], true);
    }
    return 1;
}

// Bits that vary count.
static int lua_has_bits(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    bool found = false;
    for (size_t i = 0; rows->detail != NULL && i < rows->count && !found; i++) {
        found = rows->detail[i].bits != 0 || rows->detail[i].bits_vary;
    }
    lua_pushboolean(lua, found);
    return 1;
}

static int lua_read_text(lua_State *lua) {
    struct problem problem;
    size_t size;
    char *text = rows_text(rows_check(lua, 1), lists_of(lua), &size, &problem);
    if (text == NULL) return push_failed(lua, problem.text);
    lua_pushlstring(lua, text, size);
    free(text);
    return 1;
}

static void push_launches(lua_State *lua, const struct row_detail *detail) {
    if (detail->launches == 0) {
        lua_pushnil(lua);
        return;
    }
    lua_createtable(lua, (int)detail->launches, 0);
    for (size_t i = 0; i < detail->launches; i++) {
        if (isnan(detail->launch_us[i])) {
            lua_pushboolean(lua, false);
        } else {
            lua_pushnumber(lua, detail->launch_us[i]);
        }
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
}

static void push_bits(lua_State *lua, const struct row_detail *detail) {
    char text[NUMBER_TEXT_SIZE];
    if (detail->bits_vary) {
        lua_pushstring(lua, rows_bits_vary);
    } else if (detail->bits == 0) {
        lua_pushnil(lua);
    } else {
        lua_pushlstring(lua, text, (size_t)(number_print_hex(text, detail->bits) - text));
    }
}

// Pushes a whole number; nil if the row has none.
static void push_whole(lua_State *lua, bool is_there, uint32_t value) {
    if (is_there) {
        lua_pushinteger(lua, value);
    } else {
        lua_pushnil(lua);
    }
}

static void push_splits(lua_State *lua, uint64_t splits) {
    char text[SPLITS_TEXT_SIZE];
    if (splits == 0) {
        lua_pushnil(lua);
    } else {
        lua_pushlstring(lua, text, (size_t)(splits_print(text, splits) - text));
    }
}

static void push_number(lua_State *lua, double value) {
    if (isnan(value)) {
        lua_pushnil(lua);
    } else {
        lua_pushnumber(lua, value);
    }
}

static void push_name(lua_State *lua, const struct names *names, uint8_t index) {
    lua_pushstring(lua, index == NAME_NONE ? NULL : names->name[index]);
}

void rows_lua_push(lua_State *lua, const struct column *column, struct row *row,
                   const struct row_detail *detail) {
    const struct cell_key *key = &row->key;
    bool has_shape = key->hidden_size != HIDDEN_SIZE_NONE, spans_nodes = key->nodes > 1;
    switch (column->kind) {
    case COLUMN_WORLD_SIZE: lua_pushinteger(lua, key->world_size); return;
    case COLUMN_SIZE: lua_pushinteger(lua, (lua_Integer)row->size_bytes); return;
    case COLUMN_NUM_TOKENS: push_whole(lua, has_shape, key->num_tokens); return;
    case COLUMN_HIDDEN_SIZE: push_whole(lua, has_shape, key->hidden_size); return;
    case COLUMN_TIME: lua_pushnumber(lua, row->time_us); return;
    case COLUMN_SPLITS: push_splits(lua, key->splits); return;
    case COLUMN_NODES: push_whole(lua, spans_nodes, key->nodes); return;
    case COLUMN_RANKS_PER_NODE:
        push_whole(lua, spans_nodes, spans_nodes ? (uint32_t)(key->world_size / key->nodes) : 0);
        return;
    case COLUMN_SAMPLES: push_whole(lua, detail->samples > 0, detail->samples); return;
    case COLUMN_LAUNCHES: push_launches(lua, detail); return;
    case COLUMN_BITS: push_bits(lua, detail); return;
    case COLUMN_NUMBER: push_number(lua, detail->number[column->number]); return;
    default: push_name(lua, column->names, *rows_name(row, column->kind));
    }
}

static int lua_records(lua_State *lua) {
    struct problem problem;
    const struct columns *columns = &lists_of(lua)->columns;
    int count = lua_gettop(lua);
    if (!read_stack(lua, 1, count, &problem)) return push_failed(lua, problem.text);
    const struct rows *rows = rows_check(lua, -1);
    lua_createtable(lua, (int)rows->count, 0);
    for (size_t i = 0; i < rows->count; i++) {
        struct row row = rows->row[i];
        const struct row_detail *detail = rows_detail_of(rows, i);
        lua_createtable(lua, 0, (int)columns->count);
        for (size_t c = 0; c < columns->count; c++) {
            rows_lua_push(lua, &columns->of[c], &row, detail);
            lua_setfield(lua, -2, columns->of[c].key);
        }
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
    return 1;
}

// Reads the list on top of the stack, in the form of push_launches. False if it has another.
static bool take_launches(lua_State *lua, struct row_detail *detail) {
    detail->launches = 0;
    if (lua_isnil(lua, -1)) return true;
    if (!lua_istable(lua, -1) || luaL_len(lua, -1) > LAUNCHES_MAX) return false;
    for (lua_Integer i = 1; i <= luaL_len(lua, -1); i++, lua_pop(lua, 1)) {
        bool is_number = lua_geti(lua, -1, i) == LUA_TNUMBER;
        if (is_number && !(lua_tonumber(lua, -1) > 0)) return false;
        detail->launch_us[detail->launches++] = is_number ? lua_tonumber(lua, -1) : NAN;
    }
    return true;
}

// The text on top of the stack; "" if there is none, because adding to NULL is undefined.
static const char *text_on_top(lua_State *lua, size_t *length) {
    const char *text = lua_tolstring(lua, -1, length);
    return text != NULL ? text : "";
}

static bool take_bits(lua_State *lua, struct row_detail *detail) {
    size_t length = 0;
    const char *text = text_on_top(lua, &length);
    detail->bits = 0;
    detail->bits_vary = strcmp(text, rows_bits_vary) == 0;
    return detail->bits_vary || number_parse_hex(text, text + length, &detail->bits);
}

static bool take_splits(lua_State *lua, struct row *row) {
    size_t length = 0;
    const char *text = text_on_top(lua, &length);
    return splits_parse(text, text + length, &row->key.splits);
}

// Reads the number of nodes from the top of the stack; nil: one node. The key has its number of ranks.
static bool take_nodes(lua_State *lua, struct cell_key *key) {
    lua_Integer nodes = lua_isnil(lua, -1) ? 1 : lua_tointeger(lua, -1);
    bool is_even = nodes > 0 && nodes <= key->world_size && key->world_size % nodes == 0;
    key->nodes = is_even ? (uint16_t)nodes : 1;
    return is_even;
}

// Reads tokens or a hidden size from the top of the stack; nil gives 0.
static bool take_shape(lua_State *lua, uint32_t *value) {
    lua_Integer whole = lua_tointeger(lua, -1);
    *value = (uint32_t)whole;
    return lua_isnil(lua, -1) || (whole > 0 && whole <= SHAPE_MOST);
}

// Completes a row that has a size only. False if it has tokens or a hidden size, but not both.
static bool complete_shape(struct row *row) {
    if (row->key.num_tokens != 0 && row->key.hidden_size != 0) return true;
    if (row->key.num_tokens != 0 || row->key.hidden_size != 0) return false;
    row->key.hidden_size = HIDDEN_SIZE_NONE;
    row->key.num_tokens = (uint32_t)row->size_bytes;
    return row->size_bytes < HIDDEN_SIZE_NONE;
}

static bool take_name(lua_State *lua, const struct column *column, uint8_t *index) {
    size_t length;
    const char *text = lua_tolstring(lua, -1, &length);
    if (text != NULL && column->kind == COLUMN_STRATEGY) lists_learn(lua, text, length);
    *index = text == NULL ? NAME_NONE : names_find(column->names, text, text + length);
    return *index != NAME_NONE || (text == NULL && column->may_be_empty);
}

static bool take_number(lua_State *lua, double *value) {
    int is_number;
    double number = lua_tonumberx(lua, -1, &is_number);
    *value = is_number ? number : NAN;
    return lua_isnil(lua, -1) || (is_number && isfinite(number) && number >= 0);
}

// Enters record[key], on top of the stack, into the row. False if such a column cannot have that value.
static bool take_value(lua_State *lua, const struct column *column, struct row *row,
                       struct row_detail *detail) {
    lua_Integer whole = lua_tointeger(lua, -1);
    switch (column->kind) {
    case COLUMN_NUMBER: return take_number(lua, &detail->number[column->number]);
    case COLUMN_LAUNCHES: return take_launches(lua, detail);
    case COLUMN_BITS: return take_bits(lua, detail);
    case COLUMN_TIME: return take_number(lua, &row->time_us) && row->time_us > 0;
    case COLUMN_SAMPLES: detail->samples = (uint32_t)whole; return whole >= 0 && whole <= UINT32_MAX;
    case COLUMN_WORLD_SIZE: row->key.world_size = (uint16_t)whole; return whole > 0 && whole <= UINT16_MAX;
    case COLUMN_SIZE: row->size_bytes = (uint64_t)whole; return whole > 0;
    case COLUMN_NUM_TOKENS: return take_shape(lua, &row->key.num_tokens);
    case COLUMN_HIDDEN_SIZE: return take_shape(lua, &row->key.hidden_size);
    case COLUMN_SPLITS: return take_splits(lua, row);
    case COLUMN_NODES: return take_nodes(lua, &row->key);
    case COLUMN_RANKS_PER_NODE: return lua_isnil(lua, -1) || whole * row->key.nodes == row->key.world_size;
    default: return take_name(lua, column, rows_name(row, column->kind));
    }
}

static bool take_records(lua_State *lua, int index, const char *path, struct rows *rows,
                         struct problem *problem) {
    const struct columns *columns = &lists_of(lua)->columns;
    size_t count = (size_t)luaL_len(lua, index);
    for (; rows->count < count; rows->count++) {
        struct row *row = &rows->row[rows->count];
        struct row_detail *detail = &rows->detail[rows->count];
        *row = (struct row){0};
        *detail = rows_no_detail;
        lua_geti(lua, index, (lua_Integer)rows->count + 1);
        for (size_t c = 0; c < columns->count; c++) {
            const char *key = columns->of[c].key;
            lua_getfield(lua, -1, key);
            if (!take_value(lua, &columns->of[c], row, detail)) {
                return problem_set(problem, "%s: row %zu cannot be written: its %s is %s", path,
                                   rows->count + 1, key, luaL_tolstring(lua, -1, NULL));
            }
            lua_pop(lua, 1);
        }
        if (!complete_shape(row)) {
            return problem_set(problem,
                               "%s: row %zu cannot be written: it has only one of num_tokens and hidden_size",
                               path, rows->count + 1);
        }
        lua_pop(lua, 1);
    }
    return true;
}

// Pushes the records at stack index `index` as rows. NULL: `problem` is filled.
static struct rows *push_records(lua_State *lua, int index, const char *path, struct problem *problem) {
    size_t count = (size_t)luaL_len(lua, index), known = lists_of(lua)->strategies.count;
    struct rows **owner = push_rows(lua);
    struct rows *rows = *owner = calloc(1, sizeof *rows);
    if (rows != NULL) rows->row = malloc((count + 1) * sizeof *rows->row);
    if (rows != NULL) rows->detail = malloc((count + 1) * sizeof *rows->detail);
    if (rows == NULL || rows->row == NULL || rows->detail == NULL) {
        problem_set(problem, "out of memory");
        return NULL;
    }
    if (take_records(lua, index, path, rows, problem)) return rows;
    lists_forget(lua, known);
    return NULL;
}

static int lua_text(lua_State *lua) {
    struct problem problem, reason;
    const char *path = luaL_checkstring(lua, 1);
    luaL_checktype(lua, 2, LUA_TTABLE);
    const struct rows *rows = push_records(lua, 2, path, &problem);
    if (rows == NULL) return push_failed(lua, problem.text);
    size_t size;
    char *text = rows_text(rows, lists_of(lua), &size, &reason);
    if (text == NULL) {
        problem_set(&problem, "%s: cannot be written: %s", path, reason.text);
        return push_failed(lua, problem.text);
    }
    lua_pushlstring(lua, text, size);
    free(text);
    return 1;
}

static int lua_of(lua_State *lua) {
    struct problem problem;
    const char *path = luaL_checkstring(lua, 1);
    luaL_checktype(lua, 2, LUA_TTABLE);
    struct rows *rows = push_records(lua, 2, path, &problem);
    if (rows == NULL) return push_failed(lua, problem.text);
    rows->files = calloc(1, sizeof *rows->files);
    char *name = strdup(path);
    if (rows->files == NULL || name == NULL) {
        free(name);
        problem_set(&problem, "out of memory");
        return push_failed(lua, problem.text);
    }
    rows->files[0] = (struct rows_file){.path = name, .count = rows->count};
    rows->file_count = 1;
    return 1;
}

int luaopen_core_rows(lua_State *lua) {
    static const luaL_Reg functions[] = {
        {"read", lua_read}, {"records", lua_records}, {"text", lua_text}, {"of", lua_of}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"missing", lua_missing},
                                       {"files", lua_files},
                                       {"strategies", lua_strategies},
                                       {"has_bits", lua_has_bits},
                                       {"text", lua_read_text},
                                       {"slices", rows_lua_slices},
                                       {"slice", rows_lua_slice},
                                       {"__len", lua_count},
                                       {"__gc", lua_free},
                                       {NULL, NULL}};
    make_type(lua, rows_type, methods);
    rows_lua_make_slices_type(lua);
    luaL_newlib(lua, functions);
    set_integer(lua, "LAUNCHES_MAX", LAUNCHES_MAX);
    set_integer(lua, "HIDDEN_SIZE_NONE", HIDDEN_SIZE_NONE);
    set_integer(lua, "SHAPE_MOST", SHAPE_MOST);
    set_number(lua, "TIME_LEAST_US", TIME_LEAST_US);
    set_number(lua, "TIME_MOST_US", TIME_MOST_US);
    return 1;
}
