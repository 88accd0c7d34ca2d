// Reads lists/columns.lua; see columns.h.
#include "columns.h"

#include <string.h>

#include "base/bindings.h"

static const char *const special_keys[] = {
    [COLUMN_WORLD_SIZE] = "world_size",
    [COLUMN_DTYPE] = "dtype",
    [COLUMN_SIZE] = "size",
    [COLUMN_NUM_TOKENS] = "num_tokens",
    [COLUMN_HIDDEN_SIZE] = "hidden_size",
    [COLUMN_STRATEGY] = "strategy",
    [COLUMN_FUSION] = "fusion",
    [COLUMN_OP] = "op",
    [COLUMN_TIME] = "time_us",
    [COLUMN_SAMPLES] = "samples",
    [COLUMN_MODE] = "mode",
    [COLUMN_ACCUMULATE] = "accumulate",
    [COLUMN_PLACEMENT] = "placement",
    [COLUMN_LAUNCHES] = "launches",
    [COLUMN_BITS] = "bits",
    [COLUMN_SPLITS] = "splits",
    [COLUMN_NODES] = "nodes",
    [COLUMN_RANKS_PER_NODE] = "ranks_per_node",
};
static const char *const named_numbers[NUMBERS_NAMED] = {
    [NUMBER_LOW_US] = "low_us", [NUMBER_HIGH_US] = "high_us", [NUMBER_BOUND_US] = "bound_us"};

static enum column_kind kind_of(const char *key) {
    for (enum column_kind kind = COLUMN_WORLD_SIZE; kind < COLUMN_SHAPE; kind++) {
        if (strcmp(special_keys[kind], key) == 0) return kind;
    }
    return COLUMN_NUMBER;
}

// The field of the table on top of the stack, or NULL. The list keeps the text alive.
static const char *text_of(lua_State *lua, const char *field) {
    lua_getfield(lua, -1, field);
    const char *text = lua_tostring(lua, -1);
    lua_pop(lua, 1);
    return text;
}

// The index of a number column; `others`: how many without a name in C there are so far.
static size_t index_of(const char *key, size_t *others) {
    for (size_t i = 0; i < NUMBERS_NAMED; i++) {
        if (strcmp(named_numbers[i], key) == 0) return i;
    }
    return NUMBERS_NAMED + (*others)++;
}

// The column on top of the stack.
static struct column read_column(lua_State *lua) {
    struct column column = {
        .name = text_of(lua, "name"),
        .other_name = text_of(lua, "other_name"),
        .key = text_of(lua, "key"),
        .required = field_boolean(lua, -1, "required"),
        .ours = field_boolean(lua, -1, "ours"),
        .filled = field_boolean(lua, -1, "filled"),
        .may_be_empty = field_boolean(lua, -1, "may_be_empty"),
        .whole = field_boolean(lua, -1, "whole"),
    };
    if (column.name == NULL || column.key == NULL) luaL_error(lua, "lists/columns.lua: no name or no key");
    column.kind = kind_of(column.key);
    return column;
}

void columns_read(lua_State *lua, struct columns *columns) {
    size_t others = 0, found = 0;
    push_module(lua, "lists.columns");
    columns->count = (size_t)luaL_len(lua, -1);
    if (columns->count > COLUMNS_MAX) luaL_error(lua, "lists/columns.lua: at most %d columns", COLUMNS_MAX);
    for (size_t i = 0; i < columns->count; i++) {
        lua_geti(lua, -1, (lua_Integer)i + 1);
        struct column *column = &columns->of[i];
        *column = read_column(lua);
        size_t index = column->kind == COLUMN_NUMBER ? index_of(column->key, &others) : 0;
        if (index >= NUMBERS_MAX) luaL_error(lua, "lists/columns.lua: at most %d numbers", NUMBERS_MAX);
        column->number = (uint8_t)index;
        found += column->kind != COLUMN_NUMBER || index < NUMBERS_NAMED;
        lua_pop(lua, 1);
    }
    if (found != COLUMN_SHAPE - COLUMN_WORLD_SIZE + NUMBERS_NAMED)
        luaL_error(lua, "lists/columns.lua lacks a column");
    lua_pop(lua, 1);
}
