// Late work is cancelled, and then has its grace time, however seldom the watcher runs.
#include "../../unit_test.h"

#include "ranks/deadline.h"

enum { BEGAN = 1000, MOST = 160, GRACE = 10 };

static enum verdict look(struct deadline *deadline, uint64_t now) {
    return deadline_check(deadline, BEGAN, BEGAN + now, MOST, GRACE);
}

TEST(work_is_cancelled_a_grace_before_its_deadline) {
    struct deadline deadline = {0};
    for (uint64_t now = 0; now <= MOST - GRACE; now += 5) {
        assert_int_equal(look(&deadline, now), VERDICT_NONE);
    }
    assert_int_equal(look(&deadline, MOST - GRACE + 5), VERDICT_CANCEL);
    assert_int_equal(look(&deadline, MOST), VERDICT_NONE);
    assert_int_equal(look(&deadline, MOST + 5), VERDICT_NONE);
    assert_int_equal(look(&deadline, MOST + 10), VERDICT_END);
}

// As on a busy machine: each check comes after the whole time has passed.
TEST(work_that_is_cancelled_late_still_has_its_grace) {
    struct deadline deadline = {0};
    assert_int_equal(look(&deadline, 1000), VERDICT_NONE);
    assert_int_equal(look(&deadline, 2000), VERDICT_CANCEL);
    assert_int_equal(look(&deadline, 2001), VERDICT_NONE);
    assert_int_equal(look(&deadline, 3000), VERDICT_NONE);
    assert_int_equal(look(&deadline, 3001), VERDICT_END);
}

TEST(other_work_begins_anew) {
    struct deadline deadline = {0};
    look(&deadline, 1000);
    assert_int_equal(look(&deadline, 2000), VERDICT_CANCEL);
    uint64_t began = BEGAN + 2001;
    assert_int_equal(deadline_check(&deadline, began, began + MOST, MOST, GRACE), VERDICT_NONE);
    assert_int_equal(deadline_check(&deadline, began, began + MOST + 1, MOST, GRACE), VERDICT_CANCEL);
    assert_int_equal(deadline_check(&deadline, began + 500, began + 499, MOST, GRACE), VERDICT_NONE);
}
