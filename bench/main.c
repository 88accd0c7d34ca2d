// gentables-bench: times allreduce strategies over the ranks that mpirun starts.
//
//   mpirun -n 2 gentables-bench                      a table, from 256 B to 16 MiB
//   mpirun -n 2 gentables-bench --serve              answers requests (protocol.h); what the generator starts
//   gentables-bench --version                        who it is, without mpirun
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "protocol.h"

enum { DEFAULT_HIDDEN_SIZE = 4096, MOST_SAMPLES = 1000000 };

struct options {
    bool serve;
    double timeout_s;
    size_t from_bytes, to_bytes, factor;
    size_t hidden_size; // 0: DEFAULT_HIDDEN_SIZE, or one token with all of a shorter message
    struct request request;
};

static void print_help(void) {
    printf("usage: mpirun -n RANKS gentables-bench [options]\n"
           "\n"
           "Times every allreduce strategy, each call verified, and prints a table.\n"
           "\n"
           "  -b, --minbytes SIZE       smallest message (default: 256)\n"
           "  -e, --maxbytes SIZE       largest message (default: 16M)\n"
           "  -f, --stepfactor N        from one size to the next (default: 4)\n"
           "  -d, --dtype NAME          bfloat16, float16 or float32 (default: bfloat16)\n"
           "      --fusion NAME         epilogue (default: NONE)\n"
           "      --hidden-size N       elements of a token (default: 4096, or one shorter token)\n"
           "      --strategies A,B      which (default: all)\n"
           "      --samples N           samples per strategy and size, at most (default: 200)\n"
           "      --budget SECONDS      per size, all strategies together (default: 0.5)\n"
           "      --timeout SECONDS     that a rank waits for another (default: 30)\n"
           "      --serve               answer requests on standard input\n"
           "      --version             print protocol, source hash and library\n"
           "\n"
           "example:\n"
           "  mpirun -n 2 gentables-bench -b 1K -e 1M --strategies MPI,ONESHOT\n");
}

// ---- options ------------------------------------------------------------------------------------

// "64", "16K", "16M", "1G"; 0 where it is none.
static size_t read_size(const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (shift != 0) end++;
    bool wrong = end == text || *end != '\0' || text[0] == '-' || value > SIZE_MAX >> shift;
    return wrong ? 0 : (size_t)value << shift;
}

static int wrong_option(const char *option, const char *value) {
    fprintf(stderr, "gentables-bench: --%s cannot be %s; see --help\n", option, value);
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
    {"dtype", required_argument, NULL, 'd'},
    {"fusion", required_argument, NULL, 'F'},
    {"hidden-size", required_argument, NULL, 'H'},
    {"strategies", required_argument, NULL, 's'},
    {"samples", required_argument, NULL, 'n'},
    {"budget", required_argument, NULL, 'B'},
    {"timeout", required_argument, NULL, 'T'},
    {"serve", no_argument, NULL, 'S'},
    {NULL, 0, NULL, 0},
};

static int read_option(struct options *options, int option, char *value) {
    struct request *request = &options->request;
    char reason[REASON_SIZE];
    int index, status;
    size_t size = 0;
    double seconds;
    switch (option) {
    case 'b': return read_size_option("minbytes", value, &options->from_bytes);
    case 'e': return read_size_option("maxbytes", value, &options->to_bytes);
    case 'f':
        status = read_size_option("stepfactor", value, &options->factor);
        return status == 0 && options->factor < 2 ? wrong_option("stepfactor", value) : status;
    case 'd':
        status = read_name("dtype", dtype_names, DTYPES, value, &index);
        request->shape.dtype = (enum dtype)index;
        return status;
    case 'F':
        status = read_name("fusion", fusion_names, FUSIONS, value, &index);
        request->shape.fusion = (enum fusion)index;
        return status;
    case 'H': return read_size_option("hidden-size", value, &options->hidden_size);
    case 's':
        status = want_strategies(request, value, reason, sizeof reason);
        if (status != 0) fprintf(stderr, "gentables-bench: %s; see --help\n", reason);
        return status;
    case 'n':
        status = read_size_option("samples", value, &size);
        if (size > MOST_SAMPLES) return wrong_option("samples", value);
        request->max_samples = (uint32_t)size;
        if (request->min_samples > request->max_samples) request->min_samples = request->max_samples;
        return status;
    case 'B':
        status = read_seconds("budget", value, &seconds);
        request->budget_us = seconds * 1e6;
        return status;
    case 'T': return read_seconds("timeout", value, &options->timeout_s);
    case 'S': options->serve = true; return 0;
    default: fprintf(stderr, "gentables-bench: see --help\n"); return -1;
    }
}

static int read_options(int argc, char **argv, struct options *options) {
    char reason[REASON_SIZE];
    *options = (struct options){.timeout_s = 30, .from_bytes = 256, .to_bytes = 16 << 20, .factor = 4};
    options->request =
        (struct request){.min_samples = 20, .max_samples = 200, .budget_us = 500000, .seed = 1};
    want_strategies(&options->request, NULL, reason, sizeof reason);
    for (int option; (option = getopt_long(argc, argv, "b:e:f:d:", long_options, NULL)) != -1;) {
        if (read_option(options, option, optarg) != 0) return -1;
    }
    if (optind == argc) return 0;
    fprintf(stderr, "gentables-bench: %s is no option; see --help\n", argv[optind]);
    return -1;
}

// ---- by hand ------------------------------------------------------------------------------------

// A message of about `bytes`: whole tokens, or one short one.
static struct shape shape_of(const struct options *options, size_t bytes) {
    struct shape shape = options->request.shape;
    size_t elements = bytes / dtype_sizes_bytes[shape.dtype];
    if (elements == 0) elements = 1;
    size_t row = options->hidden_size > 0 ? options->hidden_size : DEFAULT_HIDDEN_SIZE;
    shape.hidden_size = options->hidden_size > 0 || elements > row ? row : elements;
    shape.num_tokens = elements / shape.hidden_size;
    if (shape.num_tokens == 0) shape.num_tokens = 1;
    return shape;
}

static void print_results(const struct group *group, const struct request *request,
                          const struct result results[]) {
    const struct shape *shape = &request->shape;
    size_t count = shape->num_tokens * shape->hidden_size, bytes = count * dtype_sizes_bytes[shape->dtype];
    for (int i = 0; i < host_candidate_count; i++) {
        const struct result *result = &results[i];
        if (result->candidate == NULL) continue;
        printf("%12zu %12zu %9s %6s %-24s", bytes, count, dtype_names[shape->dtype], "sum",
               result->candidate->name);
        if (result->reason != NULL) {
            printf(" # %s\n", result->reason);
            continue;
        }
        double algbw = (double)bytes / result->time_us.median / 1000, ranks = group->size;
        printf(" %10.2f %8.2f %8.2f %6zu\n", result->time_us.median, algbw, algbw * 2 * (ranks - 1) / ranks,
               result->wrong);
    }
    fflush(stdout);
}

static int run_by_hand(struct harness *harness, struct options *options, struct result results[]) {
    struct group *group = harness->group;
    if (group->rank == 0) {
        printf("# gentables-bench: %d ranks, %d cores%s, %s, fusion %s\n", group->size, group->cores,
               group->oversubscribed ? " (oversubscribed)" : "", group->kernels->isa,
               fusion_names[options->request.shape.fusion]);
        printf("#%11s %12s %9s %6s %-24s %10s %8s %8s %6s\n", "size", "count", "type", "redop", "strategy",
               "time", "algbw", "busbw", "#wrong");
        printf("#%11s %12s %9s %6s %-24s %10s %8s %8s\n", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)",
               "(GB/s)");
    }
    for (size_t bytes = options->from_bytes; bytes <= options->to_bytes; bytes *= options->factor) {
        struct request request = options->request;
        request.shape = shape_of(options, bytes);
        if (harness_measure(harness, &request, results) != 0) return -1;
        if (group->rank == 0) print_results(group, &request, results);
        if (bytes > options->to_bytes / options->factor) break;
    }
    return 0;
}

// ---- serving ------------------------------------------------------------------------------------

// Rank 0's next request, on all ranks.
static enum line_kind next_request(const struct group *group, struct request *request, char reason[]) {
    struct {
        enum line_kind kind;
        struct request request;
    } message = {.kind = LINE_QUIT};
    if (group->rank == 0) {
        char *line = NULL;
        size_t room = 0;
        ssize_t length = getline(&line, &room, stdin);
        if (length > 0) {
            line[strcspn(line, "\r\n")] = '\0';
            message.kind = protocol_read_request(line, &message.request, reason, REASON_SIZE);
        }
        free(line);
    }
    MPI_Bcast(&message, (int)sizeof message, MPI_BYTE, 0, group->comm);
    *request = message.request;
    return message.kind;
}

static int serve(struct harness *harness, struct result results[]) {
    const struct group *group = harness->group;
    char reason[REASON_SIZE] = "";
    if (group->rank == 0) protocol_write_hello(stdout, harness);
    for (;;) {
        struct request request;
        fflush(stdout);
        switch (next_request(group, &request, reason)) {
        case LINE_QUIT: return 0;
        case LINE_WRONG:
            if (group->rank == 0) printf("error reason=%s\n", reason);
            return 1;
        case LINE_MEASURE:
            if (harness_measure(harness, &request, results) != 0) return -1;
            if (group->rank == 0) protocol_write_results(stdout, harness, &request, results);
        }
    }
}

// ---- main ---------------------------------------------------------------------------------------

// A rank is gone or hangs: there is no orderly end, so MPI ends them all.
static void give_up(const struct group *group) {
    const char *failure = group_failure(group);
    fprintf(stderr, "gentables-bench: %s\n", failure);
    if (group->rank == 0) printf("error reason=%s\n", failure);
    fflush(stdout);
    MPI_Abort(group->comm, 1);
}

static int out_of_memory(void) {
    fprintf(stderr, "gentables-bench: out of memory\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
}

static int run(struct group *group, struct options *options) {
    struct harness harness;
    struct result *results = calloc((size_t)host_candidate_count, sizeof *results);
    if (results == NULL) return out_of_memory();
    int status = harness_open(&harness, group);
    if (status == 0)
        status = options->serve ? serve(&harness, results) : run_by_hand(&harness, options, results);
    if (status < 0) give_up(group);
    harness_close(&harness);
    free(results);
    return status;
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
    MPI_Init(&argc, &argv);
    struct group group;
    char reason[REASON_SIZE];
    int status = 2;
    if (group_open(&group, MPI_COMM_WORLD, options.timeout_s, reason, sizeof reason) == 0) {
        status = run(&group, &options);
        group_close(&group);
    } else {
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0) {
            fprintf(stderr, "gentables-bench: %s; start it by mpirun -n RANKS gentables-bench\n", reason);
            printf("error reason=%s\n", reason);
        }
    }
    MPI_Finalize();
    return status;
}
