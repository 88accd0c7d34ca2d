// NCCL's log: its settings beside the user's, the facts that are read from it, and the lines that are passed
// on.
#include "../../unit_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workload/gpu/nccl_log.h"

static const char info[] = "h:1:1 [0] NCCL INFO Bootstrap : Using eth0\n";
static const char counts[] =
    "h:1:1 [0] NCCL INFO NCCL_MIN_NCHANNELS set by environment to 28.\n"
    "h:1:1 [0] NCCL INFO  Max NThreads |  512 |  640 |  512 |  256 |  640 |  384 |\n"
    "h:1:1 [0] NCCL INFO 24 coll channels, 0 collnet channels, 0 nvls channels, 32 p2p channels\n";

static int forget(void **state) {
    (void)state;
    unsetenv("NCCL_DEBUG");
    unsetenv("NCCL_DEBUG_FILE");
    unsetenv("NCCL_DEBUG_SUBSYS");
    return 0;
}

static void append(const char *path, const char *text) {
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

// The lines of such a log that are passed on, once it has ended.
static void read_all(struct nccl_log *log, const char *text, char *said, size_t size) {
    FILE *file = tmpfile();
    assert_non_null(file);
    append(log->path, text);
    nccl_log_end(log, file);
    rewind(file);
    said[fread(said, 1, size - 1, file)] = '\0';
    fclose(file);
}

TEST_WITH(forget, NULL, what_is_read_of_a_log_of_our_own) {
    struct nccl_log log;
    char said[4096], text[1024], path[NCCL_LOG_PATH];
    nccl_log_enable(&log);
    assert_string_equal(getenv("NCCL_DEBUG"), "INFO");
    assert_string_equal(getenv("NCCL_DEBUG_FILE"), log.path);
    strcpy(path, log.path);
    snprintf(text, sizeof text, "%s%s", info, counts);
    read_all(&log, text, said, sizeof said);
    assert_int_equal(log.channels, 24);
    assert_int_equal(log.threads, 384);
    assert_string_equal(log.answer, "");
    assert_string_equal(said, counts); // what matters
    assert_int_not_equal(access(path, F_OK), 0);
}

// If the user sets NCCL_DEBUG, its lines are printed; the counts are known in any case.
TEST_WITH(forget, NULL, what_somebody_asked_for_is_logged_on) {
    struct nccl_log log;
    char said[4096], text[1024];
    setenv("NCCL_DEBUG", "warn", 1);
    setenv("NCCL_DEBUG_SUBSYS", "NET", 1);
    nccl_log_enable(&log);
    assert_string_equal(getenv("NCCL_DEBUG"), "INFO");
    assert_string_equal(getenv("NCCL_DEBUG_SUBSYS"), "NET,INIT,BOOTSTRAP,ENV,TUNING");
    snprintf(text, sizeof text, "%s%s", info, counts);
    read_all(&log, text, said, sizeof said);
    assert_int_equal(log.channels, 24);
    assert_string_equal(said, text);
    forget(NULL);
    setenv("NCCL_DEBUG", "TRACE", 1);
    nccl_log_enable(&log);
    assert_string_equal(getenv("NCCL_DEBUG"), "TRACE");
    nccl_log_end(&log, stderr);
}

TEST_WITH(forget, NULL, a_file_of_somebody_elses_is_read_and_stays) {
    struct nccl_log log;
    char said[4096], pattern[] = "/tmp/gentables-test-%p-XXXXXX", path[NCCL_LOG_PATH];
    int file = mkstemp(pattern);
    assert_true(file >= 0);
    close(file);
    unlink(pattern);
    setenv("NCCL_DEBUG_FILE", pattern, 1);
    nccl_log_enable(&log);
    assert_string_equal(getenv("NCCL_DEBUG_FILE"), pattern);
    nccl_log_expand(pattern, "", (int)getpid(), path, sizeof path);
    assert_string_equal(log.path, path);
    read_all(&log, counts, said, sizeof said);
    assert_int_equal(log.channels, 24);
    assert_string_equal(said, "");
    assert_int_equal(unlink(path), 0);
}

TEST_WITH(forget, NULL, names_of_files_are_expanded_as_nccl_does) {
    char path[64], small[6];
    nccl_log_expand("a/%h.%p%%%x", "node7.example.org", 42, path, sizeof path);
    assert_string_equal(path, "a/node7.42%%x");
    nccl_log_expand("a/%h", "node7", 1, small, sizeof small);
    assert_string_equal(small, "a/nod");
}

// In newer versions a refusal is no warning; the rule for an older one does not cover it.
TEST_WITH(forget, NULL, what_nccl_refuses_is_its_answer) {
    static const char *const refusals[] = {"Invalid NCCL_NTHREADS 250 (must be a multiple of 32)",
                                           "User asked for a minimum of 99 channels, limiting to 64"};
    for (size_t i = 0; i < 2; i++) {
        for (int is_warning = 0; is_warning < 2; is_warning++) {
            struct nccl_log log;
            char said[4096], text[1024];
            forget(NULL);
            nccl_log_enable(&log);
            snprintf(text, sizeof text, "h:1:1 [0] %s%s\nh:1:1 [0] misc.cc:1 NCCL WARN Missing iommu\n%s",
                     is_warning ? "graph/tuning.cc:15 NCCL WARN " : "NCCL INFO ", refusals[i], counts);
            read_all(&log, text, said, sizeof said);
            assert_string_equal(log.answer, refusals[i]);
            assert_true(log.is_refusal);
            assert_string_equal(said, text);
        }
    }
}

// A line without its end stays for later.
TEST_WITH(forget, NULL, a_log_is_read_bit_by_bit) {
    struct nccl_log log;
    char said[4096];
    FILE *none = tmpfile();
    nccl_log_enable(&log);
    append(log.path, "h:1:1 [0] NCCL INFO 2");
    nccl_log_read(&log, none);
    assert_int_equal(log.channels, 0);
    assert_int_equal(ftell(none), 0);
    fclose(none);
    append(log.path, "4 coll channels\n");
    FILE *writer = fopen(log.path, "a"); // as NCCL has it open
    nccl_log_unlink(&log);
    assert_string_equal(log.path, "");
    fputs("h NCCL WARN late\n", writer);
    fclose(writer);
    FILE *file = tmpfile();
    nccl_log_end(&log, file);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = '\0';
    fclose(file);
    assert_int_equal(log.channels, 24);
    assert_string_equal(log.answer, "late");
    assert_false(log.is_refusal);
    assert_string_equal(said, "h:1:1 [0] NCCL INFO 24 coll channels\nh NCCL WARN late\n");
}
