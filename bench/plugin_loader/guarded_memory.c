// Buffers between unmapped memory; see plugin_services.h. The mapped memory is filled with canaries, and the
// buffer lies at its end or beginning.
#include <stdlib.h>
#include <string.h>

#include "calls/backend.h"
#include "calls/plugin_services.h"
#include "ranks/fault_report.h"

enum { CANARY = 0xc3 };

int guarded_open(struct group *group, struct guarded *buffer, size_t bytes, size_t alignment, bool at_end) {
    const struct plugin_services *services = backend->services;
    *buffer = (struct guarded){.bytes = bytes};
    if (services->reserve(group, buffer, bytes + 1) != 0) return -1;
    if (!services->fill(group, buffer->mapped, CANARY, buffer->mapped_bytes)) {
        services->give_back(group, buffer);
        return -1;
    }
    size_t gap = at_end ? (buffer->mapped_bytes - bytes) / alignment * alignment : 0;
    buffer->data = buffer->mapped + gap;
    fault_guard(buffer->reserved, buffer->mapped);
    fault_guard(buffer->mapped + buffer->mapped_bytes, buffer->reserved + buffer->reserved_bytes);
    return 0;
}

void guarded_close(struct group *group, struct guarded *buffer) {
    if (buffer->reserved != NULL) {
        fault_unguard(buffer->reserved);
        fault_unguard(buffer->mapped + buffer->mapped_bytes);
        backend->services->give_back(group, buffer);
    }
    *buffer = (struct guarded){0};
}

static bool is_full_of(const unsigned char *data, size_t bytes, int byte) {
    return bytes == 0 || (data[0] == byte && memcmp(data, data + 1, bytes - 1) == 0);
}

// A copy of all mapped bytes, for free(); NULL: see group_failure.
static unsigned char *copy_of(struct group *group, const struct guarded *buffer) {
    unsigned char *copy = malloc(buffer->mapped_bytes);
    if (copy == NULL) group_fail(group, "out of memory");
    if (copy != NULL && backend->services->get(group, copy, buffer->mapped, buffer->mapped_bytes))
        return copy;
    free(copy);
    return NULL;
}

bool guarded_is_whole(struct group *group, const struct guarded *buffer) {
    if (buffer->data == NULL) return true;
    unsigned char *copy = copy_of(group, buffer);
    size_t before = (size_t)(buffer->data - buffer->mapped), after = before + buffer->bytes;
    bool whole = copy != NULL && is_full_of(copy, before, CANARY) &&
                 is_full_of(copy + after, buffer->mapped_bytes - after, CANARY);
    free(copy);
    return whole;
}

bool guarded_holds(struct group *group, const struct guarded *buffer, int byte) {
    if (buffer->data == NULL) return true;
    unsigned char *copy = copy_of(group, buffer);
    bool holds = copy != NULL && is_full_of(copy + (buffer->data - buffer->mapped), buffer->bytes, byte);
    free(copy);
    return holds;
}
