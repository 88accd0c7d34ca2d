// table:tally(block [, fusion]): the counts, extremes and medians of the cells of a block, for Lua: of one
// fusion, or of all. Reports of large tables need these alone; a Lua table for each of a hundred thousand
// cells would take longer than all else.
//
// It gives { cells, unmeasured, derived, predicted, oversubscribed, certain, tie, uncertain = numbers of
// cells, wins = { NAME = number of cells that a strategy wins }, loss = the sum of the expected losses of
// with_loss cells, worst_loss = the largest, worst = { us =, fusion, hidden, tokens = indices } of the
// largest worst loss in time (of several the first), margin, least_margin = of the cells that have one:
// median and least, bound, least_bound, most_bound = the same of the physical bound, as a share of the time
// }. A number that no cell has is missing.
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stddef.h>

#include "base/bindings.h"
#include "table_lua.h"

// Numbers of cells, at most as many as `room`.
struct numbers {
    double *value; // in Lua's memory
    size_t count;
};

struct tally {
    size_t cells, unmeasured, with_loss, oversubscribed;
    size_t of_state[STATES], of_basis[BASES], wins[NAMES_MAX];
    double loss, worst_loss, worst_us; // NAN: none
    size_t worst;                      // the cell's number in the block
    struct numbers margins, bounds;
};

static void add(struct numbers *numbers, double value) {
    if (!isnan(value)) numbers->value[numbers->count++] = value;
}

static void enter(struct tally *tally, const struct cell *cell, size_t number, uint8_t oversubscribed) {
    tally->cells++;
    if (cell->strategy == NAME_NONE) {
        tally->unmeasured++;
        return;
    }
    tally->wins[cell->strategy]++;
    tally->of_state[cell->state]++;
    tally->of_basis[cell->basis]++;
    tally->oversubscribed += cell->placement == oversubscribed;
    add(&tally->margins, cell->margin);
    add(&tally->bounds, cell->bound_us / cell->time_us);
    if (!isnan(cell->expected)) {
        tally->loss += cell->expected;
        tally->with_loss++;
        tally->worst_loss = fmax(tally->worst_loss, cell->worst);
    }
    if (isnan(tally->worst_us) ? !isnan(cell->worst_us) : cell->worst_us > tally->worst_us)
        tally->worst_us = cell->worst_us, tally->worst = number;
}

// Reorders numbers, of at least one, so that the one at `index` has its place in ascending order, with no
// greater ones before and no lesser ones behind it (Hoare's selection).
static void put_in_place(double *value, size_t count, size_t index) {
    ptrdiff_t first = 0, last = (ptrdiff_t)count - 1, place = (ptrdiff_t)index;
    while (first < last) {
        double pivot = value[place];
        ptrdiff_t low = first, high = last;
        while (low <= high) {
            while (value[low] < pivot) low++;
            while (value[high] > pivot) high--;
            if (low > high) break;
            double lesser = value[high];
            value[high--] = value[low];
            value[low++] = lesser;
        }
        if (place > high) first = low;
        if (place < low) last = high;
        if (place > high && place < low) return;
    }
}

static double least_of(const double *value, size_t count) {
    double least = INFINITY;
    for (size_t i = 0; i < count; i++) least = value[i] < least ? value[i] : least;
    return least;
}

static double most_of(const double *value, size_t count) {
    double most = -INFINITY;
    for (size_t i = 0; i < count; i++) most = value[i] > most ? value[i] : most;
    return most;
}

// Sets the median and the extremes of numbers, which are reordered, in the table at the top of the stack.
// NULL sets nothing.
static void set_spread(lua_State *lua, struct numbers *numbers, const char *median, const char *least,
                       const char *most) {
    size_t count = numbers->count, middle = count == 0 ? 0 : (count - 1) / 2;
    if (count == 0) return;
    set_number(lua, least, least_of(numbers->value, count));
    if (most != NULL) set_number(lua, most, most_of(numbers->value, count));
    put_in_place(numbers->value, count, middle);
    double low = numbers->value[middle];
    double high = count % 2 == 1 ? low : least_of(numbers->value + middle + 1, count - middle - 1);
    set_number(lua, median, (low + high) / 2);
}

static void set_count(lua_State *lua, const char *field, size_t count) {
    set_integer(lua, field, (lua_Integer)count);
}

static void set_worst(lua_State *lua, const struct tally *tally, const struct grid_block *block) {
    if (isnan(tally->worst_us)) return;
    size_t row = tally->worst / block->num_tokens.count;
    lua_createtable(lua, 0, 4);
    set_number(lua, "us", tally->worst_us);
    set_count(lua, "fusion", row / block->hidden_sizes.count + 1);
    set_count(lua, "hidden", row % block->hidden_sizes.count + 1);
    set_count(lua, "tokens", tally->worst % block->num_tokens.count + 1);
    lua_setfield(lua, -2, "worst");
}

static void push_tally(lua_State *lua, struct tally *tally, const struct grid_block *block) {
    const struct lists *lists = lists_of(lua);
    lua_createtable(lua, 0, 20);
    set_count(lua, "cells", tally->cells);
    set_count(lua, "unmeasured", tally->unmeasured);
    set_count(lua, "derived", tally->of_basis[BASIS_DERIVED]);
    set_count(lua, "predicted", tally->of_basis[BASIS_PREDICTED]);
    set_count(lua, "oversubscribed", tally->oversubscribed);
    for (enum state state = STATE_NONE + 1; state < STATES; state++)
        set_count(lua, table_state_names[state], tally->of_state[state]);
    set_number(lua, "loss", tally->loss);
    set_count(lua, "with_loss", tally->with_loss);
    set_number(lua, "worst_loss", tally->worst_loss);
    set_worst(lua, tally, block);
    set_spread(lua, &tally->margins, "margin", "least_margin", NULL);
    set_spread(lua, &tally->bounds, "bound", "least_bound", "most_bound");
    lua_newtable(lua);
    for (size_t i = 0; i < lists->strategies.count; i++)
        if (tally->wins[i] > 0) set_count(lua, lists->strategies.name[i], tally->wins[i]);
    lua_setfield(lua, -2, "wins");
}

int table_lua_tally(lua_State *lua) {
    const struct table *table = table_lua_check(lua, 1);
    const struct grid_block *block = &table->grid.blocks[table_lua_index(lua, 2, table->grid.block_count)];
    size_t of_fusion = block->hidden_sizes.count * block->num_tokens.count;
    size_t first = lua_isnoneornil(lua, 3) ? 0 : table_lua_index(lua, 3, block->fusion_count) * of_fusion;
    size_t count = lua_isnoneornil(lua, 3) ? block->fusion_count * of_fusion : of_fusion;
    struct tally tally = {.worst_loss = NAN, .worst_us = NAN};
    tally.margins.value = lua_newuserdatauv(lua, (count + 1) * sizeof(double), 0);
    tally.bounds.value = lua_newuserdatauv(lua, (count + 1) * sizeof(double), 0);
    uint8_t oversubscribed = names_index(&lists_of(lua)->placements, "oversubscribed");
    for (size_t i = first; i < first + count; i++)
        enter(&tally, &table->cells[block->first_cell + i], i, oversubscribed);
    push_tally(lua, &tally, block);
    return 1;
}
