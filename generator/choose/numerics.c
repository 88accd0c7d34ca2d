// Bits of rows to a relation between strategies; see numerics.h.
#include "numerics.h"

#include <stdlib.h>
#include <string.h>

struct told_bits {
    uint64_t shape, bits;
    uint8_t strategy;
};

static int compare_shapes(const void *left, const void *right) {
    const struct told_bits *a = left, *b = right;
    return (a->shape > b->shape) - (a->shape < b->shape);
}

// The bits in rows of the slice, sorted by shape; marks the strategies with varying bits. Returns the count.
static size_t take_bits(const struct rows *rows, struct slice_key slice, uint8_t barred,
                        const struct lists *lists, struct numerics *numerics, struct told_bits *told) {
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        const struct row_detail *detail = &rows->detail[i];
        if (detail->bits == 0 && !detail->bits_vary) continue;
        if (!slice_key_equal(slice_key_of(row), slice) || !lists->candidate[row->strategy]) continue;
        if (barred != NAME_NONE && row->placement == barred) continue;
        numerics->varies[row->strategy] |= detail->bits_vary;
        if (detail->bits_vary) continue;
        numerics->told[row->strategy] = true;
        uint64_t shape = (uint64_t)row->key.hidden_size << 32 | row->key.num_tokens;
        told[count++] = (struct told_bits){shape, detail->bits, row->strategy};
    }
    qsort(told, count, sizeof *told, compare_shapes);
    return count;
}

static void relate(struct numerics *numerics, const struct told_bits *a, const struct told_bits *b) {
    uint8_t *relation = &numerics->relation[a->strategy][b->strategy];
    if (a->bits != b->bits) {
        *relation = BITS_DIFFERENT;
    } else if (*relation == BITS_NEVER_TOLD) {
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
    struct told_bits *told = malloc((rows->count + 1) * sizeof *told);
    if (told == NULL) return false;
    size_t count = take_bits(rows, slice, barred, lists, numerics, told);
    for (size_t i = 0, first = 0; i < count; i++) {
        if (told[i].shape != told[first].shape) first = i;
        for (size_t j = first; j <= i; j++) {
            relate(numerics, &told[i], &told[j]);
            relate(numerics, &told[j], &told[i]);
        }
    }
    set_apart_what_varies(numerics);
    free(told);
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
