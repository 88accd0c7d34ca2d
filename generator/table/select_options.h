// The options of core.table's select, from Lua.
#ifndef GENTABLES_SELECT_OPTIONS_H
#define GENTABLES_SELECT_OPTIONS_H

#include <lua.h>

#include "table.h"

// Reads the options in the table at the absolute stack index `options`, but for the incumbent, into
// `selection`. What the selection points to stays on the stack, above the options. Raises if an option is
// wrong.
void select_options_take(lua_State *lua, int options, const struct lists *lists, struct selection *selection);

#endif
