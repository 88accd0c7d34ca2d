// Finds equal instances of a selection: see combine in selection.h.
#include "selection.h"

#include <string>
#include <unordered_map>

namespace trace {

namespace {

// All that the instances of a combo have in common, as numbers: its op, the kernel that decides its category,
// its forward op, and its kernels.
std::u32string key_of(const selection &of, uint32_t number) {
    const instance &one = of.instances[number];
    const event &op = of.op(one);
    std::u32string key = {op.name, op.arguments, op.track, one.kernel, of.of->first_kernels[one.op]};
    const event *forward = one.forward != NONE ? &of.of->of->events[one.forward] : nullptr;
    key += forward != nullptr ? forward->name : NONE;
    key += forward != nullptr ? forward->arguments : NONE;
    for (uint32_t i = of.first[number]; i < of.first[number + 1]; i++) key += of.of->at(of.gpu_at(i)).name;
    return key;
}

} // namespace

void combine(selection &to) {
    std::unordered_map<std::u32string, uint32_t> found; // the combo of each key
    for (uint32_t i = 0; i < to.instances.size(); i++) {
        auto [known, is_new] = found.emplace(key_of(to, i), uint32_t(to.combos.size()));
        if (is_new) to.combos.push_back({i, 0});
        to.combos[known->second].count++;
        to.instances[i].combo = known->second;
    }
}

} // namespace trace
