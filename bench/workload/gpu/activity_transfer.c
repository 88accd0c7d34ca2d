// Recorded activities, from rank 0 to all ranks; see activity_transfer.h.
#include "activity_transfer.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/group_mpi.h"

void activity_transfer_begin(struct activity_transfer *transfer, int ranks) {
    for (int rank = 0; rank < ranks; rank++) {
        struct activity_package *package = &transfer->packages[rank];
        package->file = open_memstream(&package->bytes, &package->size);
    }
}

void activity_transfer_add(struct activity_transfer *transfer, int rank,
                           const struct gpu_activity *activity) {
    FILE *file = transfer->packages[rank].file;
    if (file == NULL) return;
    fwrite(activity, sizeof *activity, 1, file);
    fputs(activity->name != NULL ? activity->name : "", file);
    fputc('\0', file);
}

bool activity_transfer_end(struct activity_transfer *transfer, int ranks) {
    bool are_whole = true;
    for (int rank = 0; rank < ranks; rank++) {
        FILE *file = transfer->packages[rank].file;
        bool is_whole = file != NULL && ferror(file) == 0;
        if (file != NULL && fclose(file) != 0) is_whole = false;
        are_whole = are_whole && is_whole;
    }
    return are_whole;
}

void activity_transfer_drop(struct activity_transfer *transfer) {
    for (int rank = 0; rank < MAX_NODE_RANKS; rank++) {
        free(transfer->packages[rank].bytes);
        transfer->packages[rank] = (struct activity_package){.file = NULL};
    }
}

// Returns a copy that lives as long as the transfer; kernels have few names. NULL: out of memory.
static const char *keep_name(struct activity_transfer *transfer, const char *name) {
    for (size_t i = 0; i < transfer->name_count; i++) {
        if (strcmp(transfer->names[i], name) == 0) return transfer->names[i];
    }
    char **names = realloc(transfer->names, (transfer->name_count + 1) * sizeof *names);
    if (names != NULL) transfer->names = names;
    char *kept = names != NULL ? strdup(name) : NULL;
    if (kept != NULL) names[transfer->name_count++] = kept;
    return kept;
}

static bool unpack(struct activity_transfer *transfer, const struct activity_package *package,
                   struct step_notes *notes) {
    notes->is_recorded = true;
    notes->activity_count = 0;
    for (const char *at = package->bytes, *end = at + package->size; at < end;) {
        struct gpu_activity activity;
        memcpy(&activity, at, sizeof activity);
        at += sizeof activity;
        activity.name = *at != '\0' ? keep_name(transfer, at) : NULL;
        if ((*at != '\0' && activity.name == NULL) || !step_keep_activity(notes, &activity)) return false;
        at += strlen(at) + 1;
    }
    step_sort_activities(notes);
    return true;
}

bool activity_transfer_run(struct activity_transfer *transfer, const struct group *group,
                           struct step_notes *notes) {
    MPI_Comm comm = group_comm(group);
    struct activity_package package = transfer->packages[0];
    if (group->rank != 0) {
        MPI_Recv(&package.size, sizeof package.size, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
        package.bytes = malloc(package.size + 1);
        if (package.bytes == NULL) return false;
        MPI_Recv(package.bytes, (int)package.size, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
    }
    for (int rank = 1; group->rank == 0 && rank < group->size; rank++) {
        const struct activity_package *its = &transfer->packages[rank];
        MPI_Send(&its->size, sizeof its->size, MPI_BYTE, rank, 0, comm);
        MPI_Send(its->bytes, (int)its->size, MPI_BYTE, rank, 0, comm);
    }
    bool well = unpack(transfer, &package, notes);
    if (group->rank != 0) free(package.bytes);
    activity_transfer_drop(transfer);
    return well;
}

void activity_transfer_close(struct activity_transfer *transfer) {
    activity_transfer_drop(transfer);
    for (size_t i = 0; i < transfer->name_count; i++) free(transfer->names[i]);
    free(transfer->names);
}
