// Values of C++ for Lua: fields of tables, lists, and userdata that own a value of C++. An error of Lua skips
// destructors, so functions that call Lua own no memory: a userdata does.
#ifndef GENTABLES_LUA_VALUES_H
#define GENTABLES_LUA_VALUES_H

#include <lua.hpp>
#include <new>
#include <string_view>

// Runs F; a failed allocation becomes Lua's error.
template <int (*F)(lua_State *)> int guarded(lua_State *lua) {
    try {
        return F(lua);
    } catch (const std::bad_alloc &) {
    }
    return luaL_error(lua, "not enough memory");
}

inline void push_text(lua_State *lua, std::string_view text) {
    lua_pushlstring(lua, text.data(), text.size());
}

// Each of the following sets a field of the table on top of the stack.
inline void set_number(lua_State *lua, const char *key, double value) {
    lua_pushnumber(lua, value);
    lua_setfield(lua, -2, key);
}

template <class Integer> void set_integer(lua_State *lua, const char *key, Integer value) {
    lua_pushinteger(lua, lua_Integer(value));
    lua_setfield(lua, -2, key);
}

inline void set_text(lua_State *lua, const char *key, std::string_view text) {
    push_text(lua, text);
    lua_setfield(lua, -2, key);
}

// Pushes a list of `count` items; push(i), from 0, pushes each.
template <class Push> void push_list(lua_State *lua, size_t count, Push push) {
    lua_createtable(lua, int(count), 0);
    for (size_t i = 0; i < count; i++) {
        push(i);
        lua_rawseti(lua, -2, lua_Integer(i) + 1);
    }
}

template <class Push> void set_list(lua_State *lua, const char *key, size_t count, Push push) {
    push_list(lua, count, push);
    lua_setfield(lua, -2, key);
}

// Returns nil and a message.
inline int fail_with(lua_State *lua, const char *message) {
    lua_pushnil(lua);
    lua_pushstring(lua, message);
    return 2;
}

template <class T> int collect(lua_State *lua) {
    delete *static_cast<T **>(lua_touserdata(lua, 1));
    return 0;
}

// Makes the type of userdata that own a T, once. `methods`: nullptr, or those of its values.
template <class T> void make_type(lua_State *lua, const char *name, const luaL_Reg *methods = nullptr) {
    if (luaL_newmetatable(lua, name)) {
        lua_pushcfunction(lua, collect<T>);
        lua_setfield(lua, -2, "__gc");
        lua_newtable(lua);
        if (methods != nullptr) luaL_setfuncs(lua, methods, 0);
        lua_setfield(lua, -2, "__index");
    }
    lua_pop(lua, 1);
}

// Pushes a new userdata of this type, and returns its T, empty. `keeps`: the index of a value that it keeps
// alive; 0: none. Throws bad_alloc.
template <class T> T &push_new(lua_State *lua, const char *type, int keeps = 0) {
    if (keeps != 0) keeps = lua_absindex(lua, keeps);
    auto **held = static_cast<T **>(lua_newuserdatauv(lua, sizeof(T *), 1));
    *held = nullptr;
    luaL_setmetatable(lua, type);
    *held = new T;
    if (keeps != 0) {
        lua_pushvalue(lua, keeps);
        lua_setiuservalue(lua, -2, 1);
    }
    return **held;
}

#endif
