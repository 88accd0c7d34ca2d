// Bits of rows to a relation between strategies; see numerics.h.
#include "numerics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct known_bits {
    uint64_t shape, bits;
    uint8_t strategy;
};

static int compare_shapes(const void *left, const void *right) {
    const struct known_bits *a = left, *b = right;
    return (a->shape > b->shape) - (a->shape < b->shape);
}

// The bits in rows of the slice, sorted by shape; marks the strategies with varying bits. Returns the count.
static size_t take_bits(const struct rows *rows, struct slice_key slice, uint8_t barred,
                        const struct lists *lists, struct numerics *numerics, struct known_bits *known) {
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        const struct row_detail *detail = &rows->detail[i];
        if (detail->bits == 0 && !detail->bits_vary) continue;
        if (!slice_key_equal(slice_key_of(&row->key), slice) || !lists->candidate[row->strategy]) continue;
        if (barred != NAME_NONE && row->placement == barred) continue;
        numerics->varies[row->strategy] |= detail->bits_vary;
        if (detail->bits_vary) continue;
        numerics->known[row->strategy] = true;
        uint64_t shape = (uint64_t)row->key.hidden_size << 32 | row->key.num_tokens;
        known[count++] = (struct known_bits){shape, detail->bits, row->strategy};
    }
    qsort(known, count, sizeof *known, compare_shapes);
    return count;
}

static void relate(struct numerics *numerics, const struct known_bits *a, const struct known_bits *b) {
    uint8_t *relation = &numerics->relation[a->strategy][b->strategy];
    if (a->bits != b->bits) {
        *relation = BITS_DIFFERENT;
    } else if (*relation == BITS_UNKNOWN) {
        *relation = BITS_EQUAL;
    }
}

static void set_apart_what_varies(struct numerics *numerics) {
    for (size_t i = 0; i < NAMES_MAX; i++) {
        for (size_t j = 0; numerics->varies[i] && j < NAMES_MAX; j++) {
            numerics->relation[i][j] = numerics->relation[j][i] = BITS_DIFFERENT;
        }
    }
}

static bool relate_slice(const struct rows *rows, struct slice_key slice, uint8_t barred,
                         const struct lists *lists, struct numerics *numerics) {
    memset(numerics, 0, sizeof *numerics);
    if (rows->detail == NULL) return true;
    struct known_bits *known = malloc((rows->count + 1) * sizeof *known);
    if (known == NULL) return false;
    size_t count = take_bits(rows, slice, barred, lists, numerics, known);
    for (size_t i = 0, first = 0; i < count; i++) {
        if (known[i].shape != known[first].shape) first = i;
        for (size_t j = first; j <= i; j++) {
            relate(numerics, &known[i], &known[j]);
            relate(numerics, &known[j], &known[i]);
        }
    }
    set_apart_what_varies(numerics);
    free(known);
    return true;
}

bool numerics_relate(const struct rows *rows, struct slice_key slice, uint8_t barred,
                     const struct lists *lists, struct numerics *numerics) {
    if (!relate_slice(rows, slice, barred, lists, numerics)) return false;
    uint8_t quantised = lists->quantises[slice.fusion];
    if (quantised == NAME_NONE) return true;
    struct numerics *sums = malloc(sizeof *sums);
    slice.fusion = quantised;
    bool ok = sums != NULL && relate_slice(rows, slice, barred, lists, sums);
    for (size_t i = 0; ok && i < NAMES_MAX; i++) {
        numerics->varies[i] |= sums->varies[i];
        for (size_t j = 0; j < NAMES_MAX; j++) {
            if (sums->relation[i][j] == BITS_DIFFERENT) numerics->relation[i][j] = BITS_DIFFERENT;
        }
    }
    free(sums);
    return ok;
}

static bool differs_from_class(const struct numerics *numerics, const uint8_t class_of[NAMES_MAX],
                               uint8_t class, size_t strategy) {
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (class_of[i] == class && numerics->relation[i][strategy] == BITS_DIFFERENT) return true;
    }
    return false;
}

static void open_class(const struct numerics *numerics, uint8_t class, uint8_t class_of[NAMES_MAX]) {
    if (class_of[class] != NAME_NONE) return;
    class_of[class] = class;
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (class_of[i] != NAME_NONE || numerics->relation[class][i] != BITS_EQUAL) continue;
        if (!differs_from_class(numerics, class_of, class, i)) class_of[i] = class;
    }
}

void numerics_classes(const struct numerics *numerics, uint8_t first, uint8_t class_of[NAMES_MAX]) {
    memset(class_of, NAME_NONE, NAMES_MAX);
    if (first != NAME_NONE) open_class(numerics, first, class_of);
    for (size_t i = 0; i < NAMES_MAX; i++) open_class(numerics, (uint8_t)i, class_of);
}

// ---- the class of a row

// Noise affects the choice of a class, and each change of the class changes results. So the rows decide only
// if there is no earlier table.

// The classes of a row, by first member: their choices in an earlier table, and their losses.
struct tally {
    bool may_win[NAMES_MAX]; // a member has a time in the plane
    size_t kept[NAMES_MAX];  // cells in which an earlier table chose a member
    size_t without_time[NAMES_MAX];
    double loss[NAMES_MAX]; // the sum over cells
};

static void count_kept(const struct plane *plane, const uint8_t *earlier, const uint8_t class_of[NAMES_MAX],
                       size_t hidden, struct tally *tally) {
    size_t tokens = plane->block->num_tokens.count;
    struct bins_span across = bins_span_of(plane->bins.lookup, &plane->block->hidden_sizes, hidden);
    const uint8_t *first = earlier + plane->first_cell + across.first * tokens;
    for (size_t i = 0; i < (across.last + 1 - across.first) * tokens; i++) {
        if (first[i] != NAME_NONE) tally->kept[class_of[first[i]]]++;
    }
}

// The class with the most choices of an earlier table; NAME_NONE: there are no such choices.
static uint8_t most_kept(const struct tally *tally) {
    uint8_t best = NAME_NONE;
    for (size_t i = 0; i < NAMES_MAX; i++) {
        bool is_more = tally->may_win[i] && tally->kept[i] > (best == NAME_NONE ? 0 : tally->kept[best]);
        if (is_more) best = (uint8_t)i;
    }
    return best;
}

// Adds the losses of a cell: for each class the loss of its best member.
static void add_cell(const struct plane *plane, const struct loss *losses, const uint8_t class_of[NAMES_MAX],
                     struct tally *tally) {
    double least[NAMES_MAX], least_of_all = INFINITY;
    for (size_t i = 0; i < NAMES_MAX; i++) least[i] = INFINITY;
    for (size_t s = 0; s < plane->strategy_count; s++) {
        uint8_t class = class_of[plane->strategies[s]];
        least[class] = fmin(least[class], losses[s].expected);
        least_of_all = fmin(least_of_all, losses[s].expected);
    }
    if (isinf(least_of_all)) return;
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (isinf(least[i])) {
            tally->without_time[i]++;
        } else {
            tally->loss[i] += least[i];
        }
    }
}

static bool add_losses(const struct plane *plane, const struct evidence *evidence,
                       const uint8_t class_of[NAMES_MAX], size_t hidden, struct tally *tally) {
    struct loss losses[NAMES_MAX];
    for (size_t t = 0; t < plane->block->num_tokens.count; t++) {
        if (!cell_losses(plane, evidence, hidden, t, losses)) return false;
        add_cell(plane, losses, class_of, tally);
    }
    return true;
}

static uint8_t least_loss(const struct tally *tally) {
    uint8_t best = NAME_NONE;
    for (size_t i = 0; i < NAMES_MAX; i++) {
        if (!tally->may_win[i]) continue;
        bool is_better = best == NAME_NONE || tally->without_time[i] < tally->without_time[best];
        bool is_equal = best != NAME_NONE && tally->without_time[i] == tally->without_time[best];
        if (is_better || (is_equal && tally->loss[i] < tally->loss[best])) best = (uint8_t)i;
    }
    return best;
}

bool stable_class_of_rows(const struct plane *plane, const struct evidence *evidence, const uint8_t *earlier,
                          const uint8_t class_of[NAMES_MAX], uint8_t *class_of_row) {
    for (size_t h = 0; h < plane->block->hidden_sizes.count; h++) {
        struct tally tally;
        memset(&tally, 0, sizeof tally);
        for (size_t s = 0; s < plane->strategy_count; s++)
            tally.may_win[class_of[plane->strategies[s]]] = true;
        if (earlier != NULL) count_kept(plane, earlier, class_of, h, &tally);
        class_of_row[h] = most_kept(&tally);
        if (class_of_row[h] != NAME_NONE) continue;
        if (!add_losses(plane, evidence, class_of, h, &tally)) return false;
        class_of_row[h] = least_loss(&tally);
    }
    return true;
}
