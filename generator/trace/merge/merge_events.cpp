// Reads each event once and writes it again: first the fields that change, then all others unchanged.
#include "merge_events.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "trace/reader/mend.h"
#include "trace/reader/texts.h"

namespace trace {

namespace {

constexpr char BETWEEN = '\x1f'; // pid and tid: no text of a trace contains it
constexpr size_t LONGEST_ID = 18;

// The arguments that join events of one rank.
constexpr std::string_view ID_ARGUMENTS[] = {"\"correlation\"", "\"External id\"", "\"external id\""};

constexpr std::string_view GPU_CATEGORIES[] = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"};

bool is_text(std::string_view value) {
    return !value.empty() && value.front() == '"';
}

// Whether the value can be a part of a text.
bool is_plain(std::string_view value) {
    return is_text(value) || is_json_number(value);
}

std::string_view unquoted(std::string_view value) {
    return is_text(value) ? value.substr(1, value.size() - 2) : value;
}

template <size_t N> bool is_one_of(std::string_view text, const std::string_view (&list)[N]) {
    return std::find(list, list + N, text) != list + N;
}

bool all_digits(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void add_number(std::string &to, int64_t number) {
    char text[24];
    to.append(text, size_t(std::snprintf(text, sizeof text, "%lld", static_cast<long long>(number))));
}

// A shifted time in µs. Plain decimals stay exact to the nanosecond; the text after them is kept.
void add_shifted(std::string &to, std::string_view time, int64_t shift_nanoseconds) {
    if (shift_nanoseconds == 0) {
        to += time;
        return;
    }
    size_t point = std::min(time.find('.'), time.size());
    std::string_view whole = time.substr(0, point), fraction = time.substr(std::min(point + 1, time.size()));
    char text[64];
    if (!all_digits(whole) || whole.size() > 15 || (!fraction.empty() && !all_digits(fraction))) {
        double moved = std::strtod(std::string(time).c_str(), nullptr) + double(shift_nanoseconds) / 1e3;
        to.append(text, size_t(std::snprintf(text, sizeof text, "%.3f", moved)));
        return;
    }
    std::string digits(fraction.substr(0, 3));
    digits.append(3 - digits.size(), '0');
    int64_t nanoseconds =
        std::strtoll((std::string(whole) + digits).c_str(), nullptr, 10) + shift_nanoseconds;
    to.append(text, size_t(std::snprintf(text, sizeof text, "%s%lld.%03lld", nanoseconds < 0 ? "-" : "",
                                         static_cast<long long>(std::llabs(nanoseconds) / 1000),
                                         static_cast<long long>(std::llabs(nanoseconds) % 1000))));
    if (fraction.size() > 3) to += fraction.substr(3);
}

uint64_t key_of_flow(std::string_view category, std::string_view id) {
    return hash_bytes(category.data(), category.size()) * 31 + hash_bytes(id.data(), id.size());
}

} // namespace

// The values of an event, as written.
struct merge_events::fields {
    std::string_view ph, category, name, pid, tid, time, duration, id;

    bool is_flow() const { return ph == "\"s\"" || ph == "\"f\"" || ph == "\"t\""; }
    // The slot for the value of a key, or null for other keys.
    std::string_view *field_of(std::string_view key) {
        switch (key.size()) { // with quotes
        case 4:
            if (key == "\"ph\"") return &ph;
            if (key == "\"ts\"") return &time;
            if (key == "\"id\"") return &id;
            break;
        case 5:
            if (key == "\"cat\"") return &category;
            if (key == "\"pid\"") return &pid;
            if (key == "\"tid\"") return &tid;
            if (key == "\"dur\"") return &duration;
            break;
        case 6:
            if (key == "\"name\"") return &name;
            break;
        }
        return nullptr;
    }
};

int64_t merge_rank::gpu_pid(std::string_view device) const {
    auto found = std::find(devices.begin(), devices.end(), device);
    if (devices.size() < 2 || found == devices.end()) return rank * 1000;
    return rank * 1000 + std::min<int64_t>(found - devices.begin(), 499);
}

void set_track_key(std::string &key, std::string_view pid, std::string_view tid) {
    key.assign(pid);
    key += BETWEEN;
    key += tid;
}

std::string_view pid_of_track(const std::string &key) {
    return std::string_view(key).substr(0, key.find(BETWEEN));
}

std::string_view tid_of_track(const std::string &key) {
    return std::string_view(key).substr(key.find(BETWEEN) + 1);
}

bool merge_events::is_kept(std::string_view category) {
    std::string_view name = unquoted(category);
    if (category_ < categories_.size() && categories_[category_] == name) return true;
    auto found = std::find(categories_.begin(), categories_.end(), name);
    if (found == categories_.end()) return false;
    category_ = size_t(found - categories_.begin());
    return true;
}

// Adds the digits of the rank to an id, so that no other rank has it. An id that is too long is folded first.
void merge_events::add_id(std::string &to, std::string_view id) {
    std::string_view bare = unquoted(id);
    bool negative = !bare.empty() && bare.front() == '-';
    std::string_view digits = negative ? bare.substr(1) : bare;
    if (is_text(id)) {
        to.append("\"").append(bare).append(suffix_).append("\"");
    } else if (!all_digits(digits)) {
        to += id; // not a decimal number
    } else if (digits.size() + suffix_.size() > LONGEST_ID) {
        to_->counts[size_t(merge_count::long_ids)]++;
        add_number(to, int64_t(1 + hash_bytes(bare.data(), bare.size()) % 999999999999999));
        to += suffix_;
    } else if (digits == "0") {
        add_number(to, rank_->rank); // a number does not begin with 0
    } else {
        to.append(bare).append(suffix_);
    }
}

// Writes the object at `cursor` to arguments_; if it is not an object, only the rank.
bool merge_events::read_arguments(json_cursor &cursor) {
    arguments_ = "{\"rank\":";
    add_number(arguments_, rank_->rank);
    std::string_view key, value;
    if (cursor.at < cursor.end && *cursor.at != '{') {
        arguments_ += '}';
        return cursor.value(value);
    }
    cursor.take('{');
    if (!cursor.take('}')) {
        do {
            if (!cursor.text(key) || !cursor.take(':') || !cursor.value(value)) return false;
            if (key == "\"rank\"") continue;
            arguments_.append(",").append(key).append(":");
            if (is_one_of(key, ID_ARGUMENTS)) {
                add_id(arguments_, value);
            } else {
                arguments_ += value;
            }
        } while (cursor.take(','));
        if (!cursor.take('}')) return false;
    }
    arguments_ += '}';
    return true;
}

// Reads the event up to the position after its bracket, or until it is known to be dropped.
bool merge_events::read_fields(json_cursor &cursor, fields &of, bool &is_dropped) {
    std::string_view key, value;
    if (!cursor.take('{')) return false;
    if (cursor.take('}')) return true;
    do {
        if (!cursor.text(key) || !cursor.take(':')) return false;
        if (key == "\"args\"") {
            if (!read_arguments(cursor)) return false;
            continue;
        }
        if (!cursor.value(value)) return false;
        std::string_view *field = of.field_of(key);
        if (field == &of.category && !is_kept(value)) {
            is_dropped = true;
            return true;
        }
        if (field != nullptr) {
            *field = value;
        } else {
            others_.append(",").append(key).append(":").append(value);
        }
    } while (cursor.take(','));
    return cursor.take('}');
}

// Whether the event can be used. Removes quotes around numbers; sets negative durations to 0.
bool merge_events::check(fields &of) {
    of.time = unquoted(of.time);
    of.duration = unquoted(of.duration);
    if (!is_text(of.ph) || !is_text(of.name) || !is_plain(of.pid) || !is_plain(of.tid)) return false;
    if (!is_json_number(of.time)) return false;
    if (of.is_flow()) return !of.id.empty();
    if (of.ph != "\"X\"") return true;
    if (!is_json_number(of.duration)) return false;
    if (of.duration.front() == '-') {
        to_->counts[size_t(merge_count::negative)]++;
        of.duration = "0";
    }
    return true;
}

merge_track &merge_events::track_of(const fields &of) {
    set_track_key(track_, unquoted(of.pid), unquoted(of.tid));
    if (last_track_ == nullptr || track_ != last_track_key_) {
        last_track_key_ = track_;
        last_track_ = &to_->tracks[track_];
    }
    return *last_track_;
}

// The event up to its pid.
void merge_events::add_head(std::string &to, const fields &of) const {
    to.append(",\n{\"ph\":").append(of.ph).append(",\"cat\":").append(of.category);
    to.append(",\"name\":\"[R");
    add_number(to, rank_->rank);
    to.append("] ").append(of.name.substr(1)).append(",\"pid\":");
}

// The event after its pid.
void merge_events::add_tail(std::string &to, const fields &of) {
    to.append(",\"tid\":").append(of.tid).append(",\"ts\":");
    add_shifted(to, of.time, rank_->shift_nanoseconds);
    if (!of.duration.empty()) to.append(",\"dur\":").append(of.duration);
    if (!of.id.empty()) add_id(to.append(",\"id\":"), of.id);
    to.append(others_).append(",\"args\":").append(arguments_).append("}");
}

void merge_events::add_event(const fields &of) {
    bool is_gpu = is_one_of(unquoted(of.category), GPU_CATEGORIES);
    merge_track &track = track_of(of);
    (is_gpu ? track.is_gpu : track.is_cpu) = true;
    if (is_gpu) to_->devices.emplace(unquoted(of.pid));
    add_head(to_->text, of);
    add_number(to_->text, is_gpu ? rank_->gpu_pid(unquoted(of.pid)) : rank_->cpu_pid());
    add_tail(to_->text, of);
}

void merge_events::add_open_flow(const fields &of) {
    open_flow flow{key_of_flow(of.category, unquoted(of.id)), of.ph == "\"f\"", {}, {}, {}};
    set_track_key(flow.track, unquoted(of.pid), unquoted(of.tid));
    add_head(flow.before, of);
    add_tail(flow.after, of);
    to_->open_flows.push_back(std::move(flow));
}

void merge_events::add_flow(std::string &to, const open_flow &flow, const merge_track &track,
                            const merge_rank &rank) {
    // If a CPU thread has the name of a stream, an arrow starts at the first and ends at the second.
    bool is_gpu = track.is_gpu && (flow.is_finish || !track.is_cpu);
    to += flow.before;
    add_number(to, is_gpu ? rank.gpu_pid(pid_of_track(flow.track)) : rank.cpu_pid());
    to += flow.after;
}

// Writes the arrows that have both ends in this chunk, and the events at these ends.
void merge_events::settle_flows() {
    std::unordered_map<uint64_t, int> ends; // 1: a start, 2: a finish
    for (const open_flow &flow : to_->open_flows) ends[flow.key] |= flow.is_finish ? 2 : 1;
    auto settled = [&](const open_flow &flow) {
        auto track = to_->tracks.find(flow.track);
        if (ends[flow.key] != 3 || track == to_->tracks.end()) return false;
        add_flow(to_->text, flow, track->second, *rank_);
        return true;
    };
    std::vector<open_flow> &open = to_->open_flows;
    open.erase(std::remove_if(open.begin(), open.end(), settled), open.end());
    for (const auto &[key, which] : ends) {
        if (which == 3) to_->whole_flows.push_back(key);
    }
}

void merge_events::add_label(const fields &of) {
    std::string_view name = unquoted(of.name);
    if (name != "thread_name" && name != "thread_sort_index") return;
    merge_label label{{}, std::string(name), arguments_};
    set_track_key(label.track, unquoted(of.pid), unquoted(of.tid));
    to_->labels.push_back(std::move(label));
}

merge_events::outcome merge_events::take_event(json_cursor &cursor) {
    fields of;
    bool is_dropped = false;
    others_.clear();
    arguments_ = "{\"rank\":";
    add_number(arguments_, rank_->rank);
    arguments_ += '}';
    const char *begin = cursor.at;
    if (*begin != '{') return outcome::malformed;
    bool is_read = read_fields(cursor, of, is_dropped);
    if (is_dropped) {
        cursor.leave(1);
        return outcome::dropped;
    }
    if (!is_read) {
        cursor.at = begin + 1;
        cursor.leave(1);
        return outcome::malformed;
    }
    if (of.ph == "\"M\"") {
        add_label(of);
        return outcome::dropped;
    }
    if (of.category.empty()) return outcome::dropped;
    if (!check(of)) return outcome::malformed;
    if (of.is_flow()) {
        add_open_flow(of);
    } else {
        add_event(of);
    }
    to_->kept[category_]++;
    return outcome::taken;
}

void merge_events::take(chunk &chunk, const merge_rank &rank, merged_chunk &to) {
    rank_ = &rank;
    to_ = &to;
    last_track_ = nullptr;
    std::string text = std::move(to.text);
    text.clear();
    to = merged_chunk{};
    to.text = std::move(text);
    to.kept.assign(categories_.size(), 0);
    char digits[24];
    std::snprintf(digits, sizeof digits, "%0*lld", rank.id_digits, static_cast<long long>(rank.rank));
    suffix_ = digits;
    if (chunk.is_dirty) mend(chunk.text, chunk.size);
    json_cursor cursor(chunk.text, chunk.text + chunk.size);
    cursor.take('[');
    if (cursor.take(']')) return;
    do {
        if (*cursor.at != '{') {
            to.damage = "not JSON, or not a profiler trace: an event (an object) is missing here";
            break;
        }
        if (take_event(cursor) == outcome::malformed) to.counts[size_t(merge_count::malformed)]++;
    } while (cursor.take(','));
    if (to.damage == nullptr && !cursor.take(']')) to.damage = "not JSON: a comma is missing here";
    to.damage_offset = chunk.offset + uint64_t(cursor.at - chunk.text);
    settle_flows();
}

} // namespace trace
