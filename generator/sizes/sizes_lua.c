// require "core.sizes": choices by message size for Lua; by_bytes.lua has their rule.
//
// - times(rows, slice, others, loopback) gives the times of a slice (of rows:slices(); nil: none of rows)
//   and those in `others`, { { num_tokens =, hidden_size =, size = bytes, strategy =, time_us =,
//   is_measured = }... }. Times of the placement loopback count with `loopback` only.
// - medians(rows, slice, NAME) gives the sizes with a time of a strategy, in bytes, ascending, and the
//   medians of these times, as two lists; rows of the placement loopback do not count.
// - times:strategies() gives { NAME = true... }.
//   times:points(rows, slice, { may_win = { NAME = true }, loopback = }) gives points: sizes with the
//   expected loss of each of these strategies. The rows show how noisy times are; see estimate/evidence.h.
//   Without launches the times count as exact.
// - #points; points:list() gives { { size = bytes, badness = { NAME = expected loss } }... }, ascending.
//   points:measured() gives the smallest and the largest size with a measured time; nothing if there is none.
//   points:choose(regret) chooses at each point; the methods below need it.
//   points:segments(strategies) gives { { first, last = bytes (nil: no end), strategy = one of the rows in
//   `strategies` (lists.strategies) }... }.
//   points:ranges(names) gives ranges as two lists: their last sizes (false: no end), and whether `names` has
//   the choice.
//   points:without(NAME, regret) gives points without the losses of a strategy, which have choices; nil if
//   there are none.
//   points:ways(way_of): see ways_lua.c.
#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>

#include "base/bindings.h"
#include "rows/rows_lua.h"
#include "size_times.h"
#include "sizes_lua.h"

static const char times_type[] = "gentables.size_times";
static const char points_type[] = "gentables.size_points";
static const char evidence_type[] = "gentables.size_evidence";

static int out_of_memory(lua_State *lua) {
    return luaL_error(lua, "out of memory");
}

// ---- times

static struct size_time time_of(const struct row *row) {
    return (struct size_time){row->time_us,         row->size_bytes, row->key.num_tokens,
                              row->key.hidden_size, row->strategy,   true};
}

// The time on top of the stack.
static struct size_time take_time(lua_State *lua, const struct lists *lists) {
    return (struct size_time){field_number(lua, -1, "time_us"),
                              (uint64_t)field_integer(lua, -1, "size"),
                              (uint32_t)field_integer(lua, -1, "num_tokens"),
                              (uint32_t)field_integer(lua, -1, "hidden_size"),
                              names_field(lua, lua_gettop(lua), "strategy", &lists->strategies),
                              field_boolean(lua, -1, "is_measured")};
}

static int lua_times(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    const struct slice_rows *of = rows_lua_slice_rows(lua, 1);
    const struct lists *lists = lists_of(lua);
    luaL_checktype(lua, 3, LUA_TTABLE);
    bool loopback_counts = lua_toboolean(lua, 4);
    uint8_t loopback = names_index(&lists->placements, "loopback");
    size_t begin = 0, end = 0, others = (size_t)luaL_len(lua, 3), count = 0;
    if (!lua_isnil(lua, 2)) {
        size_t slice = slice_rows_find(of, slice_key_take(lua, 2));
        if (slice < of->count) begin = of->begin[slice], end = of->begin[slice + 1];
    }
    struct size_time *times = lua_newuserdatauv(lua, (end - begin + others + 1) * sizeof *times, 0);
    for (size_t i = begin; i < end; i++) {
        const struct row *row = &rows->row[of->row[i]];
        if (loopback_counts || row->placement != loopback) times[count++] = time_of(row);
    }
    for (size_t i = 0; i < others; i++, lua_pop(lua, 1)) {
        lua_geti(lua, 3, (lua_Integer)i + 1);
        times[count++] = take_time(lua, lists);
    }
    struct size_times *made = lua_newuserdatauv(lua, sizeof *made, 0);
    *made = (struct size_times){.count = 0};
    luaL_setmetatable(lua, times_type);
    return size_times_make(times, count, made) ? 1 : out_of_memory(lua);
}

static int by_size_and_time(const void *a, const void *b) {
    const struct size_time *x = a, *y = b;
    if (x->size_bytes != y->size_bytes) return x->size_bytes < y->size_bytes ? -1 : 1;
    return (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

static int lua_medians(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    const struct slice_rows *of = rows_lua_slice_rows(lua, 1);
    const struct lists *lists = lists_of(lua);
    size_t slice = slice_rows_find(of, slice_key_take(lua, 2)), count = 0;
    uint8_t strategy = names_index(&lists->strategies, luaL_checkstring(lua, 3));
    uint8_t loopback = names_index(&lists->placements, "loopback");
    luaL_argcheck(lua, slice < of->count, 2, "no such slice");
    size_t begin = of->begin[slice], end = of->begin[slice + 1];
    struct size_time *times = lua_newuserdatauv(lua, (end - begin + 1) * sizeof *times, 0);
    for (size_t i = begin; i < end; i++) {
        const struct row *row = &rows->row[of->row[i]];
        if (row->strategy == strategy && row->placement != loopback) times[count++] = time_of(row);
    }
    qsort(times, count, sizeof *times, by_size_and_time);
    lua_newtable(lua);
    lua_newtable(lua);
    lua_Integer found = 0;
    for (size_t first = 0, after; first < count; first = after) {
        for (after = first + 1; after < count && times[after].size_bytes == times[first].size_bytes;) after++;
        double low = times[first + (after - first - 1) / 2].time_us;
        double high = times[first + (after - first) / 2].time_us;
        lua_pushinteger(lua, (lua_Integer)times[first].size_bytes);
        lua_seti(lua, -3, ++found);
        lua_pushnumber(lua, (low + high) / 2);
        lua_seti(lua, -2, found);
    }
    return 2;
}

static int free_times(lua_State *lua) {
    struct size_times *times = luaL_checkudata(lua, 1, times_type);
    size_times_free(times);
    *times = (struct size_times){.count = 0};
    return 0;
}

static int lua_strategies(lua_State *lua) {
    const struct size_times *times = luaL_checkudata(lua, 1, times_type);
    lua_createtable(lua, 0, (int)times->width);
    for (size_t c = 0; c < times->width; c++)
        set_boolean(lua, lists_of(lua)->strategies.name[times->strategies[c]], true);
    return 1;
}

// ---- points

static int free_evidence(lua_State *lua) {
    struct evidence **evidence = luaL_checkudata(lua, 1, evidence_type);
    evidence_free(*evidence);
    *evidence = NULL;
    return 0;
}

// The evidence of a slice's block, which the stack keeps.
static const struct evidence *take_evidence(lua_State *lua, struct slice_key slice, const bool *may_win) {
    const struct lists *lists = lists_of(lua);
    const struct evidence_scope scope = {
        .block = slice,
        .may_win = may_win,
        .barred = field_boolean(lua, 4, "loopback") ? NAME_NONE : names_index(&lists->placements, "loopback"),
        .oversubscribed = names_index(&lists->placements, "oversubscribed"),
    };
    struct evidence **evidence = lua_newuserdatauv(lua, sizeof *evidence, 0);
    *evidence = NULL;
    luaL_setmetatable(lua, evidence_type);
    if (!evidence_make(rows_check(lua, 2), &scope, lists, evidence)) out_of_memory(lua);
    return *evidence;
}

static void take_may_win(lua_State *lua, bool may_win[NAMES_MAX]) {
    const struct names *strategies = &lists_of(lua)->strategies;
    lua_getfield(lua, 4, "may_win");
    luaL_checktype(lua, -1, LUA_TTABLE);
    for (size_t s = 0; s < strategies->count; s++) {
        may_win[s] = lua_getfield(lua, -1, strategies->name[s]) != LUA_TNIL;
        lua_pop(lua, 1);
    }
    lua_pop(lua, 1);
}

// Pushes a value that owns points; none so far.
static struct size_points *push_points(lua_State *lua) {
    struct size_points *points = lua_newuserdatauv(lua, sizeof *points, 0);
    *points = (struct size_points){.count = 0};
    luaL_setmetatable(lua, points_type);
    return points;
}

static int lua_points(lua_State *lua) {
    const struct size_times *times = luaL_checkudata(lua, 1, times_type);
    struct slice_key slice = slice_key_take(lua, 3);
    luaL_checktype(lua, 4, LUA_TTABLE);
    bool may_win[NAMES_MAX] = {false};
    take_may_win(lua, may_win);
    const struct evidence *evidence = take_evidence(lua, slice, may_win);
    struct size_points *points = push_points(lua);
    return size_points_make(times, may_win, evidence, slice.fusion, points) ? 1 : out_of_memory(lua);
}

static int free_points(lua_State *lua) {
    struct size_points *points = luaL_checkudata(lua, 1, points_type);
    size_points_free(points);
    *points = (struct size_points){.count = 0};
    return 0;
}

static int lua_count(lua_State *lua) {
    const struct size_points *points = luaL_checkudata(lua, 1, points_type);
    lua_pushinteger(lua, (lua_Integer)points->count);
    return 1;
}

static int lua_list(lua_State *lua) {
    const struct size_points *points = luaL_checkudata(lua, 1, points_type);
    const struct names *strategies = &lists_of(lua)->strategies;
    lua_createtable(lua, (int)points->count, 0);
    for (size_t i = 0; i < points->count; i++) {
        lua_createtable(lua, 0, 2);
        set_integer(lua, "size", (lua_Integer)points->size_bytes[i]);
        lua_createtable(lua, 0, (int)points->width);
        for (size_t c = 0; c < points->width; c++)
            set_number(lua, strategies->name[points->strategies[c]], points->loss[i * points->width + c]);
        lua_setfield(lua, -2, "badness");
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int lua_measured(lua_State *lua) {
    const struct size_points *points = luaL_checkudata(lua, 1, points_type);
    if (!points->has_measured) return 0;
    lua_pushinteger(lua, (lua_Integer)points->first_measured);
    lua_pushinteger(lua, (lua_Integer)points->last_measured);
    return 2;
}

static int lua_choose(lua_State *lua) {
    struct size_points *points = luaL_checkudata(lua, 1, points_type);
    if (!size_points_choose(points, luaL_checknumber(lua, 2))) return out_of_memory(lua);
    return 0;
}

// ---- choices

const struct size_points *sizes_lua_check(lua_State *lua, int index) {
    const struct size_points *points = luaL_checkudata(lua, index, points_type);
    if (points->chosen == NULL) luaL_error(lua, "points without choices");
    return points;
}

// Sets the field `last` to the largest size with the choice of a point; without an end nothing.
static void set_last(lua_State *lua, uint64_t last) {
    if (last != UINT64_MAX) set_integer(lua, "last", (lua_Integer)last);
}

static int lua_segments(lua_State *lua) {
    const struct size_points *points = sizes_lua_check(lua, 1);
    luaL_checktype(lua, 2, LUA_TTABLE);
    lua_newtable(lua);
    lua_Integer count = 0;
    uint64_t first = 0;
    for (size_t p = 0; p < points->count;) {
        uint8_t column = points->chosen[p];
        p += size_points_alike(points, p);
        uint64_t last = size_points_border(points, p - 1);
        lua_createtable(lua, 0, 3);
        set_integer(lua, "first", (lua_Integer)first);
        set_last(lua, last);
        if (column != NAME_NONE) {
            lua_geti(lua, 2, points->strategies[column] + 1);
            lua_setfield(lua, -2, "strategy");
        }
        lua_seti(lua, -2, ++count);
        first = last + 1;
    }
    return 1;
}

static int lua_ranges(lua_State *lua) {
    const struct size_points *points = sizes_lua_check(lua, 1);
    const struct names *strategies = &lists_of(lua)->strategies;
    bool is_named[NAMES_MAX + 1] = {false}; // by column; the last one is for points without a choice
    luaL_checktype(lua, 2, LUA_TTABLE);
    for (size_t c = 0; c < points->width; c++)
        is_named[c] = field_boolean(lua, 2, strategies->name[points->strategies[c]]);
    lua_newtable(lua);
    lua_newtable(lua);
    lua_Integer count = 0;
    for (size_t p = 0; p < points->count;) {
        bool is = points->chosen[p] != NAME_NONE && is_named[points->chosen[p]];
        while (p < points->count && (points->chosen[p] != NAME_NONE && is_named[points->chosen[p]]) == is)
            p += size_points_alike(points, p);
        uint64_t last = size_points_border(points, p - 1);
        if (last == UINT64_MAX) {
            lua_pushboolean(lua, false);
        } else {
            lua_pushinteger(lua, (lua_Integer)last);
        }
        lua_rawseti(lua, -3, ++count);
        lua_pushboolean(lua, is);
        lua_rawseti(lua, -2, count);
    }
    return 2;
}

static int lua_without(lua_State *lua) {
    const struct size_points *points = luaL_checkudata(lua, 1, points_type);
    uint8_t strategy = names_index(&lists_of(lua)->strategies, luaL_checkstring(lua, 2));
    double regret = luaL_checknumber(lua, 3);
    struct size_points *copy = push_points(lua);
    if (!size_points_without(points, strategy, copy) || !size_points_choose(copy, regret))
        return out_of_memory(lua);
    if (copy->count == 0) lua_pushnil(lua);
    return 1;
}

int luaopen_core_sizes(lua_State *lua);
int luaopen_core_sizes(lua_State *lua) {
    static const luaL_Reg functions[] = {{"medians", lua_medians}, {"times", lua_times}, {NULL, NULL}};
    static const luaL_Reg of_times[] = {
        {"points", lua_points}, {"strategies", lua_strategies}, {"__gc", free_times}, {NULL, NULL}};
    static const luaL_Reg of_points[] = {{"choose", lua_choose},     {"list", lua_list},
                                         {"measured", lua_measured}, {"ranges", lua_ranges},
                                         {"segments", lua_segments}, {"ways", sizes_lua_ways},
                                         {"without", lua_without},   {"__len", lua_count},
                                         {"__gc", free_points},      {NULL, NULL}};
    static const luaL_Reg of_evidence[] = {{"__gc", free_evidence}, {NULL, NULL}};
    make_type(lua, times_type, of_times);
    make_type(lua, points_type, of_points);
    make_type(lua, evidence_type, of_evidence);
    sizes_lua_make_ways_type(lua);
    luaL_newlib(lua, functions);
    return 1;
}
