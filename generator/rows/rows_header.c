// The first line of a benchmark file: the order of its columns, missing and unknown ones; see rows_reading.h.
#include <string.h>

#include "rows_reading.h"

// Columns without further facts: of the --benchmark mode, and of generation B.
static const char *const idle_columns[] = {"algbw_GBps", "version"};

static const struct column shape = {.name = "shape", .kind = COLUMN_SHAPE};
static const struct column ignored = {.kind = COLUMN_IGNORED};

static const struct column *find_column(const struct csv_text *field, const struct columns *columns,
                                        bool *other_name) {
    for (size_t i = 0; i < columns->count; i++) {
        const struct column *column = &columns->of[i];
        *other_name = column->other_name != NULL && csv_equals(field, column->other_name);
        if (*other_name || csv_equals(field, column->name)) return column;
    }
    return csv_equals(field, shape.name) ? &shape : &ignored;
}

static bool is_idle(const struct csv_text *field) {
    for (size_t i = 0; i < sizeof idle_columns / sizeof *idle_columns; i++) {
        if (csv_equals(field, idle_columns[i])) return true;
    }
    return false;
}

static const struct column *column_of(const struct columns *columns, const char *key) {
    const struct column *column = columns->of;
    while (strcmp(column->key, key) != 0) column++;
    return column;
}

// Enters a known column into the header. False if the header has it, or its values, already.
static bool enter_column(struct header *header, const struct column *column, const struct columns *columns) {
    if (column == &shape) {
        return enter_column(header, column_of(columns, "num_tokens"), columns) &&
               enter_column(header, column_of(columns, "hidden_size"), columns);
    }
    bool *has = &header->has[column - columns->of], is_new = !*has;
    *has = true;
    header->ours |= column->ours;
    return is_new;
}

// The first unknown column of a header.
struct unknown_column {
    bool there;
    size_t index;
    struct csv_shown name;
};

static bool fail_missing_column(const struct rows_source *source, const char *name,
                                const struct unknown_column *unknown, struct problem *problem) {
    if (unknown->there) {
        return problem_set(problem,
                           "%s:1: no column \"%s\", but an unknown one, \"%s\"; rename that if it is meant",
                           source->path, name, unknown->name.text);
    }
    return problem_set(
        problem,
        "%s:1: no column \"%s\"; TensorRT-LLM's columns are required: world_size,dtype,size,num_tokens,"
        "hidden_size,strategy,fusion,op,time (us), or those of its --benchmark mode",
        source->path, name);
}

// Checks that no required column is missing, and that unknown ones are at the end of a file of another tool.
static bool check_header(const struct rows_source *source, const struct columns *columns, size_t last_known,
                         const struct unknown_column *unknown, struct problem *problem) {
    const struct header *header = &source->header;
    for (size_t i = 0; i < columns->count; i++) {
        if (!columns->of[i].required || header->has[i]) continue;
        return fail_missing_column(source, columns->of[i].name, unknown, problem);
    }
    const struct column *low = column_of(columns, "low_us"), *high = column_of(columns, "high_us");
    bool has_low = header->has[low - columns->of], has_high = header->has[high - columns->of];
    if (has_low != has_high) {
        return fail_missing_column(source, (has_low ? high : low)->name, unknown, problem);
    }
    if (unknown->there && (header->ours || unknown->index < last_known)) {
        return problem_set(problem,
                           "%s:1: unknown column \"%s\"; columns of other tools may only follow "
                           "TensorRT-LLM's columns, in a "
                           "file without ours",
                           source->path, unknown->name.text);
    }
    return true;
}

bool rows_read_header(struct rows_source *source, const struct csv_text *line, const struct columns *columns,
                      struct problem *problem) {
    struct header *header = &source->header;
    if (memchr(line->begin, '\r', (size_t)(line->end - line->begin)) != NULL) {
        return problem_set(problem, "%s:1: a lone carriage return; lines end in LF or CRLF", source->path);
    }
    struct unknown_column unknown = {.there = false};
    size_t last_known = 0;
    const char *at = line->begin;
    for (;; at++) {
        struct csv_text field;
        struct problem detail;
        bool other_name;
        if (header->count == MAX_COLUMNS) {
            return problem_set(problem, "%s:1: more than %d columns", source->path, MAX_COLUMNS);
        }
        if (!csv_field(&at, line->end, &field, &detail)) {
            return problem_set(problem, "%s:1: %s", source->path, detail.text);
        }
        const struct column *column = find_column(&field, columns, &other_name);
        if (column != &ignored) {
            if (!enter_column(header, column, columns)) {
                return problem_set(problem, "%s:1: duplicate column \"%s\"", source->path,
                                   csv_show(&field).text);
            }
            header->zero_is_missing |= column->kind == COLUMN_TIME && other_name;
            last_known = header->count;
        } else if (!is_idle(&field) && !unknown.there) {
            unknown = (struct unknown_column){true, header->count, csv_show(&field)};
        }
        header->column[header->count++] = column;
        if (at == line->end) break;
    }
    return check_header(source, columns, last_known, &unknown, problem);
}
