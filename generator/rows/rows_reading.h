// The parts of the reader of benchmark files: the header (rows_header.c), and the parser of lines
// (rows_line.c), which rows_reading.c runs over the pieces of all files. Private to these files.
#ifndef GENTABLES_ROWS_READING_H
#define GENTABLES_ROWS_READING_H

#include "codec/csv.h"
#include "rows.h"

enum { MAX_COLUMNS = 64 };

// The columns of a file, from its header.
struct header {
    const struct column *column[MAX_COLUMNS];
    size_t count;
    bool has[COLUMNS_MAX]; // by the list of columns
    bool ours;             // it has columns that only gentables writes
    bool zero_is_missing;  // --benchmark mode
};

// The facts of a file for the parser of its lines.
struct rows_source {
    const char *path;
    struct header header;
    uint32_t world_size; // in the file's name; 0: none
    uint32_t nodes;      // of such a file; 1 if its name has none
};

struct line_parser {
    const struct rows_source *source;
    const struct lists *lists;
    struct problem *problem;
    size_t line; // its number in the file
    // The previous line; `row` and `detail` have its values. field_end: the end of each field, from its
    // beginning.
    const char *previous;
    size_t previous_length;
    size_t field_end[MAX_COLUMNS];
    bool no_tokens, no_hidden_size; // empty
    uint16_t ranks_per_node;        // 0: empty
    struct row row;
    struct row_detail detail;
};

// Fills source->header, which is zero before, from the first line of the file. False: `problem` names file
// and column.
bool rows_read_header(struct rows_source *source, const struct csv_text *line, const struct columns *columns,
                      struct problem *problem);

// A parser with the default values of missing columns in its row. It owns nothing; the arguments must outlive
// it.
struct line_parser line_parser_begin(const struct rows_source *source, const struct lists *lists,
                                     struct problem *problem);

// Parses line number parser->line, which is not empty, to parser->row and ->detail; a missing time gives a
// time_us of 0. The text of the previous line must still be valid. False: parser->problem names file and
// line.
bool line_parser_take(struct line_parser *parser, const struct csv_text *line);

#endif
