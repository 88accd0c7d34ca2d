// The times of cells with different choices in two tables, for Lua: one pass over the rows for any number of
// cells.
//
// - times(rows, changes), of changes as table:changes gives them, sets in each that has rows: row_count = the
//   number of rows, and old_times and new_times = { time =, low =, high = } of the row of the old and of the
//   new choice (low and high if the row has an interval; absent if no row is of that choice). Rows of other
//   tools have no mode: they count for cells of any mode.
#include "cell_times.h"

#include <lauxlib.h>
#include <lua.h>
#include <string.h>

#include "base/bindings.h"
#include "grid.h"
#include "rows/rows_lua.h"

// A cell, and the indices of its rows; 0: none, else one more than the index.
struct change {
    struct cell_key key;
    uint8_t old_choice, new_choice;
    size_t row_count, old_row, new_row;
};

struct changes {
    struct grid grid; // of the cells, each with its own mode and with none
    struct change *all;
    size_t *at; // by the grid's numbers: one more than the index in `all`; 0: none
    size_t count;
    uint8_t any_mode;
};

// The strategy in change[side], of the change on top of the stack; NAME_NONE: it has none.
static uint8_t take_choice(lua_State *lua, const char *side, const struct names *strategies) {
    uint8_t choice = NAME_NONE;
    if (lua_getfield(lua, -1, side) == LUA_TTABLE) choice = names_field(lua, -1, "strategy", strategies);
    lua_pop(lua, 1);
    return choice;
}

// The change on top of the stack.
static struct change take_change(lua_State *lua, const struct lists *lists) {
    return (struct change){
        .key = cell_key_take(lua, -1),
        .old_choice = take_choice(lua, "old", &lists->strategies),
        .new_choice = take_choice(lua, "new", &lists->strategies),
    };
}

static struct cell_key without_mode(struct cell_key key, uint8_t any_mode) {
    key.mode = any_mode;
    return key;
}

// Fills the grid and finds its cells. False: out of memory, or too many cells.
static bool index_changes(lua_State *lua, struct changes *changes) {
    struct problem problem;
    for (size_t i = 0; i < changes->count; i++) {
        struct cell_key key = changes->all[i].key, any = without_mode(key, changes->any_mode);
        if (!grid_add(&changes->grid, &key) || !grid_add(&changes->grid, &any)) return false;
    }
    if (!grid_close(&changes->grid, &problem)) return false;
    size_t size = (changes->grid.cell_count + 1) * sizeof *changes->at;
    changes->at = memset(lua_newuserdatauv(lua, size, 0), 0, size);
    for (size_t i = 0; i < changes->count; i++) {
        struct cell_key key = changes->all[i].key, any = without_mode(key, changes->any_mode);
        changes->at[grid_find(&changes->grid, &key)] = i + 1;
        changes->at[grid_find(&changes->grid, &any)] = i + 1;
    }
    return true;
}

static void count_row(struct changes *changes, const struct row *row, size_t index) {
    size_t cell = grid_find(&changes->grid, &row->key);
    if (cell == GRID_NO_CELL || changes->at[cell] == 0) return;
    struct change *change = &changes->all[changes->at[cell] - 1];
    change->row_count++;
    if (row->strategy == change->old_choice) change->old_row = index + 1;
    if (row->strategy == change->new_choice) change->new_row = index + 1;
}

// Sets change[field], of the change on top of the stack, to the times of a row (one more than its index).
static void set_times(lua_State *lua, const char *field, const struct rows *rows, size_t row) {
    if (row == 0) return;
    const struct row_detail *detail = rows_detail_of(rows, row - 1);
    lua_createtable(lua, 0, 3);
    set_number(lua, "time", rows->row[row - 1].time_us);
    set_number(lua, "low", detail->number[NUMBER_LOW_US]);
    set_number(lua, "high", detail->number[NUMBER_HIGH_US]);
    lua_setfield(lua, -2, field);
}

static void set_change(lua_State *lua, const struct rows *rows, const struct change *change) {
    if (change->row_count == 0) return;
    set_integer(lua, "row_count", (lua_Integer)change->row_count);
    set_times(lua, "old_times", rows, change->old_row);
    set_times(lua, "new_times", rows, change->new_row);
}

int table_lua_times(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    const struct lists *lists = lists_of(lua);
    luaL_checktype(lua, 2, LUA_TTABLE);
    struct changes changes = {.count = (size_t)luaL_len(lua, 2),
                              .any_mode = names_index(&lists->modes, "unknown")};
    changes.all = lua_newuserdatauv(lua, (changes.count + 1) * sizeof *changes.all, 0);
    for (size_t i = 0; i < changes.count; i++) {
        lua_geti(lua, 2, (lua_Integer)i + 1);
        changes.all[i] = take_change(lua, lists);
        lua_pop(lua, 1);
    }
    bool is_indexed = index_changes(lua, &changes);
    for (size_t i = 0; is_indexed && i < rows->count; i++) count_row(&changes, &rows->row[i], i);
    grid_free(&changes.grid);
    if (!is_indexed) return luaL_error(lua, "out of memory");
    for (size_t i = 0; i < changes.count; i++) {
        lua_geti(lua, 2, (lua_Integer)i + 1);
        set_change(lua, rows, &changes.all[i]);
        lua_pop(lua, 1);
    }
    return 0;
}
