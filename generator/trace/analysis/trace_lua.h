// Traces for Lua: core.trace. An analysis that Lua can call is a function declared here, with a row in the
// list of methods in trace_lua.cpp; it has its own file.
#ifndef GENTABLES_TRACE_LUA_H
#define GENTABLES_TRACE_LUA_H

#include "codec/lua_values.h"
#include "trace/reader/trace.h"

namespace trace {

// The trace at `index` of the stack; raises if it is not one.
trace &check_trace(lua_State *lua, int index);

// The list at `index` of { start, stop } in µs; raises if they are out of order or overlap.
std::vector<window> windows_argument(lua_State *lua, int index);

void push_text(lua_State *lua, const trace &trace, uint32_t text);

// Sets no field if it is UNKNOWN.
inline void set_known(lua_State *lua, const char *key, int64_t value) {
    if (value != UNKNOWN) set_integer(lua, key, value);
}

inline void set_text(lua_State *lua, const char *key, const trace &of, uint32_t text) {
    push_text(lua, of, text);
    lua_setfield(lua, -2, key);
}

// Sets no field if it is EMPTY_TEXT.
inline void set_known_text(lua_State *lua, const char *key, const trace &of, uint32_t text) {
    if (text != EMPTY_TEXT) set_text(lua, key, of, text);
}

// Sets the description of a collective.
void set_collective(lua_State *lua, const trace &from, const collective &metadata);

struct analysis;
// The analysis in the first argument; raises if it is not one, or if its trace is closed.
const analysis &check_analysis(lua_State *lua);

int lua_select(lua_State *lua); // selection_lua.cpp: a method of an analysis
void make_selection_type(lua_State *lua);
int lua_event_rows(lua_State *lua); // event_rows.cpp: methods of an analysis, like the next five
int lua_short_rows(lua_State *lua);
int lua_gpu_rows(lua_State *lua);
int lua_tree(lua_State *lua);
int lua_stacks(lua_State *lua);
int lua_calls(lua_State *lua);

int lua_analysis(lua_State *lua);    // analysis_lua.cpp; kept as the trace's user value
int lua_collectives(lua_State *lua); // collectives.cpp
int lua_collective_durations(lua_State *lua);

// Reads the patterns of generator/lists/communication.lua, for is_communication. Before each trace.
void read_communication_patterns(lua_State *lua);

} // namespace trace

#endif
