// gentables-workload: runs steps of GEMMs and collectives over the ranks that mpirun starts, and measures how
// much of the communication the computation hides. The generator starts it; it reads requests from standard
// input, one per line, and answers on standard output:
//
//   begin ... end                            the program of a step (program.h)
//   run channels=2 threads=1 steps=20 warm_up=3 wait=futex transport=builtin path=out/rank%r/trace.json
//   quit
//
// Answers: hello, accepted, used, progress, round, time, ratio, rank and done; or error, after which it ends.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "fields.h"
#include "measure.h"
#include "ranks/group_mpi.h"
#include "workload_identity.h"

enum { PROTOCOL = 4, LONGEST_LINE = 1 << 16, BLOCK_SIZE = 1 << 20 };

static const double TIMEOUT_S = 120; // of a rank that waits for another
enum { ENDED_WITHIN_S = 10 };        // by MPI, after a rank failed

struct server {
    struct group *group;
    struct blas blas;
    char no_blas[PROGRAM_REASON]; // why a rank has none
    struct program program;
    bool is_complete; // all of the program is read
};

static bool is_of_program(const char *line) {
    return !line_is(line, "run") && !line_is(line, "quit");
}

// Broadcasts rank 0's next lines to all ranks, each with its '\0'. Lines of a program are sent in blocks,
// since each message costs ranks that share a core a context switch each. Returns their bytes; 0: no line is
// left.
static int next_lines(const struct server *server, char block[BLOCK_SIZE]) {
    int length = 0;
    bool goes_on = server->group->rank == 0;
    while (goes_on && length <= BLOCK_SIZE - LONGEST_LINE) {
        char *line = block + length;
        if (fgets(line, LONGEST_LINE, stdin) == NULL) break;
        line[strcspn(line, "\r\n")] = '\0';
        goes_on = is_of_program(line) && !line_is(line, "end");
        length += (int)strlen(line) + 1;
    }
    MPI_Bcast(&length, 1, MPI_INT, 0, group_comm(server->group));
    MPI_Bcast(block, length, MPI_CHAR, 0, group_comm(server->group));
    return length;
}

// The lowest status of all ranks; below 0, with one of their reasons.
static int agree(const struct server *server, int status, char reason[PROGRAM_REASON]) {
    struct {
        int value, rank;
    } mine = {status, server->group->rank}, worst = mine;
    MPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MINLOC, group_comm(server->group));
    if (worst.value < 0) MPI_Bcast(reason, PROGRAM_REASON, MPI_CHAR, worst.rank, group_comm(server->group));
    return worst.value;
}

// Reads the program's lines from *line, and moves *line after them. The ranks agree on the status once.
static int read_program(struct server *server, const char **line, const char *end, char reason[]) {
    if (server->is_complete) {
        snprintf(reason, PROGRAM_REASON, "one program for each start");
        return -1;
    }
    server->program.rank = server->group->rank;
    server->program.ranks = server->group->size;
    int status = 1;
    for (; status > 0 && *line < end && is_of_program(*line); *line += strlen(*line) + 1) {
        status = program_read(&server->program, *line, reason);
    }
    status = agree(server, status, reason);
    server->is_complete = status == 0;
    return status < 0 ? -1 : 0;
}

static int run(struct server *server, const char *line, char reason[]) {
    struct measurement measurement;
    if (!server->is_complete) {
        snprintf(reason, PROGRAM_REASON, "run comes after a whole program");
        return -1;
    }
    if (measurement_read(&measurement, line, reason) != 0) return -1;
    if (measurement.engine->needs_blas && server->blas.sgemm == NULL) {
        snprintf(reason, PROGRAM_REASON, "%.190s", server->no_blas);
        return -1;
    }
    int status = measure(&measurement, &server->program, server->group, &server->blas, reason);
    if (status == 0 && server->group->rank == 0) printf("done\n");
    return status;
}

// Returns 0 if more may come, 1 after quit, -1 with `reason`.
static int answer_lines(struct server *server, const char *line, const char *end, char reason[]) {
    int status = 0;
    while (status == 0 && line < end) {
        if (line_is(line, "quit")) return 1;
        if (is_of_program(line)) {
            status = read_program(server, &line, end, reason);
        } else {
            status = run(server, line, reason);
            line += strlen(line) + 1;
        }
        fflush(stdout);
    }
    return status;
}

static int answer(struct server *server, char reason[]) {
    char *block = malloc(BLOCK_SIZE);
    int status = block == NULL ? -1 : 0, length;
    if (block == NULL) snprintf(reason, PROGRAM_REASON, "out of memory");
    while (status == 0 && (length = next_lines(server, block)) > 0) {
        status = answer_lines(server, block, block + length, reason);
    }
    free(block);
    return status < 0 ? -1 : 0;
}

static void print_hello(const struct server *server) {
    const struct group *group = server->group;
    if (group->rank != 0) return;
    printf("hello protocol=%d program=%s world_size=%d cores=%d isa=%s core=%s library=%s\n", PROTOCOL,
           WORKLOAD_HASH, group->size, group->cores, group->kernels->isa, server->blas.core,
           server->blas.version);
    fflush(stdout);
}

// The rank that reports a problem: the one that failed, which others may not have noticed, or rank 0.
static int reporting_rank(const struct group *group) {
    uint32_t failed = atomic_load(&group->control->failed_rank);
    return failed > 0 && failed <= (uint32_t)group->size ? (int)failed - 1 : 0;
}

// Reports a problem to the generator and the log. After a rank's failure, MPI then ends all ranks, wherever
// they wait.
static void give_up(const struct group *group, const char *reason) {
    const char *failure = group_failure(group);
    if (group->rank == reporting_rank(group)) {
        printf("error reason=%s\n", failure != NULL ? failure : reason);
        fflush(stdout);
        if (failure == NULL) fprintf(stderr, "gentables-workload: %s\n", reason);
    } else if (failure != NULL) {
        sleep(ENDED_WITHIN_S);
    }
    if (failure != NULL) MPI_Abort(group_comm(group), 1);
}

static int serve(struct group *group) {
    struct server server = {.group = group};
    char reason[PROGRAM_REASON] = "";
    int status = blas_open(&server.blas, 1, server.no_blas, sizeof server.no_blas);
    if (agree(&server, status, server.no_blas) != 0) server.blas = (struct blas){.sgemm = NULL};
    print_hello(&server);
    status = answer(&server, reason);
    if (status != 0) give_up(group, reason);
    program_free(&server.program);
    return status == 0 ? 0 : 1;
}

static int print_version(void) {
    printf("gentables-workload protocol=%d program=%s\n", PROTOCOL, WORKLOAD_HASH);
    return 0;
}

// Prints the number of usable GPUs, by which the generator chooses.
static int print_gpus(void) {
    char reason[PROGRAM_REASON] = "";
    int count = gpus_usable(reason);
    printf("gpus count=%d reason=%s\n", count, reason);
    return 0;
}

static int print_help(void) {
    printf("usage: mpirun -n RANKS gentables-workload\n\n"
           "Measures steps of GEMMs and collectives; gentables workload starts it and sends requests. "
           "--version\n"
           "prints its version, --gpus how many GPUs it can use. By hand: gentables workload run --help\n");
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--version") == 0) return print_version();
    if (argc == 2 && strcmp(argv[1], "--gpus") == 0) return print_gpus();
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) return print_help();
    if (argc > 1) {
        fprintf(stderr, "gentables-workload: %s is no option; see --help\n", argv[1]);
        return 2;
    }
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    struct group group;
    char reason[PROGRAM_REASON];
    int status = 2, rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (group_open(&group, MPI_COMM_WORLD, TIMEOUT_S, reason, sizeof reason) == 0 &&
        group_is_on_one_node(&group, reason, sizeof reason)) {
        status = serve(&group);
        group_close(&group);
    } else if (rank == 0) {
        printf("error reason=%s\n", reason);
        fprintf(stderr, "gentables-workload: %s; start it by mpirun -n RANKS\n", reason);
    }
    MPI_Finalize();
    return status;
}
