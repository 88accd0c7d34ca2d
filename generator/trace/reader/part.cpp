// One chunk of a trace, event by event, with simdjson. An event's fields are kept as written until its
// category and phase are known; texts are looked up as written, and unescaped or shortened only when they are
// new.
#include "part.h"

#include <cmath>
#include <cstring>
#include <simdjson.h>

#include "event_fields.h"
#include "mend.h"
#include "values.h"

namespace trace {

namespace {

namespace od = simdjson::ondemand;
using simdjson::error_code;
using any = any_value;
static_assert(simdjson::SIMDJSON_PADDING <= chunk::PADDING);

// ---- Texts ------------------------------------------------------------------------------------

std::string_view without_quotes(std::string_view token) {
    bool quoted = token.size() >= 2 && token.front() == '"' && token.back() == '"';
    return quoted ? token.substr(1, token.size() - 2) : token;
}

// JSON without the blanks between its tokens.
std::string compact(std::string_view json) {
    std::string out;
    out.reserve(json.size());
    bool in_text = false;
    for (size_t i = 0; i < json.size(); i++) {
        if (!in_text && is_blank(json[i])) continue;
        if (json[i] == '"') in_text = !in_text;
        out += json[i];
        if (json[i] == '\\' && in_text && i + 1 < json.size()) out += json[++i];
    }
    return out;
}

} // namespace

// ---- Reading ----------------------------------------------------------------------------------

struct part::reading {
    explicit reading(part &part) : to(part) {}

    part &to;
    const chunk *source = nullptr;
    od::parser parser, unescaper;
    std::string scratch;
    texts tokens;                   // as written
    std::vector<uint32_t> meanings; // of each token: its number in to.names
    error_code broken = simdjson::SUCCESS;
    std::string_view last_pid, last_tid; // in the chunk
    uint32_t last_track = NONE;
    fields current; // of the event that is read

    void clear() {
        last_track = NONE;
        tokens.clear();
        meanings.assign(1, EMPTY_TEXT);
        broken = simdjson::SUCCESS;
    }

    // Whether a value could be read.
    bool is_read(error_code problem) {
        if (is_of_document(problem)) broken = problem;
        return problem == simdjson::SUCCESS;
    }

    // ---- Values

    double number(any value) {
        double number;
        return is_read(read_number(value, number)) ? number : NAN;
    }

    int64_t integer(any value) {
        int64_t integer;
        return is_read(read_integer(value, integer)) ? integer : UNKNOWN;
    }

    std::string_view token(any value) {
        od::json_type type;
        std::string_view text;
        if (!is_read(value.type().get(type))) return {};
        error_code problem;
        if (type == od::json_type::array) {
            od::array array;
            problem = value.get_array().get(array);
            if (problem == simdjson::SUCCESS) problem = array.raw_json().get(text);
        } else if (type == od::json_type::object) {
            od::object object;
            problem = value.get_object().get(object);
            if (problem == simdjson::SUCCESS) problem = object.raw_json().get(text);
        } else {
            problem = value.raw_json_token().get(text);
        }
        if (!is_read(problem) || type == od::json_type::null) return {};
        return trim(text);
    }

    // ---- Texts

    // The value of a token: a text without its escapes, other JSON without blanks. A text with an invalid
    // escape is taken as written.
    std::string_view meaning(std::string_view token) {
        if (token.front() != '"') return scratch = compact(token);
        if (token.find('\\') == token.npos) return without_quotes(token);
        scratch.assign(token);
        scratch.resize(token.size() + simdjson::SIMDJSON_PADDING);
        od::document document;
        std::string_view text;
        error_code problem = unescaper.iterate(scratch.data(), token.size(), scratch.size()).get(document);
        if (problem == simdjson::SUCCESS) problem = document.get_string().get(text);
        return problem == simdjson::SUCCESS ? text : without_quotes(token);
    }

    uint32_t text(std::string_view token) {
        if (token.empty()) return EMPTY_TEXT;
        uint32_t number = tokens.intern(token);
        if (number == meanings.size()) meanings.push_back(to.names.intern(meaning(token)));
        return meanings[number];
    }

    // Successive events are mostly of one track.
    uint32_t track_of(const fields &from) {
        if (last_track == NONE || from.pid != last_pid || from.tid != last_tid) {
            last_pid = from.pid;
            last_tid = from.tid;
            last_track = to.tracks.number_of({text(from.pid), text(from.tid)});
        }
        return last_track;
    }

    // ---- Fields

    void read_phase(any value, fields &event) {
        std::string_view phase = without_quotes(token(value));
        bool is_known = phase.size() == 1 && std::strchr("XBEsfM", phase[0]) != nullptr;
        event.phase = is_known ? phase[0] : '-';
    }

    void read_category(any value, fields &event) {
        std::string_view name = without_quotes(token(value));
        event.category = category::other;
        for (const auto &row : CATEGORIES) {
            if (row.name != name) continue;
            event.category = row.category;
            event.kind = row.kind;
            if (row.category != category::frame) return;
            event.category = to.keeps_frames ? category::kept : category::other;
            return;
        }
    }

    void read_argument(od::field &&field, fields &event) {
        const char *key = field.key().raw();
        for (uint8_t i = LETTERS.first[uint8_t(*key)]; i != by_letter::LAST; i = LETTERS.next[i]) {
            const auto &row = ARGUMENTS[i];
            if (std::memcmp(key, row.key.data(), row.key.size()) != 0) continue;
            if (row.number != nullptr) event.numbers.*row.number = integer(any(std::move(field.value())));
            if (row.token != nullptr) event.tokens.*row.token = token(any(std::move(field.value())));
            return;
        }
    }

    void read_arguments(any value, fields &event) {
        od::object args;
        event.has_arguments = true;
        if (!is_read(value.get_object().get(args))) return;
        for (simdjson::simdjson_result<od::field> entry : args) {
            if (!is_read(entry.error())) return;
            read_argument(std::move(entry).value_unsafe(), event);
            if (broken != simdjson::SUCCESS) return;
        }
    }

    void read_field(od::field &&field, fields &event) {
        const char *key = field.key().raw();
        auto is = [&](std::string_view name) { return std::memcmp(key, name.data(), name.size()) == 0; };
        any value(std::move(field.value()));
        switch (*key) {
        case 'p':
            if (is("ph\"")) read_phase(value, event);
            if (is("pid\"")) event.pid = token(value);
            break;
        case 'c':
            if (is("cat\"")) read_category(value, event);
            break;
        case 'n':
            if (is("name\"")) event.name = token(value);
            break;
        case 't':
            if (is("tid\"")) event.tid = token(value);
            if (is("ts\"")) event.start = number(value);
            break;
        case 'd':
            if (is("dur\"")) event.duration = number(value);
            break;
        case 'i':
            if (is("id\"")) event.id = integer(value);
            break;
        case 'a':
            if (is("args\"")) read_arguments(value, event);
            break;
        }
    }

    // ---- Kept events

    void count(flaw flaw, uint64_t at) {
        if (to.flaws[size_t(flaw)]++ == 0) to.first_flaw[size_t(flaw)] = at;
    }

    uint32_t arguments_of(const fields &from) {
        const ::trace::tokens &args = from.tokens;
        if (from.kind == kind::cpu_op) {
            if (args.dims.empty() && args.types.empty() && args.strides.empty() && args.concrete.empty()) {
                return NONE;
            }
            return to.argument_sets.number_of(
                {text(args.dims), text(args.types), text(args.strides), text(args.concrete)});
        }
        return is_gpu(from.kind) ? collective_of(from) : NONE;
    }

    uint32_t collective_of(const fields &from) {
        const ::trace::tokens &args = from.tokens;
        if (args.collective.empty()) return NONE;
        return to.collectives.number_of({text(args.collective), text(args.dtype), text(args.group),
                                         text(args.ranks), text(args.in_split), text(args.out_split),
                                         from.numbers.in_elements, from.numbers.out_elements,
                                         from.numbers.group_size});
    }

    // Fields that few events have.
    void keep_extra(const fields &from) {
        auto event = uint32_t(to.events.size());
        if (is_gpu(from.kind) && from.numbers.bytes >= 0) to.sizes.push_back({from.numbers.bytes, event});
        bool is_call = from.kind == kind::runtime || from.kind == kind::driver;
        if (is_call && to.keeps_launched && !from.tokens.kernel.empty())
            to.launched.push_back({event, text(from.tokens.kernel)});
        if (from.kind != kind::cpu_op) return;
        uint32_t collective = collective_of(from);
        if (collective != NONE) to.announced.push_back({event, collective});
    }

    static int32_t small(int64_t number) { return number >= 0 && number <= INT32_MAX ? int32_t(number) : -1; }

    // A token of digits, or -1.
    static int32_t small(std::string_view token) {
        int64_t number = 0;
        std::string_view digits = without_quotes(token);
        for (char digit : digits) {
            if (digit < '0' || digit > '9' || number > INT32_MAX) return -1;
            number = number * 10 + (digit - '0');
        }
        return digits.empty() ? -1 : small(number);
    }

    static int32_t stream_of(const fields &from) {
        if (!is_gpu(from.kind)) return -1;
        return from.numbers.stream != UNKNOWN ? small(from.numbers.stream) : small(from.tid);
    }

    static int16_t device_of(const fields &from) {
        if (!is_gpu(from.kind)) return -1;
        int32_t device = from.numbers.device != UNKNOWN ? small(from.numbers.device) : small(from.pid);
        return device <= INT16_MAX ? int16_t(device) : int16_t(-1);
    }

    // Microseconds. Times beyond a thousand times the range of 64 bits of nanoseconds are rejected: no clock
    // has them, and their sums would be infinite.
    static bool is_time(double time_us) { return std::fabs(time_us) < 1e19; }

    void keep_event(const fields &from, uint64_t at) {
        if (from.name.size() < 2 || from.name.front() != '"' || !is_time(from.start) ||
            !is_time(from.duration)) {
            count(flaw::malformed, at);
            return;
        }
        event event{};
        event.start = from.start;
        event.duration = from.duration;
        if (event.duration < 0) {
            event.duration = 0;
            count(flaw::negative, at);
        }
        event.link = from.numbers.correlation;
        event.external = from.numbers.external;
        event.uid = to.events_in_chunk;
        event.name = text(from.name);
        event.track = track_of(from);
        event.arguments = arguments_of(from);
        event.parent = NONE;
        event.stream = stream_of(from);
        event.sequence = from.kind == kind::cpu_op ? small(from.numbers.sequence) : -1;
        event.device = device_of(from);
        event.kind = from.kind;
        keep_extra(from);
        to.events.push_back(event);
    }

    void keep_naming(const fields &from) {
        static constexpr struct {
            std::string_view name;
            ::trace::label label;
            std::string_view tokens::*text;
        } NAMINGS[] = {
            {"process_name", label::process_name, &tokens::name},
            {"process_labels", label::process_label, &tokens::labels},
            {"thread_name", label::thread_name, &tokens::name},
        };
        for (const auto &row : NAMINGS) {
            std::string_view name = from.tokens.*row.text;
            if (without_quotes(from.name) != row.name || name.empty()) continue;
            to.namings.push_back({track_of(from), text(name), row.label});
        }
    }

    void keep(const fields &from, uint64_t at) {
        if (from.phase == 'X' && from.category == category::kept) keep_event(from, at);
        // Begin and end events, which PyTorch's profiler does not write.
        if (from.phase == 'B' && from.category == category::kept) count(flaw::malformed, at);
        if (from.phase == 'M') keep_naming(from);
        if ((from.phase == 's' || from.phase == 'f') && from.category == category::flow &&
            from.id != UNKNOWN) {
            to.flows.push_back({from.id, track_of(from), from.phase == 'f'});
        }
    }

    void read_event(any item) {
        od::object object;
        std::string_view first;
        fields &event = current;
        event.clear();
        if (!is_read(item.raw_json_token().get(first))) return;
        uint64_t at = source->offset + size_t(first.data() - source->text);
        if (item.get_object().get(object) != simdjson::SUCCESS) {
            to.damage = {"not a profiler trace: traceEvents is not a list of objects", at};
            broken = simdjson::INCORRECT_TYPE;
            return;
        }
        for (simdjson::simdjson_result<od::field> entry : object) {
            if (!is_read(entry.error())) return;
            read_field(std::move(entry).value_unsafe(), event);
            if (broken != simdjson::SUCCESS) return;
            if (event.is_unwanted()) break;
        }
        keep(event, at);
        to.events_in_chunk++;
    }

    error_code read_list(od::document &document) {
        od::array list;
        error_code problem = document.get_array().get(list);
        if (problem != simdjson::SUCCESS) return problem;
        for (any item : list) {
            read_event(item);
            if (broken != simdjson::SUCCESS) return broken;
        }
        return simdjson::SUCCESS;
    }

    // The place of an error that simdjson reports.
    void damaged(od::document &document, error_code problem) {
        if (to.damage.what != nullptr) return;
        const char *where = source->text;
        if (document.current_location().get(where) != simdjson::SUCCESS) where = source->text;
        to.damage = {simdjson::error_message(problem), source->offset + size_t(where - source->text)};
    }

    bool read(chunk &chunk) {
        source = &chunk;
        od::document document;
        size_t room = chunk.size + simdjson::SIMDJSON_PADDING;
        error_code problem = parser.iterate(chunk.text, chunk.size, room).get(document);
        if (problem != simdjson::SUCCESS) { // of the whole chunk: its place is unknown
            if (problem == simdjson::MEMALLOC) throw std::bad_alloc();
            to.damage = {simdjson::error_message(problem), chunk.offset};
            return false;
        }
        problem = read_list(document);
        if (problem != simdjson::SUCCESS) damaged(document, problem);
        return problem == simdjson::SUCCESS;
    }

    void mend_texts(chunk &chunk) {
        mended done = mend(chunk.text, chunk.size);
        to.flaws[size_t(flaw::mended)] = done.texts;
        to.first_flaw[size_t(flaw::mended)] = chunk.offset + done.first;
    }
};

part::part() : reading_(new reading(*this)) {}
part::~part() = default;

bool part::take(chunk &chunk) {
    names.clear();
    argument_sets.clear();
    collectives.clear();
    tracks.clear();
    events.clear();
    flows.clear();
    sizes.clear();
    announced.clear();
    launched.clear();
    namings.clear();
    flaws.fill(0);
    first_flaw.fill(0);
    events_in_chunk = 0;
    damage = {};
    reading_->clear();
    if (chunk.is_dirty) reading_->mend_texts(chunk);
    return reading_->read(chunk);
}

} // namespace trace
