// A selection: instances of ops, each with the GPU events that count as its own, and statistics over them.
// Instances with equal name, arguments, track and names of kernels make a combo, so that the facts of an op
// (its model, its category) are computed once for each combo.
#ifndef GENTABLES_TRACE_SELECTION_H
#define GENTABLES_TRACE_SELECTION_H

#include <cstdint>
#include <vector>

#include "analysis.h"

namespace trace {

struct instance {
    uint32_t op;      // event
    uint32_t kernel;  // text: of a row of a single GPU event; EMPTY_TEXT: the row is the op's
    uint32_t forward; // event: the forward op, if this is a backward with its model; or NONE
    uint32_t uid;
    uint32_t combo;
    double time;    // busy time of its own GPU events
    double subtree; // and of all GPU events below the op
};

struct combo {
    uint32_t instance; // the first one
    uint32_t count;
};

struct selection {
    const analysis *of = nullptr;
    std::vector<instance> instances; // in order of the file, those of single GPU events last
    std::vector<uint32_t> first;     // index in gpu of the first GPU event of each; and the end
    std::vector<uint32_t> gpu;       // indices in analysis::gpu
    std::vector<combo> combos;       // in order of their first instance
    uint64_t nested = 0;             // instances below another one of their sheet: its GPU events count twice

    const event &op(const instance &one) const { return of->of->events[one.op]; }
    const gpu_event &gpu_at(size_t index) const { return of->gpu[gpu[index]]; }
};

// The performance model's settings for ops of one name (trace/ops/families.lua).
struct op_model {
    uint8_t sheet = 0; // the sheet that lists it, from 1; 0: it has no model
    bool has_backward = false;
    bool outermost = false; // not listed below another op of its sheet

    bool is_modelled() const { return sheet != 0; }
};
using op_models = std::vector<op_model>; // of each text

// The ops, or calls of the runtime, that launched other GPU events than communication themselves; own GPU
// events: those that they launched.
void select_launchers(const analysis &analysis, selection &to);

// Every modelled cpu_op; outermost ones not below another op of their sheet. Own GPU events: all below it.
void select_modelled(const analysis &analysis, const op_models &models, selection &to);

// Every modelled cpu_op with a backward model and a backward; own GPU events: all below its backward.
void select_backward(const analysis &analysis, const op_models &models, selection &to);

// Every GPU event but communication once, under the most specific op; own GPU events: all below that.
void select_unified(const analysis &analysis, const op_models &models, selection &to);

// The events of autograd's engine, each with its forward op: pairs of events.
struct backward {
    uint32_t engine, forward;
};
std::vector<backward> backwards(const trace &of);

// Sorts items into buckets: each(take) calls take(bucket, item) for every item, twice in the same order. Sets
// the first index of each bucket, and the end; and the items.
template <class Each>
void sort_into(size_t buckets, std::vector<uint32_t> &first, std::vector<uint32_t> &items, Each each) {
    first.assign(buckets + 1, 0);
    each([&](uint32_t bucket, uint32_t) { first[bucket + 1]++; });
    for (size_t i = 1; i < first.size(); i++) first[i] += first[i - 1];
    items.resize(first.back());
    std::vector<uint32_t> next(first.begin(), first.end() - 1);
    each([&](uint32_t bucket, uint32_t item) { items[next[bucket]++] = item; });
}

// Fills combos (combos.cpp). The functions above call it.
void combine(selection &to);

} // namespace trace

#endif
