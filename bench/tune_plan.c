// The plan of a pass; see tune_plan.h.
#include "tune_plan.h"
#include "host/group_mpi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_identity.h"
#include "plugins.h"
#include "protocol.h"

static uint64_t hash_text(uint64_t hash, const char *text) {
    for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return (hash ^ 0xff) * 0x100000001b3u; // where it ends counts, too
}

// The whole file, for free(); NULL with errno.
static char *read_file(const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) return NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    for (int byte; memory != NULL && (byte = getc(file)) != EOF;) putc(byte, memory);
    if (memory != NULL) fclose(memory);
    fclose(file);
    return text;
}

static char *share_text(char *text, MPI_Comm comm) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    int length = text == NULL ? -1 : (int)strlen(text);
    MPI_Bcast(&length, 1, MPI_INT, 0, comm);
    if (length < 0) return NULL;
    if (rank != 0) text = malloc((size_t)length + 1);
    if (text != NULL) MPI_Bcast(text, length + 1, MPI_CHAR, 0, comm);
    return text;
}

static int read_head(struct tune_plan *plan, const char *line, char reason[REASON_SIZE]) {
    char sync[8];
    const char *const syncs[] = {"pass", "op", "both"};
    int read = sscanf(line, "plan samples=%u warm_up=%u seed=%u sync=%7s", &plan->samples, &plan->warm_up,
                      &plan->seed, sync);
    int kind = read == 4 ? find_name(syncs, 3, sync) : -1;
    if (kind >= 0 && plan->samples > 0 && plan->samples <= 100000 && plan->warm_up <= 100000) {
        plan->sync = (enum sync)kind;
        return 0;
    }
    snprintf(reason, REASON_SIZE, "a plan begins with plan samples=N warm_up=N seed=N sync=pass|op|both");
    return -1;
}

static int read_cells(struct tune_plan *plan, char *text, char reason[REASON_SIZE]) {
    char *rest = NULL, *line = strtok_r(text, "\n", &rest);
    if (read_head(plan, line ? line : "", reason) != 0) return -1;
    for (line = strtok_r(NULL, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        struct request *cells = realloc(plan->cells, (plan->count + 1) * sizeof *cells);
        if (cells == NULL) {
            snprintf(reason, REASON_SIZE, "out of memory");
            return -1;
        }
        plan->cells = cells;
        if (protocol_read_request(line, &cells[plan->count++], reason, REASON_SIZE) != LINE_MEASURE)
            return -1;
    }
    if (plan->count > 0) return 0;
    snprintf(reason, REASON_SIZE, "the plan has no cell");
    return -1;
}

int tune_plan_read(struct tune_plan *plan, const char *path, MPI_Comm comm, char reason[REASON_SIZE]) {
    int rank;
    *plan = (struct tune_plan){0};
    MPI_Comm_rank(comm, &rank);
    char *text = share_text(rank == 0 ? read_file(path) : NULL, comm);
    if (text == NULL) {
        snprintf(reason, REASON_SIZE, "the plan cannot be read: %s", rank == 0 ? strerror(errno) : "");
        return -1;
    }
    plan->hash = hash_text(0xcbf29ce484222325u, text);
    int status = read_cells(plan, text, reason);
    free(text);
    if (status != 0) tune_plan_free(plan);
    return status;
}

void tune_plan_free(struct tune_plan *plan) {
    free(plan->cells);
    *plan = (struct tune_plan){0};
}

int tune_plan_agree(const struct tune_plan *plan, struct group *group, char reason[REASON_SIZE]) {
    uint64_t hash = hash_text(plan->hash ^ plugins_hash(), BENCH_HASH), all[MAX_RANKS];
    for (int i = 0; i < host_candidate_count; i++) {
        hash = hash_text(hash, host_candidates[i].name);
        hash = hash_text(hash, plugins_parameters(&host_candidates[i]));
    }
    MPI_Allgather(&hash, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, group_comm(group));
    for (int rank = 1; rank < group->size; rank++) {
        if (all[rank] == all[0]) continue;
        snprintf(reason, REASON_SIZE, "rank %d has other candidates, or another bench, than rank 0", rank);
        return -1;
    }
    return 0;
}
