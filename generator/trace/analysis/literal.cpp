// JSON of arguments to literals and values, with simdjson: see literal.h.
#include "literal.h"

#include <charconv>
#include <lua.hpp>
#include <new>
#include <simdjson.h>

#include "trace/reader/json_cursor.h"
#include "trace/reader/values.h"

namespace trace {

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

// ---- Python -----------------------------------------------------------------------------------

struct python_writer {
    std::string &to;
    bool as_lists;

    bool text(std::string_view text) {
        append_python_text(text, to);
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
    std::string terminated = {};

    bool text(std::string_view text) {
        lua_pushlstring(lua, text.data(), text.size());
        return true;
    }
    bool word(bool value) {
        lua_pushboolean(lua, value);
        return true;
    }
    bool null() { return word(false); }
    bool number(std::string_view number) {
        terminated.assign(number);
        return lua_stringtonumber(lua, terminated.c_str()) != 0;
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

// ---- JSON -------------------------------------------------------------------------------------

namespace od = simdjson::ondemand;

constexpr int DEEPEST = 64; // lists in lists; arguments have three

template <class W> bool write_list(any_value from, W &to, int depth);

// Writes a value, which is in `depth` lists.
template <class W> bool write_value(any_value from, W &to, int depth) {
    od::json_type type;
    std::string_view text;
    bool word;
    if (from.type().get(type) != simdjson::SUCCESS) return false;
    switch (type) {
    case od::json_type::array: return depth < DEEPEST && write_list(from, to, depth);
    case od::json_type::string: return from.get_string().get(text) == simdjson::SUCCESS && to.text(text);
    case od::json_type::boolean: return from.get_bool().get(word) == simdjson::SUCCESS && to.word(word);
    case od::json_type::null: return from.is_null().get(word) == simdjson::SUCCESS && word && to.null();
    case od::json_type::number:
        text = trim(from.raw_json_token().value_unsafe());
        return is_json_number(text) && to.number(text);
    case od::json_type::object: break;
    }
    return false;
}

template <class W> bool write_list(any_value from, W &to, int depth) {
    od::array list;
    if (from.get_array().get(list) != simdjson::SUCCESS || !to.open()) return false;
    size_t count = 0;
    for (any_value item : list) {
        if (count > 0) to.between();
        if (!write_value(item, to, depth + 1)) return false;
        to.item(++count);
    }
    to.close(count);
    return true;
}

} // namespace

struct argument_reader::state {
    template <class W> bool write(std::string_view json, W &to) {
        od::document document;
        od::array list;
        if (!open(json, document) || document.get_array().get(list) != simdjson::SUCCESS) return false;
        size_t count = 0;
        for (any_value item : list)
            if (count++ > 0 || !write_value(item, to, 0)) return false;
        return count == 1 && document.current_location().error() != simdjson::SUCCESS; // nothing follows
    }

    // A document with the value in a list: simdjson has other types for the value of a whole document.
    bool open(std::string_view json, od::document &document) {
        text.assign(1, '[');
        text += json;
        text += ']';
        size_t size = text.size();
        text.append(simdjson::SIMDJSON_PADDING, '\0');
        simdjson::error_code problem = parser.iterate(text.data(), size, text.size()).get(document);
        if (problem == simdjson::MEMALLOC) throw std::bad_alloc();
        return problem == simdjson::SUCCESS;
    }

    od::parser parser;
    std::string text;
};

argument_reader::argument_reader() : state_(new state) {}
argument_reader::~argument_reader() = default;

bool argument_reader::append_python(std::string_view json, bool as_lists, std::string &to) {
    python_writer writer = {to, as_lists};
    return state_->write(json, writer);
}

bool argument_reader::push(lua_State *lua, std::string_view json) {
    int top = lua_gettop(lua);
    lua_pusher pusher = {lua};
    if (state_->write(json, pusher)) return true;
    lua_settop(lua, top);
    return false;
}

} // namespace trace
