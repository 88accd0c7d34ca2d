// gentables-bench, on CPUs, and gentables-bench-cuda, on GPUs: times strategies of collectives over ranks.
//
//   mpirun -n 2 gentables-bench                a table, from 256 B to 16 MiB (protocol/by_hand.h)
//   mpirun -n 2 gentables-bench --serve        requests on standard input (protocol/protocol.h)
//   mpirun -n 2 gentables-bench --pass FILE    one pass over many ops (protocol/pass.h)
//   mpirun -n 2 gentables-bench --trial FILE --plugin ./mine.so
//                                              checks of a plug-in (trial/trial.h)
//   gentables-bench --version                  protocol, source hash and library, without mpirun
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "measure/harness.h"
#include "plugin_loader/plugin_rank.h"
#include "plugin_loader/plugins.h"
#include "protocol/by_hand.h"
#include "protocol/protocol.h"
#include "ranks/fault_report.h"
#include "ranks/node_link.h"
#include "ranks/watch.h"
#include "start/launch.h"
#include "start/self_test.h"
#include "trial/run_input.h"

enum { MOST_SAMPLES = 1000000, USUAL_TIMEOUT_S = 30 };

// The defaults of nccl-tests.
static const struct back_to_back usual_calls = {.iterations = 20, .warm_up = 1, .check = true};

struct options {
    bool serve;
    const char *input_path;
    enum input_use input_use;
    bool lists_candidates, tests_itself, has_processes;
    const char *only_stage; // of the self-test; NULL: all
    double timeout_s;
    int ranks; // 0: set by the launcher
    struct device_options device;
    struct by_hand by_hand;
};

// ---- options ------------------------------------------------------------------------------------

// "64", "16K", "16M", "1G"; 0 for other texts.
static size_t read_size(const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (shift != 0) end++;
    bool wrong = end == text || *end != '\0' || text[0] == '-' || value > SIZE_MAX >> shift;
    return wrong ? 0 : (size_t)value << shift;
}

static int wrong_option(const char *option, const char *value) {
    fprintf(stderr, "gentables-bench: --%s: invalid value %s; see --help\n", option, value);
    return -1;
}

static int read_size_option(const char *name, const char *text, size_t *size) {
    *size = read_size(text);
    return *size == 0 ? wrong_option(name, text) : 0;
}

static int read_seconds(const char *name, const char *text, double *seconds) {
    char *end;
    *seconds = strtod(text, &end);
    return end == text || *end != '\0' || !(*seconds > 0) ? wrong_option(name, text) : 0;
}

static int read_name(const char *name, const char *const names[], int count, const char *text, int *index) {
    *index = find_name(names, count, text);
    return *index < 0 ? wrong_option(name, text) : 0;
}

static const struct option long_options[] = {
    {"minbytes", required_argument, NULL, 'b'},
    {"maxbytes", required_argument, NULL, 'e'},
    {"stepfactor", required_argument, NULL, 'f'},
    {"stepbytes", required_argument, NULL, 'i'},
    {"iters", required_argument, NULL, 'n'},
    {"warmup_iters", required_argument, NULL, 'w'},
    {"check", required_argument, NULL, 'c'},
    {"cudagraph", required_argument, NULL, 'G'},
    {"output_file", required_argument, NULL, 'J'},
    {"op", required_argument, NULL, 'o'},
    {"splits", required_argument, NULL, 'p'},
    {"dtype", required_argument, NULL, 'd'},
    {"fusion", required_argument, NULL, 'F'},
    {"hidden-size", required_argument, NULL, 'H'},
    {"strategies", required_argument, NULL, 's'},
    {"samples", required_argument, NULL, 'N'},
    {"budget", required_argument, NULL, 'B'},
    {"timeout", required_argument, NULL, 'T'},
    {"serve", no_argument, NULL, 'S'},
    {"plugin", required_argument, NULL, 'P'},
    {"candidates", no_argument, NULL, 'C'},
    {"pass", required_argument, NULL, 'U'},
    {"trial", required_argument, NULL, 'R'},
    {"brief-trial", required_argument, NULL, 'Y'},
    {"ranks", required_argument, NULL, 'K'},
    {"mode", required_argument, NULL, 'M'},
    {"loopback", no_argument, NULL, 'L'},
    {"streams", no_argument, NULL, 'Z'},
    {"processes", no_argument, NULL, 'O'},
    {"workspace", required_argument, NULL, 'W'},
    {"arena", required_argument, NULL, 'A'},
    {"emulate-nvfp4", no_argument, NULL, 'E'},
    {"no-programmatic", no_argument, NULL, 'g'},
    {"no-multicast", no_argument, NULL, 'm'},
    {"handles", required_argument, NULL, 'h'},
    {"self-test", optional_argument, NULL, 'x'},
    {NULL, 0, NULL, 0},
};

// Reads a count of calls, and switches to back-to-back calls.
static int read_calls(const char *name, const char *text, uint32_t least, struct back_to_back *calls,
                      uint32_t *count) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    bool wrong = end == text || *end != '\0' || text[0] == '-' || value < least || value > MOST_SAMPLES;
    if (wrong) return wrong_option(name, text);
    if (calls->iterations == 0) {
        double budget_us = calls->budget_us;
        *calls = usual_calls;
        calls->budget_us = budget_us;
    }
    *count = (uint32_t)value;
    return 0;
}

static int read_mode(const char *text, enum mode *mode) {
    int index, status = read_name("mode", call_mode_names, MODES, text, &index);
    *mode = (enum mode)index;
    return status == 0 && !backend->modes[index] ? wrong_option("mode", text) : status;
}

// Reads an option of nccl-tests; 1: it is another option.
static int read_nccl_option(struct by_hand *options, int option, const char *value) {
    uint32_t number = 0;
    int status;
    switch (option) {
    case 'b': return read_size_option("minbytes", value, &options->from_bytes);
    case 'e': return read_size_option("maxbytes", value, &options->to_bytes);
    case 'f':
        status = read_size_option("stepfactor", value, &options->factor);
        return status == 0 && options->factor < 2 ? wrong_option("stepfactor", value) : status;
    case 'i': options->factor = 0; return read_size_option("stepbytes", value, &options->increment);
    case 'n': return read_calls("iters", value, 1, &options->calls, &options->calls.iterations);
    case 'w': return read_calls("warmup_iters", value, 0, &options->calls, &options->calls.warm_up);
    case 'c':
        status = read_calls("check", value, 0, &options->calls, &number);
        options->calls.check = number > 0;
        return status == 0 && number > 1 ? wrong_option("check", value) : status;
    case 'G':
        if (strcmp(value, "0") == 0) return 0;
        if (backend->modes[MODE_GRAPH]) return read_mode("graph", &options->request.mode);
        fprintf(stderr, "gentables-bench: -G %s: calls on the host are eager, without graphs; use -G 0\n",
                value);
        return -1;
    case 'J': options->json_path = value; return 0;
    default: return 1;
    }
}

// With --brief-trial there is no isolation process, since tools such as compute-sanitizer watch the process
// that they started; with --candidates there is none, since nothing runs.
static int load_plugin(const struct options *options, const char *path) {
    char reason[PLUGIN_REASON_SIZE];
    bool needs_isolation = !options->lists_candidates && options->input_use != INPUT_BRIEF_TRIAL;
    if (needs_isolation && fault_isolate() != 0) {
        fprintf(stderr, "gentables-bench: cannot start an isolation process: %s\n", strerror(errno));
        return -1;
    }
    if (protocol_keep_apart() != 0) {
        fprintf(stderr, "gentables-bench: cannot separate standard output for rows: %s\n", strerror(errno));
        return -1;
    }
    if (plugins_load(path, reason) == 0) return 0;
    fprintf(stderr, "gentables-bench: %s\n", reason);
    return -1;
}

static int read_ranks(const char *text, int *ranks) {
    char *end;
    long value = strtol(text, &end, 10);
    *ranks = (int)value;
    return end == text || *end != '\0' || value < 1 || value > MAX_NODE_RANKS ? wrong_option("ranks", text)
                                                                              : 0;
}

static int read_handles(const char *text, const char **handles) {
    static const char *const names[] = {"fabric", "file", "ipc"};
    int index, status = read_name("handles", names, 3, text, &index);
    if (status == 0) *handles = names[index];
    return status;
}

static int set_input(struct options *options, enum input_use use, const char *path) {
    options->input_use = use;
    options->input_path = path;
    return 0;
}

static int read_option(struct options *options, int option, char *value) {
    struct request *request = &options->by_hand.request;
    char reason[REASON_SIZE];
    int index, status;
    size_t size = 0;
    double seconds;
    status = read_nccl_option(&options->by_hand, option, value);
    if (status != 1) return status;
    switch (option) {
    case 'o':
        status = read_name("op", op_names, OPS, value, &index);
        request->shape.op = (enum op)index;
        return status;
    case 'p': return splits_read(value, &request->shape.splits) ? 0 : wrong_option("splits", value);
    case 'd':
        status = read_name("dtype", dtype_names, DTYPES, value, &index);
        request->shape.dtype = (enum dtype)index;
        return status;
    case 'F':
        status = read_name("fusion", fusion_names, FUSIONS, value, &index);
        request->shape.fusion = (enum fusion)index;
        return status;
    case 'H': return read_size_option("hidden-size", value, &options->by_hand.hidden_size);
    case 's':
        status = want_strategies(request, value, reason, sizeof reason);
        if (status != 0) fprintf(stderr, "gentables-bench: %s; see --help\n", reason);
        return status;
    case 'N':
        status = read_size_option("samples", value, &size);
        if (size > MOST_SAMPLES) return wrong_option("samples", value);
        request->max_samples = (uint32_t)size;
        if (request->min_samples > request->max_samples) request->min_samples = request->max_samples;
        return status;
    case 'B':
        status = read_seconds("budget", value, &seconds);
        request->budget_us = options->by_hand.calls.budget_us = seconds * 1e6;
        return status;
    case 'T': return read_seconds("timeout", value, &options->timeout_s);
    case 'S': options->serve = true; return 0;
    case 'U': return set_input(options, INPUT_PASS, value);
    case 'R': return set_input(options, INPUT_TRIAL, value);
    case 'Y': return set_input(options, INPUT_BRIEF_TRIAL, value);
    case 'P': return load_plugin(options, value);
    case 'C': options->lists_candidates = true; return 0;
    case 'K': return read_ranks(value, &options->ranks);
    case 'M': return read_mode(value, &request->mode);
    case 'L': options->device.loopback = true; return 0;
    case 'Z': options->device.loopback = options->device.streams = true; return 0;
    case 'O': options->has_processes = true; return 0;
    case 'W': return read_size_option("workspace", value, &options->device.workspace_bytes);
    case 'A': return read_size_option("arena", value, &options->device.arena_bytes);
    case 'E': options->device.emulate_nvfp4 = true; return 0;
    case 'g': options->device.no_programmatic = true; return 0;
    case 'm': options->device.no_multicast = true; return 0;
    case 'h': return read_handles(value, &options->device.only_handles);
    case 'x': options->tests_itself = true, options->only_stage = value; return 0;
    default: fprintf(stderr, "gentables-bench: see --help\n"); return -1;
    }
}

// Back-to-back calls are eager, with warm caches; in another mode their count becomes the count of samples.
static void settle_calls(struct back_to_back *calls, struct request *request) {
    if (request->mode == MODE_EAGER || calls->iterations == 0) return;
    request->min_samples = request->max_samples = calls->iterations;
    calls->iterations = 0;
}

// Completes and checks what depends on several options.
static int complete_options(struct by_hand *by_hand) {
    struct request *request = &by_hand->request;
    settle_calls(&by_hand->calls, request);
    if (request->shape.op == OP_ALLTOALLV && request->shape.splits == 0)
        splits_read("2:1", &request->shape.splits);
    if (request->shape.op != OP_ALLTOALLV && request->shape.splits != 0) {
        fprintf(stderr, "gentables-bench: --splits requires --op alltoallv\n");
        return -1;
    }
    const char *refusal =
        shape_refusal(&(struct shape){.op = request->shape.op, .fusion = request->shape.fusion});
    if (refusal != NULL) {
        fprintf(stderr, "gentables-bench: %s\n", refusal);
        return -1;
    }
    return 0;
}

static int read_options(int argc, char **argv, struct options *options) {
    *options = (struct options){.timeout_s = 0};
    options->by_hand =
        (struct by_hand){.from_bytes = 256, .to_bytes = 16 << 20, .factor = 4, .argc = argc, .argv = argv};
    options->by_hand.request =
        (struct request){.min_samples = 20, .max_samples = 200, .budget_us = 500000, .seed = 1};
    for (int option; (option = getopt_long(argc, argv, "b:e:f:i:n:w:c:G:J:d:", long_options, NULL)) != -1;) {
        if (read_option(options, option, optarg) != 0) return -1;
    }
    if (optind == argc) return complete_options(&options->by_hand);
    fprintf(stderr, "gentables-bench: unexpected argument %s; see --help\n", argv[optind]);
    return -1;
}

// ---- serving ------------------------------------------------------------------------------------

// Rank 0's next request, on all ranks.
static enum line_kind next_request(struct group *group, struct request *request, char reason[]) {
    struct {
        enum line_kind kind;
        struct request request;
    } message = {.kind = LINE_QUIT};
    watch_rest(PHASE_IDLE);
    if (group->rank == 0) {
        char *line = NULL;
        size_t room = 0;
        ssize_t length = getline(&line, &room, stdin);
        if (length > 0) {
            line[strcspn(line, "\r\n")] = '\0';
            message.kind = protocol_read_request(line, group->nodes, &message.request, reason, REASON_SIZE);
        }
        free(line);
    }
    launch_share(group, &message, sizeof message);
    *request = message.request;
    return message.kind;
}

static int serve(struct harness *harness, struct result results[]) {
    struct group *group = harness->group;
    char reason[REASON_SIZE] = "";
    if (group->rank == 0) protocol_write_hello(protocol_out(), harness);
    for (;;) {
        struct request request;
        fflush(protocol_out());
        switch (next_request(group, &request, reason)) {
        case LINE_QUIT: return 0;
        case LINE_WRONG:
            if (group->rank == 0) fprintf(protocol_out(), "error reason=%s\n", reason);
            return 1;
        case LINE_MEASURE:
            if (harness_measure(harness, &request, results) != 0) return -1;
            if (group->rank == 0) protocol_write_results(protocol_out(), harness, &request, results);
        }
    }
}

// ---- main ---------------------------------------------------------------------------------------

// Reports the failure, and ends all ranks. `at_work`: the candidate that ran, or "".
static void give_up(const struct group *group, const char *at_work) {
    const char *failure = group_failure(group);
    if (failure == NULL) {
        failure = "a call of MPI failed";
        fprintf(stderr, "gentables-bench: rank %d: %s\n", group->rank, failure);
    }
    static atomic_flag ending = ATOMIC_FLAG_INIT; // of ranks that are threads one ends the process
    while (atomic_flag_test_and_set(&ending)) sched_yield();
    if (group->rank == 0 || group->shares_process) {
        fprintf(protocol_out(), "error %s%s%sreason=%s\n", at_work[0] != '\0' ? "strategy=" : "", at_work,
                at_work[0] != '\0' ? " " : "", failure);
    }
    if (group->link != NULL) group->link->spread_failure(group);
    for (int rank = 0; rank < group->size; rank++) plugins_cancel(rank);
    fault_already_reported();
    launch_abort();
}

static int measure(struct group *group, struct options *options) {
    struct harness *harness = calloc(1, sizeof *harness);
    struct result *results = calloc((size_t)candidate_count(), sizeof *results);
    if (harness == NULL || results == NULL) {
        fprintf(stderr, "gentables-bench: out of memory\n");
        launch_abort();
    }
    // Deadlines of plug-ins are a little shorter than those of waits for them.
    if (plugins_loaded() > 0) {
        fault_on_late(plugins_cancel);
        fault_begin(group->rank, 0.9 * options->timeout_s);
    }
    want_usual(&options->by_hand.request, group->nodes);
    const uint8_t *wanted = options->serve ? NULL : options->by_hand.request.wanted;
    int status = harness_open(harness, group, wanted);
    if (status == 0)
        status = options->serve ? serve(harness, results) : by_hand_run(harness, &options->by_hand, results);
    if (status < 0) give_up(group, harness->at_work);
    watch_step(PHASE_TEARDOWN, "");
    harness_close(harness);
    if (plugins_loaded() > 0) fault_end();
    free(results);
    free(harness);
    return status;
}

// Runs on every rank.
static int run(struct group *group, void *argument) {
    struct options *options = argument;
    char reason[REASON_SIZE];
    if (backend->open(group, &options->device, reason) != 0) {
        if (group->rank == 0) {
            fprintf(stderr, "gentables-bench: %s\n", reason);
            fprintf(protocol_out(), "error reason=%s\n", reason);
        }
        return 2;
    }
    int status;
    if (options->input_path == NULL) {
        status = measure(group, options);
    } else {
        status = run_input(group, options->input_path, options->input_use, options->timeout_s);
    }
    if (status < 0) give_up(group, "");
    backend->close(group);
    return status;
}

// Starts the ranks as processes. Returns the exit code.
static int start_processes(struct options *options) {
    bool is_shared = options->device.loopback;
    const char *refusal = launch_prefix[0] != '\0'
                              ? "is for gentables-bench-cuda; mpirun starts processes itself"
                          : plugins_loaded() > 0 ? "has no plug-ins; use threads, or mpirun"
                                                 : NULL;
    if (refusal != NULL) {
        fprintf(stderr, "gentables-bench: --processes %s\n", refusal);
        return 2;
    }
    options->device.shares_gpu = is_shared;
    if (is_shared) {
        fprintf(stderr,
                "gentables-bench: warning: processes on one GPU get time slices of it, so times are far "
                "longer\n");
    }
    int status = launch_processes(options->ranks, options->timeout_s, run, options);
    return status < 0 ? 1 : status;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--version") == 0) {
            printf("gentables-bench ");
            protocol_write_identity(stdout);
            return 0;
        }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 0;
        }
    }
    struct options options;
    if (read_options(argc, argv, &options) != 0) return 2;
    if (options.tests_itself) return self_test_run(&options.device, options.only_stage, options.timeout_s);
    if (options.timeout_s <= 0) options.timeout_s = USUAL_TIMEOUT_S;
    if (options.lists_candidates) {
        protocol_write_candidates(protocol_out());
        return 0;
    }
    if (options.serve || options.input_path != NULL) protocol_write_segments(protocol_out());
    if (options.has_processes) return start_processes(&options);
    return launch(&argc, &argv, options.ranks, options.timeout_s, run, &options);
}
