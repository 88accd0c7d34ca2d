// Steps of all ranks on one GPU, where our own kernels and the GEMMs really compete for its multiprocessors:
// rank 0 has a stream for each rank's GEMMs, by cuBLASLt, and one of higher priority for the collectives,
// each a launch for all ranks. The others have their arrays and results, which go through memory that the
// ranks share. Kernels are real, links are not. A step is timed by events; traced ones are told of by CUPTI,
// or by events, too, as in engine_cuda.c.
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/group_mpi.h"
#include "workload/engine.h"
#include "workload/gpu/gpu_needs.h"
#include "workload/gpu/gpu_own.h"
#include "workload/gpu/gpu_rank.h"
#include "workload/gpu/gpu_streams.h"

// How long kernels may take to end that were told to give up.
static const double AFTER_GIVING_UP_S = 2;
enum { LOOKS = 4 }; // at a step's progress, before nothing moves any more

// What rank 0 has of each rank.
struct lane {
    CUstream compute;
    CUdeviceptr memory, workspace;
    struct gpu_gemm **gemms;
    struct gpu_events *by_action;
    CUevent *ready; // by collective: its input, or, in GEMMs alone, where it would be
    CUevent end;    // of this rank's step
};

// Where a rank's message lies in its memory, and how much of it goes to whom (ALL_TO_ALL).
struct message {
    size_t in, in_bytes, out, sent[MAX_RANKS];
};

// What ranks tell rank 0, and it them; in memory that they share.
struct board {
    struct gpu_gemm_shape *shapes; // [rank][gemm], in memory that begins at 0
    struct message *messages;      // [rank][collective]
    struct note *notes;            // [rank][action]
    struct span *spans;            // [rank][collective]
    unsigned char *arrays;         // [rank][its bytes]
};

// What ran on the GPU for a rank, as it is told to it: each with its name behind it.
struct package {
    FILE *file;
    char *bytes;
    size_t size;
};

// What a step was.
struct outcome {
    uint64_t begin_ns, ns[MAX_RANKS]; // 0: it failed
    char problem[PROGRAM_REASON];
};

struct state {
    const struct engine_setup *setup;
    struct gpu_rank rank;
    size_t bytes[MAX_RANKS], from[MAX_RANKS], all_bytes; // of arrays, and where they are on the board
    struct board board;
    bool by_cupti;
    char note[WORDS_SIZE]; // why not
    char **names;          // of kernels that this rank was told of
    size_t name_count;
    // rank 0's
    enum need *needs; // of CUPTI's records, [rank][action]
    char lost[WORDS_SIZE];
    bool is_outside; // `lost` says of times that are outside the step, no more
    struct package packages[MAX_RANKS];
    const struct cuda_driver *driver;
    CUdevice device;
    CUstream communication;
    struct lane lanes[MAX_RANKS];
    struct gpu_events *by_collective, *step;
    struct gpu_own own;
    int multiprocessors;
    char name[100], library[WORDS_SIZE];
    struct outcome outcome;
    bool hangs; // the GPU, whose time was over
};

static bool is_first(const struct state *state) {
    return state->setup->group->rank == 0;
}

static bool ok(struct state *state, CUresult result, const char *what) {
    return driver_ok(state->driver, result, what, state->outcome.problem, sizeof state->outcome.problem);
}

// Rank 0's word for all, and its problem.
static bool agree(struct state *state, bool well) {
    MPI_Comm comm = group_comm(state->setup->group);
    int all = well;
    MPI_Bcast(&all, 1, MPI_INT, 0, comm);
    MPI_Bcast(state->outcome.problem, PROGRAM_REASON, MPI_CHAR, 0, comm);
    return all != 0;
}

// ---- opening: what all ranks do -------------------------------------------------------------------------

// Shared memory for `count` of what has this size, of every rank.
static void *map_of_each(const struct state *state, size_t count, size_t size, char reason[]) {
    struct group *group = state->setup->group;
    return group_map(group, (count * size + 1) * (size_t)group->size, reason, PROGRAM_REASON);
}

static void unmap_of_each(const struct state *state, void *memory, size_t count, size_t size) {
    if (memory != NULL) group_unmap(memory, (count * size + 1) * (size_t)state->setup->group->size);
}

static bool map_board(struct state *state, char reason[]) {
    const struct program *program = state->setup->program;
    struct board *board = &state->board;
    size_t gemms = program->gemm_count, collectives = program->collective_count;
    return (board->shapes = map_of_each(state, gemms, sizeof *board->shapes, reason)) != NULL &&
           (board->messages = map_of_each(state, collectives, sizeof *board->messages, reason)) != NULL &&
           (board->notes = map_of_each(state, program->action_count, sizeof *board->notes, reason)) != NULL &&
           (board->spans = map_of_each(state, collectives, sizeof *board->spans, reason)) != NULL &&
           (board->arrays = group_map(state->setup->group, state->all_bytes, reason, PROGRAM_REASON)) != NULL;
}

static void unmap_board(struct state *state) {
    const struct program *program = state->setup->program;
    const struct board *board = &state->board;
    unmap_of_each(state, board->shapes, program->gemm_count, sizeof *board->shapes);
    unmap_of_each(state, board->messages, program->collective_count, sizeof *board->messages);
    unmap_of_each(state, board->notes, program->action_count, sizeof *board->notes);
    unmap_of_each(state, board->spans, program->collective_count, sizeof *board->spans);
    if (board->arrays != NULL) group_unmap(board->arrays, state->all_bytes);
}

// Collective. Every rank's layout, on the board.
static bool tell_layouts(struct state *state, char reason[]) {
    const struct program *program = state->setup->program;
    const struct group *group = state->setup->group;
    size_t me = (size_t)group->rank, mine = state->rank.bytes;
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, state->bytes, sizeof mine, MPI_BYTE, group_comm(group));
    for (int rank = 0; rank < group->size; rank++) {
        state->from[rank] = state->all_bytes;
        state->all_bytes += state->bytes[rank];
    }
    if (!map_board(state, reason)) return false;
    for (size_t i = 0; i < program->gemm_count; i++)
        state->board.shapes[me * program->gemm_count + i] = gpu_rank_gemm(&state->rank, i, 0);
    for (size_t i = 0; i < program->collective_count; i++) {
        const struct collective *collective = &program->collectives[i];
        struct message *message = &state->board.messages[me * program->collective_count + i];
        message->in = gpu_rank_offset(&state->rank, collective->in);
        message->in_bytes = collective->in_elements * dtype_sizes_bytes[collective->dtype];
        message->out = gpu_rank_offset(&state->rank, collective->out);
        memcpy(message->sent, collective->send, sizeof message->sent);
    }
    MPI_Barrier(group_comm(group));
    return true;
}

// ---- opening: what rank 0 does --------------------------------------------------------------------------

static bool open_gpu(struct state *state) {
    char *problem = state->outcome.problem;
    state->driver = gpu_gemms_open(0, &state->lanes[0].compute, state->library, sizeof state->library,
                                   problem, PROGRAM_REASON);
    if (state->driver == NULL) return false;
    const char *missing = gpu_streams_load();
    if (missing != NULL) snprintf(problem, PROGRAM_REASON, "the CUDA driver has no %s", missing);
    return missing == NULL && ok(state, state->driver->cuDeviceGet(&state->device, 0), "the GPU") &&
           ok(state, state->driver->cuDeviceGetName(state->name, sizeof state->name, state->device),
              "its name") &&
           ok(state,
              state->driver->cuDeviceGetAttribute(&state->multiprocessors,
                                                  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, state->device),
              "its multiprocessors") &&
           ok(state, gpu_streams_make_first(&state->communication), "a stream");
}

static bool make_gemms(struct state *state, struct lane *lane, const struct gpu_gemm_shape shapes[]) {
    size_t count = state->setup->program->gemm_count;
    lane->gemms = calloc(count, sizeof(struct gpu_gemm *));
    if (lane->gemms == NULL) return ok(state, CUDA_ERROR_OUT_OF_MEMORY, "GEMMs");
    for (size_t i = 0; i < count; i++) {
        struct gpu_gemm_shape shape = shapes[i];
        shape.a += lane->memory;
        shape.b += lane->memory;
        shape.c += lane->memory;
        lane->gemms[i] = gpu_gemm_make(&shape, state->outcome.problem, PROGRAM_REASON);
        if (lane->gemms[i] == NULL) return false;
    }
    return true;
}

static bool make_lane_events(struct state *state, struct lane *lane) {
    size_t count = state->setup->program->collective_count;
    lane->ready = calloc(count + 1, sizeof *lane->ready);
    if (lane->ready == NULL) return ok(state, CUDA_ERROR_OUT_OF_MEMORY, "events");
    for (size_t i = 0; i < count; i++) {
        if (!ok(state, state->driver->cuEventCreate(&lane->ready[i], CU_EVENT_DISABLE_TIMING), "an event"))
            return false;
    }
    return ok(state, state->driver->cuEventCreate(&lane->end, CU_EVENT_DEFAULT), "an event");
}

static bool make_lane(struct state *state, int rank) {
    const struct cuda_driver *driver = state->driver;
    const struct program *program = state->setup->program;
    struct lane *lane = &state->lanes[rank];
    char what[64];
    snprintf(what, sizeof what, "%.1f GB of arrays for rank %d", (double)state->bytes[rank] * 1e-9, rank);
    bool has_stream =
        rank == 0 || ok(state, driver->cuStreamCreate(&lane->compute, CU_STREAM_NON_BLOCKING), "a stream");
    return has_stream && ok(state, driver->cuMemAlloc(&lane->memory, state->bytes[rank]), what) &&
           ok(state, driver->cuMemAlloc(&lane->workspace, GPU_GEMM_WORKSPACE), "a workspace") &&
           make_gemms(state, lane, state->board.shapes + (size_t)rank * program->gemm_count) &&
           ok(state, gpu_events_make(driver, &lane->by_action, program->action_count), "an event") &&
           make_lane_events(state, lane);
}

static const struct message *message_of(const struct state *state, int rank, int collective) {
    return &state->board
                .messages[(size_t)rank * state->setup->program->collective_count + (size_t)collective];
}

static size_t largest_message(const struct state *state) {
    size_t most = 1;
    for (int rank = 0; rank < state->setup->group->size; rank++) {
        for (int i = 0; i < (int)state->setup->program->collective_count; i++) {
            size_t bytes = message_of(state, rank, i)->in_bytes;
            if (bytes > most) most = bytes;
        }
    }
    return most;
}

static bool make_all(struct state *state) {
    const struct engine_setup *setup = state->setup;
    const struct program *program = setup->program;
    for (int rank = 0; rank < setup->group->size; rank++) {
        if (!make_lane(state, rank)) return false;
    }
    const struct gpu_own_wish wish = {.device = state->device,
                                      .stream = state->communication,
                                      .program = program,
                                      .blocks = (unsigned)setup->channels,
                                      .threads = (unsigned)setup->threads,
                                      .bytes = largest_message(state)};
    return ok(state, gpu_events_make(state->driver, &state->by_collective, program->collective_count),
              "an event") &&
           ok(state, gpu_events_make(state->driver, &state->step, 1), "an event") &&
           gpu_own_open(&state->own, state->driver, &wish, state->outcome.problem, PROGRAM_REASON);
}

// ---- a step ---------------------------------------------------------------------------------------------

static bool record(struct state *state, CUevent event, CUstream stream) {
    return ok(state, state->driver->cuEventRecord(event, stream), "an event");
}

static bool follow(struct state *state, CUstream stream, CUevent event) {
    return ok(state, gpu_streams.cuStreamWaitEvent(stream, event, 0), "a wait");
}

// How many of its places a step has come to: on each rank's stream before each collective, and behind them.
static size_t places_reached(const struct state *state) {
    size_t reached = 0;
    for (size_t i = 0; i < state->setup->program->collective_count; i++) {
        reached += state->driver->cuEventQuery(state->by_collective[i].end) == CUDA_SUCCESS;
        for (int rank = 0; rank < state->setup->group->size; rank++)
            reached += state->driver->cuEventQuery(state->lanes[rank].ready[i]) == CUDA_SUCCESS;
    }
    return reached;
}

// Waits for an event as long as the step makes progress. CUDA_ERROR_NOT_READY: it makes none; what was looked
// at while this thread had no processor is one look of several.
static CUresult wait_while_it_moves(const struct state *state, CUevent event) {
    uint64_t looked_ns = clock_ns(), between_ns = (uint64_t)(state->setup->patience_s * 1e9 / LOOKS);
    size_t before = 0;
    CUresult result = CUDA_SUCCESS;
    for (int looks = 0; looks < LOOKS;) {
        result = state->driver->cuEventQuery(event);
        if (result != CUDA_ERROR_NOT_READY) return result;
        sched_yield();
        if (clock_ns() - looked_ns < between_ns) continue;
        size_t reached = places_reached(state);
        looks = reached > before ? 0 : looks + 1;
        if (reached > before) state->setup->still_there(state->setup->context);
        before = reached;
        looked_ns = clock_ns();
    }
    return result;
}

// Kernels that wait for each other for too long, for multiprocessors that GEMMs hold included, are told to
// give up; the results are nobody's then. Returns what becomes of the event.
static CUresult give_up(struct state *state, CUevent event) {
    uint64_t since_ns = clock_ns();
    CUresult result;
    gpu_own_give_up(&state->own);
    while ((result = state->driver->cuEventQuery(event)) == CUDA_ERROR_NOT_READY &&
           (double)(clock_ns() - since_ns) * 1e-9 < AFTER_GIVING_UP_S)
        sched_yield();
    return result;
}

// Waits for an event.
static bool finish(struct state *state, CUevent event) {
    CUresult result = wait_while_it_moves(state, event);
    if (result != CUDA_ERROR_NOT_READY) return ok(state, result, "the GPU");
    result = give_up(state, event);
    state->hangs = result == CUDA_ERROR_NOT_READY;
    if (result != CUDA_SUCCESS && !state->hangs) return ok(state, result, "the GPU, told to give up");
    snprintf(state->outcome.problem, PROGRAM_REASON, "a step made no progress for more than %g s, and %s",
             state->setup->patience_s, state->hangs ? "the GPU hangs" : "its kernels gave up");
    return false;
}

// Where this collective's input is there, on all ranks.
static bool mark_ready(struct state *state, int index) {
    for (int rank = 0; rank < state->setup->group->size; rank++) {
        const struct lane *lane = &state->lanes[rank];
        if (!record(state, lane->ready[index], lane->compute)) return false;
    }
    return true;
}

static struct gpu_own_call call_of(const struct state *state, int index) {
    const struct collective *collective = &state->setup->program->collectives[index];
    struct gpu_own_call call = {
        .kind = collective->kind, .dtype = collective->dtype, .elements = collective->elements};
    for (int rank = 0; rank < state->setup->group->size; rank++) {
        const struct message *message = message_of(state, rank, index);
        call.in[rank] = state->lanes[rank].memory + message->in;
        call.out[rank] = state->lanes[rank].memory + message->out;
        memcpy(call.sent[rank], message->sent, sizeof call.sent[rank]);
    }
    return call;
}

// A collective after what all ranks have done so far.
static bool post(struct state *state, int index, bool is_noted) {
    const struct gpu_events *around = &state->by_collective[index];
    const struct gpu_own_call call = call_of(state, index);
    if (!mark_ready(state, index)) return false;
    for (int rank = 0; rank < state->setup->group->size; rank++) {
        if (!follow(state, state->communication, state->lanes[rank].ready[index])) return false;
    }
    return (!is_noted || record(state, around->begin, state->communication)) &&
           ok(state, gpu_own_enqueue(&state->own, &call), "a launch") &&
           record(state, around->end, state->communication);
}

// All ranks go on after it.
static bool await(struct state *state, int index) {
    for (int rank = 0; rank < state->setup->group->size; rank++) {
        if (!follow(state, state->lanes[rank].compute, state->by_collective[index].end)) return false;
    }
    return true;
}

// Whether a step is told of by CUPTI.
static bool is_recorded(const struct state *state, enum step_mode mode) {
    return state->by_cupti && step_is_noted(mode);
}

// Names a rank's action to CUPTI; a collective of all ranks is rank 0's.
static uint32_t id_of(const struct state *state, int rank, size_t number) {
    return (uint32_t)((size_t)rank * state->setup->program->action_count + number);
}

static bool multiply(struct state *state, struct lane *lane, size_t number, int index, bool is_noted) {
    const struct gpu_events *around = &lane->by_action[number];
    gpu_gemms_go_on(lane->compute, lane->workspace);
    if (is_noted && !record(state, around->begin, lane->compute)) return false;
    if (!gpu_gemm_enqueue(lane->gemms[index])) {
        snprintf(state->outcome.problem, PROGRAM_REASON, "cuBLASLt refuses a GEMM that it took before");
        return false;
    }
    return !is_noted || record(state, around->end, lane->compute);
}

// An action of all ranks; `notes`, by rank, of what the host did.
static bool act(struct state *state, enum step_mode mode, size_t number) {
    const struct action action = state->setup->program->actions[number];
    bool records = is_recorded(state, mode), has_events = step_is_noted(mode) && !records, well = true;
    if (action.kind == DO_GEMM) {
        for (int rank = 0; well && rank < state->setup->group->size; rank++) {
            struct note *note =
                &state->board.notes[(size_t)rank * state->setup->program->action_count + number];
            note->begin_ns = note->launch_ns = clock_ns();
            if (records) gpu_activity_enter(id_of(state, rank, number));
            well = multiply(state, &state->lanes[rank], number, action.index, has_events);
            note->launched_ns = clock_ns();
            if (records) gpu_activity_leave();
            note->end_ns = clock_ns();
        }
        return well;
    }
    uint64_t begin_ns = clock_ns();
    if (records) gpu_activity_enter(id_of(state, 0, number));
    if (action.kind == DO_AWAIT)
        well = !step_communicates(mode) || await(state, action.index);
    else if (!step_communicates(mode))
        well = mark_ready(state, action.index);
    else
        well = post(state, action.index, has_events) && (mode != STEP_SERIAL || await(state, action.index));
    if (records) gpu_activity_leave();
    for (int rank = 0; rank < state->setup->group->size; rank++) {
        struct note *note = &state->board.notes[(size_t)rank * state->setup->program->action_count + number];
        note->begin_ns = note->launch_ns = begin_ns;
        note->launched_ns = note->end_ns = clock_ns();
    }
    return well;
}

static bool enqueue_all(struct state *state, enum step_mode mode) {
    const struct program *program = state->setup->program;
    for (size_t i = 0; i < program->action_count; i++) {
        if (!act(state, mode, i)) return false;
    }
    for (int i = 0; step_communicates(mode) && i < (int)program->collective_count; i++) {
        if (!await(state, i)) return false;
    }
    for (int rank = 0; rank < state->setup->group->size; rank++) {
        const struct lane *lane = &state->lanes[rank];
        if (!record(state, lane->end, lane->compute) || !follow(state, state->communication, lane->end))
            return false;
    }
    if (!record(state, state->step->end, state->communication)) return false;
    if (is_recorded(state, mode)) gpu_activity_launched();
    return finish(state, state->step->end);
}

// Nanoseconds from the step's beginning to an event; one that fails leaves a problem.
static uint64_t since_begin(struct state *state, CUevent event) {
    float ms = 0;
    ok(state, state->driver->cuEventElapsedTime(&ms, state->step->begin, event), "a time");
    return (uint64_t)((double)ms * 1e6);
}

// What the events say, for every rank's trace; of a step that CUPTI tells of, nothing but when it began.
static void note_times(struct state *state, bool communicated, bool has_events) {
    const struct program *program = state->setup->program;
    uint64_t begin_ns = state->outcome.begin_ns;
    for (int rank = 0; rank < state->setup->group->size; rank++) {
        struct note *notes = state->board.notes + (size_t)rank * program->action_count;
        struct span *spans = state->board.spans + (size_t)rank * program->collective_count;
        for (size_t i = 0; i < program->action_count; i++) {
            const struct gpu_events *around = &state->lanes[rank].by_action[i];
            bool is_gemm = program->actions[i].kind == DO_GEMM && has_events;
            notes[i].is_told = false;
            notes[i].cpu_ns = NO_CPU;
            notes[i].work_ns = is_gemm ? begin_ns + since_begin(state, around->begin) : notes[i].end_ns;
            notes[i].work_end_ns = is_gemm ? begin_ns + since_begin(state, around->end) : notes[i].end_ns;
        }
        for (size_t i = 0; communicated && i < program->collective_count; i++) {
            const struct gpu_events *around = &state->by_collective[i];
            spans[i] = (struct span){begin_ns, begin_ns, NO_CPU};
            if (!has_events) continue;
            spans[i] = (struct span){begin_ns + since_begin(state, around->begin),
                                     begin_ns + since_begin(state, around->end), NO_CPU};
        }
    }
}

static void pack(struct package *package, const struct work *work) {
    if (package->file == NULL) return;
    fwrite(work, sizeof *work, 1, package->file);
    fputs(work->name != NULL ? work->name : "", package->file);
    fputc('\0', package->file);
}

static void take_activity(void *context, const struct work *told) {
    struct state *state = context;
    const struct program *program = state->setup->program;
    size_t of = told->action / program->action_count;
    struct work work = *told;
    work.action %= program->action_count;
    const struct action action = program->actions[work.action];
    for (size_t rank = 0; rank < (size_t)state->setup->group->size; rank++) {
        struct note *note = &state->board.notes[rank * program->action_count + work.action];
        if (action.kind == DO_GEMM ? rank != of : action.kind != DO_POST) continue;
        note_work(note,
                  action.kind == DO_GEMM
                      ? NULL
                      : &state->board.spans[rank * program->collective_count + (size_t)action.index],
                  &work);
        pack(&state->packages[rank], &work);
    }
}

// CUPTI's records are whole when all streams were waited for; there is nothing left to do on them.
static bool settle(struct state *state) {
    bool well = ok(state, gpu_streams.cuStreamSynchronize(state->communication), "the GPU");
    for (int rank = 0; well && rank < state->setup->group->size; rank++)
        well = ok(state, gpu_streams.cuStreamSynchronize(state->lanes[rank].compute), "the GPU");
    return well;
}

// What CUPTI tells, for every rank's trace, in its package.
static void take_activities(struct state *state, enum step_mode mode, uint64_t end_ns) {
    const struct program *program = state->setup->program;
    int ranks = state->setup->group->size;
    const struct gpu_activity_wish wish = {.needs = state->needs,
                                           .count = (size_t)ranks * program->action_count,
                                           .begin_ns = state->outcome.begin_ns,
                                           .end_ns = end_ns};
    gpu_needs_set(state->needs, program, ranks, mode);
    if (gpu_activity_end(&wish, state->lost, sizeof state->lost))
        state->is_outside = gpu_needs_say(state->needs, program, ranks, state->lost, sizeof state->lost);
    if (state->lost[0] != '\0') return;
    for (int rank = 0; rank < ranks; rank++) {
        struct package *package = &state->packages[rank];
        package->file = open_memstream(&package->bytes, &package->size);
    }
    gpu_activity_each(take_activity, state);
    for (int rank = 0; rank < ranks; rank++) {
        struct package *package = &state->packages[rank];
        bool is_whole = package->file != NULL && ferror(package->file) == 0;
        if (package->file != NULL && fclose(package->file) != 0) is_whole = false;
        if (!is_whole) snprintf(state->outcome.problem, PROGRAM_REASON, "out of memory for a trace");
    }
}

static void drop_packages(struct state *state) {
    for (int rank = 0; rank < MAX_RANKS; rank++) {
        free(state->packages[rank].bytes);
        state->packages[rank] = (struct package){0};
    }
}

// The step begins on an idle GPU: then its clock and the host's are read together.
static void run_step(struct state *state, enum step_mode mode) {
    CUstream first = state->lanes[0].compute;
    memset(&state->outcome, 0, sizeof state->outcome);
    state->lost[0] = '\0';
    state->is_outside = false;
    if (is_recorded(state, mode) && !gpu_activity_begin()) {
        snprintf(state->outcome.problem, PROGRAM_REASON, "CUPTI does not record any more");
        return;
    }
    struct gpu_clock clock = {0};
    uint64_t before_ns;
    do {
        before_ns = clock_ns();
        if (!record(state, state->step->begin, first) || !finish(state, state->step->begin)) return;
        state->outcome.begin_ns = clock_ns();
    } while (step_is_noted(mode) && !gpu_clock_is_close(&clock, state->outcome.begin_ns - before_ns));
    if (!enqueue_all(state, mode)) return;
    for (int rank = 0; rank < state->setup->group->size; rank++)
        state->outcome.ns[rank] = since_begin(state, state->lanes[rank].end) + 1;
    if (step_is_noted(mode)) note_times(state, step_communicates(mode), !is_recorded(state, mode));
    if (is_recorded(state, mode) && settle(state))
        take_activities(state, mode, state->outcome.begin_ns + since_begin(state, state->step->end));
    if (state->outcome.problem[0] != '\0') memset(state->outcome.ns, 0, sizeof state->outcome.ns);
}

// A copy of a name that stays; there are few.
static const char *keep_name(struct state *state, const char *name) {
    for (size_t i = 0; i < state->name_count; i++) {
        if (strcmp(state->names[i], name) == 0) return state->names[i];
    }
    char **names = realloc(state->names, (state->name_count + 1) * sizeof *names);
    if (names != NULL) state->names = names;
    char *kept = names != NULL ? strdup(name) : NULL;
    if (kept != NULL) names[state->name_count++] = kept;
    return kept;
}

// Keeps what is in a package. False: there is no memory for it.
static bool unpack(struct state *state, const struct package *package, struct step_notes *notes) {
    notes->is_told = true;
    notes->work_count = 0;
    for (const char *at = package->bytes, *end = at + package->size; at < end;) {
        struct work work;
        memcpy(&work, at, sizeof work);
        at += sizeof work;
        work.name = *at != '\0' ? keep_name(state, at) : NULL;
        if ((*at != '\0' && work.name == NULL) || !step_keep_work(notes, &work)) return false;
        at += strlen(at) + 1;
    }
    step_sort_works(notes);
    return true;
}

// Hands each rank its package. False: there is no memory for it.
static bool take_works(struct state *state, struct step_notes *notes) {
    const struct group *group = state->setup->group;
    MPI_Comm comm = group_comm(group);
    struct package package = state->packages[0];
    if (!is_first(state)) {
        MPI_Recv(&package.size, sizeof package.size, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
        package.bytes = malloc(package.size + 1);
        if (package.bytes == NULL) return false;
        MPI_Recv(package.bytes, (int)package.size, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
    }
    for (int rank = 1; is_first(state) && rank < group->size; rank++) {
        const struct package *its = &state->packages[rank];
        MPI_Send(&its->size, sizeof its->size, MPI_BYTE, rank, 0, comm);
        MPI_Send(its->bytes, (int)its->size, MPI_BYTE, rank, 0, comm);
    }
    bool well = unpack(state, &package, notes);
    if (!is_first(state)) free(package.bytes);
    drop_packages(state);
    return well;
}

static void take_notes(const struct state *state, struct step_notes *notes) {
    const struct program *program = state->setup->program;
    const struct outcome *outcome = &state->outcome;
    size_t me = (size_t)state->setup->group->rank;
    notes->is_told = false;
    notes->begin_ns = outcome->begin_ns;
    notes->end_ns = outcome->begin_ns + outcome->ns[me];
    memcpy(notes->notes, state->board.notes + me * program->action_count,
           program->action_count * sizeof *notes->notes);
    for (size_t i = 0; i < program->collective_count; i++)
        notes->spans[i * MAX_THREADS] = state->board.spans[me * program->collective_count + i];
}

static uint64_t step(void *of, enum step_mode mode, struct step_notes *notes) {
    struct state *state = of;
    for (int tries = 0; is_first(state) && tries < STEP_TRIES; tries++) {
        run_step(state, mode);
        if (!state->is_outside) break;
    }
    if (is_first(state) && state->lost[0] != '\0') {
        memset(state->outcome.ns, 0, sizeof state->outcome.ns);
        snprintf(state->outcome.problem, PROGRAM_REASON, "CUPTI %s", state->lost);
    }
    MPI_Bcast(&state->outcome, sizeof state->outcome, MPI_BYTE, 0, group_comm(state->setup->group));
    uint64_t ns = state->outcome.ns[state->setup->group->rank];
    if (!step_is_noted(mode) || ns == 0) return ns;
    take_notes(state, notes);
    int well = !is_recorded(state, mode) || take_works(state, notes), all = 0;
    MPI_Allreduce(&well, &all, 1, MPI_INT, MPI_MIN, group_comm(state->setup->group));
    if (!all) snprintf(state->outcome.problem, PROGRAM_REASON, "out of memory for a trace");
    return all ? ns : 0;
}

// ---- opening ends ---------------------------------------------------------------------------------------

// Rank 0. Whether CUPTI tells all of steps is known before anything is measured. False: a step failed.
static bool open_activity(struct state *state) {
    static const enum step_mode modes[] = {STEP_TRACED, STEP_GEMMS_TRACED};
    const struct engine_setup *setup = state->setup;
    char why[WORDS_SIZE] = "";
    state->needs = calloc((size_t)setup->group->size * setup->program->action_count, sizeof *state->needs);
    if (state->needs == NULL) return ok(state, CUDA_ERROR_OUT_OF_MEMORY, "needs");
    state->by_cupti = gpu_activity_open(why, sizeof why);
    for (size_t i = 0; i < 2 && state->by_cupti; i++) {
        run_step(state, modes[i]);
        drop_packages(state);
        if (state->outcome.problem[0] != '\0') return false;
        if (state->lost[0] == '\0') continue;
        snprintf(why, sizeof why, "CUPTI %.140s", state->lost);
        gpu_activity_close();
        state->by_cupti = false;
    }
    if (!state->by_cupti) snprintf(state->note, WORDS_SIZE, "; traces are timed by events: %.120s", why);
    for (char *at = state->note + 1; at[-1] != '\0' && *at != '\0'; at++)
        if (*at == ';') *at = ',';
    return true;
}

static void close_lane(const struct state *state, struct lane *lane) {
    for (size_t i = 0; lane->gemms != NULL && i < state->setup->program->gemm_count; i++)
        gpu_gemm_end(lane->gemms[i]);
    free(lane->gemms);
    free(lane->by_action);
    free(lane->ready);
    if (state->hangs) return;
    if (lane->memory != 0) state->driver->cuMemFree(lane->memory);
    if (lane->workspace != 0) state->driver->cuMemFree(lane->workspace);
}

// Memory of a GPU that hangs stays: to give it back would wait for the GPU.
static void close_engine(void *of) {
    struct state *state = of;
    for (int rank = 0; rank < state->setup->group->size; rank++) close_lane(state, &state->lanes[rank]);
    if (state->own.driver != NULL && !state->hangs) gpu_own_close(&state->own);
    if (is_first(state) && state->by_cupti) gpu_activity_close();
    for (size_t i = 0; i < state->name_count; i++) free(state->names[i]);
    free(state->names);
    free(state->needs);
    free(state->by_collective);
    free(state->step);
    unmap_board(state);
    gpu_rank_forget(&state->rank);
    free(state);
}

static int open_engine(const struct engine_setup *setup, void **to, char reason[PROGRAM_REASON]) {
    struct state *state = calloc(1, sizeof *state);
    if (state == NULL) return rank_fails(setup->group, "out of memory", reason);
    state->setup = setup;
    if (!gpu_rank_lay_out(&state->rank, setup->program))
        return rank_fails(setup->group, "out of memory", reason);
    bool well = tell_layouts(state, reason);
    if (well &&
        !agree(state, !is_first(state) || (open_gpu(state) && make_all(state) && open_activity(state)))) {
        snprintf(reason, PROGRAM_REASON, "%s", state->outcome.problem);
        well = false;
    }
    if (!well) {
        close_engine(state);
        return -1;
    }
    MPI_Bcast(&state->by_cupti, 1, MPI_C_BOOL, 0, group_comm(setup->group));
    *to = state;
    return 0;
}

static void describe(const void *of, struct engine_words *words) {
    const struct state *state = of;
    *words = (struct engine_words){.backend = "cuda",
                                   .clock = state->by_cupti ? "cupti" : "event",
                                   .transport_kernel = "TWOSHOT",
                                   .channels = (int)state->setup->channels,
                                   .threads = (int)state->setup->threads,
                                   .streams = 1};
    MPI_Comm comm = group_comm(state->setup->group);
    for (int i = 0; i < DTYPES; i++) {
        snprintf(words->gemm_kernels[i], WORDS_SIZE, "cublasLt_gemm_%s", dtype_words[i]);
        words->computed_in[i] = (enum dtype)i;
    }
    snprintf(words->device, WORDS_SIZE, "%s", state->name);
    snprintf(words->library, WORDS_SIZE, "%.120s, our own kernels", state->library);
    words->multiprocessors = state->multiprocessors;
    snprintf(words->note, NOTES_SIZE,
             "all ranks share one GPU: kernels are real, links are not, and channels are blocks of each rank,"
             " of which %u fit at once%s",
             state->own.most_blocks, state->note);
    MPI_Bcast(words->note, NOTES_SIZE, MPI_CHAR, 0, comm);
    MPI_Bcast(words->device, WORDS_SIZE, MPI_CHAR, 0, comm);
    MPI_Bcast(words->library, WORDS_SIZE, MPI_CHAR, 0, comm);
    MPI_Bcast(&words->multiprocessors, 1, MPI_INT, 0, comm);
}

static const char *problem(const void *of) {
    return ((const struct state *)of)->outcome.problem;
}

// ---- arrays ---------------------------------------------------------------------------------------------

// All ranks' arrays, between the board and the GPU.
static bool copy_board(struct state *state, bool to_gpu) {
    const struct cuda_driver *driver = state->driver;
    for (int rank = 0; rank < state->setup->group->size; rank++) {
        const struct lane *lane = &state->lanes[rank];
        unsigned char *here = state->board.arrays + state->from[rank];
        CUresult result =
            to_gpu ? driver->cuMemcpyHtoDAsync(lane->memory, here, state->bytes[rank], lane->compute)
                   : driver->cuMemcpyDtoHAsync(here, lane->memory, state->bytes[rank], lane->compute);
        if (!ok(state, result, "a copy") || !record(state, lane->end, lane->compute) ||
            !finish(state, lane->end))
            return false;
    }
    return true;
}

static int move_arrays(struct state *state, bool to_gpu) {
    const struct program *program = state->setup->program;
    unsigned char *mine = state->board.arrays + state->from[state->setup->group->rank];
    for (size_t i = 0; to_gpu && i < program->array_count; i++)
        memcpy(mine + state->rank.offsets[i], program->arrays[i].data, array_bytes(&program->arrays[i]));
    MPI_Barrier(group_comm(state->setup->group)); // all are on the board
    bool well = agree(state, !is_first(state) || copy_board(state, to_gpu));
    for (size_t i = 0; well && !to_gpu && i < program->array_count; i++)
        memcpy(program->arrays[i].data, mine + state->rank.offsets[i], array_bytes(&program->arrays[i]));
    return well ? 0 : -1;
}

static int give(void *of) {
    return move_arrays(of, true);
}

static int take(void *of) {
    return move_arrays(of, false);
}

const struct engine engine_loopback = {.name = "cuda",
                                       .fails_alike = true,
                                       .open = open_engine,
                                       .close = close_engine,
                                       .describe = describe,
                                       .step = step,
                                       .problem = problem,
                                       .give = give,
                                       .take = take};
