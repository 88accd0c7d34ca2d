// Rows of kernel summaries in CSV for Lua: core.kernel_csv. It reads units and fields; kernel_summary_csv.lua
// maps the columns.
//
//   fields(line) -> list of texts | nil, message
//   exponent(unit) -> the power of ten that makes it nanoseconds | nil
//   row(line, kinds, keys, exponents) -> { [key] = value... } | nil, message
//
// kinds[i] is the type of a row's field i ("skip", "time", "count", "name") and keys[i] its name in the
// result; exponents[i] is the unit of a time without a unit of its own.
#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "codec/csv_lua.h"

enum { LINE = 1, KINDS, KEYS, EXPONENTS };

// More decimal digits may not fit into 64 bits.
enum { MOST_DIGITS = 18 };

// Numbers from this one on take no further digit.
static const int64_t full = 100000000000000000; // 17 zeros

static int64_t power_of_ten(int exponent) {
    int64_t power = 1;
    while (exponent-- > 0) power *= 10;
    return power;
}

// The micro sign is U+00B5 or the Greek letter U+03BC; in Latin-1 it is the byte B5 alone.
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

// Spaces and no-break spaces (U+00A0, U+202F).
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

// The exponent of a unit, without the spaces around it; -1 if it is unknown.
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

// Reads whole digits, in groups of three after commas or all in a row. Returns NULL for anything else, and
// for too many digits.
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

// Reads digits[.digits][e[+-]digits]. Returns the position after it, or NULL. Skips a fraction's digits
// beyond MOST_DIGITS, which do not change the number.
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

// Pushes the number, as an integer if it is whole; returns false if it is too large. It divides at most once,
// so the result is the nearest number.
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

// Pushes a time in nanoseconds; or pushes nil, message and returns 2. `exponent` is that of the column's
// unit, or -1; the field's own unit comes first.
static int push_time(lua_State *lua, const struct csv_text *field, int exponent) {
    struct decimal decimal;
    const char *p = read_decimal(field->begin, field->end, &decimal);
    if (p == NULL) return fail_with_field(lua, field, " is not a time");
    p = skip_spaces(p, field->end);
    bool bare = p == field->end;
    if (!bare) exponent = unit_exponent(p, field->end);
    if (exponent < 0) {
        return fail_with_field(lua, field,
                               bare ? " and its column have no unit; valid: ns, us, ms, s"
                                    : " has an unknown unit; valid: ns, us, ms, s");
    }
    decimal.exponent += exponent;
    if (!push_decimal(lua, decimal)) return fail_with_field(lua, field, " is longer than any time");
    return 0;
}

static int push_count(lua_State *lua, const struct csv_text *field) {
    int64_t count;
    if (read_whole(field->begin, field->end, &count) != field->end || count == 0)
        return fail_with_field(lua, field, " is not a number of calls");
    lua_pushinteger(lua, count);
    return 0;
}

// Pushes a field's value by its kind, or nothing for "skip"; or pushes nil, message and returns 2.
static int push_value(lua_State *lua, const struct csv_text *field, char kind, lua_Integer index) {
    if (kind == 't') {
        int exponent = lua_rawgeti(lua, EXPONENTS, index) == LUA_TNUMBER ? (int)lua_tointeger(lua, -1) : -1;
        lua_pop(lua, 1);
        return push_time(lua, field, exponent);
    }
    if (kind == 'c') return push_count(lua, field);
    if (field->begin == field->end) return fail_with_field(lua, field, " is not the name of a kernel");
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
    lua_pushfstring(lua, "%I fields, but %I in the header; the file may be cut off", (LUAI_UACINT)index,
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
