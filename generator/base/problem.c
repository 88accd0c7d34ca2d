// The message of an error; see problem.h.
#include "problem.h"

#include <stdarg.h>
#include <stdio.h>

bool problem_set(struct problem *problem, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(problem->text, sizeof problem->text, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof problem->text) {
        problem->text[problem_cut(problem->text, sizeof problem->text - 1)] = '\0';
    }
    return false;
}

// The bytes of a UTF-8 character that begins with this byte; 1 if none does.
static size_t bytes_of_character(unsigned char first) {
    return first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
}

size_t problem_cut(const char *text, size_t size) {
    size_t begin = size;
    while (begin > 0 && size - begin < 3) {
        unsigned char byte = (unsigned char)text[--begin];
        if ((byte & 0xC0) != 0x80) return begin + bytes_of_character(byte) > size ? begin : size;
    }
    return size;
}
