// Plug-ins: loaded, checked, adapted; see plugins.h.
#include "plugins.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/backend.h"
#include "library.h"
#include "ranks/fault_report.h"

enum { LARGEST_ALIGNMENT = 4096, LOG_SIZE = 400 };

_Static_assert((int)GT_OP_ALLREDUCE == OP_ALLREDUCE && (int)GT_OP_ALLGATHER == OP_ALLGATHER &&
                   (int)GT_OP_REDUCESCATTER == OP_REDUCESCATTER && (int)GT_OP_ALLTOALL == OP_ALLTOALL &&
                   (int)GT_OP_ALLTOALLV == OP_ALLTOALLV && (int)GT_OP_BROADCAST == OP_BROADCAST,
               "the ops of the interface are those of the list");
_Static_assert((int)GT_BFLOAT16 == DTYPE_BFLOAT16 && (int)GT_FLOAT16 == DTYPE_FLOAT16 &&
                   (int)GT_FLOAT32 == DTYPE_FLOAT32,
               "so are the data types");
_Static_assert((int)GT_FUSION_NONE == FUSION_NONE &&
                   (int)GT_FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4 == FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4,
               "so are the fusions");

struct plugin_candidate {
    struct plugin *plugin;
    uint32_t index;
    gt_candidate says;
    bool has_epilogue_apart;
    char name[80], work[80];
};

struct plugin {
    char path[256], name[61]; // the name that it gives itself
    uint64_t hash;
    gt_plugin functions;
    struct plugin_candidate *candidates;
    unsigned comm;                         // the kind of communicator that any of them needs; 0: none
    struct instance *instances[MAX_RANKS]; // of the ranks of this process, while any candidate is set up
    int users[MAX_RANKS];
    char refusals[MAX_RANKS][REASON_SIZE]; // why its init failed, which is not called again then; or ""
    volatile int32_t cancel[MAX_RANKS];    // what it has been told since its last call began
};

// One rank's state of a plug-in, and what its callbacks need.
struct instance {
    struct plugin *plugin;
    struct group *group;
    void *ground;
    gt_host host;
    gt_rank rank;
    const char *in_run; // the name of one that runs, and has not declared collective calls there; or NULL
    void *state;
    struct allocation {
        void *memory;
        size_t shared_bytes; // 0: private
        struct allocation *next;
    } * allocations;
};

// A prepared shape of one candidate.
struct plan {
    struct plugin_candidate *candidate;
    struct group *group;
    void *plan;
    struct guarded workspace;
    size_t workspace_bytes;
};

struct kept_plan {
    struct call call; // its shape; pointers in it mean nothing
    size_t largest;
    bool in_place;
    struct plan *plan;
};

struct plugin_state {
    struct plugin_candidate *candidate;
    struct instance *instance;
    struct kept_plan *kept;
    size_t kept_count;
};

static struct plugin plugins[PLUGINS_MAX];
static int plugin_count;
static struct plugin *_Atomic last_called[MAX_RANKS]; // by each rank of this process

// ---- what a library says ------------------------------------------------------------------------

// A struct of which the writer knew `size` bytes: the rest is zero.
static void take_struct(void *to, size_t room, const void *from) {
    size_t size;
    memcpy(&size, from, sizeof size);
    memset(to, 0, room);
    memcpy(to, from, size < room ? size : room);
}

static bool is_name(const char *name) {
    size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && length <= 60 && name[length] == '\0';
}

static bool is_taken(const char *name) {
    for (int i = 0; i < candidate_count(); i++) {
        if (strcmp(backend->candidates[i].name, name) == 0) return true;
    }
    return false;
}

static int refuse(char reason[], const char *path, const char *what) {
    snprintf(reason, PLUGIN_REASON_SIZE, "%s: %s", path, what);
    return -1;
}

static int refuse_candidate(char reason[], const char *path, const char *name, const char *what) {
    snprintf(reason, PLUGIN_REASON_SIZE, "%s: candidate %.60s: %s", path, name, what);
    return -1;
}

// What is wrong with the numbers and masks of a candidate, or NULL: what is not known is refused.
static const char *wrong_mask(const gt_candidate *says) {
    const unsigned known_flags = GT_FLAG_COLLECTIVE_RUN | GT_FLAG_CAPTURABLE | GT_FLAG_FP32;
    const unsigned sums = 1u << OP_ALLREDUCE | 1u << OP_REDUCESCATTER;
    if (says->ops == 0 || says->ops >> OPS != 0) return "has an op that this gentables does not know";
    if (says->dtypes == 0 || says->dtypes >> DTYPES != 0)
        return "has a data type that this gentables does not know";
    if (says->reduce_ops >> (GT_SUM + 1) != 0) return "has a reduce op that this gentables does not know";
    if ((says->ops & sums) != 0 && says->reduce_ops == 0)
        return "has an op that sums, and no reduce op; 1u << GT_SUM would be right";
    if (says->fusions >> FUSIONS != 0) return "has a fusion that this gentables does not know";
    if (says->fusions == 0) return "has no fusion; 1u << GT_FUSION_NONE says that it has no epilogue";
    if ((says->memory & ~(unsigned)(GT_MEMORY_HOST | GT_MEMORY_CUDA)) != 0)
        return "has a kind of memory that this gentables does not know";
    if ((says->places & ~(unsigned)(GT_PLACE_OUT | GT_PLACE_IN)) != 0)
        return "has a place that this gentables does not know";
    if ((says->flags & ~known_flags) != 0) return "has a flag that this gentables does not know";
    if (says->comm > GT_COMM_NCCL) return "needs a kind of communicator that this gentables does not know";
    return NULL;
}

static int check_candidate(const struct plugin *plugin, const gt_candidate *says, char reason[]) {
    const char *path = plugin->path, *name = says->name;
    if (name == NULL || !is_name(name)) {
        return refuse_candidate(reason, path, name ? name : "?",
                                "a name is letters, digits and _, 60 at most");
    }
    if (is_taken(name)) return refuse_candidate(reason, path, name, "there is another of this name");
    const char *wrong = wrong_mask(says);
    if (wrong != NULL) return refuse_candidate(reason, path, name, wrong);
    if ((says->memory & backend->ground->memory) == 0) return 0; // left out
    if (says->comm != GT_COMM_NONE && (backend->ground->comms >> says->comm & 1) == 0) {
        char what[80];
        snprintf(what, sizeof what, "needs a communicator that there is not; %s there is",
                 backend->ground->comm_name);
        return refuse_candidate(reason, path, name, what);
    }
    if (says->places == 0)
        return refuse_candidate(reason, path, name, "works neither in place nor out of place");
    if (says->alignment > LARGEST_ALIGNMENT || (says->alignment & (says->alignment - 1)) != 0)
        return refuse_candidate(reason, path, name, "an alignment is a power of two, 4096 at most");
    if (says->max_bytes != 0 && says->min_bytes > says->max_bytes)
        return refuse_candidate(reason, path, name, "its smallest size is above its largest");
    return 0;
}

// Appends a candidate to the backend's; its name is its own, and what it fails at is told of the one that the
// library has.
static void append(struct plugin_candidate *candidate) {
    extern const struct strategy strategy_plugin;
    bool apart = candidate->has_epilogue_apart; // then the sum is rounded on its way to the epilogue
    snprintf(candidate->name, sizeof candidate->name, "%s%s", candidate->says.name, apart ? "_EPILOGUE" : "");
    if (apart && is_taken(candidate->name)) return; // the library has one of this name itself
    snprintf(candidate->work, sizeof candidate->work, "strategy %s", candidate->says.name);
    backend->candidates[(*backend->candidate_count)++] = (struct candidate){
        .name = candidate->name,
        .strategy = &strategy_plugin,
        .accumulates_fp32 = !apart && (candidate->says.flags & GT_FLAG_FP32) != 0,
        .ops = apart ? 1u << OP_ALLREDUCE : candidate->says.ops,
        .ompi_component = "",
        .mpich_algorithm = "",
        .plugin = candidate,
        .is_optional = apart,
    };
}

// Those of a library, and, where the backend has kernels for it, each allreduce with its epilogue apart.
static int add_candidates(struct plugin *plugin, char reason[]) {
    uint32_t count = plugin->functions.candidate_count;
    int before = candidate_count();
    if (count == 0) return refuse(reason, plugin->path, "has no candidate");
    bool has_twins = backend->ground->epilogue != NULL;
    if (count > (uint32_t)(MAX_CANDIDATES - before) / (has_twins ? 2 : 1)) {
        return refuse(reason, plugin->path, "has more candidates than there is room for");
    }
    plugin->candidates = calloc(count, 2 * sizeof *plugin->candidates);
    if (plugin->candidates == NULL) return refuse(reason, plugin->path, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        struct plugin_candidate *candidate = &plugin->candidates[2 * i], *apart = candidate + 1;
        candidate->plugin = plugin;
        candidate->index = i;
        if (plugin->functions.candidates[i] == NULL) {
            char what[80];
            snprintf(what, sizeof what, "candidate %u of %u is NULL", i + 1, count);
            return refuse(reason, plugin->path, what);
        }
        take_struct(&candidate->says, sizeof candidate->says, plugin->functions.candidates[i]);
        if (check_candidate(plugin, &candidate->says, reason) != 0) return -1;
        if ((candidate->says.memory & backend->ground->memory) == 0) continue;
        if (candidate->says.comm != GT_COMM_NONE) plugin->comm = candidate->says.comm;
        append(candidate);
        bool is_summed = (candidate->says.ops >> OP_ALLREDUCE & 1) != 0;
        if (!is_summed || !has_twins) continue;
        *apart = *candidate;
        apart->has_epilogue_apart = true;
        append(apart);
    }
    if (candidate_count() > before) return 0;
    char what[80];
    snprintf(what, sizeof what, "none of its candidates works on %s", backend->ground->where);
    return refuse(reason, plugin->path, what);
}

static int check_functions(const struct plugin *plugin, char reason[]) {
    const gt_plugin *functions = &plugin->functions;
    if (GENTABLES_PLUGIN_MAJOR_OF(functions->abi) != GENTABLES_PLUGIN_MAJOR) {
        return refuse(reason, plugin->path, "is of another version of the interface; this is version 1");
    }
    if (functions->init == NULL || functions->prepare == NULL || functions->run == NULL ||
        functions->release == NULL || functions->fini == NULL || functions->error == NULL ||
        functions->candidates == NULL) {
        return refuse(reason, plugin->path,
                      "lacks a function; init, prepare, run, release, fini and error it is");
    }
    return 0;
}

static uint64_t hash_file(const char *path) {
    uint64_t hash = 0xcbf29ce484222325u;
    FILE *file = fopen(path, "rb");
    for (int byte; file != NULL && (byte = getc(file)) != EOF;)
        hash = (hash ^ (uint64_t)byte) * 0x100000001b3u;
    if (file != NULL) fclose(file);
    return hash;
}

// Its name, as far as it is one; else its file's.
static void name_plugin(struct plugin *plugin) {
    const char *name = plugin->functions.name, *slash = strrchr(plugin->path, '/');
    if (name == NULL || !is_name(name)) name = slash != NULL ? slash + 1 : plugin->path;
    snprintf(plugin->name, sizeof plugin->name, "%s", name);
}

int plugins_load(const char *path, char reason[PLUGIN_REASON_SIZE]) {
    if (strchr(path, '/') == NULL) return refuse(reason, path, "a path has a slash, such as ./mine.so");
    if (plugin_count == PLUGINS_MAX) return refuse(reason, path, "one plug-in too many");
    struct plugin *plugin = &plugins[plugin_count];
    *plugin = (struct plugin){.hash = hash_file(path)};
    snprintf(plugin->path, sizeof plugin->path, "%s", path);
    const gt_plugin *says = library_ask(path, reason);
    if (says == NULL) return -1;
    take_struct(&plugin->functions, sizeof plugin->functions, says);
    if (check_functions(plugin, reason) != 0) return -1;
    name_plugin(plugin);
    plugin_count++;
    return add_candidates(plugin, reason);
}

uint64_t plugins_hash(void) {
    uint64_t hash = (uint64_t)plugin_count;
    for (int i = 0; i < plugin_count; i++) hash = hash * 0x9e3779b97f4a7c15u ^ plugins[i].hash;
    return hash;
}

void plugins_cancel(int rank) {
    struct plugin *plugin = atomic_load(&last_called[rank]);
    if (plugin != NULL) __atomic_store_n(&plugin->cancel[rank], 1, __ATOMIC_RELAXED);
}

// Before each call of a library: what it was told of an earlier one is over.
static void begin_call(struct plugin *plugin, struct group *group) {
    __atomic_store_n(&plugin->cancel[group->rank], 0, __ATOMIC_RELAXED);
    atomic_store(&last_called[group->rank], plugin);
    backend->ground->enter(group);
}

// Whether the library was told to end the call that it has come back from.
static bool is_cancelled(const struct plugin *plugin, int rank) {
    return __atomic_load_n(&plugin->cancel[rank], __ATOMIC_RELAXED) != 0;
}

int plugins_loaded(void) {
    return plugin_count;
}

const char *plugins_work(const struct candidate *candidate) {
    return candidate == NULL || candidate->plugin == NULL ? NULL : candidate->plugin->work;
}

const char *plugins_parameters(const struct candidate *candidate) {
    const struct plugin_candidate *plugin = candidate->plugin;
    return plugin == NULL || plugin->says.parameters == NULL ? "" : plugin->says.parameters;
}

bool plugins_has_epilogue_apart(const struct candidate *candidate) {
    return candidate->plugin != NULL && candidate->plugin->has_epilogue_apart;
}

size_t plugins_alignment(const struct candidate *candidate) {
    size_t alignment = candidate->plugin == NULL ? 0 : candidate->plugin->says.alignment;
    return alignment > 0 ? alignment : 1;
}

// Whether the part of the larger buffer that is every rank's smaller one in place lies where the candidate
// wants it.
static bool is_aligned_in_place(const gt_candidate *says, const struct group *group,
                                const struct call *call) {
    size_t unit = says->alignment > 0 ? says->alignment : 1;
    bool is_gathered = call->op == OP_ALLGATHER;
    if (!is_gathered && call->op != OP_REDUCESCATTER) return true;
    size_t share = call_elements(call) / (size_t)group->size;
    return share * dtype_sizes_bytes[call->dtype] % unit == 0;
}

const char *plugins_place_refusal(const struct candidate *candidate, const struct group *group,
                                  const struct call *call, bool in_place) {
    if (candidate->plugin == NULL) return in_place ? "is not called in place" : NULL;
    const gt_candidate *says = &candidate->plugin->says;
    if ((says->places & (in_place ? GT_PLACE_IN : GT_PLACE_OUT)) == 0)
        return in_place ? "does not work in place" : "works in place alone";
    if (!in_place) return NULL;
    if (call->op == OP_ALLTOALL || call->op == OP_ALLTOALLV)
        return "works in place alone, and NCCL defines none for this op";
    if (call->fusion != FUSION_NONE && !candidate->plugin->has_epilogue_apart)
        return "works in place alone, and an epilogue is not called so";
    if (!is_aligned_in_place(says, group, call))
        return "its part of the buffer in place has no such alignment";
    return NULL;
}

bool plugins_is_in_place(const struct candidate *candidate) {
    return candidate->plugin != NULL && (candidate->plugin->says.places & GT_PLACE_OUT) == 0;
}

const char *plugins_place(const struct candidate *candidate) {
    if (candidate->plugin == NULL) return NULL;
    return plugins_is_in_place(candidate) ? "in" : "out";
}

bool call_is_in_place(const struct call *call, int rank) {
    size_t element_bytes = dtype_sizes_bytes[call->dtype];
    const char *in = call->input, *out = call->out;
    switch (call->op) {
    case OP_ALLREDUCE:
    case OP_BROADCAST: return in == out;
    case OP_ALLGATHER: return in == out + call->traffic->receive_at[rank] * element_bytes;
    case OP_REDUCESCATTER: return out == in + call->traffic->send_at[rank] * element_bytes;
    default: return false;
    }
}

void call_put_in_place(struct call *call, int rank, void *buffer) {
    size_t element_bytes = dtype_sizes_bytes[call->dtype], at = 0, out_at = 0;
    if (call->op == OP_ALLGATHER) at = call->traffic->receive_at[rank] * element_bytes;
    if (call->op == OP_REDUCESCATTER) out_at = call->traffic->send_at[rank] * element_bytes;
    call->input = (char *)buffer + at;
    call->out = (char *)buffer + out_at;
}

// Calls whose data sets lie `stride` apart, and not each where an array begins.
static bool is_strided_well(const gt_candidate *says, const struct call *call) {
    bool has_rows = call->fusion != FUSION_NONE || call->plan == NULL;
    size_t stride = call->op == OP_ALLREDUCE ? call->hidden_size : CELL_STRIDE_ELEMENTS;
    return !has_rows || says->alignment <= 1 ||
           stride * dtype_sizes_bytes[call->dtype] % says->alignment == 0;
}

const char *plugins_refusal(const struct candidate *candidate, const struct group *group,
                            const struct call *call) {
    const gt_candidate *says = &candidate->plugin->says;
    size_t bytes = call_bytes(call);
    if ((says->dtypes >> call->dtype & 1) == 0) return "does not do this data type";
    bool is_fused = call->fusion != FUSION_NONE && !candidate->plugin->has_epilogue_apart;
    if (is_fused && (says->fusions >> call->fusion & 1) == 0) return "has no such fusion";
    if (!is_fused && (says->fusions >> FUSION_NONE & 1) == 0) return "does no call without an epilogue";
    if (call->fusion == FUSION_NONE && candidate->plugin->has_epilogue_apart)
        return "there is no epilogue to separate";
    if (says->world_sizes != 0 && (says->world_sizes >> group->size & 1) == 0)
        return "does not do this number of ranks";
    if (bytes < says->min_bytes) return "does not do so small a size";
    if (says->max_bytes != 0 && bytes > says->max_bytes) return "does not do so large a size";
    if (says->count_multiple > 1 && call_elements(call) % says->count_multiple != 0)
        return "does not do a number of elements that is no multiple of its own";
    if (!is_strided_well(says, call)) return "needs rows of a better alignment";
    return plugins_place_refusal(candidate, group, call, plugins_is_in_place(candidate));
}

// ---- callbacks ----------------------------------------------------------------------------------

// Collective calls in a run have to be declared.
static bool may_call(struct instance *instance) {
    char text[FAILURE_SIZE];
    if (instance->in_run == NULL) return true;
    snprintf(text, sizeof text, "strategy %s: a collective callback in run, which was not declared",
             instance->in_run);
    group_fail(instance->group, text);
    return false;
}

static int host_allgather(void *context, const void *in, void *out, size_t bytes) {
    struct instance *instance = context;
    if (!may_call(instance)) return -1;
    return backend->ground->allgather(instance->ground, in, out, bytes);
}

static int host_barrier(void *context) {
    struct instance *instance = context;
    return may_call(instance) ? backend->ground->barrier(instance->ground) : -1;
}

static void *host_allocate(void *context, size_t bytes, int shared) {
    struct instance *instance = context;
    char reason[REASON_SIZE];
    if (shared && !may_call(instance)) return NULL;
    struct allocation *allocation = calloc(1, sizeof *allocation);
    if (allocation == NULL) return NULL;
    size_t rounded = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    allocation->shared_bytes = shared ? rounded : 0;
    allocation->memory = shared ? group_map(instance->group, rounded, reason, sizeof reason)
                                : aligned_alloc(CACHE_LINE, rounded);
    if (allocation->memory == NULL) {
        free(allocation);
        return NULL;
    }
    if (!shared) memset(allocation->memory, 0, rounded);
    allocation->next = instance->allocations;
    instance->allocations = allocation;
    return allocation->memory;
}

static void host_free(void *context, void *memory) {
    struct instance *instance = context;
    for (struct allocation **at = &instance->allocations; *at != NULL; at = &(*at)->next) {
        struct allocation *found = *at;
        if (found->memory != memory) continue;
        *at = found->next;
        if (found->shared_bytes > 0)
            group_unmap(memory, found->shared_bytes);
        else
            free(memory);
        free(found);
        return;
    }
}

// One line at a time, whatever the library makes of it: what ranks say is one stream in the end.
static void host_log(void *context, const char *line) {
    const struct instance *instance = context;
    char text[LOG_SIZE];
    snprintf(text, sizeof text, "%s", line == NULL ? "" : line);
    for (char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ') *at = ' ';
    }
    fprintf(stderr, "gentables-bench: log of %s, rank %d: %s\n", instance->plugin->name,
            instance->group->rank, text);
}

// ---- one rank's state ---------------------------------------------------------------------------

static const char *error_of(const struct plugin *plugin, void *state) {
    const char *text = plugin->functions.error(state);
    return text == NULL || text[0] == '\0' ? "it does not say why" : text;
}

static void fill_rank(struct instance *instance) {
    instance->host = (gt_host){.size = sizeof instance->host,
                               .context = instance,
                               .allgather = host_allgather,
                               .barrier = host_barrier,
                               .allocate = host_allocate,
                               .free = host_free,
                               .log = host_log,
                               .cancel = &instance->plugin->cancel[instance->group->rank]};
    instance->rank = (gt_rank){.size = sizeof instance->rank,
                               .rank = instance->group->rank,
                               .world_size = instance->group->size,
                               .local_rank = instance->group->rank, // a group is of one machine
                               .local_size = instance->group->size,
                               .threads = instance->group->shares_process,
                               .device = -1,
                               .host = &instance->host};
}

static void close_instance(struct instance *instance) {
    if (instance->ground != NULL) backend->ground->close(instance->ground);
    free(instance);
}

// Whether init went well here. `has_state`: there is one, which maybe came too late.
static bool start_instance(struct instance *instance, bool *has_state, char reason[REASON_SIZE]) {
    struct group *group = instance->group;
    struct plugin *plugin = instance->plugin;
    fill_rank(instance);
    if (backend->ground->open(group, plugin->comm, &instance->rank, &instance->ground, reason) != 0)
        return false;
    begin_call(plugin, group);
    *has_state = plugin->functions.init(&instance->rank, &instance->state) == GT_OK;
    bool was_late = is_cancelled(plugin, group->rank);
    if (*has_state && !was_late) return true;
    snprintf(reason, REASON_SIZE, "its init failed: %s",
             was_late ? "did not come back in time" : error_of(plugin, NULL));
    return false;
}

static void end_instance(struct instance *instance) {
    begin_call(instance->plugin, instance->group);
    instance->plugin->functions.fini(instance->state);
    close_instance(instance);
}

// Collective. NULL: `reason`. Since fini is collective, it is called where all ranks have a state.
static struct instance *make_instance(struct plugin *plugin, struct group *group, char reason[REASON_SIZE]) {
    struct instance *instance = calloc(1, sizeof *instance);
    bool done = false, has_state = false;
    snprintf(reason, REASON_SIZE, "out of memory");
    if (group_min(group, instance != NULL) == 0) {
        free(instance);
        return NULL;
    }
    instance->plugin = plugin;
    instance->group = group;
    done = start_instance(instance, &has_state, reason);
    if (group_min(group, done) != 0) return instance;
    if (done) snprintf(reason, REASON_SIZE, "its init failed on another rank");
    if (group_min(group, has_state) != 0)
        end_instance(instance);
    else
        close_instance(instance);
    return NULL;
}

// Collective, as init is. The first candidate of a plug-in makes it, the others share it, or why there is
// none.
static struct instance *open_instance(struct plugin *plugin, struct group *group, char reason[REASON_SIZE]) {
    int rank = group->rank;
    if (plugin->users[rank] == 0 && plugin->refusals[rank][0] == '\0') {
        plugin->instances[rank] = make_instance(plugin, group, plugin->refusals[rank]);
        if (plugin->instances[rank] != NULL) plugin->refusals[rank][0] = '\0';
    }
    snprintf(reason, REASON_SIZE, "%s", plugin->refusals[rank]);
    if (reason[0] != '\0') return NULL;
    plugin->users[rank]++;
    return plugin->instances[rank];
}

static int plugin_setup(const struct candidate *candidate, struct group *group, void **state,
                        char reason[REASON_SIZE]) {
    struct plugin_candidate *own = (struct plugin_candidate *)(uintptr_t)candidate->plugin;
    struct instance *instance = open_instance(own->plugin, group, reason);
    if (instance == NULL) return -1;
    struct plugin_state *made = calloc(1, sizeof *made);
    *state = made;
    if (made == NULL) return -1;
    *made = (struct plugin_state){.candidate = own, .instance = instance};
    return 0;
}

// ---- plans --------------------------------------------------------------------------------------

// What a plug-in sees of a call's shape. The arrays live in `counts`.
static gt_call shape_of(const struct call *call, const struct group *group, uint64_t counts[4][MAX_RANKS]) {
    gt_call shape = {.size = sizeof shape,
                     .op = (int32_t)call->op,
                     .dtype = (int32_t)call->dtype,
                     .reduce_op = GT_SUM,
                     .fusion = (int32_t)call->fusion,
                     .place = call_is_in_place(call, group->rank) ? GT_PLACE_IN : GT_PLACE_OUT,
                     .root = call->root,
                     .captured = call->captured,
                     .send_counts = counts[0],
                     .send_offsets = counts[1],
                     .receive_counts = counts[2],
                     .receive_offsets = counts[3],
                     .hidden_size = (uint32_t)call->hidden_size,
                     .epsilon = call->epsilon,
                     .scale = call->scale};
    const struct traffic *traffic = call->traffic;
    for (int rank = 0; rank < group->size; rank++) {
        counts[0][rank] = traffic ? traffic->sent[rank] : call_elements(call);
        counts[1][rank] = traffic ? traffic->send_at[rank] : 0;
        counts[2][rank] = traffic ? traffic->received[rank] : call_elements(call);
        counts[3][rank] = traffic ? traffic->receive_at[rank] : 0;
    }
    shape.count = traffic ? traffic->largest : call_elements(call);
    shape.send_elements = traffic ? traffic->send_elements : call_elements(call);
    shape.receive_elements = traffic ? traffic->receive_elements : call_elements(call);
    return shape;
}

static void fail_candidate(const struct plugin_state *state, const char *what, const char *why) {
    char text[FAILURE_SIZE];
    snprintf(text, sizeof text, "strategy %s: %s: %s", state->candidate->says.name, what, why);
    group_fail(state->instance->group, text);
}

// Whether the plan can be used: with the workspace that it wants.
static bool complete_plan(struct plan *made, gt_status status, char reason[REASON_SIZE]) {
    const struct plugin *plugin = made->candidate->plugin;
    void *state = plugin->instances[made->group->rank]->state;
    if (status == GT_UNSUPPORTED) {
        snprintf(reason, REASON_SIZE, "does not do such a call");
    } else if (is_cancelled(plugin, made->group->rank)) {
        snprintf(reason, REASON_SIZE, "prepare: did not come back in time: it ended when it was cancelled");
    } else if (status != GT_OK) {
        snprintf(reason, REASON_SIZE, "prepare: %s", error_of(plugin, state));
    } else if (made->workspace_bytes > 0 && guarded_open(made->group, &made->workspace, made->workspace_bytes,
                                                         backend->ground->alignment, true) != 0) {
        snprintf(reason, REASON_SIZE, "no memory for its workspace");
    } else {
        return true;
    }
    return false;
}

// What the first rank has to say that cannot do it, on all ranks; 0: all can.
static int share_refusal(struct group *group, int status, char reason[REASON_SIZE]) {
    long first = group_min(group, status == 0 ? INT32_MAX : group->rank);
    if (first == INT32_MAX) return 0;
    group_broadcast(group, (int)first, &status, sizeof status);
    group_broadcast(group, (int)first, reason, REASON_SIZE);
    return status;
}

static void call_release(const struct plan *plan) {
    struct plugin *plugin = plan->candidate->plugin;
    begin_call(plugin, plan->group);
    plugin->functions.release(plan->plan);
}

// Collective. 1: it is not made for such a call; -1: it cannot; `reason`, alike on all ranks.
static int prepare(struct plugin_state *state, const struct call *call, struct plan **plan,
                   char reason[REASON_SIZE]) {
    const gt_plugin *functions = &state->candidate->plugin->functions;
    struct group *group = state->instance->group;
    uint64_t counts[4][MAX_RANKS];
    gt_call shape = shape_of(call, group, counts);
    gt_status status = GT_FAILED;
    struct plan *made = calloc(1, sizeof *made);
    if (group_min(group, made != NULL) == 0) {
        free(made);
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    made->candidate = state->candidate;
    made->group = group;
    begin_call(state->candidate->plugin, group);
    status = functions->prepare(state->instance->state, state->candidate->index, &shape,
                                &made->workspace_bytes, &made->plan);
    bool is_done = complete_plan(made, status, reason);
    int refusal = share_refusal(group, is_done ? 0 : status == GT_UNSUPPORTED ? 1 : -1, reason);
    *plan = refusal == 0 ? made : NULL;
    if (refusal == 0) return 0;
    if (status == GT_OK) call_release(made);
    guarded_close(group, &made->workspace);
    free(made);
    return refusal;
}

static bool release(struct plan *plan) {
    call_release(plan);
    bool whole = guarded_is_whole(plan->group, &plan->workspace);
    guarded_close(plan->group, &plan->workspace);
    free(plan);
    return whole;
}

bool plugins_release(const struct candidate *candidate, void *plan) {
    return candidate->plugin == NULL || plan == NULL || release(plan);
}

static bool is_of(const struct kept_plan *kept, const struct call *call, size_t largest, bool in_place) {
    const struct call *of = &kept->call;
    return of->op == call->op && of->dtype == call->dtype && of->fusion == call->fusion &&
           of->num_tokens == call->num_tokens && of->hidden_size == call->hidden_size &&
           of->root == call->root && of->captured == call->captured && kept->largest == largest &&
           kept->in_place == in_place;
}

// The plan of this call's shape, where the caller keeps none.
static int kept_plan(struct plugin_state *state, const struct call *call, struct plan **plan,
                     char reason[REASON_SIZE]) {
    size_t largest = call->traffic ? call->traffic->largest : 0;
    bool in_place = call_is_in_place(call, state->instance->group->rank);
    for (size_t i = state->kept_count; i-- > 0;) {
        *plan = state->kept[i].plan;
        if (is_of(&state->kept[i], call, largest, in_place)) return 0;
    }
    struct kept_plan *more = realloc(state->kept, (state->kept_count + 1) * sizeof *more);
    if (more != NULL) state->kept = more;
    if (group_min(state->instance->group, more != NULL) == 0) {
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    int status = prepare(state, call, plan, reason);
    if (status == 0) more[state->kept_count++] = (struct kept_plan){*call, largest, in_place, *plan};
    return status;
}

static int plan_of(struct plugin_state *state, const struct call *call, struct plan **plan,
                   char reason[REASON_SIZE]) {
    if (call->plan == NULL) return kept_plan(state, call, plan, reason);
    *plan = *call->plan;
    if (*plan != NULL) return 0;
    int status = prepare(state, call, plan, reason);
    *call->plan = *plan;
    return status;
}

// ---- the struct of functions --------------------------------------------------------------------

static const char *plugin_supports(const struct group *group, const struct call *call) {
    (void)group;
    (void)call;
    return NULL; // plugins_refusal has the candidate that it takes to say so
}

// What the library is asked for: where the epilogue comes apart, the sum, to where that finds it.
static struct call own_part(const struct plugin_state *state, const struct call *call) {
    struct call part = *call;
    if (!state->candidate->has_epilogue_apart) return part;
    part.fusion = FUSION_NONE;
    part.out = call->residual_out;
    part.residual = part.gamma = NULL;
    part.residual_out = NULL;
    part.block_scales = NULL;
    return part;
}

static int plugin_prepare(void *state, const struct call *whole, char reason[REASON_SIZE]) {
    struct plugin_state *own = state;
    struct plan *unused;
    struct call call = own_part(own, whole);
    if (!call.captured || (own->candidate->says.flags & GT_FLAG_CAPTURABLE) != 0)
        return plan_of(own, &call, &unused, reason);
    snprintf(reason, REASON_SIZE, "cannot be captured into a graph");
    return 1;
}

// The library's part of a call.
static int run_part(struct plugin_state *own, const struct call *call) {
    struct plan *plan;
    char reason[REASON_SIZE];
    if (plan_of(own, call, &plan, reason) != 0) {
        fail_candidate(own, "run", reason);
        return -1;
    }
    bool is_fused = call->fusion != FUSION_NONE;
    bool has_codes = call->fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_FP8 ||
                     call->fusion == FUSION_RESIDUAL_RMS_NORM_QUANT_NVFP4;
    gt_buffers buffers = {.size = sizeof buffers,
                          .send = call->input,
                          .receive = is_fused ? NULL : call->out,
                          .workspace = plan->workspace.data,
                          .workspace_bytes = plan->workspace_bytes,
                          .residual_in = call->residual,
                          .norm_weight = call->gamma,
                          .residual_out = call->residual_out,
                          .norm_out = is_fused && !has_codes ? call->out : NULL,
                          .quant_out = has_codes ? call->out : NULL,
                          .scale_out = call->block_scales};
    begin_call(own->candidate->plugin, plan->group);
    bool is_declared = (own->candidate->says.flags & GT_FLAG_COLLECTIVE_RUN) != 0;
    own->instance->in_run = is_declared ? NULL : own->candidate->says.name;
    gt_status status =
        own->candidate->plugin->functions.run(plan->plan, &buffers, own->instance->rank.stream);
    own->instance->in_run = NULL;
    bool was_late = is_cancelled(own->candidate->plugin, plan->group->rank);
    if (status == GT_OK && !was_late) return 0;
    if (was_late)
        fail_candidate(own, "did not come back in time", "it ended when it was cancelled");
    else
        fail_candidate(own, "run", error_of(own->candidate->plugin, own->instance->state));
    return -1;
}

static int plugin_run(void *state, const struct call *call) {
    struct plugin_state *own = state;
    struct call part = own_part(own, call);
    if (run_part(own, &part) != 0) return -1;
    bool apart = own->candidate->has_epilogue_apart;
    return !apart || backend->ground->epilogue(own->instance->group, call) ? 0 : -1;
}

static void plugin_teardown(void *state) {
    struct plugin_state *own = state;
    struct plugin *plugin = own->candidate->plugin;
    struct group *group = own->instance->group;
    for (size_t i = 0; i < own->kept_count; i++) release(own->kept[i].plan);
    if (--plugin->users[group->rank] == 0) {
        end_instance(own->instance);
    }
    free(own->kept);
    free(own);
}

const struct strategy strategy_plugin = {
    .supports = plugin_supports,
    .setup = plugin_setup,
    .run = plugin_run,
    .teardown = plugin_teardown,
    .prepare = plugin_prepare,
};
