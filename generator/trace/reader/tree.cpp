// The tree of the events. The rules:
//
// Host: the events of a track by start, file order on ties, and a stack. Events that have ended are popped.
// An event that ends after the top overlaps it: by less than 1 µs, and with another event below on the
// stack, the top is popped, too; else the event has no parent and is no parent.
//
// GPU: the key that joins is `correlation`, if the first runtime or driver event with "launch" in its name
// has one, else External id. A launch owns the GPU event that its flow (start and finish with the key as id)
// leads to: with the finish's track and the key. Graph launches own all GPU events of the key; so does every
// launch of a trace without flows.
#include <algorithm>
#include <cctype>
#include <utility>

#include "trace.h"

namespace trace {

namespace {

bool is_call(kind kind) {
    return kind == kind::runtime || kind == kind::driver;
}
bool is_host(kind kind) {
    return kind == kind::cpu_op || is_call(kind);
}

// Whether `text` contains `word` (lower case), in any case.
bool holds(std::string_view text, std::string_view word) {
    auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
    return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

void count(trace &trace, flaw flaw, uint32_t uid) {
    size_t i = size_t(flaw);
    if (trace.flaws[i]++ == 0) trace.first_flaw[i] = uid;
}

// ---- GPU events and their launches ------------------------------------------------------------

void choose_key(trace &trace) {
    for (const event &event : trace.events) {
        if (!is_call(event.kind) || !holds(trace.names[event.name], "launch")) continue;
        trace.linked_by_correlation = event.link != UNKNOWN;
        break;
    }
    if (trace.linked_by_correlation) return;
    for (event &event : trace.events) event.link = event.external;
}

struct keyed {
    int64_t key;
    uint32_t number; // of an event or a flow
    bool operator<(const keyed &other) const {
        return key != other.key ? key < other.key : number < other.number;
    }
};

// The first with this key, or the end.
std::vector<keyed>::const_iterator find(const std::vector<keyed> &list, int64_t key) {
    auto found = std::lower_bound(list.begin(), list.end(), keyed{key, 0});
    return found != list.end() && found->key == key ? found : list.end();
}

class launches {
  public:
    explicit launches(trace &trace) : trace_(trace) {
        for (uint32_t i = 0; i < trace.events.size(); i++) {
            const event &event = trace.events[i];
            if (is_gpu(event.kind) && event.link != UNKNOWN) gpu_.push_back({event.link, i});
        }
        for (uint32_t i = 0; i < trace.flows.size(); i++) {
            (trace.flows[i].is_finish ? finishes_ : starts_).push_back({trace.flows[i].id, i});
        }
        for (auto *list : {&gpu_, &starts_, &finishes_}) std::sort(list->begin(), list->end());
    }

    void link(uint32_t launch) {
        const event &event = trace_.events[launch];
        if (event.link == UNKNOWN) return;
        std::string_view name = trace_.names[event.name];
        bool is_graph = name.find("GraphLaunch") != name.npos;
        if (is_graph || trace_.flows.empty()) {
            for (auto at = find(gpu_, event.link); at != gpu_.end() && at->key == event.link; ++at) {
                own(launch, at->number);
            }
        } else {
            follow(launch, event.link);
        }
    }

  private:
    void own(uint32_t launch, uint32_t gpu) {
        uint32_t &parent = trace_.events[gpu].parent;
        if (parent == NONE) parent = launch;
    }

    // Of several finishes with the key, and of several GPU events there, the last counts.
    void follow(uint32_t launch, int64_t key) {
        if (find(starts_, key) == starts_.end()) return;
        auto finish = find(finishes_, key);
        if (finish == finishes_.end()) return;
        while (finish + 1 != finishes_.end() && (finish + 1)->key == key) ++finish;
        uint32_t track = trace_.flows[finish->number].track, found = NONE;
        for (auto at = find(gpu_, key); at != gpu_.end() && at->key == key; ++at) {
            if (trace_.events[at->number].track == track) found = at->number;
        }
        if (found != NONE) own(launch, found);
    }

    trace &trace_;
    std::vector<keyed> gpu_, starts_, finishes_;
};

void link_gpu(trace &trace) {
    choose_key(trace);
    launches launches(trace);
    for (uint32_t i = 0; i < trace.events.size(); i++) {
        if (is_call(trace.events[i].kind)) launches.link(i);
    }
    for (const event &event : trace.events) {
        if (is_gpu(event.kind) && event.parent == NONE) count(trace, flaw::unlinked, event.uid);
    }
    trace.flows = {};
}

// ---- The host ---------------------------------------------------------------------------------

void sort_host(trace &trace) {
    for (uint32_t i = 0; i < trace.events.size(); i++) {
        if (is_host(trace.events[i].kind)) trace.host.push_back(i);
    }
    std::stable_sort(trace.host.begin(), trace.host.end(),
                     [&](uint32_t a, uint32_t b) { return trace.events[a].start < trace.events[b].start; });
}

void link_host(trace &trace) {
    std::vector<std::vector<uint32_t>> stacks(trace.tracks.size());
    for (uint32_t number : trace.host) {
        event &event = trace.events[number];
        std::vector<uint32_t> &stack = stacks[event.track];
        auto top_end = [&] { return trace.events[stack.back()].end(); };
        while (!stack.empty() && event.start >= top_end()) stack.pop_back();
        while (stack.size() >= 2 && event.end() > top_end() && top_end() - event.start < 1) stack.pop_back();
        if (!stack.empty() && event.end() > top_end()) {
            count(trace, flaw::overlapping, event.uid);
            continue;
        }
        if (!stack.empty()) event.parent = stack.back();
        stack.push_back(number);
    }
}

// ---- Windows ----------------------------------------------------------------------------------

// The new number of each event; NONE: it is removed.
std::vector<uint32_t> kept_numbers(const trace &trace, const std::vector<window> &windows) {
    std::vector<uint32_t> numbers(trace.events.size(), NONE);
    uint32_t next = 0;
    for (size_t i = 0; i < numbers.size(); i++) {
        bool is_frame = trace.events[i].kind == kind::frame; // one may be around a window
        if (is_frame || window_of(trace, trace.events[i], windows) < windows.size()) numbers[i] = next++;
    }
    return numbers;
}

// Renumbers the events of a list, and removes those without a number.
template <class T, class F>
void renumber(std::vector<T> &list, const std::vector<uint32_t> &numbers, F event) {
    auto is_removed = [&](T &one) { return numbers[event(one)] == NONE; };
    list.erase(std::remove_if(list.begin(), list.end(), is_removed), list.end());
    for (T &one : list) event(one) = numbers[event(one)];
}

// The kept event that is the parent of an event, or the next one above it, as its old number; NONE: none is.
uint32_t kept_parent(const trace &trace, const std::vector<uint32_t> &numbers, uint32_t parent) {
    while (parent != NONE && numbers[parent] == NONE) parent = trace.events[parent].parent;
    return parent;
}

} // namespace

void link(trace &trace) {
    link_gpu(trace);
    sort_host(trace);
    link_host(trace);
}

size_t window_of(const trace &trace, const event &event, const std::vector<window> &windows) {
    bool is_launched = is_gpu(event.kind) && event.parent != NONE;
    double time = is_launched ? trace.events[event.parent].start : event.start;
    auto after = std::upper_bound(windows.begin(), windows.end(), time,
                                  [](double at, const window &window) { return at < window.start; });
    if (after == windows.begin() || time >= (after - 1)->end) return windows.size();
    return size_t(after - windows.begin()) - 1;
}

void keep_within(trace &trace, std::vector<window> windows) {
    std::vector<uint32_t> numbers = kept_numbers(trace, windows);
    for (event &event : trace.events) event.parent = kept_parent(trace, numbers, event.parent);
    for (event &event : trace.events) {
        if (event.parent != NONE) event.parent = numbers[event.parent];
    }
    size_t unlinked = size_t(flaw::unlinked);
    trace.flaws[unlinked] = 0;
    std::vector<event> events;
    for (size_t i = 0; i < numbers.size(); i++) {
        if (numbers[i] == NONE) continue;
        events.push_back(trace.events[i]);
        if (is_gpu(events.back().kind) && events.back().parent == NONE)
            count(trace, flaw::unlinked, events.back().uid);
    }
    trace.events = std::move(events);
    renumber(trace.host, numbers, [](uint32_t &one) -> uint32_t & { return one; });
    renumber(trace.announced, numbers, [](announcement &one) -> uint32_t & { return one.event; });
    renumber(trace.sizes, numbers, [](event_size &one) -> uint32_t & { return one.event; });
    renumber(trace.borrowed, numbers, [](borrowed_stack &one) -> uint32_t & { return one.event; });
    trace.kept = std::move(windows);
}

} // namespace trace
