// A program of unit tests: cmocka with the headers that it needs, tests that list themselves, and main.
//
//   TEST(sums_are_exact) { assert_true(...); }
//   TEST_WITH(set_up, tear_down, sums_are_exact) { ... }       with these around it; NULL: none
//
// A file with HAS_OWN_MAIN calls run_unit_tests(), which returns how many tests failed.
#ifndef GENTABLES_TESTS_UNIT_TEST_H
#define GENTABLES_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST_UNIT_TESTS = 64 };

static struct CMUnitTest unit_tests[MOST_UNIT_TESTS]; // cmocka passes over those without a name
static size_t unit_test_count;

#define TEST_WITH(set_up, tear_down, name)                                                                   \
    static void name(void **state);                                                                          \
    __attribute__((constructor)) static void list_##name(void) {                                             \
        unit_tests[unit_test_count++] =                                                                      \
            (struct CMUnitTest)cmocka_unit_test_setup_teardown(name, set_up, tear_down);                     \
    }                                                                                                        \
    static void name(__attribute__((unused)) void **state)
#define TEST(name) TEST_WITH(NULL, NULL, name)

static inline int run_unit_tests(void) {
    return cmocka_run_group_tests(unit_tests, NULL, NULL);
}

#ifndef HAS_OWN_MAIN
int main(void) {
    return run_unit_tests();
}
#endif

#endif
