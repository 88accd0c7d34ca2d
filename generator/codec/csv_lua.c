// require "core.csv": CSV tables with a header; columns are found by name. Rows of benchmarks have a
// reader of their own (rows/rows_reading.c).
//
//   fields(line) -> list of texts | nil, message
//   parse(text, name) -> { columns = names, rows = { { name = text }... }, line = numbers } | nil, message
//
// `line` has the number of each row's first line; `name` is the file in messages. Empty lines are skipped.
#include "csv.h"

#include <lauxlib.h>
#include <lua.h>

// Pushes the text of a field.
static void push_text(lua_State *lua, const struct csv_text *field) {
    if (!field->doubled) {
        lua_pushlstring(lua, field->begin, (size_t)(field->end - field->begin));
        return;
    }
    luaL_Buffer buffer;
    luaL_buffinit(lua, &buffer);
    for (const char *p = field->begin; p < field->end; p++) {
        luaL_addchar(&buffer, *p);
        if (*p == '"') p++;
    }
    luaL_pushresult(&buffer);
}

// The end of the line that begins at `p`: a newline outside of quotes.
static const char *find_end(const char *p, const char *end) {
    for (;; p++) { // at the beginning of a field
        if (p < end && *p == '"') {
            for (p++; p < end && (*p != '"' || (p + 1 < end && p[1] == '"')); p++) p += *p == '"';
        }
        while (p < end && *p != ',' && *p != '\n') p++;
        if (p >= end || *p == '\n') return p < end ? p : end;
    }
}

// Pushes the list of a line's fields. False if a quote is broken: fills `problem`, the list is incomplete.
static bool push_fields(lua_State *lua, const struct csv_text *line, lua_Integer *count,
                        struct problem *problem) {
    const char *at = line->begin;
    lua_newtable(lua);
    for (*count = 1;; at++, ++*count) {
        struct csv_text field;
        if (!csv_field(&at, line->end, &field, problem)) return false;
        push_text(lua, &field);
        lua_rawseti(lua, -2, *count);
        if (at == line->end) return true;
    }
}

// Replaces the list of fields on top of the stack by a table with the names in the list at `columns` as keys.
static void name_fields(lua_State *lua, int columns, lua_Integer count) {
    lua_createtable(lua, 0, (int)count);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(lua, columns, i);
        lua_rawgeti(lua, -3, i);
        lua_rawset(lua, -3);
    }
    lua_remove(lua, -2);
}

static int fail_at(lua_State *lua, const char *name, lua_Integer number, const char *message) {
    lua_pushnil(lua);
    lua_pushfstring(lua, "%s:%I: %s", name, (LUAI_UACINT)number, message);
    return 2;
}

enum { COLUMNS = 3, ROWS, LINES }; // on the stack, behind the two arguments

static int lua_parse(lua_State *lua) {
    struct problem problem;
    size_t size;
    const char *begin = luaL_checklstring(lua, 1, &size), *name = luaL_checkstring(lua, 2);
    struct csv_text text = {begin, begin + size, false};
    lua_Integer columns = 0, rows = 0, count, number = 1;
    lua_settop(lua, 2);
    lua_pushnil(lua);
    lua_newtable(lua);
    lua_newtable(lua);
    if (!csv_begin(&text, &problem)) return fail_at(lua, name, number, problem.text);
    while (text.begin < text.end) {
        const char *end = find_end(text.begin, text.end);
        struct csv_text line = {text.begin, end > text.begin && end[-1] == '\r' ? end - 1 : end, false};
        if (!push_fields(lua, &line, &count, &problem)) return fail_at(lua, name, number, problem.text);
        if (columns == 0) {
            columns = count;
            lua_replace(lua, COLUMNS);
        } else if (line.begin == line.end) {
            lua_pop(lua, 1);
        } else if (count != columns) {
            const char *what = lua_pushfstring(lua, "%I fields; the header has %I", (LUAI_UACINT)count,
                                               (LUAI_UACINT)columns);
            return fail_at(lua, name, number, what);
        } else {
            name_fields(lua, COLUMNS, columns);
            lua_rawseti(lua, ROWS, ++rows);
            lua_pushinteger(lua, number);
            lua_rawseti(lua, LINES, rows);
        }
        for (const char *p = line.begin; p < end; p++) number += *p == '\n';
        number++;
        text.begin = end < text.end ? end + 1 : end;
    }
    if (columns == 0) return fail_at(lua, name, number, "is empty; a header is required");
    lua_createtable(lua, 0, 3);
    lua_insert(lua, COLUMNS);
    lua_setfield(lua, COLUMNS, "line");
    lua_setfield(lua, COLUMNS, "rows");
    lua_setfield(lua, COLUMNS, "columns");
    return 1;
}

static int lua_fields(lua_State *lua) {
    size_t size;
    const char *text = luaL_checklstring(lua, 1, &size);
    const struct csv_text line = {text, text + size, false};
    lua_Integer count;
    struct problem problem;
    if (push_fields(lua, &line, &count, &problem)) return 1;
    lua_pushnil(lua);
    lua_pushstring(lua, problem.text);
    return 2;
}

int luaopen_core_csv(lua_State *lua) {
    static const luaL_Reg functions[] = {{"fields", lua_fields}, {"parse", lua_parse}, {NULL, NULL}};
    luaL_newlib(lua, functions);
    return 1;
}
