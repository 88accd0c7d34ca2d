// ONESHOT: every rank copies its message to shared memory, and reduces all messages itself, in rank order in
// fp32.
//
// Small messages travel in lines of 60 bytes and a tag, so that data and flag arrive with one cache line. Two
// sets of lines alternate: once a rank has seen all tags of call n, all ranks have left call n-1, and its set
// is free.
//
// Larger messages travel in chunks through four slots per rank; chunk c+1 is copied in before the wait for
// chunk c. A rank that copies in chunk c has consumed c-2, so all ranks had published c-2 and so had consumed
// c-4: the slot of c-4 is free.
//
// Two ranks need no such argument: a rank overwrites only data of the other rank that it has read.
#include <stdlib.h>
#include <string.h>

#include "elements/strategy.h"
#include "host/epilogue.h"
#include "host/shared_copy.h"
#include "ranks/group.h"

enum {
    SLOTS = 4,
    CHUNK_BYTES = 32 << 10,
    CHUNK_BYTES_OVERSUBSCRIBED = 256 << 10, // every chunk costs a context switch between ranks
    PORTION_BYTES = 1 << 10,                // prefetched ahead: the capacity of the line fill buffers
    LINE_BYTES = 60,
    LINES_UP_TO_BYTES = 2 << 10,
    LINES = (LINES_UP_TO_BYTES + LINE_BYTES - 1) / LINE_BYTES,
};

struct line {
    _Alignas(CACHE_LINE) unsigned char data[LINE_BYTES];
    _Atomic uint32_t tag;
};

// Written by one rank, and read by the others.
struct mailbox {
    struct counter published; // chunks
    struct line lines[2][LINES];
    _Alignas(4096) unsigned char slots[]; // [SLOTS][chunk_bytes]
};

struct oneshot {
    struct group *group;
    unsigned char *mailboxes; // one per rank, mailbox_bytes each, shared
    size_t mailbox_bytes;
    size_t chunk_bytes;
    uint32_t chunks;        // so far, on every rank
    uint32_t tag;           // of the last call with lines
    struct handover to_all; // of chunks
    _Alignas(
        CACHE_LINE) unsigned char received[][LINES_UP_TO_BYTES]; // messages assembled from lines, by peer
};

static struct mailbox *mailbox_of(const struct oneshot *oneshot, int rank) {
    return (struct mailbox *)(oneshot->mailboxes + (size_t)rank * oneshot->mailbox_bytes);
}

// The slot for chunk `number` of `rank`. Two ranks swap their slots: a rank that prefetched a slot for
// writing when it read it owns its cache lines, and writes its own next chunk there, so that a line crosses
// once per chunk instead of twice.
static unsigned char *slot_of(const struct oneshot *oneshot, int rank, uint32_t number) {
    int home = oneshot->group->size == 2 ? rank ^ (int)(number / SLOTS & 1) : rank;
    return mailbox_of(oneshot, home)->slots + number % SLOTS * oneshot->chunk_bytes;
}

// The lines of `rank` in the call with this tag; two ranks swap them as well.
static struct line *lines_of(const struct oneshot *oneshot, int rank, uint32_t tag) {
    if (oneshot->group->size == 2) return mailbox_of(oneshot, rank ^ (int)(tag & 1))->lines[0];
    return mailbox_of(oneshot, rank)->lines[tag & 1];
}

static const char *oneshot_supports(const struct group *group, const struct call *call) {
    (void)group;
    (void)call;
    return NULL;
}

static int oneshot_setup(const struct candidate *candidate, struct group *group, void **state,
                         char reason[REASON_SIZE]) {
    (void)candidate;
    size_t bytes = sizeof(struct oneshot) + (size_t)group->size * LINES_UP_TO_BYTES;
    struct oneshot *oneshot = group_allocate(group, bytes, reason, REASON_SIZE);
    if (oneshot == NULL) return -1;
    oneshot->group = group;
    handover_begin(&oneshot->to_all, group);
    oneshot->chunk_bytes = group->oversubscribed ? CHUNK_BYTES_OVERSUBSCRIBED : CHUNK_BYTES;
    oneshot->mailbox_bytes = sizeof(struct mailbox) + SLOTS * oneshot->chunk_bytes;
    oneshot->mailboxes = group_map(group, (size_t)group->size * oneshot->mailbox_bytes, reason, REASON_SIZE);
    *state = oneshot;
    if (oneshot->mailboxes != NULL) return 0;
    free(oneshot);
    return -1;
}

static void send_lines(struct line *lines, const unsigned char *data, size_t bytes, uint32_t tag) {
    for (; bytes > LINE_BYTES; bytes -= LINE_BYTES, data += LINE_BYTES, lines++) {
        memcpy(lines->data, data, LINE_BYTES);
        atomic_store_explicit(&lines->tag, tag, memory_order_release);
    }
    memcpy(lines->data, data, bytes);
    atomic_store_explicit(&lines->tag, tag, memory_order_release);
}

static bool line_arrived(const struct line *line, uint32_t tag) {
    return atomic_load_explicit(&line->tag, memory_order_acquire) == tag;
}

static bool receive_lines(struct group *group, unsigned char *data, const struct line *lines, size_t bytes,
                          uint32_t tag) {
    for (; bytes > 0; lines++, data += LINE_BYTES) {
        uint64_t polls = 0, since_ns = 0;
        while (!line_arrived(lines, tag)) {
            if (!group_poll(group, &polls, &since_ns)) return false;
        }
        if (bytes <= LINE_BYTES) {
            memcpy(data, lines->data, bytes);
            return true;
        }
        memcpy(data, lines->data, LINE_BYTES);
        bytes -= LINE_BYTES;
    }
    return true;
}

static int run_in_lines(struct oneshot *oneshot, const struct call *call, struct epilogue *epilogue) {
    struct group *group = oneshot->group;
    size_t bytes = call_bytes(call);
    uint32_t tag = ++oneshot->tag;
    if (tag == 0) tag = oneshot->tag = 2; // 0 is the tag of an empty line; odd and even tags still alternate
    const void *sources[MAX_NODE_RANKS];
    send_lines(lines_of(oneshot, group->rank, tag), call->input, bytes, tag);
    for (int rank = 0; rank < group->size; rank++) {
        sources[rank] = call->input;
        if (rank == group->rank) continue;
        const struct line *lines = lines_of(oneshot, rank, tag);
        if (!receive_lines(group, oneshot->received[rank], lines, bytes, tag)) return -1;
        sources[rank] = oneshot->received[rank];
    }
    epilogue_consume(epilogue, sources, group->size, call_elements(call));
    return 0;
}

// The bytes of chunk `chunk` of this call; 0 past the end.
static size_t chunk_size(const struct oneshot *oneshot, size_t message_bytes, size_t chunk) {
    size_t first = chunk * oneshot->chunk_bytes;
    if (first >= message_bytes) return 0;
    return message_bytes - first < oneshot->chunk_bytes ? message_bytes - first : oneshot->chunk_bytes;
}

static void publish_chunk(struct oneshot *oneshot, const struct call *call, size_t chunk) {
    struct mailbox *mine = mailbox_of(oneshot, oneshot->group->rank);
    size_t bytes = chunk_size(oneshot, call_bytes(call), chunk);
    uint32_t number = oneshot->chunks + (uint32_t)chunk;
    handover_copy(&oneshot->to_all, slot_of(oneshot, oneshot->group->rank, number),
                  (const char *)call->input + chunk * oneshot->chunk_bytes, bytes);
    atomic_store_explicit(&mine->published.value, number + 1, memory_order_release);
}

// Adds a chunk in portions; with two ranks the peer's next portion is prefetched while this one is added.
static void consume_chunk(const struct group *group, struct epilogue *epilogue, const void *const chunks[],
                          size_t count) {
    size_t element_bytes = dtype_sizes_bytes[epilogue->call->dtype], portion = PORTION_BYTES / element_bytes;
    const char *peer = group->size == 2 ? chunks[1 - group->rank] : NULL;
    const void *sources[MAX_NODE_RANKS];
    if (peer != NULL) group->kernels->claim(peer, PORTION_BYTES);
    for (size_t first = 0; first < count; first += portion) {
        size_t piece = count - first < portion ? count - first : portion;
        if (first + portion < count) {
            if (peer != NULL) group->kernels->claim(peer + (first + portion) * element_bytes, PORTION_BYTES);
        }
        for (int rank = 0; rank < group->size; rank++) {
            sources[rank] = (const char *)chunks[rank] + first * element_bytes;
        }
        epilogue_consume(epilogue, sources, group->size, piece);
    }
}

static int run_in_chunks(struct oneshot *oneshot, const struct call *call, struct epilogue *epilogue) {
    struct group *group = oneshot->group;
    size_t message_bytes = call_bytes(call), element_bytes = dtype_sizes_bytes[call->dtype];
    publish_chunk(oneshot, call, 0);
    size_t chunk = 0;
    for (size_t bytes; (bytes = chunk_size(oneshot, message_bytes, chunk)) > 0; chunk++) {
        if (chunk_size(oneshot, message_bytes, chunk + 1) > 0) publish_chunk(oneshot, call, chunk + 1);
        uint32_t number = oneshot->chunks + (uint32_t)chunk;
        const void *sources[MAX_NODE_RANKS];
        for (int rank = 0; rank < group->size; rank++) {
            struct mailbox *mailbox = mailbox_of(oneshot, rank);
            if (!group_wait(group, &mailbox->published.value, number + 1)) return -1;
            sources[rank] = slot_of(oneshot, rank, number);
        }
        sources[group->rank] = (const char *)call->input + chunk * oneshot->chunk_bytes;
        consume_chunk(group, epilogue, sources, bytes / element_bytes);
    }
    oneshot->chunks += (uint32_t)chunk;
    return 0;
}

static int oneshot_run(void *state, const struct call *call) {
    struct oneshot *oneshot = state;
    struct epilogue epilogue;
    epilogue_begin(&epilogue, oneshot->group->kernels, call, 0);
    if (call_bytes(call) <= LINES_UP_TO_BYTES) return run_in_lines(oneshot, call, &epilogue);
    return run_in_chunks(oneshot, call, &epilogue);
}

static void oneshot_teardown(void *state) {
    struct oneshot *oneshot = state;
    group_unmap(oneshot->mailboxes, (size_t)oneshot->group->size * oneshot->mailbox_bytes);
    free(oneshot);
}

const struct strategy strategy_oneshot = {
    .supports = oneshot_supports,
    .setup = oneshot_setup,
    .run = oneshot_run,
    .teardown = oneshot_teardown,
};
