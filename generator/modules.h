// The C modules of the program, one luaopen_ function each. How to add one: its .c file, a declaration and a
// row here, and the file in generator/CMakeLists.txt. Modules that need a large library, or the C++ library
// (such as core.json, core.trace, core.xlsx), are loadable instead: a line _gentables_module in
// CMakeLists.txt.
#ifndef GENTABLES_MODULES_H
#define GENTABLES_MODULES_H

#include <lauxlib.h>
#include <stddef.h>

int luaopen_core_choose(lua_State *lua);
int luaopen_core_csv(lua_State *lua);
int luaopen_core_file(lua_State *lua);
int luaopen_core_history(lua_State *lua);
int luaopen_core_lookup_rule(lua_State *lua);
int luaopen_core_process(lua_State *lua);
int luaopen_core_rows(lua_State *lua);
int luaopen_core_sizes(lua_State *lua);
int luaopen_core_student(lua_State *lua);
int luaopen_core_system(lua_State *lua);
int luaopen_core_table(lua_State *lua);
int luaopen_core_text(lua_State *lua);
int luaopen_core_workers(lua_State *lua);

static const struct luaL_Reg gentables_modules[] = {
    {"core.choose", luaopen_core_choose},
    {"core.csv", luaopen_core_csv},
    {"core.file", luaopen_core_file},
    {"core.history", luaopen_core_history},
    {"core.lookup_rule", luaopen_core_lookup_rule},
    {"core.process", luaopen_core_process},
    {"core.rows", luaopen_core_rows},
    {"core.sizes", luaopen_core_sizes},
    {"core.student", luaopen_core_student},
    {"core.system", luaopen_core_system},
    {"core.table", luaopen_core_table},
    {"core.text", luaopen_core_text},
    {"core.workers", luaopen_core_workers},
    {NULL, NULL},
};

#endif
