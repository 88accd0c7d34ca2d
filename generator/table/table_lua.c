// require "core.table": the canonical table for Lua. Indices count from 1; a failure gives nil, message.
//
// - read(path) gives a table and its arch; parse(path, text) the same of a text.
// - times(rows, changes): see cell_times.c.
// - table:changes(new) gives { { world_size =, nodes =, dtype =, op =, mode =, fusion =, hidden_size =,
//   num_tokens =, splits (nil: none), old, new = { strategy =, runner_up =, margin =, state =, confidence =,
//   expected_loss =, predicted = true or nil } or nil }... } of the cells with different choices, and the
//   number of cells that have a choice in both.
// - table:text(arch) gives the CSV.
// - table:blocks() gives a list of { world_size =, nodes =, dtype =, op =, mode =, fusions = {},
//   hidden_sizes = {}, num_tokens = {}, splits (nil: none), sizes_only (bytes in place of num_tokens, and no
//   hidden size) }.
// - table:winners(block, fusion, hidden) gives the winners of a row of cells, as indices in lists.strategies;
//   0: unmeasured.
// - table:segments(block, fusion, hidden) gives the runs of cells with the same winner in such a row:
//   { { first =, last = indices of token counts, strategy = an index in the list or 0, margin =, confidence =
//   the least of its cells, worst_loss = the greatest, derived, predicted = whether any of them is }... }. A
//   number that no cell has is missing.
// - table:runs(block, fusion, hidden) gives the `last` and the `strategy` of these runs, as two lists;
//   table:row(block, fusion, hidden) the whole row as one of them, with the strategy of its first cell.
// - table:cell(block, fusion, hidden, tokens) gives { strategy =, time_us =, runner_up =, margin =, state =,
//   confidence =, expected_loss =, worst_loss =, worst_loss_us =, bound_us =, placement =, derived =,
//   predicted =, low_us =, high_us = }, or nil if the cell is unmeasured.
// - table:find{ world_size =, ... } gives the same, by the cell's own values (nodes: by default 1); with
//   old_loss and new_loss, the expected losses of the choices of the tables that select judged.
// - table:tally(block [, fusion]): see table_tally.c.
// - table:left_out() gives { loopback = rows, strategies = { NAME = rows } } that did not compete.
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdlib.h>

#include "base/bindings.h"
#include "cell_times.h"
#include "rows/rows_lua.h"
#include "table_differences.h"
#include "table_lua.h"

static const char table_type[] = "gentables.table";

struct table *table_lua_check(lua_State *lua, int index) {
    return *(struct table **)luaL_checkudata(lua, index, table_type);
}

static int lua_text(lua_State *lua) {
    size_t size;
    char *text = table_text(table_lua_check(lua, 1), luaL_checkstring(lua, 2), lists_of(lua), &size);
    if (text == NULL) return luaL_error(lua, "out of memory");
    lua_pushlstring(lua, text, size);
    free(text);
    return 1;
}

static void push_axis(lua_State *lua, const struct axis *axis) {
    lua_createtable(lua, (int)axis->count, 0);
    for (size_t i = 0; i < axis->count; i++) {
        lua_pushinteger(lua, axis->value[i]);
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
}

static int lua_blocks(lua_State *lua) {
    const struct table *table = table_lua_check(lua, 1);
    const struct lists *lists = lists_of(lua);
    lua_createtable(lua, (int)table->grid.block_count, 0);
    for (size_t i = 0; i < table->grid.block_count; i++) {
        const struct grid_block *block = &table->grid.blocks[i];
        struct cell_key key = grid_block_key(block);
        lua_createtable(lua, 0, 9);
        block_key_set(lua, &key);
        splits_set(lua, key.splits);
        set_boolean(lua, "sizes_only", block->has_no_shape);
        push_axis(lua, &block->hidden_sizes);
        lua_setfield(lua, -2, "hidden_sizes");
        push_axis(lua, &block->num_tokens);
        lua_setfield(lua, -2, "num_tokens");
        lua_createtable(lua, (int)block->fusion_count, 0);
        for (size_t j = 0; j < block->fusion_count; j++) {
            lua_pushstring(lua, lists->fusions.name[block->fusion[j]]);
            lua_seti(lua, -2, (lua_Integer)j + 1);
        }
        lua_setfield(lua, -2, "fusions");
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
    return 1;
}

size_t table_lua_index(lua_State *lua, int argument, size_t count) {
    lua_Integer index = luaL_checkinteger(lua, argument);
    luaL_argcheck(lua, index >= 1 && (size_t)index <= count, argument, "no such index in the table");
    return (size_t)index - 1;
}

// The row of cells that arguments 2 to 4 (block, fusion, hidden) name.
static const struct cell *check_row(lua_State *lua, const struct table *table,
                                    const struct grid_block **block) {
    *block = &table->grid.blocks[table_lua_index(lua, 2, table->grid.block_count)];
    size_t fusion = table_lua_index(lua, 3, (*block)->fusion_count);
    size_t hidden = table_lua_index(lua, 4, (*block)->hidden_sizes.count);
    size_t row = fusion * (*block)->hidden_sizes.count + hidden;
    return &table->cells[(*block)->first_cell + row * (*block)->num_tokens.count];
}

// The index of the winner in lists.strategies; 0: unmeasured.
static lua_Integer index_of(const struct cell *cell) {
    return cell->strategy == NAME_NONE ? 0 : cell->strategy + 1;
}

static int lua_winners(lua_State *lua) {
    const struct grid_block *block;
    const struct cell *cells = check_row(lua, table_lua_check(lua, 1), &block);
    lua_createtable(lua, (int)block->num_tokens.count, 0);
    for (size_t i = 0; i < block->num_tokens.count; i++) {
        lua_pushinteger(lua, index_of(&cells[i]));
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static void set_state(lua_State *lua, enum state state) {
    if (state != STATE_NONE) set_text(lua, "state", table_state_names[state]);
}

static int push_cell(lua_State *lua, const struct cell *cell, const struct lists *lists) {
    if (cell == NULL || cell->strategy == NAME_NONE) {
        lua_pushnil(lua);
        return 1;
    }
    lua_createtable(lua, 0, 8);
    names_set(lua, "strategy", &lists->strategies, cell->strategy);
    names_set(lua, "runner_up", &lists->strategies, cell->runner_up);
    names_set(lua, "placement", &lists->placements, cell->placement);
    set_number(lua, "time_us", cell->time_us);
    set_number(lua, "margin", cell->margin);
    set_state(lua, cell->state);
    set_number(lua, "confidence", cell->confidence);
    set_number(lua, "expected_loss", cell->expected);
    set_number(lua, "worst_loss", cell->worst);
    set_number(lua, "worst_loss_us", cell->worst_us);
    set_number(lua, "bound_us", cell->bound_us);
    set_number(lua, "low_us", cell->low_us);
    set_number(lua, "high_us", cell->high_us);
    set_boolean(lua, "derived", cell->basis == BASIS_DERIVED);
    set_boolean(lua, "predicted", cell->basis == BASIS_PREDICTED);
    return 1;
}

// The lesser of two, of which one may be NAN.
static double least(double a, double b) {
    return isnan(a) || b < a ? b : a;
}

// The greater of two, of which one may be NAN.
static double most(double a, double b) {
    return isnan(a) || b > a ? b : a;
}

static void push_segment(lua_State *lua, const struct cell *cells, size_t first, size_t last) {
    double margin = NAN, confidence = NAN, worst = NAN;
    bool derived = false, predicted = false;
    for (size_t i = first; i <= last; i++) {
        margin = least(margin, cells[i].margin);
        confidence = least(confidence, cells[i].confidence);
        worst = most(worst, cells[i].worst);
        derived = derived || cells[i].basis == BASIS_DERIVED;
        predicted = predicted || cells[i].basis == BASIS_PREDICTED;
    }
    lua_createtable(lua, 0, 7);
    set_integer(lua, "first", (lua_Integer)first + 1);
    set_integer(lua, "last", (lua_Integer)last + 1);
    set_integer(lua, "strategy", index_of(&cells[first]));
    set_number(lua, "margin", margin);
    set_number(lua, "confidence", confidence);
    set_number(lua, "worst_loss", worst);
    set_boolean(lua, "derived", derived);
    set_boolean(lua, "predicted", predicted);
}

// The last cell of the run that begins at `first`.
static size_t run_end(const struct cell *cells, size_t count, size_t first) {
    size_t last = first;
    while (last + 1 < count && cells[last + 1].strategy == cells[first].strategy) last++;
    return last;
}

static int lua_segments(lua_State *lua) {
    const struct grid_block *block;
    const struct cell *cells = check_row(lua, table_lua_check(lua, 1), &block);
    lua_Integer found = 0;
    lua_newtable(lua);
    for (size_t first = 0, last; first < block->num_tokens.count; first = last + 1) {
        last = run_end(cells, block->num_tokens.count, first);
        push_segment(lua, cells, first, last);
        lua_seti(lua, -2, ++found);
    }
    return 1;
}

static int lua_runs(lua_State *lua) {
    const struct grid_block *block;
    const struct cell *cells = check_row(lua, table_lua_check(lua, 1), &block);
    lua_Integer found = 0;
    lua_newtable(lua);
    lua_newtable(lua);
    for (size_t first = 0, last; first < block->num_tokens.count; first = last + 1) {
        last = run_end(cells, block->num_tokens.count, first);
        lua_pushinteger(lua, (lua_Integer)last + 1);
        lua_rawseti(lua, -3, ++found);
        lua_pushinteger(lua, index_of(&cells[first]));
        lua_rawseti(lua, -2, found);
    }
    return 2;
}

static int lua_row(lua_State *lua) {
    const struct grid_block *block;
    const struct cell *cells = check_row(lua, table_lua_check(lua, 1), &block);
    push_segment(lua, cells, 0, block->num_tokens.count - 1);
    return 1;
}

static int lua_cell(lua_State *lua) {
    const struct grid_block *block;
    const struct cell *cells = check_row(lua, table_lua_check(lua, 1), &block);
    return push_cell(lua, &cells[table_lua_index(lua, 5, block->num_tokens.count)], lists_of(lua));
}

static int lua_find(lua_State *lua) {
    struct table *table = table_lua_check(lua, 1);
    const struct lists *lists = lists_of(lua);
    struct cell_key key = cell_key_take(lua, 2);
    const struct cell *cell = table_find(table, &key);
    push_cell(lua, cell, lists);
    static const char *const fields[] = {"old_loss", "new_loss"};
    for (size_t i = 0; i < 2 && lua_istable(lua, -1); i++) {
        if (table->judged[i] != NULL) set_number(lua, fields[i], table->judged[i][cell - table->cells]);
    }
    return 1;
}

// ---- the differences of two tables --------------------------------------------------------------

struct change_list { // on top of Lua's stack
    lua_State *lua;
    lua_Integer count;
};

static void set_choice(lua_State *lua, const char *field, const struct cell *cell,
                       const struct lists *lists) {
    if (cell == NULL || cell->strategy == NAME_NONE) return;
    lua_createtable(lua, 0, 4);
    names_set(lua, "strategy", &lists->strategies, cell->strategy);
    names_set(lua, "runner_up", &lists->strategies, cell->runner_up);
    set_number(lua, "margin", cell->margin);
    set_state(lua, cell->state);
    set_number(lua, "confidence", cell->confidence);
    set_number(lua, "expected_loss", cell->expected);
    if (cell->basis == BASIS_PREDICTED) set_boolean(lua, "predicted", true);
    lua_setfield(lua, -2, field);
}

static void push_change(void *context, const struct difference *difference) {
    struct change_list *list = context;
    lua_State *lua = list->lua;
    const struct lists *lists = lists_of(lua);
    const struct cell_key *key = &difference->key;
    lua_createtable(lua, 0, 16); // and what generator/table/changes.lua adds
    block_key_set(lua, key);
    set_integer(lua, "hidden_size", key->hidden_size);
    set_integer(lua, "num_tokens", key->num_tokens);
    splits_set(lua, key->splits);
    names_set(lua, "fusion", &lists->fusions, key->fusion);
    set_choice(lua, "old", difference->old, lists);
    set_choice(lua, "new", difference->new, lists);
    lua_seti(lua, -2, ++list->count);
}

static int lua_changes(lua_State *lua) {
    struct table *old = table_lua_check(lua, 1), *new = table_lua_check(lua, 2);
    struct change_list list = {.lua = lua};
    lua_newtable(lua);
    size_t compared = table_differences(old, new, push_change, &list);
    lua_pushinteger(lua, (lua_Integer)compared);
    return 2;
}

static int lua_left_out(lua_State *lua) {
    const struct table *table = table_lua_check(lua, 1);
    const struct lists *lists = lists_of(lua);
    lua_createtable(lua, 0, 2);
    set_integer(lua, "loopback", (lua_Integer)table->loopback_rows);
    lua_newtable(lua);
    for (size_t i = 0; i < lists->strategies.count; i++) {
        if (table->rows_of_others[i] == 0) continue;
        set_integer(lua, lists->strategies.name[i], (lua_Integer)table->rows_of_others[i]);
    }
    lua_setfield(lua, -2, "strategies");
    return 1;
}

// ---- the type and the module

static int lua_free(lua_State *lua) {
    struct table **table = luaL_checkudata(lua, 1, table_type);
    table_free(*table);
    *table = NULL;
    return 0;
}

struct table **table_lua_push(lua_State *lua) {
    static const luaL_Reg methods[] = {
        {"text", lua_text},
        {"blocks", lua_blocks},
        {"winners", lua_winners},
        {"cell", lua_cell},
        {"find", lua_find},
        {"left_out", lua_left_out},
        {"changes", lua_changes},
        {"segments", lua_segments},
        {"runs", lua_runs},
        {"row", lua_row},
        {"tally", table_lua_tally},
        {"__gc", lua_free},
        {NULL, NULL},
    };
    struct table **table = lua_newuserdatauv(lua, sizeof(struct table *), 0);
    *table = NULL;
    make_type(lua, table_type, methods);
    luaL_setmetatable(lua, table_type);
    return table;
}

// Pushes the table in a text, and its arch; or nil and a message. `path` is for messages.
static int push_parsed(lua_State *lua, const char *path, const char *text, size_t size) {
    struct problem problem;
    char arch[64];
    struct table **table = table_lua_push(lua);
    size_t known = lists_of(lua)->strategies.count;
    *table = table_parse(path, text, size, lists_of(lua), arch, &problem);
    if (*table == NULL && lists_learn(lua, text, size))
        *table = table_parse(path, text, size, lists_of(lua), arch, &problem);
    if (*table == NULL) lists_forget(lua, known);
    if (*table == NULL) return push_failed(lua, problem.text);
    lua_pushstring(lua, arch);
    return 2;
}

static int lua_read(lua_State *lua) {
    struct file_map map;
    struct problem problem;
    const char *path = luaL_checkstring(lua, 1);
    if (!file_open(path, &map, &problem)) return push_failed(lua, problem.text);
    int results = push_parsed(lua, path, map.data, map.size);
    file_close(&map);
    return results;
}

static int lua_parse(lua_State *lua) {
    size_t size;
    const char *path = luaL_checkstring(lua, 1), *text = luaL_checklstring(lua, 2, &size);
    return push_parsed(lua, path, text, size);
}

int luaopen_core_table(lua_State *lua) {
    static const luaL_Reg functions[] = {
        {"read", lua_read}, {"parse", lua_parse}, {"times", table_lua_times}, {NULL, NULL}};
    luaL_newlib(lua, functions);
    return 1;
}
