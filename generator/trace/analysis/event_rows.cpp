// Events as rows, for reports over many traces: events by category and name; the short kernels with and
// without an External id; single GPU events; the tree of the ops with GPU events.
//
//   A:event_rows() -> { { category, name, count, sum, mean, deviation, min, max }, ... }  kernels, copies and
//                     calls of the runtime and the driver, by descending sum; deviation is nil for one event
//   A:short_rows(limit, has_id) -> { { parent, kernel, count, ... as above }, ... }  kernels shorter than
//                     limit (µs), by descending sum
//   A:gpu_rows(first, count) -> { { uid, category, name, parent, device, stream, start, duration, link,
//                     external }, ... }  from the first-th (1: the first) on, by start
//   A:tree() -> names, parents, times, texts    a node for each thread, for each op that launched GPU events
//                     or has such an op below it, and for each GPU event; in order of their starts on the
//                     host, parents first: the number of its name in texts, that of its parent (0: none), and
//                     the time of a GPU event, else 0
//   A:stacks() -> { { op, entry, frames = { name, ... }, count, ... as above }, ... }    linked GPU events by
//                     the op that launched them, the outermost op around it, and the functions of Python
//                     around the launch, outermost first (trace.open with frames); by descending sum
//   A:calls({ [name] = true }) -> { { start, name, track, arguments, above }, ... }    the ops, and the
//                     launches of GPU events, with these names, by start on the host; track: the number of
//                     the host's thread; arguments: nil, there are none; above: the index in this list of the
//                     innermost op with such a name around it, or nil
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "captures.h"
#include "groups.h"
#include "trace_lua.h"

namespace trace {

namespace {

const char *category_of(kind kind) {
    switch (kind) {
    case kind::kernel: return "kernel";
    case kind::memcpy: return "gpu_memcpy";
    case kind::memset: return "gpu_memset";
    case kind::runtime: return "cuda_runtime";
    case kind::driver: return "cuda_driver";
    default: return "";
    }
}

// Sums of a row. `squares` are those of the differences from the mean so far.
struct totals {
    uint64_t count = 0;
    double sum = 0, mean = 0, squares = 0, min = 0, max = 0;

    void add(double value) {
        min = count == 0 ? value : std::min(min, value);
        max = count == 0 ? value : std::max(max, value);
        count++;
        sum += value;
        double difference = value - mean;
        mean += difference / double(count);
        squares += difference * (value - mean);
    }
};

void set_totals(lua_State *lua, const totals &row) {
    set_integer(lua, "count", row.count);
    set_number(lua, "sum", row.sum);
    set_number(lua, "mean", row.mean);
    if (row.count > 1) set_number(lua, "deviation", std::sqrt(row.squares / double(row.count - 1)));
    set_number(lua, "min", row.min);
    set_number(lua, "max", row.max);
}

// Pushes the rows by descending sum, those of equal sums by key; set_key(key) sets the fields of the key.
template <class Key, class SetKey>
int push_rows(lua_State *lua, const std::map<Key, totals> &rows, SetKey set_key) {
    std::vector<std::pair<Key, totals>> list(rows.begin(), rows.end());
    std::stable_sort(list.begin(), list.end(),
                     [](const auto &a, const auto &b) { return a.second.sum > b.second.sum; });
    push_list(lua, list.size(), [&](size_t i) {
        lua_createtable(lua, 0, 8);
        set_key(list[i].first);
        set_totals(lua, list[i].second);
    });
    return 1;
}

// The name of the op that launched it, or of the launch; EMPTY_TEXT: it has no launch.
uint32_t parent_name(const analysis &of, const gpu_event &one) {
    uint32_t launch = of.at(one).parent, op = nearest_op(*of.of, launch);
    if (op != NONE) return of.of->events[op].name;
    return launch != NONE ? of.of->events[launch].name : EMPTY_TEXT;
}

// ---- the tree ---------------------------------------------------------------------------------

class tree {
  public:
    explicit tree(const analysis &of) : of_(of), events_(of.of->events) {
        node_of_.assign(events_.size(), 0);
        thread_of_.assign(of.of->tracks.size(), 0);
        find_work();
        for (uint32_t number : of.of->host) {
            if (!has_work_[number]) continue;
            bool is_op = events_[number].kind == kind::cpu_op;
            // A call outside of all ops stands for one.
            if (is_op || nearest_op(*of.of, number) == NONE) add(number);
            if (!is_op) add_launched(number);
        }
        add_unlinked();
    }

    int push(lua_State *lua) const {
        push_list(lua, nodes_.size(), [&](size_t i) { lua_pushinteger(lua, nodes_[i].name); });
        push_list(lua, nodes_.size(), [&](size_t i) { lua_pushinteger(lua, nodes_[i].parent); });
        push_list(lua, nodes_.size(), [&](size_t i) { lua_pushnumber(lua, nodes_[i].time); });
        push_list(lua, texts_.size(), [&](size_t i) { push_text(lua, std::string_view(texts_[i])); });
        return 4;
    }

  private:
    struct node {
        uint32_t name, parent;
        double time;
    };

    void find_work() {
        has_work_.assign(events_.size(), false);
        launched_.resize(events_.size());
        for (const gpu_event &one : of_.gpu) {
            uint32_t above = of_.at(one).parent;
            if (above != NONE) launched_[above].push_back(&one);
            for (; above != NONE && !has_work_[above]; above = events_[above].parent) has_work_[above] = true;
        }
    }

    uint32_t text(std::string_view name) {
        auto [at, is_new] = text_of_.try_emplace(std::string(name), uint32_t(texts_.size() + 1));
        if (is_new) texts_.emplace_back(name);
        return at->second;
    }

    uint32_t add_node(std::string_view name, uint32_t parent, double time) {
        nodes_.push_back({text(name), parent, time});
        return uint32_t(nodes_.size());
    }

    uint32_t thread(uint32_t track) {
        if (thread_of_[track] == 0)
            thread_of_[track] = add_node("thread " + std::to_string(++threads_), 0, 0);
        return thread_of_[track];
    }

    // The node around an event: of the next op above it, else of its thread.
    uint32_t around(uint32_t number) {
        uint32_t op = nearest_op(*of_.of, events_[number].parent);
        return op != NONE && node_of_[op] != 0 ? node_of_[op] : thread(events_[number].track);
    }

    void add(uint32_t number) {
        uint32_t parent = around(number);
        node_of_[number] = add_node(of_.of->names[events_[number].name], parent, 0);
    }

    void add_launched(uint32_t launch) {
        uint32_t parent = node_of_[launch] != 0 ? node_of_[launch] : around(launch);
        for (const gpu_event *one : launched_[launch])
            add_node(of_.of->names[of_.at(*one).name], parent, one->duration);
    }

    void add_unlinked() {
        uint32_t parent = 0;
        for (const gpu_event &one : of_.gpu) {
            if (of_.is_linked(one)) continue;
            if (parent == 0) parent = add_node("GPU events without a launch", 0, 0);
            add_node(of_.of->names[of_.at(one).name], parent, one.duration);
        }
    }

    const analysis &of_;
    const std::vector<event> &events_;
    std::vector<node> nodes_;
    std::vector<std::string> texts_;
    std::unordered_map<std::string, uint32_t> text_of_;
    std::vector<uint32_t> node_of_, thread_of_; // of each event and track; 0: none
    std::vector<bool> has_work_;
    std::vector<std::vector<const gpu_event *>> launched_; // of each event
    uint32_t threads_ = 0;
};

// ---- stacks -----------------------------------------------------------------------------------

struct stack_key {
    uint32_t op, entry;
    std::vector<uint32_t> frames;
    bool operator<(const stack_key &other) const {
        return std::tie(op, entry, frames) < std::tie(other.op, other.entry, other.frames);
    }
};

// The outermost op around an event, or the event itself.
uint32_t entry_of(const trace &of, uint32_t number) {
    uint32_t entry = number;
    for (; number != NONE; number = of.events[number].parent) {
        if (of.events[number].kind == kind::cpu_op) entry = number;
    }
    return entry;
}

std::map<stack_key, totals> stacks_of(const analysis &of) {
    const trace &trace = *of.of;
    std::vector<thread_frames> threads = frames_of(trace);
    std::map<uint32_t, uint32_t> borrowed;
    for (const borrowed_stack &one : trace.borrowed) borrowed.emplace(one.event, one.stack);
    std::vector<std::vector<const gpu_event *>> launched(trace.events.size());
    for (const gpu_event &one : of.gpu) {
        if (of.is_linked(one)) launched[of.at(one).parent].push_back(&one);
    }
    std::map<stack_key, totals> rows;
    for (uint32_t launch : trace.host) {
        if (launched[launch].empty()) continue;
        const event &call = trace.events[launch];
        auto copied = borrowed.find(launch);
        stack_key key{EMPTY_TEXT, trace.events[entry_of(trace, launch)].name,
                      copied != borrowed.end() ? trace.stacks[copied->second]
                                               : threads[call.track].at(call.start)};
        for (const gpu_event *one : launched[launch]) {
            key.op = trace.events[launcher_of(of, *one)].name;
            rows[key].add(one->duration);
        }
    }
    return rows;
}

} // namespace

int lua_stacks(lua_State *lua) {
    const analysis &of = check_analysis(lua);
    return push_rows(lua, stacks_of(of), [&](const stack_key &key) {
        set_text(lua, "op", *of.of, key.op);
        set_text(lua, "entry", *of.of, key.entry);
        set_list(lua, "frames", key.frames.size(), [&](size_t i) { push_text(lua, *of.of, key.frames[i]); });
    });
}

namespace {

struct call {
    uint32_t on_host; // event: an op, or the launch of a GPU event
    bool is_op;
    uint32_t name, arguments, above;
};

// Which texts are keys of the table at `index`.
std::vector<bool> keys_among(lua_State *lua, int index, const trace &of) {
    luaL_checktype(lua, index, LUA_TTABLE);
    std::vector<bool> is_key(of.names.size());
    for (uint32_t i = 0; i < is_key.size(); i++) {
        push_text(lua, of, i);
        is_key[i] = lua_rawget(lua, index) != LUA_TNIL;
        lua_pop(lua, 1);
    }
    return is_key;
}

// The innermost op around an event that has one of the names; NONE: there is none.
uint32_t op_above(const trace &of, uint32_t event, const std::vector<bool> &names) {
    uint32_t up = of.events[event].parent;
    while (up != NONE && !(of.events[up].kind == kind::cpu_op && names[of.events[up].name]))
        up = of.events[up].parent;
    return up;
}

} // namespace

int lua_calls(lua_State *lua) {
    const trace &of = *check_analysis(lua).of;
    std::vector<bool> is_wanted = keys_among(lua, 2, of);
    std::vector<call> calls;
    for (uint32_t i = 0; i < of.events.size(); i++) {
        const event &one = of.events[i];
        if (!is_wanted[one.name]) continue;
        uint32_t above = op_above(of, i, is_wanted);
        if (one.kind == kind::cpu_op) calls.push_back({i, true, one.name, one.arguments, above});
        if (is_gpu(one.kind) && one.parent != NONE)
            calls.push_back({one.parent, false, one.name, NONE, above});
    }
    std::stable_sort(calls.begin(), calls.end(), [&](const call &a, const call &b) {
        return of.events[a.on_host].start < of.events[b.on_host].start;
    });
    std::unordered_map<uint32_t, size_t> place_of_op;
    for (size_t i = 0; i < calls.size(); i++)
        if (calls[i].is_op) place_of_op[calls[i].on_host] = i;
    push_list(lua, calls.size(), [&](size_t i) {
        const event &on_host = of.events[calls[i].on_host];
        lua_createtable(lua, 0, 5);
        set_number(lua, "start", on_host.start);
        set_text(lua, "name", of, calls[i].name);
        set_integer(lua, "track", on_host.track);
        if (calls[i].arguments != NONE) set_integer(lua, "arguments", calls[i].arguments);
        if (calls[i].above != NONE) set_integer(lua, "above", place_of_op.at(calls[i].above) + 1);
    });
    return 1;
}

int lua_tree(lua_State *lua) {
    return tree(check_analysis(lua)).push(lua);
}

int lua_event_rows(lua_State *lua) {
    const trace &of = *check_analysis(lua).of;
    using row_key = std::pair<kind, uint32_t>;
    std::map<row_key, totals> rows;
    for (const event &one : of.events) {
        bool is_call = one.kind == kind::runtime || one.kind == kind::driver;
        if (is_call || is_gpu(one.kind)) rows[{one.kind, one.name}].add(one.duration);
    }
    return push_rows(lua, rows, [&](const row_key &key) {
        set_text(lua, "category", category_of(key.first));
        set_text(lua, "name", of, key.second);
    });
}

int lua_short_rows(lua_State *lua) {
    const analysis &of = check_analysis(lua);
    double limit = luaL_checknumber(lua, 2);
    bool has_id = lua_toboolean(lua, 3) != 0;
    std::map<std::pair<uint32_t, uint32_t>, totals> rows; // parent, kernel
    for (const gpu_event &one : of.gpu) {
        const event &event = of.at(one);
        if (event.kind != kind::kernel || !(one.duration < limit)) continue;
        if ((event.external != UNKNOWN) == has_id) rows[{parent_name(of, one), event.name}].add(one.duration);
    }
    return push_rows(lua, rows, [&](const auto &key) {
        set_text(lua, "parent", *of.of, key.first);
        set_text(lua, "kernel", *of.of, key.second);
    });
}

int lua_gpu_rows(lua_State *lua) {
    const analysis &of = check_analysis(lua);
    auto first = size_t(std::max<lua_Integer>(1, luaL_checkinteger(lua, 2)) - 1);
    auto last = std::min(of.gpu.size(), first + size_t(std::max<lua_Integer>(0, luaL_checkinteger(lua, 3))));
    push_list(lua, last > first ? last - first : 0, [&](size_t i) {
        const gpu_event &one = of.gpu[first + i];
        const event &event = of.at(one);
        lua_createtable(lua, 0, 10);
        set_text(lua, "category", category_of(event.kind));
        set_text(lua, "name", *of.of, event.name);
        set_text(lua, "parent", *of.of, parent_name(of, one));
        set_known(lua, "uid", event.uid);
        set_known(lua, "device", event.device);
        set_known(lua, "stream", event.stream);
        set_known(lua, "link", event.link);
        set_known(lua, "external", event.external);
        set_number(lua, "start", one.start);
        set_number(lua, "duration", one.duration);
    });
    return 1;
}

} // namespace trace
