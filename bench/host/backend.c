// The backend of CPU ranks. Calls use the arrays of their cell. Each rank times its calls with its own clock;
// if each rank has a core of its own, all calls begin at one agreed time.
#include "calls/backend.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/stage.h"
#include "elements/processor.h"
#include "elements/statistics.h"
#include "host_pass.h"
#include "plugin_loader/plugin_limits.h"
#include "protocol/protocol.h"
#include "ranks/group_mpi.h"

enum { ROUNDTRIPS = 32, ROUNDTRIP_SAMPLES = 31 }; // round trips in a sample

static void describe(char library[], size_t library_size, char isa[], size_t isa_size) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0'; // without Open MPI's package and date
    snprintf(library, library_size, "%s", version);
    snprintf(isa, isa_size, "%s", kernels_best()->isa);
}

// Rank 0 reads the size of the cache for all ranks: this takes long on a machine with many cores.
static int open_ranks(struct group *group, const struct device_options *options, char reason[REASON_SIZE]) {
    (void)options;
    if (group->size > 1) {
        if (group->rank == 0) group->cache_bytes = processor_cache_bytes();
        group_broadcast(group, 0, &group->cache_bytes, sizeof group->cache_bytes);
        return 0;
    }
    snprintf(reason, REASON_SIZE, "1 rank; 2 to %d are possible on one node: mpirun -n RANKS gentables-bench",
             MAX_NODE_RANKS);
    return -1;
}

static void close_nothing(struct group *group) {
    (void)group;
}

static void describe_rank(const struct group *group, char text[], size_t text_size) {
    snprintf(text, text_size, "device %2d [%d] CPU", group->rank, group->rank);
}

static void write_devices(const struct group *group, FILE *out) {
    (void)group;
    (void)out;
}

static const char *placement(const struct group *group) {
    return group->oversubscribed ? "oversubscribed" : "dedicated";
}

// The module of the arch for which the bench was built.
static bool incumbent(const struct group *group, int which, char suffix[], size_t suffix_size) {
    (void)group;
    snprintf(suffix, suffix_size, "%s", "");
    return which == 0;
}

// ---- the round trip -----------------------------------------------------------------------------

// The median time of a flag from rank 0 to `peer` and back.
static bool flag_round_trip(struct group *group, int peer, double *result_us) {
    double samples[ROUNDTRIP_SAMPLES];
    struct control *control = group->control;
    uint32_t turn = atomic_load(&control->ping.value);
    for (int sample_index = 0; sample_index < ROUNDTRIP_SAMPLES; sample_index++) {
        if (!group_barrier(group)) return false;
        uint64_t start_ns = clock_ns();
        for (int i = 0; i < ROUNDTRIPS; i++) {
            turn++;
            if (group->rank == 0) {
                atomic_store_explicit(&control->ping.value, turn, memory_order_release);
                if (!group_wait(group, &control->pong.value, turn)) return false;
            } else if (group->rank == peer) {
                if (!group_wait(group, &control->ping.value, turn)) return false;
                atomic_store_explicit(&control->pong.value, turn, memory_order_release);
            }
        }
        samples[sample_index] = (double)(clock_ns() - start_ns) / 1000 / (double)ROUNDTRIPS;
    }
    *result_us = median(samples, ROUNDTRIP_SAMPLES);
    return group_barrier(group);
}

// The least time of an empty message to a rank of another node and back: other messages and interrupts only
// add to it.
static bool message_round_trip(struct group *group, int peer, double *result_us) {
    MPI_Comm comm = group_comm(group);
    double least_us = INFINITY;
    if (!group_barrier(group)) return false;
    for (int i = 0; i < ROUNDTRIP_SAMPLES && (group->rank == 0 || group->rank == peer); i++) {
        uint64_t start_ns = clock_ns();
        int other = group->rank == 0 ? peer : 0;
        if (group->rank == 0) MPI_Send(NULL, 0, MPI_BYTE, other, 0, comm);
        MPI_Recv(NULL, 0, MPI_BYTE, other, 0, comm, MPI_STATUS_IGNORE);
        if (group->rank == peer) MPI_Send(NULL, 0, MPI_BYTE, other, 0, comm);
        least_us = fmin(least_us, (double)(clock_ns() - start_ns) / 1000);
    }
    if (group->rank == 0) *result_us = least_us;
    return group_barrier(group);
}

// Between rank 0 and the peer that was slowest in the first measurement; of several nodes, between the first
// ranks of two.
static int round_trip(struct group *group, double *time_us) {
    bool has_nodes = group->nodes > 1;
    int known = group->slowest_peer, slowest = known, first = known > 0 ? known : 1;
    int last = known > 0 ? known : (has_nodes ? group->nodes : group->size) - 1;
    double slowest_us = 0;
    for (int peer = first; peer <= last; peer++) {
        bool is_measured = has_nodes ? message_round_trip(group, group->leaders[peer], time_us)
                                     : flag_round_trip(group, peer, time_us);
        if (!is_measured) return -1;
        if (*time_us > slowest_us) {
            slowest_us = *time_us;
            slowest = peer;
        }
    }
    *time_us = slowest_us;
    group_broadcast(group, 0, time_us, sizeof *time_us);
    group_broadcast(group, 0, &slowest, sizeof slowest);
    group->slowest_peer = slowest;
    return 0;
}

// ---- calls ----------------------------------------------------------------------------------------

// The buffers of a cell: its own arrays.
struct host_buffers {
    struct group *group;
    struct cell *cell;
};

static int open_buffers(struct group *group, struct cell *cell, enum mode mode, void **buffers,
                        char reason[REASON_SIZE]) {
    struct host_buffers *made = malloc(sizeof *made);
    (void)mode;
    if (made == NULL) {
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    *made = (struct host_buffers){.group = group, .cell = cell};
    *buffers = made;
    return 0;
}

static size_t buffer_bytes(const struct shape *shape) {
    (void)shape;
    return sizeof(struct host_buffers);
}

static void close_buffers(void *buffers) {
    free(buffers);
}

static struct call call_at(void *buffers, const struct candidate *candidate, size_t data_set, int slot) {
    (void)candidate; // those that work only in place are refused
    (void)slot;
    return cell_call(((struct host_buffers *)buffers)->cell, data_set);
}

static int one_slot(const void *buffers) {
    (void)buffers;
    return 1;
}

static int poison(void *buffers) {
    cell_poison(((struct host_buffers *)buffers)->cell);
    return 0;
}

// The work that every strategy must do at least: read the input, and write the output.
static void copy_input(const struct call *call) {
    if (call->traffic == NULL) {
        memcpy(call->residual_out ? call->residual_out : call->out, call->input, call_bytes(call));
        return;
    }
    size_t element_bytes = dtype_sizes_bytes[call->dtype];
    size_t left = call->traffic->receive_elements * element_bytes, piece;
    size_t most = call->traffic->send_elements * element_bytes;
    for (char *to = call->out; left > 0; left -= piece, to += piece) {
        piece = left < most ? left : most;
        memcpy(to, call->input, piece);
    }
}

static int sample(void *buffers, const struct candidate *candidate, void *state, size_t data_set,
                  struct stamp *stamp, char reason[REASON_SIZE]) {
    struct host_buffers *host = buffers;
    (void)reason;
    struct call call = cell_call(host->cell, data_set);
    int status = 0;
    if (!group_start_together(host->group)) return -1;
    stamp->start_ns = clock_ns();
    if (candidate != NULL) {
        status = candidate->strategy->run(state, &call);
    } else {
        copy_input(&call);
    }
    stamp->end_ns = clock_ns();
    return status;
}

static int finish(void *buffers) {
    (void)buffers;
    return 0;
}

static int fetch(void *buffers, int slot, struct cell_part part) {
    (void)buffers;
    (void)slot;
    (void)part;
    return 0;
}

static uint64_t hash(void *buffers, int slot) {
    struct host_buffers *host = buffers;
    (void)slot;
    return cell_hash(host->cell, host->group->kernels->hash);
}

// A call on the host is complete when it returns, and its results are hashed after that.
static bool is_unchanged(void *buffers, int slot) {
    (void)buffers;
    (void)slot;
    return true;
}

static double no_link(const struct group *group, const struct candidate *candidate, const struct call *call) {
    (void)group;
    (void)candidate;
    (void)call;
    return 0;
}

static int no_floor(void *buffers, const struct candidate *candidate, void *state, double *time_us,
                    char reason[REASON_SIZE]) {
    (void)reason;
    (void)buffers;
    (void)candidate;
    (void)state;
    *time_us = 0;
    return 0;
}

// ---- plug-ins -------------------------------------------------------------------------------------

static const char *refusal_of(const struct candidate *candidate, const struct group *group,
                              const struct call *call) {
    const char *refusal = NULL;
    if (candidate->plugin != NULL) {
        refusal = plugins_refusal(candidate, group, call);
        if (refusal == NULL && plugins_is_in_place(candidate)) refusal = "works only in place";
    }
    return refusal != NULL ? refusal : candidate->strategy->supports(group, call);
}

static int run_pass(struct group *group, const struct pass_input *input) {
    return host_pass_run(group, input, protocol_out());
}

// ---- the backend ----------------------------------------------------------------------------------

extern const struct plugin_services host_plugin_services;

static const struct backend host_backend = {
    .name = "host",
    .candidates = host_candidates,
    .candidate_count = &host_candidate_count,
    .includes_host_work = true,
    .fallback = "MPI",
    .incumbent = incumbent,
    .services = &host_plugin_services,
    .modes = {[MODE_EAGER] = true},
    .measures_skew = true,
    .hang_timeouts = 1,
    .refusal = refusal_of,
    .run_pass = run_pass,
    .describe = describe,
    .open = open_ranks,
    .close = close_nothing,
    .describe_rank = describe_rank,
    .write_devices = write_devices,
    .placement = placement,
    .round_trip = round_trip,
    .open_buffers = open_buffers,
    .close_buffers = close_buffers,
    .buffer_bytes = buffer_bytes,
    .call = call_at,
    .slots = one_slot,
    .poison = poison,
    .sample = sample,
    .finish = finish,
    .fetch = fetch,
    .hash = hash,
    .is_unchanged = is_unchanged,
    .link_us = no_link,
    .floor = no_floor,
};

const struct backend *const backend = &host_backend;

const struct stage self_test_stages[] = {{.name = NULL}};
