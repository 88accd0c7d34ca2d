// Steps on GPUs, one for each rank: GEMMs by cuBLASLt on one stream, collectives by NCCL on another of higher
// priority, ordered by events. Events time a step, from its beginning on an idle GPU until both streams are
// done. CUPTI records traced steps; if it cannot be used, or a first step shows that its records are
// incomplete, events around every GEMM and every collective time them.
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/group_mpi.h"
#include "workload/engine.h"
#include "workload/gpu/gpu_nccl.h"
#include "workload/gpu/gpu_queues.h"
#include "workload/gpu/gpu_rank.h"
#include "workload/gpu/gpu_records.h"

struct state {
    const struct engine_setup *setup;
    struct gpu_queues queues;
    CUdeviceptr memory; // of the program's arrays
    struct gpu_rank rank;
    struct gpu_gemm **gemms;
    struct gpu_events *by_action, *by_collective, *step;
    CUevent ready; // of a collective's input
    CUevent known; // a moment at which the host's clock was read
    struct gpu_records records;
    int channels, threads;
    uint64_t begin_ns; // of the step, on the host's clock
    char library[TEXT_SIZE], note[NOTES_SIZE];
    char problem[PROGRAM_REASON];
};

static bool ok(const struct state *state, CUresult result, const char *what) {
    return gpu_ok(&state->queues, result, what);
}

// Collective. Whether all ranks are well. If not, `reason` becomes that of one failed rank, on all ranks; it
// names the rank, unless all ranks failed.
static bool all_well(struct state *state, bool well, char reason[PROGRAM_REASON]) {
    const struct group *group = state->setup->group;
    MPI_Comm comm = group_comm(group);
    struct {
        int value, rank;
    } mine = {well, group->rank}, worst = mine;
    int how_many = 0;
    MPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MINLOC, comm);
    MPI_Allreduce(&mine.value, &how_many, 1, MPI_INT, MPI_SUM, comm);
    if (worst.value) return true;
    if (how_many == 0)
        snprintf(reason, PROGRAM_REASON, "%s", state->problem);
    else
        snprintf(reason, PROGRAM_REASON, "rank %d: %.180s", group->rank, state->problem);
    MPI_Bcast(reason, PROGRAM_REASON, MPI_CHAR, worst.rank, comm);
    return false;
}

// ---- opening --------------------------------------------------------------------------------------------

static bool make_arrays(struct state *state) {
    char what[64];
    if (!gpu_rank_lay_out(&state->rank, state->setup->program))
        return ok(state, CUDA_ERROR_OUT_OF_MEMORY, "arrays");
    snprintf(what, sizeof what, "%.1f GB of arrays for a rank", (double)state->rank.bytes * 1e-9);
    return ok(state, state->queues.driver->cuMemAlloc(&state->memory, state->rank.bytes), what);
}

static bool make_gemms(struct state *state) {
    const struct program *program = state->setup->program;
    state->gemms = calloc(program->gemm_count, sizeof *state->gemms);
    if (state->gemms == NULL) return ok(state, CUDA_ERROR_OUT_OF_MEMORY, "GEMMs");
    for (size_t i = 0; i < program->gemm_count; i++) {
        const struct gpu_gemm_shape shape = gpu_rank_gemm(&state->rank, i, state->memory);
        state->gemms[i] = gpu_gemm_make(&shape, state->problem, sizeof state->problem);
        if (state->gemms[i] == NULL) return false;
    }
    return true;
}

static bool make_events(struct state *state) {
    const struct program *program = state->setup->program;
    const struct cuda_driver *driver = state->queues.driver;
    return ok(state, gpu_events_make(driver, &state->by_action, program->action_count), "an event") &&
           ok(state, gpu_events_make(driver, &state->by_collective, program->collective_count), "an event") &&
           ok(state, gpu_events_make(driver, &state->step, 1), "an event") &&
           ok(state, driver->cuEventCreate(&state->ready, CU_EVENT_DISABLE_TIMING), "an event") &&
           ok(state, driver->cuEventCreate(&state->known, CU_EVENT_DEFAULT), "an event") &&
           (gpu_records_open(&state->records, program, 1) || ok(state, CUDA_ERROR_OUT_OF_MEMORY, "records"));
}

static void note_events(struct state *state, const char *why) {
    char note[TEXT_SIZE];
    snprintf(note, sizeof note, "traces are timed by events: %.120s", why);
    gpu_add_note(state->note, note);
}

// If one rank has no CUPTI, no rank uses it, so that all traces have one clock.
static void open_activity(struct state *state) {
    char why[TEXT_SIZE] = "another rank has no CUPTI", reason[PROGRAM_REASON];
    bool mine = gpu_activity_open(why, sizeof why);
    snprintf(state->problem, sizeof state->problem, "%s", why);
    state->records.are_taken = all_well(state, mine, reason);
    if (mine && !state->records.are_taken) gpu_activity_close();
    if (!state->records.are_taken) note_events(state, reason);
    state->problem[0] = '\0';
}

// If NCCL fails on one rank, the others wait for it inside NCCL.
static int open_nccl(struct state *state, char reason[PROGRAM_REASON]) {
    const struct engine_setup *setup = state->setup;
    char nccl[40] = "";
    state->channels = (int)setup->channels;
    state->threads = (int)setup->threads;
    if (gpu_nccl_open(setup->group, &state->channels, &state->threads, nccl, sizeof nccl, state->problem) !=
        0) {
        if (group_failure(setup->group) == NULL) all_well(state, state->problem[0] == '\0', reason);
        return -1;
    }
    snprintf(state->library, sizeof state->library, "%.100s, %s", state->queues.library, nccl);
    if (state->channels <= 0 || state->threads <= 0)
        gpu_add_note(state->note, "NCCL's log does not show its channels and threads");
    if (gpu_nccl_warning()[0] != '\0') {
        char answer[TEXT_SIZE];
        snprintf(answer, sizeof answer, "NCCL: %s", gpu_nccl_warning());
        gpu_add_note(state->note, answer);
    }
    return 0;
}

// ---- arrays ---------------------------------------------------------------------------------------------

// Waits for an event, unless a rank fails: then collectives never end.
static bool finish(struct state *state, CUevent event) {
    const struct group *group = state->setup->group;
    const char *failure = NULL;
    CUresult result;
    while ((result = state->queues.driver->cuEventQuery(event)) == CUDA_ERROR_NOT_READY &&
           (failure = group_failure(group)) == NULL)
        sched_yield();
    if (failure == NULL) return ok(state, result, "the GPU");
    snprintf(state->problem, sizeof state->problem, "%s", failure);
    return false;
}

static bool move_array(struct state *state, size_t index, bool to_gpu) {
    const struct cuda_driver *driver = state->queues.driver;
    const struct array *array = &state->setup->program->arrays[index];
    CUdeviceptr there = state->memory + state->rank.offsets[index];
    size_t bytes = array_bytes(array);
    if (bytes == 0) return true;
    CUresult result = to_gpu ? driver->cuMemcpyHtoDAsync(there, array->data, bytes, state->queues.compute)
                             : driver->cuMemcpyDtoHAsync(array->data, there, bytes, state->queues.compute);
    return ok(state, result, "a copy") &&
           gpu_record(&state->queues, state->step->end, state->queues.compute) &&
           finish(state, state->step->end);
}

static int move_arrays(void *of, bool to_gpu) {
    struct state *state = of;
    for (size_t i = 0; i < state->setup->program->array_count; i++) {
        if (!move_array(state, i, to_gpu)) return -1;
    }
    return 0;
}

// ---- a step ---------------------------------------------------------------------------------------------

// Enqueues a collective after what the computing stream has so far.
static bool post(struct state *state, int index, bool is_noted) {
    const struct collective *collective = &state->setup->program->collectives[index];
    struct gpu_events *pair = &state->by_collective[index];
    if (!gpu_record(&state->queues, state->ready, state->queues.compute) ||
        !gpu_follow(&state->queues, state->queues.communication, state->ready) ||
        (is_noted && !gpu_record(&state->queues, pair->begin, state->queues.communication)))
        return false;
    CUdeviceptr in = state->memory + gpu_rank_offset(&state->rank, collective->in);
    CUdeviceptr out = state->memory + gpu_rank_offset(&state->rank, collective->out);
    if (gpu_nccl_enqueue(collective, in, out, state->queues.communication) != 0) {
        snprintf(state->problem, sizeof state->problem, "%s", gpu_nccl_problem());
        return false;
    }
    return gpu_record(&state->queues, pair->end, state->queues.communication);
}

static bool await(struct state *state, int index) {
    return gpu_follow(&state->queues, state->queues.compute, state->by_collective[index].end);
}

// Enqueues an action; `is_noted`: with events around it.
static bool act(struct state *state, enum step_mode mode, size_t number, bool is_noted) {
    struct action action = state->setup->program->actions[number];
    if (action.kind == DO_GEMM)
        return gpu_multiply(&state->queues, state->queues.compute, state->gemms[action.index],
                            is_noted ? &state->by_action[number] : NULL);
    if (!step_communicates(mode)) return true;
    if (action.kind == DO_AWAIT) return await(state, action.index);
    return post(state, action.index, is_noted) && (mode != STEP_SERIAL || await(state, action.index));
}

static bool act_and_note(struct state *state, enum step_mode mode, size_t number, struct note *note) {
    *note = (struct note){.begin_ns = clock_ns(), .cpu_ns = NO_CPU};
    note->launch_ns = note->begin_ns;
    if (state->records.are_taken) gpu_activity_enter((uint32_t)number);
    bool well = act(state, mode, number, !state->records.are_taken);
    note->launched_ns = clock_ns();
    if (state->records.are_taken) gpu_activity_leave();
    note->end_ns = clock_ns();
    note->work_ns = note->work_end_ns = note->end_ns; // until events or records are read
    return well;
}

static bool enqueue_all(struct state *state, enum step_mode mode, struct step_notes *notes) {
    const struct program *program = state->setup->program;
    for (size_t i = 0; i < program->action_count; i++) {
        bool well =
            step_is_noted(mode) ? act_and_note(state, mode, i, &notes->notes[i]) : act(state, mode, i, false);
        if (!well) return false;
    }
    for (int i = 0; step_communicates(mode) && i < (int)program->collective_count; i++) {
        if (!await(state, i)) return false;
    }
    return gpu_record(&state->queues, state->step->end, state->queues.compute);
}

// ---- notes ----------------------------------------------------------------------------------------------

struct recording {
    struct state *state;
    struct step_notes *notes;
    bool is_lost; // out of memory for an activity
};

static void take_activity(void *context, const struct gpu_activity *activity) {
    struct recording *recording = context;
    const struct program *program = recording->state->setup->program;
    if (activity->action >= program->action_count) return;
    struct action action = program->actions[activity->action];
    struct note *note = &recording->notes->notes[activity->action];
    recording->is_lost = !step_keep_activity(recording->notes, activity) || recording->is_lost;
    if (action.kind == DO_GEMM)
        extend_note(note, NULL, activity);
    else if (action.kind == DO_POST)
        extend_note(note, &recording->notes->spans[action.index * MAX_THREADS], activity);
}

static bool take_activities(struct state *state, enum step_mode mode, struct step_notes *notes) {
    struct recording recording = {.state = state, .notes = notes};
    notes->is_recorded = true;
    notes->activity_count = 0;
    if (!gpu_records_end(&state->records, mode, notes->begin_ns, notes->end_ns)) return true;
    gpu_activity_each(take_activity, &recording);
    step_sort_activities(notes);
    if (recording.is_lost) snprintf(state->problem, sizeof state->problem, "out of memory for a trace");
    return !recording.is_lost;
}

// The time of an event on the host's clock; a failure sets the problem.
static uint64_t time_of(struct state *state, CUevent event) {
    return state->begin_ns + gpu_ns_between(&state->queues, state->step->begin, event);
}

static void take_events(struct state *state, enum step_mode mode, struct step_notes *notes) {
    const struct program *program = state->setup->program;
    for (size_t i = 0; i < program->action_count; i++) {
        struct action action = program->actions[i];
        if (action.kind == DO_GEMM) {
            notes->notes[i].work_ns = time_of(state, state->by_action[i].begin);
            notes->notes[i].work_end_ns = time_of(state, state->by_action[i].end);
        } else if (action.kind == DO_POST && step_communicates(mode)) {
            struct span *span = &notes->spans[action.index * MAX_THREADS];
            span->begin_ns = time_of(state, state->by_collective[action.index].begin);
            span->end_ns = time_of(state, state->by_collective[action.index].end);
        }
    }
}

static bool note_step(struct state *state, enum step_mode mode, struct step_notes *notes) {
    const struct program *program = state->setup->program;
    for (size_t i = 0; i < program->collective_count; i++) {
        notes->spans[i * MAX_THREADS] =
            (struct span){.begin_ns = state->begin_ns, .end_ns = state->begin_ns, .cpu_ns = NO_CPU};
    }
    notes->begin_ns = state->begin_ns;
    notes->end_ns = time_of(state, state->step->end);
    notes->is_recorded = false;
    if (state->records.are_taken) return take_activities(state, mode, notes) && state->problem[0] == '\0';
    take_events(state, mode, notes);
    return state->problem[0] == '\0';
}

// Collective. Reads the clocks of an idle GPU and of the host together, several times; then all ranks begin
// together again, because each took a time of its own.
static bool read_clocks(struct state *state, uint64_t *known_ns) {
    struct gpu_clock clock = {0};
    uint64_t before_ns;
    do {
        before_ns = clock_ns();
        if (!gpu_record(&state->queues, state->known, state->queues.compute) || !finish(state, state->known))
            return false;
        *known_ns = clock_ns();
    } while (!gpu_clock_is_close(&clock, *known_ns - before_ns));
    return group_start_together(state->setup->group);
}

// Begins a step on an idle GPU; for a noted step, sets the time on the host's clock.
static bool begin(struct state *state, enum step_mode mode) {
    uint64_t known_ns = 0;
    float ms = 0;
    if (step_is_noted(mode) && !read_clocks(state, &known_ns)) return false;
    if (!gpu_record(&state->queues, state->step->begin, state->queues.compute) ||
        !finish(state, state->step->begin))
        return false;
    if (!step_is_noted(mode)) return true;
    if (!ok(state, state->queues.driver->cuEventElapsedTime(&ms, state->known, state->step->begin), "a time"))
        return false;
    state->begin_ns = known_ns + (uint64_t)((double)ms * 1e6);
    return true;
}

// Returns the time of the step; 0: it failed. `records.lack` has what CUPTI lost of a noted step.
static uint64_t run_step(struct state *state, enum step_mode mode, struct step_notes *notes) {
    bool records = gpu_records_step(&state->records, mode);
    float ms = 0;
    if (!gpu_records_begin(&state->records, mode, state->problem)) return 0;
    if (!begin(state, mode) || !enqueue_all(state, mode, notes)) return 0;
    if (records) gpu_activity_launched();
    if (!finish(state, state->step->end) ||
        !ok(state, state->queues.driver->cuEventElapsedTime(&ms, state->step->begin, state->step->end),
            "a time"))
        return 0;
    if ((records && !gpu_finish_streams(&state->queues)) ||
        (step_is_noted(mode) && !note_step(state, mode, notes)))
        return 0;
    return (uint64_t)((double)ms * 1e6) + 1;
}

// Collective. Whether all ranks run the step again, because one has times outside of it. A rank that failed
// does not get here; its failure ends the waits of the others.
static bool is_again(struct state *state, enum step_mode mode) {
    const struct gpu_records *records = &state->records;
    return gpu_records_step(records, mode) && (records->lack[0] == '\0' || records->are_outside) &&
           group_max(state->setup->group, records->are_outside) > 0;
}

static uint64_t step(void *of, enum step_mode mode, struct step_notes *notes) {
    struct state *state = of;
    uint64_t ns = run_step(state, mode, notes);
    for (int tries = 1; ns > 0 && tries < STEP_TRIES && is_again(state, mode); tries++)
        ns = run_step(state, mode, notes);
    if (ns == 0 || state->records.lack[0] == '\0') return ns;
    snprintf(state->problem, sizeof state->problem, "CUPTI %s", state->records.lack);
    return 0;
}

// ---- opening ends ---------------------------------------------------------------------------------------

// Collective. Runs one step of this kind, on any data, to check CUPTI's records of it; if they are incomplete
// on one rank, no rank uses CUPTI. False: a rank cannot continue.
static bool try_step(struct state *state, enum step_mode mode, struct step_notes *notes, char reason[]) {
    struct group *group = state->setup->group;
    if (!state->records.are_taken) return true;
    bool well = group_start_together(group) && run_step(state, mode, notes) > 0;
    if (!well && group_failure(group) == NULL) rank_fails(group, state->problem, reason);
    if (!well || !group_barrier(group)) {
        snprintf(reason, PROGRAM_REASON, "%s", group_failure(group));
        return false;
    }
    snprintf(state->problem, sizeof state->problem, "CUPTI %s", state->records.lack);
    if (!all_well(state, state->records.lack[0] == '\0', reason)) {
        state->records.are_taken = false;
        gpu_activity_close();
        note_events(state, reason);
    }
    state->problem[0] = '\0';
    return true;
}

// Collective. Checks CUPTI's records before anything is measured.
static bool try_activity(struct state *state, char reason[PROGRAM_REASON]) {
    const struct program *program = state->setup->program;
    struct step_notes notes = {.notes = calloc(program->action_count + 1, sizeof *notes.notes),
                               .spans =
                                   calloc(program->collective_count * MAX_THREADS + 1, sizeof *notes.spans)};
    bool well = notes.notes != NULL && notes.spans != NULL;
    if (!well) rank_fails(state->setup->group, "out of memory", reason);
    well = well && try_step(state, STEP_TRACED, &notes, reason) &&
           try_step(state, STEP_GEMMS_TRACED, &notes, reason);
    free(notes.activities);
    free(notes.spans);
    free(notes.notes);
    return well;
}

static void close_engine(void *of) {
    struct state *state = of;
    gpu_records_close(&state->records);
    for (size_t i = 0; state->gemms != NULL && i < state->setup->program->gemm_count; i++)
        gpu_gemm_end(state->gemms[i]);
    gpu_nccl_close();
    free(state->gemms);
    gpu_rank_free(&state->rank);
    free(state->step);
    free(state->by_action);
    free(state->by_collective);
    free(state);
}

static int open_engine(const struct engine_setup *setup, void **to, char reason[PROGRAM_REASON]) {
    struct state *state = calloc(1, sizeof *state);
    if (state == NULL) return rank_fails(setup->group, "out of memory", reason);
    state->setup = setup;
    state->queues.problem = state->problem;
    struct gpu_queues *queues = &state->queues;
    bool well = all_well(state, gpu_queues_choose(queues, setup->group), reason) &&
                all_well(state, gpu_queues_are_own(queues, setup->group), reason) &&
                all_well(state, gpu_queues_open(queues), reason) &&
                all_well(state, make_arrays(state) && make_gemms(state) && make_events(state), reason) &&
                open_nccl(state, reason) == 0;
    if (well) {
        open_activity(state);
        well = try_activity(state, reason);
    }
    if (!well) {
        if (group_failure(setup->group) == NULL) close_engine(state);
        return -1;
    }
    *to = state;
    return 0;
}

static void describe(const void *of, struct engine_description *description) {
    const struct state *state = of;
    *description = (struct engine_description){
        .transport_kernel = "NCCL", .channels = state->channels, .threads = state->threads};
    gpu_queues_describe(&state->queues, state->records.are_taken, description);
    snprintf(description->library, TEXT_SIZE, "%s", state->library);
    snprintf(description->note, NOTES_SIZE, "%s", state->note);
}

static const char *problem(const void *of) {
    return ((const struct state *)of)->problem;
}

int gpus_usable(char reason[PROGRAM_REASON]) {
    int count = driver_gpus(reason, PROGRAM_REASON);
    if (count > 0 && !gpu_gemms_can_load(reason, PROGRAM_REASON)) return 0;
    return count > 1 && gpu_nccl_load(reason) != 0 ? 1 : count;
}

const struct engine engine_cuda = {.name = "cuda",
                                   .open = open_engine,
                                   .close = close_engine,
                                   .describe = describe,
                                   .step = step,
                                   .problem = problem,
                                   .move = move_arrays};
