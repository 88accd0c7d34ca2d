// The traffic of ops: shares cover inputs and outputs, and each message has the size that its receiver
// expects.
#include "../../unit_test.h"

#include <string.h>

#include "elements/traffic.h"

TEST(splits_are_read_and_printed) {
    uint64_t splits;
    char text[SPLITS_TEXT];
    const char *const right[] = {"1",   "3:1", "14:1:2", "14:14:14:14:14:14:14:14:14:14:14:14:14:14:14:14",
                                 "1:0", "0:1", "0:0:7:0"};
    const char *const wrong[] = {
        "", "0", "0:0", "15", "1:", ":1", "a", "-1", "+1", " 1", "1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_true(splits_read(right[i], &splits));
        splits_print(splits, text);
        assert_string_equal(text, right[i]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(splits_read(wrong[i], &splits));
}

static void is_consistent(uint64_t splits) {
    for (int op = OP_ALLREDUCE + 1; op < OPS; op++) {
        for (int ranks = 2; ranks <= MAX_RANKS; ranks = ranks < MAX_NODE_RANKS ? ranks + 1 : 8 * ranks) {
            uint64_t own = op == OP_ALLTOALLV ? splits : 0;
            if (!traffic_moves((enum op)op, own, ranks)) continue;
            size_t elements = 5 * traffic_unit((enum op)op, own, ranks);
            static struct traffic traffic[MAX_RANKS];
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

TEST(what_is_sent_is_received) {
    const char *const texts[] = {"3:1:2", "3:0:2", "0:1", "0:0:0:0:0:1:14"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint64_t splits;
        assert_true(splits_read(texts[i], &splits));
        is_consistent(splits);
    }
}

TEST(who_has_no_weight_gets_nothing) {
    uint64_t splits;
    struct traffic traffic;
    assert_true(splits_read("0:1", &splits));
    traffic_of(OP_ALLTOALLV, splits, 20, 0, 2, 0, &traffic);
    assert_int_equal(traffic.receive_elements, 0);
    assert_int_equal(traffic.send_elements, 10);
    assert_true(traffic_moves(OP_ALLTOALLV, splits, 2));
    assert_true(splits_read("0:0:1", &splits));
    assert_false(traffic_moves(OP_ALLTOALLV, splits, 2));
    assert_true(traffic_moves(OP_ALLTOALLV, splits, 3));
    assert_true(traffic_moves(OP_ALLTOALL, 0, 2));
}
