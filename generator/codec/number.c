// Decimal text to doubles and back; see number.h. The fast path reads the digits as a 64-bit integer m and
// divides it by a power of five, 128 by 64 bits. Rounding to 53 bits needs no more than the 64 bits of the
// quotient and whether there is a remainder. Other texts (more than 19 digits, more than 27 decimals, an
// exponent) go to strtod.
#include "number.h"

#include <endian.h>
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIGITS = 19, MAX_DECIMALS = 27, MAX_TEXT = 128 };

// 5^27 is the largest power of five in 64 bits.
static const uint64_t powers_of_five[MAX_DECIMALS + 1] = {
    1ULL,
    5ULL,
    25ULL,
    125ULL,
    625ULL,
    3125ULL,
    15625ULL,
    78125ULL,
    390625ULL,
    1953125ULL,
    9765625ULL,
    48828125ULL,
    244140625ULL,
    1220703125ULL,
    6103515625ULL,
    30517578125ULL,
    152587890625ULL,
    762939453125ULL,
    3814697265625ULL,
    19073486328125ULL,
    95367431640625ULL,
    476837158203125ULL,
    2384185791015625ULL,
    11920928955078125ULL,
    59604644775390625ULL,
    298023223876953125ULL,
    1490116119384765625ULL,
    7450580596923828125ULL,
};

// m / 10^decimals = (m / 5^decimals) * 2^-decimals, m > 0, rounded to nearest, ties to even.
static double divide_by_power_of_ten(uint64_t m, int decimals) {
    uint64_t divisor = powers_of_five[decimals];
    int m_shift = __builtin_clzll(m), divisor_shift = __builtin_clzll(divisor);
    m <<= m_shift;
    divisor <<= divisor_shift;
    // The top bit of both is set, so that this shift gives a quotient of exactly 64 bits.
    int shift = m < divisor ? 64 : 63;
    unsigned __int128 numerator = (unsigned __int128)m << shift;
    uint64_t quotient = (uint64_t)(numerator / divisor);
    uint64_t sticky = quotient * divisor != (uint64_t)numerator;
    double value = (double)(quotient | sticky);
    // Scale by a power of two: the result is a normal number, so adding to its exponent field is exact.
    int64_t exponent = divisor_shift - m_shift - decimals - shift;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits += (uint64_t)exponent << 52;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

// Reads the text with strtod. The caller has checked its form.
static bool parse_slowly(const char *begin, const char *end, double *value) {
    char text[MAX_TEXT];
    size_t length = (size_t)(end - begin);
    if (length >= sizeof text) return false;
    memcpy(text, begin, length);
    text[length] = '\0';
    *value = strtod(text, NULL);
    return isfinite(*value);
}

static bool is_digit(char c) {
    return (unsigned char)(c - '0') < 10;
}

// Whether these are eight digits.
static bool are_eight_digits(uint64_t text) {
    uint64_t above = text + 0x4646464646464646ULL, below = text - 0x3030303030303030ULL;
    return ((above | below) & 0x8080808080808080ULL) == 0;
}

// Appends the digits from `at` on to m, which may overflow; returns where they end.
static const char *take_digits(const char *at, const char *end, uint64_t *m) {
    uint64_t text;
    for (; end - at >= (ptrdiff_t)sizeof text; at += sizeof text) {
        memcpy(&text, at, sizeof text);
        text = le64toh(text);
        if (!are_eight_digits(text)) break;
        *m = *m * 100000000 + number_join_digits(text - 0x3030303030303030ULL);
    }
    while (at < end && is_digit(*at)) *m = *m * 10 + (uint64_t)(*at++ - '0');
    return at;
}

bool number_parse(const char *begin, const char *end, double *value) {
    const char *at = begin;
    bool negative = at < end && *at == '-';
    if (negative) at++;
    const char *digits = at;
    uint64_t m = 0;
    at = take_digits(at, end, &m);
    int64_t digit_count = at - digits, decimals = 0;
    if (at < end && *at == '.') {
        const char *fraction = ++at;
        at = take_digits(at, end, &m);
        decimals = at - fraction;
        digit_count += decimals;
    }
    if (digit_count == 0) return false;
    if (at < end) {
        if (*at != 'e' && *at != 'E') return false;
        at++;
        if (at < end && (*at == '+' || *at == '-')) at++;
        if (at == end) return false;
        while (at < end && is_digit(*at)) at++;
        return at == end && parse_slowly(begin, end, value);
    }
    if (digit_count > MAX_DIGITS || decimals > MAX_DECIMALS) return parse_slowly(begin, end, value);
    double magnitude = m == 0 ? 0.0 : divide_by_power_of_ten(m, (int)decimals);
    *value = negative ? -magnitude : magnitude;
    return true;
}

bool number_is_precise(const char *begin, const char *end) {
    enum { LEAST_DIGITS = 3 };
    int digits = 0, points = 0;
    for (; begin < end; begin++) {
        bool is_digit = *begin >= '0' && *begin <= '9';
        if (!is_digit && *begin != '.') return false;
        points += !is_digit;
        digits += is_digit && (digits > 0 || *begin != '0');
    }
    return points == 1 && digits >= LEAST_DIGITS;
}

bool number_parse_unsigned(const char *begin, const char *end, uint64_t limit, uint64_t *value) {
    uint64_t result = 0;
    if (begin == end || end - begin > MAX_DIGITS) return false;
    for (const char *at = begin; at < end; at++) {
        if (!is_digit(*at)) return false;
        result = result * 10 + (uint64_t)(*at - '0');
    }
    *value = result;
    return result <= limit;
}

char *number_print_unsigned(char *out, uint64_t value) {
    char reversed[20];
    int length = 0;
    do {
        reversed[length++] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    while (length > 0) *out++ = reversed[--length];
    return out;
}

// Prints scaled / 10^decimals.
static char *print_scaled(char *out, uint64_t scaled, int decimals) {
    char reversed[NUMBER_TEXT_SIZE];
    int length = 0;
    for (; length <= decimals || scaled > 0; scaled /= 10) {
        if (length == decimals && length > 0) reversed[length++] = '.';
        reversed[length++] = (char)('0' + scaled % 10);
    }
    while (length > 0) *out++ = reversed[--length];
    return out;
}

char *number_print_fixed4(char *out, double value) {
    if (!(fabs(value) < 1e11) || (value != 0 && fabs(value) < 5e-5)) {
        return out + snprintf(out, NUMBER_TEXT_SIZE, "%.9g", value);
    }
    if (value < 0) *out++ = '-';
    return print_scaled(out, (uint64_t)llrint(fabs(value) * 1e4), 4);
}

// ---- exact decimals

// Multiplies by a power of ten and rounds to the nearest whole number, ties to even. False: it is too large,
// or so small that bits are lost.
static bool scale(double value, int decimals, uint64_t *scaled) {
    int exponent;
    uint64_t m = (uint64_t)ldexp(frexp(value, &exponent), DBL_MANT_DIG);
    unsigned __int128 product = (unsigned __int128)m * powers_of_five[decimals];
    int shift = DBL_MANT_DIG - exponent - decimals;
    if (shift < 1 || shift > 127 || product >> shift >= UINT64_MAX) return false;
    unsigned __int128 half = (unsigned __int128)1 << (shift - 1), rest = product & (2 * half - 1);
    *scaled = (uint64_t)(product >> shift);
    *scaled += rest > half || (rest == half && (*scaled & 1) != 0);
    return true;
}

char *number_print_fixed(char *out, double value, int decimals) {
    uint64_t scaled;
    if (!scale(fabs(value), decimals, &scaled)) {
        return out + snprintf(out, NUMBER_TEXT_SIZE, "%.*f", decimals, value);
    }
    if (signbit(value)) *out++ = '-';
    return print_scaled(out, scaled, decimals);
}

// The same as number_print_shortest, for values that need an exponent, or many zeros.
static char *print_shortest_slowly(char *out, double value) {
    char *end = out;
    for (int digits = DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
        end = out + snprintf(out, NUMBER_TEXT_SIZE, "%.*g", digits, value);
        if (strtod(out, NULL) == value) break;
    }
    if (strpbrk(out, ".e") != NULL) return end;
    *end++ = '.';
    *end++ = '0';
    return end;
}

char *number_print_shortest(char *out, double value) {
    static const double powers_of_ten[] = {1e-3, 1e-2, 1e-1, 1,   1e1,  1e2,  1e3,  1e4,  1e5,
                                           1e6,  1e7,  1e8,  1e9, 1e10, 1e11, 1e12, 1e13, 1e14};
    double magnitude = fabs(value);
    if (!(magnitude >= 1e-4 && magnitude < 1e14)) return print_shortest_slowly(out, value);
    int decimals = DBL_DIG + 3; // of 15 digits
    for (const double *power = powers_of_ten; magnitude >= *power; power++) decimals--;
    uint64_t scaled = 0;
    for (int last = decimals + DBL_DECIMAL_DIG - DBL_DIG; decimals <= last; decimals++) {
        if (!scale(magnitude, decimals, &scaled)) return print_shortest_slowly(out, value);
        if (divide_by_power_of_ten(scaled, decimals) == magnitude) break;
    }
    for (; decimals > 1 && scaled % 10 == 0; decimals--) scaled /= 10;
    if (value < 0) *out++ = '-';
    return print_scaled(out, scaled, decimals);
}

// ---- hexadecimal

enum { HEX_DIGITS = 16 };
static const char hex_digits[] = "0123456789abcdef";

bool number_parse_hex(const char *begin, const char *end, uint64_t *value) {
    *value = 0;
    if (end - begin > HEX_DIGITS) return false;
    for (const char *at = begin; at < end; at++) {
        const char *digit = memchr(hex_digits, *at, HEX_DIGITS);
        if (digit == NULL) return false;
        *value = *value << 4 | (uint64_t)(digit - hex_digits);
    }
    return true;
}

char *number_print_hex(char *out, uint64_t value) {
    for (int i = HEX_DIGITS - 1; i >= 0; i--, value >>= 4) out[i] = hex_digits[value & 0xf];
    return out + HEX_DIGITS;
}
