// A selection: instances of ops, each with the GPU events that count as its own, and what is summed up over
// them. Instances that are equal in name, arguments, track and names of the kernels make a combo, so
// that what is known of an op (its model, its category) is worked out once for each combo.
#ifndef GENTABLES_TRACE_SELECTION_H
#define GENTABLES_TRACE_SELECTION_H

#include <cstdint>
#include <vector>

#include "analysis.h"

namespace trace {

struct instance {
    uint32_t op;      // event
    uint32_t kernel;  // text: the GPU event that stands alone in this row; EMPTY_TEXT: the row is the op's
    uint32_t forward; // event: the op whose backward this is, where its sums are taken; or NONE
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
    std::vector<uint32_t> first;     // where the GPU events of each begin in gpu; and the end
    std::vector<uint32_t> gpu;       // indices in analysis::gpu
    std::vector<combo> combos;       // in order of their first instance
    uint64_t nested = 0;             // instances below another one of their sheet: its GPU events count twice

    const event &op(const instance &one) const { return of->of->events[one.op]; }
    const gpu_event &gpu_at(size_t index) const { return of->gpu[gpu[index]]; }
};

// What the performance models have for ops of one name (trace/ops/families.lua).
struct op_model {
    uint8_t sheet = 0; // which sheet lists it, from 1; 0: there is no model of it
    bool has_backward = false;
    bool outermost = false; // its sheet does not list it below another op of that sheet

    bool is_modelled() const { return sheet != 0; }
};
using op_models = std::vector<op_model>; // of each text

// The ops, or calls of the runtime, that launched something other than communication themselves; own GPU
// events: what they launched.
void select_launchers(const analysis &analysis, selection &to);

// Every modelled cpu_op, but those below another one of their sheet where that is not wanted; own GPU events:
// all below it.
void select_modelled(const analysis &analysis, const op_models &models, selection &to);

// Every modelled cpu_op with backward sums and a backward; own GPU events: all below its backward.
void select_backward(const analysis &analysis, const op_models &models, selection &to);

// Every GPU event but communication once, under the op that says most of it; own GPU events: all below that.
void select_unified(const analysis &analysis, const op_models &models, selection &to);

// The events of autograd's engine, each with the forward op it belongs to: pairs of events.
struct backward {
    uint32_t engine, forward;
};
std::vector<backward> backwards(const trace &of);

// Fills combos (combos.cpp). The functions above do.
void combine(selection &to);

} // namespace trace

#endif
