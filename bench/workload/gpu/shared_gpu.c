// Steps of all ranks on one GPU; see shared_gpu.h.
#include "shared_gpu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double AFTER_GIVING_UP_S = 2; // how long kernels may take to end once they must give up
enum { CHECKS = 4 };                       // of a step's progress within the setup's patience

static bool ok(const struct shared_gpu *gpu, CUresult result, const char *what) {
    return gpu_ok(&gpu->queues, result, what);
}

// ---- open and close ------------------------------------------------------------------------------------

static bool make_gemms(struct shared_gpu *gpu, struct rank_resources *own,
                       const struct gpu_gemm_shape shapes[]) {
    size_t count = gpu->setup->program->gemm_count;
    own->gemms = calloc(count, sizeof(struct gpu_gemm *));
    if (own->gemms == NULL) return ok(gpu, CUDA_ERROR_OUT_OF_MEMORY, "GEMMs");
    for (size_t i = 0; i < count; i++) {
        struct gpu_gemm_shape shape = shapes[i];
        shape.a += own->memory;
        shape.b += own->memory;
        shape.c += own->memory;
        own->gemms[i] = gpu_gemm_make(&shape, gpu->queues.problem, PROGRAM_REASON);
        if (own->gemms[i] == NULL) return false;
    }
    return true;
}

static bool make_rank_events(struct shared_gpu *gpu, struct rank_resources *own) {
    size_t count = gpu->setup->program->collective_count;
    own->ready = calloc(count + 1, sizeof *own->ready);
    if (own->ready == NULL) return ok(gpu, CUDA_ERROR_OUT_OF_MEMORY, "events");
    for (size_t i = 0; i < count; i++) {
        if (!ok(gpu, gpu->queues.driver->cuEventCreate(&own->ready[i], CU_EVENT_DISABLE_TIMING), "an event"))
            return false;
    }
    return ok(gpu, gpu->queues.driver->cuEventCreate(&own->end, CU_EVENT_DEFAULT), "an event");
}

static bool open_rank(struct shared_gpu *gpu, int rank) {
    const struct cuda_driver *driver = gpu->queues.driver;
    const struct program *program = gpu->setup->program;
    struct rank_resources *own = &gpu->ranks[rank];
    char what[64];
    snprintf(what, sizeof what, "%.1f GB of arrays for rank %d", (double)gpu->shared->bytes[rank] * 1e-9,
             rank);
    bool has_stream =
        rank == 0 || ok(gpu, driver->cuStreamCreate(&own->compute, CU_STREAM_NON_BLOCKING), "a stream");
    return has_stream && ok(gpu, driver->cuMemAlloc(&own->memory, gpu->shared->bytes[rank]), what) &&
           ok(gpu, driver->cuMemAlloc(&own->workspace, GPU_GEMM_WORKSPACE), "a workspace") &&
           make_gemms(gpu, own, gpu_shared_shapes(gpu->shared, rank)) &&
           ok(gpu, gpu_events_make(driver, &own->by_action, program->action_count), "an event") &&
           make_rank_events(gpu, own);
}

bool shared_gpu_open(struct shared_gpu *gpu) {
    const struct engine_setup *setup = gpu->setup;
    const struct program *program = setup->program;
    if (!gpu_queues_open(&gpu->queues)) return false;
    gpu->ranks[0].compute = gpu->queues.compute;
    for (int rank = 0; rank < setup->group->size; rank++) {
        if (!open_rank(gpu, rank)) return false;
    }
    const struct gpu_kernels_options options = {.device = gpu->queues.device,
                                                .stream = gpu->queues.communication,
                                                .program = program,
                                                .blocks = (unsigned)setup->channels,
                                                .threads = (unsigned)setup->threads,
                                                .bytes = gpu_shared_largest_message(gpu->shared)};
    return ok(gpu, gpu_events_make(gpu->queues.driver, &gpu->by_collective, program->collective_count),
              "an event") &&
           ok(gpu, gpu_events_make(gpu->queues.driver, &gpu->step, 1), "an event") &&
           gpu_kernels_open(&gpu->kernels, gpu->queues.driver, &options, gpu->queues.problem, PROGRAM_REASON);
}

static void close_rank(const struct shared_gpu *gpu, struct rank_resources *own) {
    for (size_t i = 0; own->gemms != NULL && i < gpu->setup->program->gemm_count; i++)
        gpu_gemm_end(own->gemms[i]);
    free(own->gemms);
    free(own->by_action);
    free(own->ready);
    if (gpu->hangs) return;
    if (own->memory != 0) gpu->queues.driver->cuMemFree(own->memory);
    if (own->workspace != 0) gpu->queues.driver->cuMemFree(own->workspace);
}

// Memory of a GPU that hangs is not freed: that would wait for the GPU.
void shared_gpu_close(struct shared_gpu *gpu) {
    for (int rank = 0; rank < gpu->setup->group->size; rank++) close_rank(gpu, &gpu->ranks[rank]);
    if (gpu->kernels.driver != NULL && !gpu->hangs) gpu_kernels_close(&gpu->kernels);
    free(gpu->by_collective);
    free(gpu->step);
}

// ---- a step --------------------------------------------------------------------------------------------

// Counts the events of a step that have passed: on each rank's stream before each collective, and after it.
static size_t events_passed(const struct shared_gpu *gpu) {
    size_t reached = 0;
    for (size_t i = 0; i < gpu->setup->program->collective_count; i++) {
        reached += gpu->queues.driver->cuEventQuery(gpu->by_collective[i].end) == CUDA_SUCCESS;
        for (int rank = 0; rank < gpu->setup->group->size; rank++)
            reached += gpu->queues.driver->cuEventQuery(gpu->ranks[rank].ready[i]) == CUDA_SUCCESS;
    }
    return reached;
}

// Waits for an event as long as the step makes progress. CUDA_ERROR_NOT_READY: it makes none. Several checks
// in a row must find no progress, since this thread may have had no processor during one of them.
static CUresult wait_during_progress(const struct shared_gpu *gpu, CUevent event) {
    uint64_t checked_ns = clock_ns(), between_ns = (uint64_t)(gpu->setup->patience_s * 1e9 / CHECKS);
    size_t before = 0;
    CUresult result = CUDA_SUCCESS;
    for (int checks = 0; checks < CHECKS;) {
        result = gpu->queues.driver->cuEventQuery(event);
        if (result != CUDA_ERROR_NOT_READY) return result;
        sched_yield();
        if (clock_ns() - checked_ns < between_ns) continue;
        size_t reached = events_passed(gpu);
        checks = reached > before ? 0 : checks + 1;
        if (reached > before) gpu->setup->on_progress(gpu->setup->context);
        before = reached;
        checked_ns = clock_ns();
    }
    return result;
}

// Ends the waits of kernels that wait too long for each other, or for multiprocessors that GEMMs occupy. The
// step's results are then invalid. Returns the state of the event afterwards.
static CUresult give_up(struct shared_gpu *gpu, CUevent event) {
    uint64_t since_ns = clock_ns();
    CUresult result;
    gpu_kernels_give_up(&gpu->kernels);
    while ((result = gpu->queues.driver->cuEventQuery(event)) == CUDA_ERROR_NOT_READY &&
           (double)(clock_ns() - since_ns) * 1e-9 < AFTER_GIVING_UP_S)
        sched_yield();
    return result;
}

static bool finish(struct shared_gpu *gpu, CUevent event) {
    CUresult result = wait_during_progress(gpu, event);
    if (result != CUDA_ERROR_NOT_READY) return ok(gpu, result, "the GPU");
    result = give_up(gpu, event);
    gpu->hangs = result == CUDA_ERROR_NOT_READY;
    if (result != CUDA_SUCCESS && !gpu->hangs) return ok(gpu, result, "the GPU, after its kernels gave up");
    snprintf(gpu->queues.problem, PROGRAM_REASON, "a step made no progress for more than %g s, and %s",
             gpu->setup->patience_s, gpu->hangs ? "the GPU hangs" : "its kernels gave up");
    return false;
}

// Records that the collective's input is complete, on all ranks.
static bool mark_ready(struct shared_gpu *gpu, int index) {
    for (int rank = 0; rank < gpu->setup->group->size; rank++) {
        const struct rank_resources *own = &gpu->ranks[rank];
        if (!gpu_record(&gpu->queues, own->ready[index], own->compute)) return false;
    }
    return true;
}

static struct gpu_kernels_call call_of(const struct shared_gpu *gpu, int index) {
    const struct collective *collective = &gpu->setup->program->collectives[index];
    struct gpu_kernels_call call = {
        .kind = collective->kind, .dtype = collective->dtype, .elements = collective->elements};
    for (int rank = 0; rank < gpu->setup->group->size; rank++) {
        const struct gpu_message *message = gpu_shared_message(gpu->shared, rank, index);
        call.in[rank] = gpu->ranks[rank].memory + message->in;
        call.out[rank] = gpu->ranks[rank].memory + message->out;
        memcpy(call.sent[rank], message->sent, sizeof call.sent[rank]);
    }
    return call;
}

// Enqueues a collective after all that the ranks have enqueued so far.
static bool post(struct shared_gpu *gpu, int index, bool is_noted) {
    const struct gpu_events *around = &gpu->by_collective[index];
    const struct gpu_kernels_call call = call_of(gpu, index);
    if (!mark_ready(gpu, index)) return false;
    for (int rank = 0; rank < gpu->setup->group->size; rank++) {
        if (!gpu_follow(&gpu->queues, gpu->queues.communication, gpu->ranks[rank].ready[index])) return false;
    }
    return (!is_noted || gpu_record(&gpu->queues, around->begin, gpu->queues.communication)) &&
           ok(gpu, gpu_kernels_enqueue(&gpu->kernels, &call), "a launch") &&
           gpu_record(&gpu->queues, around->end, gpu->queues.communication);
}

// What the ranks enqueue next begins after the collective.
static bool await(struct shared_gpu *gpu, int index) {
    for (int rank = 0; rank < gpu->setup->group->size; rank++) {
        if (!gpu_follow(&gpu->queues, gpu->ranks[rank].compute, gpu->by_collective[index].end)) return false;
    }
    return true;
}

// The id of a rank's action in CUPTI's records; a collective of all ranks is rank 0's.
static uint32_t id_of(const struct shared_gpu *gpu, int rank, size_t number) {
    return (uint32_t)((size_t)rank * gpu->setup->program->action_count + number);
}

static bool multiply(struct shared_gpu *gpu, struct rank_resources *own, size_t number, int index,
                     bool is_noted) {
    gpu_gemms_use_stream(own->compute, own->workspace);
    return gpu_multiply(&gpu->queues, own->compute, own->gemms[index],
                        is_noted ? &own->by_action[number] : NULL);
}

// Enqueues an action of all ranks, and notes for each rank what the host did.
static bool act(struct shared_gpu *gpu, enum step_mode mode, size_t number) {
    const struct action action = gpu->setup->program->actions[number];
    bool records = gpu_records_step(gpu->records, mode), has_events = step_is_noted(mode) && !records,
         well = true;
    if (action.kind == DO_GEMM) {
        for (int rank = 0; well && rank < gpu->setup->group->size; rank++) {
            struct note *note = &gpu_shared_notes(gpu->shared, rank)[number];
            note->begin_ns = note->launch_ns = clock_ns();
            if (records) gpu_activity_enter(id_of(gpu, rank, number));
            well = multiply(gpu, &gpu->ranks[rank], number, action.index, has_events);
            note->launched_ns = clock_ns();
            if (records) gpu_activity_leave();
            note->end_ns = clock_ns();
        }
        return well;
    }
    uint64_t begin_ns = clock_ns();
    if (records) gpu_activity_enter(id_of(gpu, 0, number));
    if (action.kind == DO_AWAIT)
        well = !step_communicates(mode) || await(gpu, action.index);
    else if (!step_communicates(mode))
        well = mark_ready(gpu, action.index);
    else
        well = post(gpu, action.index, has_events) && (mode != STEP_SERIAL || await(gpu, action.index));
    if (records) gpu_activity_leave();
    for (int rank = 0; rank < gpu->setup->group->size; rank++) {
        struct note *note = &gpu_shared_notes(gpu->shared, rank)[number];
        note->begin_ns = note->launch_ns = begin_ns;
        note->launched_ns = note->end_ns = clock_ns();
    }
    return well;
}

bool shared_gpu_run_step(struct shared_gpu *gpu, enum step_mode mode) {
    const struct program *program = gpu->setup->program;
    for (size_t i = 0; i < program->action_count; i++) {
        if (!act(gpu, mode, i)) return false;
    }
    for (int i = 0; step_communicates(mode) && i < (int)program->collective_count; i++) {
        if (!await(gpu, i)) return false;
    }
    for (int rank = 0; rank < gpu->setup->group->size; rank++) {
        const struct rank_resources *own = &gpu->ranks[rank];
        if (!gpu_record(&gpu->queues, own->end, own->compute) ||
            !gpu_follow(&gpu->queues, gpu->queues.communication, own->end))
            return false;
    }
    if (!gpu_record(&gpu->queues, gpu->step->end, gpu->queues.communication)) return false;
    if (gpu_records_step(gpu->records, mode)) gpu_activity_launched();
    return finish(gpu, gpu->step->end);
}

bool shared_gpu_begin_step(struct shared_gpu *gpu, enum step_mode mode, uint64_t *begin_ns) {
    struct gpu_clock clock = {0};
    uint64_t before_ns;
    do {
        before_ns = clock_ns();
        if (!gpu_record(&gpu->queues, gpu->step->begin, gpu->ranks[0].compute) ||
            !finish(gpu, gpu->step->begin))
            return false;
        *begin_ns = clock_ns();
    } while (step_is_noted(mode) && !gpu_clock_is_close(&clock, *begin_ns - before_ns));
    return true;
}

bool shared_gpu_finish_streams(const struct shared_gpu *gpu) {
    bool well = gpu_finish_streams(&gpu->queues);
    for (int rank = 1; well && rank < gpu->setup->group->size; rank++)
        well = ok(gpu, gpu_streams.cuStreamSynchronize(gpu->ranks[rank].compute), "the GPU");
    return well;
}

// ---- arrays --------------------------------------------------------------------------------------------

bool shared_gpu_copy(struct shared_gpu *gpu, bool to_gpu) {
    const struct cuda_driver *driver = gpu->queues.driver;
    for (int rank = 0; rank < gpu->setup->group->size; rank++) {
        const struct rank_resources *own = &gpu->ranks[rank];
        unsigned char *here = gpu->shared->arrays + gpu->shared->from[rank];
        CUresult result =
            to_gpu ? driver->cuMemcpyHtoDAsync(own->memory, here, gpu->shared->bytes[rank], own->compute)
                   : driver->cuMemcpyDtoHAsync(here, own->memory, gpu->shared->bytes[rank], own->compute);
        if (!ok(gpu, result, "a copy") || !gpu_record(&gpu->queues, own->end, own->compute) ||
            !finish(gpu, own->end))
            return false;
    }
    return true;
}
