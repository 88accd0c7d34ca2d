// Fuzzes the readers of other programs' files (generator/readers/): any file is read, or rejected in one
// line; an error of Lua's is a fault. libFuzzer sees which lines of Lua run.
//
//   cmake --preset fuzz && cmake --build --preset fuzz --target fuzz_readers
//   build-fuzz/bin/fuzz_readers -max_total_time=60 FOLDER tests/fuzz/corpus/readers
#include "generator.h"

namespace {

enum { COUNTERS = 1 << 14, LARGEST = 1 << 16 };

#ifdef __clang__
__attribute__((section("__libfuzzer_extra_counters")))
#endif
uint8_t counters[COUNTERS];

// Counts a line that runs.
void count(lua_State *lua, lua_Debug *where) {
    lua_getinfo(lua, "Sl", where);
    uint32_t hash = uint32_t(where->currentline) * 31;
    for (const char *at = where->short_src + strlen(where->short_src); at > where->short_src && at[-1] != '/';
         at--) {
        hash = hash * 33 + uint8_t(at[-1]);
    }
    counters[hash % COUNTERS]++;
}

// The function of readers.lua, on the stack of the state.
lua_State *prepared() {
    static lua_State *lua = nullptr;
    if (lua != nullptr) return lua;
    lua = fuzz::lua();
    if (luaL_dofile(lua, GENTABLES_HOME "/tests/fuzz/readers.lua") != LUA_OK) {
        die("no reader", lua_tostring(lua, -1));
    }
    lua_sethook(lua, count, LUA_MASKLINE, 0);
    return lua;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > LARGEST) return 0;
    lua_State *lua = prepared();
    lua_pushvalue(lua, -1);
    lua_pushlstring(lua, reinterpret_cast<const char *>(data), size);
    if (lua_pcall(lua, 1, 0, 0) != LUA_OK) die("an error", lua_tostring(lua, -1));
    return 0;
}
