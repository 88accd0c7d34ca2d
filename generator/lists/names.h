// The lists of generator/lists/lists.lua as the C modules need them: name to index and back. They are read
// from Lua once, when the first module is loaded; no name stands in C. Only candidates of plug-ins, which
// nobody could list, are added when they are met: their names tell what they are.
#ifndef GENTABLES_NAMES_H
#define GENTABLES_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "columns.h"

struct lua_State;

enum { NAMES_MAX = 240, NAMES_SLOTS = 512, NAME_NONE = 0xff };

// One list. `name[i]` is what is written; aliases are only in the slots. Texts belong to whoever filled the
// list.
struct names {
    const char *what; // the column that they stand in, for messages
    const char *name[NAMES_MAX];
    uint8_t length[NAMES_MAX];
    uint8_t count;
    struct name_slot {
        const char *text;
        uint8_t length, index;
    } slot[NAMES_SLOTS];
};

struct lists {
    struct names dtypes, ops, modes, fusions, strategies, placements, accumulates;
    struct columns columns;
    bool candidate[NAMES_MAX];    // per strategy: may it win
    uint8_t quantises[NAMES_MAX]; // per fusion: the one whose result it rounds further; NAME_NONE: none
};

// Adds a name, or an alias of `index` where that is below the count. False where the list is full.
bool names_add(struct names *names, const char *text, size_t index);

// The index of [begin, end), or NAME_NONE.
uint8_t names_find(const struct names *names, const char *begin, const char *end);

// The lists of this Lua state, which owns them. Raises a Lua error where lists.lua cannot be read.
const struct lists *lists_of(struct lua_State *lua);

// Adds the candidates of plug-ins that a text names (lists.plugin_prefix), and the list of strategies has
// not, as long as there is room for them. Returns whether there were any.
bool lists_learn(struct lua_State *lua, const char *text, size_t size);

// The same of the text of a file, if it can be read.
bool lists_learn_file(struct lua_State *lua, const char *path);

// Drops the strategies behind the first `count`, those of lists_of(lua)->strategies before lists_learn. If
// the text that named them is not read, the lists are as before.
void lists_forget(struct lua_State *lua, size_t count);

#endif
