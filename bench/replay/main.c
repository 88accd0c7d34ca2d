// gentables-replay: computes matrix products and convolutions of a trace again, and times them.
//
//   gentables-replay FILE...      prints the times of saved ops, one op a line
//   gentables-replay --serve      answers requests (op.h) on standard input, for gentables
//
// It does not read traces or sheets.
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay.h"

enum { PROTOCOL_VERSION = 1 };

// ---- serving --------------------------------------------------------------------------------------------

static void print_hello(const struct replay_setup *setup) {
    char device[200];
    setup->device->describe(device, sizeof device);
    printf("hello protocol=%d threads=%d backend=%s device=%s\n", PROTOCOL_VERSION, setup->threads,
           setup->device->name, device);
    for (int i = 0; i < setup->library_count; i++) {
        char text[128];
        const char *name = setup->libraries[i]->name;
        if (!setup->is_open[i]) {
            printf("absent name=%s reason=%s\n", name, setup->absent[i]);
            continue;
        }
        setup->libraries[i]->describe(text, sizeof text);
        printf("present name=%s %s\n", name, text);
    }
    printf("ready\n");
}

static void print_timed(const char *name, const struct timed *timed) {
    const struct summary *us = &timed->us;
    printf(" %s_mean_us=%.3f %s_median_us=%.3f %s_low_us=%.3f %s_high_us=%.3f %s_samples=%zu", name,
           timed->mean_us, name, us->median, name, us->low, name, us->high, name, us->samples);
}

static void print_answer(const struct op *op, const struct replayed *replayed) {
    printf("replayed id=%s by=%s computed=%s kernel=%s", op->id, replayed->library,
           data_type_names[replayed->computed], replayed->kernel);
    print_timed("warm", &replayed->warm);
    print_timed("cold", &replayed->cold);
    if (replayed->is_partial) printf(" partial=1");
    if (replayed->empty_us > 0) printf(" empty_us=%.3f", replayed->empty_us);
    if (replayed->offered > 0) printf(" algorithms=%d", replayed->algorithms);
    if (replayed->is_compared)
        printf(" fastest=%d gain_median=%.6g gain_low=%.6g gain_high=%.6g gain_samples=%zu",
               replayed->fastest, replayed->gain.median, replayed->gain.low, replayed->gain.high,
               replayed->gain.samples);
    printf(" note=%s\n", replayed->note);
}

static int serve(const struct replay_setup *setup) {
    char *line = NULL, reason[REASON_SIZE] = "";
    size_t room = 0;
    int status = 0;
    print_hello(setup);
    fflush(stdout);
    while (status == 0 && getline(&line, &room, stdin) > 0) {
        struct op op;
        struct replayed replayed;
        line[strcspn(line, "\r\n")] = '\0';
        if (strcmp(line, "quit") == 0) break;
        if (op_read(line, &op, reason) != 0) {
            printf("error reason=%s\n", reason);
            status = 1;
        } else if (replay_op(setup, &op, &replayed, reason) == 0) {
            print_answer(&op, &replayed);
        } else {
            bool is_lost = setup->device->is_lost();
            printf("none id=%s lost=%d reason=%s\n", op.id, is_lost, reason);
            if (is_lost) break;
        }
        fflush(stdout);
    }
    free(line);
    return status;
}

// ---- by hand --------------------------------------------------------------------------------------------

static void print_row(const struct op *op, const struct replayed *at) {
    char empty[48] = "";
    if (at->empty_us > 0) snprintf(empty, sizeof empty, "; an empty kernel takes %.2f us", at->empty_us);
    printf("%-20s %-9s %-9s %12.2f %12.2f %10.1f  %s%s%s%s%s%s\n", op->id, at->library,
           data_type_names[at->computed], at->warm.us.median, at->cold.us.median,
           op_flops(op) / at->warm.us.median / 1e3, at->kernel, empty, op->note[0] != '\0' ? "; " : "",
           op->note, at->note[0] != '\0' ? "; " : "", at->note);
}

// Replays the lines of a file; returns the exit code.
static int replay_file(const struct replay_setup *setup, const char *path) {
    FILE *file = fopen(path, "r");
    char *line = NULL, reason[REASON_SIZE];
    size_t room = 0;
    int status = 0;
    if (file == NULL) {
        fprintf(stderr, "gentables-replay: %s: cannot be read\n", path);
        return 2;
    }
    for (int number = 1; getline(&line, &room, file) > 0; number++) {
        struct op op;
        struct replayed replayed;
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '\0') continue;
        if (op_read(line, &op, reason) != 0) {
            fprintf(stderr, "gentables-replay: %s:%d: %s\n", path, number, reason);
            status = 2;
        } else if (replay_op(setup, &op, &replayed, reason) == 0) {
            print_row(&op, &replayed);
        } else {
            printf("%-20s no time: %s\n", op.id, reason);
            if (status == 0) status = 1;
            if (setup->device->is_lost()) break;
        }
    }
    free(line);
    fclose(file);
    return status;
}

static int replay_files(const struct replay_setup *setup, int count, char **paths) {
    int status = 0;
    for (int i = 0; i < setup->library_count; i++) {
        if (!setup->is_open[i]) fprintf(stderr, "gentables-replay: %s\n", setup->absent[i]);
    }
    printf("%-20s %-9s %-9s %12s %12s %10s  %s\n", "op", "by", "in", "warm (us)", "cold (us)", "GFLOP/s",
           "kernel");
    for (int i = 0; i < count; i++) {
        int of_file = replay_file(setup, paths[i]);
        if (of_file > status) status = of_file;
    }
    return status;
}

// ---- main -----------------------------------------------------------------------------------------------

static void print_help(void) {
    printf("usage: gentables-replay [--device NAME] [--threads N] FILE... | --serve\n"
           "\n"
           "Computes the ops in FILE again, as gentables replay saved them, each result checked, and prints\n"
           "their times with warm and with cold caches: medians.\n"
           "\n"
           "  -d, --device NAME   host or cuda (default: cuda where there is a GPU)\n"
           "  -t, --threads N     threads of a call on the host (default: that of the first file, or else\n"
           "                      one for each core)\n"
           "      --try-all       of several libraries time the fastest, not the first\n"
           "      --serve         answer lines on standard input\n"
           "\n"
           "example:\n"
           "  gentables-replay replay/ops/gemm_001.op\n");
}

static int cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : (int)online;
}

// The threads of a call by the first op of these files; without any, one for each core.
static int threads_of(int count, char **paths) {
    char *line = NULL, reason[REASON_SIZE];
    size_t room = 0;
    struct op op = {.threads = 0};
    for (int i = 0; i < count && op.threads == 0; i++) {
        FILE *file = fopen(paths[i], "r");
        while (file != NULL && op.threads == 0 && getline(&line, &room, file) > 0) {
            line[strcspn(line, "\r\n")] = '\0';
            if (op_read(line, &op, reason) != 0) op.threads = 0; // reported when it is replayed
        }
        if (file != NULL) fclose(file);
    }
    free(line);
    return op.threads > 0 ? op.threads : cores();
}

struct choices {
    const char *device; // NULL: not given
    int threads;        // 0: not given
    bool serves, tries_all;
};

// Returns the exit code, or -1 if there is an op to replay.
static int read_options(int argc, char **argv, struct choices *choices) {
    static const struct option options[] = {
        {"device", required_argument, NULL, 'd'}, {"threads", required_argument, NULL, 't'},
        {"serve", no_argument, NULL, 's'},        {"try-all", no_argument, NULL, 'a'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    *choices = (struct choices){.threads = 0};
    for (int option; (option = getopt_long(argc, argv, "d:t:h", options, NULL)) != -1;) {
        if (option == 'h') {
            print_help();
            return 0;
        }
        if (option == 'd') choices->device = optarg;
        if (option == 's') choices->serves = true;
        if (option == 'a') choices->tries_all = true;
        if (option == 't') choices->threads = atoi(optarg);
        bool is_count = option != 't' || (choices->threads >= 1 && choices->threads <= MOST_THREADS);
        if (option == '?' || !is_count) {
            fprintf(stderr, "gentables-replay: wrong use; see --help\n");
            return 2;
        }
    }
    if (choices->serves != (optind < argc)) return -1;
    fprintf(stderr, "gentables-replay: takes files, or --serve; see --help\n");
    return 2;
}

// Opens the given device, or else a GPU if there is one. -1, with a reason.
static int open_device(const struct choices *choices, struct replay_setup *setup, char reason[REASON_SIZE]) {
    static const struct compute_device *const devices[] = {&device_cuda, &device_host};
    snprintf(reason, REASON_SIZE, "--device: there is no %s; valid: host, cuda",
             choices->device != NULL ? choices->device : "device");
    for (int i = 0; i < 2; i++) {
        bool is_requested = choices->device != NULL && strcmp(choices->device, devices[i]->name) == 0;
        if (!is_requested && choices->device != NULL) continue;
        if (replay_open(setup, devices[i], choices->threads, choices->tries_all, reason) == 0) return 0;
    }
    return -1;
}

int main(int argc, char **argv) {
    struct choices choices;
    struct replay_setup setup;
    char reason[REASON_SIZE];
    int status = read_options(argc, argv, &choices);
    if (status >= 0) return status;
    if (choices.threads == 0) choices.threads = threads_of(argc - optind, argv + optind);
    if (open_device(&choices, &setup, reason) != 0) {
        if (choices.serves) printf("error reason=%s\n", reason);
        fprintf(stderr, "gentables-replay: %s\n", reason);
        return 2;
    }
    return choices.serves ? serve(&setup) : replay_files(&setup, argc - optind, argv + optind);
}
