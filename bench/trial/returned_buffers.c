// Detection of late writes; see returned_buffers.h.
#include "returned_buffers.h"

#include <stdlib.h>

enum {
    OVERWRITTEN = 0xa5,
    KEPT_BYTES = 64 << 20, // of buffers of earlier calls
};

static const char writes_late[] = "writes after it has returned";

// A buffer of a call that has returned: it was overwritten, and must stay so until fini.
struct returned_buffer {
    struct guarded buffer;
    int candidate;
    unsigned long number; // consecutive
    struct returned_buffer *next;
};

static void check(struct trial *trial, const struct returned_buffer *kept) {
    if (!guarded_holds(trial->group, &kept->buffer, OVERWRITTEN))
        trial_fail(trial, kept->candidate, writes_late);
    if (!guarded_is_whole(trial->group, &kept->buffer))
        trial_fail(trial, kept->candidate, "writes beyond a buffer");
}

void returned_check(struct trial *trial, unsigned long first) {
    for (const struct returned_buffer *kept = trial->first; kept != NULL; kept = kept->next) {
        if (kept->number >= first) check(trial, kept);
    }
}

void returned_drop_oldest(struct trial *trial) {
    struct returned_buffer *oldest = trial->first;
    check(trial, oldest);
    trial->first = oldest->next;
    if (trial->first == NULL) trial->last = &trial->first;
    trial->kept_bytes -= oldest->buffer.bytes;
    guarded_close(trial->group, &oldest->buffer);
    free(oldest);
}

bool returned_keep(struct trial *trial, int index, struct guarded *buffer) {
    if (buffer->data == NULL) return true;
    struct returned_buffer *kept = malloc(sizeof *kept);
    if (kept == NULL || !backend->services->fill(trial->group, buffer->data, OVERWRITTEN, buffer->bytes)) {
        free(kept);
        return false;
    }
    *kept = (struct returned_buffer){.buffer = *buffer, .candidate = index, .number = trial->kept_so_far++};
    *buffer = (struct guarded){0};
    *trial->last = kept;
    trial->last = &kept->next;
    trial->kept_bytes += kept->buffer.bytes;
    while (trial->kept_bytes > KEPT_BYTES && trial->first != kept) returned_drop_oldest(trial);
    return true;
}
