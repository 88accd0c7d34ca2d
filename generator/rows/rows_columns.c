// What a row consists of: its columns' names, the slice it belongs to, splits as text; see rows.h.
#include "rows.h"

#include <math.h>
#include <string.h>

#include "codec/number.h"

const struct column_name rows_columns[COLUMNS] = {
    [COLUMN_WORLD_SIZE] = {"world_size", NULL, "world_size", true, false},
    [COLUMN_DTYPE] = {"dtype", NULL, "dtype", true, false},
    [COLUMN_SIZE] = {"size", "size_bytes", "size", true, false},
    [COLUMN_NUM_TOKENS] = {"num_tokens", NULL, "num_tokens", true, false},
    [COLUMN_HIDDEN_SIZE] = {"hidden_size", NULL, "hidden_size", true, false},
    [COLUMN_STRATEGY] = {"strategy", NULL, "strategy", true, false},
    [COLUMN_FUSION] = {"fusion", NULL, "fusion", true, false},
    [COLUMN_OP] = {"op", NULL, "op", false, false},
    [COLUMN_TIME] = {"time (us)", "time_us", "time_us", true, false},
    [COLUMN_LOW] = {"low (us)", NULL, "low_us", false, true},
    [COLUMN_HIGH] = {"high (us)", NULL, "high_us", false, true},
    [COLUMN_SAMPLES] = {"samples", NULL, "samples", false, true},
    [COLUMN_MIN] = {"min (us)", NULL, "min_us", false, true},
    [COLUMN_P95] = {"p95 (us)", NULL, "p95_us", false, true},
    [COLUMN_P99] = {"p99 (us)", NULL, "p99_us", false, true},
    [COLUMN_SKEW] = {"skew (us)", NULL, "skew_us", false, true},
    [COLUMN_BOUND] = {"bound (us)", NULL, "bound_us", false, true},
    [COLUMN_MODE] = {"mode", NULL, "mode", false, true},
    [COLUMN_ACCUMULATE] = {"accumulate", NULL, "accumulate", false, true},
    [COLUMN_PLACEMENT] = {"placement", NULL, "placement", false, true},
    [COLUMN_LAUNCHES] = {"launches (us)", NULL, "launches", false, true},
    [COLUMN_BITS] = {"bits", NULL, "bits", false, true},
    [COLUMN_SPLITS] = {"splits", NULL, "splits", false, true},
    [COLUMN_FLOOR] = {"floor (us)", NULL, "floor_us", false, true},
    [COLUMN_CALLS] = {"calls", NULL, "calls", false, true},
    [COLUMN_SEPARATE] = {"separate (us)", NULL, "separate_us", false, true},
    [COLUMN_ALONE] = {"alone (us)", NULL, "alone_us", false, true},
};

const struct row_detail rows_no_detail = {
    .low_us = NAN,
    .high_us = NAN,
    .min_us = NAN,
    .p95_us = NAN,
    .p99_us = NAN,
    .skew_us = NAN,
    .bound_us = NAN,
    .floor_us = NAN,
    .calls = NAN,
    .separate_us = NAN,
    .alone_us = NAN,
};

const char rows_bits_vary[] = "varies";

struct slice_key slice_key_of(const struct row *row) {
    const struct cell_key *key = &row->key;
    return (struct slice_key){key->splits,
                              key->world_size,
                              key->dtype,
                              key->op,
                              key->mode,
                              key->fusion,
                              key->hidden_size == HIDDEN_SIZE_NONE};
}

bool slice_key_equal(struct slice_key a, struct slice_key b) {
    return a.world_size == b.world_size && a.dtype == b.dtype && a.op == b.op && a.mode == b.mode &&
           a.fusion == b.fusion && a.splits == b.splits && a.sizes_only == b.sizes_only;
}

char *splits_print(char *out, uint64_t splits) {
    for (const char *begin = out; splits != 0; splits >>= 4) {
        if (out != begin) *out++ = ':';
        out = number_print_unsigned(out, (splits & 15) - 1);
    }
    return out;
}

bool splits_parse(const char *begin, const char *end, uint64_t *splits) {
    bool moves = begin == end; // no splits are none
    *splits = 0;
    for (unsigned shift = 0; begin < end; shift += 4) {
        const char *colon = memchr(begin, ':', (size_t)(end - begin));
        const char *stop = colon == NULL ? end : colon;
        uint64_t weight;
        if (shift == 64 || !number_parse_unsigned(begin, stop, 14, &weight)) return false;
        *splits |= (weight + 1) << shift;
        moves = moves || weight > 0;
        if (colon != NULL && colon + 1 == end) return false;
        begin = stop + 1;
    }
    return moves;
}

double *rows_detail_number(struct row_detail *detail, enum column column) {
    switch (column) {
    case COLUMN_LOW: return &detail->low_us;
    case COLUMN_HIGH: return &detail->high_us;
    case COLUMN_MIN: return &detail->min_us;
    case COLUMN_P95: return &detail->p95_us;
    case COLUMN_P99: return &detail->p99_us;
    case COLUMN_SKEW: return &detail->skew_us;
    case COLUMN_BOUND: return &detail->bound_us;
    case COLUMN_FLOOR: return &detail->floor_us;
    case COLUMN_CALLS: return &detail->calls;
    case COLUMN_SEPARATE: return &detail->separate_us;
    case COLUMN_ALONE: return &detail->alone_us;
    default: return NULL;
    }
}
