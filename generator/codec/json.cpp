// JSON through simdjson, behind the C interface of json.h; and core.json for Lua, which only decodes:
// json.lua adds encoding.
#include "json.h"

#include <lua.hpp>

#include <cstdio>
#include <new>
#include <simdjson.h>

struct json_document {
    simdjson::dom::parser parser;
    simdjson::dom::element root;
};

static void visit(simdjson::dom::element element, const json_visitor &visitor) {
    using simdjson::dom::element_type;
    switch (element.type()) {
    case element_type::NULL_VALUE: visitor.null(visitor.state); break;
    case element_type::BOOL: visitor.boolean(visitor.state, bool(element)); break;
    case element_type::INT64: visitor.integer(visitor.state, int64_t(element)); break;
    case element_type::UINT64: visitor.number(visitor.state, double(uint64_t(element))); break;
    case element_type::DOUBLE: visitor.number(visitor.state, double(element)); break;
    case element_type::STRING: {
        std::string_view text = element;
        visitor.text(visitor.state, text.data(), text.size());
        break;
    }
    case element_type::ARRAY:
        visitor.open(visitor.state, 1);
        for (simdjson::dom::element item : simdjson::dom::array(element)) visit(item, visitor);
        visitor.close(visitor.state, 1);
        break;
    case element_type::OBJECT:
        visitor.open(visitor.state, 0);
        for (simdjson::dom::key_value_pair field : simdjson::dom::object(element)) {
            visitor.key(visitor.state, field.key.data(), field.key.size());
            visit(field.value, visitor);
        }
        visitor.close(visitor.state, 0);
        break;
    }
}

json_document *json_parse(const char *text, size_t length, char *message, size_t message_size) {
    auto *document = new (std::nothrow) json_document;
    simdjson::error_code problem = simdjson::MEMALLOC;
    if (document != nullptr) problem = document->parser.parse(text, length).get(document->root);
    if (problem == simdjson::SUCCESS) return document;
    std::snprintf(message, message_size, "%s", simdjson::error_message(problem));
    delete document;
    return nullptr;
}

void json_visit(const json_document *document, const json_visitor *visitor) {
    visit(document->root, *visitor);
}

void json_free(json_document *document) {
    delete document;
}

// ---- Lua --------------------------------------------------------------------------------------

// On the Lua stack while visiting: the containers that are open, each but the root with its key below it.
namespace {

const char *const DOCUMENT_TYPE = "gentables.json_document";

// Where decode's arguments lie.
enum { TEXT = 1, NULL_VALUE, ARRAY };

struct builder {
    lua_State *lua;
    int base; // where the root comes to lie
};

lua_State *lua_of(void *state) {
    return static_cast<builder *>(state)->lua;
}

// Takes the value on top of the stack into its container: an array, or an object whose key lies below it.
void store(void *state) {
    auto *build = static_cast<builder *>(state);
    lua_State *lua = build->lua;
    if (lua_gettop(lua) == build->base) return;
    if (lua_type(lua, -2) == LUA_TTABLE) {
        lua_rawseti(lua, -2, lua_Integer(lua_rawlen(lua, -2)) + 1);
    } else {
        lua_rawset(lua, -3);
    }
}

void push_null(void *state) {
    lua_pushvalue(lua_of(state), NULL_VALUE);
    store(state);
}

void push_boolean(void *state, int value) {
    lua_pushboolean(lua_of(state), value);
    store(state);
}

void push_integer(void *state, int64_t value) {
    lua_pushinteger(lua_of(state), lua_Integer(value));
    store(state);
}

void push_number(void *state, double value) {
    lua_pushnumber(lua_of(state), value);
    store(state);
}

void push_key(void *state, const char *data, size_t length) {
    lua_pushlstring(lua_of(state), data, length);
}

void push_text(void *state, const char *data, size_t length) {
    lua_pushlstring(lua_of(state), data, length);
    store(state);
}

void open_container(void *state, int is_array) {
    lua_State *lua = lua_of(state);
    luaL_checkstack(lua, 4, "JSON nested too deeply");
    lua_newtable(lua);
    if (is_array) {
        lua_pushvalue(lua, ARRAY);
        lua_setmetatable(lua, -2);
    }
}

void close_container(void *state, int) {
    store(state);
}

int collect_document(lua_State *lua) {
    auto **held = static_cast<json_document **>(luaL_checkudata(lua, 1, DOCUMENT_TYPE));
    json_free(*held);
    *held = nullptr;
    return 0;
}

// Parses the text argument; the document stands on the stack until it is collected. nullptr, with nil and a
// message pushed, where it is no JSON.
json_document *parse_argument(lua_State *lua) {
    size_t length;
    const char *text = luaL_checklstring(lua, TEXT, &length);
    luaL_checkany(lua, NULL_VALUE);
    luaL_checktype(lua, ARRAY, LUA_TTABLE);
    auto **held = static_cast<json_document **>(lua_newuserdatauv(lua, sizeof(json_document *), 0));
    *held = nullptr;
    luaL_setmetatable(lua, DOCUMENT_TYPE);
    char message[256];
    *held = json_parse(text, length, message, sizeof message);
    if (*held == nullptr) {
        lua_pushnil(lua);
        lua_pushstring(lua, message);
    }
    return *held;
}

// Pushes a value.
void push(lua_State *lua, simdjson::dom::element element) {
    builder state = {lua, lua_gettop(lua) + 1};
    visit(element, {&state, push_null, push_boolean, push_integer, push_number, push_text, push_key,
                    open_container, close_container});
}

// decode(text, null, array) -> value | nil, message. `null` is what stands for JSON's null. Arrays get the
// metatable `array`, so that an empty one is not taken for an object.
int decode(lua_State *lua) {
    lua_settop(lua, ARRAY);
    const json_document *document = parse_argument(lua);
    if (document == nullptr) return 2;
    push(lua, document->root);
    return 1;
}

// pick(text, null, array, key...) -> { key = value } of the outermost object | nil, message. The rest of the
// text is checked, and not turned into values.
int pick(lua_State *lua) {
    int keys = lua_gettop(lua);
    const json_document *document = parse_argument(lua);
    if (document == nullptr) return 2;
    simdjson::dom::object object;
    if (document->root.get(object) != simdjson::SUCCESS) {
        lua_pushnil(lua);
        lua_pushstring(lua, "is no object");
        return 2;
    }
    lua_newtable(lua);
    for (int argument = ARRAY + 1; argument <= keys; argument++) {
        simdjson::dom::element value;
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
    luaL_newmetatable(lua, DOCUMENT_TYPE);
    lua_pushcfunction(lua, collect_document);
    lua_setfield(lua, -2, "__gc");
    lua_pop(lua, 1);
    luaL_newlib(lua, functions);
    return 1;
}
