// The words of a request line: `kind name=value name=value ...`, with one space between; a field called
// `path` comes last and takes the rest of the line. Only reads; nothing is allocated.
#ifndef BENCH_WORKLOAD_FIELDS_H
#define BENCH_WORKLOAD_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

// Whether the line is of this kind.
bool line_is(const char *line, const char *kind);

// Copies the field's value. False: there is none, or it does not fit.
bool field_text(const char *line, const char *name, char value[], size_t size);

// A whole number from `least` to `most`.
bool field_number(const char *line, const char *name, size_t least, size_t most, size_t *value);

// `count` such numbers, separated by commas; a single one counts for all.
bool field_numbers(const char *line, const char *name, size_t least, size_t most, size_t count,
                   size_t values[]);

#endif
