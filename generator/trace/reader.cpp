// From a file to a trace: workers take turns at cutting a chunk off the file, each reads its own, and what
// they give is joined in order of the file. So a trace is the same for any number of workers and size of
// chunks.
#include "trace.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <simdjson.h>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "input.h"
#include "mend.h"
#include "part.h"
#include "root.h"
#include "splitter.h"
#include "values.h"

namespace trace {

namespace {

namespace od = simdjson::ondemand;
using simdjson::error_code;

// ---- Joining ----------------------------------------------------------------------------------

// Takes parts in order of the file.
class joiner {
  public:
    joiner(trace &trace, const input &input) : to_(trace), input_(input) {}

    void join(const part &part) {
        map_texts(part);
        join_rows(part);
        join_extras(part);
        reserve(part.events.size());
        for (const event &from : part.events) join_event(from);
        for (const flow &from : part.flows) {
            to_.flows.push_back({from.id, places_[from.track], from.is_finish});
        }
        for (const naming &from : part.namings) {
            namings_.push_back({places_[from.place], texts_[from.text], from.label});
        }
        for (size_t i = 0; i < part.flaws.size(); i++) {
            if (part.flaws[i] > 0 && to_.flaws[i] == 0) to_.first_flaw[i] = part.first_flaw[i];
            to_.flaws[i] += part.flaws[i];
        }
        to_.events_in_file += part.events_in_chunk;
    }

    void finish() {
        to_.argument_sets = argument_sets_.take();
        to_.collectives = collectives_.take();
        name_tracks();
    }

  private:
    // Room for all events of the file, by what was read of it so far: vectors that double take thrice what
    // they hold while they do.
    void reserve(size_t count) {
        size_t needed = to_.events.size() + count;
        if (needed <= to_.events.capacity()) return;
        double expected = double(needed) / std::max(input_.share_read(), 0.01) * 1.05;
        to_.events.reserve(std::max(needed, std::min(size_t(expected), needed * 4)));
    }

    void map_texts(const part &part) {
        texts_.resize(part.names.size());
        for (uint32_t i = 0; i < texts_.size(); i++) texts_[i] = to_.names.intern(part.names[i]);
    }

    void join_rows(const part &part) {
        sets_.clear();
        for (argument_set row : part.argument_sets.rows()) {
            for (uint32_t *text : {&row.dims, &row.types, &row.strides, &row.concrete}) *text = texts_[*text];
            sets_.push_back(argument_sets_.number_of(row));
        }
        comms_.clear();
        for (collective row : part.collectives.rows()) {
            for (uint32_t *text :
                 {&row.name, &row.dtype, &row.group, &row.ranks, &row.in_split, &row.out_split}) {
                *text = texts_[*text];
            }
            comms_.push_back(collectives_.number_of(row));
        }
        places_.clear();
        for (const place &row : part.places.rows()) {
            places_.push_back(all_places_.number_of({texts_[row.pid], texts_[row.tid]}));
        }
    }

    void join_extras(const part &part) {
        auto before = uint32_t(to_.events.size());
        for (const announcement &from : part.announced) {
            to_.announced.push_back({before + from.event, comms_[from.collective]});
        }
        for (const event_size &from : part.sizes) to_.sizes.push_back({from.bytes, before + from.event});
    }

    void join_event(event from) {
        from.uid += uint32_t(to_.events_in_file);
        from.name = texts_[from.name];
        from.track = places_[from.track];
        if (from.arguments != NONE) {
            from.arguments = from.kind == kind::cpu_op ? sets_[from.arguments] : comms_[from.arguments];
        }
        to_.events.push_back(from);
    }

    void name_tracks() {
        const uint32_t unknown = to_.names.intern("Unknown"), zero = to_.names.intern("0");
        for (const place &row : all_places_.rows()) {
            to_.tracks.push_back({row.pid, row.tid, unknown, unknown, unknown});
        }
        std::unordered_map<uint32_t, std::pair<uint32_t, uint32_t>> processes; // pid -> name, label
        for (const naming &naming : namings_) {
            track &track = to_.tracks[naming.place];
            if (naming.label == label::thread_name) track.thread_name = naming.text;
            if (naming.label == label::thread_name || track.tid != zero) continue;
            auto &process = processes.try_emplace(track.pid, unknown, unknown).first->second;
            (naming.label == label::process_name ? process.first : process.second) = naming.text;
        }
        for (track &track : to_.tracks) {
            auto found = processes.find(track.pid);
            if (found == processes.end()) continue;
            track.process_name = found->second.first;
            track.process_label = found->second.second;
        }
    }

    trace &to_;
    const input &input_;
    distinct<argument_set> argument_sets_;
    distinct<collective> collectives_;
    distinct<place> all_places_;
    std::vector<naming> namings_;
    std::vector<uint32_t> texts_, sets_, comms_, places_; // of the part being joined: its number -> ours
};

// ---- Workers ----------------------------------------------------------------------------------

// What a thread works on: a chunk, and what it gives.
struct desk {
    ::trace::chunk chunk;
    ::trace::part part;
    size_t turn = 0;
    bool is_json = false;
};

// Threads that cut, read and join.
class crew {
  public:
    crew(splitter &splitter, joiner &joiner, size_t workers)
        : splitter_(splitter), joiner_(joiner), workers_(workers), new_desks_(2 * workers) {}

    // Reads all chunks. false: `problem` is the first of the file. Throws bad_alloc.
    bool read(problem &problem) {
        std::vector<std::thread> others;
        others.reserve(workers_);
        work(&others);
        for (std::thread &other : others) other.join();
        if (out_of_memory_) throw std::bad_alloc();
        if (!is_whole_ || stopped_) problem = problem_;
        return is_whole_ && !stopped_;
    }

  private:
    // `others`: where to put further threads, which are hired when the first chunk is not the last.
    void work(std::vector<std::thread> *others) {
        try {
            for (;;) {
                std::unique_ptr<desk> desk = take_desk();
                if (!desk || !cut(*desk)) return;
                if (others != nullptr && !splitter_.at_end()) hire(*others);
                others = nullptr;
                desk->is_json = desk->part.take(desk->chunk);
                hand_in(std::move(desk));
            }
        } catch (const std::bad_alloc &) {
            std::lock_guard<std::mutex> lock(joining_);
            out_of_memory_ = stopped_ = true;
            freed_.notify_all();
        }
    }

    void hire(std::vector<std::thread> &others) {
        try {
            for (size_t i = 1; i < workers_; i++) others.emplace_back([this] { work(nullptr); });
        } catch (const std::system_error &) { // fewer will do
        }
    }

    // A desk that nobody works on; null: work has stopped.
    std::unique_ptr<desk> take_desk() {
        std::unique_lock<std::mutex> lock(joining_);
        freed_.wait(lock, [&] { return stopped_ || !free_.empty() || new_desks_ > 0; });
        if (stopped_) return nullptr;
        if (free_.empty()) {
            new_desks_--;
            return std::make_unique<desk>();
        }
        std::unique_ptr<desk> taken = std::move(free_.back());
        free_.pop_back();
        return taken;
    }

    // Cuts the next chunk off the file. What is wrong there comes behind all chunks.
    bool cut(desk &desk) {
        std::lock_guard<std::mutex> lock(cutting_);
        if (is_cut_) return false;
        is_cut_ = true; // also if memory is short now
        problem problem{};
        splitter::result result = splitter_.next(desk.chunk, problem);
        is_cut_ = result != splitter::result::chunk;
        desk.turn = turns_++;
        if (!is_cut_) return true;
        std::lock_guard<std::mutex> also(joining_);
        is_whole_ = result == splitter::result::end;
        if (!is_whole_ && !stopped_) problem_ = problem;
        return false;
    }

    // Joins what is next in the file, and what waits for it.
    void hand_in(std::unique_ptr<desk> done) {
        std::lock_guard<std::mutex> lock(joining_);
        waiting_.emplace(done->turn, std::move(done));
        while (!stopped_ && !waiting_.empty() && waiting_.begin()->first == joined_) {
            std::unique_ptr<desk> next = std::move(waiting_.begin()->second);
            waiting_.erase(waiting_.begin());
            joined_++;
            if (next->is_json) {
                joiner_.join(next->part);
                free_.push_back(std::move(next));
            } else {
                stopped_ = true;
                splitter_.fail(problem_, next->part.damage.offset, next->part.damage.what);
            }
        }
        freed_.notify_all();
    }

    splitter &splitter_;
    joiner &joiner_;
    size_t workers_;

    std::mutex cutting_; // guards the splitter and
    bool is_cut_ = false;
    size_t turns_ = 0;

    std::mutex joining_; // taken within cutting_, never around it; guards the joiner and
    std::condition_variable freed_;
    size_t joined_ = 0, new_desks_;
    std::map<size_t, std::unique_ptr<desk>> waiting_;
    std::vector<std::unique_ptr<desk>> free_;
    bool is_whole_ = false, stopped_ = false, out_of_memory_ = false;
    problem problem_{};
};

// ---- What stands around the events ------------------------------------------------------------

class root {
  public:
    root(splitter &splitter, trace &to) : splitter_(splitter), to_(to) {}

    bool read(problem &problem) {
        std::string &text = splitter_.rest();
        mended done = mend(text.data(), text.size());
        uint64_t &count = to_.flaws[size_t(flaw::mended)], &first = to_.first_flaw[size_t(flaw::mended)];
        if (done.texts > 0) first = std::min(count > 0 ? first : UINT64_MAX, splitter_.offset_of(done.first));
        count += done.texts;
        text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
        od::document document;
        error_code error = parser_.iterate(text.data(), text.size(), text.capacity()).get(document);
        const char *where = text.data();
        if (error == simdjson::MEMALLOC) throw std::bad_alloc();
        if (error != simdjson::SUCCESS) return damaged(problem, where, error);
        error = read_fields(document);
        if (error == simdjson::SUCCESS) return true;
        if (document.current_location().get(where) != simdjson::SUCCESS) where = text.data();
        return damaged(problem, where, error);
    }

  private:
    bool damaged(problem &problem, const char *where, error_code error) {
        uint64_t offset = splitter_.offset_of(size_t(where - splitter_.rest().data()));
        return splitter_.fail(problem, offset, simdjson::error_message(error));
    }

    error_code read_fields(od::document &document) {
        od::json_type type;
        od::object fields;
        error_code error = document.type().get(type);
        if (error != simdjson::SUCCESS || type == od::json_type::array) return error;
        if ((error = document.get_object().get(fields)) != simdjson::SUCCESS) return error;
        for (simdjson::simdjson_result<od::field> entry : fields) {
            od::field field;
            if ((error = std::move(entry).get(field)) != simdjson::SUCCESS) return error;
            if (is_of_document(error = read_field(field))) return error;
        }
        return simdjson::SUCCESS;
    }

    error_code read_field(od::field &field) {
        od::raw_json_string key = field.key();
        any_value value(std::move(field.value()));
        if (key == "baseTimeNanoseconds") return read_integer(value, to_.base_nanoseconds);
        if (key == "distributedInfo") return read_distributed(value);
        return key == "deviceProperties" ? count_devices(value) : simdjson::SUCCESS;
    }

    error_code read_distributed(any_value value) {
        od::object info;
        error_code error = value.get_object().get(info);
        if (error != simdjson::SUCCESS) return error;
        if (is_of_document(error = read_integer(info.find_field_unordered("rank"), to_.rank))) return error;
        return read_integer(info.find_field_unordered("world_size"), to_.world_size);
    }

    error_code count_devices(any_value value) {
        od::array devices;
        size_t count = 0;
        error_code error = value.get_array().get(devices);
        if (error == simdjson::SUCCESS) error = devices.count_elements().get(count);
        if (error == simdjson::SUCCESS) to_.devices = int64_t(count);
        return error;
    }

    splitter &splitter_;
    trace &to_;
    od::parser parser_;
};

} // namespace

bool read_root(splitter &splitter, trace &to, problem &problem) {
    return root(splitter, to).read(problem);
}

bool read(const char *path, const read_options &options, trace &to, problem &problem) {
    try {
        std::unique_ptr<input> input = open_input(path, problem);
        if (!input) return false;
        splitter splitter(*input, path, options.chunk_size);
        joiner joiner(to, *input);
        if (!crew(splitter, joiner, size_t(std::max(1, options.workers))).read(problem)) return false;
        joiner.finish();
        return read_root(splitter, to, problem);
    } catch (const std::bad_alloc &) {
        return problem_set(&problem, "%s: out of memory", path);
    }
}

} // namespace trace
