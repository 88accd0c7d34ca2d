// Plug-ins, loaded and checked; see plugins.h.
#include "plugins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/backend.h"
#include "elements/fnv1a.h"
#include "library.h"
#include "plugin_state.h"
#include "plugin_strategy.h"

enum { LARGEST_ALIGNMENT = 4096 };

_Static_assert((int)GT_OP_ALLREDUCE == OP_ALLREDUCE && (int)GT_OP_ALLGATHER == OP_ALLGATHER &&
                   (int)GT_OP_REDUCESCATTER == OP_REDUCESCATTER && (int)GT_OP_ALLTOALL == OP_ALLTOALL &&
                   (int)GT_OP_ALLTOALLV == OP_ALLTOALLV && (int)GT_OP_BROADCAST == OP_BROADCAST,
               "the ops of the interface are those of the list");
_Static_assert((int)GT_BFLOAT16 == DTYPE_BFLOAT16 && (int)GT_FLOAT16 == DTYPE_FLOAT16 &&
                   (int)GT_FLOAT32 == DTYPE_FLOAT32,
               "and the data types");

static struct plugin plugins[PLUGINS_MAX];
static int plugin_count;

// ---- what a library declares --------------------------------------------------------------------

// Copies a struct of the size that it begins with; the rest is zero.
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

// The first error in the numbers and masks of a candidate, or NULL. Unknown values are rejected.
static const char *wrong_mask(const gt_candidate *declared) {
    const unsigned known_flags = GT_FLAG_COLLECTIVE_RUN | GT_FLAG_CAPTURABLE | GT_FLAG_FP32;
    bool sums = false;
    for (int op = 0; op < OPS; op++) sums = sums || ((declared->ops >> op & 1) != 0 && op_sums[op]);
    if (declared->ops == 0 || declared->ops >> OPS != 0) return "declares no op, or an unknown one";
    if (declared->dtypes == 0 || declared->dtypes >> DTYPES != 0)
        return "declares no data type, or an unknown one";
    if (declared->reduce_ops >> (GT_SUM + 1) != 0) return "declares an unknown reduce op";
    if (sums && declared->reduce_ops == 0)
        return "declares an op that sums, but no reduce op; set reduce_ops to 1u << GT_SUM";
    if (declared->fusions >> FUSIONS != 0) return "declares an unknown fusion";
    if (declared->fusions == 0)
        return "declares no fusion; without an epilogue set fusions to 1u << GT_FUSION_NONE";
    if ((declared->memory & ~(unsigned)(GT_MEMORY_HOST | GT_MEMORY_CUDA)) != 0)
        return "declares an unknown kind of memory";
    if ((declared->places & ~(unsigned)(GT_PLACE_OUT | GT_PLACE_IN)) != 0) return "declares an unknown place";
    if ((declared->flags & ~known_flags) != 0) return "declares an unknown flag";
    if (declared->comm > GT_COMM_NCCL) return "declares an unknown kind of communicator";
    return NULL;
}

static int check_candidate(const struct plugin *plugin, const gt_candidate *declared, char reason[]) {
    const char *path = plugin->path, *name = declared->name;
    if (name == NULL || !is_name(name)) {
        return refuse_candidate(reason, path, name ? name : "?",
                                "invalid name; a name has letters, digits and _, at most 60");
    }
    if (is_taken(name)) return refuse_candidate(reason, path, name, "another candidate has this name");
    const char *wrong = wrong_mask(declared);
    if (wrong != NULL) return refuse_candidate(reason, path, name, wrong);
    if ((declared->memory & backend->services->memory) == 0) return 0; // skipped
    if (declared->comm != GT_COMM_NONE && (backend->services->comms >> declared->comm & 1) == 0) {
        char what[80];
        snprintf(what, sizeof what, "needs another communicator than this backend's, which is %s",
                 backend->services->comm_name);
        return refuse_candidate(reason, path, name, what);
    }
    if (declared->places == 0)
        return refuse_candidate(reason, path, name, "works neither in place nor out of place");
    if (declared->alignment > LARGEST_ALIGNMENT || (declared->alignment & (declared->alignment - 1)) != 0)
        return refuse_candidate(reason, path, name, "its alignment must be a power of two, at most 4096");
    if (declared->max_bytes != 0 && declared->min_bytes > declared->max_bytes)
        return refuse_candidate(reason, path, name, "its min_bytes is larger than its max_bytes");
    return 0;
}

// Appends a candidate to the backend's. Faults of a NAME_EPILOGUE are reported as those of NAME, the
// library's candidate.
static void append(struct plugin_candidate *candidate) {
    bool apart = candidate->has_epilogue_apart; // then the sum is rounded before the epilogue reads it
    snprintf(candidate->name, sizeof candidate->name, "%s%s", candidate->declared.name,
             apart ? "_EPILOGUE" : "");
    if (apart && is_taken(candidate->name)) return; // the library has a candidate of this name
    snprintf(candidate->work, sizeof candidate->work, "strategy %s", candidate->declared.name);
    backend->candidates[(*backend->candidate_count)++] = (struct candidate){
        .name = candidate->name,
        .strategy = &strategy_plugin,
        .accumulates_fp32 = !apart && (candidate->declared.flags & GT_FLAG_FP32) != 0,
        .ops = apart ? 1u << OP_ALLREDUCE : candidate->declared.ops,
        .ompi_component = "",
        .mpich_algorithm = "",
        .plugin = candidate,
        .is_optional = apart,
    };
}

// Adds the candidates of a library; if the backend has epilogue kernels, also NAME_EPILOGUE of each
// allreduce.
static int add_candidates(struct plugin *plugin, char reason[]) {
    uint32_t count = plugin->functions.candidate_count;
    int before = candidate_count();
    if (count == 0) return refuse(reason, plugin->path, "has no candidate");
    bool has_twins = backend->services->epilogue != NULL;
    if (count > (uint32_t)(MAX_CANDIDATES - before) / (has_twins ? 2 : 1)) {
        return refuse(reason, plugin->path, "has too many candidates");
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
        take_struct(&candidate->declared, sizeof candidate->declared, plugin->functions.candidates[i]);
        if (check_candidate(plugin, &candidate->declared, reason) != 0) return -1;
        if ((candidate->declared.memory & backend->services->memory) == 0) continue;
        if (candidate->declared.comm != GT_COMM_NONE) plugin->comm = candidate->declared.comm;
        append(candidate);
        bool is_summed = (candidate->declared.ops >> OP_ALLREDUCE & 1) != 0;
        if (!is_summed || !has_twins) continue;
        *apart = *candidate;
        apart->has_epilogue_apart = true;
        append(apart);
    }
    if (candidate_count() > before) return 0;
    char what[80];
    snprintf(what, sizeof what, "none of its candidates works on %s", backend->services->where);
    return refuse(reason, plugin->path, what);
}

static int check_functions(const struct plugin *plugin, char reason[]) {
    const gt_plugin *functions = &plugin->functions;
    if (GENTABLES_PLUGIN_MAJOR_OF(functions->abi) != GENTABLES_PLUGIN_MAJOR) {
        return refuse(reason, plugin->path, "is of another version of the interface; version 1 is required");
    }
    if (functions->init == NULL || functions->prepare == NULL || functions->run == NULL ||
        functions->release == NULL || functions->fini == NULL || functions->error == NULL ||
        functions->candidates == NULL) {
        return refuse(
            reason, plugin->path,
            "lacks a function or the list of candidates; init, prepare, run, release, fini and error "
            "are required");
    }
    return 0;
}

static uint64_t hash_file(const char *path) {
    uint64_t hash = FNV1A_START;
    FILE *file = fopen(path, "rb");
    for (int byte; file != NULL && (byte = getc(file)) != EOF;) hash = fnv1a_add(hash, (uint64_t)byte);
    if (file != NULL) fclose(file);
    return hash;
}

// Its declared name if that is valid, else its file's.
static void name_plugin(struct plugin *plugin) {
    const char *name = plugin->functions.name, *slash = strrchr(plugin->path, '/');
    if (name == NULL || !is_name(name)) name = slash != NULL ? slash + 1 : plugin->path;
    snprintf(plugin->name, sizeof plugin->name, "%s", name);
}

int plugins_load(const char *path, char reason[PLUGIN_REASON_SIZE]) {
    if (strchr(path, '/') == NULL) return refuse(reason, path, "the path needs a slash, such as ./mine.so");
    if (plugin_count == PLUGINS_MAX) return refuse(reason, path, "too many plug-ins; maximum 16");
    struct plugin *plugin = &plugins[plugin_count];
    *plugin = (struct plugin){.hash = hash_file(path)};
    snprintf(plugin->path, sizeof plugin->path, "%s", path);
    const gt_plugin *declared = library_load(path, reason);
    if (declared == NULL) return -1;
    take_struct(&plugin->functions, sizeof plugin->functions, declared);
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

int plugins_loaded(void) {
    return plugin_count;
}

const char *plugins_work(const struct candidate *candidate) {
    return candidate == NULL || candidate->plugin == NULL ? NULL : candidate->plugin->work;
}

const char *plugins_parameters(const struct candidate *candidate) {
    const struct plugin_candidate *plugin = candidate->plugin;
    return plugin == NULL || plugin->declared.parameters == NULL ? "" : plugin->declared.parameters;
}

bool plugins_has_epilogue_apart(const struct candidate *candidate) {
    return candidate->plugin != NULL && candidate->plugin->has_epilogue_apart;
}
