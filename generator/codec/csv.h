// Lines and fields of CSV (RFC 4180), in place. CRLF, a UTF-8 byte order mark and quoted fields are read; a
// quote that is not closed, text after a closing quote, and UTF-16 are errors. csv_lua.c reads whole tables
// for Lua, with line breaks in quoted fields.
#ifndef GENTABLES_CSV_H
#define GENTABLES_CSV_H

#include <stdbool.h>

#include "base/problem.h"

struct csv_text {
    const char *begin, *end;
    bool doubled; // a field with quotes in it, each written twice
};

// Removes a byte order mark. Fails (the message lacks the file) if the text is UTF-16.
bool csv_begin(struct csv_text *text, struct problem *problem);

// Removes the next line from `text`, without its line end. False at the end of the text.
bool csv_line(struct csv_text *text, struct csv_text *line);

// Reads a quoted field that begins at *at; see csv_field.
bool csv_quoted_field(const char **at, const char *line_end, struct csv_text *field, struct problem *problem);

// Reads the field that begins at *at, without the quotes around it, and leaves *at at the comma after it, or
// at line_end. Fails (the message lacks file and line) if a quote is broken.
static inline bool csv_field(const char **at, const char *line_end, struct csv_text *field,
                             struct problem *problem) {
    const char *p = *at;
    if (p < line_end && *p == '"') return csv_quoted_field(at, line_end, field, problem);
    while (p < line_end && *p != ',') p++;
    *field = (struct csv_text){*at, p, false};
    *at = p;
    return true;
}

// Whether a field has this text.
bool csv_equals(const struct csv_text *field, const char *text);

// `text` for messages: cut to fit, with "?" in place of control characters.
struct csv_shown {
    char text[64];
};
struct csv_shown csv_show(const struct csv_text *text);

#endif
