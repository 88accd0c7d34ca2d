// Student's t and normal distributions; see student.h. For Lua: core.student.
//
//   upper_tail(t [, freedom]): without degrees of freedom that of a normal distribution
#include "student.h"

#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdbool.h>

// The finite series of Abramowitz and Stegun 26.7.3 and 26.7.4.
double student_upper_tail(double t, size_t freedom) {
    if (freedom == 0) return 0.5 * erfc(t / sqrt(2));
    double angle = atan(t / sqrt((double)freedom)), cosine = cos(angle);
    bool is_odd = freedom % 2 == 1;
    double term = is_odd ? cosine : 1, sum = freedom == 1 ? 0 : term;
    for (size_t i = is_odd ? 3 : 2; i + 2 <= freedom; i += 2) {
        term *= (double)(i - 1) / (double)i * cosine * cosine;
        sum += term;
    }
    double between = is_odd ? 2 / acos(-1) * (angle + sin(angle) * sum) : sin(angle) * sum; // P(-t < T < t)
    return 0.5 * (1 - between);
}

static int lua_upper_tail(lua_State *lua) {
    lua_Integer freedom = luaL_optinteger(lua, 2, 0);
    luaL_argcheck(lua, freedom >= 0, 2, "negative");
    lua_pushnumber(lua, student_upper_tail(luaL_checknumber(lua, 1), (size_t)freedom));
    return 1;
}

int luaopen_core_student(lua_State *lua);
int luaopen_core_student(lua_State *lua) {
    static const luaL_Reg functions[] = {{"upper_tail", lua_upper_tail}, {NULL, NULL}};
    luaL_newlib(lua, functions);
    return 1;
}
