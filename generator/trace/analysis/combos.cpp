// Finds equal instances of a selection: see combine in selection.h.
#include "selection.h"

#include <unordered_map>

namespace trace {

namespace {

uint64_t mixed(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
    return hash ^ (hash >> 29);
}

uint32_t kernel_name(const selection &of, uint32_t index) {
    return of.of->at(of.gpu_at(index)).name;
}

// The kernel that decides the category of an instance's op.
uint32_t first_kernel(const selection &of, const instance &one) {
    return of.of->first_kernels[one.op];
}

uint64_t hash_of(const selection &of, uint32_t number) {
    const instance &one = of.instances[number];
    const event &op = of.op(one);
    uint64_t hash = mixed(mixed(mixed(mixed(0, op.name), op.arguments), op.track), one.kernel);
    hash = mixed(hash, first_kernel(of, one));
    if (one.forward != NONE) hash = mixed(hash, of.of->of->events[one.forward].arguments);
    for (uint32_t i = of.first[number]; i < of.first[number + 1]; i++) hash = mixed(hash, kernel_name(of, i));
    return hash;
}

bool have_same_kernels(const selection &of, uint32_t a, uint32_t b) {
    uint32_t count = of.first[a + 1] - of.first[a];
    if (of.first[b + 1] - of.first[b] != count) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (kernel_name(of, of.first[a] + i) != kernel_name(of, of.first[b] + i)) return false;
    }
    return true;
}

bool have_same_forward(const selection &of, const instance &a, const instance &b) {
    if (a.forward == NONE || b.forward == NONE) return a.forward == b.forward;
    const event &one = of.of->of->events[a.forward], &other = of.of->of->events[b.forward];
    return one.name == other.name && one.arguments == other.arguments;
}

bool are_equal(const selection &of, uint32_t a, uint32_t b) {
    const instance &one = of.instances[a], &other = of.instances[b];
    const event &op = of.op(one), &other_op = of.op(other);
    return op.name == other_op.name && op.arguments == other_op.arguments && op.track == other_op.track &&
           one.kernel == other.kernel && first_kernel(of, one) == first_kernel(of, other) &&
           have_same_forward(of, one, other) && have_same_kernels(of, a, b);
}

} // namespace

void combine(selection &to) {
    std::unordered_multimap<uint64_t, uint32_t> found; // hash → combo
    for (uint32_t i = 0; i < to.instances.size(); i++) {
        uint64_t hash = hash_of(to, i);
        auto [begin, end] = found.equal_range(hash);
        while (begin != end && !are_equal(to, to.combos[begin->second].instance, i)) ++begin;
        uint32_t combo = begin != end ? begin->second : uint32_t(to.combos.size());
        if (begin == end) {
            found.emplace(hash, combo);
            to.combos.push_back({i, 0});
        }
        to.combos[combo].count++;
        to.instances[i].combo = combo;
    }
}

} // namespace trace
