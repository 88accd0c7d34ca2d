// Names and their indices; see names.h. An open-addressed table of fixed size: the lists are short, and each
// line of a benchmark file needs about four lookups.
#include "names.h"

#include <ctype.h>
#include <string.h>

#include "base/bindings.h"
#include "system/file.h"

static size_t slot_of(const char *text, size_t length) {
    if (length == 0) return 0;
    unsigned first = (unsigned char)text[0], middle = (unsigned char)text[length / 2];
    unsigned last = (unsigned char)text[length - 1], quarter = (unsigned char)text[length / 4];
    unsigned third_last = (unsigned char)text[length < 3 ? 0 : length - 3];
    unsigned near_last = (unsigned char)text[length < 5 ? 0 : length - 5];
    return (first + 7 * middle + 31 * last + 61 * (unsigned)length + 131 * quarter + 191 * third_last +
            251 * near_last) %
           NAMES_SLOTS;
}

bool names_add(struct names *names, const char *text, size_t index) {
    size_t length = strlen(text);
    if (length > UINT8_MAX || index > names->count || index >= NAMES_MAX) return false;
    if (index == names->count) {
        names->name[index] = text;
        names->length[index] = (uint8_t)length;
        names->count++;
    }
    size_t slot = slot_of(text, length);
    for (size_t tries = 0; names->slot[slot].text != NULL; tries++) {
        if (tries == NAMES_SLOTS - 1) return false;
        slot = (slot + 1) % NAMES_SLOTS;
    }
    names->slot[slot].text = text;
    names->slot[slot].length = (uint8_t)length;
    names->slot[slot].index = (uint8_t)index;
    return true;
}

uint8_t names_find(const struct names *names, const char *begin, const char *end) {
    size_t length = (size_t)(end - begin);
    for (size_t slot = slot_of(begin, length); names->slot[slot].text != NULL;
         slot = (slot + 1) % NAMES_SLOTS) {
        if (names->slot[slot].length == length && memcmp(names->slot[slot].text, begin, length) == 0) {
            return names->slot[slot].index;
        }
    }
    return NAME_NONE;
}

uint8_t names_index(const struct names *names, const char *name) {
    return names_find(names, name, name + strlen(name));
}

uint8_t names_pop(lua_State *lua, const struct names *names) {
    size_t length;
    const char *text = luaL_checklstring(lua, -1, &length);
    uint8_t index = names_find(names, text, text + length);
    if (index == NAME_NONE) luaL_error(lua, "unknown %s %s", names->what, text);
    lua_pop(lua, 1);
    return index;
}

uint8_t names_field(lua_State *lua, int index, const char *field, const struct names *names) {
    lua_getfield(lua, index, field);
    return names_pop(lua, names);
}

void names_set(lua_State *lua, const char *field, const struct names *names, uint8_t index) {
    if (index != NAME_NONE) set_text(lua, field, names->name[index]);
}

// Reads lists[field] of the lists on top of the stack. package.loaded keeps the texts alive.
static void read_names(lua_State *lua, struct names *names, const char *field, const char *what) {
    names->what = what;
    if (lua_getfield(lua, -1, field) != LUA_TTABLE) luaL_error(lua, "lists.lua has no list %s", field);
    lua_Integer rows = luaL_len(lua, -1);
    for (lua_Integer i = 0; i < rows; i++) {
        lua_geti(lua, -1, i + 1);
        lua_getfield(lua, -1, "name");
        if (!names_add(names, luaL_checkstring(lua, -1), (size_t)i)) luaL_error(lua, "%s is too long", field);
        lua_pop(lua, 1);
        if (lua_getfield(lua, -1, "aliases") == LUA_TTABLE) {
            for (lua_Integer j = 1; lua_geti(lua, -1, j) == LUA_TSTRING; j++) {
                if (!names_add(names, lua_tostring(lua, -1), (size_t)i)) {
                    luaL_error(lua, "%s has too many aliases", field);
                }
                lua_pop(lua, 1);
            }
            lua_pop(lua, 1);
        }
        lua_pop(lua, 2);
    }
    lua_pop(lua, 1);
}

// Reads `candidate` of the strategies. The lists are on top of the stack.
static void read_candidates(lua_State *lua, struct lists *lists) {
    lua_getfield(lua, -1, "strategies");
    for (size_t i = 0; i < lists->strategies.count; i++) {
        lua_geti(lua, -1, (lua_Integer)i + 1);
        bool is_given = lua_getfield(lua, -1, "candidate") != LUA_TNIL;
        lists->candidate[i] = !is_given || lua_toboolean(lua, -1);
        lua_pop(lua, 2);
    }
    lua_pop(lua, 1);
}

// Reads `bytes` of the data types. The lists are on top of the stack.
static void read_bytes(lua_State *lua, struct lists *lists) {
    lua_getfield(lua, -1, "dtypes");
    for (size_t i = 0; i < lists->dtypes.count; i++) {
        lua_geti(lua, -1, (lua_Integer)i + 1);
        lists->bytes[i] = (uint8_t)field_integer(lua, -1, "bytes");
        lua_pop(lua, 1);
    }
    lua_pop(lua, 1);
}

// Reads `quantises` of the fusions. The lists are on top of the stack.
static void read_quantised(lua_State *lua, struct lists *lists) {
    memset(lists->quantises, NAME_NONE, sizeof lists->quantises);
    lua_getfield(lua, -1, "fusions");
    for (size_t i = 0; i < lists->fusions.count; i++) {
        lua_geti(lua, -1, (lua_Integer)i + 1);
        if (lua_getfield(lua, -1, "quantises") == LUA_TSTRING) {
            lists->quantises[i] = names_index(&lists->fusions, lua_tostring(lua, -1));
        }
        lua_pop(lua, 2);
    }
    lua_pop(lua, 1);
}

static const struct names *names_of(const struct lists *lists, enum column_kind kind) {
    switch (kind) {
    case COLUMN_DTYPE: return &lists->dtypes;
    case COLUMN_STRATEGY: return &lists->strategies;
    case COLUMN_FUSION: return &lists->fusions;
    case COLUMN_OP: return &lists->ops;
    case COLUMN_MODE: return &lists->modes;
    case COLUMN_ACCUMULATE: return &lists->accumulates;
    case COLUMN_PLACEMENT: return &lists->placements;
    default: return NULL;
    }
}

const struct lists *lists_of(struct lua_State *lua) {
    static const char key = 0;
    if (lua_rawgetp(lua, LUA_REGISTRYINDEX, &key) == LUA_TUSERDATA) {
        const struct lists *known = lua_touserdata(lua, -1);
        lua_pop(lua, 1);
        return known;
    }
    lua_pop(lua, 1);
    struct lists *lists = lua_newuserdatauv(lua, sizeof *lists, 0);
    memset(lists, 0, sizeof *lists);
    push_module(lua, "lists.lists");
    read_names(lua, &lists->dtypes, "dtypes", "dtype");
    read_names(lua, &lists->ops, "ops", "op");
    read_names(lua, &lists->modes, "modes", "mode");
    read_names(lua, &lists->fusions, "fusions", "fusion");
    read_names(lua, &lists->strategies, "strategies", "strategy");
    read_names(lua, &lists->placements, "placements", "placement");
    read_names(lua, &lists->accumulates, "accumulates", "accumulate");
    read_candidates(lua, lists);
    read_bytes(lua, lists);
    read_quantised(lua, lists);
    lua_pop(lua, 1);
    columns_read(lua, &lists->columns);
    for (size_t i = 0; i < lists->columns.count; i++) {
        lists->columns.of[i].names = names_of(lists, lists->columns.of[i].kind);
    }
    lua_rawsetp(lua, LUA_REGISTRYINDEX, &key);
    return lists;
}

// Adds a strategy, if it is new, to the list in Lua, which keeps its text, and to `lists`. The lists of Lua
// are on top of the stack.
static bool learn_name(lua_State *lua, struct lists *lists, const char *name, size_t length) {
    if (names_find(&lists->strategies, name, name + length) != NAME_NONE) return false;
    if (lists->strategies.count == NAMES_MAX || length > UINT8_MAX) return false;
    lua_getfield(lua, -1, "add_plugin");
    lua_pushlstring(lua, name, length);
    lua_call(lua, 1, 1);
    size_t index = lists->strategies.count;
    bool added = names_add(&lists->strategies, lua_tostring(lua, -1), index);
    lists->candidate[index] = added;
    lua_pop(lua, 1);
    return added;
}

bool lists_learn(struct lua_State *lua, const char *text, size_t size) {
    struct lists *lists = (struct lists *)(uintptr_t)lists_of(lua);
    const char *end = text + size, *begin = text;
    bool learned = false;
    push_module(lua, "lists.lists");
    lua_getfield(lua, -1, "plugin_prefix");
    size_t prefix_length;
    const char *prefix = luaL_checklstring(lua, -1, &prefix_length);
    while ((begin = memchr(begin, prefix[0], (size_t)(end - begin))) != NULL) {
        const char *after = begin;
        while (after < end && (isalnum((unsigned char)*after) || *after == '_')) after++;
        size_t length = (size_t)(after - begin);
        lua_pushvalue(lua, -2);
        if (length > prefix_length && memcmp(begin, prefix, prefix_length) == 0)
            learned |= learn_name(lua, lists, begin, length);
        lua_pop(lua, 1);
        begin = after;
    }
    lua_pop(lua, 2);
    return learned;
}

void lists_forget(struct lua_State *lua, size_t count) {
    struct lists *lists = (struct lists *)(uintptr_t)lists_of(lua);
    struct names *names = &lists->strategies;
    if (names->count <= count) return;
    // Names that were added last filled free slots; without them the table is as before.
    for (size_t slot = 0; slot < NAMES_SLOTS; slot++) {
        if (names->slot[slot].index >= count) names->slot[slot] = (struct name_slot){0};
    }
    names->count = (uint8_t)count;
    push_module(lua, "lists.lists");
    lua_getfield(lua, -1, "drop_plugins");
    lua_pushinteger(lua, (lua_Integer)count);
    lua_call(lua, 1, 0);
    lua_pop(lua, 1);
}

bool lists_learn_file(struct lua_State *lua, const char *path) {
    struct file_map map;
    struct problem problem;
    if (!file_open(path, &map, &problem)) return false;
    bool learned = lists_learn(lua, map.data, map.size);
    file_close(&map);
    return learned;
}
