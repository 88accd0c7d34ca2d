// The types that analyses and selections share for Lua: userdata that own a C++ value and keep another alive,
// and columns of numbers and texts.
#ifndef GENTABLES_TRACE_LUA_TYPES_H
#define GENTABLES_TRACE_LUA_TYPES_H

#include <vector>

#include "trace_lua.h"

namespace trace {

inline const char *const ANALYSIS_TYPE = "gentables.trace_analysis";
inline const char *const SELECTION_TYPE = "gentables.trace_selection";

// The T in the first argument; raises if its trace, `depth` user values away, is closed.
template <class T> T &argument(lua_State *lua, const char *type, int depth) {
    T &result = **static_cast<T **>(luaL_checkudata(lua, 1, type));
    lua_pushvalue(lua, 1);
    for (int i = 0; i < depth; i++) {
        lua_getiuservalue(lua, -1, 1);
        lua_remove(lua, -2);
    }
    check_trace(lua, lua_gettop(lua));
    lua_pop(lua, 1);
    return result;
}

template <class T> int collect(lua_State *lua) {
    delete *static_cast<T **>(lua_touserdata(lua, 1));
    return 0;
}

// Pushes a new T, empty, that keeps the value at `keeps` alive.
template <class T> T &push_new(lua_State *lua, const char *type, int keeps) {
    keeps = lua_absindex(lua, keeps);
    auto **held = static_cast<T **>(lua_newuserdatauv(lua, sizeof(T *), 1));
    *held = nullptr;
    luaL_setmetatable(lua, type);
    *held = new T;
    lua_pushvalue(lua, keeps);
    lua_setiuservalue(lua, -2, 1);
    return **held;
}

inline void make_type(lua_State *lua, const char *name, const luaL_Reg *methods, lua_CFunction collect) {
    if (!luaL_newmetatable(lua, name)) {
        lua_pop(lua, 1);
        return;
    }
    lua_pushcfunction(lua, collect);
    lua_setfield(lua, -2, "__gc");
    lua_newtable(lua);
    luaL_setfuncs(lua, methods, 0);
    lua_setfield(lua, -2, "__index");
    lua_pop(lua, 1);
}

// The number of a thing, or nil.
inline void push_number_of(lua_State *lua, uint32_t number) {
    if (number == NONE) {
        lua_pushnil(lua);
    } else {
        lua_pushinteger(lua, lua_Integer(number));
    }
}

// Sets `key` of the table on top to a column: push(i) pushes the value of row i (from 0).
template <class Push> void set_column(lua_State *lua, const char *key, size_t rows, Push push) {
    lua_createtable(lua, int(rows), 0);
    for (size_t i = 0; i < rows; i++) {
        push(i);
        lua_rawseti(lua, -2, lua_Integer(i) + 1);
    }
    lua_setfield(lua, -2, key);
}

// The table at `index` as a column of numbers of `count` rows.
template <class T> std::vector<T> column(lua_State *lua, int index, size_t count, T missing) {
    std::vector<T> result(count, missing);
    index = lua_absindex(lua, index);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(lua, index, lua_Integer(i) + 1);
        if (lua_isnumber(lua, -1)) result[i] = T(lua_tonumber(lua, -1));
        lua_pop(lua, 1);
    }
    return result;
}

} // namespace trace

#endif
