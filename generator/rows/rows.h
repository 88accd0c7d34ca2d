// Rows: the times of a strategy in a cell, from benchmark files. Reads the dialects in use (TensorRT-LLM's
// generations B, C and D, its --benchmark mode, ours) and writes ours.
//
// Columns are found by their names. Unknown columns at the end of a file without columns of our own are
// ignored, as by other readers; anywhere else an unknown column is an error, because it may be misspelt.
#ifndef GENTABLES_ROWS_H
#define GENTABLES_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "lists/names.h"
#include "system/file.h"

// The hidden size, in memory, of a row that has a size only. In files its tokens and hidden size are empty;
// in memory its tokens are its bytes.
#define HIDDEN_SIZE_NONE UINT32_MAX

// A cell: a table has one choice for each. Names are indices into the lists.
struct cell_key {
    // Of an alltoallv: the weights of the destinations, each plus one in four bits, the first lowest; 0:
    // none.
    uint64_t splits;
    uint32_t hidden_size, num_tokens;
    uint16_t world_size, nodes; // ranks, and the nodes over which they are spread evenly; 1: one node
    uint8_t dtype, op, mode, fusion;
};

static inline bool cell_key_equal(const struct cell_key *a, const struct cell_key *b) {
    return a->num_tokens == b->num_tokens && a->hidden_size == b->hidden_size && a->fusion == b->fusion &&
           a->world_size == b->world_size && a->nodes == b->nodes && a->dtype == b->dtype && a->op == b->op &&
           a->mode == b->mode && a->splits == b->splits;
}

struct row {
    double time_us; // the median, positive
    uint64_t size_bytes;
    struct cell_key key;
    uint32_t line;
    uint8_t strategy, placement, accumulate; // accumulate may be NAME_NONE
};

enum { LAUNCHES_MAX = 32 };

// The largest token count or hidden size.
enum { SHAPE_MOST = INT32_MAX };

// Times outside these limits are no measurements: 1 ps and 11 days.
#define TIME_LEAST_US 1e-6
#define TIME_MOST_US  1e12

// Values that only our own files have; without them NAN, and 0 samples, launches and bits.
struct row_detail {
    double number[NUMBERS_MAX];     // of columns without a kind of their own: lists/columns.h
    double launch_us[LAUNCHES_MAX]; // the median of each launch of the bench; NAN: not measured in it
    uint64_t bits; // hash of the results, equal for strategies with equal results; 0: unknown, or they vary
    uint32_t samples, launches;
    bool bits_vary; // between ranks, calls or launches
};

struct rows_file {
    char *path;
    size_t first, count; // its rows in `row`
    size_t missing;      // rows without a time: 0.0 in --benchmark mode
};

struct rows {
    struct row *row;
    struct row_detail *detail; // parallel to `row`; NULL if no file has any
    size_t count;
    struct rows_file *files;
    size_t file_count;
};

// Reads these files. NULL if any of them has an error. The caller frees the result.
struct rows *rows_read(const char *const *paths, size_t count, const struct lists *lists,
                       struct problem *problem);
void rows_free(struct rows *rows);

// The file of row `index`.
const struct rows_file *rows_file_of(const struct rows *rows, size_t index);

// The text of a file in our own columns, sorted by nodes, world_size, dtype, op, mode, splits, fusion,
// hidden_size, num_tokens, strategy (names in the order of their lists). NULL if two rows are of the same
// cell and strategy, or memory runs out. The caller frees it.
char *rows_text(const struct rows *rows, const struct lists *lists, size_t *size, struct problem *problem);

// The index of a name in a row; NULL for columns of other kinds.
uint8_t *rows_name(struct row *row, enum column_kind kind);

// Splits as text, such as 3:1, and back; 0 is an empty text. splits_parse returns false for other texts.
enum { SPLITS_TEXT_SIZE = 16 * 3 };
char *splits_print(char *out, uint64_t splits);
bool splits_parse(const char *begin, const char *end, uint64_t *splits);

// The fields that all rows of a slice share.
struct slice_key {
    uint64_t splits;
    uint16_t world_size, nodes;
    uint8_t dtype, op, mode, fusion;
    bool sizes_only; // without tokens and hidden sizes
};
struct slice_key slice_key_of(const struct cell_key *key);
bool slice_key_equal(struct slice_key a, struct slice_key b);

// The text in the column of bits for bits that vary.
extern const char rows_bits_vary[];

// A row without details.
extern const struct row_detail rows_no_detail;

static inline const struct row_detail *rows_detail_of(const struct rows *rows, size_t index) {
    return rows->detail == NULL ? &rows_no_detail : &rows->detail[index];
}

#endif
