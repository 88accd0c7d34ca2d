// Classes of numerics: which strategies of a slice give equal bits, and what keeping to one class costs.
//
// - rows:classes({ world_size =, dtype =, op =, mode =, fusion = }, options) gives, in the order of the list
//   of strategies, { { names = { strategies }, shapes =, cost =, worst = }... }: at how many shapes the class
//   has a time, and what the best of the class takes there more than the best of all, as shares, as a mean
//   and at worst. Then how many shapes there are, and the names of strategies whose bits are not told, or
//   vary. Options: first = a strategy: the first class is its own; loopback = whether loopback rows count.
//
// Two strategies are of one class where their bits are equal at every shape at which both are told, of which
// there has to be one. A class is what equals its first member, so that who asks for the bits of that one
// gets no others.
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rows_lua.h"

struct entry {
    uint64_t shape, bits;
    double time_us;
    uint8_t strategy;
};

enum relation { NEVER_TOLD, EQUAL, DIFFERENT };

struct numerics {
    struct entry *entries; // by shape, then strategy
    size_t count, shapes;
    uint8_t relation[NAMES_MAX][NAMES_MAX];
    bool seen[NAMES_MAX], told[NAMES_MAX];
    uint8_t class_of[NAMES_MAX]; // its first member; NAME_NONE: none
    struct {
        size_t shapes;
        double cost, worst;
    } classes[NAMES_MAX]; // by first member
};

static int compare_entries(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    if (a->shape != b->shape) return a->shape < b->shape ? -1 : 1;
    return (a->strategy > b->strategy) - (a->strategy < b->strategy);
}

// The rows of the slice that may win, into `numerics`.
static void take_entries(const struct rows *rows, struct slice_key key, const struct lists *lists,
                         uint8_t barred, struct numerics *numerics) {
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        if (!slice_key_equal(slice_key_of(row), key) || !lists->candidate[row->strategy]) continue;
        if (barred != NAME_NONE && row->placement == barred) continue;
        numerics->entries[numerics->count++] = (struct entry){
            .shape = (uint64_t)row->key.hidden_size << 32 | row->key.num_tokens,
            .bits = rows->detail == NULL ? 0 : rows->detail[i].bits,
            .time_us = row->time_us,
            .strategy = row->strategy,
        };
        numerics->seen[row->strategy] = true;
    }
    qsort(numerics->entries, numerics->count, sizeof *numerics->entries, compare_entries);
}

// One past the last entry of the shape that begins at `first`.
static size_t end_of_shape(const struct numerics *numerics, size_t first) {
    size_t end = first + 1;
    while (end < numerics->count && numerics->entries[end].shape == numerics->entries[first].shape) end++;
    return end;
}

static void relate(struct numerics *numerics, const struct entry *a, const struct entry *b) {
    uint8_t *relation = &numerics->relation[a->strategy][b->strategy];
    if (a->bits != b->bits) {
        *relation = DIFFERENT;
    } else if (*relation == NEVER_TOLD) {
        *relation = EQUAL;
    }
}

static void relate_all(struct numerics *numerics) {
    for (size_t first = 0, end; first < numerics->count; first = end) {
        end = end_of_shape(numerics, first);
        numerics->shapes++;
        for (size_t i = first; i < end; i++) {
            if (numerics->entries[i].bits == 0) continue;
            numerics->told[numerics->entries[i].strategy] = true;
            for (size_t j = first; j < end; j++) {
                if (numerics->entries[j].bits == 0) continue;
                relate(numerics, &numerics->entries[i], &numerics->entries[j]);
            }
        }
    }
}

// Makes a class of `strategy` unless it has one, or its bits are not known.
static void open_class(struct numerics *numerics, uint8_t strategy) {
    if (!numerics->told[strategy] || numerics->class_of[strategy] != NAME_NONE) return;
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (numerics->class_of[i] == NAME_NONE && numerics->relation[strategy][i] == EQUAL) {
            numerics->class_of[i] = strategy;
        }
    }
}

// What each class loses at one shape.
static void count_shape(struct numerics *numerics, size_t first, size_t end) {
    double best = INFINITY, best_of[NAMES_MAX];
    for (size_t i = 0; i < NAMES_MAX; i++) best_of[i] = INFINITY;
    for (size_t i = first; i < end; i++) {
        uint8_t class = numerics->class_of[numerics->entries[i].strategy];
        best = fmin(best, numerics->entries[i].time_us);
        if (class != NAME_NONE) best_of[class] = fmin(best_of[class], numerics->entries[i].time_us);
    }
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (isinf(best_of[i])) continue;
        double loss = best_of[i] / best - 1;
        numerics->classes[i].shapes++;
        numerics->classes[i].cost += loss;
        numerics->classes[i].worst = fmax(numerics->classes[i].worst, loss);
    }
}

static void push_class(lua_State *lua, const struct numerics *numerics, uint8_t class,
                       const struct lists *lists) {
    size_t shapes = numerics->classes[class].shapes;
    lua_Integer count = 0;
    lua_createtable(lua, 0, 4);
    lua_newtable(lua);
    for (size_t i = 0; i < lists->strategies.count; i++) {
        // The first member first, and the others in the order of the list.
        uint8_t member = (uint8_t)(i == 0 ? class : i <= class ? i - 1 : i);
        if (numerics->class_of[member] != class) continue;
        lua_pushstring(lua, lists->strategies.name[member]);
        lua_seti(lua, -2, ++count);
    }
    lua_setfield(lua, -2, "names");
    lua_pushinteger(lua, (lua_Integer)shapes);
    lua_setfield(lua, -2, "shapes");
    lua_pushnumber(lua, shapes == 0 ? 0 : numerics->classes[class].cost / (double)shapes);
    lua_setfield(lua, -2, "cost");
    lua_pushnumber(lua, numerics->classes[class].worst);
    lua_setfield(lua, -2, "worst");
}

static int push_classes(lua_State *lua, const struct numerics *numerics, uint8_t wanted,
                        const struct lists *lists) {
    lua_Integer count = 0, unknown = 0;
    lua_newtable(lua);
    if (wanted != NAME_NONE && numerics->class_of[wanted] == wanted) {
        push_class(lua, numerics, wanted, lists);
        lua_seti(lua, -2, ++count);
    }
    for (size_t i = 0; i < lists->strategies.count; i++) {
        if (i == wanted || numerics->class_of[i] != i) continue;
        push_class(lua, numerics, (uint8_t)i, lists);
        lua_seti(lua, -2, ++count);
    }
    lua_pushinteger(lua, (lua_Integer)numerics->shapes);
    lua_newtable(lua);
    for (size_t i = 0; i < lists->strategies.count; i++) {
        if (!numerics->seen[i] || numerics->told[i]) continue;
        lua_pushstring(lua, lists->strategies.name[i]);
        lua_seti(lua, -2, ++unknown);
    }
    return 3;
}

static uint8_t take_first(lua_State *lua, const struct lists *lists) {
    size_t length;
    if (lua_isnoneornil(lua, 3) || lua_getfield(lua, 3, "first") == LUA_TNIL) return NAME_NONE;
    const char *name = luaL_checklstring(lua, -1, &length);
    return names_find(&lists->strategies, name, name + length);
}

int rows_lua_classes(lua_State *lua) {
    static const char loopback[] = "loopback";
    const struct rows *rows = rows_check(lua, 1);
    const struct lists *lists = lists_of(lua);
    struct slice_key key = slice_key_take(lua);
    uint8_t wanted = take_first(lua, lists);
    uint8_t barred = names_find(&lists->placements, loopback, loopback + strlen(loopback));
    if (!lua_isnoneornil(lua, 3) && (lua_getfield(lua, 3, "loopback"), lua_toboolean(lua, -1)))
        barred = NAME_NONE;
    struct numerics *numerics = lua_newuserdatauv(lua, sizeof *numerics, 0);
    memset(numerics, 0, sizeof *numerics);
    memset(numerics->class_of, NAME_NONE, sizeof numerics->class_of);
    numerics->entries = lua_newuserdatauv(lua, (rows->count + 1) * sizeof *numerics->entries, 0);
    take_entries(rows, key, lists, barred, numerics);
    relate_all(numerics);
    if (wanted != NAME_NONE) open_class(numerics, wanted);
    for (size_t i = 0; i < lists->strategies.count; i++) open_class(numerics, (uint8_t)i);
    for (size_t first = 0, end; first < numerics->count; first = end) {
        end = end_of_shape(numerics, first);
        count_shape(numerics, first, end);
    }
    return push_classes(lua, numerics, wanted, lists);
}
