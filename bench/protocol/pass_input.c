// The input of a pass; see pass_input.h.
#include "pass_input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_identity.h"
#include "elements/fnv1a.h"
#include "plugin_loader/plugins.h"
#include "protocol.h"

static uint64_t hash_text(uint64_t hash, const char *text) {
    for (; *text != '\0'; text++) hash = fnv1a_add(hash, (unsigned char)*text);
    return fnv1a_add(hash, 0xff); // the end of the text counts, too
}

// A whole file, or the lines of stdin up to the line `end`, for free(); NULL with errno.
static char *read_file(const char *path) {
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "r");
    if (file == NULL) return NULL;
    char *text = NULL, *line = NULL;
    size_t size = 0, room = 0;
    FILE *memory = open_memstream(&text, &size);
    while (memory != NULL && getline(&line, &room, file) >= 0) {
        if (is_stdin && strcmp(line, "end\n") == 0) break;
        fputs(line, memory);
    }
    free(line);
    if (memory != NULL) fclose(memory);
    if (!is_stdin) fclose(file);
    return text;
}

// Collective. Rank 0's text on all ranks, for free(); NULL if it has none, or a rank has no memory for it.
static char *share_text(char *text, struct group *group) {
    long length = text == NULL ? -1 : (long)strlen(text);
    group_broadcast(group, 0, &length, sizeof length);
    if (length >= 0 && group->rank != 0) text = malloc((size_t)length + 1);
    if (group_min(group, text != NULL) == 0) {
        free(text);
        return NULL;
    }
    for (long at = 0; at <= length; at += EXCHANGE_SIZE) {
        long left = length + 1 - at;
        group_broadcast(group, 0, text + at, (size_t)(left < EXCHANGE_SIZE ? left : EXCHANGE_SIZE));
    }
    return text;
}

static int read_head(struct pass_input *input, const char *line, const struct group *group,
                     char reason[REASON_SIZE]) {
    char sync[8];
    int nodes = group->nodes;
    const char *const syncs[] = {"pass", "op", "both"};
    int read = sscanf(line, "pass samples=%u warm_up=%u seed=%u sync=%7s nodes=%d", &input->samples,
                      &input->warm_up, &input->seed, sync, &nodes);
    int kind = read >= 4 ? find_name(syncs, 3, sync) : -1;
    if (nodes != group->nodes) {
        snprintf(reason, REASON_SIZE, "the launcher placed %d ranks on %d node%s, not on %d", group->size,
                 group->nodes, group->nodes == 1 ? "" : "s", nodes);
        return -1;
    }
    if (kind >= 0 && input->samples > 0 && input->samples <= 100000 && input->warm_up <= 100000) {
        input->sync = (enum sync)kind;
        return 0;
    }
    snprintf(reason, REASON_SIZE,
             "its first line must be: pass samples=N warm_up=N seed=N sync=pass|op|both [nodes=N]");
    return -1;
}

static int read_requests(struct pass_input *input, char *text, const struct group *group,
                         char reason[REASON_SIZE]) {
    char *rest = NULL, *line = strtok_r(text, "\n", &rest);
    if (read_head(input, line ? line : "", group, reason) != 0) return -1;
    for (line = strtok_r(NULL, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        struct request *requests = realloc(input->requests, (input->count + 1) * sizeof *requests);
        if (requests == NULL) {
            snprintf(reason, REASON_SIZE, "out of memory");
            return -1;
        }
        input->requests = requests;
        struct request *request = &requests[input->count++];
        if (protocol_read_request(line, group->nodes, request, reason, REASON_SIZE) != LINE_MEASURE)
            return -1;
        if (request->id == 0) request->id = input->count;
    }
    if (input->count > 0) return 0;
    snprintf(reason, REASON_SIZE, "the input of the pass has no request");
    return -1;
}

int pass_input_read(struct pass_input *input, const char *path, struct group *group,
                    char reason[REASON_SIZE]) {
    *input = (struct pass_input){0};
    char *text = group->rank == 0 ? read_file(path) : NULL;
    const char *problem = group->rank == 0 ? strerror(errno) : "";
    text = share_text(text, group);
    if (text == NULL) {
        snprintf(reason, REASON_SIZE, "the input of the pass cannot be read: %s", problem);
        return -1;
    }
    input->hash = hash_text(FNV1A_START, text);
    int status = read_requests(input, text, group, reason);
    free(text);
    if (status != 0) pass_input_free(input);
    return status;
}

void pass_input_free(struct pass_input *input) {
    free(input->requests);
    *input = (struct pass_input){0};
}

int pass_input_agree(const struct pass_input *input, struct group *group, char reason[REASON_SIZE]) {
    uint64_t hash = hash_text(input->hash ^ plugins_hash(), BENCH_HASH), all[MAX_RANKS];
    for (int i = 0; i < candidate_count(); i++) {
        hash = hash_text(hash, backend->candidates[i].name);
        hash = hash_text(hash, plugins_parameters(&backend->candidates[i]));
    }
    if (!group_exchange(group, &hash, sizeof hash, all)) {
        snprintf(reason, REASON_SIZE, "%s", group_failure(group));
        return -1;
    }
    for (int rank = 1; rank < group->size; rank++) {
        if (all[rank] == all[0]) continue;
        snprintf(reason, REASON_SIZE, "rank %d has other candidates, or another bench, than rank 0", rank);
        return -1;
    }
    return 0;
}
