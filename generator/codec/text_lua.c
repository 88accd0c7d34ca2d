// require "core.text": numbers as text, and long texts of many numbers.
//
//   shortest(number)  the shortest text of a finite number that reads back as the same number; of a float
//                     with a point or an exponent; nil for other numbers
//   rows(pieces, columns, separator)  for each row i of the columns, which are lists of equal length:
//                     pieces[1] .. columns[1][i] .. pieces[2] .. columns[2][i] ... pieces[#columns + 1]; rows
//                     are separated by `separator`. Values are texts and numbers; floats are printed as by
//                     shortest(), in a column with `decimals = n` as by "%.nf".
//   concat(texts)     the texts of a short list as one; unlike table.concat it copies each only once
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdio.h>

#include "number.h"

enum { COLUMNS_MAX = 16, SHORTEST = -1, DECIMALS_MAX = 12, LONG_TEXT_SIZE = 350, ABOUT_A_NUMBER = 12 };

struct text {
    const char *begin;
    size_t length;
};

static void push_shortest(lua_State *lua, double value) {
    char text[NUMBER_TEXT_SIZE];
    lua_pushlstring(lua, text, (size_t)(number_print_shortest(text, value) - text));
}

static int lua_shortest(lua_State *lua) {
    double value = luaL_checknumber(lua, 1);
    if (lua_isinteger(lua, 1)) {
        lua_pushstring(lua, lua_tostring(lua, 1));
    } else if (isfinite(value)) {
        push_shortest(lua, value);
    } else {
        lua_pushnil(lua);
    }
    return 1;
}

static struct text take_text(lua_State *lua, int list, lua_Integer index) {
    struct text text;
    if (lua_rawgeti(lua, list, index) != LUA_TSTRING) luaL_error(lua, "no text at index %I", index);
    text.begin = lua_tolstring(lua, -1, &text.length); // the list keeps it
    lua_pop(lua, 1);
    return text;
}

static char *print_float(char *out, double value, int decimals) {
    if (decimals == SHORTEST) return number_print_shortest(out, value);
    if (fabs(value) < 1e15) return number_print_fixed(out, value, decimals);
    return out + snprintf(out, LONG_TEXT_SIZE, "%.*f", decimals, value);
}

static char *print_integer(char *out, lua_Integer value) {
    if (value >= 0) return number_print_unsigned(out, (uint64_t)value);
    return out + snprintf(out, NUMBER_TEXT_SIZE, LUA_INTEGER_FMT, value);
}

static void add_value(lua_State *lua, luaL_Buffer *buffer, int list, lua_Integer index, int decimals) {
    char number[LONG_TEXT_SIZE];
    struct text text = {number, 0};
    int type = lua_rawgeti(lua, list, index);
    if (type == LUA_TSTRING) {
        text.begin = lua_tolstring(lua, -1, &text.length);
    } else if (lua_isinteger(lua, -1)) {
        text.length = (size_t)(print_integer(number, lua_tointeger(lua, -1)) - number);
    } else if (type == LUA_TNUMBER && isfinite(lua_tonumber(lua, -1))) {
        text.length = (size_t)(print_float(number, lua_tonumber(lua, -1), decimals) - number);
    } else {
        luaL_error(lua, "row %I has no text or number", index);
    }
    lua_pop(lua, 1);
    luaL_addlstring(buffer, text.begin, text.length);
}

// The field `decimals` of a column; SHORTEST if it has none.
static int take_decimals(lua_State *lua, int list) {
    lua_getfield(lua, list, "decimals");
    lua_Integer decimals = luaL_optinteger(lua, -1, SHORTEST);
    luaL_argcheck(lua, decimals >= SHORTEST && decimals <= DECIMALS_MAX, 2, "too many decimals");
    lua_pop(lua, 1);
    return (int)decimals;
}

static int lua_rows(lua_State *lua) {
    struct text pieces[COLUMNS_MAX + 1], separator;
    int decimals[COLUMNS_MAX], first = 4;
    separator.begin = luaL_checklstring(lua, 3, &separator.length);
    lua_settop(lua, 3);
    lua_Integer width = luaL_len(lua, 2), count = 0;
    luaL_argcheck(lua, width >= 1 && width <= COLUMNS_MAX, 2, "no column, or too many");
    luaL_argcheck(lua, luaL_len(lua, 1) == width + 1, 1, "one piece more than columns is required");
    luaL_checkstack(lua, COLUMNS_MAX + 8, "too many columns");
    size_t length = 0; // of a row, about
    for (lua_Integer i = 0; i <= width; i++) {
        pieces[i] = take_text(lua, 1, i + 1);
        length += pieces[i].length + ABOUT_A_NUMBER;
    }
    for (int c = 0; c < width; c++) {
        if (lua_rawgeti(lua, 2, c + 1) != LUA_TTABLE) luaL_error(lua, "column %d is no list", c + 1);
        decimals[c] = take_decimals(lua, first + c);
        if (c == 0) count = luaL_len(lua, first);
        if (luaL_len(lua, first + c) != count) luaL_error(lua, "column %d has another length", c + 1);
    }
    luaL_Buffer buffer;
    luaL_buffinitsize(lua, &buffer, (size_t)count * (length + separator.length) + 1);
    for (lua_Integer i = 1; i <= count; i++) {
        if (i > 1) luaL_addlstring(&buffer, separator.begin, separator.length);
        for (int c = 0; c < width; c++) {
            luaL_addlstring(&buffer, pieces[c].begin, pieces[c].length);
            add_value(lua, &buffer, first + c, i, decimals[c]);
        }
        luaL_addlstring(&buffer, pieces[width].begin, pieces[width].length);
    }
    luaL_pushresult(&buffer);
    return 1;
}

static int lua_concatenate(lua_State *lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    lua_Integer count = luaL_len(lua, 1);
    luaL_checkstack(lua, (int)count, "too many texts");
    for (lua_Integer i = 1; i <= count; i++) lua_rawgeti(lua, 1, i);
    lua_concat(lua, (int)count);
    return 1;
}

int luaopen_core_text(lua_State *lua);
int luaopen_core_text(lua_State *lua) {
    static const luaL_Reg functions[] = {
        {"concat", lua_concatenate}, {"rows", lua_rows}, {"shortest", lua_shortest}, {NULL, NULL}};
    luaL_newlib(lua, functions);
    return 1;
}
