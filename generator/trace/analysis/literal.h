// Arguments of ops, JSON as in the trace, as Python literals and as values for Lua. Arguments contain no
// objects, and at most 64 levels of lists.
#ifndef GENTABLES_TRACE_LITERAL_H
#define GENTABLES_TRACE_LITERAL_H

#include <memory>
#include <string>
#include <string_view>

struct lua_State;

namespace trace {

// Reads one argument after the other in the same memory.
class argument_reader {
  public:
    argument_reader();
    ~argument_reader();

    // Appends the literal: numbers as written, lists as tuples, or with brackets. Returns false if it is not
    // such JSON; then a part of it may be appended.
    bool append_python(std::string_view json, bool as_lists, std::string &to);

    // Pushes the value: lists as tables, null as false. Returns false, and pushes nothing, if it is not such
    // JSON.
    bool push(lua_State *lua, std::string_view json);

  private:
    struct state;
    std::unique_ptr<state> state_;
};

// Appends a text, or a number with all its digits, as a literal.
void append_python_text(std::string_view text, std::string &to);
void append_python_number(double number, std::string &to);

} // namespace trace

#endif
