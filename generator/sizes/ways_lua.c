// The losses of a reader's ways at message sizes, for Lua; reader_limits.lua uses them.
//
// points:ways(way_of) gives the losses of ways: way_of(NAME of a strategy) gives the name of its way, or nil.
// Of these:
// - #ways is the number of points, ways:size(index) the size of one, in bytes.
// - ways:has(way): whether any point has a time of a way.
// - ways:path(states, regret, most) gives the cheapest path of a reader over the points up to `most` bytes
//   (nil: all): a list with { first, last }, the indices of the points of each state, or false where there
//   are none; and the number of points. states: { way, after = { indices of states that may precede },
//   is_off, most = the largest size of the way (nil: any), beyond = the way above that }. A change that
//   gains less than `regret` is noise.
// - ways:beside(way, answers, NAME) gives the losses of two ways: `way`, and, as NAME, the answers of a
//   reader: { { last = bytes, inclusive (nil: no end), way }... }, ascending.
// - ways:misses(answers, step) gives the sizes at which a reader does not answer the choice of the points, as
//   lists of equal length: { first, last (false: no end), chosen, answered = ways, mean, most = loss (false:
//   unknown) }. `step`: the reader has no other sizes than its multiples.
#include <lauxlib.h>
#include <lua.h>
#include <math.h>

#include "base/bindings.h"
#include "sizes_lua.h"
#include "way_points.h"

static const char ways_type[] = "gentables.way_points";

// The losses of ways. User values: POINTS, of which they are the ways; NAMES, name -> index from 1 and back.
struct ways {
    struct way_points of;
    uint8_t way_of[NAMES_MAX]; // by column of the points
};
enum { POINTS = 1, NAMES };

// Pushes losses that own nothing yet.
static struct ways *push_ways(lua_State *lua) {
    struct ways *ways = lua_newuserdatauv(lua, sizeof *ways, NAMES);
    *ways = (struct ways){.of = {.count = 0}};
    luaL_setmetatable(lua, ways_type);
    return ways;
}

// The index of the way at the top of the stack, which is popped, among the names at stack index `names`; an
// unknown one is entered if `enters`, else it is WAY_NONE, as is nil.
static uint8_t pop_way(lua_State *lua, int names, bool enters) {
    if (lua_isnil(lua, -1)) {
        lua_pop(lua, 1);
        return WAY_NONE;
    }
    lua_pushvalue(lua, -1);
    bool is_known = lua_rawget(lua, names) == LUA_TNUMBER;
    lua_Integer index = is_known ? lua_tointeger(lua, -1) : (lua_Integer)lua_rawlen(lua, names) + 1;
    lua_pop(lua, 1);
    if (!is_known && enters) {
        if (index > WAYS_MAX) luaL_error(lua, "more than %d ways", WAYS_MAX);
        lua_pushvalue(lua, -1);
        lua_rawseti(lua, names, index);
        lua_pushvalue(lua, -1);
        lua_pushinteger(lua, index);
        lua_rawset(lua, names);
    }
    lua_pop(lua, 1);
    return is_known || enters ? (uint8_t)(index - 1) : WAY_NONE;
}

int sizes_lua_ways(lua_State *lua) {
    const struct size_points *points = sizes_lua_check(lua, 1);
    const struct names *strategies = &lists_of(lua)->strategies;
    lua_settop(lua, 2);
    struct ways *ways = push_ways(lua);
    lua_newtable(lua);
    for (size_t c = 0; c < points->width; c++) {
        lua_pushvalue(lua, 2);
        lua_pushstring(lua, strategies->name[points->strategies[c]]);
        lua_call(lua, 1, 1);
        ways->way_of[c] = pop_way(lua, 4, true);
    }
    size_t count = (size_t)lua_rawlen(lua, 4);
    lua_setiuservalue(lua, 3, NAMES);
    lua_pushvalue(lua, 1);
    lua_setiuservalue(lua, 3, POINTS);
    if (!way_points_make(points, ways->way_of, count, &ways->of)) return luaL_error(lua, "out of memory");
    return 1;
}

// The losses that are argument 1; their names are put at the top of the stack, with the index *names.
static struct ways *check_ways(lua_State *lua, int *names) {
    struct ways *ways = luaL_checkudata(lua, 1, ways_type);
    lua_getiuservalue(lua, 1, NAMES);
    *names = lua_gettop(lua);
    return ways;
}

static int free_ways(lua_State *lua) {
    struct ways *ways = luaL_checkudata(lua, 1, ways_type);
    way_points_free(&ways->of);
    ways->of = (struct way_points){.count = 0};
    return 0;
}

static int lua_count(lua_State *lua) {
    const struct ways *ways = luaL_checkudata(lua, 1, ways_type);
    lua_pushinteger(lua, (lua_Integer)ways->of.count);
    return 1;
}

static int lua_size(lua_State *lua) {
    const struct ways *ways = luaL_checkudata(lua, 1, ways_type);
    lua_Integer index = luaL_checkinteger(lua, 2);
    luaL_argcheck(lua, index >= 1 && (size_t)index <= ways->of.count, 2, "no such point");
    lua_pushinteger(lua, (lua_Integer)ways->of.size_bytes[index - 1]);
    return 1;
}

static int lua_has(lua_State *lua) {
    int names;
    const struct ways *ways = check_ways(lua, &names);
    lua_pushvalue(lua, 2);
    lua_pushboolean(lua, way_points_have(&ways->of, pop_way(lua, names, false)));
    return 1;
}

// ---- paths

// A field of the table on top of the stack, in bytes; nil is no limit.
static uint64_t take_bytes(lua_State *lua, const char *field) {
    bool is_given = lua_getfield(lua, -1, field) != LUA_TNIL;
    lua_Integer bytes = is_given ? luaL_checkinteger(lua, -1) : 0;
    lua_pop(lua, 1);
    if (!is_given) return UINT64_MAX;
    return bytes < 0 ? 0 : (uint64_t)bytes;
}

static uint8_t take_way(lua_State *lua, const char *field, int names, bool enters) {
    lua_getfield(lua, -1, field);
    return pop_way(lua, names, enters);
}

// The state on top of the stack, one of `count`.
static struct way_state take_state(lua_State *lua, int names, size_t count) {
    struct way_state state = {.way = take_way(lua, "way", names, false),
                              .beyond = take_way(lua, "beyond", names, false),
                              .most = take_bytes(lua, "most"),
                              .is_off = field_boolean(lua, -1, "is_off")};
    lua_getfield(lua, -1, "after");
    luaL_checktype(lua, -1, LUA_TTABLE);
    lua_Integer before = luaL_len(lua, -1);
    if (before > WAYS_MAX) luaL_error(lua, "more than %d states", WAYS_MAX);
    for (lua_Integer i = 1; i <= before; i++, lua_pop(lua, 1)) {
        lua_geti(lua, -1, i);
        lua_Integer state_before = luaL_checkinteger(lua, -1);
        if (state_before < 1 || (size_t)state_before > count) luaL_error(lua, "no such state");
        state.after[state.after_count++] = (size_t)state_before - 1;
    }
    lua_pop(lua, 1);
    return state;
}

static int lua_path(lua_State *lua) {
    struct way_state states[WAYS_MAX];
    struct way_range ranges[WAYS_MAX];
    int names;
    lua_settop(lua, 4);
    const struct ways *ways = check_ways(lua, &names);
    luaL_checktype(lua, 2, LUA_TTABLE);
    double regret = luaL_checknumber(lua, 3);
    uint64_t most = lua_isnil(lua, 4) ? UINT64_MAX : (uint64_t)luaL_checkinteger(lua, 4);
    lua_Integer count = luaL_len(lua, 2);
    luaL_argcheck(lua, count >= 1 && count <= WAYS_MAX, 2, "no state, or too many");
    for (lua_Integer i = 0; i < count; i++, lua_pop(lua, 1)) {
        lua_geti(lua, 2, i + 1);
        states[i] = take_state(lua, names, (size_t)count);
    }
    size_t points = way_points_path(&ways->of, states, (size_t)count, regret, most, ranges);
    if (points == SIZE_MAX) return luaL_error(lua, "out of memory");
    lua_createtable(lua, (int)count, 0);
    for (lua_Integer i = 0; i < count; i++) {
        if (ranges[i].first <= ranges[i].last) {
            lua_createtable(lua, 0, 2);
            set_integer(lua, "first", (lua_Integer)ranges[i].first + 1);
            set_integer(lua, "last", (lua_Integer)ranges[i].last + 1);
        } else {
            lua_pushboolean(lua, false);
        }
        lua_seti(lua, -2, i + 1);
    }
    lua_pushinteger(lua, (lua_Integer)points);
    return 2;
}

// ---- answers

// The answers at stack index `index`, in Lua's memory on top of the stack; the last one has no end. A reader
// may answer with a way that no point has.
static const struct way_answer *take_answers(lua_State *lua, int index, int names) {
    luaL_checktype(lua, index, LUA_TTABLE);
    lua_Integer count = luaL_len(lua, index);
    luaL_argcheck(lua, count >= 1, index, "no answer");
    struct way_answer *answers = lua_newuserdatauv(lua, (size_t)count * sizeof *answers, 0);
    for (lua_Integer i = 0; i < count; i++, lua_pop(lua, 1)) {
        lua_geti(lua, index, i + 1);
        answers[i] = (struct way_answer){take_bytes(lua, "last"), take_way(lua, "way", names, true)};
    }
    answers[count - 1].last = UINT64_MAX;
    return answers;
}

static int lua_beside(lua_State *lua) {
    int names;
    lua_settop(lua, 4);
    const struct ways *ways = check_ways(lua, &names);
    const struct way_answer *answers = take_answers(lua, 3, names);
    lua_pushvalue(lua, 2);
    uint8_t way = pop_way(lua, names, false);
    struct ways *beside = push_ways(lua);
    lua_newtable(lua);
    int names_beside = lua_gettop(lua);
    for (int argument = 2; argument <= 4; argument += 2) {
        lua_pushvalue(lua, argument);
        pop_way(lua, names_beside, true);
    }
    lua_setiuservalue(lua, -2, NAMES);
    if (!way_points_beside(&ways->of, way, answers, &beside->of)) return luaL_error(lua, "out of memory");
    return 1;
}

// The columns of misses: tables on the stack, from index `columns` on; and the names of ways at `names`.
enum { FIRST, LAST, CHOSEN, ANSWERED, MEAN, MOST, MISS_COLUMNS };
static const char *const miss_columns[MISS_COLUMNS] = {"first", "last", "chosen", "answered", "mean", "most"};
struct miss_list {
    lua_State *lua;
    int names, columns;
    lua_Integer count;
};

// Pops the value of the last miss in a column.
static void enter(const struct miss_list *list, int column) {
    lua_rawseti(list->lua, list->columns + column, list->count);
}

static void enter_bytes(const struct miss_list *list, int column, uint64_t bytes) {
    if (bytes == UINT64_MAX) {
        lua_pushboolean(list->lua, false);
    } else {
        lua_pushinteger(list->lua, (lua_Integer)bytes);
    }
    enter(list, column);
}

static void enter_way(const struct miss_list *list, int column, uint8_t way) {
    if (way == WAY_NONE) {
        lua_pushboolean(list->lua, false);
    } else {
        lua_rawgeti(list->lua, list->names, way + 1);
    }
    enter(list, column);
}

static void enter_loss(const struct miss_list *list, int column, double loss) {
    if (isnan(loss)) {
        lua_pushboolean(list->lua, false);
    } else {
        lua_pushnumber(list->lua, loss);
    }
    enter(list, column);
}

static void enter_miss(void *context, const struct way_miss *miss) {
    struct miss_list *list = context;
    list->count++;
    enter_bytes(list, FIRST, miss->first);
    enter_bytes(list, LAST, miss->last);
    enter_way(list, CHOSEN, miss->chosen);
    enter_way(list, ANSWERED, miss->answered);
    enter_loss(list, MEAN, miss->mean);
    enter_loss(list, MOST, miss->most);
}

static int lua_misses(lua_State *lua) {
    int names;
    lua_settop(lua, 3);
    const struct ways *ways = check_ways(lua, &names);
    const struct way_answer *answers = take_answers(lua, 2, names);
    lua_Integer step = luaL_checkinteger(lua, 3);
    luaL_argcheck(lua, step >= 1, 3, "a step above 0 is required");
    if (lua_getiuservalue(lua, 1, POINTS) == LUA_TNIL) return luaL_error(lua, "ways without choices");
    const struct size_points *points = sizes_lua_check(lua, -1);
    luaL_checkstack(lua, MISS_COLUMNS + 4, "misses");
    lua_createtable(lua, 0, MISS_COLUMNS);
    struct miss_list list = {lua, names, lua_gettop(lua) + 1, 0};
    for (int i = 0; i < MISS_COLUMNS; i++) lua_newtable(lua);
    way_points_misses(points, &ways->of, ways->way_of, answers, (uint64_t)step, &list, enter_miss);
    for (int i = MISS_COLUMNS; i-- > 0;) lua_setfield(lua, list.columns - 1, miss_columns[i]);
    return 1;
}

void sizes_lua_make_ways_type(lua_State *lua) {
    static const luaL_Reg methods[] = {{"beside", lua_beside}, {"has", lua_has},   {"misses", lua_misses},
                                       {"path", lua_path},     {"size", lua_size}, {"__len", lua_count},
                                       {"__gc", free_ways},    {NULL, NULL}};
    make_type(lua, ways_type, methods);
}
