// Classes of numerics, for Lua.
#ifndef GENTABLES_CLASSES_H
#define GENTABLES_CLASSES_H

#include <lua.h>

// core.choose's classes; see classes.c.
int choose_lua_classes(lua_State *lua);

#endif
