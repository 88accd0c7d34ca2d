// The rows of each slice; see slice_rows.h.
#include "slice_rows.h"

#include <stdlib.h>

size_t slice_rows_find(const struct slice_rows *of, struct slice_key key) {
    size_t i = 0;
    while (i < of->count && !slice_key_equal(of->keys[i], key)) i++;
    return i;
}

// Enters a new slice. `room`: for how many there is space. False: out of memory.
static bool enter_slice(struct slice_rows *of, size_t *room, struct slice_key key) {
    if (of->count == *room) {
        size_t more = 2 * *room + 16;
        struct slice_key *keys = realloc(of->keys, more * sizeof *keys);
        if (keys == NULL) return false;
        of->keys = keys, *room = more;
    }
    of->keys[of->count++] = key;
    return true;
}

// Sets slice_of[row] for all rows. Neighbours mostly are of one slice. False: out of memory.
static bool find_slices(const struct rows *rows, struct slice_rows *of, uint32_t *slice_of) {
    size_t room = 0, last = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct slice_key key = slice_key_of(&rows->row[i].key);
        if (of->count == 0 || !slice_key_equal(of->keys[last], key)) last = slice_rows_find(of, key);
        if (last == of->count && !enter_slice(of, &room, key)) return false;
        slice_of[i] = (uint32_t)last;
    }
    return true;
}

bool slice_rows_make(const struct rows *rows, struct slice_rows *of) {
    *of = (struct slice_rows){.keys = NULL};
    uint32_t *slice_of = malloc((rows->count + 1) * sizeof *slice_of);
    of->row = malloc((rows->count + 1) * sizeof *of->row);
    bool ok = slice_of != NULL && of->row != NULL && find_slices(rows, of, slice_of);
    // begin[i + 1] is first the next free place of slice i; when all rows are placed, it is the end.
    if (ok) of->begin = calloc(of->count + 2, sizeof *of->begin);
    ok = ok && of->begin != NULL;
    for (size_t i = 0; ok && i < rows->count; i++) {
        if (slice_of[i] + 1 < of->count) of->begin[slice_of[i] + 2]++;
    }
    for (size_t i = 2; ok && i <= of->count; i++) of->begin[i] += of->begin[i - 1];
    for (size_t i = 0; ok && i < rows->count; i++) of->row[of->begin[slice_of[i] + 1]++] = (uint32_t)i;
    free(slice_of);
    return ok;
}

void slice_rows_free(struct slice_rows *of) {
    free(of->keys);
    free(of->begin);
    free(of->row);
}
