// Who had no processor, or was stopped with all the program, gets more time; who was looked at, none.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "patience.h"

static const uint64_t LOOK = PATIENCE_LOOK_NS, FOR_LONG = 3600000000000u;

static void time_that_was_looked_at_counts(void **state) {
    (void)state;
    struct patience patience;
    patience_begin(&patience, 100, 7);
    for (uint64_t i = 1; i <= 500; i++) patience_look(&patience, 100 + i * LOOK, 7);
    assert_true(patience.had_ns == 500 * LOOK);
}

static void time_without_a_processor_counts_half(void **state) {
    (void)state;
    struct patience patience;
    patience_begin(&patience, 0, 0);
    for (uint64_t i = 1; i <= 500; i++) patience_look(&patience, i * LOOK, i * LOOK);
    assert_true(patience.had_ns == 250 * LOOK);
    patience_look(&patience, 501 * LOOK, 500 * LOOK);
    assert_true(patience.had_ns == 251 * LOOK);
}

static void time_in_which_nobody_looked_is_short(void **state) {
    (void)state;
    struct patience patience;
    patience_begin(&patience, 0, 0);
    patience_look(&patience, FOR_LONG, 0);
    assert_true(patience.had_ns == 2 * LOOK);
    patience_look(&patience, FOR_LONG + LOOK, 2 * LOOK); // he waited longer than it was
    assert_true(2 * patience.had_ns == 5 * LOOK);
}

static void who_is_not_there_has_not_been_starved(void **state) {
    (void)state;
    assert_true(patience_starved_ns(-1) == 0);
    uint64_t before = patience_starved_ns(getpid());
    assert_true(patience_starved_ns(getpid()) >= before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_that_was_looked_at_counts),
        cmocka_unit_test(time_without_a_processor_counts_half),
        cmocka_unit_test(time_in_which_nobody_looked_is_short),
        cmocka_unit_test(who_is_not_there_has_not_been_starved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
