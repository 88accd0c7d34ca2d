// require "core.yaml": reads one document of YAML with libyaml. Several documents and cyclic aliases are
// errors; tags are ignored.
//
//   yaml.decode(text, null) -> value | nil, message      `null` stands for YAML's null
//
// Mappings and sequences become tables; plain scalars become null, booleans (also yes, no, on, off), integers
// or floats, in decimal; other scalars become texts. The message has the line.
#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/bindings.h"

#define DOCUMENT_TYPE "gentables.yaml_document"

enum { TEXT = 1, NULL_VALUE, DEEPEST = 100, MOST_NODES = 1000000, ROOT = 1, MESSAGE_SIZE = 160 };

static const char TOO_DEEP[] = "nested too deeply";

struct document {
    yaml_document_t yaml;
    bool loaded;
};

static int fail_at(lua_State *lua, const char *problem, size_t line) {
    lua_pushnil(lua);
    lua_pushfstring(lua, "line %d: %s", (int)line + 1, problem);
    return 2;
}

static bool is_one_of(const char *text, const char *const words[]) {
    for (; *words != NULL; words++) {
        if (strcasecmp(text, *words) == 0) return true;
    }
    return false;
}

static bool is_number(const char *text, const char *end) {
    return end != text && *end == '\0' && strpbrk(text, "0123456789") != NULL;
}

// A scalar without quotes.
static void push_plain(lua_State *lua, const char *text, size_t length) {
    static const char *const nulls[] = {"", "~", "null", NULL};
    static const char *const truths[] = {"true", "yes", "on", NULL};
    static const char *const falsehoods[] = {"false", "no", "off", NULL};
    char *end;
    if (strlen(text) != length) {
        lua_pushlstring(lua, text, length);
        return;
    }
    if (is_one_of(text, nulls)) {
        lua_pushvalue(lua, NULL_VALUE);
    } else if (is_one_of(text, truths) || is_one_of(text, falsehoods)) {
        lua_pushboolean(lua, is_one_of(text, truths));
    } else {
        errno = 0;
        long long integer = strtoll(text, &end, 10);
        if (is_number(text, end) && errno == 0) {
            lua_pushinteger(lua, integer);
            return;
        }
        double number = strtod(text, &end);
        if (is_number(text, end) && strpbrk(text, "xXnN") == NULL) {
            lua_pushnumber(lua, number);
        } else {
            lua_pushlstring(lua, text, length);
        }
    }
}

// A document while it becomes Lua values.
struct reader {
    lua_State *lua;
    yaml_document_t *yaml;
    int nodes_left; // a limit, because nested aliases can expand to very many nodes
    size_t line;    // of the current node
};

static const char *push_node(struct reader *reader, int id, int depth);

static const char *push_sequence(struct reader *reader, const yaml_node_t *node, int depth) {
    lua_newtable(reader->lua);
    lua_Integer index = 0;
    const yaml_node_item_t *item = node->data.sequence.items.start, *end = node->data.sequence.items.top;
    for (; item < end; item++) {
        const char *problem = push_node(reader, *item, depth + 1);
        if (problem != NULL) return problem;
        lua_rawseti(reader->lua, -2, ++index);
    }
    return NULL;
}

static const char *push_mapping(struct reader *reader, const yaml_node_t *node, int depth) {
    lua_State *lua = reader->lua;
    lua_newtable(lua);
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start, *end = node->data.mapping.pairs.top;
    for (; pair < end; pair++) {
        yaml_node_t *key = yaml_document_get_node(reader->yaml, pair->key);
        reader->line = key->start_mark.line;
        if (key->type != YAML_SCALAR_NODE) return "a key that is not a scalar";
        lua_pushlstring(lua, (const char *)key->data.scalar.value, key->data.scalar.length);
        lua_pushvalue(lua, -1);
        if (lua_rawget(lua, -3) != LUA_TNIL) return "a duplicate key";
        lua_pop(lua, 1);
        const char *problem = push_node(reader, pair->value, depth + 1);
        if (problem != NULL) return problem;
        lua_rawset(lua, -3);
    }
    return NULL;
}

// Pushes the value of a node. Returns NULL, or the error, with the line in reader->line.
static const char *push_node(struct reader *reader, int id, int depth) {
    const yaml_node_t *node = yaml_document_get_node(reader->yaml, id);
    reader->line = node->start_mark.line;
    if (depth > DEEPEST || !lua_checkstack(reader->lua, 8)) return TOO_DEEP;
    if (reader->nodes_left-- == 0) return "more values than a workload card has";
    switch (node->type) {
    case YAML_SEQUENCE_NODE: return push_sequence(reader, node, depth);
    case YAML_MAPPING_NODE: return push_mapping(reader, node, depth);
    default: break;
    }
    const char *text = (const char *)node->data.scalar.value;
    if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        push_plain(reader->lua, text, node->data.scalar.length);
    } else {
        lua_pushlstring(reader->lua, text, node->data.scalar.length);
    }
    return NULL;
}

// Whether collections are nested more deeply than DEEPEST, in flow style or block style. The loader takes
// quadratic time for them. Sets the line. A text with an error is left to the loader.
static bool is_too_deep(const char *text, size_t length, size_t *line) {
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) return false;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    int depth = 0;
    bool goes_on = true;
    for (yaml_event_t event; goes_on && depth <= DEEPEST && yaml_parser_parse(&parser, &event);) {
        if (event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT) depth++;
        if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT) depth--;
        goes_on = event.type != YAML_STREAM_END_EVENT && event.type != YAML_NO_EVENT;
        *line = event.start_mark.line;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return depth > DEEPEST;
}

// Reads the only document of `text`. Returns NULL, or the error, with its line.
static const char *load(struct document *document, const char *text, size_t length, size_t *line,
                        char message[MESSAGE_SIZE]) {
    yaml_parser_t parser;
    if (is_too_deep(text, length, line)) return TOO_DEEP;
    if (!yaml_parser_initialize(&parser)) return "out of memory";
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    const char *problem = NULL;
    document->loaded = yaml_parser_load(&parser, &document->yaml);
    if (document->loaded) {
        yaml_document_t next;
        if (yaml_parser_load(&parser, &next)) {
            if (yaml_document_get_root_node(&next) != NULL) problem = "a second document";
            *line = next.start_mark.line;
            yaml_document_delete(&next);
            yaml_parser_delete(&parser);
            return problem;
        }
    }
    // Some failed allocations end the loader without an error.
    bool lacks_memory = parser.error == YAML_MEMORY_ERROR || parser.error == YAML_NO_ERROR;
    const char *reason = lacks_memory ? "out of memory" : "cannot be read";
    snprintf(message, MESSAGE_SIZE, "%s", parser.problem != NULL ? parser.problem : reason);
    *line = parser.problem_mark.line;
    yaml_parser_delete(&parser);
    return message;
}

static int collect_document(lua_State *lua) {
    struct document *document = luaL_checkudata(lua, 1, DOCUMENT_TYPE);
    if (document->loaded) yaml_document_delete(&document->yaml);
    document->loaded = false;
    return 0;
}

static int decode(lua_State *lua) {
    size_t length, line = 0;
    const char *text = luaL_checklstring(lua, TEXT, &length);
    luaL_checkany(lua, NULL_VALUE);
    lua_settop(lua, NULL_VALUE);
    struct document *document = lua_newuserdatauv(lua, sizeof *document, 0);
    document->loaded = false;
    luaL_setmetatable(lua, DOCUMENT_TYPE);
    char message[MESSAGE_SIZE];
    const char *problem = load(document, text, length, &line, message);
    if (problem != NULL) return fail_at(lua, problem, line);
    if (yaml_document_get_root_node(&document->yaml) == NULL) {
        lua_pushvalue(lua, NULL_VALUE); // the text is empty
        return 1;
    }
    struct reader reader = {.lua = lua, .yaml = &document->yaml, .nodes_left = MOST_NODES};
    problem = push_node(&reader, ROOT, 0);
    return problem == NULL ? 1 : fail_at(lua, problem, reader.line);
}

int luaopen_core_yaml(lua_State *lua);
int luaopen_core_yaml(lua_State *lua) {
    static const luaL_Reg functions[] = {{"decode", decode}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"__gc", collect_document}, {NULL, NULL}};
    make_type(lua, DOCUMENT_TYPE, methods);
    luaL_newlib(lua, functions);
    return 1;
}
