// The C modules that Lua can require, one luaopen_ function each. A new module: its .c file, a declaration and a
// row here, and its file in generator/CMakeLists.txt.
#ifndef GENTABLES_MODULES_H
#define GENTABLES_MODULES_H

#include <lauxlib.h>
#include <stddef.h>

static const struct luaL_Reg gentables_modules[] = {
    {NULL, NULL},
};

#endif
