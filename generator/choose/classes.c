// Classes of numerics: which strategies of a slice give equal bits, and the cost of a restriction to one
// class.
//
// - classes(rows, { world_size =, dtype =, op =, mode =, fusion = }, options) gives, in the order of the list
//   of strategies, { { names = { strategies }, shapes =, cost =, worst = }... }: the number of shapes where
//   the class has a time, and the loss there of the best of the class against the best of all, as shares: the
//   mean and the worst. Then the number of shapes, the names of strategies with unknown bits, and of those
//   with varying bits. Options: first = a strategy: the first class is its own; loopback = whether loopback
//   rows count.
//
// numerics.h defines equal bits and classes.
#include "classes.h"

#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bindings.h"
#include "numerics.h"
#include "rows/rows_lua.h"

struct entry {
    uint64_t shape;
    double time_us;
    uint8_t strategy;
};

struct classes {
    struct numerics numerics;
    struct entry *entries; // by shape, then strategy
    size_t count, shapes;
    bool seen[NAMES_MAX];
    uint8_t class_of[NAMES_MAX]; // its first member; NAME_NONE: none
    struct {
        size_t shapes;
        double cost, worst;
    } of[NAMES_MAX]; // by first member
};

static int compare_entries(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    if (a->shape != b->shape) return a->shape < b->shape ? -1 : 1;
    return (a->strategy > b->strategy) - (a->strategy < b->strategy);
}

// The rows of the slice that may win.
static void take_entries(const struct rows *rows, struct slice_key key, const struct lists *lists,
                         uint8_t barred, struct classes *all) {
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        if (!slice_key_equal(slice_key_of(&row->key), key) || !lists->candidate[row->strategy]) continue;
        if (barred != NAME_NONE && row->placement == barred) continue;
        all->entries[all->count++] = (struct entry){
            .shape = (uint64_t)row->key.hidden_size << 32 | row->key.num_tokens,
            .time_us = row->time_us,
            .strategy = row->strategy,
        };
        all->seen[row->strategy] = true;
    }
    qsort(all->entries, all->count, sizeof *all->entries, compare_entries);
}

// One past the last entry of the shape that begins at `first`.
static size_t end_of_shape(const struct classes *all, size_t first) {
    size_t end = first + 1;
    while (end < all->count && all->entries[end].shape == all->entries[first].shape) end++;
    return end;
}

// Strategies with unknown or varying bits have no class here.
static void find_classes(struct classes *all, uint8_t first) {
    numerics_classes(&all->numerics, first, all->class_of);
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (all->numerics.relation[i][i] != BITS_EQUAL) all->class_of[i] = NAME_NONE;
    }
}

// Adds the loss of each class at one shape.
static void count_shape(struct classes *all, size_t first, size_t end) {
    double best = INFINITY, best_of[NAMES_MAX];
    for (size_t i = 0; i < NAMES_MAX; i++) best_of[i] = INFINITY;
    for (size_t i = first; i < end; i++) {
        uint8_t class = all->class_of[all->entries[i].strategy];
        best = fmin(best, all->entries[i].time_us);
        if (class != NAME_NONE) best_of[class] = fmin(best_of[class], all->entries[i].time_us);
    }
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (isinf(best_of[i])) continue;
        double loss = best_of[i] / best - 1;
        all->of[i].shapes++;
        all->of[i].cost += loss;
        all->of[i].worst = fmax(all->of[i].worst, loss);
    }
}

static void push_class(lua_State *lua, const struct classes *all, uint8_t class, const struct lists *lists) {
    size_t shapes = all->of[class].shapes;
    lua_Integer count = 0;
    lua_createtable(lua, 0, 4);
    lua_newtable(lua);
    for (size_t i = 0; i < lists->strategies.count; i++) {
        // The first member first, and the others in the order of the list.
        uint8_t member = (uint8_t)(i == 0 ? class : i <= class ? i - 1 : i);
        if (all->class_of[member] != class) continue;
        lua_pushstring(lua, lists->strategies.name[member]);
        lua_seti(lua, -2, ++count);
    }
    lua_setfield(lua, -2, "names");
    set_integer(lua, "shapes", (lua_Integer)shapes);
    set_number(lua, "cost", shapes == 0 ? 0 : all->of[class].cost / (double)shapes);
    set_number(lua, "worst", all->of[class].worst);
}

// The strategies with varying bits, or those with unknown bits.
static void push_names(lua_State *lua, const struct classes *all, bool varying, const struct lists *lists) {
    lua_Integer count = 0;
    lua_newtable(lua);
    for (size_t i = 0; i < lists->strategies.count; i++) {
        bool varies = all->numerics.varies[i];
        if (!all->seen[i] || varies != varying || (!varies && all->numerics.known[i])) continue;
        lua_pushstring(lua, lists->strategies.name[i]);
        lua_seti(lua, -2, ++count);
    }
}

static int push_classes(lua_State *lua, const struct classes *all, uint8_t wanted,
                        const struct lists *lists) {
    lua_Integer count = 0;
    lua_newtable(lua);
    if (wanted != NAME_NONE && all->class_of[wanted] == wanted) {
        push_class(lua, all, wanted, lists);
        lua_seti(lua, -2, ++count);
    }
    for (size_t i = 0; i < lists->strategies.count; i++) {
        if (i == wanted || all->class_of[i] != i) continue;
        push_class(lua, all, (uint8_t)i, lists);
        lua_seti(lua, -2, ++count);
    }
    lua_pushinteger(lua, (lua_Integer)all->shapes);
    push_names(lua, all, false, lists);
    push_names(lua, all, true, lists);
    return 4;
}

static uint8_t take_first(lua_State *lua, const struct lists *lists) {
    if (lua_isnoneornil(lua, 3) || lua_getfield(lua, 3, "first") == LUA_TNIL) return NAME_NONE;
    return names_index(&lists->strategies, luaL_checkstring(lua, -1));
}

int choose_lua_classes(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    const struct lists *lists = lists_of(lua);
    struct slice_key key = slice_key_take(lua, 2);
    uint8_t wanted = take_first(lua, lists);
    bool has_loopback = !lua_isnoneornil(lua, 3) && field_boolean(lua, 3, "loopback");
    uint8_t barred = has_loopback ? NAME_NONE : names_index(&lists->placements, "loopback");
    struct classes *all = lua_newuserdatauv(lua, sizeof *all, 0);
    memset(all, 0, sizeof *all);
    all->entries = lua_newuserdatauv(lua, (rows->count + 1) * sizeof *all->entries, 0);
    take_entries(rows, key, lists, barred, all);
    if (!numerics_relate(rows, key, barred, lists, &all->numerics)) return luaL_error(lua, "out of memory");
    find_classes(all, wanted);
    for (size_t first = 0, end; first < all->count; first = end) {
        end = end_of_shape(all, first);
        all->shapes++;
        count_shape(all, first, end);
    }
    return push_classes(lua, all, wanted, lists);
}
