// Limits that candidates of plug-ins declare; see plugin_limits.h.
#include "plugin_limits.h"

#include "calls/cell.h"
#include "plugin_state.h"

size_t plugins_alignment(const struct candidate *candidate) {
    size_t alignment = candidate->plugin == NULL ? 0 : candidate->plugin->declared.alignment;
    return alignment > 0 ? alignment : 1;
}

// In place the smaller buffer of a rank is a part of the larger one: whether that part is aligned.
static bool is_aligned_in_place(const gt_candidate *declared, const struct group *group,
                                const struct call *call) {
    size_t unit = declared->alignment > 0 ? declared->alignment : 1;
    bool is_gathered = call->op == OP_ALLGATHER;
    if (!is_gathered && call->op != OP_REDUCESCATTER) return true;
    size_t share = call_elements(call) / (size_t)group->size;
    return share * dtype_sizes_bytes[call->dtype] % unit == 0;
}

const char *plugins_place_refusal(const struct candidate *candidate, const struct group *group,
                                  const struct call *call, bool in_place) {
    if (candidate->plugin == NULL) return in_place ? "is not called in place" : NULL;
    const gt_candidate *declared = &candidate->plugin->declared;
    if ((declared->places & (in_place ? GT_PLACE_IN : GT_PLACE_OUT)) == 0)
        return in_place ? "does not work in place" : "works only in place";
    if (!in_place) return NULL;
    if (call->op == OP_ALLTOALL || call->op == OP_ALLTOALLV)
        return "works only in place, which NCCL does not define for this op";
    if (call->fusion != FUSION_NONE && !candidate->plugin->has_epilogue_apart)
        return "works only in place, and epilogues are called out of place";
    if (!is_aligned_in_place(declared, group, call))
        return "its part of the buffer in place is not aligned as it requires";
    return NULL;
}

bool plugins_is_in_place(const struct candidate *candidate) {
    return candidate->plugin != NULL && (candidate->plugin->declared.places & GT_PLACE_OUT) == 0;
}

const char *plugins_place(const struct candidate *candidate) {
    if (candidate->plugin == NULL) return NULL;
    return plugins_is_in_place(candidate) ? "in" : "out";
}

// Data sets of one cell lie `stride` elements apart: whether each of them is aligned.
static bool is_strided_well(const gt_candidate *declared, const struct call *call) {
    bool has_rows = call->fusion != FUSION_NONE || call->plan == NULL;
    size_t stride = call->op == OP_ALLREDUCE ? call->hidden_size : CELL_STRIDE_ELEMENTS;
    return !has_rows || declared->alignment <= 1 ||
           stride * dtype_sizes_bytes[call->dtype] % declared->alignment == 0;
}

const char *plugins_refusal(const struct candidate *candidate, const struct group *group,
                            const struct call *call) {
    const gt_candidate *declared = &candidate->plugin->declared;
    size_t bytes = call_bytes(call);
    if ((declared->dtypes >> call->dtype & 1) == 0) return "does not support this data type";
    bool is_fused = call->fusion != FUSION_NONE && !candidate->plugin->has_epilogue_apart;
    if (is_fused && (declared->fusions >> call->fusion & 1) == 0) return "has no such fusion";
    if (!is_fused && (declared->fusions >> FUSION_NONE & 1) == 0)
        return "supports no call without an epilogue";
    if (call->fusion == FUSION_NONE && candidate->plugin->has_epilogue_apart)
        return "the call has no epilogue";
    bool is_in_mask = group->size < 32 && (declared->world_sizes >> group->size & 1) != 0;
    if (declared->world_sizes != 0 && !is_in_mask) return "does not support this number of ranks";
    if (bytes < declared->min_bytes) return "does not support so small a size";
    if (declared->max_bytes != 0 && bytes > declared->max_bytes) return "does not support so large a size";
    if (declared->count_multiple > 1 && call_elements(call) % declared->count_multiple != 0)
        return "the number of elements is no multiple of its count_multiple";
    if (!is_strided_well(declared, call)) return "rows are not aligned as it requires";
    return plugins_place_refusal(candidate, group, call, plugins_is_in_place(candidate));
}
