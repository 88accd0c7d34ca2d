// A stand-in for gentables-bench: it uses protocol 3, measures nothing, answers at once with made-up times,
// and fails as its settings demand. One process stands for all ranks; RANKS is their number.
//
//   STAND_IN_FAULT        the fault: see faults[] and start_faults[]
//   STAND_IN_AT           the fault occurs only at requests that contain this text,
//   STAND_IN_ONCE         and only if this file does not exist yet; the fault makes it
//   STAND_IN_LOG          file to which the process id and every request are appended
//   RANKS, NODES          its ranks (default 2) and nodes (default 1), from the launcher
//   STAND_IN_SLOWER       a factor of its times (default 1)
//   STAND_IN_HASH, STAND_IN_LIBRARY   the hash and the MPI library that it reports as its own
//   STAND_IN_DEVICES      it reports a device, hot in the first process that appends to STAND_IN_LOG
//   STAND_IN_ROUNDTRIPS   round trips in microseconds, such as 0.1,0.4: one for each answer and greeting of
//                         all processes that append to STAND_IN_LOG; later ones have the last value
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 4096 };

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value != NULL ? value : otherwise;
}

static int ranks(void) {
    return (int)strtol(setting("RANKS", "2"), NULL, 10);
}

static int nodes(void) {
    return (int)strtol(setting("NODES", "1"), NULL, 10);
}

static void log_line(const char *text) {
    const char *path = getenv("STAND_IN_LOG");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL) return;
    fputs(text, file);
    fclose(file);
}

// The value of field `name` in a request; empty if there is none.
static void field(const char *request, const char *name, char *value, size_t size) {
    char key[64];
    snprintf(key, sizeof key, " %s=", name);
    const char *at = strstr(request, key);
    size_t length = at != NULL ? strcspn(at + strlen(key), " \n") : 0;
    if (length >= size) length = size - 1;
    if (at != NULL) memcpy(value, at + strlen(key), length);
    value[length] = '\0';
}

static long number(const char *request, const char *name) {
    char text[64];
    field(request, name, text, sizeof text);
    return strtol(text, NULL, 10);
}

// ---- answers ----------------------------------------------------------------------------------

static void answer_strategy(const char *request, const char *strategy) {
    long id = number(request, "id");
    if (strcmp(strategy, "TWOSHOT") == 0 && number(request, "num_tokens") < ranks()) {
        printf("none id=%ld strategy=%s reason=fewer tokens than ranks\n", id, strategy);
        return;
    }
    // Longer names are slower, so that ONESHOT and TWOSHOT differ from MPI in a known way.
    double time = (double)strlen(strategy) + 1e-3 * (double)number(request, "num_tokens");
    time *= strtod(setting("STAND_IN_SLOWER", "1"), NULL);
    printf("row id=%ld strategy=%s time_us=%.4f low_us=%.4f high_us=%.4f samples=20 min_us=%.4f p95_us=%.4f "
           "p99_us=%.4f skew_us=0.1 bound_us=0.5 bits=%016x mode=eager accumulate=fp32 placement=dedicated\n",
           id, strategy, time, 0.9 * time, 1.1 * time, 0.8 * time, 1.2 * time, 1.3 * time,
           strcmp(strategy, "MPI") == 0 ? 7u : 9u);
}

// The number of lines in the log that begin so, but for this one, which the log already has.
static int lines_before(const char *beginning) {
    const char *path = getenv("STAND_IN_LOG");
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    char line[LINE_SIZE];
    int count = -1;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        count += strncmp(line, beginning, strlen(beginning)) == 0;
    if (file != NULL) fclose(file);
    return count;
}

static double roundtrip(void) {
    const char *at = setting("STAND_IN_ROUNDTRIPS", "0.1");
    for (int left = lines_before(""); left > 0 && strchr(at, ',') != NULL; left--) at = strchr(at, ',') + 1;
    return strtod(at, NULL);
}

static void answer(const char *request) {
    char strategies[LINE_SIZE];
    field(request, "strategies", strategies, sizeof strategies);
    for (char *name = strtok(strategies, ","); name != NULL; name = strtok(NULL, ",")) {
        answer_strategy(request, name);
    }
    printf("done id=%ld roundtrip_us=%.4f\n", number(request, "id"), roundtrip());
    fflush(stdout);
}

// ---- faults -----------------------------------------------------------------------------------

static volatile sig_atomic_t asked_to_end;

static void note_end(int number_of_signal) {
    asked_to_end = number_of_signal;
}

static void die(const char *request) {
    (void)request;
    fprintf(stderr, "stand-in: first words\nstand-in: last words\n"
                    "[head:224] plm:rsh: Warning: setpgid(229,229) failed in parent with errno=...\n");
    abort();
}

static void hang(const char *request) {
    (void)request;
    for (;;) pause();
}

// Answers only after a signal to end.
static void late(const char *request) {
    signal(SIGTERM, note_end);
    while (!asked_to_end) pause();
    answer(request);
    _exit(0);
}

static void say(const char *text) {
    fputs(text, stdout);
    fflush(stdout);
}

// No strategy has a time, because the budget is spent.
static void spent(const char *request) {
    char strategies[LINE_SIZE];
    field(request, "strategies", strategies, sizeof strategies);
    for (char *name = strtok(strategies, ","); name != NULL; name = strtok(NULL, ",")) {
        printf("none id=%ld strategy=%s reason=budget spent\n", number(request, "id"), name);
    }
    printf("done id=%ld roundtrip_us=0.1\n", number(request, "id"));
    fflush(stdout);
}

// TWOSHOT ends the bench in every request that names it.
static void blame(const char *request) {
    char strategies[LINE_SIZE];
    field(request, "strategies", strategies, sizeof strategies);
    if (strstr(strategies, "TWOSHOT") == NULL) {
        answer(request);
        return;
    }
    say("error strategy=TWOSHOT reason=it hung\n");
    _exit(1);
}

// A fault calls a function, or prints a line, in which %ld is the request's number, and then ends the bench
// with `code`, if that is not 0.
static const struct fault {
    const char *name;
    void (*happen)(const char *request);
    const char *line;
    int code;
} faults[] = {
    {.name = "die", .happen = die},
    {.name = "leave", .line = "", .code = 3},
    {.name = "hang", .happen = hang},
    {.name = "late", .happen = late},
    {.name = "garbage", .line = "Segment ID: 7 \033[31mred\n"},
    {.name = "no_time",
     .line = "row id=%ld strategy=MPI time_us=nan low_us=1 high_us=1 samples=1 min_us=1 p95_us=1 p99_us=1 "
             "skew_us=0 bound_us=0 bits=0 mode=eager accumulate=fp32 placement=dedicated\n"},
    {.name = "silent_about_one", .line = "done id=%ld roundtrip_us=0.1\n"},
    {.name = "wrong_id", .line = "done id=100%ld roundtrip_us=0.1\n"},
    {.name = "refuse", .line = "error reason=no such fusion\n", .code = 1},
    {.name = "blame", .happen = blame},
    {.name = "spent", .happen = spent},
    {.name = NULL},
};

static void occur(const struct fault *fault, const char *request) {
    if (fault->happen != NULL) {
        fault->happen(request);
        return;
    }
    printf(fault->line, number(request, "id"));
    fflush(stdout);
    if (fault->code != 0) _exit(fault->code);
}

static const char *const start_faults[] = {"die_at_start", "mute_at_start", "other_protocol", "other_bench",
                                           NULL};

static const struct fault *fault_now(const char *request) {
    const char *wanted = setting("STAND_IN_FAULT", ""), *once = getenv("STAND_IN_ONCE");
    if (strstr(request, setting("STAND_IN_AT", "")) == NULL) return NULL;
    for (const struct fault *fault = faults; fault->name != NULL; fault++) {
        if (strcmp(fault->name, wanted) != 0) continue;
        if (once != NULL && open(once, O_CREAT | O_EXCL | O_WRONLY, 0600) < 0) return NULL;
        return fault;
    }
    return NULL;
}

static int has_start_fault(const char *name) {
    return strcmp(setting("STAND_IN_FAULT", ""), name) == 0;
}

// ---- main -------------------------------------------------------------------------------------

// The state of the device at the end.
static void report_end(void) {
    if (getenv("STAND_IN_DEVICES") == NULL) return;
    if (lines_before("pid ") == 0) {
        say("device rank=0 clock_mhz=1900 least_clock_mhz=1200 throttle_seen=0x40 "
            "largest_switch_error_ulp=0.71\n");
    } else {
        say("device rank=0 clock_mhz=1980 least_clock_mhz=1900 throttle_seen=0x4 "
            "largest_switch_error_ulp=0.62\n");
    }
}

static void greet(void) {
    if (has_start_fault("die_at_start")) die("");
    if (has_start_fault("mute_at_start")) hang("");
    printf("hello protocol=%d bench=%s world_size=%d nodes=%d ranks_per_node=%d cores=2 placement=dedicated "
           "isa=portable roundtrip_us=%.4f compiler=none library=%s\n",
           has_start_fault("other_protocol") ? 4 : 3,
           has_start_fault("other_bench") ? "other" : setting("STAND_IN_HASH", "stand-in"), ranks(), nodes(),
           ranks() / nodes(), roundtrip(), setting("STAND_IN_LIBRARY", "Open MPI v4.1.4"));
    say("strategy name=MPI status=available\nstrategy name=ONESHOT status=available\n"
        "strategy name=TWOSHOT status=available\nstrategy name=AUTO status=available\nstrategy name=MPI_SM "
        "status=unavailable reason=not in "
        "here\n");
    if (getenv("STAND_IN_DEVICES") != NULL) say("device rank=0 clock_mhz=1980\n");
    say("ready\n");
}

static void serve(void) {
    char line[LINE_SIZE];
    snprintf(line, sizeof line, "pid %d\n", (int)getpid());
    log_line(line);
    greet();
    while (fgets(line, sizeof line, stdin) != NULL && strcmp(line, "quit\n") != 0) {
        log_line(line);
        const struct fault *fault = fault_now(line);
        if (fault != NULL) {
            occur(fault, line);
        } else {
            answer(line);
        }
    }
    report_end();
}

static int knows_fault(const char *name) {
    for (const struct fault *fault = faults; fault->name != NULL; fault++) {
        if (strcmp(fault->name, name) == 0) return 1;
    }
    for (const char *const *known = start_faults; *known != NULL; known++) {
        if (strcmp(*known, name) == 0) return 1;
    }
    return name[0] == '\0';
}

int main(int argc, char **argv) {
    if (!knows_fault(setting("STAND_IN_FAULT", ""))) {
        fprintf(stderr, "stand-in: no such fault\n");
        return 2;
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("gentables-bench protocol=3 bench=%s isa=portable compiler=none library=%s\n",
               setting("STAND_IN_HASH", "stand-in"),
               setting("STAND_IN_LIBRARY", "Open MPI v4.1.4, package: Debian"));
        return 0;
    }
    serve();
    return 0;
}
