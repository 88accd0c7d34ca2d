// Steps of all ranks on one GPU, where our own kernels and the GEMMs compete for its multiprocessors: rank 0
// has a stream for each rank's GEMMs, by cuBLASLt, and one of higher priority for the collectives, each of
// which is one launch for all ranks. The other ranks have their arrays and results, which go through shared
// memory. Kernels are real, links are not. Events time a step; CUPTI records traced steps, or events time
// them as well, as in engine_cuda.c.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/group_mpi.h"
#include "workload/engine.h"
#include "workload/gpu/activity_transfer.h"
#include "workload/gpu/shared_gpu.h"

// The outcome of a step.
struct outcome {
    uint64_t begin_ns, ns[MAX_NODE_RANKS]; // 0: it failed
    char problem[PROGRAM_REASON];
};

struct state {
    const struct engine_setup *setup;
    struct gpu_shared_data shared;
    struct gpu_records records; // rank 0's; all ranks have `are_taken`
    struct activity_transfer transfer;
    char note[NOTES_SIZE]; // why CUPTI does not record
    // rank 0's
    struct shared_gpu gpu;
    struct outcome outcome;
};

static bool is_first(const struct state *state) {
    return state->setup->group->rank == 0;
}

// Collective. Whether rank 0 is well; if not, all ranks get its problem.
static bool agree(struct state *state, bool well) {
    MPI_Comm comm = group_comm(state->setup->group);
    int all = well;
    MPI_Bcast(&all, 1, MPI_INT, 0, comm);
    MPI_Bcast(state->outcome.problem, PROGRAM_REASON, MPI_CHAR, 0, comm);
    return all != 0;
}

// ---- a step ---------------------------------------------------------------------------------------------

static uint64_t since_begin(const struct state *state, CUevent event) {
    return gpu_ns_between(&state->gpu.queues, state->gpu.step->begin, event);
}

// Notes the times of events for each rank's trace. If CUPTI records the step, only its beginning is noted.
static void note_times(struct state *state, bool communicated, bool has_events) {
    const struct program *program = state->setup->program;
    uint64_t begin_ns = state->outcome.begin_ns;
    for (int rank = 0; rank < state->setup->group->size; rank++) {
        struct note *notes = gpu_shared_notes(&state->shared, rank);
        struct span *spans = gpu_shared_spans(&state->shared, rank);
        for (size_t i = 0; i < program->action_count; i++) {
            const struct gpu_events *around = &state->gpu.ranks[rank].by_action[i];
            bool is_gemm = program->actions[i].kind == DO_GEMM && has_events;
            notes[i].is_recorded = false;
            notes[i].cpu_ns = NO_CPU;
            notes[i].work_ns = is_gemm ? begin_ns + since_begin(state, around->begin) : notes[i].end_ns;
            notes[i].work_end_ns = is_gemm ? begin_ns + since_begin(state, around->end) : notes[i].end_ns;
        }
        for (size_t i = 0; communicated && i < program->collective_count; i++) {
            const struct gpu_events *around = &state->gpu.by_collective[i];
            spans[i] = (struct span){begin_ns, begin_ns, NO_CPU};
            if (!has_events) continue;
            spans[i] = (struct span){begin_ns + since_begin(state, around->begin),
                                     begin_ns + since_begin(state, around->end), NO_CPU};
        }
    }
}

// Adds an activity of a GEMM to the trace of its rank, and one of a collective to the traces of all ranks.
static void take_activity(void *context, const struct gpu_activity *recorded) {
    struct state *state = context;
    const struct program *program = state->setup->program;
    size_t of = recorded->action / program->action_count;
    struct gpu_activity activity = *recorded;
    activity.action %= program->action_count;
    const struct action action = program->actions[activity.action];
    for (int rank = 0; rank < state->setup->group->size; rank++) {
        bool is_gemm = action.kind == DO_GEMM;
        if (is_gemm ? (size_t)rank != of : action.kind != DO_POST) continue;
        struct span *span = is_gemm ? NULL : &gpu_shared_spans(&state->shared, rank)[action.index];
        extend_note(&gpu_shared_notes(&state->shared, rank)[activity.action], span, &activity);
        activity_transfer_add(&state->transfer, rank, &activity);
    }
}

static void take_activities(struct state *state, enum step_mode mode, uint64_t end_ns) {
    int ranks = state->setup->group->size;
    if (!gpu_records_end(&state->records, mode, state->outcome.begin_ns, end_ns)) return;
    activity_transfer_begin(&state->transfer, ranks);
    gpu_activity_each(take_activity, state);
    if (!activity_transfer_end(&state->transfer, ranks))
        snprintf(state->outcome.problem, PROGRAM_REASON, "out of memory for a trace");
}

static void run_step(struct state *state, enum step_mode mode) {
    memset(&state->outcome, 0, sizeof state->outcome);
    if (!gpu_records_begin(&state->records, mode, state->outcome.problem) ||
        !shared_gpu_begin_step(&state->gpu, mode, &state->outcome.begin_ns) ||
        !shared_gpu_run_step(&state->gpu, mode))
        return;
    for (int rank = 0; rank < state->setup->group->size; rank++)
        state->outcome.ns[rank] = since_begin(state, state->gpu.ranks[rank].end) + 1;
    if (step_is_noted(mode))
        note_times(state, step_communicates(mode), !gpu_records_step(&state->records, mode));
    if (gpu_records_step(&state->records, mode) && shared_gpu_finish_streams(&state->gpu))
        take_activities(state, mode, state->outcome.begin_ns + since_begin(state, state->gpu.step->end));
    if (state->outcome.problem[0] != '\0') memset(state->outcome.ns, 0, sizeof state->outcome.ns);
}

static void take_notes(const struct state *state, struct step_notes *notes) {
    const struct outcome *outcome = &state->outcome;
    notes->is_recorded = false;
    notes->begin_ns = outcome->begin_ns;
    notes->end_ns = outcome->begin_ns + outcome->ns[state->setup->group->rank];
    gpu_shared_read_notes(&state->shared, notes);
}

static uint64_t step(void *of, enum step_mode mode, struct step_notes *notes) {
    struct state *state = of;
    for (int tries = 0; is_first(state) && tries < STEP_TRIES; tries++) {
        run_step(state, mode);
        if (!state->records.are_outside) break;
    }
    if (is_first(state) && state->records.lack[0] != '\0') {
        memset(state->outcome.ns, 0, sizeof state->outcome.ns);
        snprintf(state->outcome.problem, PROGRAM_REASON, "CUPTI %s", state->records.lack);
    }
    MPI_Bcast(&state->outcome, sizeof state->outcome, MPI_BYTE, 0, group_comm(state->setup->group));
    uint64_t ns = state->outcome.ns[state->setup->group->rank];
    if (!step_is_noted(mode) || ns == 0) return ns;
    take_notes(state, notes);
    int well = !gpu_records_step(&state->records, mode) ||
               activity_transfer_run(&state->transfer, state->setup->group, notes),
        all = 0;
    MPI_Allreduce(&well, &all, 1, MPI_INT, MPI_MIN, group_comm(state->setup->group));
    if (!all) snprintf(state->outcome.problem, PROGRAM_REASON, "out of memory for a trace");
    return all ? ns : 0;
}

// ---- open and close -------------------------------------------------------------------------------------

// Rank 0. Checks CUPTI's records before anything is measured. False: a step failed.
static bool open_activity(struct state *state) {
    static const enum step_mode modes[] = {STEP_TRACED, STEP_GEMMS_TRACED};
    const struct engine_setup *setup = state->setup;
    char why[TEXT_SIZE] = "";
    if (!gpu_records_open(&state->records, setup->program, setup->group->size))
        return gpu_ok(&state->gpu.queues, CUDA_ERROR_OUT_OF_MEMORY, "records");
    state->records.are_taken = gpu_activity_open(why, sizeof why);
    for (size_t i = 0; i < 2 && state->records.are_taken; i++) {
        run_step(state, modes[i]);
        activity_transfer_drop(&state->transfer);
        if (state->outcome.problem[0] != '\0') return false;
        if (state->records.lack[0] == '\0') continue;
        snprintf(why, sizeof why, "CUPTI %.140s", state->records.lack);
        gpu_activity_close();
        state->records.are_taken = false;
    }
    if (!state->records.are_taken) {
        char note[TEXT_SIZE];
        snprintf(note, sizeof note, "traces are timed by events: %.120s", why);
        gpu_add_note(state->note, note);
    }
    return true;
}

static void close_engine(void *of) {
    struct state *state = of;
    if (is_first(state)) shared_gpu_close(&state->gpu);
    if (!is_first(state)) state->records.are_taken = false; // rank 0 has opened CUPTI
    gpu_records_close(&state->records);
    activity_transfer_close(&state->transfer);
    gpu_shared_close(&state->shared);
    free(state);
}

static int open_engine(const struct engine_setup *setup, void **to, char reason[PROGRAM_REASON]) {
    struct state *state = calloc(1, sizeof *state);
    if (state == NULL) return rank_fails(setup->group, "out of memory", reason);
    state->setup = setup;
    state->gpu = (struct shared_gpu){.setup = setup,
                                     .shared = &state->shared,
                                     .records = &state->records,
                                     .queues = {.problem = state->outcome.problem}};
    if (!gpu_rank_lay_out(&state->shared.layout, setup->program))
        return rank_fails(setup->group, "out of memory", reason);
    bool well = gpu_shared_open(&state->shared, setup->group, setup->program, reason);
    if (well && !agree(state, !is_first(state) || (shared_gpu_open(&state->gpu) && open_activity(state)))) {
        snprintf(reason, PROGRAM_REASON, "%s", state->outcome.problem);
        well = false;
    }
    if (!well) {
        close_engine(state);
        return -1;
    }
    MPI_Bcast(&state->records.are_taken, 1, MPI_C_BOOL, 0, group_comm(setup->group));
    *to = state;
    return 0;
}

static void describe(const void *of, struct engine_description *description) {
    const struct state *state = of;
    const struct gpu_kernels *kernels = &state->gpu.kernels;
    *description = (struct engine_description){.transport_kernel = "TWOSHOT",
                                               .channels = (int)kernels->blocks,
                                               .threads = (int)state->setup->threads};
    gpu_queues_describe(&state->gpu.queues, state->records.are_taken, description);
    MPI_Comm comm = group_comm(state->setup->group);
    snprintf(description->library, TEXT_SIZE, "%.120s, our own kernels", state->gpu.queues.library);
    snprintf(description->note, NOTES_SIZE,
             "all ranks share one GPU: kernels are real, links are not, and channels are blocks of each rank,"
             " at most %u: %d of %d multiprocessors stay free for GEMMs",
             kernels->most_blocks, kernels->free_multiprocessors, kernels->multiprocessors);
    if (state->note[0] != '\0') gpu_add_note(description->note, state->note);
    MPI_Bcast(description->note, NOTES_SIZE, MPI_CHAR, 0, comm);
    MPI_Bcast(description->device, TEXT_SIZE, MPI_CHAR, 0, comm);
    MPI_Bcast(description->library, TEXT_SIZE, MPI_CHAR, 0, comm);
    MPI_Bcast(&description->channels, 1, MPI_INT, 0, comm);
    MPI_Bcast(&description->multiprocessors, 1, MPI_INT, 0, comm);
}

static const char *problem(const void *of) {
    return ((const struct state *)of)->outcome.problem;
}

// ---- arrays ---------------------------------------------------------------------------------------------

static int move_arrays(void *of, bool to_gpu) {
    struct state *state = of;
    if (to_gpu) gpu_shared_write_arrays(&state->shared);
    MPI_Barrier(group_comm(state->setup->group)); // all have written theirs
    bool well = agree(state, !is_first(state) || shared_gpu_copy(&state->gpu, to_gpu));
    if (well && !to_gpu) gpu_shared_read_arrays(&state->shared);
    return well ? 0 : -1;
}

const struct engine engine_loopback = {.name = "cuda",
                                       .fails_on_all_ranks = true,
                                       .open = open_engine,
                                       .close = close_engine,
                                       .describe = describe,
                                       .step = step,
                                       .problem = problem,
                                       .move = move_arrays};
