// The columns of lists/columns.lua for C. Most hold a number and need no code of their own; the kinds name
// those that do.
#ifndef GENTABLES_COLUMNS_H
#define GENTABLES_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lua_State;
struct names;

enum { COLUMNS_MAX = 48, NUMBERS_MAX = 16 };

enum column_kind {
    COLUMN_NUMBER, // of at least 0
    COLUMN_WORLD_SIZE,
    COLUMN_DTYPE,
    COLUMN_SIZE,
    COLUMN_NUM_TOKENS,
    COLUMN_HIDDEN_SIZE,
    COLUMN_STRATEGY,
    COLUMN_FUSION,
    COLUMN_OP,
    COLUMN_TIME,
    COLUMN_SAMPLES,
    COLUMN_MODE,
    COLUMN_ACCUMULATE,
    COLUMN_PLACEMENT,
    COLUMN_LAUNCHES,
    COLUMN_BITS,
    COLUMN_SPLITS,
    COLUMN_NODES,
    COLUMN_RANKS_PER_NODE,
    COLUMN_SHAPE,   // of files of generation B, not in the list: num_tokens and hidden_size as 16x4096
    COLUMN_IGNORED, // of other tools' files, not in the list
};

// The numbers that C code uses by name; those of other columns follow, in the order of the list.
enum number { NUMBER_LOW_US, NUMBER_HIGH_US, NUMBER_BOUND_US, NUMBERS_NAMED };

struct column {
    const char *name;          // in the first line of a file
    const char *other_name;    // in TensorRT-LLM's --benchmark mode; NULL: the same
    const char *key;           // in a Lua record
    const struct names *names; // of columns of names; names.c enters them
    enum column_kind kind;
    uint8_t number; // of COLUMN_NUMBER: which of a row's numbers
    bool required, ours, filled, may_be_empty, whole;
};

struct columns {
    struct column of[COLUMNS_MAX];
    size_t count;
};

// Reads the list; its texts stay alive as long as the Lua state. Raises a Lua error where it has too many
// columns, or lacks a column that C code uses by name.
void columns_read(struct lua_State *lua, struct columns *columns);

#endif
