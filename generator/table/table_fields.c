// Fields of Lua tables that describe a cell; see table_fields.h.
#include "table_fields.h"

#include <lauxlib.h>
#include <math.h>

uint8_t pop_name(lua_State *lua, const struct names *names) {
    size_t length;
    const char *text = luaL_checklstring(lua, -1, &length);
    uint8_t index = names_find(names, text, text + length);
    if (index == NAME_NONE) luaL_error(lua, "unknown %s %s", names->what, text);
    lua_pop(lua, 1);
    return index;
}

lua_Integer field_integer(lua_State *lua, int index, const char *name) {
    lua_getfield(lua, index, name);
    lua_Integer value = luaL_checkinteger(lua, -1);
    lua_pop(lua, 1);
    return value;
}

double field_number(lua_State *lua, int index, const char *name) {
    lua_getfield(lua, index, name);
    double value = luaL_checknumber(lua, -1);
    lua_pop(lua, 1);
    return value;
}

uint8_t field_name(lua_State *lua, int index, const char *name, const struct names *names) {
    lua_getfield(lua, index, name);
    return pop_name(lua, names);
}

// The splits of the table at `index`, or 0.
static uint64_t field_splits(lua_State *lua, int index) {
    size_t length = 0;
    uint64_t splits;
    lua_getfield(lua, index, "splits");
    const char *text = lua_tolstring(lua, -1, &length);
    const char *end = text != NULL ? text + length : NULL;
    if (!splits_parse(text, end, &splits)) luaL_error(lua, "%s is no splits", text);
    lua_pop(lua, 1);
    return splits;
}

// The nodes of the table at `index`, by default 1.
static uint16_t field_nodes(lua_State *lua, int index) {
    lua_getfield(lua, index, "nodes");
    lua_Integer nodes = luaL_optinteger(lua, -1, 1);
    lua_pop(lua, 1);
    return (uint16_t)nodes;
}

struct cell_key block_key(lua_State *lua, int index, const struct lists *lists) {
    return (struct cell_key){
        .splits = field_splits(lua, index),
        .world_size = (uint16_t)field_integer(lua, index, "world_size"),
        .nodes = field_nodes(lua, index),
        .dtype = field_name(lua, index, "dtype", &lists->dtypes),
        .op = field_name(lua, index, "op", &lists->ops),
        .mode = field_name(lua, index, "mode", &lists->modes),
    };
}

void set_name(lua_State *lua, const char *field, const struct names *names, uint8_t index) {
    lua_pushstring(lua, index == NAME_NONE ? NULL : names->name[index]);
    lua_setfield(lua, -2, field);
}

void set_splits(lua_State *lua, uint64_t splits) {
    char text[SPLITS_TEXT_SIZE];
    if (splits == 0) return;
    lua_pushlstring(lua, text, (size_t)(splits_print(text, splits) - text));
    lua_setfield(lua, -2, "splits");
}

void set_number(lua_State *lua, const char *field, double value) {
    if (isnan(value)) return;
    lua_pushnumber(lua, value);
    lua_setfield(lua, -2, field);
}

void set_integer(lua_State *lua, const char *field, lua_Integer value) {
    lua_pushinteger(lua, value);
    lua_setfield(lua, -2, field);
}

void set_boolean(lua_State *lua, const char *field, bool value) {
    lua_pushboolean(lua, value);
    lua_setfield(lua, -2, field);
}
