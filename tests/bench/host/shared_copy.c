// Which stores hand data over: see bench/host/shared_copy.h.
#include "../../unit_test.h"

#include <stdbool.h>
#include <string.h>

#include "host/shared_copy.h"

enum { BYTES = 8 << 10, ROUND = 64 };

static unsigned char from[BYTES], to[BYTES];
static int streamed, ended;

static void count_stream(void *out, const void *in, size_t bytes) {
    memcpy(out, in, bytes);
    streamed++;
}
static void count_end(void) {
    ended++;
}

static const struct kernels counting = {.stream = count_stream, .stream_end = count_end};

// Copies `copies` times; how many of them were streamed.
static int streamed_of(struct handover *handover, int copies, size_t bytes) {
    streamed = ended = 0;
    for (int i = 0; i < copies; i++) {
        memset(to, 0, sizeof to);
        from[i % BYTES]++;
        handover_copy(handover, to, from, bytes);
        assert_memory_equal(to, from, bytes);
    }
    assert_int_equal(streamed, ended);
    return streamed;
}

static struct handover begin(int ranks) {
    struct group group = {.size = ranks, .kernels = &counting};
    struct handover handover;
    handover_begin(&handover, &group);
    return handover;
}

TEST(two_ranks_and_small_copies_never_stream) {
    struct handover two = begin(2), three = begin(3);
    assert_int_equal(streamed_of(&two, 4 * ROUND, BYTES), 0);
    assert_int_equal(streamed_of(&three, 4 * ROUND, 100), 0);
}

TEST(the_cheaper_kind_is_used_and_the_other_tried_now_and_then) {
    struct handover handover = begin(3);
    handover.copies = 1; // the next copies are not timed
    handover.ns_per_byte[false] = 3;
    handover.ns_per_byte[true] = 1;
    assert_int_equal(streamed_of(&handover, 7, BYTES), 7);
    handover.copies = 1;
    handover.ns_per_byte[false] = 1.5; // slower, but by less than it costs the readers
    handover.ns_per_byte[true] = 1;
    assert_int_equal(streamed_of(&handover, 7, BYTES), 0);
    handover.copies = 0;
    handover.ns_per_byte[false] = 1e-9; // the estimate rises, but stays below
    handover.ns_per_byte[true] = 1;
    assert_int_equal(streamed_of(&handover, ROUND, BYTES), 1);
}

TEST(an_estimate_falls_at_once_and_climbs_slowly) {
    struct handover handover = begin(3);
    handover.copies = 8; // timed
    handover.ns_per_byte[false] = 1e9;
    streamed_of(&handover, 1, BYTES);
    assert_true(handover.ns_per_byte[false] < 1e8);
    handover.copies = 8;
    handover.ns_per_byte[false] = 1e-6;
    streamed_of(&handover, 1, BYTES);
    assert_true(handover.ns_per_byte[false] > 1e-6 && handover.ns_per_byte[false] < 2e-6);
}
