// Each list of kernels that a launch replays is matched once with the captured graphs, and its ops are copied
// for each launch that replays it.
#include "captures.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace trace {

// ---- Functions of Python ----------------------------------------------------------------------

void thread_frames::sort() {
    std::stable_sort(frames_.begin(), frames_.end(), [](const event *a, const event *b) {
        return a->start != b->start ? a->start < b->start : a->end() > b->end();
    });
}

std::vector<uint32_t> thread_frames::at(double time) {
    for (; next_ < frames_.size() && frames_[next_]->start <= time; next_++) {
        leave(frames_[next_]->start);
        stack_.push_back(frames_[next_]);
    }
    leave(time);
    std::vector<uint32_t> names;
    for (const event *frame : stack_) names.push_back(frame->name);
    return names;
}

void thread_frames::leave(double time) {
    while (!stack_.empty() && stack_.back()->end() <= time) stack_.pop_back();
}

std::vector<thread_frames> frames_of(const trace &of) {
    std::vector<thread_frames> threads(of.tracks.size());
    for (const event &one : of.events) {
        if (one.kind == kind::frame) threads[one.track].add(one);
    }
    for (thread_frames &one : threads) one.sort();
    return threads;
}

namespace {

// ---- Captured graphs --------------------------------------------------------------------------

// A GPU event of a graph, or the call that captured it.
struct node {
    uint32_t event;
    uint32_t name; // text of the trace with the replays; EMPTY_TEXT: unknown
    ::trace::kind kind;
};

struct graph {
    std::vector<node> nodes;
    bool is_named = true;  // all its kernels have a name
    bool waits = false;    // a stream waits for another
    bool branches = false; // and launches after that; of a replay: its GPU events are on several streams
};

bool is_call(const event &one) {
    return one.kind == kind::runtime || one.kind == kind::driver;
}

bool contains(std::string_view text, std::string_view word) {
    auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
    return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

bool launches_graph(const trace &of, const event &one) {
    return is_call(one) && contains(of.names[one.name], "graphlaunch");
}

// A captured trace: its graphs, and the numbers that its texts, arguments and stacks have in the trace with
// the replays.
class captured_trace {
  public:
    captured_trace(const trace &of, trace &to) : of_(of), to_(to), texts_(of.names.size(), NONE) {
        for (const launched_kernel &one : of.launched) name_of_[one.event] = one.name;
        for (const event &one : of.events) {
            if (is_gpu(one.kind) && one.parent != NONE) gpu_of_.emplace(one.parent, &one);
            has_frames_ = has_frames_ || one.kind == kind::frame;
        }
        find_graphs();
    }

    const trace &of() const { return of_; }
    const std::vector<graph> &graphs() const { return graphs_; }

    uint32_t text(uint32_t number) {
        if (texts_[number] == NONE) texts_[number] = to_.names.intern(of_.names[number]);
        return texts_[number];
    }

    uint32_t arguments(uint32_t number) {
        auto [at, is_new] = sets_.emplace(number, uint32_t(to_.argument_sets.size()));
        if (is_new) {
            auto [dims, types, strides, concrete] = argument_texts(number);
            to_.argument_sets.push_back({dims, types, strides, concrete});
        }
        return at->second;
    }

    // The arguments with this number; NONE: no texts.
    std::array<uint32_t, 4> argument_texts(uint32_t number) {
        if (number == NONE) return {EMPTY_TEXT, EMPTY_TEXT, EMPTY_TEXT, EMPTY_TEXT};
        const argument_set &set = of_.argument_sets[number];
        return {text(set.dims), text(set.types), text(set.strides), text(set.concrete)};
    }

    // The stack of a call, one of to.stacks; NONE: the trace has no functions of Python.
    uint32_t stack(uint32_t call) const {
        auto found = stack_of_.find(call);
        return found != stack_of_.end() ? found->second : NONE;
    }

  private:
    void find_graphs() {
        std::vector<thread_frames> threads = frames_of(of_);
        std::vector<uint32_t> open(of_.tracks.size(), NONE); // the graph that a track captures
        bool captures = std::any_of(of_.events.begin(), of_.events.end(), [&](const event &one) {
            return is_call(one) && contains(of_.names[one.name], "streambegincapture");
        });
        if (!captures) graphs_.emplace_back();
        for (uint32_t number : of_.host) {
            const event &one = of_.events[number];
            if (!is_call(one)) continue;
            std::string_view name = of_.names[one.name];
            if (contains(name, "streambegincapture")) {
                open[one.track] = uint32_t(graphs_.size());
                graphs_.emplace_back();
            } else if (contains(name, "streamendcapture")) {
                open[one.track] = NONE;
            } else if (captures && open[one.track] != NONE && contains(name, "streamwaitevent")) {
                graphs_[open[one.track]].waits = true;
            } else if (!captures || open[one.track] != NONE) {
                add(graphs_[captures ? open[one.track] : 0], number, captures, threads[one.track]);
            }
        }
    }

    // Adds a call that launches, copies or sets; one without a GPU event only while a graph is captured.
    void add(graph &into, uint32_t number, bool captures, thread_frames &frames) {
        const event &one = of_.events[number];
        std::string_view name = of_.names[one.name];
        if (launches_graph(of_, one) || (one.parent != NONE && is_call(of_.events[one.parent]))) return;
        node added{number, EMPTY_TEXT, kind::kernel};
        auto gpu = gpu_of_.find(number);
        auto named = name_of_.find(number);
        if (gpu != gpu_of_.end()) {
            added.kind = gpu->second->kind;
            added.name = text(gpu->second->name);
        } else if (named != name_of_.end()) {
            added.name = text(named->second);
        } else if (!captures) {
            return;
        } else if (contains(name, "memcpy")) {
            added.kind = kind::memcpy;
        } else if (contains(name, "memset")) {
            added.kind = kind::memset;
        } else if (!contains(name, "launch")) {
            return;
        }
        into.nodes.push_back(added);
        into.is_named = into.is_named && (added.kind != kind::kernel || added.name != EMPTY_TEXT);
        into.branches = into.branches || into.waits;
        if (!has_frames_) return;
        std::vector<uint32_t> stack = frames.at(one.start);
        for (uint32_t &frame : stack) frame = text(frame);
        stack_of_.emplace(number, uint32_t(to_.stacks.size()));
        to_.stacks.push_back(std::move(stack));
    }

    const trace &of_;
    trace &to_;
    std::vector<uint32_t> texts_;
    std::unordered_map<uint32_t, uint32_t> sets_, stack_of_, name_of_;
    std::unordered_map<uint32_t, const event *> gpu_of_;
    std::vector<graph> graphs_;
    bool has_frames_ = false;
};

// ---- Matching ---------------------------------------------------------------------------------

bool same(const node &replayed, const node &captured) {
    return replayed.kind == captured.kind && (captured.name == EMPTY_TEXT || captured.name == replayed.name);
}

// The call of each replayed GPU event, NONE without one, and their number.
struct match {
    std::vector<uint32_t> calls;
    size_t count = 0;
};

// The longest list of pairs in order, of `captured` from `begin` to `end`. `best` is memory for the lengths.
match aligned(const graph &replayed, const graph &captured, size_t begin, size_t end,
              std::vector<uint16_t> &best) {
    size_t rows = replayed.nodes.size(), columns = end - begin;
    best.assign((rows + 1) * (columns + 1), 0); // of the rest of both
    auto at = [&](size_t row, size_t column) -> uint16_t & { return best[row * (columns + 1) + column]; };
    auto is_same = [&](size_t row, size_t column) {
        return same(replayed.nodes[row], captured.nodes[begin + column]);
    };
    for (size_t row = rows; row-- > 0;) {
        for (size_t column = columns; column-- > 0;) {
            at(row, column) = is_same(row, column) ? uint16_t(at(row + 1, column + 1) + 1)
                                                   : std::max(at(row + 1, column), at(row, column + 1));
        }
    }
    match result{std::vector<uint32_t>(rows, NONE), at(0, 0)};
    for (size_t row = 0, column = 0; row < rows && column < columns;) {
        if (is_same(row, column)) {
            result.calls[row++] = captured.nodes[begin + column++].event;
        } else if (at(row + 1, column) >= at(row, column + 1)) {
            row++;
        } else {
            column++;
        }
    }
    return result;
}

// The calls of `captured` from `begin` on, if each is the same.
match exact(const graph &replayed, const graph &captured, size_t begin) {
    match result;
    for (size_t i = 0; i < replayed.nodes.size(); i++) {
        if (!same(replayed.nodes[i], captured.nodes[begin + i])) return {};
        result.calls.push_back(captured.nodes[begin + i].event);
    }
    result.count = replayed.nodes.size();
    return result;
}

// Whether calls of `captured` may be those of the replay if each is the same. Without names the order decides
// alone, which parallel branches do not have.
bool may_be_exact(const graph &replayed, const graph &captured) {
    return captured.is_named ||
           (replayed.nodes.size() == captured.nodes.size() && !replayed.branches && !captured.branches);
}

// How two captured calls, with the ops around them, differ.
enum class difference : uint8_t { none, arguments, ops };

difference between(const trace &to, captured_trace &one, uint32_t a, captured_trace &other, uint32_t b) {
    const event &first = one.of().events[a], &second = other.of().events[b];
    bool is_below_op = is_call(first) && is_call(second) && first.parent != NONE && second.parent != NONE;
    bool same_name = one.text(first.name) == other.text(second.name);
    if (!same_name && !is_below_op) return difference::ops;
    uint32_t stack = one.stack(a), second_stack = other.stack(b);
    bool same_stack = stack == second_stack ||
                      (stack != NONE && second_stack != NONE && to.stacks[stack] == to.stacks[second_stack]);
    bool same_arguments = one.argument_texts(first.arguments) == other.argument_texts(second.arguments);
    return same_name && same_stack && same_arguments ? difference::none : difference::arguments;
}

// ---- Copies -----------------------------------------------------------------------------------

class attribution {
  public:
    attribution(trace &to, const std::vector<const trace *> &captured) : to_(to) {
        for (const trace *one : captured) captured_.push_back(captured_trace(*one, to));
    }

    void run() {
        std::vector<std::vector<uint32_t>> replayed(to_.events.size());
        for (uint32_t i = 0; i < to_.events.size(); i++) {
            const event &one = to_.events[i];
            if (is_gpu(one.kind) && one.parent != NONE && launches_graph(to_, to_.events[one.parent]))
                replayed[one.parent].push_back(i);
        }
        std::vector<uint32_t> host;
        for (uint32_t launch : to_.host) {
            host.push_back(launch);
            if (!replayed[launch].empty()) attribute(launch, replayed[launch], host);
        }
        to_.host = std::move(host);
    }

  private:
    struct plan {
        size_t from = 0; // index in captured_
        match calls;
        std::vector<difference> differences; // of each call and others that match as well
        std::unordered_set<uint32_t> bare;   // captured ops and calls: others have other arguments
        bool is_cut = false;                 // not all captured graphs are aligned
    };

    void attribute(uint32_t launch, std::vector<uint32_t> &gpu, std::vector<uint32_t> &host) {
        std::stable_sort(gpu.begin(), gpu.end(),
                         [&](uint32_t a, uint32_t b) { return to_.events[a].start < to_.events[b].start; });
        const plan &found = plan_of(gpu);
        to_.graph_events += gpu.size();
        copies_.clear();
        for (size_t i = 0; i < gpu.size(); i++) {
            bool is_ambiguous = found.differences[i] != difference::none;
            uint32_t call = found.differences[i] == difference::ops ? NONE : found.calls.calls[i];
            if (is_ambiguous) count(flaw::graph_ambiguous, gpu[i]);
            if (call == NONE) count(flaw::graph_unmatched, gpu[i]);
            if (call == NONE && found.is_cut) count(flaw::graph_unaligned, gpu[i]);
            if (call == NONE) continue;
            uint32_t parent = copy(found, call, launch, host);
            to_.events[gpu[i]].parent = parent;
        }
    }

    void count(flaw flaw, uint32_t event) {
        if (to_.flaws[size_t(flaw)]++ == 0) to_.first_flaw[size_t(flaw)] = to_.events[event].uid;
    }

    const plan &plan_of(const std::vector<uint32_t> &gpu) {
        graph replayed;
        std::vector<uint32_t> key;
        const event &first = to_.events[gpu[0]];
        for (uint32_t number : gpu) {
            const event &one = to_.events[number];
            replayed.nodes.push_back({number, one.name, one.kind});
            replayed.branches = replayed.branches || one.device != first.device || one.stream != first.stream;
            key.push_back(one.name);
        }
        key.push_back(replayed.branches);
        auto [at, is_new] = plans_.emplace(key, plan());
        plan &made = at->second;
        if (!is_new) return made;
        made.calls.calls.assign(gpu.size(), NONE);
        made.differences.assign(gpu.size(), difference::none);
        for (size_t i = 0; i < captured_.size(); i++) {
            for (const graph &one : captured_[i].graphs()) find_exact(made, replayed, i, one);
        }
        if (made.calls.count > 0) return made;
        for (size_t i = 0; i < captured_.size(); i++) {
            for (const graph &one : captured_[i].graphs()) align(made, replayed, i, one);
        }
        return made;
    }

    void find_exact(plan &into, const graph &replayed, size_t from, const graph &captured) {
        if (!may_be_exact(replayed, captured)) return;
        for (size_t i = 0; i + replayed.nodes.size() <= captured.nodes.size(); i++) {
            take(into, from, exact(replayed, captured, i));
        }
    }

    // Aligns the replay with pieces of `captured` that overlap.
    void align(plan &into, const graph &replayed, size_t from, const graph &captured) {
        if (!captured.is_named) return;
        size_t rows = replayed.nodes.size(), columns = captured.nodes.size();
        for (size_t i = 0; i < columns; i += rows) {
            size_t end = std::min(columns, i + 2 * rows);
            if (rows > MOST_ROWS || !affords(rows * (end - i))) {
                into.is_cut = true;
                return;
            }
            take(into, from, aligned(replayed, captured, i, end, lengths_));
        }
    }

    // Whether work of this size is done, for all launches together.
    bool affords(size_t work) {
        if (work > left_) return false;
        left_ -= work;
        return true;
    }

    // Takes a match with more calls; one with as many is compared with that taken before.
    void take(plan &into, size_t from, match found) {
        if (found.count == 0 || found.count < into.calls.count) return;
        if (found.count == into.calls.count) return compare(into, captured_[from], found.calls);
        into.from = from;
        into.differences.assign(found.calls.size(), difference::none);
        into.bare.clear();
        into.calls = std::move(found);
    }

    // For ops of the plan's captured trace: those compared with them, and how they and those around differ.
    using compared = std::unordered_map<uint32_t, std::pair<uint32_t, difference>>;

    void compare(plan &with, captured_trace &other, const std::vector<uint32_t> &calls) {
        bool is_done = affords(calls.size() * COMPARISON);
        compared known;
        for (size_t i = 0; i < calls.size(); i++) {
            uint32_t call = with.calls.calls[i];
            bool is_same = &other == &captured_[with.from] && call == calls[i];
            if (is_same || call == NONE || calls[i] == NONE) continue;
            difference found = is_done ? differs(with, call, other, calls[i], known) : difference::ops;
            with.differences[i] = std::max(with.differences[i], found);
        }
    }

    difference differs(plan &with, uint32_t a, captured_trace &other, uint32_t b, compared &known) {
        captured_trace &own = captured_[with.from];
        std::vector<std::pair<uint32_t, uint32_t>> path;
        auto is_known = [&] {
            auto found = known.find(a);
            return found != known.end() && found->second.first == b;
        };
        while (a != NONE && b != NONE && !is_known()) {
            path.emplace_back(a, b);
            a = own.of().events[a].parent;
            b = other.of().events[b].parent;
        }
        difference result = a != b ? difference::ops : difference::none;
        if (a != NONE && b != NONE) result = known[a].second;
        for (; !path.empty(); path.pop_back()) {
            std::tie(a, b) = path.back();
            difference here = between(to_, own, a, other, b);
            if (here == difference::arguments) with.bare.insert(a);
            result = std::max(result, here);
            known[a] = {b, result};
        }
        return result;
    }

    // The copy of a captured call, with the ops around it, below this launch.
    uint32_t copy(const plan &of, uint32_t number, uint32_t launch, std::vector<uint32_t> &host) {
        const std::vector<event> &events = captured_[of.from].of().events;
        std::vector<uint32_t> path;
        for (; number != NONE && copies_.count(number) == 0; number = events[number].parent) {
            path.push_back(number);
        }
        uint32_t parent = number != NONE ? copies_[number] : launch;
        for (; !path.empty(); path.pop_back()) {
            parent = add_copy(of, path.back(), parent, launch);
            copies_.emplace(path.back(), parent);
            host.push_back(parent);
        }
        return parent;
    }

    uint32_t add_copy(const plan &of, uint32_t number, uint32_t parent, uint32_t launch) {
        captured_trace &from = captured_[of.from];
        const event &launching = to_.events[launch];
        event one = from.of().events[number];
        bool is_bare = of.bare.count(number) > 0;
        bool is_other_call = is_bare && is_call(one) && one.parent != NONE;
        one.name = is_other_call ? launching.name : from.text(one.name);
        one.parent = parent;
        one.start = launching.start;
        one.duration = 0;
        one.link = one.external = UNKNOWN;
        one.uid = uint32_t(to_.events_in_file + to_.added_events++);
        one.track = launching.track;
        one.arguments = one.arguments != NONE && !is_bare ? from.arguments(one.arguments) : NONE;
        one.sequence = -1;
        auto added = uint32_t(to_.events.size());
        uint32_t stack = is_bare ? NONE : from.stack(number);
        if (stack != NONE) to_.borrowed.push_back({added, stack});
        to_.events.push_back(one);
        return added;
    }

    static constexpr size_t MOST_ROWS = 4096; // GPU events of a launch that are aligned
    static constexpr size_t COMPARISON = 32;  // the work to compare two calls, in pairs that are aligned

    trace &to_;
    std::vector<captured_trace> captured_;
    std::map<std::vector<uint32_t>, plan> plans_;
    std::unordered_map<uint32_t, uint32_t> copies_; // of the launch that is attributed
    std::vector<uint16_t> lengths_;                 // of the alignment in progress
    size_t left_ = size_t(1) << 31;                 // the work that is still done, some 5 s
};

} // namespace

void attribute_graphs(trace &to, const std::vector<const trace *> &captured) {
    to.is_attributed = true;
    attribution(to, captured).run();
}

} // namespace trace
