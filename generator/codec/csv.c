// Lines and fields of CSV text; see csv.h.
#include "csv.h"

#include <string.h>

bool csv_begin(struct csv_text *text, struct problem *problem) {
    size_t size = (size_t)(text->end - text->begin);
    const unsigned char *bytes = (const unsigned char *)text->begin;
    if (size >= 3 && bytes[0] == 0xEF && bytes[1] == 0xBB && bytes[2] == 0xBF) {
        text->begin += 3;
        return true;
    }
    bool marked =
        size >= 2 && ((bytes[0] == 0xFF && bytes[1] == 0xFE) || (bytes[0] == 0xFE && bytes[1] == 0xFF));
    bool wide = size >= 2 && (bytes[0] == 0 || bytes[1] == 0);
    if (marked || wide) return problem_set(problem, "is UTF-16; save it as UTF-8");
    return true;
}

bool csv_line(struct csv_text *text, struct csv_text *line) {
    if (text->begin == text->end) return false;
    const char *newline = memchr(text->begin, '\n', (size_t)(text->end - text->begin));
    const char *end = newline == NULL ? text->end : newline;
    *line = (struct csv_text){text->begin, end, false};
    if (newline != NULL && end > text->begin && end[-1] == '\r') line->end--;
    text->begin = newline == NULL ? text->end : newline + 1;
    return true;
}

bool csv_quoted_field(const char **at, const char *line_end, struct csv_text *field,
                      struct problem *problem) {
    *field = (struct csv_text){*at + 1, NULL, false};
    const char *p = *at + 1;
    for (;; p += 2) {
        p = p < line_end ? memchr(p, '"', (size_t)(line_end - p)) : NULL;
        if (p == NULL)
            return problem_set(problem, "a quote is opened and not closed; close it, or leave it out");
        if (p + 1 == line_end || p[1] != '"') break;
        field->doubled = true;
    }
    field->end = p;
    *at = p + 1;
    if (*at == line_end || **at == ',') return true;
    return problem_set(problem, "text after a closing quote; a comma or the end of the line must follow");
}

bool csv_equals(const struct csv_text *field, const char *text) {
    size_t length = strlen(text); // 0: `begin` may be NULL
    return (size_t)(field->end - field->begin) == length &&
           (length == 0 || memcmp(field->begin, text, length) == 0);
}

struct csv_shown csv_show(const struct csv_text *text) {
    struct csv_shown shown;
    size_t size = (size_t)(text->end - text->begin), limit = sizeof shown.text - 4;
    size_t length = size < limit ? size : problem_cut(text->begin, limit);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text->begin[i];
        shown.text[i] = c < ' ' || c == 127 ? '?' : (char)c;
    }
    strcpy(shown.text + length, size > limit ? "..." : "");
    return shown;
}
