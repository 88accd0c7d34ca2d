// number.c: reading rounds as strtod rounds, and a printed number reads back as the same number.
#include "../../unit_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/number.h"

static uint64_t next_random(void) {
    static uint64_t state = 1;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void expect_as_strtod(const char *text) {
    double value = -1, expected = strtod(text, NULL);
    if (!number_parse(text, text + strlen(text), &value)) fail_msg("%s is refused", text);
    if (value != expected) fail_msg("%s gives %.17g, not %.17g", text, value, expected);
}

TEST(numbers_of_few_digits_are_not_precise) {
    static const char *const precise[] = {"9.51", "98.7", "123.", "0.0123", ".0123"};
    static const char *const others[] = {"", ".", "9.5", "0.012", "1234", "-9.51", "1.23e4", "1.2.3", "nan"};
    for (size_t i = 0; i < sizeof precise / sizeof *precise; i++) {
        assert_true(number_is_precise(precise[i], precise[i] + strlen(precise[i])));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(number_is_precise(others[i], others[i] + strlen(others[i])));
    }
}

TEST(random_decimals_are_rounded_as_strtod_does) {
    char text[64];
    for (int i = 0; i < 200000; i++) {
        uint64_t whole = next_random() >> (next_random() % 64), part = next_random();
        int decimals = (int)(next_random() % 20);
        snprintf(text, sizeof text, "%llu.%0*llu", (unsigned long long)whole, decimals,
                 (unsigned long long)part);
        expect_as_strtod(text);
    }
}

TEST(seventeen_digits_come_back_as_the_same_double) {
    char text[64];
    for (int i = 0; i < 200000; i++) {
        double value = (double)(next_random() >> 11) / (double)(1 << (next_random() % 30)), back = 0;
        snprintf(text, sizeof text, "%.*f", (int)(next_random() % 18), value);
        expect_as_strtod(text);
        snprintf(text, sizeof text, "%.17g", value);
        assert_true(number_parse(text, text + strlen(text), &back));
        assert_true(back == value);
    }
}

TEST(hard_cases_are_rounded_as_strtod_does) {
    static const char *const texts[] = {
        "0",
        "0.0",
        "-0",
        "-1.5",
        "1",
        "9007199254740993",
        "9007199254740992.5",
        "9007199254740993.5",
        "9007199254740991.4999",
        "0.000000000000000000000000001",
        "0.0000000000000000000000000001",
        "9999999999999999999",
        "18446744073709551616",
        "18446744073709551615.9",
        "1.7976931348623157e308",
        "5e-324",
        "1e-400",
        "1E5",
        "1e+5",
        "00000000000000000000000001.5",
        "0.1",
        "0.30000000000000004",
        ".5",
        "5.",
        "8.5",
        "2.2250738585072011e-308",
        "6929495644600919.5",
        "3.0540412E5",
        "12345678",
        "123456789.12345678",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) expect_as_strtod(texts[i]);
}

TEST(what_is_no_decimal_number_is_refused) {
    static const char *const texts[] = {
        "",     " 1",  "1 ",  "+1",    "-",     ".",   "-.",   "1e",  "1e+", "e5",        "nan",       "inf",
        "-inf", "0x1", "1,5", "1.2.3", "1e999", "--1", "1e5.", "1_0", "١",   "12345678x", "1.2345678y"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double value;
        if (number_parse(texts[i], texts[i] + strlen(texts[i]), &value)) fail_msg("\"%s\" is read", texts[i]);
    }
}

TEST(only_the_given_range_is_read) {
    static const char text[] = "12.3456789012345678";
    double value;
    assert_true(number_parse(text, text + 4, &value));
    assert_true(value == 12.3);
}

TEST(unsigned_numbers_have_a_limit) {
    uint64_t value = 0;
    static const char text[] = "65536";
    assert_true(number_parse_unsigned(text, text + 5, 65536, &value));
    assert_int_equal(value, 65536);
    assert_false(number_parse_unsigned(text, text + 5, 65535, &value));
    assert_false(number_parse_unsigned(text, text, 65535, &value));
    static const char *const broken[] = {"-1", "1.0", "1e3", " 1", "99999999999999999999"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_false(number_parse_unsigned(broken[i], broken[i] + strlen(broken[i]), UINT64_MAX, &value));
    }
}

static void expect_printed(double value, const char *expected) {
    char text[NUMBER_TEXT_SIZE];
    *number_print_fixed4(text, value) = '\0';
    assert_string_equal(text, expected);
}

TEST(four_decimals_are_printed) {
    expect_printed(0, "0.0000");
    expect_printed(1.5, "1.5000");
    expect_printed(19.8018338973403, "19.8018");
    expect_printed(0.99996, "1.0000");
    expect_printed(-0.25, "-0.2500");
    expect_printed(123456789.0625, "123456789.0625");
    // A number other than 0 is never printed as 0, and never with invented digits.
    expect_printed(0.00001, "1e-05");
    expect_printed(1e12, "1e+12");
}

TEST(random_numbers_print_as_printf_prints_them) {
    for (int i = 0; i < 100000; i++) {
        double value = (double)(next_random() % 100000000) / 10000;
        char expected[64];
        snprintf(expected, sizeof expected, "%.4f", value);
        expect_printed(value, expected);
    }
}

// The shortest of three printf formats that strtod reads as the same number, with a point or an exponent.
static void expect_shortest(double value) {
    char text[NUMBER_TEXT_SIZE + 1], expected[64];
    *number_print_shortest(text, value) = '\0';
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(expected, sizeof expected, "%.*g", digits, value);
        if (strtod(expected, NULL) == value) break;
    }
    if (strpbrk(expected, ".e") == NULL) strcat(expected, ".0");
    assert_string_equal(text, expected);
}

TEST(the_shortest_text_is_that_of_printf) {
    static const double numbers[] = {
        0,    -0.0, 1,    -1.5,  0.1,  0.3,    1e-3,   1e-4,    1e-5,    0.0001, 9.5e13,           1e14,
        1e15, 1e16, 5e22, 1e300, 1e23, 5e-324, 0.1e-3, 1.0 / 3, 2.0 / 3, 1e-320, 99999999999999.98};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) expect_shortest(numbers[i]);
    for (int power = -40; power < 60; power++) {
        double value = ldexp(1, power);
        expect_shortest(value);
        expect_shortest(nextafter(value, 0));
        expect_shortest(nextafter(value, INFINITY));
    }
    for (int i = 0; i < 100000; i++) {
        double whole = (double)(next_random() >> (11 + next_random() % 50));
        expect_shortest(whole / (double)(1ULL << next_random() % 60));
        expect_shortest(whole / 1000);
    }
}

static void expect_fixed(double value, int decimals) {
    char text[NUMBER_TEXT_SIZE + 1], expected[64];
    *number_print_fixed(text, value, decimals) = '\0';
    snprintf(expected, sizeof expected, "%.*f", decimals, value);
    assert_string_equal(text, expected);
}

TEST(fixed_decimals_are_rounded_as_printf_does) {
    static const double ties[] = {0,       -0.0,    0.5,      1.5,    2.5,
                                  0.03125, 0.09375, -0.00001, 1e-300, 999999999999999};
    for (size_t i = 0; i < sizeof ties / sizeof *ties; i++) {
        for (int decimals = 0; decimals <= 12; decimals++) expect_fixed(ties[i], decimals);
    }
    for (int i = 0; i < 100000; i++) {
        double value = (double)(next_random() >> 15) / (double)(1ULL << next_random() % 49);
        if (value < 1e15) expect_fixed(value, (int)(next_random() % 13));
    }
}
