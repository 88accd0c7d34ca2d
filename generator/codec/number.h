// Decimal text to numbers and back, for tables with many of them: correctly rounded, without locale, and
// without a printf or strtod per cell in the common case.
#ifndef GENTABLES_NUMBER_H
#define GENTABLES_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

// Room that any of the number_print_ functions needs.
enum { NUMBER_TEXT_SIZE = 32 };

// Reads all of [begin, end) as -?digits[.digits][e[+-]digits]; the double nearest to it goes to `value`.
// False where the text is anything else (empty, spaces, hexadecimal, nan, inf) or too large for a finite
// double.
bool number_parse(const char *begin, const char *end, double *value);

// Reads all of [begin, end) as a whole number of at most `limit`, digits only. False where it is not one.
bool number_parse_unsigned(const char *begin, const char *end, uint64_t limit, uint64_t *value);

// Reads all of [begin, end) as up to 16 hexadecimal digits; none are 0. False where it is anything else.
bool number_parse_hex(const char *begin, const char *end, uint64_t *value);

// The number that eight decimal digits make: one in each byte (0 to 9, not its character), the first in the
// lowest.
static inline uint64_t number_join_digits(uint64_t digits) {
    digits = digits * 10 + (digits >> 8); // pairs, in every second byte
    uint64_t fours = (digits & 0x000000FF000000FFULL) * (100 + (1000000ULL << 32));
    return (fours + ((digits >> 16) & 0x000000FF000000FFULL) * (1 + (10000ULL << 32))) >> 32;
}

// Prints `value` with four decimals, as printf's "%.4f" does up to the last digit's rounding; a value that is
// too large or too small for that as "%.9g". Returns the end of the text (no NUL).
char *number_print_fixed4(char *out, double value);

// Prints `value` in decimal. Returns the end of the text (no NUL).
char *number_print_unsigned(char *out, uint64_t value);

// Prints `value` as 16 hexadecimal digits. Returns the end of the text (no NUL).
char *number_print_hex(char *out, uint64_t value);

#endif
