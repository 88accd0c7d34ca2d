// Request lines: the fields of valid lines, and that all other lines are rejected.
#include "../../unit_test.h"

#include <stdio.h>
#include <string.h>

#include "protocol/protocol.h"

static const char good[] =
    "measure id=7 op=allreduce dtype=float16 fusion=RESIDUAL_RMS_NORM hidden_size=2880 num_tokens=3 "
    "mode=eager min_samples=5 max_samples=50 budget_us=1500.5 seed=9 strategies=ONESHOT,MPI";

static enum line_kind read_line(const char *text, struct request *request, char reason[REASON_SIZE]) {
    char line[512];
    snprintf(line, sizeof line, "%s", text);
    return protocol_read_request(line, 1, request, reason, REASON_SIZE);
}

TEST(a_request_is_read_whole) {
    struct request request;
    char reason[REASON_SIZE];
    assert_int_equal(read_line(good, &request, reason), LINE_MEASURE);
    assert_int_equal(request.id, 7);
    assert_int_equal(request.shape.dtype, DTYPE_FLOAT16);
    assert_int_equal(request.shape.fusion, FUSION_RESIDUAL_RMS_NORM);
    assert_int_equal(request.shape.hidden_size, 2880);
    assert_int_equal(request.shape.num_tokens, 3);
    assert_int_equal(request.min_samples, 5);
    assert_int_equal(request.max_samples, 50);
    assert_int_equal((int)(request.budget_us * 10), 15005);
    assert_int_equal(request.seed, 9);
    assert_true(request.left_us == 0);
    int wanted = 0;
    for (int i = 0; i < candidate_count(); i++) {
        wanted += request.wanted[i];
        bool named = strcmp(backend->candidates[i].name, "MPI") == 0 ||
                     strcmp(backend->candidates[i].name, "ONESHOT") == 0;
        assert_int_equal(request.wanted[i], named);
    }
    assert_int_equal(wanted, 2);
}

TEST(quit_is_no_request) {
    struct request request;
    char reason[REASON_SIZE];
    assert_int_equal(read_line("quit", &request, reason), LINE_QUIT);
}

TEST(nothing_else_is_taken_for_a_request) {
    const char *endings[] = {
        " nonsense",      " colour=red",     " dtype=int8",      " fusion=SOFTMAX",  " op=gather",
        " num_tokens=0",  " num_tokens=x",   " hidden_size=-4",  " strategies=NCCL", " mode=graph",
        " seed=1e99",     " min_samples=",   " max_samples=0",   " id=-1",           " num_tokens=nan",
        " budget_us=inf", " num_tokens=2.7", " hidden_size=0x10"};
    const char *lines[] = {"", "hello", "measure", "measure num_tokens=4", "measure hidden_size=4"};
    struct request request;
    char reason[REASON_SIZE], line[512];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(line, sizeof line, "%s%s", good, endings[i]);
        if (read_line(line, &request, reason) != LINE_WRONG) fail_msg("taken: %s", line);
        assert_true(reason[0] != '\0');
    }
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (read_line(lines[i], &request, reason) != LINE_WRONG) fail_msg("taken: %s", lines[i]);
        assert_true(reason[0] != '\0');
    }
}
