// What went wrong, as a text for a person: `FILE:LINE: what is wrong; what would be right`. C functions that
// can fail return false (or NULL) and fill one; the Lua side hands it on as nil, message.
#ifndef GENTABLES_PROBLEM_H
#define GENTABLES_PROBLEM_H

#include <stdbool.h>

struct problem {
    char text[1024];
};

// Fills `problem` as printf does (a longer text is cut). Returns false, so that a caller can return it.
__attribute__((format(printf, 2, 3))) bool problem_set(struct problem *problem, const char *format, ...);

#endif
