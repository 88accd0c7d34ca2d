// require "core.select": the noise of a difference between two strategies, for Lua; see select.c.
//
// - noise(best, other) gives the half of a 95% interval of what `other` loses against `best`, as a share of
//   time, or nil if it is unknown. Each is { time_us =, low_us =, high_us = (of the interval of the
//   median), launches = (a list of times, false where it was not measured) } or, of a time that was derived,
//   { time_us =, spread =, noise = }, both in log2; false and nil mean unknown.
#include <lauxlib.h>
#include <lua.h>
#include <math.h>

#include "rows/rows.h"
#include "select.h"

static double take_number(lua_State *lua, int index, const char *field, double otherwise) {
    lua_getfield(lua, index, field);
    double value = lua_type(lua, -1) == LUA_TNUMBER ? lua_tonumber(lua, -1) : otherwise;
    lua_pop(lua, 1);
    return value;
}

static size_t take_launches(lua_State *lua, int index, double launch_us[LAUNCHES_MAX]) {
    size_t count = 0;
    if (lua_getfield(lua, index, "launches") == LUA_TTABLE) {
        count = (size_t)luaL_len(lua, -1);
        luaL_argcheck(lua, count <= LAUNCHES_MAX, index, "too many launches");
        for (size_t i = 0; i < count; i++) {
            bool is_time = lua_geti(lua, -1, (lua_Integer)i + 1) == LUA_TNUMBER;
            launch_us[i] = is_time ? lua_tonumber(lua, -1) : NAN;
            lua_pop(lua, 1);
        }
    }
    lua_pop(lua, 1);
    return count;
}

static struct candidate take_candidate(lua_State *lua, int index, double launch_us[LAUNCHES_MAX]) {
    luaL_checktype(lua, index, LUA_TTABLE);
    return (struct candidate){
        .level = log2(take_number(lua, index, "time_us", NAN)),
        .low_us = take_number(lua, index, "low_us", NAN),
        .high_us = take_number(lua, index, "high_us", NAN),
        .launch_us = launch_us,
        .launches = take_launches(lua, index, launch_us),
        .spread = take_number(lua, index, "spread", 0),
        .noise = take_number(lua, index, "noise", 0),
    };
}

static int lua_noise(lua_State *lua) {
    double of_best[LAUNCHES_MAX], of_other[LAUNCHES_MAX];
    struct candidate best = take_candidate(lua, 1, of_best), other = take_candidate(lua, 2, of_other);
    double noise = select_noise(&best, &other);
    if (isnan(noise)) {
        lua_pushnil(lua);
    } else {
        lua_pushnumber(lua, noise);
    }
    return 1;
}

int luaopen_core_select(lua_State *lua);
int luaopen_core_select(lua_State *lua) {
    static const luaL_Reg functions[] = {{"noise", lua_noise}, {NULL, NULL}};
    luaL_newlib(lua, functions);
    return 1;
}
