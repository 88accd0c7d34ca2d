// require "core.estimate": strategies' losses from the launches of a sweep, for Lua.
//
// - fit(shapes, times, families) gives a process, or nil, message. `shapes` is a list of measured cells {
//   log2_bytes =, log2_ratio =, fusion = (a whole number) }; `times` a list of { cell = (a place in shapes),
//   launch = (a whole number), strategy = (a place in families), time_us = }; `families` the library of each
//   strategy as a number, 0 for one that no other shares.
// - process:losses(bin, strategies) gives, for each of the strategies (a list of places in families), {
//   expected =, confidence =, worst = } over a bin: a list of shapes as above, each with a weight and, if it
//   was measured, cell = its place in shapes. See losses.h for the figures.
// - process:noise() gives the standard deviation of each strategy's noise within a launch, in log2.
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdlib.h>

#include "gaussian_process.h"
#include "losses.h"

static const char TYPE_NAME[] = "gentables.process";
enum { STRATEGIES_MAX = CONTRASTS_STRATEGIES_MAX };

static double number_of(lua_State *lua, const char *field) {
    lua_getfield(lua, -1, field);
    double value = luaL_checknumber(lua, -1);
    lua_pop(lua, 1);
    return value;
}

// The whole number in a field, from 1 to `most`, less one.
static uint32_t place_of(lua_State *lua, const char *field, lua_Integer most) {
    lua_getfield(lua, -1, field);
    lua_Integer value = luaL_checkinteger(lua, -1);
    if (value < 1 || value > most) luaL_error(lua, "%s: %I is not from 1 to %I", field, value, most);
    lua_pop(lua, 1);
    return (uint32_t)(value - 1);
}

// The shape on top of the stack.
static struct process_shape take_shape(lua_State *lua, uint32_t cell) {
    luaL_checktype(lua, -1, LUA_TTABLE);
    return (struct process_shape){number_of(lua, "log2_bytes"), number_of(lua, "log2_ratio"),
                                  place_of(lua, "fusion", UINT32_MAX), cell};
}

static int by_cell_and_launch(const void *a, const void *b) {
    const struct visit_time *left = a, *right = b;
    if (left->cell != right->cell) return left->cell < right->cell ? -1 : 1;
    if (left->launch != right->launch) return left->launch < right->launch ? -1 : 1;
    return (left->strategy > right->strategy) - (left->strategy < right->strategy);
}

static struct visit_time *take_times(lua_State *lua, int index, lua_Integer cells, lua_Integer strategies) {
    size_t count = (size_t)luaL_len(lua, index);
    struct visit_time *times = lua_newuserdatauv(lua, (count + 1) * sizeof *times, 0);
    for (size_t i = 0; i < count; i++) {
        lua_geti(lua, index, (lua_Integer)i + 1);
        luaL_checktype(lua, -1, LUA_TTABLE);
        double time_us = number_of(lua, "time_us");
        if (!(time_us > 0)) luaL_error(lua, "time_us: %f is no time", time_us);
        times[i] = (struct visit_time){place_of(lua, "cell", cells), place_of(lua, "launch", UINT32_MAX),
                                       (uint8_t)place_of(lua, "strategy", strategies), log2(time_us)};
        lua_pop(lua, 1);
    }
    qsort(times, count, sizeof *times, by_cell_and_launch);
    return times;
}

static int lua_fit(lua_State *lua) {
    for (int i = 1; i <= 3; i++) luaL_checktype(lua, i, LUA_TTABLE);
    lua_Integer cells = luaL_len(lua, 1), strategies = luaL_len(lua, 3);
    luaL_argcheck(lua, strategies <= STRATEGIES_MAX, 3, "too many strategies");
    struct process_shape *shapes = lua_newuserdatauv(lua, ((size_t)cells + 1) * sizeof *shapes, 0);
    for (lua_Integer i = 0; i < cells; i++) {
        lua_geti(lua, 1, i + 1);
        shapes[i] = take_shape(lua, (uint32_t)i);
        lua_pop(lua, 1);
    }
    uint8_t families[STRATEGIES_MAX];
    for (lua_Integer i = 0; i < strategies; i++) {
        lua_geti(lua, 3, i + 1);
        families[i] = (uint8_t)luaL_checkinteger(lua, -1);
        lua_pop(lua, 1);
    }
    struct visit_time *times = take_times(lua, 2, cells, strategies);
    struct gaussian_process **process = lua_newuserdatauv(lua, sizeof *process, 0);
    *process = NULL;
    luaL_setmetatable(lua, TYPE_NAME);
    *process = process_fit(times, (size_t)luaL_len(lua, 2), shapes, families, (size_t)strategies);
    if (*process != NULL) return 1;
    lua_pushnil(lua);
    lua_pushliteral(lua, "out of memory");
    return 2;
}

static struct gaussian_process *check(lua_State *lua) {
    return *(struct gaussian_process **)luaL_checkudata(lua, 1, TYPE_NAME);
}

// The points of a bin, strategies within shapes, and the shapes' weights.
static struct process_point *take_bin(lua_State *lua, size_t shapes, size_t strategies, double *weights) {
    lua_Integer known = (lua_Integer)process_strategies(check(lua));
    struct process_point *points = lua_newuserdatauv(lua, (shapes * strategies + 1) * sizeof *points, 0);
    for (size_t k = 0; k < shapes; k++) {
        lua_geti(lua, 2, (lua_Integer)k + 1);
        bool is_measured = lua_getfield(lua, -1, "cell") != LUA_TNIL;
        lua_pop(lua, 1);
        uint32_t cell = is_measured ? place_of(lua, "cell", UINT32_MAX) : PROCESS_NO_CELL;
        struct process_shape shape = take_shape(lua, cell);
        weights[k] = number_of(lua, "weight");
        lua_pop(lua, 1);
        for (size_t s = 0; s < strategies; s++) {
            lua_geti(lua, 3, (lua_Integer)s + 1);
            lua_Integer strategy = luaL_checkinteger(lua, -1);
            luaL_argcheck(lua, strategy >= 1 && strategy <= known, 3, "no such strategy");
            points[k * strategies + s] = (struct process_point){shape, (uint8_t)(strategy - 1)};
            lua_pop(lua, 1);
        }
    }
    return points;
}

static int lua_losses(lua_State *lua) {
    const struct gaussian_process *process = check(lua);
    size_t shapes = (size_t)luaL_len(lua, 2), strategies = (size_t)luaL_len(lua, 3), n = shapes * strategies;
    double *weights = lua_newuserdatauv(lua, (shapes + 1) * sizeof *weights, 0);
    struct process_point *points = take_bin(lua, shapes, strategies, weights);
    double *mean = lua_newuserdatauv(lua, (n + n * n + 1) * sizeof *mean, 0), *covariance = mean + n;
    struct loss_figures figures[STRATEGIES_MAX];
    luaL_argcheck(lua, n > 0, 2, "no shape or no strategy");
    luaL_argcheck(lua, strategies <= STRATEGIES_MAX, 3, "too many strategies");
    const struct process_near *near = process_near(process, &points[0].shape);
    bool ok = near != NULL && process_predict(near, points, n, mean, covariance) &&
              losses_over_bin(mean, covariance, shapes, strategies, weights, figures);
    process_near_free(near);
    if (!ok) return luaL_error(lua, "out of memory");
    lua_createtable(lua, (int)strategies, 0);
    for (size_t s = 0; s < strategies; s++) {
        lua_createtable(lua, 0, 3);
        lua_pushnumber(lua, figures[s].expected);
        lua_setfield(lua, -2, "expected");
        lua_pushnumber(lua, figures[s].confidence);
        lua_setfield(lua, -2, "confidence");
        lua_pushnumber(lua, figures[s].worst);
        lua_setfield(lua, -2, "worst");
        lua_seti(lua, -2, (lua_Integer)s + 1);
    }
    return 1;
}

static int lua_noise(lua_State *lua) {
    const struct gaussian_process *process = check(lua);
    size_t strategies = process_strategies(process);
    lua_createtable(lua, (int)strategies, 0);
    for (size_t s = 0; s < strategies; s++) {
        lua_pushnumber(lua, process_noise(process)[s]);
        lua_seti(lua, -2, (lua_Integer)s + 1);
    }
    return 1;
}

static int lua_collect(lua_State *lua) {
    process_free(check(lua));
    return 0;
}

int luaopen_core_estimate(lua_State *lua);
int luaopen_core_estimate(lua_State *lua) {
    static const luaL_Reg methods[] = {{"losses", lua_losses}, {"noise", lua_noise}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"fit", lua_fit}, {NULL, NULL}};
    luaL_newmetatable(lua, TYPE_NAME);
    lua_pushcfunction(lua, lua_collect);
    lua_setfield(lua, -2, "__gc");
    luaL_newlib(lua, methods);
    lua_setfield(lua, -2, "__index");
    luaL_newlib(lua, functions);
    return 1;
}
