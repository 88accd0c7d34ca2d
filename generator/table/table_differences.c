// The cells with different choices in two tables; see table_differences.h.
#include "table_differences.h"

struct comparison {
    struct table *old, *new;
    void (*found)(void *context, const struct difference *difference);
    void *context;
    size_t compared;
};

static uint8_t choice_of(const struct cell *cell) {
    return cell == NULL ? NAME_NONE : cell->strategy;
}

static void compare_cell(struct comparison *comparison, const struct difference *difference) {
    uint8_t before = choice_of(difference->old), after = choice_of(difference->new);
    if (before != NAME_NONE && after != NAME_NONE) comparison->compared++;
    if (before != after) comparison->found(comparison->context, difference);
}

// Compares the cells of one block of the old table, or those of the new one that the old one does not have.
static void compare_block(struct comparison *comparison, const struct table *table,
                          const struct grid_block *block) {
    bool is_old = table == comparison->old;
    const struct cell *cell = &table->cells[block->first_cell];
    size_t count = block->fusion_count * block->hidden_sizes.count * block->num_tokens.count;
    for (size_t at = 0; at < count; at++, cell++) {
        struct difference difference = {.key = grid_key(&table->grid, block->first_cell + at)};
        const struct cell *other = table_find(is_old ? comparison->new : comparison->old, &difference.key);
        if (!is_old && other != NULL) continue;
        difference.old = is_old ? cell : NULL;
        difference.new = is_old ? other : cell;
        compare_cell(comparison, &difference);
    }
}

static void compare_blocks(struct comparison *comparison, const struct table *table) {
    for (size_t i = 0; i < table->grid.block_count; i++) {
        compare_block(comparison, table, &table->grid.blocks[i]);
    }
}

size_t table_differences(struct table *old, struct table *new,
                         void (*found)(void *context, const struct difference *difference), void *context) {
    struct comparison comparison = {.old = old, .new = new, .found = found, .context = context};
    compare_blocks(&comparison, old);
    if (old != new) compare_blocks(&comparison, new);
    return comparison.compared;
}
