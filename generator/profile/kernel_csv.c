// Rows of kernel summaries in CSV for Lua: core.kernel_csv. It knows units and fields; which column is which
// is said by kernel_summary_csv.lua.
//
//   fields(line) -> list of texts | nil, message
//   exponent(unit) -> the power of ten that makes it nanoseconds | nil
//   row(line, kinds, keys, exponents) -> { [key] = value... } | nil, message
//
// Of a row's fields kinds[i] says what they are ("skip", "time", "count", "name") and keys[i] what they are
// called; exponents[i] is the unit of a time without a unit of its own.
#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "codec/csv_lua.h"

enum { LINE = 1, KINDS, KEYS, EXPONENTS };

// More decimal digits than this could leave 64 bits.
enum { MOST_DIGITS = 18 };

// Numbers from here on take no further digit.
static const int64_t full = 100000000000000000; // 17 zeros

static int64_t power_of_ten(int exponent) {
    int64_t power = 1;
    while (exponent-- > 0) power *= 10;
    return power;
}

// The micro sign is U+00B5 or the Greek letter U+03BC; B5 alone is what is left of it in Latin-1.
static const struct unit {
    const char *name;
    int exponent;
} units[] = {{"ns", 0}, {"us", 3},   {"\xC2\xB5s", 3}, {"\xCE\xBCs", 3}, {"\xB5s", 3}, {"ms", 6},
             {"s", 9},  {"nsec", 0}, {"usec", 3},      {"msec", 6},      {"sec", 9}};

enum { UNIT_COUNT = sizeof units / sizeof units[0] };

static int fail_with_field(lua_State *lua, const struct csv_text *field, const char *what) {
    enum { SHOWN = 40 };
    size_t size = (size_t)(field->end - field->begin);
    lua_pushnil(lua);
    lua_pushlstring(lua, field->begin, size < SHOWN ? size : SHOWN);
    lua_pushfstring(lua, "\"%s\"%s", lua_tostring(lua, -1), what);
    lua_remove(lua, -2);
    return 2;
}

// Spaces, and those that do not break a line (U+00A0, U+202F).
static const char *skip_spaces(const char *p, const char *end) {
    for (;;) {
        if (p < end && (*p == ' ' || *p == '\t')) {
            p++;
        } else if (end - p >= 2 && memcmp(p, "\xC2\xA0", 2) == 0) {
            p += 2;
        } else if (end - p >= 3 && memcmp(p, "\xE2\x80\xAF", 3) == 0) {
            p += 3;
        } else {
            return p;
        }
    }
}

// The exponent of a unit, spaces around it left out; -1 where it is unknown.
static int unit_exponent(const char *begin, const char *end) {
    begin = skip_spaces(begin, end);
    while (end > begin && end[-1] == ' ') end--;
    size_t size = (size_t)(end - begin);
    for (int i = 0; i < UNIT_COUNT; i++) {
        if (strlen(units[i].name) == size && memcmp(units[i].name, begin, size) == 0)
            return units[i].exponent;
    }
    return -1;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// A number as its digits, mantissa * 10^exponent.
struct decimal {
    int64_t mantissa;
    int exponent;
};

// Reads whole digits, in groups of three behind commas or all in a row. NULL where they are neither, or too
// many.
static const char *read_whole(const char *p, const char *end, int64_t *value) {
    const char *begin = p, *comma = NULL;
    *value = 0;
    for (; p < end && (is_digit(*p) || *p == ','); p++) {
        if (*p == ',') {
            if (comma == NULL ? p - begin < 1 || p - begin > 3 : p - comma != 4) return NULL;
            comma = p;
        } else {
            if (*value >= full) return NULL;
            *value = *value * 10 + (*p - '0');
        }
    }
    return p == begin || (comma != NULL && p - comma != 4) ? NULL : p;
}

// Reads digits[.digits][e[+-]digits]. Returns the position after it, or NULL. Digits beyond MOST_DIGITS of a
// fraction are left out: no number holds them.
static const char *read_decimal(const char *p, const char *end, struct decimal *decimal) {
    decimal->exponent = 0;
    p = read_whole(p, end, &decimal->mantissa);
    if (p == NULL) return NULL;
    if (p < end && *p == '.') {
        for (p++; p < end && is_digit(*p); p++) {
            if (decimal->mantissa >= full || decimal->exponent == -MOST_DIGITS) continue;
            decimal->mantissa = decimal->mantissa * 10 + (*p - '0');
            decimal->exponent--;
        }
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        bool minus = ++p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+')) p++;
        int power = 0;
        const char *begin = p;
        for (; p < end && is_digit(*p) && p - begin < 3; p++) power = power * 10 + (*p - '0');
        if (p == begin) return NULL;
        decimal->exponent += minus ? -power : power;
    }
    return p;
}

// Pushes the number, whole where it is; false where it is too large. One division at most, so it is the
// nearest.
static bool push_decimal(lua_State *lua, struct decimal decimal) {
    int64_t mantissa = decimal.mantissa;
    int exponent = decimal.exponent;
    for (; exponent < -MOST_DIGITS; exponent++) mantissa /= 10;
    if (exponent < 0) {
        int64_t power = power_of_ten(-exponent);
        if (mantissa % power == 0) {
            lua_pushinteger(lua, mantissa / power);
        } else {
            lua_pushnumber(lua, (double)mantissa / (double)power);
        }
        return true;
    }
    if (mantissa != 0 &&
        (exponent > MOST_DIGITS || mantissa > power_of_ten(MOST_DIGITS) / power_of_ten(exponent)))
        return false;
    lua_pushinteger(lua, mantissa == 0 ? 0 : mantissa * power_of_ten(exponent));
    return true;
}

// Pushes a time in nanoseconds; or returns 2 with nil, message pushed. `exponent` is that of the column's
// unit, or -1; the field's own goes before it.
static int push_time(lua_State *lua, const struct csv_text *field, int exponent) {
    struct decimal decimal;
    const char *p = read_decimal(field->begin, field->end, &decimal);
    if (p == NULL) return fail_with_field(lua, field, " is no time");
    p = skip_spaces(p, field->end);
    bool bare = p == field->end;
    if (!bare) exponent = unit_exponent(p, field->end);
    if (exponent < 0) {
        return fail_with_field(lua, field,
                               bare ? " has no unit, nor has its column; valid: ns, us, ms, s"
                                    : " has an unknown unit; valid: ns, us, ms, s");
    }
    decimal.exponent += exponent;
    if (!push_decimal(lua, decimal)) return fail_with_field(lua, field, " is longer than any time");
    return 0;
}

static int push_count(lua_State *lua, const struct csv_text *field) {
    int64_t count;
    if (read_whole(field->begin, field->end, &count) != field->end || count == 0)
        return fail_with_field(lua, field, " is no number of calls");
    lua_pushinteger(lua, count);
    return 0;
}

// Pushes what a field says by its kind, or nothing for "skip"; or returns 2 with nil, message pushed.
static int push_value(lua_State *lua, const struct csv_text *field, char kind, lua_Integer index) {
    if (kind == 't') {
        int exponent = lua_rawgeti(lua, EXPONENTS, index) == LUA_TNUMBER ? (int)lua_tointeger(lua, -1) : -1;
        lua_pop(lua, 1);
        return push_time(lua, field, exponent);
    }
    if (kind == 'c') return push_count(lua, field);
    if (field->begin == field->end) return fail_with_field(lua, field, " is no name of a kernel");
    csv_push(lua, field);
    return 0;
}

static int fail_with(lua_State *lua, const struct problem *problem) {
    lua_pushnil(lua);
    lua_pushstring(lua, problem->text);
    return 2;
}

// row(line, kinds, keys, exponents)
static int lua_row(lua_State *lua) {
    size_t size;
    const char *at = luaL_checklstring(lua, LINE, &size), *end = at + size;
    lua_Integer count = luaL_len(lua, KINDS), index = 0;
    lua_settop(lua, EXPONENTS);
    lua_createtable(lua, 0, (int)count + 1);
    for (;;) {
        struct csv_text field;
        struct problem problem;
        if (!csv_field(&at, end, &field, &problem)) return fail_with(lua, &problem);
        if (++index <= count) {
            lua_rawgeti(lua, KINDS, index);
            char kind = luaL_checkstring(lua, -1)[0];
            lua_pop(lua, 1);
            if (kind != 's') {
                lua_rawgeti(lua, KEYS, index);
                if (push_value(lua, &field, kind, index) != 0) return 2;
                lua_rawset(lua, -3);
            }
        }
        if (at == end) break;
        at++;
    }
    if (index == count) return 1;
    lua_pushnil(lua);
    lua_pushfstring(lua, "%I fields where the header has %I; was the file cut off?", (LUAI_UACINT)index,
                    (LUAI_UACINT)count);
    return 2;
}

// fields(line)
static int lua_fields(lua_State *lua) {
    size_t size;
    const char *text = luaL_checklstring(lua, LINE, &size);
    struct csv_text line = {text, text + size, false};
    lua_Integer count;
    struct problem problem;
    return csv_push_fields(lua, &line, &count, &problem) ? 1 : fail_with(lua, &problem);
}

// exponent(unit)
static int lua_exponent(lua_State *lua) {
    size_t size;
    const char *unit = luaL_checklstring(lua, 1, &size);
    int exponent = unit_exponent(unit, unit + size);
    if (exponent < 0) return 0;
    lua_pushinteger(lua, exponent);
    return 1;
}

int luaopen_core_kernel_csv(lua_State *lua) {
    static const luaL_Reg functions[] = {
        {"row", lua_row}, {"fields", lua_fields}, {"exponent", lua_exponent}, {NULL, NULL}};
    luaL_newlib(lua, functions);
    return 1;
}
