// Shared by the fuzz targets of the generator: a Lua state with its modules, and a check of messages.
#ifndef GENTABLES_FUZZ_GENERATOR_H
#define GENTABLES_FUZZ_GENERATOR_H

#include <cstring>

extern "C" {
#include <lauxlib.h>
#include <lualib.h>

#include "lists/names.h"
#include "modules.h"
}

#include "file_in_memory.h"

namespace fuzz {

// A message must be one line with text.
inline void check_message(const std::string &message) {
    if (message.empty() || message.find('\n') != std::string::npos) die("no one-line message", message);
}

// The one Lua state, as main.c makes it.
inline lua_State *lua() {
    static lua_State *state = nullptr;
    if (state != nullptr) return state;
    state = luaL_newstate();
    luaL_openlibs(state);
    luaL_getsubtable(state, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    for (const luaL_Reg *module = gentables_modules; module->name != nullptr; module++) {
        lua_pushcfunction(state, module->func);
        lua_setfield(state, -2, module->name);
    }
    const std::string text = "package.path = '" GENTABLES_HOME "/generator/?.lua;' .. package.path\n"
                             "package.cpath = '" GENTABLES_MODULES "/?.so;' .. package.cpath\n"
                             "gentables = { home = '" GENTABLES_HOME "', version = '', program = '' }\n";
    if (luaL_dostring(state, text.c_str()) != LUA_OK) die("no Lua", lua_tostring(state, -1));
    return state;
}

} // namespace fuzz

#endif
