// require "core.table": the canonical table for Lua. Indices count from 1; what fails gives nil, message.
//
// - select(rows, options) gives a table. Options: candidates = { names } (nil: all that may win); loopback =
//   whether loopback rows compete; least = whether the least of repeated rows counts, which are refused
//   otherwise; lookup = "nearest", "floor", "log2" or "exact" (the default): the reader's, which makes the
//   bins; cells = { { world_size =, dtype =, op =, mode =, fusions = {}, hidden_sizes = {}, num_tokens = {}
//   }... }, which the table has beside those of the rows; with only_cells, rows between these are no cells,
//   but count for the bins that they lie in; workload = { { hidden_size =, num_tokens =, weight = }... };
//   derived = { { world_size =, ..., num_tokens =, strategy =, time_us =, spread =, noise = }... }, times
//   that were not measured; incumbent = a table whose choices stay within noise; same_bits_as = a strategy:
//   only those with its bits may win; regret = what a cell may lose for the sake of fewer borders, as a share
//   (default: 0).
// - read(path) gives a table and its arch; parse(path, text) the same of a text.
// - upper_tail(z) gives P(x > z) of a normal distribution.
// - table:changes(new) gives { { world_size =, dtype =, op =, mode =, fusion =, hidden_size =, num_tokens =,
//   old, new = { strategy =, runner_up =, margin =, confidence = } or nil }... } of the cells whose choices
//   differ, and how many cells have a choice in both.
// - table:text(arch) gives the CSV.
// - table:blocks() gives a list of { world_size =, dtype =, op =, mode =, fusions = {}, hidden_sizes = {},
//   num_tokens = {}, splits (nil: none), sizes_only (bytes in place of num_tokens, and no hidden size) }.
// - table:winners(block, fusion, hidden) gives the winners of a row of cells, as places in lists.strategies;
//   0: unmeasured.
// - table:segments(block, fusion, hidden) gives the runs of cells with the same winner in such a row, { {
// first
//   =, last = token counts by place, strategy = a place in the list or 0, margin =, confidence = the least of
//   its cells, regret = the most, derived = whether any of them is }... }; a number that no cell has is
//   missing.
// - table:cell(block, fusion, hidden, tokens) gives { strategy =, time_us =, runner_up =, margin =,
//   confidence =, regret =, bound_us =, placement =, derived = }, or nil where nothing was measured.
// - table:find{ world_size =, ... } gives the same, by the cell's own values.
// - table:left_out() gives { loopback = rows, strategies = { NAME = rows } } that did not compete.
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rows/rows_lua.h"
#include "table.h"

static const char table_type[] = "gentables.table";

static int fail(lua_State *lua, const struct problem *problem) {
    lua_pushnil(lua);
    lua_pushstring(lua, problem->text);
    return 2;
}

static struct table *check_table(lua_State *lua) {
    return *(struct table **)luaL_checkudata(lua, 1, table_type);
}

static struct table **push_table(lua_State *lua) {
    struct table **table = lua_newuserdatauv(lua, sizeof(struct table *), 0);
    *table = NULL;
    luaL_setmetatable(lua, table_type);
    return table;
}

static int lua_free(lua_State *lua) {
    struct table **table = luaL_checkudata(lua, 1, table_type);
    table_free(*table);
    *table = NULL;
    return 0;
}

// The name at the top of the stack, popped; raises where it is none of these.
static uint8_t pop_name(lua_State *lua, const struct names *names) {
    size_t length;
    const char *text = luaL_checklstring(lua, -1, &length);
    uint8_t index = names_find(names, text, text + length);
    if (index == NAME_NONE) luaL_error(lua, "unknown %s %s", names->what, text);
    lua_pop(lua, 1);
    return index;
}

static lua_Integer field_integer(lua_State *lua, int index, const char *name) {
    lua_getfield(lua, index, name);
    lua_Integer value = luaL_checkinteger(lua, -1);
    lua_pop(lua, 1);
    return value;
}

static double field_number(lua_State *lua, int index, const char *name) {
    lua_getfield(lua, index, name);
    double value = luaL_checknumber(lua, -1);
    lua_pop(lua, 1);
    return value;
}

static uint8_t field_name(lua_State *lua, int index, const char *name, const struct names *names) {
    lua_getfield(lua, index, name);
    return pop_name(lua, names);
}

// The splits of the table at `index`, or 0.
static uint64_t field_splits(lua_State *lua, int index) {
    size_t length = 0;
    uint64_t splits;
    lua_getfield(lua, index, "splits");
    const char *text = lua_tolstring(lua, -1, &length);
    const char *end = text != NULL ? text + length : NULL;
    if (!splits_parse(text, end, &splits)) luaL_error(lua, "%s is no splits", text);
    lua_pop(lua, 1);
    return splits;
}

// world_size, dtype, op, mode and splits of the table at `index`.
static struct cell_key block_key(lua_State *lua, int index, const struct lists *lists) {
    return (struct cell_key){
        .splits = field_splits(lua, index),
        .world_size = (uint16_t)field_integer(lua, index, "world_size"),
        .dtype = field_name(lua, index, "dtype", &lists->dtypes),
        .op = field_name(lua, index, "op", &lists->ops),
        .mode = field_name(lua, index, "mode", &lists->modes),
    };
}

static size_t field_length(lua_State *lua, int index, const char *name) {
    lua_getfield(lua, index, name);
    size_t length = (size_t)luaL_len(lua, -1);
    lua_pop(lua, 1);
    return length;
}

static uint32_t field_item(lua_State *lua, int index, const char *name, size_t place) {
    lua_getfield(lua, index, name);
    lua_geti(lua, -1, (lua_Integer)place + 1);
    lua_Integer value = luaL_checkinteger(lua, -1);
    if (value <= 0 || value > INT32_MAX) luaL_error(lua, "%s holds %I, which is no size", name, value);
    lua_pop(lua, 2);
    return (uint32_t)value;
}

// The cells of one block at `index`. The axes are all that matters, so each value of each stands in one key.
static size_t take_block(lua_State *lua, int index, const struct lists *lists, struct cell_key *keys) {
    size_t fusions = field_length(lua, index, "fusions"),
           hidden_sizes = field_length(lua, index, "hidden_sizes");
    size_t num_tokens = field_length(lua, index, "num_tokens");
    if (fusions == 0 || hidden_sizes == 0 || num_tokens == 0) return 0;
    size_t count = fusions > hidden_sizes ? fusions : hidden_sizes;
    if (num_tokens > count) count = num_tokens;
    if (keys == NULL) return count;
    struct cell_key key = block_key(lua, index, lists);
    for (size_t i = 0; i < count; i++) {
        lua_getfield(lua, index, "fusions");
        lua_geti(lua, -1, (lua_Integer)(i % fusions) + 1);
        key.fusion = pop_name(lua, &lists->fusions);
        lua_pop(lua, 1);
        key.hidden_size = field_item(lua, index, "hidden_sizes", i % hidden_sizes);
        key.num_tokens = field_item(lua, index, "num_tokens", i % num_tokens);
        keys[i] = key;
    }
    return count;
}

// Reads options.cells into a buffer that the stack keeps; stack place 2 has the options.
static void take_more_cells(lua_State *lua, const struct lists *lists, struct selection *selection) {
    if (lua_getfield(lua, 2, "cells") != LUA_TTABLE) return;
    int cells = lua_gettop(lua);
    lua_Integer blocks = luaL_len(lua, cells);
    size_t count = 0;
    for (lua_Integer i = 1; i <= blocks; i++, lua_pop(lua, 1)) {
        lua_geti(lua, cells, i);
        count += take_block(lua, lua_gettop(lua), lists, NULL);
    }
    struct cell_key *keys = lua_newuserdatauv(lua, (count + 1) * sizeof *keys, 0);
    for (lua_Integer i = 1; i <= blocks; i++, lua_pop(lua, 1)) {
        lua_geti(lua, cells, i);
        selection->more_cell_count +=
            take_block(lua, lua_gettop(lua), lists, keys + selection->more_cell_count);
    }
    selection->more_cells = keys;
}

static void take_candidates(lua_State *lua, const struct lists *lists, struct selection *selection) {
    memcpy(selection->may_win, lists->candidate, sizeof selection->may_win);
    if (lua_getfield(lua, 2, "candidates") == LUA_TTABLE) {
        bool named[NAMES_MAX] = {false};
        lua_Integer count = luaL_len(lua, -1);
        for (lua_Integer i = 1; i <= count; i++) {
            lua_geti(lua, -1, i);
            named[pop_name(lua, &lists->strategies)] = true;
        }
        for (size_t i = 0; i < NAMES_MAX; i++) selection->may_win[i] &= named[i];
    }
    lua_pop(lua, 1);
}

static void take_lookup(lua_State *lua, struct selection *selection) {
    static const char *const names[] = {[LOOKUP_NEAREST] = "nearest",
                                        [LOOKUP_FLOOR] = "floor",
                                        [LOOKUP_LOG2] = "log2",
                                        [LOOKUP_EXACT] = "exact",
                                        NULL};
    lua_getfield(lua, 2, "lookup");
    selection->lookup = (enum lookup)luaL_checkoption(lua, -1, "exact", names);
    lua_pop(lua, 1);
}

// Reads options.derived into a buffer that the stack keeps.
static void take_derived(lua_State *lua, const struct lists *lists, struct selection *selection) {
    if (lua_getfield(lua, 2, "derived") != LUA_TTABLE) return;
    int list = lua_gettop(lua);
    size_t count = (size_t)luaL_len(lua, list);
    struct derived_time *derived = lua_newuserdatauv(lua, (count + 1) * sizeof *derived, 0);
    for (size_t i = 0; i < count; i++, lua_pop(lua, 1)) {
        lua_geti(lua, list, (lua_Integer)i + 1);
        int item = lua_gettop(lua);
        derived[i] = (struct derived_time){.key = block_key(lua, item, lists)};
        derived[i].key.fusion = field_name(lua, item, "fusion", &lists->fusions);
        derived[i].key.hidden_size = (uint32_t)field_integer(lua, item, "hidden_size");
        derived[i].key.num_tokens = (uint32_t)field_integer(lua, item, "num_tokens");
        derived[i].strategy = field_name(lua, item, "strategy", &lists->strategies);
        derived[i].placement = field_name(lua, item, "placement", &lists->placements);
        derived[i].time_us = field_number(lua, item, "time_us");
        derived[i].spread = field_number(lua, item, "spread");
        derived[i].noise = field_number(lua, item, "noise");
    }
    selection->derived = derived;
    selection->derived_count = count;
}

// Reads options.workload into a buffer that the stack keeps.
static void take_workload(lua_State *lua, struct selection *selection) {
    if (lua_getfield(lua, 2, "workload") != LUA_TTABLE) return;
    int list = lua_gettop(lua);
    size_t count = (size_t)luaL_len(lua, list);
    struct workload_shape *shapes = lua_newuserdatauv(lua, (count + 1) * sizeof *shapes, 0);
    for (size_t i = 0; i < count; i++, lua_pop(lua, 1)) {
        lua_geti(lua, list, (lua_Integer)i + 1);
        int item = lua_gettop(lua);
        shapes[i].hidden_size = (uint32_t)field_integer(lua, item, "hidden_size");
        shapes[i].num_tokens = (uint32_t)field_integer(lua, item, "num_tokens");
        shapes[i].weight = field_number(lua, item, "weight");
    }
    selection->workload = shapes;
    selection->workload_count = count;
}

static void take_incumbent(lua_State *lua, struct selection *selection) {
    if (lua_getfield(lua, 2, "incumbent") != LUA_TNIL) {
        selection->incumbent = *(struct table **)luaL_checkudata(lua, -1, table_type);
    }
    lua_pop(lua, 1);
}

static void take_same_bits(lua_State *lua, const struct lists *lists, struct selection *selection) {
    selection->same_bits_as = NAME_NONE;
    if (lua_getfield(lua, 2, "same_bits_as") == LUA_TNIL) {
        lua_pop(lua, 1);
    } else {
        selection->same_bits_as = pop_name(lua, &lists->strategies);
    }
}

static int lua_select(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    const struct lists *lists = lists_of(lua);
    struct selection selection = {.loopback = false};
    struct problem problem;
    lua_settop(lua, 2);
    if (lua_isnil(lua, 2)) {
        lua_newtable(lua);
        lua_replace(lua, 2);
    }
    take_candidates(lua, lists, &selection);
    lua_getfield(lua, 2, "loopback");
    selection.loopback = lua_toboolean(lua, -1);
    lua_getfield(lua, 2, "least");
    selection.least = lua_toboolean(lua, -1);
    lua_getfield(lua, 2, "only_cells");
    selection.only_more_cells = lua_toboolean(lua, -1);
    lua_getfield(lua, 2, "regret");
    selection.regret = luaL_optnumber(lua, -1, 0);
    take_lookup(lua, &selection);
    take_incumbent(lua, &selection);
    take_same_bits(lua, lists, &selection);
    take_more_cells(lua, lists, &selection);
    take_derived(lua, lists, &selection);
    take_workload(lua, &selection);
    struct table **table = push_table(lua);
    *table = table_select(rows, &selection, lists, &problem);
    return *table == NULL ? fail(lua, &problem) : 1;
}

static int lua_read(lua_State *lua) {
    struct problem problem;
    char arch[64];
    const char *path = luaL_checkstring(lua, 1);
    struct table **table = push_table(lua);
    size_t known = lists_of(lua)->strategies.count;
    *table = table_read(path, lists_of(lua), arch, &problem);
    if (*table == NULL && lists_learn_file(lua, path))
        *table = table_read(path, lists_of(lua), arch, &problem);
    if (*table == NULL) lists_forget(lua, known);
    if (*table == NULL) return fail(lua, &problem);
    lua_pushstring(lua, arch);
    return 2;
}

static int lua_parse(lua_State *lua) {
    struct problem problem;
    char arch[64];
    size_t size;
    const char *path = luaL_checkstring(lua, 1), *text = luaL_checklstring(lua, 2, &size);
    struct table **table = push_table(lua);
    size_t known = lists_of(lua)->strategies.count;
    *table = table_parse(path, text, size, lists_of(lua), arch, &problem);
    if (*table == NULL && lists_learn(lua, text, size))
        *table = table_parse(path, text, size, lists_of(lua), arch, &problem);
    if (*table == NULL) lists_forget(lua, known);
    if (*table == NULL) return fail(lua, &problem);
    lua_pushstring(lua, arch);
    return 2;
}

static int lua_text(lua_State *lua) {
    size_t size;
    char *text = table_text(check_table(lua), luaL_checkstring(lua, 2), lists_of(lua), &size);
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

static void set_name(lua_State *lua, const char *field, const struct names *names, uint8_t index) {
    lua_pushstring(lua, index == NAME_NONE ? NULL : names->name[index]);
    lua_setfield(lua, -2, field);
}

// Absent where there are none.
static void set_splits(lua_State *lua, uint64_t splits) {
    char text[SPLITS_TEXT_SIZE];
    if (splits == 0) return;
    lua_pushlstring(lua, text, (size_t)(splits_print(text, splits) - text));
    lua_setfield(lua, -2, "splits");
}

static int lua_blocks(lua_State *lua) {
    const struct table *table = check_table(lua);
    const struct lists *lists = lists_of(lua);
    lua_createtable(lua, (int)table->grid.block_count, 0);
    for (size_t i = 0; i < table->grid.block_count; i++) {
        const struct grid_block *block = &table->grid.blocks[i];
        lua_createtable(lua, 0, 8);
        lua_pushinteger(lua, block->world_size);
        lua_setfield(lua, -2, "world_size");
        set_name(lua, "dtype", &lists->dtypes, block->dtype);
        set_name(lua, "op", &lists->ops, block->op);
        set_name(lua, "mode", &lists->modes, block->mode);
        set_splits(lua, block->splits);
        lua_pushboolean(lua, block->has_no_shape);
        lua_setfield(lua, -2, "sizes_only");
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

// Argument `index` as a place among `count`, from 0.
static size_t check_place(lua_State *lua, int index, size_t count) {
    lua_Integer place = luaL_checkinteger(lua, index);
    luaL_argcheck(lua, place >= 1 && (size_t)place <= count, index, "no such place in the table");
    return (size_t)place - 1;
}

// The row of cells that arguments 2 to 4 (block, fusion, hidden) name.
static const struct cell *check_row(lua_State *lua, const struct table *table,
                                    const struct grid_block **block) {
    *block = &table->grid.blocks[check_place(lua, 2, table->grid.block_count)];
    size_t fusion = check_place(lua, 3, (*block)->fusion_count);
    size_t hidden = check_place(lua, 4, (*block)->hidden_sizes.count);
    size_t row = fusion * (*block)->hidden_sizes.count + hidden;
    return &table->cells[(*block)->first_cell + row * (*block)->num_tokens.count];
}

static int lua_winners(lua_State *lua) {
    const struct grid_block *block;
    const struct cell *cells = check_row(lua, check_table(lua), &block);
    lua_createtable(lua, (int)block->num_tokens.count, 0);
    for (size_t i = 0; i < block->num_tokens.count; i++) {
        lua_pushinteger(lua, cells[i].strategy == NAME_NONE ? 0 : cells[i].strategy + 1);
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static void set_number(lua_State *lua, const char *field, double value) {
    if (isnan(value)) return;
    lua_pushnumber(lua, value);
    lua_setfield(lua, -2, field);
}

static int push_cell(lua_State *lua, const struct cell *cell, const struct lists *lists) {
    if (cell == NULL || cell->strategy == NAME_NONE) {
        lua_pushnil(lua);
        return 1;
    }
    lua_createtable(lua, 0, 8);
    set_name(lua, "strategy", &lists->strategies, cell->strategy);
    set_name(lua, "runner_up", &lists->strategies, cell->runner_up);
    set_name(lua, "placement", &lists->placements, cell->placement);
    set_number(lua, "time_us", cell->time_us);
    set_number(lua, "margin", cell->margin);
    set_number(lua, "confidence", cell->confidence);
    set_number(lua, "regret", cell->regret);
    set_number(lua, "bound_us", cell->bound_us);
    lua_pushboolean(lua, cell->derived);
    lua_setfield(lua, -2, "derived");
    return 1;
}

// The lesser of two, of which one may be NAN.
static double least(double a, double b) {
    return isnan(a) || b < a ? b : a;
}

static double most(double a, double b) {
    return isnan(a) || b > a ? b : a;
}

static void push_segment(lua_State *lua, const struct cell *cells, size_t first, size_t last) {
    double margin = NAN, confidence = NAN, regret = NAN;
    bool derived = false;
    for (size_t i = first; i <= last; i++) {
        margin = least(margin, cells[i].margin);
        confidence = least(confidence, cells[i].confidence);
        regret = most(regret, cells[i].regret);
        derived = derived || cells[i].derived;
    }
    lua_createtable(lua, 0, 7);
    lua_pushinteger(lua, (lua_Integer)first + 1);
    lua_setfield(lua, -2, "first");
    lua_pushinteger(lua, (lua_Integer)last + 1);
    lua_setfield(lua, -2, "last");
    lua_pushinteger(lua, cells[first].strategy == NAME_NONE ? 0 : cells[first].strategy + 1);
    lua_setfield(lua, -2, "strategy");
    set_number(lua, "margin", margin);
    set_number(lua, "confidence", confidence);
    set_number(lua, "regret", regret);
    lua_pushboolean(lua, derived);
    lua_setfield(lua, -2, "derived");
}

static int lua_segments(lua_State *lua) {
    const struct grid_block *block;
    const struct cell *cells = check_row(lua, check_table(lua), &block);
    lua_Integer found = 0;
    lua_newtable(lua);
    for (size_t first = 0, last; first < block->num_tokens.count; first = last + 1) {
        last = first;
        while (last + 1 < block->num_tokens.count && cells[last + 1].strategy == cells[first].strategy)
            last++;
        push_segment(lua, cells, first, last);
        lua_seti(lua, -2, ++found);
    }
    return 1;
}

static int lua_cell(lua_State *lua) {
    const struct grid_block *block;
    const struct cell *cells = check_row(lua, check_table(lua), &block);
    return push_cell(lua, &cells[check_place(lua, 5, block->num_tokens.count)], lists_of(lua));
}

static int lua_find(lua_State *lua) {
    struct table *table = check_table(lua);
    const struct lists *lists = lists_of(lua);
    luaL_checktype(lua, 2, LUA_TTABLE);
    struct cell_key key = block_key(lua, 2, lists);
    key.fusion = field_name(lua, 2, "fusion", &lists->fusions);
    key.hidden_size = (uint32_t)field_integer(lua, 2, "hidden_size");
    key.num_tokens = (uint32_t)field_integer(lua, 2, "num_tokens");
    return push_cell(lua, table_find(table, &key), lists);
}

// ---- the difference of two tables

struct difference {
    struct table *old, *new;
    const struct lists *lists;
    lua_Integer compared,
        found; // cells that both have with a choice; entries of the list, on top of the stack
};

// What tells of a choice that changed.
static void set_choice(lua_State *lua, const char *field, const struct cell *cell,
                       const struct lists *lists) {
    if (cell == NULL || cell->strategy == NAME_NONE) return;
    lua_createtable(lua, 0, 4);
    set_name(lua, "strategy", &lists->strategies, cell->strategy);
    set_name(lua, "runner_up", &lists->strategies, cell->runner_up);
    set_number(lua, "margin", cell->margin);
    set_number(lua, "confidence", cell->confidence);
    lua_setfield(lua, -2, field);
}

// Enters a cell of `table` unless both sides say the same.
static void compare_cell(lua_State *lua, struct difference *difference, const struct cell_key *key,
                         const struct cell *old, const struct cell *new) {
    uint8_t before = old == NULL ? NAME_NONE : old->strategy, after = new == NULL ? NAME_NONE : new->strategy;
    if (before != NAME_NONE && after != NAME_NONE) difference->compared++;
    if (before == after) return;
    const struct lists *lists = difference->lists;
    lua_createtable(lua, 0, 16); // and what generator/table/changes.lua adds
    lua_pushinteger(lua, key->world_size);
    lua_setfield(lua, -2, "world_size");
    lua_pushinteger(lua, key->hidden_size);
    lua_setfield(lua, -2, "hidden_size");
    lua_pushinteger(lua, key->num_tokens);
    lua_setfield(lua, -2, "num_tokens");
    set_name(lua, "dtype", &lists->dtypes, key->dtype);
    set_name(lua, "op", &lists->ops, key->op);
    set_name(lua, "mode", &lists->modes, key->mode);
    set_splits(lua, key->splits);
    set_name(lua, "fusion", &lists->fusions, key->fusion);
    set_choice(lua, "old", old, lists);
    set_choice(lua, "new", new, lists);
    lua_seti(lua, -2, ++difference->found);
}

// Compares the cells of `table`; those that the other one has, too, only where `table` is the old one.
static void compare_cells(lua_State *lua, struct difference *difference, const struct table *table) {
    bool is_old = table == difference->old;
    struct table *other = is_old ? difference->new : difference->old;
    for (size_t i = 0; i < table->grid.block_count; i++) {
        const struct grid_block *block = &table->grid.blocks[i];
        const struct cell *cell = &table->cells[block->first_cell];
        size_t hidden_sizes = block->hidden_sizes.count, num_tokens = block->num_tokens.count;
        for (size_t at = 0; at < block->fusion_count * hidden_sizes * num_tokens; at++, cell++) {
            struct cell_key key = {.splits = block->splits,
                                   .world_size = block->world_size,
                                   .dtype = block->dtype,
                                   .op = block->op,
                                   .mode = block->mode,
                                   .fusion = block->fusion[at / num_tokens / hidden_sizes],
                                   .hidden_size = block->hidden_sizes.value[at / num_tokens % hidden_sizes],
                                   .num_tokens = block->num_tokens.value[at % num_tokens]};
            const struct cell *there = table_find(other, &key);
            if (is_old) {
                compare_cell(lua, difference, &key, cell, there);
            } else if (there == NULL) {
                compare_cell(lua, difference, &key, NULL, cell);
            }
        }
    }
}

static int lua_changes(lua_State *lua) {
    struct table *new = *(struct table **)luaL_checkudata(lua, 2, table_type);
    struct difference difference = {.old = check_table(lua), .new = new, .lists = lists_of(lua)};
    lua_newtable(lua);
    compare_cells(lua, &difference, difference.old);
    if (difference.old != difference.new) compare_cells(lua, &difference, difference.new);
    lua_pushinteger(lua, difference.compared);
    return 2;
}

// P(x > z) of a normal distribution.
static int lua_upper_tail(lua_State *lua) {
    lua_pushnumber(lua, 0.5 * erfc(luaL_checknumber(lua, 1) / sqrt(2)));
    return 1;
}

static int lua_left_out(lua_State *lua) {
    const struct table *table = check_table(lua);
    const struct lists *lists = lists_of(lua);
    lua_createtable(lua, 0, 2);
    lua_pushinteger(lua, (lua_Integer)table->loopback_rows);
    lua_setfield(lua, -2, "loopback");
    lua_newtable(lua);
    for (size_t i = 0; i < lists->strategies.count; i++) {
        if (table->rows_of_others[i] == 0) continue;
        lua_pushinteger(lua, (lua_Integer)table->rows_of_others[i]);
        lua_setfield(lua, -2, lists->strategies.name[i]);
    }
    lua_setfield(lua, -2, "strategies");
    return 1;
}

int luaopen_core_table(lua_State *lua) {
    static const luaL_Reg functions[] = {{"select", lua_select},
                                         {"read", lua_read},
                                         {"parse", lua_parse},
                                         {"upper_tail", lua_upper_tail},
                                         {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"text", lua_text},       {"blocks", lua_blocks},     {"winners", lua_winners},
        {"cell", lua_cell},       {"find", lua_find},         {"left_out", lua_left_out},
        {"changes", lua_changes}, {"segments", lua_segments}, {NULL, NULL},
    };
    luaL_newmetatable(lua, table_type);
    luaL_newlib(lua, methods);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, lua_free);
    lua_setfield(lua, -2, "__gc");
    luaL_newlib(lua, functions);
    return 1;
}
