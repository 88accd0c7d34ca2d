// Waiting for a peer (bench/ranks/group.h): arrival ends the wait; a peer that died, a peer that gave up and
// a deadline end it, too, and the first rank that detects this reports it.
#include "../../unit_test.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ranks/culprit.h"
#include "ranks/group.h"
#include "ranks/watch.h"

enum { QUESTIONS = 20, RANKS = 3 };

static struct control *control; // shared with children

static int new_control(void **state) {
    (void)state;
    control = mmap(NULL, control_bytes(RANKS), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return control == MAP_FAILED ? -1 : 0;
}

static int drop_control(void **state) {
    (void)state;
    return munmap(control, control_bytes(RANKS));
}

static struct group group_of(int rank, double timeout_s) {
    struct group group = {
        .rank = rank, .size = 2, .spin_limit = 1, .timeout_s = timeout_s, .control = control};
    group_set_one_node(&group);
    return group;
}

// A child that ends when it has done `work`; returns its pid.
static pid_t start(void (*work)(void)) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        work();
        _exit(0);
    }
    return child;
}

static void ping(void) {
    atomic_store_explicit(&control->ping.value, 1, memory_order_release);
}

static void nothing(void) {}

static void give_up(void) {
    struct group group = group_of(1, 0.01);
    (void)group_wait(&group, &control->pong.value, 1);
}

static void sleep_for_good(void) {
    for (;;) pause();
}

static int culprit_of_three(int asking) {
    char text[80];
    struct group group = group_of(asking, 60);
    group.size = 3;
    group_set_one_node(&group);
    char state;
    return culprit_name(&group, asking, &state, text, sizeof text);
}

static void ask_for_good(void) {
    for (;;) {
        (void)culprit_of_three(1);
        ping();
    }
}

TEST_WITH(new_control, drop_control, what_arrives_ends_the_wait) {
    struct group group = group_of(0, 60);
    control->of[0].pid = (int32_t)getpid();
    pid_t child = start(ping);
    control->of[1].pid = (int32_t)child;
    assert_true(group_wait(&group, &control->ping.value, 1));
    waitpid(child, NULL, 0);
}

TEST_WITH(new_control, drop_control, a_peer_that_died_is_reported) {
    struct group group = group_of(0, 60);
    control->of[0].pid = (int32_t)getpid();
    control->of[1].pid = (int32_t)start(nothing);
    waitpid((pid_t)control->of[1].pid, NULL, 0);
    assert_false(group_wait(&group, &control->ping.value, 1));
    assert_string_equal(group_failure(&group), "rank 1 died, at the start");
}

TEST_WITH(new_control, drop_control, a_deadline_is_reported) {
    struct group group = group_of(0, 0.01);
    control->of[0].pid = control->of[1].pid = (int32_t)getpid();
    assert_false(group_wait(&group, &control->ping.value, 1));
    assert_string_equal(group_failure(&group), "no rank responds, at the start; rank 0 waited for 0.01 s");
}

TEST_WITH(new_control, drop_control, the_first_failure_is_reported_by_all) {
    struct group group = group_of(0, 60);
    control->of[0].pid = control->of[1].pid = (int32_t)getpid();
    pid_t child = start(give_up);
    assert_false(group_wait(&group, &control->ping.value, 1));
    assert_string_equal(group_failure(&group), "no rank responds, at the start; rank 1 waited for 0.01 s");
    waitpid(child, NULL, 0);
}

// The deadlines of several ranks may pass at the same time; a rank that looks for the culprit is none.
TEST_WITH(new_control, drop_control, who_asks_does_not_look_asleep) {
    struct group group = group_of(0, 60);
    pid_t asleep = start(sleep_for_good);
    control->of[0].pid = control->of[1].pid = (int32_t)getpid();
    control->of[2].pid = (int32_t)asleep;
    while (culprit_of_three(0) != 2) {
    } // until it sleeps
    pid_t asking = start(ask_for_good);
    control->of[1].pid = (int32_t)asking;
    assert_true(group_wait(&group, &control->ping.value, 1));
    int right = 0;
    for (int i = 0; i < QUESTIONS; i++) right += culprit_of_three(0) == 2;
    kill(asking, SIGKILL);
    kill(asleep, SIGKILL);
    waitpid(asking, NULL, 0);
    waitpid(asleep, NULL, 0);
    assert_int_equal(right, QUESTIONS);
}
