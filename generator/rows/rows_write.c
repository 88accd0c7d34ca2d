// Writes rows as the text of a benchmark file: our own columns, sorted, four decimals. See rows.h.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/number.h"
#include "rows.h"

// Enough for numbers in all columns, launches, splits, and the longest names that lists can have.
enum { LINE_SIZE = (COLUMNS_MAX + LAUNCHES_MAX) * (NUMBER_TEXT_SIZE + 1) + SPLITS_TEXT_SIZE + 7 * UINT8_MAX };

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_rows(const struct row *a, const struct row *b) {
    int order = compare_numbers(a->key.nodes, b->key.nodes);
    if (order == 0) order = compare_numbers(a->key.world_size, b->key.world_size);
    if (order == 0) order = compare_numbers(a->key.dtype, b->key.dtype);
    if (order == 0) order = compare_numbers(a->key.op, b->key.op);
    if (order == 0) order = compare_numbers(a->key.mode, b->key.mode);
    if (order == 0) order = compare_numbers(a->key.splits, b->key.splits);
    if (order == 0) order = compare_numbers(a->key.fusion, b->key.fusion);
    if (order == 0) order = compare_numbers(a->key.hidden_size, b->key.hidden_size);
    if (order == 0) order = compare_numbers(a->key.num_tokens, b->key.num_tokens);
    if (order == 0) order = compare_numbers(a->strategy, b->strategy);
    return order;
}

static int compare_indices(const void *a, const void *b, void *rows) {
    const struct row *row = ((const struct rows *)rows)->row;
    return compare_rows(&row[*(const size_t *)a], &row[*(const size_t *)b]);
}

static char *put_name(char *out, const struct names *names, uint8_t index) {
    if (index == NAME_NONE) return out;
    memcpy(out, names->name[index], names->length[index]);
    return out + names->length[index];
}

static char *put_launches(char *out, const struct row_detail *detail) {
    for (size_t i = 0; i < detail->launches; i++) {
        if (i > 0) *out++ = ';';
        if (!isnan(detail->launch_us[i])) out = number_print_fixed4(out, detail->launch_us[i]);
    }
    return out;
}

static char *put_bits(char *out, const struct row_detail *detail) {
    if (detail->bits_vary) return stpcpy(out, rows_bits_vary);
    return detail->bits == 0 ? out : number_print_hex(out, detail->bits);
}

static char *put_number(char *out, double value, bool whole) {
    if (isnan(value)) return out;
    return whole ? number_print_unsigned(out, (uint64_t)value) : number_print_fixed4(out, value);
}

static bool spans_nodes(const struct cell_key *key) {
    return key->nodes > 1;
}

static char *put_cell(char *out, const struct column *column, struct row *row,
                      const struct row_detail *detail) {
    const struct cell_key *key = &row->key;
    bool has_shape = key->hidden_size != HIDDEN_SIZE_NONE;
    switch (column->kind) {
    case COLUMN_WORLD_SIZE: return number_print_unsigned(out, key->world_size);
    case COLUMN_SIZE: return number_print_unsigned(out, row->size_bytes);
    case COLUMN_NUM_TOKENS: return has_shape ? number_print_unsigned(out, key->num_tokens) : out;
    case COLUMN_HIDDEN_SIZE: return has_shape ? number_print_unsigned(out, key->hidden_size) : out;
    case COLUMN_TIME: return number_print_fixed4(out, row->time_us);
    case COLUMN_SAMPLES: return detail->samples == 0 ? out : number_print_unsigned(out, detail->samples);
    case COLUMN_LAUNCHES: return put_launches(out, detail);
    case COLUMN_BITS: return put_bits(out, detail);
    case COLUMN_SPLITS: return splits_print(out, key->splits);
    case COLUMN_NODES: return spans_nodes(key) ? number_print_unsigned(out, key->nodes) : out;
    case COLUMN_RANKS_PER_NODE:
        return spans_nodes(key) ? number_print_unsigned(out, key->world_size / key->nodes) : out;
    case COLUMN_NUMBER: return put_number(out, detail->number[column->number], column->whole);
    default: return put_name(out, column->names, *rows_name(row, column->kind));
    }
}

// Whether a row has a value in a column that is written only if some row has one.
static bool is_filled(const struct column *column, const struct row *row, const struct row_detail *detail) {
    switch (column->kind) {
    case COLUMN_SPLITS: return row->key.splits != 0;
    case COLUMN_NODES:
    case COLUMN_RANKS_PER_NODE: return spans_nodes(&row->key);
    default: return !isnan(detail->number[column->number]);
    }
}

// The number of columns of the file.
static size_t count_columns(const struct rows *rows, const struct columns *columns) {
    size_t count = 0;
    while (count < columns->count && !columns->of[count].filled) count++;
    for (size_t i = 0; i < rows->count; i++) {
        const struct row_detail *detail = rows_detail_of(rows, i);
        for (size_t c = columns->count; c > count; c--) {
            if (is_filled(&columns->of[c - 1], &rows->row[i], detail)) count = c;
        }
    }
    return count;
}

static char *put_header(char *out, const struct columns *columns, size_t count) {
    for (size_t i = 0; i < count; i++) {
        out = stpcpy(out, columns->of[i].name);
        *out++ = i + 1 < count ? ',' : '\n';
    }
    return out;
}

// For rows that were read: the message has their files and lines.
static bool refuse_twice_read(const struct rows *rows, size_t one, size_t other, const struct lists *lists,
                              struct problem *problem) {
    size_t first = one < other ? one : other, second = one < other ? other : one;
    return problem_set(problem, "%s:%u: the same cell and strategy, %s, as in %s:%u; keep one of them",
                       rows_file_of(rows, second)->path, rows->row[second].line,
                       lists->strategies.name[rows->row[second].strategy], rows_file_of(rows, first)->path,
                       rows->row[first].line);
}

static bool refuse_twice(const struct rows *rows, const size_t *order, const struct lists *lists,
                         struct problem *problem) {
    for (size_t i = 1; i < rows->count; i++) {
        const struct row *row = &rows->row[order[i]];
        if (compare_rows(&rows->row[order[i - 1]], row) != 0) continue;
        if (rows->file_count > 0) return refuse_twice_read(rows, order[i - 1], order[i], lists, problem);
        return problem_set(problem, "two rows of %s at hidden_size %u, num_tokens %u; keep one of them",
                           lists->strategies.name[row->strategy], row->key.hidden_size, row->key.num_tokens);
    }
    return true;
}

char *rows_text(const struct rows *rows, const struct lists *lists, size_t *size, struct problem *problem) {
    size_t *order = malloc((rows->count + 1) * sizeof *order);
    char *text = malloc((rows->count + 1) * LINE_SIZE), *out = text;
    if (order == NULL || text == NULL) {
        free(order);
        free(text);
        problem_set(problem, "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < rows->count; i++) order[i] = i;
    qsort_r(order, rows->count, sizeof *order, compare_indices, (void *)rows);
    const struct columns *columns = &lists->columns;
    size_t count = count_columns(rows, columns);
    out = put_header(out, columns, count);
    for (size_t i = 0; i < rows->count; i++) {
        const struct row_detail *detail = rows_detail_of(rows, order[i]);
        struct row row = rows->row[order[i]];
        for (size_t c = 0; c < count; c++) {
            out = put_cell(out, &columns->of[c], &row, detail);
            *out++ = c + 1 < count ? ',' : '\n';
        }
    }
    bool single = refuse_twice(rows, order, lists, problem);
    free(order);
    *size = (size_t)(out - text);
    if (single) return text;
    free(text);
    return NULL;
}
