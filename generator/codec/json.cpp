// require "core.json": decodes JSON with simdjson. codec/json.lua is what Lua modules use; it encodes, too.
#include <simdjson.h>

#include "lua_values.h"
#include "system/cleanup.h"

namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;
using simdjson::dom::parser;

const char *const PARSER_TYPE = "gentables.json_parser";

// Where the arguments of decode and pick lie.
enum { TEXT = 1, NULL_VALUE, ARRAY };

void push(lua_State *lua, element value);

void push_array(lua_State *lua, simdjson::dom::array items) {
    lua_newtable(lua);
    lua_pushvalue(lua, ARRAY);
    lua_setmetatable(lua, -2);
    lua_Integer count = 0;
    for (element item : items) {
        push(lua, item);
        lua_rawseti(lua, -2, ++count);
    }
}

void push_object(lua_State *lua, simdjson::dom::object fields) {
    lua_newtable(lua);
    for (simdjson::dom::key_value_pair field : fields) {
        push_text(lua, field.key);
        push(lua, field.value);
        lua_rawset(lua, -3);
    }
}

// The parser limits the depth to 1024, so the stack is never too large.
void push(lua_State *lua, element value) {
    if (!lua_checkstack(lua, 4)) luaL_error(lua, "out of memory");
    switch (value.type()) {
    case element_type::NULL_VALUE: lua_pushvalue(lua, NULL_VALUE); break;
    case element_type::BOOL: lua_pushboolean(lua, bool(value)); break;
    case element_type::INT64: lua_pushinteger(lua, lua_Integer(int64_t(value))); break;
    case element_type::UINT64: lua_pushnumber(lua, lua_Number(uint64_t(value))); break;
    case element_type::DOUBLE: lua_pushnumber(lua, double(value)); break;
    case element_type::STRING: push_text(lua, std::string_view(value)); break;
    case element_type::ARRAY: push_array(lua, value); break;
    case element_type::OBJECT: push_object(lua, value); break;
    }
}

// Parses the text argument. The parser owns the memory of `root`; Lua collects it, so that an error leaks
// nothing. False, with nil and a message pushed, if the text is not JSON.
bool parse_argument(lua_State *lua, element &root) {
    size_t length;
    const char *text = luaL_checklstring(lua, TEXT, &length);
    luaL_checkany(lua, NULL_VALUE);
    luaL_checktype(lua, ARRAY, LUA_TTABLE);
    simdjson::error_code problem;
    try {
        problem = push_new<parser>(lua, PARSER_TYPE).parse(text, length).get(root);
    } catch (const std::bad_alloc &) {
        problem = simdjson::MEMALLOC;
    }
    if (problem == simdjson::SUCCESS) return true;
    fail_with(lua, simdjson::error_message(problem));
    return false;
}

// decode(text, null, array) -> value | nil, message. `null` stands for JSON's null. Arrays get the metatable
// `array`, so that an empty one is not taken for an object.
int decode(lua_State *lua) {
    element root;
    lua_settop(lua, ARRAY);
    if (!parse_argument(lua, root)) return 2;
    push(lua, root);
    return 1;
}

// pick(text, null, array, key...) -> { key = value } of the outermost object | nil, message. The rest of the
// text is checked, but makes no values.
int pick(lua_State *lua) {
    int keys = lua_gettop(lua);
    element root, value;
    simdjson::dom::object object;
    if (!parse_argument(lua, root)) return 2;
    if (root.get(object) != simdjson::SUCCESS) return fail_with(lua, "is not an object");
    lua_newtable(lua);
    for (int argument = ARRAY + 1; argument <= keys; argument++) {
        if (object.at_key(luaL_checkstring(lua, argument)).get(value) != simdjson::SUCCESS) continue;
        lua_pushvalue(lua, argument);
        push(lua, value);
        lua_rawset(lua, -3);
    }
    return 1;
}

} // namespace

extern "C" int luaopen_core_json(lua_State *lua) {
    static const luaL_Reg functions[] = {{"decode", decode}, {"pick", pick}, {nullptr, nullptr}};
    out_of_memory_ends();
    make_type<parser>(lua, PARSER_TYPE);
    luaL_newlib(lua, functions);
    return 1;
}
