// Cells and their numbers; see grid.h.
#include "grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A grid with more cells is no measurement: the sizes of its rows are unrelated.
enum { MAX_CELLS = 1 << 24, FIRST_SLOTS = 64 };

// ---- an axis

static size_t axis_slot(const struct axis *axis, uint32_t value) {
    size_t slot = (value * 0x9E3779B1u) & (axis->slot_count - 1);
    while (axis->slots[slot].value != 0 && axis->slots[slot].value != value) {
        slot = (slot + 1) & (axis->slot_count - 1);
    }
    return slot;
}

static bool axis_grow(struct axis *axis) {
    struct axis wider = {.slot_count = axis->slot_count == 0 ? FIRST_SLOTS : 2 * axis->slot_count};
    wider.slots = calloc(wider.slot_count, sizeof *wider.slots);
    uint32_t *value = realloc(axis->value, wider.slot_count / 2 * sizeof *value);
    if (value != NULL) axis->value = value;
    if (value == NULL || wider.slots == NULL) {
        free(wider.slots);
        return false;
    }
    for (size_t i = 0; i < axis->slot_count; i++) {
        if (axis->slots[i].value != 0) wider.slots[axis_slot(&wider, axis->slots[i].value)] = axis->slots[i];
    }
    free(axis->slots);
    axis->slots = wider.slots;
    axis->slot_count = wider.slot_count;
    axis->capacity = wider.slot_count / 2;
    return true;
}

static bool axis_add(struct axis *axis, uint32_t value) {
    if (axis->count == axis->capacity && !axis_grow(axis)) return false;
    struct axis_slot *slot = &axis->slots[axis_slot(axis, value)];
    if (slot->value == value) return true;
    *slot = (struct axis_slot){value, (uint32_t)axis->count};
    axis->value[axis->count++] = value;
    return true;
}

static int compare_values(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static void axis_sort(struct axis *axis) {
    qsort(axis->value, axis->count, sizeof *axis->value, compare_values);
    for (size_t i = 0; i < axis->count; i++) axis->slots[axis_slot(axis, axis->value[i])].index = (uint32_t)i;
}

static bool axis_find(const struct axis *axis, uint32_t value, size_t *index) {
    const struct axis_slot *slot = &axis->slots[axis_slot(axis, value)];
    *index = slot->index;
    return slot->value == value && value != 0;
}

static void axis_free(struct axis *axis) {
    free(axis->value);
    free(axis->slots);
}

// ---- blocks

bool grid_block_is_of(const struct grid_block *block, const struct cell_key *key) {
    return block->world_size == key->world_size && block->nodes == key->nodes && block->dtype == key->dtype &&
           block->op == key->op && block->mode == key->mode && block->splits == key->splits &&
           block->has_no_shape == (key->hidden_size == HIDDEN_SIZE_NONE);
}

static struct grid_block *find_block(struct grid *grid, const struct cell_key *key) {
    if (grid->recent < grid->block_count && grid_block_is_of(&grid->blocks[grid->recent], key)) {
        return &grid->blocks[grid->recent];
    }
    for (size_t i = 0; i < grid->block_count; i++) {
        if (!grid_block_is_of(&grid->blocks[i], key)) continue;
        grid->recent = i;
        return &grid->blocks[i];
    }
    return NULL;
}

static struct grid_block *add_block(struct grid *grid, const struct cell_key *key) {
    struct grid_block *blocks = realloc(grid->blocks, (grid->block_count + 1) * sizeof *blocks);
    if (blocks == NULL) return NULL;
    grid->blocks = blocks;
    struct grid_block *block = &blocks[grid->block_count++];
    *block = (struct grid_block){.world_size = key->world_size,
                                 .nodes = key->nodes,
                                 .dtype = key->dtype,
                                 .op = key->op,
                                 .mode = key->mode,
                                 .splits = key->splits,
                                 .has_no_shape = key->hidden_size == HIDDEN_SIZE_NONE};
    memset(block->fusion_index, NAME_NONE, sizeof block->fusion_index);
    return block;
}

bool grid_add(struct grid *grid, const struct cell_key *key) {
    struct grid_block *block = find_block(grid, key);
    if (block == NULL) block = add_block(grid, key);
    if (block == NULL) return false;
    block->fusion_index[key->fusion] = 0; // grid_close sets the index
    return axis_add(&block->hidden_sizes, key->hidden_size) && axis_add(&block->num_tokens, key->num_tokens);
}

size_t grid_block_of(struct grid *grid, const struct cell_key *key) {
    const struct grid_block *block = find_block(grid, key);
    return block == NULL ? grid->block_count : (size_t)(block - grid->blocks);
}

static int compare_blocks(const void *a, const void *b) {
    const struct grid_block *left = a, *right = b;
    if (left->nodes != right->nodes) return left->nodes - right->nodes;
    if (left->world_size != right->world_size) return left->world_size - right->world_size;
    if (left->dtype != right->dtype) return left->dtype - right->dtype;
    if (left->op != right->op) return left->op - right->op;
    if (left->mode != right->mode) return left->mode - right->mode;
    if (left->splits != right->splits) return left->splits < right->splits ? -1 : 1;
    return left->has_no_shape - right->has_no_shape;
}

static void number_fusions(struct grid_block *block) {
    for (size_t fusion = 0; fusion < NAMES_MAX; fusion++) {
        if (block->fusion_index[fusion] == NAME_NONE) continue;
        block->fusion_index[fusion] = (uint8_t)block->fusion_count;
        block->fusion[block->fusion_count++] = (uint8_t)fusion;
    }
}

bool grid_close(struct grid *grid, struct problem *problem) {
    if (grid->block_count > 0) qsort(grid->blocks, grid->block_count, sizeof *grid->blocks, compare_blocks);
    grid->cell_count = 0;
    for (size_t i = 0; i < grid->block_count; i++) {
        struct grid_block *block = &grid->blocks[i];
        axis_sort(&block->hidden_sizes);
        axis_sort(&block->num_tokens);
        number_fusions(block);
        block->first_cell = grid->cell_count;
        size_t rows = block->fusion_count * block->hidden_sizes.count;
        if (block->num_tokens.count > (MAX_CELLS - grid->cell_count) / rows) {
            return problem_set(
                problem,
                "the %zu hidden sizes and %zu token counts of TP %u make more than %d cells; a table "
                "needs rows on a grid",
                block->hidden_sizes.count, block->num_tokens.count, block->world_size, MAX_CELLS);
        }
        grid->cell_count += rows * block->num_tokens.count;
    }
    return true;
}

size_t grid_cell_number(const struct grid_block *block, size_t fusion, const struct cell_key *key) {
    size_t hidden, tokens;
    if (!axis_find(&block->hidden_sizes, key->hidden_size, &hidden)) return GRID_NO_CELL;
    if (!axis_find(&block->num_tokens, key->num_tokens, &tokens)) return GRID_NO_CELL;
    size_t row = fusion * block->hidden_sizes.count + hidden;
    return block->first_cell + row * block->num_tokens.count + tokens;
}

size_t grid_find(struct grid *grid, const struct cell_key *key) {
    const struct grid_block *block = find_block(grid, key);
    if (block == NULL || block->fusion_index[key->fusion] == NAME_NONE) return GRID_NO_CELL;
    return grid_cell_number(block, block->fusion_index[key->fusion], key);
}

struct cell_key grid_block_key(const struct grid_block *block) {
    return (struct cell_key){.splits = block->splits,
                             .world_size = block->world_size,
                             .nodes = block->nodes,
                             .dtype = block->dtype,
                             .op = block->op,
                             .mode = block->mode};
}

struct cell_key grid_key(const struct grid *grid, size_t cell) {
    const struct grid_block *block = grid->blocks + grid->block_count - 1;
    while (cell < block->first_cell) block--;
    size_t index = cell - block->first_cell, tokens = block->num_tokens.count;
    size_t hidden_sizes = block->hidden_sizes.count;
    struct cell_key key = grid_block_key(block);
    key.hidden_size = block->hidden_sizes.value[index / tokens % hidden_sizes];
    key.num_tokens = block->num_tokens.value[index % tokens];
    key.fusion = block->fusion[index / tokens / hidden_sizes];
    return key;
}

uint32_t grid_power_below(uint32_t value) {
    return 1u << (31 - __builtin_clz(value));
}

uint64_t grid_border(uint64_t lower, uint64_t upper) {
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)lower * upper;
    uint64_t root = (uint64_t)(sqrt((double)lower) * sqrt((double)upper));
    while ((wide)root * root > product) root--;
    while ((wide)(root + 1) * (root + 1) <= product) root++;
    return root;
}

size_t grid_answering(const struct axis *axis, uint32_t value, enum lookup lookup) {
    size_t index = 0;
    bool floor = lookup == LOOKUP_FLOOR || lookup == LOOKUP_LOG2;
    while (index + 1 < axis->count) {
        uint32_t lower = axis->value[index], upper = axis->value[index + 1];
        bool is_below = floor ? value < upper : value <= grid_border(lower, upper);
        if (is_below) break;
        index++;
    }
    bool is_there = lookup != LOOKUP_LOG2 || grid_power_below(axis->value[index]) == grid_power_below(value);
    return is_there ? index : GRID_NO_CELL;
}

void grid_free(struct grid *grid) {
    for (size_t i = 0; i < grid->block_count; i++) {
        axis_free(&grid->blocks[i].hidden_sizes);
        axis_free(&grid->blocks[i].num_tokens);
    }
    free(grid->blocks);
    *grid = (struct grid){NULL, 0, 0, 0};
}
