// The cells of one line of a CSV file (RFC 4180), as they lie in memory; columns and values are the callers'.
// Read: CRLF, a UTF-8 byte order mark, quoted cells. Refused: a quote that is not closed, text after a
// closing quote, UTF-16. csv_lua.c reads whole tables with line breaks in quoted cells, for Lua.
#ifndef GENTABLES_CSV_H
#define GENTABLES_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/problem.h"

struct csv_text {
    const char *begin, *end;
    bool doubled; // of a cell: there are quotes in it, each written twice
};

// The text after a byte order mark. Fails (the message lacks the file) where it is not UTF-8.
bool csv_begin(struct csv_text *text, struct problem *problem);

// Takes the next line off `text`, without its line end. False at the end of the text.
bool csv_line(struct csv_text *text, struct csv_text *line);

// Reads a quoted cell that begins at *at; see csv_cell.
bool csv_quoted_cell(const char **at, const char *line_end, struct csv_text *cell, struct problem *problem);

// Reads the cell that begins at *at, without the quotes around it, and leaves *at at the comma after it, or
// at line_end. Fails (the message lacks file and line) if a quote is broken.
static inline bool csv_cell(const char **at, const char *line_end, struct csv_text *cell,
                            struct problem *problem) {
    const char *p = *at;
    if (p < line_end && *p == '"') return csv_quoted_cell(at, line_end, cell, problem);
    while (p < line_end && *p != ',') p++;
    *cell = (struct csv_text){*at, p, false};
    *at = p;
    return true;
}

// `text` with everything that a terminal would not show as such replaced, cut to fit, for messages.
struct csv_shown {
    char text[64];
};
struct csv_shown csv_show(const struct csv_text *text);

#endif
