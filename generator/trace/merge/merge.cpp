// Threads take turns at cutting a chunk off the files, one file after the other; each rewrites its own, and
// the results are written in order. Some facts that are needed first (ranks, bases of the clocks, devices)
// may be after the events in the files: the merge begins with likely values, and begins again if the files
// have others.
#include "merge.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <system_error>
#include <thread>
#include <unordered_set>

#include "packed.h"
#include "system/cleanup.h"
#include "trace/reader/root.h"

namespace trace {

namespace {

// ---- One rank ---------------------------------------------------------------------------------

// Takes the results of a rank's chunks, in order, and writes events that had to wait for the last chunk.
class rank_joiner {
  public:
    rank_joiner(const merge_rank &rank, merge_found &found) : rank_(rank), found_(found) {}

    void join(merged_chunk &chunk) {
        for (const auto &[key, track] : chunk.tracks) {
            tracks_[key].is_gpu |= track.is_gpu;
            tracks_[key].is_cpu |= track.is_cpu;
        }
        devices_.merge(chunk.devices);
        whole_flows_.insert(chunk.whole_flows.begin(), chunk.whole_flows.end());
        for (open_flow &flow : chunk.open_flows) open_flows_.push_back(std::move(flow));
        for (merge_label &label : chunk.labels) labels_[label.track][label.name] = std::move(label.arguments);
        found_.kept.resize(chunk.kept.size());
        for (size_t i = 0; i < chunk.kept.size(); i++) found_.kept[i] += chunk.kept[i];
        for (size_t i = 0; i < size_t(merge_count::count); i++) found_.counts[i] += chunk.counts[i];
    }

    void finish(std::string &to) {
        add_flows(to);
        // Sorted, because a hash table's order varies.
        std::map<std::string, merge_track> sorted(tracks_.begin(), tracks_.end());
        for (const auto &[key, track] : sorted) {
            if (track.is_gpu) add_labels(to, key, rank_.gpu_pid(pid_of_track(key)), true);
            if (track.is_cpu) add_labels(to, key, rank_.cpu_pid(), false);
        }
        found_.devices.assign(devices_.begin(), devices_.end());
        std::sort(found_.devices.begin(), found_.devices.end(), [](const auto &a, const auto &b) {
            return a.size() != b.size() ? a.size() < b.size() : a < b; // numbers by value
        });
    }

  private:
    // Arrows with ends in several chunks. Those without one of the ends are left out.
    void add_flows(std::string &to) {
        std::unordered_map<uint64_t, int> ends;
        for (const open_flow &flow : open_flows_) ends[flow.key] |= flow.is_finish ? 2 : 1;
        for (const open_flow &flow : open_flows_) {
            auto track = tracks_.find(flow.track);
            bool is_whole = ends[flow.key] == 3 || whole_flows_.count(flow.key) > 0;
            if (is_whole && track != tracks_.end()) {
                merge_events::add_flow(to, flow, track->second, rank_);
            } else {
                found_.counts[size_t(merge_count::lone_flows)]++;
            }
        }
    }

    void add_label(std::string &to, std::string_view name, int64_t pid, std::string_view tid,
                   const std::string &arguments) {
        to += ",\n{\"ph\":\"M\",\"name\":\"" + std::string(name) + "\",\"pid\":" + std::to_string(pid) +
              ",\"tid\":";
        to.append(tid).append(",\"ts\":0,\"args\":").append(arguments).append("}");
    }

    void add_labels(std::string &to, const std::string &key, int64_t pid, bool is_gpu) {
        auto known = labels_.find(key);
        std::string tid(tid_of_track(key));
        bool is_number = is_json_number(tid), has_name = false;
        std::string written = is_number ? tid : "\"" + tid + "\"";
        if (known != labels_.end()) {
            for (const auto &[name, arguments] : known->second) add_label(to, name, pid, written, arguments);
            has_name = known->second.count("thread_name") > 0;
        }
        if (has_name || !is_gpu) return;
        add_label(to, "thread_name", pid, written,
                  "{\"rank\":" + std::to_string(rank_.rank) + ",\"name\":\"stream " + tid + "\"}");
    }

    const merge_rank &rank_;
    merge_found &found_;
    std::unordered_map<std::string, merge_track> tracks_;
    std::set<std::string> devices_;
    std::unordered_set<uint64_t> whole_flows_;
    std::vector<open_flow> open_flows_;
    std::unordered_map<std::string, std::map<std::string, std::string>>
        labels_; // of a track: name, arguments
};

void add_process(std::string &to, const std::string &name, int64_t pid, int64_t rank, int64_t sort_index) {
    std::string head = ",\n{\"ph\":\"M\",\"pid\":" + std::to_string(pid) + ",\"tid\":0,\"ts\":0,\"name\":";
    std::string arguments = ",\"args\":{\"rank\":" + std::to_string(rank) + ",";
    to += head + "\"process_name\"" + arguments + "\"name\":\"" + name + "\"}}";
    to += head + "\"process_sort_index\"" + arguments + "\"sort_index\":" + std::to_string(sort_index) + "}}";
}

// The root up to its events, and the names of the processes.
std::string head_of(const std::vector<merge_rank> &ranks) {
    std::string processes;
    for (const merge_rank &rank : ranks) {
        std::string name = "Rank " + std::to_string(rank.rank) + " - ";
        for (size_t i = 0; i < std::max<size_t>(1, rank.devices.size()); i++) {
            std::string device = rank.devices.size() > 1 ? " (GPU " + rank.devices[i] + ")" : "";
            int64_t pid = rank.rank * 1000 + std::min<int64_t>(int64_t(i), 499);
            add_process(processes, name + "GPU Stream" + device, pid, rank.rank, 2 * rank.rank);
        }
        add_process(processes, name + "CPU/CUDA Runtime", rank.cpu_pid(), rank.rank, 2 * rank.rank + 1);
    }
    return "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"traceEvents\":[" +
           processes.substr(std::min<size_t>(1, processes.size()));
}

// The text after the events. `base`: of all times.
std::string tail_of(int64_t base) {
    return base == UNKNOWN ? "\n]}\n" : "\n],\"baseTimeNanoseconds\":" + std::to_string(base) + "}\n";
}

// ---- All ranks, once --------------------------------------------------------------------------

// The workplace of a thread: a chunk of a file, or its end.
struct desk {
    ::trace::chunk chunk;
    merged_chunk merged;
    ::trace::piece piece;
    size_t file = 0, turn = 0;
    bool is_end = false, is_failed = false;
    trace root; // at the end
    ::problem problem{};
};

// One pass over all files.
class merge_crew {
  public:
    merge_crew(const std::vector<merge_input> &inputs, const std::vector<merge_rank> &ranks,
               const merge_options &options, packed_file &to, std::vector<merge_found> &found)
        : inputs_(inputs), ranks_(ranks), options_(options), to_(to), found_(found) {}

    bool run(problem &problem) {
        std::vector<std::thread> others;
        others.reserve(size_t(options_.workers));
        hire(others);
        work();
        for (std::thread &other : others) other.join();
        if (stopped_) problem = problem_;
        return !stopped_;
    }

  private:
    void hire(std::vector<std::thread> &others) {
        try {
            for (int i = 1; i < options_.workers; i++) others.emplace_back([this] { work(); });
        } catch (const std::system_error &) { // fewer threads are enough
        } catch (const std::bad_alloc &) {    // likewise
        }
    }

    void work() {
        try {
            merge_events events(options_.categories);
            work_at(std::make_unique<::trace::desk>(), events);
        } catch (const std::bad_alloc &) {
            std::lock_guard<std::mutex> lock(joining_);
            if (!stopped_) problem_set(&problem_, "out of memory");
            stopped_ = true;
            next_.notify_all();
        }
    }

    void work_at(std::unique_ptr<::trace::desk> desk, merge_events &events) {
        while (cut(*desk)) {
            try {
                if (!desk->is_end && !desk->is_failed) rewrite(events, *desk);
            } catch (const std::bad_alloc &) {
                desk->is_failed = !problem_set(&desk->problem, "%s: out of memory", path_of(*desk));
            }
            if (!hand_in(*desk)) return;
        }
    }

    const char *path_of(const desk &desk) const { return inputs_[desk.file].path.c_str(); }

    // Cuts the next chunk, or reads the text after the last one of a file. false: nothing is left.
    bool cut(desk &desk) {
        std::lock_guard<std::mutex> lock(cutting_);
        if (file_ == inputs_.size()) return false;
        desk.file = file_;
        desk.turn = turns_++;
        desk.is_end = false;
        try {
            desk.is_failed = !cut_some(desk);
        } catch (const std::bad_alloc &) {
            desk.is_failed = !problem_set(&desk.problem, "%s: out of memory", path_of(desk));
        }
        if (desk.is_failed) file_ = inputs_.size();
        return true;
    }

    bool cut_some(desk &desk) {
        if (!input_) {
            input_ = open_input(path_of(desk), desk.problem);
            if (!input_) return false;
            splitter_ = std::make_unique<splitter>(*input_, path_of(desk), options_.chunk_size);
        }
        splitter::result result = splitter_->next(desk.chunk, desk.problem);
        if (result != splitter::result::end) return result == splitter::result::chunk;
        desk.is_end = true;
        desk.root = trace{};
        desk.root.base_nanoseconds = UNKNOWN;
        if (!read_root(*splitter_, desk.root, desk.problem)) return false;
        splitter_.reset();
        input_.reset();
        file_++;
        return true;
    }

    void rewrite(merge_events &events, desk &desk) {
        events.take(desk.chunk, ranks_[desk.file], desk.merged);
        make_piece(desk.merged.text, options_.packs, desk.piece);
        if (desk.merged.damage == nullptr) return;
        desk.is_failed =
            !problem_set(&desk.problem, "%s: byte %llu: %s", path_of(desk),
                         static_cast<unsigned long long>(desk.merged.damage_offset), desk.merged.damage);
    }

    // Waits for its turn, then writes.
    bool hand_in(desk &desk) {
        std::unique_lock<std::mutex> lock(joining_);
        next_.wait(lock, [&] { return stopped_ || joined_ == desk.turn; });
        if (!stopped_ && !join(desk)) stopped_ = true;
        joined_++;
        next_.notify_all();
        return !stopped_;
    }

    bool join(desk &desk) {
        if (desk.is_failed) {
            problem_ = desk.problem;
            return false;
        }
        try {
            if (!joiner_) joiner_ = std::make_unique<rank_joiner>(ranks_[desk.file], found_[desk.file]);
            if (desk.is_end) {
                finish_rank(desk);
            } else {
                joiner_->join(desk.merged);
            }
        } catch (const std::bad_alloc &) {
            return problem_set(&problem_, "%s: out of memory", path_of(desk));
        }
        return to_.write(desk.piece, problem_);
    }

    void finish_rank(desk &desk) {
        std::string text;
        joiner_->finish(text);
        joiner_.reset();
        make_piece(text, options_.packs, desk.piece);
        found_[desk.file].file_rank = desk.root.rank;
        found_[desk.file].world_size = desk.root.world_size;
        found_[desk.file].base_nanoseconds = desk.root.base_nanoseconds;
    }

    const std::vector<merge_input> &inputs_;
    const std::vector<merge_rank> &ranks_;
    const merge_options &options_;

    std::mutex cutting_; // guards
    std::unique_ptr<input> input_;
    std::unique_ptr<splitter> splitter_;
    size_t file_ = 0, turns_ = 0;

    std::mutex joining_; // guards
    packed_file &to_;
    std::vector<merge_found> &found_;
    std::unique_ptr<rank_joiner> joiner_;
    std::condition_variable next_;
    size_t joined_ = 0;
    bool stopped_ = false;
    problem problem_{};
};

// ---- Facts that are needed first --------------------------------------------------------------

// The earliest of the ranks' bases.
int64_t base_of(const std::vector<merge_found> &found) {
    int64_t base = UNKNOWN;
    for (const merge_found &one : found) {
        if (base == UNKNOWN || (one.base_nanoseconds != UNKNOWN && one.base_nanoseconds < base)) {
            base = one.base_nanoseconds;
        }
    }
    return base;
}

// Sets the ranks' facts from `found` of an earlier pass.
std::vector<merge_rank> ranks_of(const std::vector<merge_input> &inputs,
                                 const std::vector<merge_found> &found) {
    std::vector<merge_rank> ranks;
    int64_t most = 0, base = base_of(found);
    for (size_t i = 0; i < inputs.size(); i++) {
        merge_rank rank{};
        rank.rank = inputs[i].rank != UNKNOWN ? inputs[i].rank : found[i].file_rank;
        if (rank.rank == UNKNOWN) rank.rank = int64_t(i);
        if (found[i].base_nanoseconds != UNKNOWN) rank.shift_nanoseconds = found[i].base_nanoseconds - base;
        if (found[i].devices.size() > 1) rank.devices = found[i].devices;
        most = std::max(most, rank.rank);
        ranks.push_back(std::move(rank));
    }
    for (merge_rank &rank : ranks) rank.id_digits = int(std::to_string(most).size());
    return ranks;
}

bool same(const std::vector<merge_rank> &a, const std::vector<merge_rank> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const merge_rank &one, const merge_rank &other) {
                          return one.rank == other.rank && one.shift_nanoseconds == other.shift_nanoseconds &&
                                 one.devices == other.devices;
                      });
}

// Two files of one rank would overlap in the viewer.
bool check_ranks(const std::vector<merge_input> &inputs, const std::vector<merge_rank> &ranks,
                 problem &problem) {
    std::map<int64_t, size_t> seen;
    for (size_t i = 0; i < ranks.size(); i++) {
        auto [other, is_new] = seen.emplace(ranks[i].rank, i);
        if (is_new) continue;
        return problem_set(&problem, "%s and %s are both rank %lld; give one trace of each rank",
                           inputs[other->second].path.c_str(), inputs[i].path.c_str(),
                           static_cast<long long>(ranks[i].rank));
    }
    return true;
}

bool merge_once(const std::string &path, const std::vector<merge_input> &inputs,
                const std::vector<merge_rank> &ranks, const merge_options &options,
                std::vector<merge_found> &found, bool &is_done, problem &problem) {
    if (!check_ranks(inputs, ranks, problem)) return false;
    packed_file to(path, options.packs);
    found.assign(inputs.size(), merge_found{});
    piece piece;
    std::string head = head_of(ranks);
    make_piece(head, options.packs, piece);
    if (!to.open(problem) || !to.write(piece, problem)) return false;
    if (!merge_crew(inputs, ranks, options, to, found).run(problem)) return false;
    is_done = same(ranks, ranks_of(inputs, found));
    std::string tail = tail_of(base_of(found));
    for (size_t i = 0; i < ranks.size(); i++) found[i].rank = ranks[i].rank;
    make_piece(tail, options.packs, piece);
    return !is_done || (to.write(piece, problem) && to.commit(problem));
}

} // namespace

bool merge(const std::string &path, const std::vector<merge_input> &inputs, const merge_options &options,
           std::vector<merge_found> &found, problem &problem) {
    out_of_memory_ends();
    try {
        found.assign(inputs.size(), merge_found{});
        for (int pass = 0; pass < 3; pass++) {
            std::vector<merge_rank> ranks = ranks_of(inputs, found);
            bool is_done = false;
            if (!merge_once(path, inputs, ranks, options, found, is_done, problem)) return false;
            if (is_done) return true;
        }
        return problem_set(&problem, "%s: is not written: the traces change while they are read",
                           path.c_str());
    } catch (const std::bad_alloc &) {
        return problem_set(&problem, "%s: out of memory", path.c_str());
    }
}

} // namespace trace
