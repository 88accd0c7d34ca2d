// Common parts of modules in C with bindings to Lua: failures, results, types, fields of tables.
#ifndef GENTABLES_BINDINGS_H
#define GENTABLES_BINDINGS_H

#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdbool.h>

// ---- failures: the errors for users that base/fail.lua raises, raised by C

// base/fail.lua has the same name.
#define FAILURE_TYPE "gentables.failure"

static inline int failure_text(lua_State *lua) {
    lua_getfield(lua, 1, "message");
    return 1;
}

// Raises the text at the top of the stack as a failure with exit code 1.
static inline int failure_raise(lua_State *lua) {
    lua_createtable(lua, 0, 2);
    lua_insert(lua, -2);
    lua_setfield(lua, -2, "message");
    lua_pushinteger(lua, 1);
    lua_setfield(lua, -2, "code");
    if (luaL_newmetatable(lua, FAILURE_TYPE)) {
        lua_pushcfunction(lua, failure_text);
        lua_setfield(lua, -2, "__tostring");
    }
    lua_setmetatable(lua, -2);
    return lua_error(lua);
}

// Whether a call failed because the system lacks memory or files, or a device is broken. A caller that takes
// the file of such a call for a missing one may lose data.
static inline bool failure_is_of_system(int reason) {
    return reason == EMFILE || reason == ENFILE || reason == ENOMEM || reason == EIO;
}

// ---- results, modules and types

// Pushes nil and a message, the results of a function that failed. Returns their number.
static inline int push_failed(lua_State *lua, const char *message) {
    lua_pushnil(lua);
    lua_pushstring(lua, message);
    return 2;
}

static inline int push_true(lua_State *lua) {
    lua_pushboolean(lua, true);
    return 1;
}

// Pushes what `require` returns for a module.
static inline void push_module(lua_State *lua, const char *name) {
    lua_getglobal(lua, "require");
    lua_pushstring(lua, name);
    lua_call(lua, 1, 1);
}

// Makes a type of userdata, unless it exists, with these methods and metamethods.
static inline void make_type(lua_State *lua, const char *type, const luaL_Reg *methods) {
    if (luaL_newmetatable(lua, type)) {
        luaL_setfuncs(lua, methods, 0);
        lua_pushvalue(lua, -1);
        lua_setfield(lua, -2, "__index");
    }
    lua_pop(lua, 1);
}

// ---- fields of the table on top of the stack, which are set

static inline void set_integer(lua_State *lua, const char *field, lua_Integer value) {
    lua_pushinteger(lua, value);
    lua_setfield(lua, -2, field);
}

// NAN sets nothing.
static inline void set_number(lua_State *lua, const char *field, double value) {
    if (isnan(value)) return;
    lua_pushnumber(lua, value);
    lua_setfield(lua, -2, field);
}

static inline void set_boolean(lua_State *lua, const char *field, bool value) {
    lua_pushboolean(lua, value);
    lua_setfield(lua, -2, field);
}

// NULL sets nothing.
static inline void set_text(lua_State *lua, const char *field, const char *text) {
    lua_pushstring(lua, text);
    lua_setfield(lua, -2, field);
}

// ---- fields of the table at `index`, which are read; a field of another type raises

static inline lua_Integer field_integer(lua_State *lua, int index, const char *field) {
    lua_getfield(lua, index, field);
    lua_Integer value = luaL_checkinteger(lua, -1);
    lua_pop(lua, 1);
    return value;
}

static inline double field_number(lua_State *lua, int index, const char *field) {
    lua_getfield(lua, index, field);
    double value = luaL_checknumber(lua, -1);
    lua_pop(lua, 1);
    return value;
}

static inline bool field_boolean(lua_State *lua, int index, const char *field) {
    lua_getfield(lua, index, field);
    bool value = lua_toboolean(lua, -1);
    lua_pop(lua, 1);
    return value;
}

#endif
