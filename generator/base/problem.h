// The message of an error: `FILE:LINE: what is wrong; what to do`. A C function that can fail returns false
// (or NULL) and fills one; its binding to Lua returns nil, message.
#ifndef GENTABLES_PROBLEM_H
#define GENTABLES_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>

struct problem {
    char text[1024];
};

// Fills `problem` as printf does; a longer text is cut. Returns false, for the caller to return.
__attribute__((format(printf, 2, 3))) bool problem_set(struct problem *problem, const char *format, ...);

// The number of the first `size` bytes of a text that is cut there, without the part of a UTF-8 character at
// their end.
size_t problem_cut(const char *text, size_t size);

#endif
