// The first line of a benchmark file: which column stands where, what is missing, what nobody knows; see
// rows_reading.h.
#include <string.h>

#include "rows_reading.h"

// Columns that say nothing new: of the --benchmark mode, and of generation B.
static const char *const idle_columns[] = {"algbw_GBps", "version"};

const char rows_shape_column[] = "shape";

bool rows_cell_is(const struct csv_text *text, const char *name) {
    size_t length = strlen(name);
    return (size_t)(text->end - text->begin) == length && memcmp(text->begin, name, length) == 0;
}

static enum column find_column(const struct csv_text *cell, bool *benchmark_name) {
    for (enum column column = 0; column < COLUMNS; column++) {
        const struct column_name *row = &rows_columns[column];
        *benchmark_name = row->benchmark_name != NULL && rows_cell_is(cell, row->benchmark_name);
        if (*benchmark_name || rows_cell_is(cell, row->name)) return column;
    }
    return rows_cell_is(cell, rows_shape_column) ? COLUMN_SHAPE : COLUMN_IGNORED;
}

static bool is_idle(const struct csv_text *cell) {
    for (size_t i = 0; i < sizeof idle_columns / sizeof *idle_columns; i++) {
        if (rows_cell_is(cell, idle_columns[i])) return true;
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

static bool fail_missing_column(const struct rows_source *source, enum column column,
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
static bool check_layout(const struct rows_source *source, size_t last_known,
                         const struct unknown_column *unknown, struct problem *problem) {
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

bool rows_read_header(struct rows_source *source, const struct csv_text *line, struct problem *problem) {
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
