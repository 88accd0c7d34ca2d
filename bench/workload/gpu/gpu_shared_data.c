// Memory of ranks that share a GPU; see gpu_shared_data.h.
#include "gpu_shared_data.h"

#include <mpi.h>
#include <string.h>

#include "ranks/group_mpi.h"

// Shared memory for `count` items of this size, for every rank.
static void *map_of_each(const struct gpu_shared_data *shared, size_t count, size_t size, char reason[]) {
    size_t bytes = (count * size + 1) * (size_t)shared->group->size;
    return group_map(shared->group, bytes, reason, PROGRAM_REASON);
}

static void unmap_of_each(const struct gpu_shared_data *shared, void *memory, size_t count, size_t size) {
    if (memory != NULL) group_unmap(memory, (count * size + 1) * (size_t)shared->group->size);
}

static bool map_all(struct gpu_shared_data *shared, char reason[]) {
    const struct program *program = shared->program;
    size_t collectives = program->collective_count;
    shared->shapes = map_of_each(shared, program->gemm_count, sizeof *shared->shapes, reason);
    if (shared->shapes == NULL) return false;
    shared->messages = map_of_each(shared, collectives, sizeof *shared->messages, reason);
    if (shared->messages == NULL) return false;
    shared->notes = map_of_each(shared, program->action_count, sizeof *shared->notes, reason);
    if (shared->notes == NULL) return false;
    shared->spans = map_of_each(shared, collectives, sizeof *shared->spans, reason);
    if (shared->spans == NULL) return false;
    shared->arrays = group_map(shared->group, shared->all_bytes, reason, PROGRAM_REASON);
    return shared->arrays != NULL;
}

void gpu_shared_close(struct gpu_shared_data *shared) {
    const struct program *program = shared->program;
    if (program != NULL) {
        unmap_of_each(shared, shared->shapes, program->gemm_count, sizeof *shared->shapes);
        unmap_of_each(shared, shared->messages, program->collective_count, sizeof *shared->messages);
        unmap_of_each(shared, shared->notes, program->action_count, sizeof *shared->notes);
        unmap_of_each(shared, shared->spans, program->collective_count, sizeof *shared->spans);
    }
    if (shared->arrays != NULL) group_unmap(shared->arrays, shared->all_bytes);
    gpu_rank_free(&shared->layout);
}

bool gpu_shared_open(struct gpu_shared_data *shared, struct group *group, const struct program *program,
                     char reason[PROGRAM_REASON]) {
    size_t me = (size_t)group->rank, mine = shared->layout.bytes;
    shared->group = group;
    shared->program = program;
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, shared->bytes, sizeof mine, MPI_BYTE, group_comm(group));
    for (int rank = 0; rank < group->size; rank++) {
        shared->from[rank] = shared->all_bytes;
        shared->all_bytes += shared->bytes[rank];
    }
    if (!map_all(shared, reason)) return false;
    for (size_t i = 0; i < program->gemm_count; i++)
        shared->shapes[me * program->gemm_count + i] = gpu_rank_gemm(&shared->layout, i, 0);
    for (size_t i = 0; i < program->collective_count; i++) {
        const struct collective *collective = &program->collectives[i];
        struct gpu_message *message = &shared->messages[me * program->collective_count + i];
        message->in = gpu_rank_offset(&shared->layout, collective->in);
        message->in_bytes = collective->in_elements * dtype_sizes_bytes[collective->dtype];
        message->out = gpu_rank_offset(&shared->layout, collective->out);
        memcpy(message->sent, collective->send, sizeof message->sent);
    }
    MPI_Barrier(group_comm(group));
    return true;
}

const struct gpu_gemm_shape *gpu_shared_shapes(const struct gpu_shared_data *shared, int rank) {
    return shared->shapes + (size_t)rank * shared->program->gemm_count;
}

const struct gpu_message *gpu_shared_message(const struct gpu_shared_data *shared, int rank, int collective) {
    return &shared->messages[(size_t)rank * shared->program->collective_count + (size_t)collective];
}

size_t gpu_shared_largest_message(const struct gpu_shared_data *shared) {
    size_t most = 1;
    for (int rank = 0; rank < shared->group->size; rank++) {
        for (int i = 0; i < (int)shared->program->collective_count; i++) {
            size_t bytes = gpu_shared_message(shared, rank, i)->in_bytes;
            if (bytes > most) most = bytes;
        }
    }
    return most;
}

struct note *gpu_shared_notes(const struct gpu_shared_data *shared, int rank) {
    return shared->notes + (size_t)rank * shared->program->action_count;
}

struct span *gpu_shared_spans(const struct gpu_shared_data *shared, int rank) {
    return shared->spans + (size_t)rank * shared->program->collective_count;
}

void gpu_shared_write_arrays(const struct gpu_shared_data *shared) {
    unsigned char *mine = shared->arrays + shared->from[shared->group->rank];
    for (size_t i = 0; i < shared->program->array_count; i++) {
        const struct array *array = &shared->program->arrays[i];
        memcpy(mine + shared->layout.offsets[i], array->data, array_bytes(array));
    }
}

void gpu_shared_read_arrays(const struct gpu_shared_data *shared) {
    const unsigned char *mine = shared->arrays + shared->from[shared->group->rank];
    for (size_t i = 0; i < shared->program->array_count; i++) {
        const struct array *array = &shared->program->arrays[i];
        memcpy(array->data, mine + shared->layout.offsets[i], array_bytes(array));
    }
}

void gpu_shared_read_notes(const struct gpu_shared_data *shared, struct step_notes *notes) {
    const struct program *program = shared->program;
    const struct span *spans = gpu_shared_spans(shared, shared->group->rank);
    memcpy(notes->notes, gpu_shared_notes(shared, shared->group->rank),
           program->action_count * sizeof *notes->notes);
    for (size_t i = 0; i < program->collective_count; i++) notes->spans[i * MAX_THREADS] = spans[i];
}
