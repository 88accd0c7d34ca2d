// Makes a rank of the bench fail at a given place: preloaded into the ranks, it replaces MPI's functions (the
// profiling interface), and the functions by which a request is read and its data is made. The rank raises
// signals itself, so that no test has to hit a moment.
//
//   FAULT        KILL, STOP, HANG (in the call); CANDIDATES, PROTOCOL (reports others than its own); or none
//   FAULT_AT     start, segment (has made one that mpirun does not know), connected, set-up, idle
//                (before a request), warm-up, second (the same, of the second request), timed, teardown,
//                finalize; of a pass: agreement, data (is being made), call, called (in the call that
//                FAULT_CALL counts, and after it)
//   FAULT_RANK   the rank that fails
//   FAULT_ONCE   a file that is made with the fault; if it exists already, no rank fails
//   FAULT_LOG    a file to which rank 0 appends a line for each request that begins
//
// Other processes wait for a stopped or hanging rank by a fast clock: clock.c, a part of this library.
#include "clock.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Until then a small cell is verified, once for each of its sets of data (MAX_SHIFTS of bench/calls/cell.h).
enum { OF_PLAN = 256 }; // elements of a call of a pass: MPI's other messages are shorter
enum { PAGE = 4096, FIRST_TIMED_CALL = 9, TRAIT_PROTOCOL = 0, TRAIT_CANDIDATES = 2 };

static int requests, calls; // so far; and calls of a strategy since the last request
static int elements;        // of these calls

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value != NULL ? value : "";
}

static int rank(void) {
    return (int)strtol(setting("OMPI_COMM_WORLD_RANK"), NULL, 10);
}

// Whether the fault is due in this rank; true only once.
static bool is_due(void) {
    if (rank() != (int)strtol(setting("FAULT_RANK"), NULL, 10)) return false;
    const char *once = getenv("FAULT_ONCE");
    if (once == NULL) return true;
    int file = open(once, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file >= 0) close(file);
    return file >= 0;
}

static void log_request(void) {
    FILE *log = rank() == 0 && getenv("FAULT_LOG") != NULL ? fopen(getenv("FAULT_LOG"), "a") : NULL;
    if (log == NULL) return;
    fprintf(log, "request %d\n", requests);
    fclose(log);
}

static void reach(const char *place) {
    const char *fault = setting("FAULT");
    if (strcmp(setting("FAULT_AT"), place) != 0 || !is_due()) return;
    if (strcmp(fault, "KILL") == 0) raise(SIGKILL);
    if (strcmp(fault, "KILL") != 0) fault_clock_hurry();
    if (strcmp(fault, "STOP") == 0) raise(SIGSTOP);
    while (strcmp(fault, "HANG") == 0) pause();
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    reach("start");
    int status = PMPI_Init_thread(argc, argv, required, provided);
    reach("connected");
    return status;
}

// Open MPI's shared-memory transport has made its file, and now sets its size. A second name stands for a
// file that is made after mpirun, because another rank died, has already searched for such files.
int ftruncate(int file, off_t length) {
    char self[64], path[4096] = "";
    int (*next)(int, off_t);
    *(void **)&next = dlsym(RTLD_NEXT, "ftruncate");
    snprintf(self, sizeof self, "/proc/self/fd/%d", file);
    if (readlink(self, path, sizeof path - 1) > 0 && strstr(path, "/vader_segment.") != NULL) {
        char other[sizeof path + 1];
        snprintf(other, sizeof other, "%s9", path);
        if (strcmp(setting("FAULT_AT"), "segment") == 0 && link(path, other) != 0) return -1;
        reach("segment");
    }
    return next(file, length);
}

// Around a call of a pass.
static int calls_of_pass;

static void begin_call(int count) {
    if (count >= OF_PLAN && ++calls_of_pass == (int)strtol(setting("FAULT_CALL"), NULL, 10)) reach("call");
}

static void end_call(int count) {
    if (count >= OF_PLAN && calls_of_pass == (int)strtol(setting("FAULT_CALL"), NULL, 10)) reach("called");
}

// The first collective call, in which each rank describes itself.
int MPI_Allgather(const void *from, int count, MPI_Datatype type, void *to, int to_count,
                  MPI_Datatype to_type, MPI_Comm comm) {
    const char *fault = setting("FAULT");
    int trait = strcmp(fault, "CANDIDATES") == 0 ? TRAIT_CANDIDATES
                : strcmp(fault, "PROTOCOL") == 0 ? TRAIT_PROTOCOL
                                                 : -1;
    uint64_t traits[8];
    if (trait < 0 || type != MPI_UINT64_T || count > 8 || !is_due()) {
        begin_call(count);
        int status = PMPI_Allgather(from, count, type, to, to_count, to_type, comm);
        end_call(count);
        return status;
    }
    memcpy(traits, from, (size_t)count * sizeof *traits);
    traits[trait]++;
    return PMPI_Allgather(traits, count, type, to, to_count, to_type, comm);
}

int MPI_Comm_dup(MPI_Comm from, MPI_Comm *to) {
    reach("set-up");
    return PMPI_Comm_dup(from, to);
}

// Rank 0 reads a request.
ssize_t __getdelim(char **line, size_t *room, int end, FILE *file) { // NOLINT: what getline is in glibc
    ssize_t (*next)(char **, size_t *, int, FILE *);
    *(void **)&next = dlsym(RTLD_NEXT, "__getdelim");
    if (file == stdin) reach("idle");
    return next(line, room, end, file);
}

ssize_t getline(char **line, size_t *room, FILE *file) {
    return __getdelim(line, room, '\n', file);
}

// Data of whole pages is made at the beginning of the first request; later ones may use it again.
void *aligned_alloc(size_t alignment, size_t size) {
    void *(*next)(size_t, size_t);
    *(void **)&next = dlsym(RTLD_NEXT, "aligned_alloc");
    if (alignment == PAGE) reach("data");
    if (alignment == PAGE && requests == 0) requests = 1;
    return next(alignment, size);
}

// Each strategy has a communicator of its own, and each request another size.
int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    if (requests > 0 && comm != MPI_COMM_WORLD) {
        if (calls > 0 && count != elements) {
            requests++;
            calls = 0;
        }
        elements = count;
        if (++calls == 1) {
            log_request();
            reach("warm-up");
            if (requests == 2) reach("second");
        }
        if (calls == FIRST_TIMED_CALL) reach("timed");
    }
    begin_call(count);
    int status = PMPI_Allreduce(from, to, count, type, op, comm);
    end_call(count);
    return status;
}

// Each rank parses the input of the pass from rank 0, before ranks compare it.
char *strtok_r(char *text, const char *between, char **rest) {
    char *(*next)(char *, const char *, char **);
    *(void **)&next = dlsym(RTLD_NEXT, "strtok_r");
    if (text != NULL && strncmp(text, "pass samples=", 13) == 0) reach("agreement");
    return next(text, between, rest);
}

int MPI_Op_free(MPI_Op *op) {
    reach("teardown");
    return PMPI_Op_free(op);
}

int MPI_Finalize(void) {
    reach("finalize");
    return PMPI_Finalize();
}
