// MPI: the library's call for each op; the epilogue of an allreduce is a separate pass. The candidates are
// the library's own decision, the algorithms of Open MPI's coll/tuned, and other components of its coll
// framework, all in one process.
//
// An algorithm is chosen per communicator: coll/tuned reads coll_tuned_OP_algorithm when a communicator is
// made, so the control variable is written before MPI_Comm_dup and set back after it. That works only if
// coll_tuned_use_dynamic_rules is 1 from the start. The info key ompi_comm_coll_preference prefers a
// component, if its priority is at least 1 from the start. Whether coll/sm really serves the communicator is
// shown by the files that it maps. On several nodes coll/tuned must be preferred, since another component may
// have a higher priority there. MPICH reads its variable in every call.
//
// 16-bit types are summed by an operation of ours (mpi_sums.h). Algorithms of MPICH that support only
// predefined operations are strategies for float32.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elements/strategy.h"
#include "host/control_variables.h"
#include "host/epilogue.h"
#include "ranks/group_mpi.h"
#include "ranks/mpi_sums.h"

struct mpi {
    struct group *group;
    MPI_T_cvar_handle algorithm; // of MPICH, if one is forced
    int algorithm_number;
    MPI_Comm comm;
    struct mpi_sums sums;
    void *sum; // of calls with an epilogue
    size_t sum_bytes;
};

static const char *mpi_supports(const struct group *group, const struct call *call) {
    (void)group;
    return call_elements(call) > INT32_MAX ? "more elements than MPI counts" : NULL;
}

// MPICH ends the program if such an algorithm is forced for a user-defined operation, or for fewer elements
// than it can scatter.
static const char *mpi_own_supports(const struct group *group, const struct call *call) {
    if (call->dtype != DTYPE_FLOAT32) {
        return "MPICH has this algorithm for MPI's own operations only: float32, not 16-bit sums";
    }
    if (call_elements(call) < (size_t)group->size) return "fewer elements than ranks";
    return mpi_supports(group, call);
}

// ---- one algorithm of coll/tuned ----------------------------------------------------------------

// Writes the variable of each op that this candidate forces; with `back` resets it to the library's choice.
static int force_algorithms(const struct candidate *candidate, bool back, char reason[REASON_SIZE]) {
    for (int op = 0; op < OPS; op++) {
        int algorithm = back ? 0 : candidate->ompi_algorithms[op];
        char name[80];
        snprintf(name, sizeof name, "coll_tuned_%s_algorithm", op_ompi_names[op]);
        if (candidate->ompi_algorithms[op] == 0) continue;
        if (control_variable_write(name, algorithm) == 0) continue;
        snprintf(reason, REASON_SIZE, "this MPI has no %s %d", name, algorithm);
        return -1;
    }
    return 0;
}

static void dup_preferring(const struct group *group, const char *component, MPI_Comm *comm) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "ompi_comm_coll_preference", component);
    MPI_Comm_dup_with_info(group_comm(group), info, comm);
    MPI_Info_free(&info);
}

static int dup_with_algorithms(const struct group *group, const struct candidate *candidate, MPI_Comm *comm,
                               char reason[REASON_SIZE]) {
    char ignored[REASON_SIZE];
    if (!control_variable_is_on("coll_tuned_use_dynamic_rules")) {
        snprintf(reason, REASON_SIZE, "needs Open MPI with --mca coll_tuned_use_dynamic_rules 1");
        return -1;
    }
    int status = force_algorithms(candidate, false, reason);
    if (status == 0 && group->nodes > 1) dup_preferring(group, "tuned", comm);
    if (status == 0 && group->nodes == 1) MPI_Comm_dup(group_comm(group), comm);
    force_algorithms(candidate, true, ignored);
    return status;
}

static bool forces_algorithms(const struct candidate *candidate) {
    for (int op = 0; op < OPS; op++) {
        if (candidate->ompi_algorithms[op] != 0) return true;
    }
    return false;
}

// ---- another component --------------------------------------------------------------------------

// Whether this process has mapped a file of the component, as coll/sm does on the first collective call.
static bool has_mapped(const char *component) {
    char needle[64], line[512];
    snprintf(needle, sizeof needle, "/coll-%s-", component);
    FILE *maps = fopen("/proc/self/maps", "r");
    bool found = false;
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
        found = strstr(line, needle) != NULL;
    }
    if (maps != NULL) fclose(maps);
    return found;
}

// Whether Open MPI has the component, and offers it for communicators.
static bool is_offered(const char *component) {
    char name[64];
    int priority = 0;
    snprintf(name, sizeof name, "coll_%s_priority", component);
    return control_variable_read(name, &priority) == 0 && priority >= 1;
}

// The allreduce of coll/han in segments, in Open MPI 4.1.4, writes beyond its memory. Its simple one, without
// segments, does not.
static bool damages_memory(const char *component) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    return strcmp(component, "han") == 0 && strncmp(version, "Open MPI v4.", 12) == 0 &&
           !control_variable_is_on("coll_han_use_simple_allreduce");
}

static int dup_with_component(const struct group *group, const char *component, MPI_Comm *comm,
                              char reason[REASON_SIZE]) {
    if (damages_memory(component)) {
        snprintf(reason, REASON_SIZE,
                 "needs --mca coll_han_use_simple_allreduce 1, since coll/han's allreduce in "
                 "segments damages memory");
        return -1;
    }
    dup_preferring(group, component, comm);
    int mine = 1, sum = 0, taken, all;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, *comm);
    taken = group->nodes > 1 ? is_offered(component) : has_mapped(component);
    MPI_Allreduce(&taken, &all, 1, MPI_INT, MPI_MIN, group_comm(group));
    if (all) return 0;
    MPI_Comm_free(comm);
    snprintf(reason, REASON_SIZE,
             "Open MPI did not choose coll/%s; it must be installed, and requires --mca coll_%s_priority 1",
             component, component);
    return -1;
}

// ---- one algorithm of MPICH ---------------------------------------------------------------------

// The number of an algorithm: its position in the list of the variable's description, with entries such as
// `name - description`. -1: it is not in the list.
static int number_of(const char *description, const char *algorithm) {
    for (const char *at = strstr(description, algorithm); at != NULL; at = strstr(at + 1, algorithm)) {
        const char *end = at + strlen(algorithm), *dash = end + strspn(end, " ");
        if (dash == end || strncmp(dash, "- ", 2) != 0) continue;
        int number = 0;
        for (const char *before = strstr(description, " - "); before != NULL && before < at;
             before = strstr(before + 1, " - ")) {
            number++;
        }
        return number;
    }
    return -1;
}

// Finds the variable, which MPICH reads in every call.
static int open_mpich_algorithm(struct mpi *mpi, const char *algorithm, char reason[REASON_SIZE]) {
    static const char variable[] = "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM";
    char name[64], description[8192];
    int index, count, verbosity, bind, scope, name_size = sizeof name, description_size = sizeof description;
    MPI_Datatype type;
    MPI_T_enum kinds;
    mpi->algorithm_number = -1;
    if (control_variable_is_there(variable) && MPI_T_cvar_get_index(variable, &index) == MPI_SUCCESS &&
        MPI_T_cvar_get_info(index, name, &name_size, &verbosity, &type, &kinds, description,
                            &description_size, &bind, &scope) == MPI_SUCCESS &&
        MPI_T_cvar_handle_alloc(index, NULL, &mpi->algorithm, &count) == MPI_SUCCESS) {
        mpi->algorithm_number = number_of(description, algorithm);
    }
    if (mpi->algorithm_number >= 0) return 0;
    snprintf(reason, REASON_SIZE, "needs a bench built with MPICH, which has %s=%s", variable, algorithm);
    return -1;
}

// ---- the struct of functions --------------------------------------------------------------------

static int mpi_setup(const struct candidate *candidate, struct group *group, void **state,
                     char reason[REASON_SIZE]) {
    struct mpi *mpi = group_allocate(group, sizeof *mpi, reason, REASON_SIZE);
    if (mpi == NULL) return -1;
    mpi->group = group;
    int status = 0;
    if (forces_algorithms(candidate)) {
        status = dup_with_algorithms(group, candidate, &mpi->comm, reason);
    } else if (candidate->ompi_component[0] != '\0') {
        status = dup_with_component(group, candidate->ompi_component, &mpi->comm, reason);
    } else if (candidate->mpich_algorithm[0] != '\0') {
        status = open_mpich_algorithm(mpi, candidate->mpich_algorithm, reason);
        if (status == 0) MPI_Comm_dup(group_comm(group), &mpi->comm);
    } else {
        MPI_Comm_dup(group_comm(group), &mpi->comm);
    }
    if (status != 0) {
        free(mpi);
        return -1;
    }
    mpi_sums_make(&mpi->sums, group->kernels);
    *state = mpi;
    return 0;
}

static void *sum_buffer(struct mpi *mpi, const struct call *call) {
    if (call->fusion == FUSION_NONE) return call->out;
    if (mpi->sum_bytes < call_bytes(call)) {
        size_t bytes = (call_bytes(call) + 4095) / 4096 * 4096;
        free(mpi->sum);
        mpi->sum = aligned_alloc(4096, bytes);
        mpi->sum_bytes = mpi->sum ? bytes : 0;
    }
    return mpi->sum;
}

// The sum, by the forced algorithm; the variable is reset for other calls.
static int sum_over_ranks(struct mpi *mpi, const struct call *call, void *sum) {
    int none = 0, count = (int)call_elements(call);
    if (mpi->algorithm_number > 0) MPI_T_cvar_write(mpi->algorithm, &mpi->algorithm_number);
    const void *input = call->input == sum ? MPI_IN_PLACE : call->input;
    int status =
        MPI_Allreduce(input, sum, count, mpi->sums.types[call->dtype], mpi->sums.ops[call->dtype], mpi->comm);
    if (mpi->algorithm_number > 0) MPI_T_cvar_write(mpi->algorithm, &none);
    return status == MPI_SUCCESS ? 0 : -1;
}

static int broadcast(const struct mpi *mpi, const struct call *call, MPI_Datatype type) {
    size_t count = call->traffic->receive_elements;
    bool is_root = mpi->group->rank == call->root;
    void *buffer = is_root ? (void *)(uintptr_t)call->input : call->out; // the root's is only read
    int status = MPI_Bcast(buffer, (int)count, type, call->root, mpi->comm);
    if (is_root && buffer != call->out) memcpy(call->out, buffer, count * dtype_sizes_bytes[call->dtype]);
    return status;
}

static int all_to_all_uneven(const struct mpi *mpi, const struct call *call, MPI_Datatype type) {
    const struct traffic *traffic = call->traffic;
    int sent[MAX_RANKS], send_at[MAX_RANKS], received[MAX_RANKS], receive_at[MAX_RANKS];
    for (int rank = 0; rank < mpi->group->size; rank++) {
        sent[rank] = (int)traffic->sent[rank];
        send_at[rank] = (int)traffic->send_at[rank];
        received[rank] = (int)traffic->received[rank];
        receive_at[rank] = (int)traffic->receive_at[rank];
    }
    return MPI_Alltoallv(call->input, sent, send_at, type, call->out, received, receive_at, type, mpi->comm);
}

// MPI_IN_PLACE if the input is where MPI expects it then.
static const void *input_of(const struct mpi *mpi, const struct call *call, size_t share) {
    const char *place = (const char *)call->out + (size_t)mpi->group->rank * share;
    return call->input == (const void *)place ? MPI_IN_PLACE : call->input;
}

static int move(const struct mpi *mpi, const struct call *call) {
    const struct traffic *traffic = call->traffic;
    MPI_Datatype type = mpi->sums.types[call->dtype];
    int share = (int)traffic->largest;
    size_t share_bytes = traffic->largest * dtype_sizes_bytes[call->dtype];
    switch (call->op) {
    case OP_ALLGATHER:
        return MPI_Allgather(input_of(mpi, call, share_bytes), share, type, call->out, share, type,
                             mpi->comm);
    case OP_REDUCESCATTER:
        return MPI_Reduce_scatter_block(call->input, call->out, share, type, mpi->sums.ops[call->dtype],
                                        mpi->comm);
    case OP_ALLTOALL: return MPI_Alltoall(call->input, share, type, call->out, share, type, mpi->comm);
    case OP_ALLTOALLV: return all_to_all_uneven(mpi, call, type);
    case OP_BROADCAST: return broadcast(mpi, call, type);
    default: return MPI_ERR_OP;
    }
}

static int mpi_run(void *state, const struct call *call) {
    struct mpi *mpi = state;
    if (call->op != OP_ALLREDUCE) return move(mpi, call) == MPI_SUCCESS ? 0 : -1;
    void *sum = sum_buffer(mpi, call);
    if (sum == NULL || sum_over_ranks(mpi, call, sum) != 0) return -1;
    if (call->fusion == FUSION_NONE) return 0;
    struct epilogue epilogue;
    epilogue_begin(&epilogue, mpi->group->kernels, call, 0);
    epilogue_consume(&epilogue, (const void *const[]){sum}, 1, call_elements(call));
    return 0;
}

static void mpi_teardown(void *state) {
    struct mpi *mpi = state;
    mpi_sums_free(&mpi->sums);
    MPI_Comm_free(&mpi->comm);
    free(mpi->sum);
    free(mpi);
}

const struct strategy strategy_mpi = {
    .supports = mpi_supports,
    .setup = mpi_setup,
    .run = mpi_run,
    .teardown = mpi_teardown,
};

// The same for algorithms that support only predefined operations.
const struct strategy strategy_mpi_own = {
    .supports = mpi_own_supports,
    .setup = mpi_setup,
    .run = mpi_run,
    .teardown = mpi_teardown,
};
