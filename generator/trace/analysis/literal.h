// Arguments of ops, JSON as in the trace, as Python literals and as values for Lua. JSON without blanks
// between its tokens; objects are never arguments.
#ifndef GENTABLES_TRACE_LITERAL_H
#define GENTABLES_TRACE_LITERAL_H

#include <lua.hpp>

#include <string>
#include <string_view>

namespace trace {

// Appends the literal: lists as tuples, or with brackets. Returns false if it is not such JSON.
bool append_python(std::string_view json, bool as_lists, std::string &to);

// Appends a text, or a number with all its digits, as a literal.
void append_python_text(std::string_view text, std::string &to);
void append_python_number(double number, std::string &to);

// Pushes the value: lists as tables, null as false. Returns false, and pushes nothing, if it is not such
// JSON.
bool push_json(lua_State *lua, std::string_view json);

} // namespace trace

#endif
