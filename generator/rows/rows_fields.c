// Parts of a row: its names, its slice, its splits as text; see rows.h.
#include "rows.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "codec/number.h"

const struct row_detail rows_no_detail = {
    .number = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN},
};
static_assert(NUMBERS_MAX == 16, "rows_no_detail has as many");

const char rows_bits_vary[] = "varies";

struct slice_key slice_key_of(const struct cell_key *key) {
    return (struct slice_key){
        key->splits, key->world_size, key->nodes,  key->dtype,
        key->op,     key->mode,       key->fusion, key->hidden_size == HIDDEN_SIZE_NONE};
}

bool slice_key_equal(struct slice_key a, struct slice_key b) {
    return a.world_size == b.world_size && a.nodes == b.nodes && a.dtype == b.dtype && a.op == b.op &&
           a.mode == b.mode && a.fusion == b.fusion && a.splits == b.splits && a.sizes_only == b.sizes_only;
}

char *splits_print(char *out, uint64_t splits) {
    for (const char *begin = out; splits != 0; splits >>= 4) {
        if (out != begin) *out++ = ':';
        out = number_print_unsigned(out, (splits & 15) - 1);
    }
    return out;
}

bool splits_parse(const char *begin, const char *end, uint64_t *splits) {
    bool moves = begin == end; // an empty text: no splits
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

uint8_t *rows_name(struct row *row, enum column_kind kind) {
    switch (kind) {
    case COLUMN_DTYPE: return &row->key.dtype;
    case COLUMN_STRATEGY: return &row->strategy;
    case COLUMN_FUSION: return &row->key.fusion;
    case COLUMN_OP: return &row->key.op;
    case COLUMN_MODE: return &row->key.mode;
    case COLUMN_ACCUMULATE: return &row->accumulate;
    case COLUMN_PLACEMENT: return &row->placement;
    default: return NULL;
    }
}
