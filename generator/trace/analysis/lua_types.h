// The types that analyses and selections share for Lua, their arguments and columns of numbers.
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

// The number of a thing, or nil.
inline void push_number_of(lua_State *lua, uint32_t number) {
    if (number == NONE) {
        lua_pushnil(lua);
    } else {
        lua_pushinteger(lua, lua_Integer(number));
    }
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
