// What the parts of reading a benchmark file share: the layout that its header tells (rows_header.c), the
// parser of its lines (rows_line.c), which rows_reading.c runs over the pieces of all files. Nobody else
// includes it.
#ifndef GENTABLES_ROWS_READING_H
#define GENTABLES_ROWS_READING_H

#include "codec/csv.h"
#include "rows.h"

enum { MAX_COLUMNS = 64 };

// What the header of a file says.
struct layout {
    const struct column *column[MAX_COLUMNS];
    size_t count;
    bool has[COLUMNS_MAX]; // by the list of columns
    bool ours;             // it has columns that only we write
    bool zero_is_missing;  // --benchmark mode
};

// A file as its lines need it.
struct rows_source {
    const char *path;
    struct layout layout;
    uint32_t world_size; // that of the file's name, or 0
};

struct line_parser {
    const struct rows_source *source;
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

// Whether a cell's text is `name`.
bool rows_cell_is(const struct csv_text *text, const char *name);

// Fills source->layout (zero before) from the first line of the file. False: `problem` names file and column.
bool rows_read_header(struct rows_source *source, const struct csv_text *line, const struct columns *columns,
                      struct problem *problem);

// A parser whose row says what rows of a file without a column say. It owns nothing; the rest must outlive
// it.
struct line_parser line_parser_begin(const struct rows_source *source, const struct lists *lists,
                                     struct problem *problem);

// Parses line number parser->line, which is not empty, to parser->row and ->detail; a missing time leaves
// time_us at 0. The text of the line before must still be there. False: parser->problem names file and line.
bool line_parser_take(struct line_parser *parser, const struct csv_text *line);

#endif
