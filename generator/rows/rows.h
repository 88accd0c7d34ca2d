// The row: one cell and strategy of a benchmark file, with its times. Reads the dialects that are about
// (TensorRT-LLM's generations B, C and D, its --benchmark mode, ours) and writes ours.
//
// Columns are found by their names. Unknown columns are read over where they stand at the end of a file that
// has none of our own columns, as other readers do; anywhere else one is a misspelling, and refused.
#ifndef GENTABLES_ROWS_H
#define GENTABLES_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "lists/names.h"
#include "system/file.h"

// A row that tells a size alone, without tokens and hidden size: they are empty in files. In memory its
// hidden size is this, and its tokens are its bytes.
#define HIDDEN_SIZE_NONE UINT32_MAX

// What a table has one choice for. Names are indices into the lists.
struct cell_key {
    // Of an alltoallv: weights of the destinations, each and one more in four bits, first lowest; 0: none.
    uint64_t splits;
    uint32_t hidden_size, num_tokens;
    uint16_t world_size;
    uint8_t dtype, op, mode, fusion;
};

static inline bool cell_key_equal(const struct cell_key *a, const struct cell_key *b) {
    return a->num_tokens == b->num_tokens && a->hidden_size == b->hidden_size && a->fusion == b->fusion &&
           a->world_size == b->world_size && a->dtype == b->dtype && a->op == b->op && a->mode == b->mode &&
           a->splits == b->splits;
}

struct row {
    double time_us; // the median, positive
    uint64_t size_bytes;
    struct cell_key key;
    uint32_t line;
    uint8_t strategy, placement, accumulate; // accumulate may be NAME_NONE
};

enum { LAUNCHES_MAX = 16 };

// What only our own files say of a row; NAN, and 0 samples, launches and bits, where a file does not.
struct row_detail {
    double number[NUMBERS_MAX];     // of columns without a kind of their own: lists/columns.h
    double launch_us[LAUNCHES_MAX]; // the median of each launch of the bench; NAN: not measured in that one
    uint64_t bits; // hash of the results; equal of strategies with equal bits; 0: not told, or they vary
    uint32_t samples, launches;
    bool bits_vary; // from rank to rank, call to call or launch to launch: no bits are theirs
};

struct rows_file {
    char *path;
    size_t first, count; // its rows in `row`
    size_t missing;      // 0.0 in --benchmark mode
};

struct rows {
    struct row *row;
    struct row_detail *detail; // parallel to `row`, or NULL where no file has any
    size_t count;
    struct rows_file *files;
    size_t file_count;
};

// Reads these files. NULL where any of them is not right; nothing is read half. The caller frees the result.
struct rows *rows_read(const char *const *paths, size_t count, const struct lists *lists,
                       struct problem *problem);
void rows_free(struct rows *rows);

// The file that row `index` comes from.
const struct rows_file *rows_file_of(const struct rows *rows, size_t index);

// The text of a file in our own columns, sorted by world_size, dtype, op, mode, fusion, hidden_size,
// num_tokens, strategy (names in the order of their lists). NULL where a cell and strategy stands there
// twice, or memory runs out. The caller frees it.
char *rows_text(const struct rows *rows, const struct lists *lists, size_t *size, struct problem *problem);

// Where a row has the index of a name; NULL for kinds that are no names.
uint8_t *rows_name(struct row *row, enum column_kind kind);

// Splits as text, such as 3:1, and back; nothing is 0. False: it is none.
enum { SPLITS_TEXT_SIZE = 16 * 3 };
char *splits_print(char *out, uint64_t splits);
bool splits_parse(const char *begin, const char *end, uint64_t *splits);

// What tells slices of rows apart.
struct slice_key {
    uint64_t splits;
    uint16_t world_size;
    uint8_t dtype, op, mode, fusion;
    bool sizes_only; // no tokens and hidden sizes
};
struct slice_key slice_key_of(const struct row *row);
bool slice_key_equal(struct slice_key a, struct slice_key b);

// What a file says in place of bits that vary.
extern const char rows_bits_vary[];

// No detail.
extern const struct row_detail rows_no_detail;

static inline const struct row_detail *rows_detail_of(const struct rows *rows, size_t index) {
    return rows->detail == NULL ? &rows_no_detail : &rows->detail[index];
}

#endif
