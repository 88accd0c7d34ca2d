// A line of a benchmark file to a row; see rows_reading.h. Lines mostly begin like the previous one: fields
// with the same bytes keep their values without being parsed.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codec/number.h"
#include "rows_reading.h"

static bool fail_field(struct line_parser *parser, const struct column *column, const struct csv_text *field,
                       const char *what) {
    bool carriage_return = memchr(field->begin, '\r', (size_t)(field->end - field->begin)) != NULL;
    return problem_set(parser->problem, "%s:%zu: %s is \"%s\"; %s", parser->source->path, parser->line,
                       column->name, csv_show(field).text,
                       carriage_return ? "it has a lone carriage return; lines end in LF or CRLF" : what);
}

// A name of the column's list.
static bool parse_name(struct line_parser *parser, const struct column *column,
                       const struct csv_text *field) {
    uint8_t *index = rows_name(&parser->row, column->kind);
    *index = names_find(column->names, field->begin, field->end);
    if (*index != NAME_NONE || (field->begin == field->end && column->may_be_empty)) return true;
    char known[800] = "it must be one of ";
    for (size_t i = 0; i < column->names->count; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i == 0 ? "" : ", ", column->names->name[i]);
    }
    return fail_field(parser, column, field, known);
}

static bool parse_count(struct line_parser *parser, const struct column *column, const struct csv_text *field,
                        uint64_t limit, uint64_t *value) {
    if (number_parse_unsigned(field->begin, field->end, limit, value) && *value > 0) return true;
    return fail_field(parser, column, field, "it must be a whole number above 0");
}

#define TEXT(macro)  TEXT_(macro)
#define TEXT_(value) #value

static bool is_time(double time_us) {
    return time_us >= TIME_LEAST_US && time_us <= TIME_MOST_US;
}

static bool parse_time(struct line_parser *parser, const struct column *column,
                       const struct csv_text *field) {
    double *time = &parser->row.time_us;
    if (!number_parse(field->begin, field->end, time)) {
        return fail_field(parser, column, field, "it must be a number of microseconds");
    }
    if (is_time(*time) || (*time == 0 && parser->source->header.zero_is_missing)) return true;
    if (*time > 0)
        return fail_field(
            parser, column, field,
            "a measured time is from " TEXT(TIME_LEAST_US) " to " TEXT(TIME_MOST_US) " microseconds");
    return fail_field(parser, column, field, "a measured time is above 0; leave out rows without a time");
}

// A number of our own columns; an empty field: none.
static bool parse_number(struct line_parser *parser, const struct column *column,
                         const struct csv_text *field) {
    double *value = &parser->detail.number[column->number];
    *value = NAN;
    if (field->begin == field->end) return true;
    if (number_parse(field->begin, field->end, value) && *value >= 0) return true;
    return fail_field(parser, column, field, "it must be a number of at least 0, or empty");
}

// 16x4096: tokens and hidden size.
static bool parse_shape(struct line_parser *parser, const struct column *column,
                        const struct csv_text *field) {
    struct cell_key *key = &parser->row.key;
    uint64_t num_tokens = 0, hidden_size = 0;
    const char *x = field->begin;
    while (x < field->end && *x != 'x') x++;
    if (x == field->end || !number_parse_unsigned(field->begin, x, SHAPE_MOST, &num_tokens) ||
        num_tokens == 0 || !number_parse_unsigned(x + 1, field->end, SHAPE_MOST, &hidden_size) ||
        hidden_size == 0) {
        return fail_field(parser, column, field, "it must be tokens and hidden size, such as 16x4096");
    }
    key->num_tokens = (uint32_t)num_tokens;
    key->hidden_size = (uint32_t)hidden_size;
    return true;
}

// Times with semicolons between them, one for each launch; an empty one: not measured in that launch.
static bool parse_launches(struct line_parser *parser, const struct column *column,
                           const struct csv_text *field) {
    struct row_detail *detail = &parser->detail;
    detail->launches = 0;
    const char *at = field->begin;
    while (at < field->end) {
        const char *separator = memchr(at, ';', (size_t)(field->end - at));
        const char *end = separator == NULL ? field->end : separator;
        double *time = &detail->launch_us[detail->launches];
        *time = NAN;
        bool right =
            detail->launches < LAUNCHES_MAX && (at == end || (number_parse(at, end, time) && is_time(*time)));
        if (!right) {
            char what[80];
            snprintf(what, sizeof what,
                     "it must be at most %d times in microseconds, separated by semicolons", LAUNCHES_MAX);
            return fail_field(parser, column, field, what);
        }
        detail->launches++;
        at = end + 1;
    }
    return true;
}

static bool parse_bits(struct line_parser *parser, const struct column *column,
                       const struct csv_text *field) {
    parser->detail.bits = 0;
    parser->detail.bits_vary = csv_equals(field, rows_bits_vary);
    if (parser->detail.bits_vary) return true;
    if (number_parse_hex(field->begin, field->end, &parser->detail.bits)) return true;
    return fail_field(parser, column, field, "it must be 16 hexadecimal digits, varies or empty");
}

// A count of tokens or a hidden size; both may be empty.
static bool parse_shape_part(struct line_parser *parser, const struct column *column,
                             const struct csv_text *field, uint32_t *value, bool *empty) {
    uint64_t count = 0;
    *empty = field->begin == field->end;
    if (*empty) return true;
    if (!parse_count(parser, column, field, SHAPE_MOST, &count)) return false;
    *value = (uint32_t)count;
    return true;
}

// A number of nodes, or of ranks on a node; `value_of_empty`: that of an empty field.
static bool parse_nodes(struct line_parser *parser, const struct column *column, const struct csv_text *field,
                        uint16_t *value, uint16_t value_of_empty) {
    uint64_t count = value_of_empty;
    bool is_empty = field->begin == field->end;
    if (!is_empty && !parse_count(parser, column, field, UINT16_MAX, &count)) return false;
    *value = (uint16_t)count;
    return true;
}

static bool parse_field(struct line_parser *parser, const struct column *column,
                        const struct csv_text *field) {
    struct cell_key *key = &parser->row.key;
    uint64_t count = 0;
    switch (column->kind) {
    case COLUMN_WORLD_SIZE:
        if (!parse_count(parser, column, field, UINT16_MAX, &count)) return false;
        key->world_size = (uint16_t)count;
        return true;
    case COLUMN_SIZE: return parse_count(parser, column, field, INT64_MAX, &parser->row.size_bytes);
    case COLUMN_NUM_TOKENS:
        return parse_shape_part(parser, column, field, &key->num_tokens, &parser->no_tokens);
    case COLUMN_HIDDEN_SIZE:
        return parse_shape_part(parser, column, field, &key->hidden_size, &parser->no_hidden_size);
    case COLUMN_SAMPLES:
        parser->detail.samples = 0;
        if (field->begin == field->end) return true;
        if (!parse_count(parser, column, field, UINT32_MAX, &count)) return false;
        parser->detail.samples = (uint32_t)count;
        return true;
    case COLUMN_TIME: return parse_time(parser, column, field);
    case COLUMN_SHAPE: return parse_shape(parser, column, field);
    case COLUMN_LAUNCHES: return parse_launches(parser, column, field);
    case COLUMN_BITS: return parse_bits(parser, column, field);
    case COLUMN_SPLITS:
        if (splits_parse(field->begin, field->end, &key->splits)) return true;
        return fail_field(parser, column, field,
                          "it must be weights from 0 to 14 such as 3:1, not all 0, or empty");
    case COLUMN_NODES: return parse_nodes(parser, column, field, &key->nodes, 1);
    case COLUMN_RANKS_PER_NODE: return parse_nodes(parser, column, field, &parser->ranks_per_node, 0);
    case COLUMN_NUMBER: return parse_number(parser, column, field);
    case COLUMN_IGNORED: return true;
    default: return parse_name(parser, column, field);
    }
}

// The length of the longest common prefix of two texts, at most `limit`.
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

// Whether the size is that of the tokens.
static bool check_size(struct line_parser *parser) {
    const struct row *row = &parser->row;
    if (row->key.hidden_size == HIDDEN_SIZE_NONE) return true;
    uint64_t bytes =
        (uint64_t)row->key.num_tokens * row->key.hidden_size * parser->lists->bytes[row->key.dtype];
    if (row->size_bytes == bytes) return true;
    return problem_set(parser->problem,
                       "%s:%zu: size is %" PRIu64 "; %" PRIu32 " tokens of hidden size %" PRIu32
                       " are %" PRIu64 " bytes of %s",
                       parser->source->path, parser->line, row->size_bytes, row->key.num_tokens,
                       row->key.hidden_size, bytes, parser->lists->dtypes.name[row->key.dtype]);
}

// Completes the row of a size without tokens and hidden size.
static bool complete_shape(struct line_parser *parser) {
    struct row *row = &parser->row;
    if (!parser->no_tokens && !parser->no_hidden_size) return true;
    if (parser->no_tokens != parser->no_hidden_size || row->size_bytes >= HIDDEN_SIZE_NONE) {
        return problem_set(
            parser->problem,
            "%s:%zu: num_tokens and hidden_size must be whole numbers above 0; both may be empty for a "
            "size below 4 GiB",
            parser->source->path, parser->line);
    }
    row->key.hidden_size = HIDDEN_SIZE_NONE;
    row->key.num_tokens = (uint32_t)row->size_bytes;
    return true;
}

// Checks that the ranks are spread evenly over the nodes.
static bool check_nodes(struct line_parser *parser) {
    const struct cell_key *key = &parser->row.key;
    unsigned per_node = parser->ranks_per_node;
    if (per_node == 0 ? key->nodes == 1 : (uint64_t)per_node * key->nodes == key->world_size) return true;
    return problem_set(
        parser->problem,
        "%s:%zu: nodes is %u, ranks_per_node %u and world_size %u; nodes x ranks_per_node must "
        "be world_size, or both empty for ranks of one node",
        parser->source->path, parser->line, key->nodes, per_node, key->world_size);
}

// Checks that the row is of the ranks and nodes in the file's name.
static bool check_name(struct line_parser *parser) {
    const struct rows_source *source = parser->source;
    const struct cell_key *key = &parser->row.key;
    if (source->world_size == 0) return true;
    if (key->world_size != source->world_size) {
        return problem_set(
            parser->problem,
            "%s:%zu: world_size is %u in a file of TP %u; move the row to benchmark.tp%u.*.csv", source->path,
            parser->line, key->world_size, source->world_size, key->world_size);
    }
    if (key->nodes == source->nodes) return true;
    char name[40] = "";
    if (key->nodes > 1) snprintf(name, sizeof name, "nodes%u.", key->nodes);
    return problem_set(parser->problem,
                       "%s:%zu: nodes is %u in a file of %u node%s; move the row to benchmark.tp%u.%s*.csv",
                       source->path, parser->line, key->nodes, source->nodes, source->nodes == 1 ? "" : "s",
                       key->world_size, name);
}

// Checks that concern several columns of a row.
static bool check_row(struct line_parser *parser) {
    const struct row *row = &parser->row;
    if (!complete_shape(parser) || !check_size(parser) || !check_nodes(parser) || !check_name(parser)) {
        return false;
    }
    const double *number = parser->detail.number;
    if (number[NUMBER_LOW_US] > row->time_us || number[NUMBER_HIGH_US] < row->time_us) {
        return problem_set(parser->problem,
                           "%s:%zu: time (us) is outside its interval, low (us) to high (us)",
                           parser->source->path, parser->line);
    }
    return true;
}

// A line with a wrong number of fields often has an invalid one, too; then the number is the better message.
static bool fail_count(struct line_parser *parser, const struct csv_text *line) {
    const struct header *header = &parser->source->header;
    size_t count = 0;
    for (const char *at = line->begin;; at++) {
        struct csv_text field;
        struct problem ignored;
        count++;
        if (!csv_field(&at, line->end, &field, &ignored) || at == line->end) break;
    }
    if (count == header->count) return false;
    return problem_set(parser->problem, "%s:%zu: %s fields than the header, which has %zu",
                       parser->source->path, parser->line, count < header->count ? "fewer" : "more",
                       header->count);
}

// Whether the field at `at` is followed by another one and equals that of the previous line, which begins at
// `begin` there.
static bool is_as_before(const struct line_parser *parser, size_t column, size_t begin, const char *at,
                         const char *end) {
    if (parser->previous == NULL) return false;
    size_t length = parser->field_end[column] - begin;
    if ((size_t)(end - at) <= length || at[length] != ',') return false;
    return memcmp(parser->previous + begin, at, length) == 0;
}

// The values of columns that a file does not have.
static struct row default_row(const struct lists *lists) {
    return (struct row){.key = {.nodes = 1,
                                .op = names_index(&lists->ops, "allreduce"),
                                .mode = names_index(&lists->modes, "unknown")},
                        .placement = names_index(&lists->placements, "unknown"),
                        .accumulate = NAME_NONE};
}

struct line_parser line_parser_begin(const struct rows_source *source, const struct lists *lists,
                                     struct problem *problem) {
    struct line_parser parser = {.source = source, .lists = lists, .problem = problem};
    parser.row = default_row(lists);
    parser.detail = rows_no_detail;
    return parser;
}

bool line_parser_take(struct line_parser *parser, const struct csv_text *line) {
    const struct header *header = &parser->source->header;
    size_t length = (size_t)(line->end - line->begin), column = 0;
    if (parser->previous != NULL) {
        size_t limit = length < parser->previous_length ? length : parser->previous_length;
        size_t common = common_prefix(parser->previous, line->begin, limit);
        while (column < header->count - 1 && parser->field_end[column] < common) column++;
    }
    size_t begin = column == 0 ? 0 : parser->field_end[column - 1] + 1; // of the field, in the previous line
    const char *at = line->begin + begin;
    for (;; column++, at++) {
        struct csv_text field;
        struct problem detail;
        if (column < header->count && is_as_before(parser, column, begin, at, line->end)) {
            at += parser->field_end[column] - begin;
            begin = parser->field_end[column] + 1;
            parser->field_end[column] = (size_t)(at - line->begin);
            continue;
        }
        if (!csv_field(&at, line->end, &field, &detail)) {
            return problem_set(parser->problem, "%s:%zu: %s", parser->source->path, parser->line,
                               detail.text);
        }
        if (column == header->count) break;
        if (!parse_field(parser, header->column[column], &field)) return fail_count(parser, line);
        begin = parser->field_end[column] + 1;
        parser->field_end[column] = (size_t)(at - line->begin);
        if (at == line->end) break;
    }
    if (column != header->count - 1) return fail_count(parser, line);
    parser->previous = line->begin;
    parser->previous_length = length;
    return check_row(parser);
}
