// Memory of ranks that share a GPU; see gpu_shared_data.h.
#include "gpu_shared_data.h"

#include <mpi.h>
#include <string.h>

#include "ranks/group_mpi.h"

// Shared memory for `count` items of this size, for every rank.
static void *map_of_each(const struct gpu_board *board, size_t count, size_t size, char reason[]) {
    size_t bytes = (count * size + 1) * (size_t)board->group->size;
    return group_map(board->group, bytes, reason, PROGRAM_REASON);
}

static void unmap_of_each(const struct gpu_board *board, void *memory, size_t count, size_t size) {
    if (memory != NULL) group_unmap(memory, (count * size + 1) * (size_t)board->group->size);
}

static bool map_all(struct gpu_board *board, char reason[]) {
    const struct program *program = board->program;
    size_t collectives = program->collective_count;
    board->shapes = map_of_each(board, program->gemm_count, sizeof *board->shapes, reason);
    if (board->shapes == NULL) return false;
    board->messages = map_of_each(board, collectives, sizeof *board->messages, reason);
    if (board->messages == NULL) return false;
    board->notes = map_of_each(board, program->action_count, sizeof *board->notes, reason);
    if (board->notes == NULL) return false;
    board->spans = map_of_each(board, collectives, sizeof *board->spans, reason);
    if (board->spans == NULL) return false;
    board->arrays = group_map(board->group, board->all_bytes, reason, PROGRAM_REASON);
    return board->arrays != NULL;
}

void gpu_board_close(struct gpu_board *board) {
    const struct program *program = board->program;
    if (program != NULL) {
        unmap_of_each(board, board->shapes, program->gemm_count, sizeof *board->shapes);
        unmap_of_each(board, board->messages, program->collective_count, sizeof *board->messages);
        unmap_of_each(board, board->notes, program->action_count, sizeof *board->notes);
        unmap_of_each(board, board->spans, program->collective_count, sizeof *board->spans);
    }
    if (board->arrays != NULL) group_unmap(board->arrays, board->all_bytes);
    gpu_rank_forget(&board->layout);
}

bool gpu_board_open(struct gpu_board *board, struct group *group, const struct program *program,
                    char reason[PROGRAM_REASON]) {
    size_t me = (size_t)group->rank, mine = board->layout.bytes;
    board->group = group;
    board->program = program;
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, board->bytes, sizeof mine, MPI_BYTE, group_comm(group));
    for (int rank = 0; rank < group->size; rank++) {
        board->from[rank] = board->all_bytes;
        board->all_bytes += board->bytes[rank];
    }
    if (!map_all(board, reason)) return false;
    for (size_t i = 0; i < program->gemm_count; i++)
        board->shapes[me * program->gemm_count + i] = gpu_rank_gemm(&board->layout, i, 0);
    for (size_t i = 0; i < program->collective_count; i++) {
        const struct collective *collective = &program->collectives[i];
        struct gpu_message *message = &board->messages[me * program->collective_count + i];
        message->in = gpu_rank_offset(&board->layout, collective->in);
        message->in_bytes = collective->in_elements * dtype_sizes_bytes[collective->dtype];
        message->out = gpu_rank_offset(&board->layout, collective->out);
        memcpy(message->sent, collective->send, sizeof message->sent);
    }
    MPI_Barrier(group_comm(group));
    return true;
}

const struct gpu_gemm_shape *gpu_board_shapes(const struct gpu_board *board, int rank) {
    return board->shapes + (size_t)rank * board->program->gemm_count;
}

const struct gpu_message *gpu_board_message(const struct gpu_board *board, int rank, int collective) {
    return &board->messages[(size_t)rank * board->program->collective_count + (size_t)collective];
}

size_t gpu_board_largest_message(const struct gpu_board *board) {
    size_t most = 1;
    for (int rank = 0; rank < board->group->size; rank++) {
        for (int i = 0; i < (int)board->program->collective_count; i++) {
            size_t bytes = gpu_board_message(board, rank, i)->in_bytes;
            if (bytes > most) most = bytes;
        }
    }
    return most;
}

struct note *gpu_board_notes(const struct gpu_board *board, int rank) {
    return board->notes + (size_t)rank * board->program->action_count;
}

struct span *gpu_board_spans(const struct gpu_board *board, int rank) {
    return board->spans + (size_t)rank * board->program->collective_count;
}

void gpu_board_write_arrays(const struct gpu_board *board) {
    unsigned char *mine = board->arrays + board->from[board->group->rank];
    for (size_t i = 0; i < board->program->array_count; i++) {
        const struct array *array = &board->program->arrays[i];
        memcpy(mine + board->layout.offsets[i], array->data, array_bytes(array));
    }
}

void gpu_board_read_arrays(const struct gpu_board *board) {
    const unsigned char *mine = board->arrays + board->from[board->group->rank];
    for (size_t i = 0; i < board->program->array_count; i++) {
        const struct array *array = &board->program->arrays[i];
        memcpy(array->data, mine + board->layout.offsets[i], array_bytes(array));
    }
}

void gpu_board_read_notes(const struct gpu_board *board, struct step_notes *notes) {
    const struct program *program = board->program;
    const struct span *spans = gpu_board_spans(board, board->group->rank);
    memcpy(notes->notes, gpu_board_notes(board, board->group->rank),
           program->action_count * sizeof *notes->notes);
    for (size_t i = 0; i < program->collective_count; i++) notes->spans[i * MAX_THREADS] = spans[i];
}
