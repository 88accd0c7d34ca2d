// Failures, the errors for users that base/fail.lua raises, raised by C. For modules with bindings to Lua.
#ifndef GENTABLES_FAILURE_H
#define GENTABLES_FAILURE_H

#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>

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

#endif
