// Reads the options of core.choose's select; choose_lua.c lists them.
#include "select_options.h"

#include <lauxlib.h>
#include <math.h>
#include <string.h>

#include "base/bindings.h"
#include "rows/rows_lua.h"

static size_t field_length(lua_State *lua, int index, const char *name) {
    lua_getfield(lua, index, name);
    size_t length = (size_t)luaL_len(lua, -1);
    lua_pop(lua, 1);
    return length;
}

static uint32_t field_item(lua_State *lua, int index, const char *name, size_t item) {
    lua_getfield(lua, index, name);
    lua_geti(lua, -1, (lua_Integer)item + 1);
    lua_Integer value = luaL_checkinteger(lua, -1);
    if (value <= 0 || value > INT32_MAX) luaL_error(lua, "%s holds %I, which is no size", name, value);
    lua_pop(lua, 2);
    return (uint32_t)value;
}

// The cells of one block at `index`. Only the axes matter, so each value of each axis is in one key.
static size_t take_block(lua_State *lua, int index, const struct lists *lists, struct cell_key *keys) {
    size_t fusions = field_length(lua, index, "fusions"),
           hidden_sizes = field_length(lua, index, "hidden_sizes");
    size_t num_tokens = field_length(lua, index, "num_tokens");
    if (fusions == 0 || hidden_sizes == 0 || num_tokens == 0) return 0;
    size_t count = fusions > hidden_sizes ? fusions : hidden_sizes;
    if (num_tokens > count) count = num_tokens;
    if (keys == NULL) return count;
    struct cell_key key = block_key_take(lua, index);
    for (size_t i = 0; i < count; i++) {
        lua_getfield(lua, index, "fusions");
        lua_geti(lua, -1, (lua_Integer)(i % fusions) + 1);
        key.fusion = names_pop(lua, &lists->fusions);
        lua_pop(lua, 1);
        key.hidden_size = field_item(lua, index, "hidden_sizes", i % hidden_sizes);
        key.num_tokens = field_item(lua, index, "num_tokens", i % num_tokens);
        keys[i] = key;
    }
    return count;
}

// Reads options.cells into a buffer that the stack keeps.
static void take_more_cells(lua_State *lua, int options, const struct lists *lists,
                            struct selection *selection) {
    if (lua_getfield(lua, options, "cells") != LUA_TTABLE) return;
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

static void take_candidates(lua_State *lua, int options, const struct lists *lists,
                            struct selection *selection) {
    memcpy(selection->may_win, lists->candidate, sizeof selection->may_win);
    if (lua_getfield(lua, options, "candidates") == LUA_TTABLE) {
        bool named[NAMES_MAX] = {false};
        lua_Integer count = luaL_len(lua, -1);
        for (lua_Integer i = 1; i <= count; i++) {
            lua_geti(lua, -1, i);
            named[names_pop(lua, &lists->strategies)] = true;
        }
        for (size_t i = 0; i < NAMES_MAX; i++) selection->may_win[i] &= named[i];
    }
    lua_pop(lua, 1);
}

static void take_lookup(lua_State *lua, int options, struct selection *selection) {
    static const char *const names[] = {[LOOKUP_NEAREST] = "nearest",
                                        [LOOKUP_FLOOR] = "floor",
                                        [LOOKUP_LOG2] = "log2",
                                        [LOOKUP_EXACT] = "exact",
                                        NULL};
    lua_getfield(lua, options, "lookup");
    selection->lookup = (enum lookup)luaL_checkoption(lua, -1, "exact", names);
    lua_pop(lua, 1);
}

// Reads options.derived into a buffer that the stack keeps.
static void take_derived(lua_State *lua, int options, const struct lists *lists,
                         struct selection *selection) {
    if (lua_getfield(lua, options, "derived") != LUA_TTABLE) return;
    int list = lua_gettop(lua);
    size_t count = (size_t)luaL_len(lua, list);
    struct derived_time *derived = lua_newuserdatauv(lua, (count + 1) * sizeof *derived, 0);
    for (size_t i = 0; i < count; i++, lua_pop(lua, 1)) {
        lua_geti(lua, list, (lua_Integer)i + 1);
        int item = lua_gettop(lua);
        derived[i] = (struct derived_time){.key = cell_key_take(lua, item)};
        derived[i].strategy = names_field(lua, item, "strategy", &lists->strategies);
        derived[i].placement = names_field(lua, item, "placement", &lists->placements);
        derived[i].time_us = field_number(lua, item, "time_us");
        derived[i].predicted = field_boolean(lua, item, "predicted");
        derived[i].low_us = derived[i].predicted ? field_number(lua, item, "low_us") : (double)NAN;
        derived[i].high_us = derived[i].predicted ? field_number(lua, item, "high_us") : (double)NAN;
    }
    selection->derived = derived;
    selection->derived_count = count;
}

// Reads options.untried into a buffer that the stack keeps.
static void take_untried(lua_State *lua, int options, const struct lists *lists,
                         struct selection *selection) {
    if (lua_getfield(lua, options, "untried") != LUA_TTABLE) return;
    int list = lua_gettop(lua);
    size_t count = (size_t)luaL_len(lua, list);
    struct untried_strategy *untried = lua_newuserdatauv(lua, (count + 1) * sizeof *untried, 0);
    for (size_t i = 0; i < count; i++, lua_pop(lua, 1)) {
        lua_geti(lua, list, (lua_Integer)i + 1);
        int item = lua_gettop(lua);
        untried[i] = (struct untried_strategy){cell_key_take(lua, item),
                                               names_field(lua, item, "strategy", &lists->strategies)};
    }
    selection->untried = untried;
    selection->untried_count = count;
}

// Reads options.workload into a buffer that the stack keeps.
static void take_workload(lua_State *lua, int options, struct selection *selection) {
    if (lua_getfield(lua, options, "workload") != LUA_TTABLE) return;
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

// The index of the name in a field; NAME_NONE: it is nil or false.
static uint8_t take_name(lua_State *lua, int options, const char *field, const struct names *names) {
    lua_getfield(lua, options, field);
    if (lua_toboolean(lua, -1)) return names_pop(lua, names);
    lua_pop(lua, 1);
    return NAME_NONE;
}

void select_options_take(lua_State *lua, int options, const struct lists *lists,
                         struct selection *selection) {
    *selection = (struct selection){
        .loopback = field_boolean(lua, options, "loopback"),
        .least = field_boolean(lua, options, "least"),
        .only_more_cells = field_boolean(lua, options, "only_cells"),
        .is_stable = field_boolean(lua, options, "stable"),
        .dtype = take_name(lua, options, "dtype", &lists->dtypes),
        .same_bits_as = take_name(lua, options, "same_bits_as", &lists->strategies),
    };
    lua_getfield(lua, options, "regret");
    selection->regret = luaL_optnumber(lua, -1, 0);
    lua_pop(lua, 1);
    take_candidates(lua, options, lists, selection);
    take_lookup(lua, options, selection);
    take_more_cells(lua, options, lists, selection);
    take_derived(lua, options, lists, selection);
    take_untried(lua, options, lists, selection);
    take_workload(lua, options, selection);
}
