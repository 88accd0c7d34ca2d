// Selects the ops of a sheet and their GPU events: see selection.h.
//
// The search goes from GPU events to ops: each goes up through the events around its launch, with as few
// steps as ops are nested.
#include "selection.h"

#include <numeric>
#include <string>
#include <unordered_map>

#include "intervals.h"

namespace trace {

namespace {

using slot_list = std::vector<uint32_t>; // of each event: its instance, or NONE

void add_instance(selection &to, slot_list &slots, uint32_t event) {
    slots[event] = uint32_t(to.instances.size());
    to.instances.push_back({event, EMPTY_TEXT, NONE, to.of->of->events[event].uid, 0, 0, 0});
}

// Gives every instance its GPU events, in the order of `indices`. `owners(index, take)` calls take(instance)
// for each instance that has this GPU event.
template <class Owners> void hand_out(selection &to, const std::vector<uint32_t> &indices, Owners owners) {
    sort_into(to.instances.size(), to.first, to.gpu, [&](auto take) {
        for (uint32_t index : indices) owners(index, [&](uint32_t instance) { take(instance, index); });
    });
}

// All indices of analysis::gpu, by time.
std::vector<uint32_t> all_by_time(const analysis &analysis) {
    std::vector<uint32_t> all(analysis.gpu.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
}

// The instances above a GPU event.
auto above(const selection &to, const slot_list &slots) {
    return [&to, &slots](uint32_t index, auto take) {
        const trace &of = *to.of->of;
        for (uint32_t up = to.of->at(to.of->gpu[index]).parent; up != NONE; up = of.events[up].parent) {
            if (slots[up] != NONE) take(slots[up]);
        }
    };
}

// The busy time of each instance; its GPU events need not be in order of time.
void measure(selection &to, bool by_time) {
    std::vector<uint32_t> sorted;
    for (size_t i = 0; i < to.instances.size(); i++) {
        sorted.assign(to.gpu.begin() + to.first[i], to.gpu.begin() + to.first[i + 1]);
        if (!by_time) std::sort(sorted.begin(), sorted.end());
        busy time;
        for (uint32_t index : sorted) time.add(to.of->gpu[index].start, to.of->gpu[index].end);
        to.instances[i].time = to.instances[i].subtree = time.total();
    }
}

// ---- Launchers --------------------------------------------------------------------------------

// The busy time of all GPU events below each instance.
void measure_subtrees(selection &to, const slot_list &slots) {
    std::vector<busy> times(to.instances.size());
    auto owners = above(to, slots);
    for (uint32_t index : all_by_time(*to.of)) {
        const gpu_event &one = to.of->gpu[index];
        owners(index, [&](uint32_t instance) { times[instance].add(one.start, one.end); });
    }
    for (size_t i = 0; i < times.size(); i++) to.instances[i].subtree = times[i].total();
}

} // namespace

void select_launchers(const analysis &analysis, selection &to) {
    to.of = &analysis;
    const std::vector<event> &events = analysis.of->events;
    std::vector<uint32_t> launchers(analysis.gpu.size(), NONE);
    slot_list slots(events.size(), NONE);
    for (size_t i = 0; i < launchers.size(); i++) {
        if (analysis.is_communication(analysis.gpu[i])) continue;
        launchers[i] = launcher_of(analysis, analysis.gpu[i]);
        if (launchers[i] != NONE) slots[launchers[i]] = 0;
    }
    for (uint32_t i = 0; i < events.size(); i++) {
        if (slots[i] != NONE) add_instance(to, slots, i);
    }
    hand_out(to, all_by_time(analysis), [&](uint32_t index, auto take) {
        if (launchers[index] != NONE) take(slots[launchers[index]]);
    });
    measure(to, true);
    measure_subtrees(to, slots);
    combine(to);
}

// ---- Modelled ops -----------------------------------------------------------------------------

namespace {

bool is_below_its_like(const trace &of, const op_models &models, const event &op) {
    uint8_t sheet = models[op.name].sheet;
    for (uint32_t up = op.parent; sheet != 0 && up != NONE; up = of.events[up].parent) {
        if (of.events[up].kind == kind::cpu_op && models[of.events[up].name].sheet == sheet) return true;
    }
    return false;
}

} // namespace

void select_modelled(const analysis &analysis, const op_models &models, selection &to) {
    to.of = &analysis;
    const std::vector<event> &events = analysis.of->events;
    slot_list slots(events.size(), NONE);
    for (uint32_t i = 0; i < events.size(); i++) {
        const event &op = events[i];
        if (op.kind != kind::cpu_op || !models[op.name].is_modelled()) continue;
        bool is_nested = is_below_its_like(*analysis.of, models, op);
        if (is_nested && models[op.name].outermost) continue;
        add_instance(to, slots, i);
        to.nested += is_nested;
    }
    hand_out(to, all_by_time(analysis), above(to, slots));
    measure(to, true);
    combine(to);
}

// ---- Backward ---------------------------------------------------------------------------------

std::vector<backward> backwards(const trace &of) {
    constexpr std::string_view ENGINE = "autograd::engine::evaluate_function: ";
    std::vector<backward> result;
    std::unordered_map<int32_t, std::vector<uint32_t>> engines; // of each sequence number
    for (uint32_t i : of.host) {
        const event &one = of.events[i];
        if (one.kind != kind::cpu_op || one.sequence < 0) continue;
        if (of.names[one.name].substr(0, ENGINE.size()) != ENGINE) continue;
        engines[one.sequence].push_back(uint32_t(result.size()));
        result.push_back({i, NONE});
    }
    for (uint32_t i : of.host) { // by start: the latest one stays
        const event &one = of.events[i];
        if (one.kind != kind::cpu_op || one.sequence < 0) continue;
        auto found = engines.find(one.sequence);
        if (found == engines.end()) continue;
        for (uint32_t index : found->second) {
            if (of.events[result[index].engine].track != one.track) result[index].forward = i;
        }
    }
    return result;
}

void select_backward(const analysis &analysis, const op_models &models, selection &to) {
    to.of = &analysis;
    const std::vector<event> &events = analysis.of->events;
    std::vector<backward> pairs = backwards(*analysis.of);
    slot_list slots(events.size(), NONE); // of forward ops
    for (const backward &pair : pairs) {
        if (pair.forward != NONE && models[events[pair.forward].name].has_backward) slots[pair.forward] = 0;
    }
    for (uint32_t i = 0; i < events.size(); i++) {
        if (slots[i] != NONE) add_instance(to, slots, i);
    }
    std::vector<uint32_t> engine_slots(events.size(), NONE);
    for (const backward &pair : pairs) {
        if (pair.forward != NONE && slots[pair.forward] != NONE)
            engine_slots[pair.engine] = slots[pair.forward];
    }
    hand_out(to, all_by_time(analysis), above(to, engine_slots));
    measure(to, true);
    combine(to);
}

// ---- Unified ----------------------------------------------------------------------------------

namespace {

// The events below each host event.
enum : uint8_t {
    HAS_GPU = 1,
    HAS_COMMUNICATION = 2,
    HAS_MODEL = 4, // a modelled op with GPU events, not counting the event itself
    LAUNCHES = 8,  // a GPU event through calls of the runtime alone
};

void mark_up(const trace &of, std::vector<uint8_t> &marks, uint32_t from, uint8_t mark) {
    for (uint32_t up = from; up != NONE && (marks[up] & mark) != mark; up = of.events[up].parent)
        marks[up] |= mark;
}

void mark_launch(const trace &of, std::vector<uint8_t> &marks, uint32_t launch) {
    uint32_t up = launch;
    while (up != NONE && of.events[up].kind == kind::runtime) up = of.events[up].parent;
    if (up != NONE && of.events[up].kind == kind::cpu_op) marks[up] |= LAUNCHES;
}

using forwards = std::unordered_map<uint32_t, uint32_t>; // event → the forward op it belongs to, or NONE

// The only backward of each forward op with a backward model: the event of the engine.
forwards single_backwards(const trace &of, const op_models &models) {
    forwards engine_of, result;
    for (const backward &pair : backwards(of)) {
        if (pair.forward == NONE || !models[of.events[pair.forward].name].has_backward) continue;
        auto [at, is_new] = engine_of.emplace(pair.forward, pair.engine);
        if (!is_new) at->second = NONE;
    }
    for (const auto &[forward, engine] : engine_of) {
        if (engine != NONE) result.emplace(engine, forward);
    }
    return result;
}

// The ops that give such events of the engine their names, and that these run.
forwards backward_ops(const trace &of, const op_models &models) {
    forwards engines = single_backwards(of, models), result;
    if (engines.empty()) return result;
    for (uint32_t i : of.host) {
        const event &one = of.events[i];
        if (one.kind != kind::cpu_op || one.parent == NONE) continue;
        auto found = engines.find(one.parent);
        if (found == engines.end()) continue;
        std::string_view engine = of.names[of.events[one.parent].name], name = of.names[one.name];
        if (engine.size() > name.size() && engine.substr(engine.size() - name.size()) == name)
            result.emplace(i, found->second);
    }
    return result;
}

std::vector<uint8_t> mark_all(const analysis &analysis, const op_models &models) {
    const trace &of = *analysis.of;
    std::vector<uint8_t> marks(of.events.size(), 0);
    for (uint32_t index : analysis.by_launch) {
        const gpu_event &one = analysis.gpu[index];
        uint32_t launch = analysis.at(one).parent;
        mark_up(of, marks, launch, HAS_GPU);
        if (analysis.is_communication(one)) mark_up(of, marks, launch, HAS_COMMUNICATION);
        mark_launch(of, marks, launch);
    }
    for (uint32_t i : of.host) {
        const event &one = of.events[i];
        bool is_modelled = one.kind == kind::cpu_op && models[one.name].is_modelled();
        if (is_modelled && (marks[i] & HAS_GPU)) mark_up(of, marks, one.parent, HAS_MODEL);
    }
    return marks;
}

bool is_taken(bool is_modelled, bool is_backward, uint8_t marks) {
    if (is_modelled) return true;
    if (marks & HAS_MODEL) return false;
    if (is_backward) return true;
    return (marks & LAUNCHES) && !(marks & HAS_COMMUNICATION);
}

// Gives every taken op, and all events below it, the number of its instance.
slot_list take_ops(const analysis &analysis, const op_models &models, selection &to) {
    const trace &of = *analysis.of;
    std::vector<uint8_t> marks = mark_all(analysis, models);
    forwards forward_of = backward_ops(of, models);
    slot_list slots(of.events.size(), NONE);
    std::vector<uint32_t> taken_by(of.events.size(), NONE); // the taken event at or above each
    for (uint32_t i : of.host) {
        const event &one = of.events[i];
        if (one.parent != NONE) taken_by[i] = taken_by[one.parent];
        if (taken_by[i] != NONE || one.kind != kind::cpu_op || !(marks[i] & HAS_GPU)) continue;
        if (is_taken(models[one.name].is_modelled(), forward_of.count(i) > 0, marks[i])) taken_by[i] = i;
    }
    for (uint32_t i = 0; i < of.events.size(); i++) {
        if (taken_by[i] != i) continue;
        add_instance(to, slots, i);
        auto found = forward_of.find(i);
        bool is_modelled = models[of.events[i].name].is_modelled();
        if (found != forward_of.end() && !is_modelled) to.instances.back().forward = found->second;
    }
    for (uint32_t i = 0; i < of.events.size(); i++) {
        if (taken_by[i] != NONE) slots[i] = slots[taken_by[i]];
    }
    return slots;
}

} // namespace

void select_unified(const analysis &analysis, const op_models &models, selection &to) {
    to.of = &analysis;
    const trace &of = *analysis.of;
    slot_list slots = take_ops(analysis, models, to);
    std::vector<uint32_t> owner(analysis.gpu.size(), NONE);
    uint64_t uid = of.events_in_file + of.added_events;
    for (uint32_t index : analysis.by_launch) {
        uint32_t launch = analysis.at(analysis.gpu[index]).parent;
        owner[index] = slots[launch];
        if (owner[index] != NONE || analysis.is_communication(analysis.gpu[index])) continue;
        uint32_t op = nearest_op(of, launch);
        owner[index] = uint32_t(to.instances.size());
        to.instances.push_back({op != NONE ? op : launch, analysis.at(analysis.gpu[index]).name, NONE,
                                uint32_t(uid++), 0, 0, 0});
    }
    hand_out(to, analysis.by_launch, [&](uint32_t index, auto take) {
        if (owner[index] != NONE) take(owner[index]);
    });
    measure(to, false);
    combine(to);
}

// ---- Combos -----------------------------------------------------------------------------------

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
