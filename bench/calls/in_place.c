// Calls in place; see in_place.h.
#include "in_place.h"

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
