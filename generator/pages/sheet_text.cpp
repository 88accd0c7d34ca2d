// require "core.sheet_text": sheets as CSV (RFC 4180, lines end in \n). Numbers are the shortest text that
// reads back as the same number, booleans True and False, nil an empty cell.
//
// - csv(columns, rows) gives the text; `rows` is a list of rows, or a function that gives the next one.
// - number(value) gives a number's text.
#include <charconv>
#include <cmath>
#include <cstring>
#include <new>
#include <string>

#include <lua.hpp>

namespace {

constexpr size_t NUMBER_ROOM = 32;

// As Python: floats that are whole end in .0; from 1e16 on, and below 1e-4, there is an exponent. Files of
// other tools then differ from ours only if their values do.
char *print_float(char *out, double value) {
    if (std::isnan(value)) return static_cast<char *>(std::memcpy(out, "nan", 3)) + 3;
    if (std::isinf(value)) {
        const char *text = value < 0 ? "-inf" : "inf";
        return static_cast<char *>(std::memcpy(out, text, std::strlen(text))) + std::strlen(text);
    }
    double size = std::fabs(value);
    bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);
    auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
    char *end = std::to_chars(out, out + NUMBER_ROOM, value, format).ptr;
    if (fixed && std::memchr(out, '.', static_cast<size_t>(end - out)) == nullptr) {
        *end++ = '.';
        *end++ = '0';
    }
    return end;
}

// The number at the top of the stack.
char *print_number(lua_State *lua, char *out) {
    if (lua_isinteger(lua, -1))
        return std::to_chars(out, out + NUMBER_ROOM, static_cast<long long>(lua_tointeger(lua, -1))).ptr;
    return print_float(out, lua_tonumber(lua, -1));
}

// Adds a text, in quotes if it needs them.
void add_text(std::string &out, const char *text, size_t size) {
    bool quoted = std::memchr(text, ',', size) != nullptr || std::memchr(text, '"', size) != nullptr ||
                  std::memchr(text, '\n', size) != nullptr || std::memchr(text, '\r', size) != nullptr;
    if (!quoted) {
        out.append(text, size);
        return;
    }
    out += '"';
    for (size_t at = 0; at < size; at++) {
        if (text[at] == '"') out += '"';
        out += text[at];
    }
    out += '"';
}

// Adds the value at the top of the stack. False if a cell cannot have such a value.
bool add_cell(lua_State *lua, std::string &out) {
    switch (lua_type(lua, -1)) {
    case LUA_TNIL: return true;
    case LUA_TBOOLEAN: out += lua_toboolean(lua, -1) ? "True" : "False"; return true;
    case LUA_TNUMBER: {
        char number[NUMBER_ROOM];
        out.append(number, print_number(lua, number));
        return true;
    }
    case LUA_TSTRING: {
        size_t size;
        const char *text = lua_tolstring(lua, -1, &size);
        add_text(out, text, size);
        return true;
    }
    default: return false;
    }
}

// Adds the list at the top of the stack as a line.
bool add_line(lua_State *lua, std::string &out, lua_Integer columns) {
    size_t begin = out.size();
    for (lua_Integer column = 1; column <= columns; column++) {
        if (column > 1) out += ',';
        lua_rawgeti(lua, -1, column);
        bool added = add_cell(lua, out);
        lua_pop(lua, 1);
        if (!added) return false;
    }
    if (columns == 1 && out.size() == begin) out += "\"\""; // an empty line would be no row
    out += '\n';
    return true;
}

// Pushes the next row of the list or function at index 2. Returns 1; or 0 after the last row, with nothing
// pushed; or -1 if the function failed, with its error pushed.
int push_row(lua_State *lua, lua_Integer index) {
    if (lua_isfunction(lua, 2)) {
        lua_pushvalue(lua, 2);
        if (lua_pcall(lua, 0, 1, 0) != LUA_OK) return -1;
    } else {
        lua_rawgeti(lua, 2, index);
    }
    if (lua_istable(lua, -1)) return 1;
    lua_pop(lua, 1);
    return 0;
}

// Pushes the text; false: pushes an error. Raises std::bad_alloc.
bool push_csv(lua_State *lua, lua_Integer columns) {
    std::string out;
    lua_pushvalue(lua, 1);
    bool fits = add_line(lua, out, columns);
    lua_pop(lua, 1);
    int more = 0;
    for (lua_Integer index = 1; fits && (more = push_row(lua, index)) == 1; index++) {
        fits = add_line(lua, out, columns);
        lua_pop(lua, 1);
    }
    if (more == -1) return false;
    if (fits)
        lua_pushlstring(lua, out.data(), out.size());
    else
        lua_pushliteral(lua, "a cell is neither text, number nor truth value");
    return fits;
}

int csv(lua_State *lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    if (!lua_isfunction(lua, 2)) luaL_checktype(lua, 2, LUA_TTABLE);
    lua_settop(lua, 2);
    bool is_pushed = false, is_short = false;
    try {
        is_pushed = push_csv(lua, static_cast<lua_Integer>(lua_rawlen(lua, 1)));
    } catch (const std::bad_alloc &) {
        is_short = true;
    }
    if (is_short) lua_pushliteral(lua, "not enough memory"); // Lua's own words
    return is_pushed ? 1 : lua_error(lua);
}

int number(lua_State *lua) {
    luaL_checktype(lua, 1, LUA_TNUMBER);
    lua_settop(lua, 1);
    char text[NUMBER_ROOM];
    lua_pushlstring(lua, text, static_cast<size_t>(print_number(lua, text) - text));
    return 1;
}

} // namespace

extern "C" int luaopen_core_sheet_text(lua_State *lua) {
    static const luaL_Reg functions[] = {{"csv", csv}, {"number", number}, {nullptr, nullptr}};
    luaL_newlib(lua, functions);
    return 1;
}
