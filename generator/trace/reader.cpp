// From a file to a trace.
#include "trace.h"

#include <algorithm>
#include <new>
#include <simdjson.h>
#include <string>
#include <unordered_map>

#include "input.h"
#include "part.h"

namespace trace {

namespace {

namespace od = simdjson::ondemand;

// ---- Joining ----------------------------------------------------------------------------------

// Takes parts in order of the file.
class joiner {
  public:
    explicit joiner(trace &trace) : to_(trace) {}

    // `offset`: of the part's chunk in the file.
    void join(const part &part, uint64_t offset) {
        map_texts(part);
        join_rows(part);
        for (const event &from : part.events) join_event(from);
        for (const flow &from : part.flows) {
            to_.flows.push_back({from.id, places_[from.track], from.is_finish});
        }
        for (const naming &from : part.namings) {
            namings_.push_back({places_[from.place], texts_[from.text], from.label});
        }
        for (size_t i = 0; i < part.flaws.size(); i++) {
            if (part.flaws[i] > 0 && to_.flaws[i] == 0) to_.first_flaw[i] = offset + part.first_flaw[i];
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
    distinct<argument_set> argument_sets_;
    distinct<collective> collectives_;
    distinct<place> all_places_;
    std::vector<naming> namings_;
    std::vector<uint32_t> texts_, sets_, comms_, places_; // of the part being joined: its number -> ours
};

// ---- The whole file ---------------------------------------------------------------------------

bool read_all(input &input, std::string &text, problem &problem) {
    constexpr size_t STEP = size_t(1) << 22;
    size_t got = 0, size = 0;
    do {
        text.resize(size + STEP);
        if (!input.read(text.data() + size, STEP, &got, problem)) return false;
        size += got;
    } while (got > 0);
    text.resize(size + simdjson::SIMDJSON_PADDING);
    text.resize(size);
    return true;
}

bool read_text(const char *path, std::string &text, trace &to, problem &problem) {
    od::parser parser;
    od::document document;
    std::string_view events;
    auto error = parser.iterate(text.data(), text.size(), text.capacity()).get(document);
    od::object root;
    if (error == simdjson::SUCCESS) error = document.get_object().get(root);
    if (error != simdjson::SUCCESS) {
        return problem_set(&problem, "%s: not JSON, or cut off: %s", path, simdjson::error_message(error));
    }
    for (simdjson::simdjson_result<od::field> entry : root) {
        od::field field;
        if (std::move(entry).get(field) != simdjson::SUCCESS) break;
        od::raw_json_string key = field.key();
        if (key == "traceEvents") {
            od::array list;
            if (field.value().get_array().get(list) != simdjson::SUCCESS) break;
            if (list.raw_json().get(events) != simdjson::SUCCESS) break;
        } else if (key == "distributedInfo") {
            od::object info;
            if (field.value().get_object().get(info) != simdjson::SUCCESS) continue;
            int64_t number;
            if (info["rank"].get_int64().get(number) == simdjson::SUCCESS) to.rank = number;
            if (info["world_size"].get_int64().get(number) == simdjson::SUCCESS) to.world_size = number;
        } else if (key == "baseTimeNanoseconds") {
            int64_t number;
            if (field.value().get_int64().get(number) == simdjson::SUCCESS) to.base_nanoseconds = number;
        } else if (key == "deviceProperties") {
            od::array devices;
            size_t count;
            if (field.value().get_array().get(devices) != simdjson::SUCCESS) continue;
            if (devices.count_elements().get(count) == simdjson::SUCCESS) to.devices = int64_t(count);
        }
    }
    if (events.empty()) {
        return problem_set(&problem, "%s: no profiler trace: there are no traceEvents in it", path);
    }
    std::string chunk(events);
    chunk.reserve(chunk.size() + simdjson::SIMDJSON_PADDING);
    part part;
    if (!part.take(chunk.data(), events.size())) {
        return problem_set(&problem, "%s: byte %llu: %s", path, (unsigned long long)(part.damage.at),
                           part.damage.what);
    }
    joiner joiner(to);
    joiner.join(part, uint64_t(events.data() - text.data()));
    joiner.finish();
    return true;
}

} // namespace

bool read(const char *path, int workers, trace &to, problem &problem) {
    (void)workers;
    try {
        std::unique_ptr<input> input = open_input(path, problem);
        std::string text;
        if (!input || !read_all(*input, text, problem)) return false;
        return read_text(path, text, to, problem);
    } catch (const std::bad_alloc &) {
        return problem_set(&problem, "%s: out of memory", path);
    }
}

} // namespace trace
