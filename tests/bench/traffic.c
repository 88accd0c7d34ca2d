// What ops move: shares cover inputs and outputs, and what one rank sends another receives.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "traffic.h"

static void splits_are_read_and_printed(void **state) {
    (void)state;
    uint64_t splits;
    char text[SPLITS_TEXT];
    const char *const right[] = {"1", "3:1", "15:1:2", "15:15:15:15:15:15:15:15:15:15:15:15:15:15:15:15"};
    const char *const wrong[] = {
        "", "0", "16", "1:", ":1", "1:0", "a", "-1", "+1", " 1", "1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_true(splits_read(right[i], &splits));
        splits_print(splits, text);
        assert_string_equal(text, right[i]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(splits_read(wrong[i], &splits));
}

static void what_is_sent_is_received(void **state) {
    (void)state;
    uint64_t splits;
    assert_true(splits_read("3:1:2", &splits));
    for (int op = OP_ALLREDUCE + 1; op < OPS; op++) {
        for (int ranks = 2; ranks <= MAX_RANKS; ranks++) {
            uint64_t own = op == OP_ALLTOALLV ? splits : 0;
            size_t elements = 5 * traffic_unit((enum op)op, own, ranks);
            struct traffic traffic[MAX_RANKS];
            size_t larger = 0;
            for (int rank = 0; rank < ranks; rank++) {
                struct traffic *mine = &traffic[rank];
                traffic_of((enum op)op, own, elements, rank, ranks, 1, mine);
                if (mine->send_elements > larger) larger = mine->send_elements;
                if (mine->receive_elements > larger) larger = mine->receive_elements;
            }
            assert_int_equal(larger, elements); // the size is that of the larger buffer
            for (int from = 0; from < ranks; from++) {
                for (int to = 0; to < ranks; to++) {
                    assert_int_equal(traffic[from].sent[to], traffic[to].received[from]);
                    assert_true(traffic[from].sent[to] <= traffic[from].largest);
                    assert_true(traffic[from].send_at[to] + traffic[from].sent[to] <=
                                traffic[from].send_elements);
                    assert_true(traffic[to].receive_at[from] + traffic[to].received[from] <=
                                traffic[to].receive_elements);
                }
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_are_read_and_printed),
        cmocka_unit_test(what_is_sent_is_received),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
