// Rounds of steps, and reports of them; see measure.h.
#include "measure.h"
#include "ranks/group_mpi.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "elements/statistics.h"
#include "fields.h"
#include "trace.h"
#include "verify.h"

enum { MOST_CHANNELS = 128, MOST_BLOCK = 1024 }; // limits of the request; a GPU's library has its own

// Times of each round: each kind of step, and the GEMMs of the two noted kinds, with communication beside
// them and without.
enum round_time { GEMMS_BESIDE = STEP_MODES, GEMMS_ALONE, ROUND_TIMES };
static const char *const round_time_names[ROUND_TIMES] = {
    "gemms", "serial", "overlapped", "traced", "gemms_traced", "gemms_beside", "gemms_alone"};
static const char *const wait_names[WAITS] = {"futex", "yield", "spin"};

// One rank's shares of its traced steps, in microseconds, as medians over the steps; GEMM_ALONE_US of those
// without communication.
enum share { GEMM_US, GEMM_ALONE_US, GEMM_CPU_US, COMMUNICATION_US, COMMUNICATION_CPU_US, AWAIT_US, SHARES };
static const char *const share_names[SHARES] = {"gemm_us",          "gemm_alone_us",        "gemm_cpu_us",
                                                "communication_us", "communication_cpu_us", "await_us"};

struct run {
    const struct measurement *measurement;
    struct program *program;
    struct group *group;
    const struct engine *engine;
    void *state; // the engine's
    struct engine_description description;
    struct step_notes *notes; // of each traced step, and of the last noted step without communication
    struct note *all_notes;
    struct span *all_spans;
    struct final_wait *all_final_waits;
    double *times_us; // [enum round_time][step], this rank's
    double *worst_us; // likewise, the largest over the ranks
    size_t done;      // rounds
};

// ---- request ------------------------------------------------------------------------------------

static int index_of(const char *const names[], int count, const char *name) {
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) return i;
    }
    return -1;
}

static int unknown(char reason[], const char *what, const char *name) {
    snprintf(reason, PROGRAM_REASON, "no such %s: %s", what, name);
    return -1;
}

// Reads the engine, its transport, and how threads wait; defaults are the host's.
static int read_names(struct measurement *measurement, const char *line, char reason[]) {
    char backend[NAME_SIZE] = "host", transport[NAME_SIZE] = "", wait[NAME_SIZE] = "";
    field_text(line, "backend", backend, sizeof backend);
    field_text(line, "transport", transport, sizeof transport);
    field_text(line, "wait", wait, sizeof wait);
    int kind = index_of(wait_names, WAITS, wait);
    measurement->wait = kind < 0 ? WAIT_FUTEX : (enum wait)kind;
    if (strcmp(backend, engine_cuda.name) == 0) {
        bool is_builtin = strcmp(transport, "builtin") == 0;
        measurement->engine = is_builtin ? &engine_loopback : &engine_cuda;
        return is_builtin || strcmp(transport, "nccl") == 0 ? 0 : unknown(reason, "transport", transport);
    }
    measurement->engine = &engine_host;
    measurement->transport = strcmp(transport, "builtin") == 0 ? &transport_shared_memory
                             : strcmp(transport, "mpi") == 0   ? &transport_mpi
                                                               : NULL;
    if (strcmp(backend, engine_host.name) != 0) return unknown(reason, "backend", backend);
    if (kind < 0) return unknown(reason, "wait", wait);
    return measurement->transport != NULL ? 0 : unknown(reason, "transport", transport);
}

// Half of the generator's timeout, so that a step that takes longer ends with an answer.
static void read_patience(struct measurement *measurement, const char *line) {
    enum { PATIENCE_MS = 60000, MOST_MS = 1000000000 };
    size_t patience_ms = PATIENCE_MS;
    if (!field_number(line, "patience_ms", 1, MOST_MS, &patience_ms)) patience_ms = PATIENCE_MS;
    measurement->patience_s = (double)patience_ms * 1e-3;
}

int measurement_read(struct measurement *measurement, const char *line, char reason[PROGRAM_REASON]) {
    *measurement = (struct measurement){0};
    if (read_names(measurement, line, reason) != 0) return -1;
    bool is_host = measurement->engine == &engine_host;
    size_t channels = is_host ? MAX_CHANNELS : MOST_CHANNELS, threads = is_host ? MAX_THREADS : MOST_BLOCK;
    field_text(line, "path", measurement->path, PATH_SIZE);
    read_patience(measurement, line);
    if (!field_number(line, "channels", 1, channels, &measurement->channels))
        snprintf(reason, PROGRAM_REASON, "channels must be 1 to %zu", channels);
    else if (!field_number(line, "threads", 1, threads, &measurement->threads))
        snprintf(reason, PROGRAM_REASON, "threads must be 1 to %zu", threads);
    else if (!field_number(line, "steps", 1, MOST_STEPS, &measurement->steps) ||
             !field_number(line, "warm_up", 0, MOST_STEPS, &measurement->warm_up))
        snprintf(reason, PROGRAM_REASON, "steps must be 1 to %d, and warm_up 0 to %d", MOST_STEPS,
                 MOST_STEPS);
    else
        return 0;
    return -1;
}

// ---- set-up -------------------------------------------------------------------------------------

static int refuse(char reason[], const char *text) {
    snprintf(reason, PROGRAM_REASON, "%s", text);
    return -1;
}

// Allocates memory for all notes, and writes it once, so that no page is new while a step is timed.
static bool allocate(struct run *run) {
    size_t steps = run->measurement->steps, actions = run->program->action_count;
    size_t collectives = run->program->collective_count, spans = collectives * MAX_THREADS;
    size_t noted = steps + 1;
    run->notes = calloc(noted, sizeof *run->notes);
    run->all_notes = malloc(noted * actions * sizeof *run->all_notes);
    run->all_spans = malloc((noted * spans + 1) * sizeof *run->all_spans);
    run->all_final_waits = malloc((noted * collectives + 1) * sizeof *run->all_final_waits);
    run->times_us = calloc(ROUND_TIMES * steps, sizeof *run->times_us);
    run->worst_us = calloc(ROUND_TIMES * steps, sizeof *run->worst_us);
    if (run->notes == NULL || run->all_notes == NULL || run->all_spans == NULL ||
        run->all_final_waits == NULL || run->times_us == NULL || run->worst_us == NULL)
        return false;
    memset(run->all_notes, 0xff, noted * actions * sizeof *run->all_notes);
    memset(run->all_spans, 0xff, noted * spans * sizeof *run->all_spans);
    memset(run->all_final_waits, 0xff, noted * collectives * sizeof *run->all_final_waits);
    for (size_t i = 0; i < noted; i++) {
        run->notes[i].notes = run->all_notes + i * actions;
        run->notes[i].spans = run->all_spans + i * spans;
        run->notes[i].final_waits = run->all_final_waits + i * collectives;
    }
    return true;
}

static void release(struct run *run) {
    for (size_t i = 0; run->notes != NULL && i <= run->measurement->steps; i++)
        free(run->notes[i].activities);
    free(run->notes);
    free(run->all_notes);
    free(run->all_spans);
    free(run->all_final_waits);
    free(run->times_us);
    free(run->worst_us);
}

// ---- steps --------------------------------------------------------------------------------------

// Why this rank cannot continue: a failure that all ranks have, or the engine's problem.
static const char *failure(const struct run *run) {
    const char *failure = group_failure(run->group);
    return failure != NULL ? failure : run->engine->problem(run->state);
}

// After a failure of the engine. If it may be on this rank alone, it becomes the failure of all ranks.
static int report_failure(const struct run *run, const char *what) {
    char why[PROGRAM_REASON], reason[PROGRAM_REASON];
    if (run->engine->fails_on_all_ranks) return -1;
    snprintf(why, sizeof why, "%s: %.120s", what, run->engine->problem(run->state));
    return rank_fails(run->group, why, reason);
}

// The time of this rank's GEMMs in a noted step: the sum of their intervals, in microseconds.
static double gemms_us(const struct run *run, const struct step_notes *step) {
    uint64_t ns = 0;
    for (size_t i = 0; i < run->program->action_count; i++) {
        if (run->program->actions[i].kind != DO_GEMM) continue;
        ns += step->notes[i].work_end_ns - step->notes[i].work_ns;
    }
    return (double)ns * 1e-3;
}

static int one_step(struct run *run, enum step_mode mode, size_t number) {
    size_t steps = run->measurement->steps;
    struct step_notes *notes = &run->notes[mode == STEP_GEMMS_TRACED ? steps : number];
    char what[NAME_SIZE];
    if (!group_start_together(run->group)) return -1;
    uint64_t ns = run->engine->step(run->state, mode, notes);
    snprintf(what, sizeof what, "%s step", round_time_names[mode]);
    if (ns == 0) return report_failure(run, what);
    run->times_us[(size_t)mode * steps + number] = (double)ns * 1e-3;
    if (!step_is_noted(mode)) return 0;
    size_t kind = step_communicates(mode) ? GEMMS_BESIDE : GEMMS_ALONE;
    run->times_us[kind * steps + number] = gemms_us(run, notes);
    return 0;
}

static int move_arrays(struct run *run, bool to_gpu) {
    const struct engine *engine = run->engine;
    if (engine->move == NULL || engine->move(run->state, to_gpu) == 0) return 0;
    return report_failure(run, to_gpu ? "its arrays" : "its results");
}

// Runs one step of this kind on poisoned arrays and verifies it. -1 with `reason`, the same on all ranks.
static int verified_step(struct run *run, enum step_mode mode, char reason[]) {
    char first[PROGRAM_REASON] = "";
    program_poison(run->program);
    if (move_arrays(run, true) != 0 || one_step(run, mode, 0) != 0 || move_arrays(run, false) != 0)
        return refuse(reason, failure(run));
    if (!group_barrier(run->group)) return refuse(reason, group_failure(run->group));
    int wrong = verify(run->program, group_comm(run->group), first), ranks = run->group->size;
    int wrongs[MAX_NODE_RANKS];
    char firsts[MAX_NODE_RANKS][PROGRAM_REASON];
    MPI_Allgather(&wrong, 1, MPI_INT, wrongs, 1, MPI_INT, group_comm(run->group));
    MPI_Allgather(first, PROGRAM_REASON, MPI_CHAR, firsts, PROGRAM_REASON, MPI_CHAR, group_comm(run->group));
    for (int rank = 0; rank < ranks; rank++) {
        if (wrongs[rank] == 0) continue;
        if (wrongs[rank] < 0)
            snprintf(reason, PROGRAM_REASON, "rank %d, %s step: out of memory for the check", rank,
                     round_time_names[mode]);
        else
            snprintf(reason, PROGRAM_REASON, "rank %d, %s step: wrong results: %d, first %.100s", rank,
                     round_time_names[mode], wrongs[rank], firsts[rank]);
        return -1;
    }
    return 0;
}

// Runs one step of each kind. The steps that are compared with a traced one (the overlapped one, and noted
// GEMMs alone) are its neighbours, each as often before it as after it; the three positions rotate.
static int one_round(struct run *run, size_t number) {
    static const enum step_mode modes[2][STEP_MODES] = {
        {STEP_GEMMS, STEP_SERIAL, STEP_OVERLAPPED, STEP_TRACED, STEP_GEMMS_TRACED},
        {STEP_GEMMS, STEP_SERIAL, STEP_GEMMS_TRACED, STEP_TRACED, STEP_OVERLAPPED}};
    static const size_t first[] = {0, 1, 2, STEP_MODES}; // of each place
    for (size_t place = 0; place < 3; place++) {
        size_t turn = (place + number) % 3;
        for (size_t i = first[turn]; i < first[turn + 1]; i++) {
            if (one_step(run, modes[number % 2][i], number) != 0) return -1;
        }
    }
    return 0;
}

// Prints progress, which also shows the generator that the program is alive.
static void print_progress(void *of) {
    const struct run *run = of;
    if (run->group->rank != 0) return;
    printf("progress done=%zu of=%zu\n", run->done, run->measurement->warm_up + run->measurement->steps);
    fflush(stdout);
}

static int all_rounds(struct run *run, char reason[]) {
    size_t warm_up = run->measurement->warm_up, steps = run->measurement->steps;
    if (verified_step(run, STEP_SERIAL, reason) != 0 || verified_step(run, STEP_OVERLAPPED, reason) != 0)
        return -1;
    for (size_t i = 0; i < warm_up + steps; i++) {
        if (one_round(run, i < warm_up ? i % steps : i - warm_up) != 0) return refuse(reason, failure(run));
        run->done = i + 1;
        print_progress(run);
    }
    MPI_Reduce(run->times_us, run->worst_us, (int)(ROUND_TIMES * steps), MPI_DOUBLE, MPI_MAX, 0,
               group_comm(run->group));
    double *kept = run->times_us; // the last check is no sample
    run->times_us = calloc(ROUND_TIMES * steps, sizeof *kept);
    int status = group_mpi_all(run->group, run->times_us != NULL)
                     ? verified_step(run, STEP_OVERLAPPED, reason)
                     : refuse(reason, "out of memory");
    free(run->times_us);
    run->times_us = kept;
    return status;
}

// ---- report -------------------------------------------------------------------------------------

static void print_summary(const char *kind, const char *name, double *numbers, size_t count) {
    struct summary all = summarise(numbers, count);
    printf("%s name=%s median=%.6g low=%.6g high=%.6g min=%.6g samples=%zu\n", kind, name, all.median,
           all.low, all.high, all.min, all.samples);
}

// For each round, with the times G of GEMMs alone, S of the serial, O of the overlapped and T of the traced
// step: exposed = S - G; left = O - G; hidden = (S - O) / (S - G); overlapped_to_serial = O / S;
// overlapped_to_gemms = O / G; tracing = T / O - 1; cost = the time of GEMMs beside communication, divided by
// their time without it, - 1.
static void print_ratios(const struct run *run, double *room) {
    size_t steps = run->measurement->steps;
    const double *gemms = run->worst_us, *serial = gemms + steps, *overlapped = serial + steps,
                 *traced = overlapped + steps, *beside = gemms + GEMMS_BESIDE * steps,
                 *alone = gemms + GEMMS_ALONE * steps;
    for (size_t i = 0; i < steps; i++) room[i] = serial[i] - gemms[i];
    print_summary("time", "exposed", room, steps);
    for (size_t i = 0; i < steps; i++) room[i] = overlapped[i] - gemms[i];
    print_summary("time", "left", room, steps);
    for (size_t i = 0; i < steps; i++) {
        double exposed = serial[i] - gemms[i];
        room[i] = fabs(exposed) > 0 ? (serial[i] - overlapped[i]) / exposed : 0;
    }
    print_summary("ratio", "hidden", room, steps);
    for (size_t i = 0; i < steps; i++) room[i] = overlapped[i] / serial[i];
    print_summary("ratio", "overlapped_to_serial", room, steps);
    for (size_t i = 0; i < steps; i++) room[i] = overlapped[i] / gemms[i];
    print_summary("ratio", "overlapped_to_gemms", room, steps);
    for (size_t i = 0; i < steps; i++) room[i] = traced[i] / overlapped[i] - 1;
    print_summary("ratio", "tracing", room, steps);
    for (size_t i = 0; i < steps; i++) room[i] = alone[i] > 0 ? beside[i] / alone[i] - 1 : 0;
    print_summary("ratio", "cost", room, steps);
}

static void print_times(const struct run *run) {
    size_t steps = run->measurement->steps;
    double *room = malloc(steps * sizeof *room);
    if (room == NULL) return;
    for (size_t i = 0; i < steps; i++) {
        printf("round number=%zu", i);
        for (size_t kind = 0; kind < ROUND_TIMES; kind++)
            printf(" %s_us=%.3f", round_time_names[kind], run->worst_us[kind * steps + i]);
        printf("\n");
    }
    for (size_t kind = 0; kind < ROUND_TIMES; kind++) {
        memcpy(room, run->worst_us + kind * steps, steps * sizeof *room);
        print_summary("time", round_time_names[kind], room, steps);
    }
    print_ratios(run, room);
    free(room);
}

// This rank's shares of a traced step. On GPUs streams wait, which costs the host no time.
static void shares_of(const struct run *run, size_t number, double shares[SHARES]) {
    const struct step_notes *step = &run->notes[number];
    uint64_t ns[SHARES] = {0};
    bool waits = run->engine == &engine_host;
    for (int i = 0; waits && i < step->final_wait_count; i++)
        ns[AWAIT_US] += step->final_waits[i].end_ns - step->final_waits[i].begin_ns;
    for (size_t i = 0; i < run->program->action_count; i++) {
        const struct note *note = &step->notes[i];
        if (run->program->actions[i].kind == DO_GEMM) {
            if (note->cpu_ns != NO_CPU) ns[GEMM_CPU_US] += note->cpu_ns;
        } else if (waits && run->program->actions[i].kind == DO_AWAIT) {
            ns[AWAIT_US] += note->end_ns - note->begin_ns;
        }
    }
    for (size_t i = 0; i < run->program->collective_count; i++) {
        for (int thread = 0; thread < run->description.streams; thread++) {
            const struct span *span = &step->spans[i * MAX_THREADS + (size_t)thread];
            ns[COMMUNICATION_US] += span->end_ns - span->begin_ns;
            if (span->cpu_ns != NO_CPU) ns[COMMUNICATION_CPU_US] += span->cpu_ns;
        }
    }
    for (int share = 0; share < SHARES; share++) shares[share] = (double)ns[share] * 1e-3;
    shares[GEMM_US] = run->times_us[GEMMS_BESIDE * run->measurement->steps + number];
    shares[GEMM_ALONE_US] = run->times_us[GEMMS_ALONE * run->measurement->steps + number];
}

// Collective.
static void print_shares(const struct run *run) {
    size_t steps = run->measurement->steps;
    double mine[SHARES] = {0}, all[MAX_NODE_RANKS][SHARES], *room = malloc(SHARES * steps * sizeof *room);
    for (size_t i = 0; room != NULL && i < steps; i++) {
        double shares[SHARES];
        shares_of(run, i, shares);
        for (size_t share = 0; share < SHARES; share++) room[share * steps + i] = shares[share];
    }
    for (size_t share = 0; room != NULL && share < SHARES; share++)
        mine[share] = median(room + share * steps, steps);
    free(room);
    MPI_Gather(mine, SHARES, MPI_DOUBLE, all, SHARES, MPI_DOUBLE, 0, group_comm(run->group));
    for (int rank = 0; run->group->rank == 0 && rank < run->group->size; rank++) {
        printf("rank number=%d", rank);
        for (int share = 0; share < SHARES; share++) printf(" %s=%.3f", share_names[share], all[rank][share]);
        printf("\n");
    }
}

// ---- trace --------------------------------------------------------------------------------------

// The path of a rank's trace: its number replaces the last %r in `pattern`; others belong to folders.
static void trace_path(const char *pattern, int rank, char path[], size_t size) {
    const char *mark = NULL;
    for (const char *at = strstr(pattern, "%r"); at != NULL; at = strstr(at + 1, "%r")) mark = at;
    if (mark == NULL)
        snprintf(path, size, "%s", pattern);
    else
        snprintf(path, size, "%.*s%d%s", (int)(mark - pattern), pattern, rank, mark + 2);
}

// The beginning of the traces' clock, and the time of day at that moment, the same on all ranks.
static void take_base(const struct run *run, uint64_t base[2]) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    base[0] = clock_ns();
    base[1] = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    MPI_Bcast(base, 2, MPI_UINT64_T, 0, group_comm(run->group));
}

// Collective. 0; or -1 with the reason of a rank that could not write its trace.
static int all_written(const struct run *run, int problem, char reason[]) {
    int worst = 0;
    MPI_Allreduce(&problem, &worst, 1, MPI_INT, MPI_MAX, group_comm(run->group));
    if (worst == 0) return 0;
    snprintf(reason, PROGRAM_REASON, "a trace cannot be written: %s", strerror(worst));
    return -1;
}

static int try_trace(const struct run *run, char reason[]) {
    char path[PATH_SIZE + 16];
    if (run->measurement->path[0] == '\0') return 0;
    trace_path(run->measurement->path, run->group->rank, path, sizeof path);
    return all_written(run, trace_try(path), reason);
}

static int write_trace(const struct run *run, const uint64_t base[2], char reason[]) {
    char path[PATH_SIZE + 16];
    if (run->measurement->path[0] == '\0') return 0;
    trace_path(run->measurement->path, run->group->rank, path, sizeof path);
    bool is_host = run->engine == &engine_host;
    struct trace trace = {
        .program = run->program,
        .description = &run->description,
        .wait = wait_names[run->measurement->wait],
        .pid = (int)getpid(),
        .tid = (int)gettid(),
        .oversubscribed = is_host && run->group->size * (1 + run->description.threads) > run->group->cores,
        .base_ns = base[0],
        .base_unix_ns = base[1],
        .steps = run->notes,
        .step_count = run->measurement->steps,
    };
    return all_written(run, trace_write(&trace, path), reason);
}

// ---- public -------------------------------------------------------------------------------------

static int measure_opened(struct run *run, char reason[]) {
    uint64_t base[2];
    take_base(run, base);
    if (!group_mpi_all(run->group, allocate(run))) return refuse(reason, "out of memory");
    run->engine->describe(run->state, &run->description);
    if (run->group->rank == 0)
        printf("accepted channels=%d threads=%d bytes=%zu backend=%s clock=%s note=%s\n"
               "used device=%s\nused library=%s\n",
               run->description.channels, run->description.threads, run->program->bytes, run->engine->name,
               run->description.clock, run->description.note, run->description.device,
               run->description.library);
    int status = all_rounds(run, reason);
    if (status == 0) {
        if (run->group->rank == 0) print_times(run);
        print_shares(run);
        status = write_trace(run, base, reason);
    }
    return status;
}

int measure(const struct measurement *measurement, struct program *program, struct group *group,
            const struct blas *blas, char reason[PROGRAM_REASON]) {
    struct run run = {
        .measurement = measurement, .program = program, .group = group, .engine = measurement->engine};
    const struct engine_setup setup = {.program = program,
                                       .group = group,
                                       .blas = blas,
                                       .transport = measurement->transport,
                                       .channels = measurement->channels,
                                       .threads = measurement->threads,
                                       .wait = measurement->wait,
                                       .patience_s = measurement->patience_s,
                                       .on_progress = print_progress,
                                       .context = &run};
    if (try_trace(&run, reason) != 0 || run.engine->open(&setup, &run.state, reason) != 0) return -1;
    int status = measure_opened(&run, reason);
    if (group_failure(group) != NULL) return -1; // threads and GPUs may still use this memory
    run.engine->close(run.state);
    release(&run);
    return status;
}
