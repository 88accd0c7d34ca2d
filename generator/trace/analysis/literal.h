// Arguments of ops, JSON as the trace has it, as Python literals and as values for Lua. JSON without blanks
// between its tokens; objects are no arguments.
#ifndef GENTABLES_TRACE_LITERAL_H
#define GENTABLES_TRACE_LITERAL_H

#include <lua.hpp>

#include <string>
#include <string_view>

namespace trace {

// Appends the literal: lists as tuples, or with brackets. False: it is no such JSON.
bool append_python(std::string_view json, bool as_lists, std::string &to);

// Appends a text, or a number so that it reads back the same, as a literal.
void append_python_text(std::string_view text, std::string &to);
void append_python_number(double number, std::string &to);

// Pushes the value: lists as tables, null as false. False, and nothing pushed: it is no such JSON.
bool push_json(lua_State *lua, std::string_view json);

} // namespace trace

#endif
