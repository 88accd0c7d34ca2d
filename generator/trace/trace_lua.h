// Traces for Lua: core.trace. An analysis that Lua can call is a function declared here, with a row in the
// list of methods in trace_lua.cpp; it stands in a file of its own.
#ifndef GENTABLES_TRACE_LUA_H
#define GENTABLES_TRACE_LUA_H

#include <lua.hpp>

#include "trace.h"

namespace trace {

// The trace at `index` of the stack; raises where there is none.
trace &check_trace(lua_State *lua, int index);

void push_text(lua_State *lua, const trace &trace, uint32_t text);

struct analysis;
// The analysis that is the first argument; raises where it, or its trace, is none.
const analysis &check_analysis(lua_State *lua);

int lua_event_rows(lua_State *lua); // event_rows.cpp: methods of an analysis, like the next two
int lua_short_rows(lua_State *lua);
int lua_gpu_rows(lua_State *lua);

int lua_analysis(lua_State *lua);    // analysis_lua.cpp; it is kept as the trace's user value
int lua_collectives(lua_State *lua); // collectives.cpp

} // namespace trace

#endif
