// Benchmark files to rows: fast, in parallel, refusing what is not right; see rows.h. Writing is in
// rows_write.c, the Lua side in rows_lua.c.
//
// A file is mapped and cut into pieces at line ends. The lines of all pieces are counted first, so that every
// piece knows the number of its first line and its place among the rows, and then parsed into one array. A
// line begins much like the one before it: cells that are byte for byte those of the previous line keep their
// values.
#include "rows.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "large.h"
#include "number.h"
#include "parallel.h"

enum { MAX_COLUMNS = 64, PIECE_SIZE = 1 << 20, HEADER_LINES = 1 };

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

// Columns that say nothing new: of the --benchmark mode, and of generation B.
static const char *const idle_columns[] = {"algbw_GBps", "version"};

static const char shape_column[] = "shape";

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
        out = number_print_unsigned(out, splits & 15);
    }
    return out;
}

bool splits_parse(const char *begin, const char *end, uint64_t *splits) {
    *splits = 0;
    for (unsigned shift = 0; begin < end; shift += 4) {
        const char *colon = memchr(begin, ':', (size_t)(end - begin));
        const char *stop = colon == NULL ? end : colon;
        uint64_t weight;
        if (shift == 64 || !number_parse_unsigned(begin, stop, 15, &weight) || weight == 0) return false;
        *splits |= weight << shift;
        if (colon != NULL && colon + 1 == end) return false;
        begin = stop + 1;
    }
    return true;
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

// What the header of a file says.
struct layout {
    enum column column[MAX_COLUMNS];
    size_t count;
    bool has[COLUMNS];
    bool ours;            // it has columns that only we write
    bool zero_is_missing; // --benchmark mode
};

struct source {
    const char *path;
    struct file_map map;
    struct csv_text body; // after the header
    struct layout layout;
    uint32_t world_size; // that of the file's name, or 0
};

// A run of whole lines of one file.
struct piece {
    const struct source *source;
    struct csv_text text;
    size_t first_line, first_row, lines;
    size_t missing, empty;
    bool failed;
    struct problem problem;
};

// ---- the header

static bool equals(const struct csv_text *text, const char *name) {
    size_t length = strlen(name);
    return (size_t)(text->end - text->begin) == length && memcmp(text->begin, name, length) == 0;
}

static enum column find_column(const struct csv_text *cell, bool *benchmark_name) {
    for (enum column column = 0; column < COLUMNS; column++) {
        const struct column_name *row = &rows_columns[column];
        *benchmark_name = row->benchmark_name != NULL && equals(cell, row->benchmark_name);
        if (*benchmark_name || equals(cell, row->name)) return column;
    }
    return equals(cell, shape_column) ? COLUMN_SHAPE : COLUMN_IGNORED;
}

static bool is_idle(const struct csv_text *cell) {
    for (size_t i = 0; i < sizeof idle_columns / sizeof *idle_columns; i++) {
        if (equals(cell, idle_columns[i])) return true;
    }
    return false;
}

// Enters a known column into the layout. False: it, or what it says, stands there already.
static bool enter_column(struct layout *layout, enum column column) {
    if (column == COLUMN_SHAPE) {
        return enter_column(layout, COLUMN_NUM_TOKENS) && enter_column(layout, COLUMN_HIDDEN_SIZE);
    }
    bool is_new = !layout->has[column];
    layout->has[column] = true;
    layout->ours |= rows_columns[column].ours;
    return is_new;
}

// The first column of a header that is not known.
struct unknown_column {
    bool there;
    size_t place;
    struct csv_shown name;
};

static bool fail_missing_column(const struct source *source, enum column column,
                                const struct unknown_column *unknown, struct problem *problem) {
    const char *name = rows_columns[column].name;
    if (unknown->there) {
        return problem_set(
            problem, "%s:1: there is no column \"%s\", but an unknown one, \"%s\"; rename it if it is that",
            source->path, name, unknown->name.text);
    }
    return problem_set(
        problem,
        "%s:1: there is no column \"%s\"; expected are TensorRT-LLM's columns world_size,dtype,size,"
        "num_tokens,hidden_size,strategy,fusion,op,time (us), or its --benchmark mode's",
        source->path, name);
}

// Whether all that must be there is, and what is not known stands at the end of a file that is not ours.
static bool check_layout(const struct source *source, size_t last_known, const struct unknown_column *unknown,
                         struct problem *problem) {
    const struct layout *layout = &source->layout;
    for (enum column column = 0; column < COLUMNS; column++) {
        bool interval_half = (column == COLUMN_LOW && layout->has[COLUMN_HIGH]) ||
                             (column == COLUMN_HIGH && layout->has[COLUMN_LOW]);
        if ((rows_columns[column].required || interval_half) && !layout->has[column]) {
            return fail_missing_column(source, column, unknown, problem);
        }
    }
    if (unknown->there && (layout->ours || unknown->place < last_known)) {
        return problem_set(
            problem,
            "%s:1: unknown column \"%s\"; other tools' columns may only follow TensorRT-LLM's, at the "
            "end, and not among ours",
            source->path, unknown->name.text);
    }
    return true;
}

static bool read_header(struct source *source, const struct csv_text *line, struct problem *problem) {
    struct layout *layout = &source->layout;
    if (memchr(line->begin, '\r', (size_t)(line->end - line->begin)) != NULL) {
        return problem_set(problem, "%s:1: a lone carriage return; lines end in LF or CRLF", source->path);
    }
    struct unknown_column unknown = {.there = false};
    struct csv_scratch scratch;
    size_t last_known = 0;
    const char *at = line->begin;
    for (;; at++) {
        struct csv_text cell;
        struct problem detail;
        bool benchmark_name;
        if (layout->count == MAX_COLUMNS) {
            return problem_set(problem, "%s:1: more than %d columns", source->path, MAX_COLUMNS);
        }
        if (!csv_cell(&at, line->end, &scratch, &cell, &detail)) {
            return problem_set(problem, "%s:1: %s", source->path, detail.text);
        }
        enum column column = find_column(&cell, &benchmark_name);
        if (column != COLUMN_IGNORED) {
            if (!enter_column(layout, column)) {
                return problem_set(problem, "%s:1: the column \"%s\" stands there twice", source->path,
                                   csv_show(&cell).text);
            }
            layout->zero_is_missing |= column == COLUMN_TIME && benchmark_name;
            last_known = layout->count;
        } else if (!is_idle(&cell) && !unknown.there) {
            unknown = (struct unknown_column){true, layout->count, csv_show(&cell)};
        }
        layout->column[layout->count++] = column;
        if (at == line->end) break;
    }
    return check_layout(source, last_known, &unknown, problem);
}

// The N of benchmark.tpN.ARCH.csv, or 0 where the name is another.
static uint32_t world_size_of(const char *path) {
    static const char prefix[] = "benchmark.tp";
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    if (strncmp(name, prefix, strlen(prefix)) != 0) return 0;
    const char *digits = name + strlen(prefix), *dot = strchr(digits, '.');
    uint64_t world_size;
    if (dot == NULL || !number_parse_unsigned(digits, dot, UINT16_MAX, &world_size)) return 0;
    return (uint32_t)world_size;
}

static bool open_source(struct source *source, const char *path, struct problem *problem) {
    *source = (struct source){.path = path, .world_size = world_size_of(path)};
    if (!file_open(path, &source->map, problem)) return false;
    struct csv_text text = {source->map.data, source->map.data + source->map.size}, header;
    struct problem detail;
    if (!csv_begin(&text, &detail)) return problem_set(problem, "%s: %s", path, detail.text);
    if (!csv_line(&text, &header)) {
        return problem_set(
            problem, "%s: is empty; a line with the names of the columns, then rows, would be right", path);
    }
    source->body = text;
    return read_header(source, &header, problem);
}

// ---- a line

struct parser {
    const struct piece *piece;
    const struct lists *lists;
    struct problem *problem;
    size_t line; // its number in the file
    // The line before, and what it said. cell_end: where each of its cells ends, from its beginning.
    const char *previous;
    size_t previous_length;
    size_t cell_end[MAX_COLUMNS];
    bool no_tokens, no_hidden_size; // empty
    struct row row;
    struct row_detail detail;
};

static bool fail_cell(struct parser *parser, enum column column, const struct csv_text *cell,
                      const char *what) {
    bool carriage_return = memchr(cell->begin, '\r', (size_t)(cell->end - cell->begin)) != NULL;
    return problem_set(parser->problem, "%s:%zu: %s is \"%s\"; %s", parser->piece->source->path, parser->line,
                       rows_columns[column].name, csv_show(cell).text,
                       carriage_return ? "a lone carriage return stands there; lines end in LF or CRLF"
                                       : what);
}

static bool fail_name(struct parser *parser, enum column column, const struct csv_text *cell,
                      const struct names *names) {
    char known[800] = "that is not known; one of ";
    for (size_t i = 0; i < names->count; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i == 0 ? "" : ", ", names->name[i]);
    }
    return fail_cell(parser, column, cell, known);
}

static bool parse_name(struct parser *parser, enum column column, const struct csv_text *cell,
                       const struct names *names, uint8_t *index) {
    *index = names_find(names, cell->begin, cell->end);
    return *index != NAME_NONE || fail_name(parser, column, cell, names);
}

static bool parse_count(struct parser *parser, enum column column, const struct csv_text *cell,
                        uint64_t limit, uint64_t *value) {
    if (number_parse_unsigned(cell->begin, cell->end, limit, value) && *value > 0) return true;
    return fail_cell(parser, column, cell, "a whole number above 0 would be right");
}

static bool parse_time(struct parser *parser, const struct csv_text *cell) {
    double *time = &parser->row.time_us;
    if (!number_parse(cell->begin, cell->end, time)) {
        return fail_cell(parser, COLUMN_TIME, cell, "a number of microseconds would be right");
    }
    if (*time > 0 || (*time == 0 && parser->piece->source->layout.zero_is_missing)) return true;
    return fail_cell(parser, COLUMN_TIME, cell,
                     "a measured time is above 0; leave out what was not measured");
}

// A number of our own columns; an empty cell says that there is none.
static bool parse_detail(struct parser *parser, enum column column, const struct csv_text *cell) {
    double *value = rows_detail_number(&parser->detail, column);
    *value = NAN;
    if (cell->begin == cell->end) return true;
    if (number_parse(cell->begin, cell->end, value) && *value >= 0) return true;
    return fail_cell(parser, column, cell, "a number of microseconds, or nothing, would be right");
}

// 16x4096: tokens and hidden size.
static bool parse_shape(struct parser *parser, const struct csv_text *cell) {
    struct cell_key *key = &parser->row.key;
    uint64_t num_tokens = 0, hidden_size = 0;
    const char *x = cell->begin;
    while (x < cell->end && *x != 'x') x++;
    if (x == cell->end || !number_parse_unsigned(cell->begin, x, INT32_MAX, &num_tokens) || num_tokens == 0 ||
        !number_parse_unsigned(x + 1, cell->end, INT32_MAX, &hidden_size) || hidden_size == 0) {
        return problem_set(parser->problem,
                           "%s:%zu: %s is \"%s\"; tokens and hidden size, such as 16x4096, "
                           "would be right",
                           parser->piece->source->path, parser->line, shape_column, csv_show(cell).text);
    }
    key->num_tokens = (uint32_t)num_tokens;
    key->hidden_size = (uint32_t)hidden_size;
    return true;
}

// Times with semicolons between them, one for each launch; an empty one: not measured in that launch.
static bool parse_launches(struct parser *parser, const struct csv_text *cell) {
    struct row_detail *detail = &parser->detail;
    detail->launches = 0;
    const char *at = cell->begin;
    while (at < cell->end) {
        const char *separator = memchr(at, ';', (size_t)(cell->end - at));
        const char *end = separator == NULL ? cell->end : separator;
        double *time = &detail->launch_us[detail->launches];
        *time = NAN;
        bool right =
            detail->launches < LAUNCHES_MAX && (at == end || (number_parse(at, end, time) && *time > 0));
        if (!right) {
            return fail_cell(parser, COLUMN_LAUNCHES, cell,
                             "up to 16 times in microseconds with semicolons between them would be right");
        }
        detail->launches++;
        at = end + 1;
    }
    return true;
}

static bool parse_bits(struct parser *parser, const struct csv_text *cell) {
    parser->detail.bits = 0;
    parser->detail.bits_vary = equals(cell, rows_bits_vary);
    if (parser->detail.bits_vary) return true;
    if (number_parse_hex(cell->begin, cell->end, &parser->detail.bits)) return true;
    return fail_cell(parser, COLUMN_BITS, cell, "16 hexadecimal digits, varies or nothing would be right");
}

static bool parse_cell(struct parser *parser, enum column column, const struct csv_text *cell) {
    const struct lists *lists = parser->lists;
    struct cell_key *key = &parser->row.key;
    uint64_t count = 0;
    bool empty = cell->begin == cell->end;
    switch (column) {
    case COLUMN_WORLD_SIZE:
        if (!parse_count(parser, column, cell, UINT16_MAX, &count)) return false;
        key->world_size = (uint16_t)count;
        return true;
    case COLUMN_SIZE: return parse_count(parser, column, cell, INT64_MAX, &parser->row.size_bytes);
    case COLUMN_NUM_TOKENS:
        parser->no_tokens = empty;
        if (empty) return true;
        if (!parse_count(parser, column, cell, INT32_MAX, &count)) return false;
        key->num_tokens = (uint32_t)count;
        return true;
    case COLUMN_HIDDEN_SIZE:
        parser->no_hidden_size = empty;
        if (empty) return true;
        if (!parse_count(parser, column, cell, INT32_MAX, &count)) return false;
        key->hidden_size = (uint32_t)count;
        return true;
    case COLUMN_SAMPLES:
        parser->detail.samples = 0;
        if (empty) return true;
        if (!parse_count(parser, column, cell, UINT32_MAX, &count)) return false;
        parser->detail.samples = (uint32_t)count;
        return true;
    case COLUMN_DTYPE: return parse_name(parser, column, cell, &lists->dtypes, &key->dtype);
    case COLUMN_STRATEGY: return parse_name(parser, column, cell, &lists->strategies, &parser->row.strategy);
    case COLUMN_FUSION: return parse_name(parser, column, cell, &lists->fusions, &key->fusion);
    case COLUMN_OP: return parse_name(parser, column, cell, &lists->ops, &key->op);
    case COLUMN_MODE: return parse_name(parser, column, cell, &lists->modes, &key->mode);
    case COLUMN_PLACEMENT:
        return parse_name(parser, column, cell, &lists->placements, &parser->row.placement);
    case COLUMN_ACCUMULATE:
        parser->row.accumulate = NAME_NONE;
        return empty || parse_name(parser, column, cell, &lists->accumulates, &parser->row.accumulate);
    case COLUMN_TIME: return parse_time(parser, cell);
    case COLUMN_SHAPE: return parse_shape(parser, cell);
    case COLUMN_LAUNCHES: return parse_launches(parser, cell);
    case COLUMN_BITS: return parse_bits(parser, cell);
    case COLUMN_SPLITS:
        if (splits_parse(cell->begin, cell->end, &key->splits)) return true;
        return fail_cell(parser, column, cell,
                         "weights from 1 to 15 such as 3:1, or nothing, would be right");
    case COLUMN_IGNORED: return true;
    default: return parse_detail(parser, column, cell);
    }
}

// How many bytes two texts begin with alike.
static size_t common_prefix(const char *a, const char *b, size_t limit) {
    size_t length = 0;
    for (; length + sizeof(uint64_t) <= limit; length += sizeof(uint64_t)) {
        uint64_t left, right;
        memcpy(&left, a + length, sizeof left);
        memcpy(&right, b + length, sizeof right);
        if (left != right) break;
    }
    while (length < limit && a[length] == b[length]) length++;
    return length;
}

// A size without tokens and hidden size.
static bool complete_shape(struct parser *parser) {
    struct row *row = &parser->row;
    if (!parser->no_tokens && !parser->no_hidden_size) return true;
    if (parser->no_tokens != parser->no_hidden_size || row->size_bytes >= HIDDEN_SIZE_NONE) {
        return problem_set(
            parser->problem,
            "%s:%zu: num_tokens and hidden_size are whole numbers above 0, or both empty, for a "
            "size below 4 GiB",
            parser->piece->source->path, parser->line);
    }
    row->key.hidden_size = HIDDEN_SIZE_NONE;
    row->key.num_tokens = (uint32_t)row->size_bytes;
    return true;
}

// What holds of a row as a whole.
static bool check_row(struct parser *parser) {
    const struct source *source = parser->piece->source;
    const struct row *row = &parser->row;
    if (!complete_shape(parser)) return false;
    if (source->world_size != 0 && row->key.world_size != source->world_size) {
        return problem_set(
            parser->problem,
            "%s:%zu: world_size is %u in a file of TP %u (mixed worlds); its place is benchmark.tp%u.*.csv",
            source->path, parser->line, row->key.world_size, source->world_size, row->key.world_size);
    }
    if (parser->detail.low_us > row->time_us || parser->detail.high_us < row->time_us) {
        return problem_set(parser->problem,
                           "%s:%zu: time (us) lies outside low (us) to high (us), its interval", source->path,
                           parser->line);
    }
    return true;
}

// A line with a wrong number of cells mostly has a wrong cell too; how many there are says more.
static bool fail_count(struct parser *parser, const struct csv_text *line) {
    const struct layout *layout = &parser->piece->source->layout;
    size_t count = 0;
    for (const char *at = line->begin;; at++) {
        struct csv_scratch scratch;
        struct csv_text cell;
        struct problem ignored;
        count++;
        if (!csv_cell(&at, line->end, &scratch, &cell, &ignored) || at == line->end) break;
    }
    if (count == layout->count) return false;
    return problem_set(parser->problem, "%s:%zu: %s cells than the header's %zu", parser->piece->source->path,
                       parser->line, count < layout->count ? "fewer" : "more", layout->count);
}

// Whether the cell at `at` is followed by another and reads as that of the line before, which began at
// `begin`.
static bool is_as_before(const struct parser *parser, size_t column, size_t begin, const char *at,
                         const char *end) {
    if (parser->previous == NULL) return false;
    size_t length = parser->cell_end[column] - begin;
    if ((size_t)(end - at) <= length || at[length] != ',') return false;
    return memcmp(parser->previous + begin, at, length) == 0;
}

static bool parse_line(struct parser *parser, const struct csv_text *line) {
    const struct layout *layout = &parser->piece->source->layout;
    size_t length = (size_t)(line->end - line->begin), column = 0;
    if (parser->previous != NULL) {
        size_t limit = length < parser->previous_length ? length : parser->previous_length;
        size_t alike = common_prefix(parser->previous, line->begin, limit);
        while (column < layout->count - 1 && parser->cell_end[column] < alike) column++;
    }
    size_t begin = column == 0 ? 0 : parser->cell_end[column - 1] + 1; // of the cell, in the line before
    const char *at = line->begin + begin;
    for (;; column++, at++) {
        struct csv_scratch scratch;
        struct csv_text cell;
        struct problem detail;
        if (column < layout->count && is_as_before(parser, column, begin, at, line->end)) {
            at += parser->cell_end[column] - begin;
            begin = parser->cell_end[column] + 1;
            parser->cell_end[column] = (size_t)(at - line->begin);
            continue;
        }
        if (!csv_cell(&at, line->end, &scratch, &cell, &detail)) {
            return problem_set(parser->problem, "%s:%zu: %s", parser->piece->source->path, parser->line,
                               detail.text);
        }
        if (column == layout->count) break;
        if (!parse_cell(parser, layout->column[column], &cell)) return fail_count(parser, line);
        begin = parser->cell_end[column] + 1;
        parser->cell_end[column] = (size_t)(at - line->begin);
        if (at == line->end) break;
    }
    if (column != layout->count - 1) return fail_count(parser, line);
    parser->previous = line->begin;
    parser->previous_length = length;
    return check_row(parser);
}

// ---- a piece

// In blocks that a byte can count, which compilers turn into vector code.
static void count_lines(struct piece *piece) {
    size_t lines = 0;
    const char *at = piece->text.begin, *end = piece->text.end;
    for (; end - at >= UINT8_MAX; at += UINT8_MAX) {
        uint8_t block = 0;
        for (int i = 0; i < UINT8_MAX; i++) block = (uint8_t)(block + (at[i] == '\n'));
        lines += block;
    }
    for (; at < end; at++) lines += *at == '\n';
    if (piece->text.end > piece->text.begin && piece->text.end[-1] != '\n') lines++;
    piece->lines = lines;
}

// What a row says where its file has no such column.
static struct row default_row(const struct lists *lists) {
    static const char op[] = "allreduce", unknown[] = "unknown";
    struct row row = {.accumulate = NAME_NONE};
    row.key.op = names_find(&lists->ops, op, op + strlen(op));
    row.key.mode = names_find(&lists->modes, unknown, unknown + strlen(unknown));
    row.placement = names_find(&lists->placements, unknown, unknown + strlen(unknown));
    return row;
}

// Parses a piece to its place in `rows`. A line without a row (empty, or a missing time) leaves time_us at 0.
static void parse_piece(struct piece *piece, const struct lists *lists, struct rows *rows) {
    struct parser parser = {.piece = piece, .lists = lists, .problem = &piece->problem};
    parser.row = default_row(lists);
    parser.detail = rows_no_detail;
    struct csv_text text = piece->text, line;
    for (size_t i = 0; csv_line(&text, &line); i++) {
        struct row *row = &rows->row[piece->first_row + i];
        parser.line = piece->first_line + i;
        if (line.begin == line.end) {
            row->time_us = 0;
            piece->empty++;
            continue;
        }
        if (!parse_line(&parser, &line)) {
            piece->failed = true;
            return;
        }
        parser.row.line = (uint32_t)parser.line;
        *row = parser.row;
        if (rows->detail != NULL) rows->detail[piece->first_row + i] = parser.detail;
        piece->missing += row->time_us == 0;
    }
}

// ---- all pieces

struct reading {
    struct piece *pieces;
    const struct lists *lists;
    struct rows *rows;
};

static void count_task(void *context, size_t index) {
    count_lines(&((struct reading *)context)->pieces[index]);
}

static void parse_task(void *context, size_t index) {
    struct reading *reading = context;
    parse_piece(&reading->pieces[index], reading->lists, reading->rows);
}

// How many threads the pieces are worth: small input is not worth a second one.
static size_t count_threads(const struct piece *pieces, size_t count) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++) size += (size_t)(pieces[i].text.end - pieces[i].text.begin);
    return 1 + size / PIECE_SIZE;
}

// Cuts the bodies of all sources at line ends. Returns the pieces (the caller frees them), or NULL.
static struct piece *cut(const struct source *sources, size_t source_count, size_t *count) {
    size_t limit = 0;
    for (size_t i = 0; i < source_count; i++) limit += sources[i].map.size / PIECE_SIZE + 1;
    struct piece *pieces = calloc(limit, sizeof *pieces);
    if (pieces == NULL) return NULL;
    *count = 0;
    for (size_t i = 0; i < source_count; i++) {
        struct csv_text rest = sources[i].body;
        do {
            struct csv_text part = rest;
            if (part.end - part.begin > PIECE_SIZE) {
                const char *newline =
                    memchr(part.begin + PIECE_SIZE, '\n', (size_t)(part.end - part.begin) - PIECE_SIZE);
                if (newline != NULL) part.end = newline + 1;
            }
            pieces[(*count)++] = (struct piece){.source = &sources[i], .text = part};
            rest.begin = part.end;
        } while (rest.begin < rest.end);
    }
    return pieces;
}

// ---- the whole

static bool allocate_rows(struct rows *rows, const struct source *sources, size_t source_count,
                          size_t lines) {
    bool detail = false;
    for (size_t i = 0; i < source_count; i++) detail |= sources[i].layout.ours;
    rows->row = large_allocate((lines + 1) * sizeof *rows->row);
    if (detail) rows->detail = large_allocate((lines + 1) * sizeof *rows->detail);
    rows->files = calloc(source_count + 1, sizeof *rows->files);
    if (rows->row == NULL || rows->files == NULL || (detail && rows->detail == NULL)) return false;
    for (size_t i = 0; i < source_count; i++) {
        rows->files[i].path = strdup(sources[i].path);
        if (rows->files[i].path == NULL) return false;
        rows->file_count++;
    }
    return true;
}

// Numbers the lines and rows of the pieces; returns how many lines there are.
static size_t number_pieces(struct piece *pieces, size_t count) {
    size_t lines = 0;
    for (size_t i = 0; i < count; i++) {
        bool same_file = i > 0 && pieces[i].source == pieces[i - 1].source;
        pieces[i].first_line = same_file ? pieces[i - 1].first_line + pieces[i - 1].lines : HEADER_LINES + 1;
        pieces[i].first_row = lines;
        lines += pieces[i].lines;
    }
    return lines;
}

// Closes the gaps that lines without a row left, and notes which rows are whose.
static void settle(struct rows *rows, const struct source *sources, const struct piece *pieces,
                   size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct rows_file *file = &rows->files[pieces[i].source - sources];
        bool same_file = i > 0 && pieces[i].source == pieces[i - 1].source;
        if (!same_file) file->first = rows->count;
        size_t first = pieces[i].first_row, lines = pieces[i].lines;
        size_t kept = lines - pieces[i].missing - pieces[i].empty;
        if (kept == lines && first == rows->count) {
            rows->count += lines;
        } else {
            for (size_t j = first; j < first + lines; j++) {
                if (rows->row[j].time_us == 0) continue;
                rows->row[rows->count] = rows->row[j];
                if (rows->detail != NULL) rows->detail[rows->count] = rows->detail[j];
                rows->count++;
            }
        }
        file->count += kept;
        file->missing += pieces[i].missing;
    }
}

// A file whose name does not say its world size has one all the same.
static bool check_worlds(const struct rows *rows, const struct source *sources, struct problem *problem) {
    for (size_t i = 0; i < rows->file_count; i++) {
        if (sources[i].world_size != 0) continue;
        const struct row *row = &rows->row[rows->files[i].first];
        for (size_t j = 1; j < rows->files[i].count; j++) {
            if (row[j].key.world_size == row[0].key.world_size) continue;
            return problem_set(
                problem,
                "%s:%u: world_size is %u, and %u in line %u (mixed worlds); a file for each would be right",
                sources[i].path, row[j].line, row[j].key.world_size, row[0].key.world_size, row[0].line);
        }
    }
    return true;
}

static bool read_pieces(struct rows *rows, const struct source *sources, size_t source_count,
                        const struct lists *lists, struct problem *problem) {
    size_t count;
    struct piece *pieces = cut(sources, source_count, &count);
    if (pieces == NULL) return problem_set(problem, "out of memory");
    struct reading reading = {pieces, lists, rows};
    parallel_run(count, count_threads(pieces, count), count_task, &reading);
    bool ok = allocate_rows(rows, sources, source_count, number_pieces(pieces, count));
    if (!ok) problem_set(problem, "out of memory");
    if (ok) parallel_run(count, count_threads(pieces, count), parse_task, &reading);
    for (size_t i = 0; ok && i < count; i++) {
        if (!pieces[i].failed) continue;
        *problem = pieces[i].problem;
        ok = false;
    }
    if (ok) settle(rows, sources, pieces, count);
    free(pieces);
    return ok && check_worlds(rows, sources, problem);
}

struct rows *rows_read(const char *const *paths, size_t count, const struct lists *lists,
                       struct problem *problem) {
    struct source *sources = calloc(count + 1, sizeof *sources);
    struct rows *rows = calloc(1, sizeof *rows);
    bool ok = sources != NULL && rows != NULL;
    if (!ok) problem_set(problem, "out of memory");
    for (size_t i = 0; ok && i < count; i++) ok = open_source(&sources[i], paths[i], problem);
    ok = ok && read_pieces(rows, sources, count, lists, problem);
    for (size_t i = 0; sources != NULL && i < count; i++) file_close(&sources[i].map);
    free(sources);
    if (ok) return rows;
    rows_free(rows);
    return NULL;
}

void rows_free(struct rows *rows) {
    if (rows == NULL) return;
    for (size_t i = 0; i < rows->file_count; i++) free(rows->files[i].path);
    free(rows->files);
    free(rows->row);
    free(rows->detail);
    free(rows);
}

const struct rows_file *rows_file_of(const struct rows *rows, size_t index) {
    for (size_t i = 0; i < rows->file_count; i++) {
        if (index - rows->files[i].first < rows->files[i].count) return &rows->files[i];
    }
    return NULL;
}
