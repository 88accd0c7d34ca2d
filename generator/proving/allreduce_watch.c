// A library that `gentables prove` preloads into every process of a command (LD_PRELOAD). In ranks it counts
// the calls of MPI_Allreduce by communicator size, bytes and algorithm, and notes which of some files they
// opened. In any other process it does nothing.
//
// Open MPI and UCC export the functions of their algorithms, so functions of the same names here see which
// one is called. MPICH exports none, so its calls have no algorithm. Needs no MPI, neither to build nor to
// load: mpi.h of one library would not fit the other.
//
// The environment has GENTABLES_WATCH_FOLDER, a folder, and GENTABLES_WATCH_FILES, paths with line ends
// between them. At MPI_Finalize a rank writes FOLDER/HOST.PID; watched_run.lua reads it:
//
//     library TEXT                       of MPI_Get_library_version, its first line
//     rank RANK SIZE                     in MPI_COMM_WORLD
//     seconds TIME                       from the end of MPI_Init to MPI_Finalize
//     opened NUMBER                      a file of GENTABLES_WATCH_FILES, from 1
//     allreduce SIZE BYTES CALLS ALGORITHM INNER    "-": no algorithm was seen; INNER: the one that it called
//     unlisted CALLS                     calls of further sizes, beyond the room for them
//     end
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_FILES = 8,
    MOST_KINDS = 4096,   // of calls
    VERSION_SIZE = 8192, // MPI_MAX_LIBRARY_VERSION_STRING: 256 in Open MPI, 8192 in MPICH
    MPI_FAILED = 16,     // MPI_ERR_OTHER, or another error
};

// Any argument of MPI: handles are pointers in Open MPI and integers in MPICH, counts of 32 or 64 bits. A
// word passes all of them on as they came in, because arguments are in registers and slots of 64 bits.
typedef uintptr_t word;
_Static_assert(sizeof(word) == 8, "arguments are passed on as words of 64 bits");

#define WATCHED __attribute__((visibility("default")))

// ---- the functions of MPI -----------------------------------------------------------------------

// One library of the process, by its number in the order in which they were loaded.
struct loaded {
    size_t number;
    char path[PATH_MAX]; // "": the program
};

static int copy_path(struct dl_phdr_info *info, size_t size, void *data) {
    struct loaded *library = data;
    (void)size;
    if (library->number-- > 0) return 0;
    size_t length = strlen(info->dlpi_name);
    if (length < sizeof library->path) memcpy(library->path, info->dlpi_name, length + 1);
    return 1;
}

// Whether there is a library with this number; *path is then "" for one that cannot be opened by its name.
static bool path_of_library(size_t number, char path[PATH_MAX]) {
    struct loaded library = {.number = number};
    bool is_loaded = dl_iterate_phdr(copy_path, &library) != 0;
    memcpy(path, library.path, PATH_MAX);
    return is_loaded;
}

static bool is_own_path(const char *path) {
    Dl_info own;
    return dladdr((void *)&is_own_path, &own) != 0 && strcmp(own.dli_fname, path) == 0;
}

// A symbol of a library that was loaded with RTLD_LOCAL, as libmpi under a module of Python; or NULL. The
// library stays loaded. It is opened outside of dl_iterate_phdr, which has a lock of its own.
static void *find_in_local(const char *name) {
    char path[PATH_MAX];
    for (size_t i = 0; path_of_library(i, path); i++) {
        if (path[0] == '\0' || is_own_path(path)) continue;
        void *library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
        void *address = library == NULL ? NULL : dlsym(library, name);
        if (address != NULL) return address;
        if (library != NULL) dlclose(library);
    }
    return NULL;
}

// The next definition of a function after this library's, or NULL. Kept in *found.
static void *next(void **found, const char *name) {
    if (*found == NULL) *found = dlsym(RTLD_NEXT, name);
    if (*found == NULL) *found = find_in_local(name);
    return *found;
}

// Calls the next definition of the function with words; MPI_FAILED without one.
#define CALL_NEXT(name, types, ...)                                                                          \
    int(*original) types;                                                                                    \
    static void *found;                                                                                      \
    void *address = next(&found, name);                                                                      \
    memcpy(&original, &address, sizeof original);                                                            \
    int status = address == NULL ? MPI_FAILED : original(__VA_ARGS__)

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// ---- files ------------------------------------------------------------------------------------

static struct {
    char *paths[MOST_FILES];
    bool opened[MOST_FILES];
    int count;
} files;

__attribute__((constructor)) static void read_environment(void) {
    const char *list = getenv("GENTABLES_WATCH_FILES");
    char *rest = list == NULL ? NULL : strdup(list), *more = NULL;
    for (char *path = rest == NULL ? NULL : strtok_r(rest, "\n", &more);
         path != NULL && files.count < MOST_FILES; path = strtok_r(NULL, "\n", &more)) {
        files.paths[files.count++] = path;
    }
}

// Notes that this process opened `path`. A file has many paths, so files are compared, and not their names.
static void note_opened(const char *path) {
    int error = errno;
    struct stat opened, watched;
    for (int i = 0; i < files.count; i++) {
        if (stat(path, &opened) == 0 && stat(files.paths[i], &watched) == 0 &&
            opened.st_dev == watched.st_dev && opened.st_ino == watched.st_ino) {
            files.opened[i] = true;
        }
    }
    errno = error;
}

#define WATCH_FOPEN(name)                                                                                    \
    WATCHED FILE *name(const char *path, const char *mode) {                                                 \
        FILE *(*original)(const char *, const char *);                                                       \
        static void *found;                                                                                  \
        void *address = next(&found, #name);                                                                 \
        memcpy(&original, &address, sizeof original);                                                        \
        FILE *stream = original(path, mode);                                                                 \
        if (stream != NULL) note_opened(path);                                                               \
        return stream;                                                                                       \
    }
WATCH_FOPEN(fopen)
WATCH_FOPEN(fopen64)

// The mode is passed on even if there is none: fcntl.h, which has the flags that need one, may define open().
#define WATCH_OPEN(name)                                                                                     \
    WATCHED int name(const char *path, int flags, ...) {                                                     \
        va_list rest;                                                                                        \
        va_start(rest, flags);                                                                               \
        unsigned mode = va_arg(rest, unsigned);                                                              \
        va_end(rest);                                                                                        \
        CALL_NEXT(#name, (const char *, int, ...), path, flags, mode);                                       \
        if (status >= 0) note_opened(path);                                                                  \
        return status;                                                                                       \
    }
WATCH_OPEN(open)
WATCH_OPEN(open64)

// ---- calls ------------------------------------------------------------------------------------

// The calls with the same properties.
struct kind {
    int size;
    uint64_t bytes, calls;
    const char *algorithm, *inner; // NULL: none was seen
};

static struct {
    pthread_mutex_t mutex;
    struct kind kinds[MOST_KINDS];
    size_t count, last; // `last`: where the previous call was found
    uint64_t unlisted;
} calls = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// The call that this thread is in. Calls of MPI within it, such as those of a tool, are parts of it.
static _Thread_local struct {
    int depth;
    word comm;
    const char *algorithm, *inner;
} call;

// Notes that an algorithm begins. One on another communicator is a part of an algorithm in levels.
static void begin_algorithm(const char *name, word comm) {
    if (call.depth == 0 || comm != call.comm) return;
    if (call.algorithm == NULL) call.algorithm = name;
    call.inner = name;
}

static bool is_of_kind(const struct kind *kind, int size, uint64_t bytes) {
    return kind->size == size && kind->bytes == bytes && kind->algorithm == call.algorithm &&
           kind->inner == call.inner;
}

static void count_call(int size, uint64_t bytes) {
    pthread_mutex_lock(&calls.mutex);
    size_t at = calls.last;
    if (at >= calls.count || !is_of_kind(&calls.kinds[at], size, bytes)) {
        for (at = 0; at < calls.count && !is_of_kind(&calls.kinds[at], size, bytes);) at++;
    }
    if (at == calls.count && at < MOST_KINDS) {
        calls.kinds[calls.count++] =
            (struct kind){.size = size, .bytes = bytes, .algorithm = call.algorithm, .inner = call.inner};
    }
    if (at < calls.count) {
        calls.kinds[at].calls++;
        calls.last = at;
    } else {
        calls.unlisted++;
    }
    pthread_mutex_unlock(&calls.mutex);
}

static int comm_size(word comm, int *size) {
    CALL_NEXT("PMPI_Comm_size", (word, int *), comm, size);
    return status;
}

static int comm_rank(word comm, int *rank) {
    CALL_NEXT("PMPI_Comm_rank", (word, int *), comm, rank);
    return status;
}

static int between_groups(word comm, int *flag) {
    CALL_NEXT("PMPI_Comm_test_inter", (word, int *), comm, flag);
    return status;
}

static int type_size(word type, int *bytes) {
    CALL_NEXT("PMPI_Type_size", (word, int *), type, bytes);
    return status;
}

static void begin_call(word comm) {
    if (call.depth++ > 0) return;
    call.comm = comm;
    call.algorithm = call.inner = NULL;
}

// Counts the call that ends, if it succeeded. One rank by itself has no choice of an algorithm.
static void end_call(int failed, uint64_t count, word type) {
    int size = 0, bytes = 0, is_inter = 0;
    if (--call.depth > 0 || failed) return;
    if (comm_size(call.comm, &size) != 0 || type_size(type, &bytes) != 0 || bytes < 0) return;
    if (size < 2 || between_groups(call.comm, &is_inter) != 0 || is_inter) return;
    count_call(size, count * (uint64_t)bytes);
}

#define WATCH_ALLREDUCE(name, count_type)                                                                    \
    WATCHED int name(word in, word out, word count, word type, word op, word comm) {                         \
        begin_call(comm);                                                                                    \
        CALL_NEXT(#name, (word, word, word, word, word, word), in, out, count, type, op, comm);              \
        end_call(status, (uint64_t)(count_type)count, type);                                                 \
        return status;                                                                                       \
    }
WATCH_ALLREDUCE(MPI_Allreduce, int)
WATCH_ALLREDUCE(PMPI_Allreduce, int)
WATCH_ALLREDUCE(MPI_Allreduce_c, int64_t)
WATCH_ALLREDUCE(PMPI_Allreduce_c, int64_t)

// An algorithm of Open MPI's coll/base, by its name in rules. The eighth word is passed on even if there is
// none: only the segmented ring has it.
#define WATCH_ALGORITHM(name, function)                                                                      \
    WATCHED int ompi_coll_base_allreduce_intra_##function(word in, word out, word count, word type, word op, \
                                                          word comm, word module, word segment) {            \
        begin_algorithm(name, comm);                                                                         \
        CALL_NEXT("ompi_coll_base_allreduce_intra_" #function,                                               \
                  (word, word, word, word, word, word, word, word), in, out, count, type, op, comm, module,  \
                  segment);                                                                                  \
        return status;                                                                                       \
    }
WATCH_ALGORITHM("basic_linear", basic_linear)
WATCH_ALGORITHM("nonoverlapping", nonoverlapping)
WATCH_ALGORITHM("recursive_doubling", recursivedoubling)
WATCH_ALGORITHM("ring", ring)
WATCH_ALGORITHM("segmented_ring", ring_segmented)
WATCH_ALGORITHM("rabenseifner", redscat_allgather)
WATCH_ALGORITHM("allgather_reduce", allgather_reduce)

// An algorithm of UCC's TL/UCP, by its name in ucc.conf after "ucc_": one has a name of Open MPI's. coll/ucc
// calls UCC, which chooses the algorithm when it prepares the operation.
#define WATCH_UCC(name)                                                                                      \
    WATCHED int ucc_tl_ucp_allreduce_##name##_init(word arguments, word team, word task) {                   \
        begin_algorithm("ucc_" #name, call.comm);                                                            \
        CALL_NEXT("ucc_tl_ucp_allreduce_" #name "_init", (word, word, word), arguments, team, task);         \
        return status;                                                                                       \
    }
WATCH_UCC(knomial)
WATCH_UCC(sra_knomial)
WATCH_UCC(sliding_window)
WATCH_UCC(dbt)
WATCH_UCC(ring)

// ---- start and end ----------------------------------------------------------------------------

static double began; // 0: before MPI_Init

#define WATCH_INIT(name, types, ...)                                                                         \
    WATCHED int name types {                                                                                 \
        CALL_NEXT(#name, types, __VA_ARGS__);                                                                \
        began = now();                                                                                       \
        return status;                                                                                       \
    }
WATCH_INIT(MPI_Init, (word argc, word argv), argc, argv)
WATCH_INIT(PMPI_Init, (word argc, word argv), argc, argv)
WATCH_INIT(MPI_Init_thread, (word argc, word argv, word wanted, word got), argc, argv, wanted, got)
WATCH_INIT(PMPI_Init_thread, (word argc, word argv, word wanted, word got), argc, argv, wanted, got)

static int library_version(char version[VERSION_SIZE]) {
    int length = 0;
    CALL_NEXT("PMPI_Get_library_version", (char *, int *), version, &length);
    version[strcspn(version, "\n")] = '\0';
    return status;
}

// MPI_COMM_WORLD of Open MPI or MPICH. The first definition counts: a program may have a copy of the
// variable.
static word world(void) {
    enum { MPICH_COMM_WORLD = 0x44000000 };
    void *of_open_mpi = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
    if (of_open_mpi == NULL) of_open_mpi = find_in_local("ompi_mpi_comm_world");
    return of_open_mpi != NULL ? (word)of_open_mpi : MPICH_COMM_WORLD;
}

static void write_record(FILE *record, double seconds) {
    static char version[VERSION_SIZE];
    int rank = -1, size = 0;
    if (library_version(version) != 0) strcpy(version, "unknown");
    if (comm_rank(world(), &rank) != 0 || comm_size(world(), &size) != 0) rank = -1;
    fprintf(record, "library %s\nrank %d %d\nseconds %.9f\n", version, rank, size, seconds);
    for (int i = 0; i < files.count; i++) {
        if (files.opened[i]) fprintf(record, "opened %d\n", i + 1);
    }
    for (size_t i = 0; i < calls.count; i++) {
        const struct kind *kind = &calls.kinds[i];
        fprintf(record, "allreduce %d %llu %llu %s %s\n", kind->size, (unsigned long long)kind->bytes,
                (unsigned long long)kind->calls, kind->algorithm == NULL ? "-" : kind->algorithm,
                kind->inner == NULL ? "-" : kind->inner);
    }
    fprintf(record, "unlisted %llu\nend\n", (unsigned long long)calls.unlisted);
}

// Writes this rank's record, once. If it cannot be written, the rank is missing in the result.
static void finish(void) {
    const char *folder = getenv("GENTABLES_WATCH_FOLDER");
    char path[PATH_MAX], host[HOST_NAME_MAX + 1] = "";
    if (folder == NULL || began == 0) return;
    double seconds = now() - began;
    began = 0;
    gethostname(host, sizeof host - 1);
    int length = snprintf(path, sizeof path, "%s/%s.%ld", folder, host, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof path) return;
    FILE *record = fopen(path, "w");
    if (record == NULL) return;
    write_record(record, seconds);
    fclose(record);
}

#define WATCH_FINALIZE(name)                                                                                 \
    WATCHED int name(void) {                                                                                 \
        finish();                                                                                            \
        CALL_NEXT(#name, (void), );                                                                          \
        return status;                                                                                       \
    }
WATCH_FINALIZE(MPI_Finalize)
WATCH_FINALIZE(PMPI_Finalize)
