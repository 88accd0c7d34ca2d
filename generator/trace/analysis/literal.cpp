// JSON of arguments to literals and values: see literal.h.
#include "literal.h"

#include <charconv>
#include <cstdint>

namespace trace {

namespace {

constexpr int DEEPEST = 64; // lists in lists; arguments have three

struct cursor {
    const char *at, *end;

    bool is(char c) const { return at < end && *at == c; }
    bool take(char c) {
        if (!is(c)) return false;
        at++;
        return true;
    }
    bool take(std::string_view word) {
        if (std::string_view(at, size_t(end - at)).substr(0, word.size()) != word) return false;
        at += word.size();
        return true;
    }
};

void append_utf8(uint32_t code, std::string &to) {
    if (code < 0x80) {
        to += char(code);
    } else if (code < 0x800) {
        to += char(0xC0 | (code >> 6));
        to += char(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        to += char(0xE0 | (code >> 12));
        to += char(0x80 | ((code >> 6) & 0x3F));
        to += char(0x80 | (code & 0x3F));
    } else {
        to += char(0xF0 | (code >> 18));
        to += char(0x80 | ((code >> 12) & 0x3F));
        to += char(0x80 | ((code >> 6) & 0x3F));
        to += char(0x80 | (code & 0x3F));
    }
}

bool take_hex(cursor &from, uint32_t &code) {
    if (from.end - from.at < 4) return false;
    auto [stop, problem] = std::from_chars(from.at, from.at + 4, code, 16);
    if (problem != std::errc() || stop != from.at + 4) return false;
    from.at += 4;
    return true;
}

// A character that is written \uXXXX, and \uXXXX\uXXXX beyond 0xFFFF.
bool take_code(cursor &from, std::string &to) {
    uint32_t code = 0, low = 0;
    if (!take_hex(from, code)) return false;
    if (code >= 0xD800 && code < 0xDC00) {
        if (!from.take("\\u") || !take_hex(from, low) || low < 0xDC00 || low > 0xDFFF) return false;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(code, to);
    return true;
}

bool take_escape(cursor &from, std::string &to) {
    constexpr std::string_view NAMES = "\"\\/bfnrt", MEANT = "\"\\/\b\f\n\r\t";
    if (from.take('u')) return take_code(from, to);
    size_t index = from.at < from.end ? NAMES.find(*from.at) : std::string_view::npos;
    if (index == std::string_view::npos) return false;
    from.at++;
    to += MEANT[index];
    return true;
}

// The text after its opening quote, and its closing quote.
bool take_text(cursor &from, std::string &to) {
    to.clear();
    while (from.at < from.end && *from.at != '"') {
        if (from.take('\\')) {
            if (!take_escape(from, to)) return false;
        } else {
            to += *from.at++;
        }
    }
    return from.take('"');
}

// A number as written.
bool take_number(cursor &from, std::string_view &number) {
    const char *begin = from.at;
    while (from.at < from.end && std::string_view("+-.0123456789eE").find(*from.at) != std::string_view::npos)
        from.at++;
    number = std::string_view(begin, size_t(from.at - begin));
    return !number.empty();
}

// ---- Python -----------------------------------------------------------------------------------

} // namespace

void append_python_text(std::string_view text, std::string &to) {
    constexpr char DIGITS[] = "0123456789abcdef";
    bool has_single = text.find('\'') != std::string_view::npos;
    char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
    to += quote;
    for (char c : text) {
        auto code = static_cast<unsigned char>(c);
        if (c == '\n' || c == '\r' || c == '\t') {
            to += '\\';
            to += c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
        } else if (code < 0x20 || code == 0x7F) {
            to += "\\x";
            to += DIGITS[code >> 4];
            to += DIGITS[code & 15];
        } else {
            if (c == quote || c == '\\') to += '\\';
            to += c;
        }
    }
    to += quote;
}

void append_python_number(double number, std::string &to) {
    char digits[32];
    auto [end, problem] = std::to_chars(digits, digits + sizeof digits, number);
    std::string_view written(digits, problem == std::errc() ? size_t(end - digits) : 0);
    to += written;
    if (written.find_first_of(".ein") == std::string_view::npos) to += ".0";
}

namespace {

// Reads values one by one; V handles them.
template <class V> bool take_value(cursor &from, V &to, int depth) {
    if (from.take('"')) return take_text(from, to.scratch) && to.text();
    if (from.take("true")) return to.word(true);
    if (from.take("false")) return to.word(false);
    if (from.take("null")) return to.null();
    if (!from.take('[')) {
        std::string_view number;
        return take_number(from, number) && to.number(number);
    }
    if (depth >= DEEPEST || !to.open()) return false;
    size_t count = 0;
    while (!from.is(']')) {
        if (count > 0 && !from.take(',')) return false;
        if (count > 0) to.between();
        if (!take_value(from, to, depth + 1)) return false;
        to.item(++count);
    }
    from.at++;
    to.close(count);
    return true;
}

struct python_writer {
    std::string &to;
    bool as_lists;
    std::string scratch = {};

    bool text() {
        append_python_text(scratch, to);
        return true;
    }
    bool word(bool value) {
        to += value ? "True" : "False";
        return true;
    }
    bool null() {
        to += "None";
        return true;
    }
    bool number(std::string_view number) {
        to += number;
        return true;
    }
    bool open() {
        to += as_lists ? '[' : '(';
        return true;
    }
    void between() { to += ", "; }
    void item(size_t) {}
    void close(size_t count) {
        if (as_lists) {
            to += ']';
        } else {
            to += count == 1 ? ",)" : ")";
        }
    }
};

// ---- Lua --------------------------------------------------------------------------------------

struct lua_pusher {
    lua_State *lua;
    std::string scratch = {};

    bool text() {
        lua_pushlstring(lua, scratch.data(), scratch.size());
        return true;
    }
    bool word(bool value) {
        lua_pushboolean(lua, value);
        return true;
    }
    bool null() { return word(false); }
    bool number(std::string_view number) {
        scratch.assign(number);
        return lua_stringtonumber(lua, scratch.c_str()) != 0;
    }
    bool open() {
        if (!lua_checkstack(lua, 4)) return false;
        lua_newtable(lua);
        return true;
    }
    void between() {}
    void item(size_t count) { lua_rawseti(lua, -2, lua_Integer(count)); }
    void close(size_t) {}
};

} // namespace

bool append_python(std::string_view json, bool as_lists, std::string &to) {
    cursor from = {json.data(), json.data() + json.size()};
    python_writer writer = {to, as_lists};
    return take_value(from, writer, 0) && from.at == from.end;
}

bool push_json(lua_State *lua, std::string_view json) {
    int top = lua_gettop(lua);
    cursor from = {json.data(), json.data() + json.size()};
    lua_pusher pusher = {lua};
    if (take_value(from, pusher, 0) && from.at == from.end) return true;
    lua_settop(lua, top);
    return false;
}

} // namespace trace
