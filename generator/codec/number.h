// Decimal text to numbers and back, for tables with many numbers: correctly rounded, independent of the
// locale, and usually without a printf or strtod for each cell.
#ifndef GENTABLES_NUMBER_H
#define GENTABLES_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

// The space that any of the number_print_ functions needs.
enum { NUMBER_TEXT_SIZE = 32 };

// Reads all of [begin, end) as -?digits[.digits][e[+-]digits]; `value` gets the nearest double. False for any
// other text (empty, spaces, hexadecimal, nan, inf) and for numbers that are too large for a finite double.
bool number_parse(const char *begin, const char *end, double *value);

// Reads all of [begin, end) as a whole number of at most `limit`: digits only, at most 19. False for other
// texts.
bool number_parse_unsigned(const char *begin, const char *end, uint64_t limit, uint64_t *value);

// Reads all of [begin, end) as up to 16 lower-case hexadecimal digits; no digits are 0. False for other
// texts.
bool number_parse_hex(const char *begin, const char *end, uint64_t *value);

// Whether a number that begins with all of [begin, end) differs from it by less than 1 %: digits with a
// point, of which three are significant. An exponent that was cut off cannot be seen.
bool number_is_precise(const char *begin, const char *end);

// The number that eight decimal digits form. Each byte has a digit (0 to 9, not its character), the lowest
// byte the first one.
static inline uint64_t number_join_digits(uint64_t digits) {
    digits = digits * 10 + (digits >> 8); // pairs, in every second byte
    uint64_t fours = (digits & 0x000000FF000000FFULL) * (100 + (1000000ULL << 32));
    return (fours + ((digits >> 16) & 0x000000FF000000FFULL) * (1 + (10000ULL << 32))) >> 32;
}

// Prints `value` with four decimals, as printf's "%.4f" does except for the rounding of the last digit;
// values from 1e11 on and below 5e-5 as "%.9g". Returns the end of the text (no NUL).
char *number_print_fixed4(char *out, double value);

// Prints a value of less than 1e15 as printf's "%.*f" does, with at most 12 decimals. Returns the end of the
// text (no NUL).
char *number_print_fixed(char *out, double value, int decimals);

// Prints the shortest of "%.15g", "%.16g" and "%.17g" that reads back as `value`, which is finite, with a
// point or an exponent. Returns the end of the text (no NUL).
char *number_print_shortest(char *out, double value);

// Prints `value` in decimal. Returns the end of the text (no NUL).
char *number_print_unsigned(char *out, uint64_t value);

// Prints `value` as 16 hexadecimal digits. Returns the end of the text (no NUL).
char *number_print_hex(char *out, uint64_t value);

#endif
