// The lists of lists/lists.lua for C: name to index and back. They are read from Lua once, when they are
// first needed. Candidates of plug-ins, which no list can have, are added when a file names them.
#ifndef GENTABLES_NAMES_H
#define GENTABLES_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "columns.h"

struct lua_State;

enum { NAMES_MAX = 240, NAMES_SLOTS = 512, NAME_NONE = 0xff };

// One list. `name[i]` is written to files; aliases are only in the slots. The texts belong to the caller of
// names_add.
struct names {
    const char *what; // their column, for messages
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
    bool candidate[NAMES_MAX];    // per strategy: whether a table may choose it
    uint8_t bytes[NAMES_MAX];     // per data type: of an element
    uint8_t quantises[NAMES_MAX]; // per fusion: the one with a result that it rounds further; NAME_NONE: none
};

// Adds a name; or, if `index` is below the count, an alias of that name. False if the list is full or the
// text too long.
bool names_add(struct names *names, const char *text, size_t index);

// The index of [begin, end), or NAME_NONE.
uint8_t names_find(const struct names *names, const char *begin, const char *end);

// The index of a name that ends in NUL, or NAME_NONE.
uint8_t names_index(const struct names *names, const char *name);

// The name at the top of the stack, which is popped, as an index. Raises a Lua error if it is none of them.
uint8_t names_pop(struct lua_State *lua, const struct names *names);

// The same of a field of the table at stack index `index`.
uint8_t names_field(struct lua_State *lua, int index, const char *field, const struct names *names);

// Sets a field of the table at the top of the stack to a name. NAME_NONE sets nothing.
void names_set(struct lua_State *lua, const char *field, const struct names *names, uint8_t index);

// The lists of this Lua state, which owns them. Raises a Lua error if lists.lua cannot be read.
const struct lists *lists_of(struct lua_State *lua);

// Adds the candidates of plug-ins in a text (words with lists.plugin_prefix) to the strategies, as long as
// there is space. Returns whether any was new.
bool lists_learn(struct lua_State *lua, const char *text, size_t size);

// The same for the text of a file, if it can be read.
bool lists_learn_file(struct lua_State *lua, const char *path);

// Removes the strategies after the first `count`, which lists_learn added: for texts that are refused.
void lists_forget(struct lua_State *lua, size_t count);

#endif
