// Reads one gate log with simdjson; see gate_log.h.
#include "gate_log.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

namespace od = simdjson::ondemand;
using value = simdjson::simdjson_result<od::value>;

constexpr size_t MOST_EXPERTS = 65536;
// Limits of a load: no sum overflows, and no square underflows.
constexpr double MOST_LOAD = 1e15, LEAST_LOAD = 1e-100;

enum key : size_t { STEP, NUM_TOKENS, EXPERT_LOADS, KEYS };
constexpr std::array<const char *, KEYS> KEY_NAMES = {"step", "num_tokens", "expert_loads"};

key find_key(std::string_view name) {
    size_t i = 0;
    while (i < KEYS && name != KEY_NAMES[i]) i++;
    return key(i);
}

std::string cannot_read(int reason) {
    return std::string("cannot be read: ") + std::strerror(reason);
}

} // namespace

// Functions that return bool return false after setting `problem`.
struct gate_log_reader::state {
    od::parser parser;
    od::document document;
    std::vector<char> text; // of the file, then padding
    size_t size = 0;
    std::vector<double> numbers; // of the list that was read last
    std::string problem;
    gate_log *log = nullptr;
    std::array<bool, KEYS> seen{};
    std::array<size_t, KEYS> lengths{};

    // ---- errors

    bool fail(std::string what) {
        problem = std::move(what);
        return false;
    }

    bool fail_at(const char *where, const std::string &what) {
        return fail("byte " + std::to_string(where - text.data()) + ": " + what);
    }

    // The token of a value as it is in the file, for messages.
    std::string shown(const char *token) {
        size_t left = size_t(text.data() + size - token);
        std::string out(token, std::min<size_t>(left, 24));
        out.resize(std::min(out.size(), out.find_first_of(",]} \t\r\n", 1)));
        for (char &c : out) c = c < ' ' || c > '~' ? '?' : c;
        return out.empty() ? "the end of the file" : out;
    }

    // The document is not JSON, or ends early.
    bool fail_json(simdjson::error_code code) {
        const char *where = nullptr;
        if (document.current_location().get(where) != simdjson::SUCCESS) where = text.data() + size;
        return fail_at(where, simdjson::error_message(code));
    }

    // ---- lists

    // The first byte of a value.
    static const char *begin_of(value &of) { return of.raw_json_token().value_unsafe().data(); }

    bool open_list(value &of, const char *name, od::array &list) {
        const char *token = begin_of(of);
        if (of.get_array().get(list) == simdjson::SUCCESS) return true;
        return fail_at(token, shown(token) + " in " + name + "; a list is required");
    }

    bool fail_number(value &element, const char *name) {
        if (element.error() != simdjson::SUCCESS) return fail_json(element.error());
        const char *token = begin_of(element);
        return fail_at(token, shown(token) + " in " + name + "; a number is required");
    }

    bool read_numbers(value &of, const char *name) {
        od::array list;
        if (!open_list(of, name, list)) return false;
        numbers.clear();
        for (value element : list) {
            if (element.error() != simdjson::SUCCESS) return fail_number(element, name);
            const char *token = begin_of(element);
            double number;
            if (element.get_double().get(number) != simdjson::SUCCESS) return fail_number(element, name);
            if (number < 0) return fail_at(token, std::string("a number below zero in ") + name);
            numbers.push_back(number);
        }
        return true;
    }

    // Adds the loads of one step, in `numbers`, to the log. Loops of their own let the compiler use vectors.
    bool add_step(const char *where) {
        const std::vector<double> &loads = numbers;
        double total = 0, squares = 0;
        uint32_t idle = 0, wrong = 0;
        for (size_t i = 0; i < loads.size(); i++) log->loads[i].add(loads[i]);
        for (double load : loads) {
            uint32_t is_none = load == 0;
            idle += is_none;
            wrong |= uint32_t(load > MOST_LOAD) | (uint32_t(load < LEAST_LOAD) & ~is_none);
        }
        if ((wrong & 1) != 0) return fail_at(where, "a step with a load above 1e15 or below 1e-100");
        for (double load : loads) total += load;
        double experts = double(loads.size()), mean = total / experts;
        for (double load : loads) squares += (load - mean) * (load - mean);
        // The population's deviation over the mean, with one division less.
        log->imbalance.push_back(total > 0 ? std::sqrt(squares * experts) / total : -1);
        log->idle += idle;
        log->most_idle = std::max(log->most_idle, idle);
        return true;
    }

    bool read_step(value step) {
        if (step.error() != simdjson::SUCCESS) return fail_json(step.error());
        const char *where = begin_of(step);
        if (!read_numbers(step, KEY_NAMES[EXPERT_LOADS])) return false;
        size_t experts = numbers.size();
        if (experts == 0) return fail_at(where, "a step of expert_loads without experts");
        if (experts > MOST_EXPERTS) {
            return fail_at(where, "a step of expert_loads with " + std::to_string(experts) +
                                      " experts; at most " + std::to_string(MOST_EXPERTS));
        }
        if (log->loads.empty()) log->loads.resize(experts);
        if (experts != log->loads.size()) {
            return fail_at(where, std::to_string(experts) + " experts in step " +
                                      std::to_string(log->imbalance.size() + 1) + " of expert_loads; " +
                                      std::to_string(log->loads.size()) + " in the steps before");
        }
        return add_step(where);
    }

    bool read_expert_loads(value &of) {
        od::array steps;
        if (!open_list(of, KEY_NAMES[EXPERT_LOADS], steps)) return false;
        log->imbalance.reserve(std::max(lengths[STEP], lengths[NUM_TOKENS]));
        for (value step : steps) {
            if (!read_step(step)) return false;
        }
        return true;
    }

    // ---- the object

    bool read_field(od::field &field) {
        const char *where = field.key().raw() - 1;
        std::string_view name;
        if (field.unescaped_key().get(name) != simdjson::SUCCESS) return fail_at(where, "a broken key");
        key key = find_key(name);
        if (key == KEYS) return true;
        if (seen[key]) return fail_at(where, std::string(KEY_NAMES[key]) + " occurs twice");
        seen[key] = true;
        value of(std::move(field.value()));
        bool is_read = key == EXPERT_LOADS ? read_expert_loads(of) : read_numbers(of, KEY_NAMES[key]);
        lengths[key] = key == EXPERT_LOADS ? log->imbalance.size() : numbers.size();
        return is_read;
    }

    bool read_object() {
        od::object object;
        simdjson::error_code code = document.get_object().get(object);
        if (code == simdjson::INCORRECT_TYPE) return fail("is not a JSON object");
        if (code != simdjson::SUCCESS) return fail_json(code);
        for (simdjson::simdjson_result<od::field> entry : object) {
            od::field field;
            code = std::move(entry).get(field);
            if (code != simdjson::SUCCESS) return fail_json(code);
            if (!read_field(field)) return false;
        }
        const char *rest;
        if (document.current_location().get(rest) != simdjson::SUCCESS) return true;
        return fail_at(rest, shown(rest) + " after the object");
    }

    bool check_lists() {
        for (size_t key = 0; key < KEYS; key++) {
            if (seen[key]) continue;
            return fail(std::string("has no ") + KEY_NAMES[key] +
                        "; a gate log has step, num_tokens and expert_loads");
        }
        if (lengths[STEP] == lengths[EXPERT_LOADS] && lengths[NUM_TOKENS] == lengths[EXPERT_LOADS])
            return true;
        return fail(std::to_string(lengths[STEP]) + " values in step, " +
                    std::to_string(lengths[NUM_TOKENS]) + " in num_tokens, " +
                    std::to_string(lengths[EXPERT_LOADS]) +
                    " in expert_loads; all three must have the same length");
    }

    // ---- the file

    bool load(int file) {
        struct stat status;
        if (fstat(file, &status) != 0) return fail(cannot_read(errno));
        if (!S_ISREG(status.st_mode)) return fail("is not a file");
        text.resize(size_t(status.st_size) + simdjson::SIMDJSON_PADDING);
        for (size = 0; size < size_t(status.st_size);) {
            ssize_t count = ::read(file, text.data() + size, size_t(status.st_size) - size);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return fail(cannot_read(errno));
            if (count == 0) break;
            size += size_t(count);
        }
        std::memset(text.data() + size, 0, simdjson::SIMDJSON_PADDING);
        return true;
    }

    bool open(const std::string &path) {
        // O_NONBLOCK: opening a FIFO does not wait for its writer.
        int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file < 0) return fail(cannot_read(errno));
        bool is_loaded = load(file);
        close(file);
        return is_loaded;
    }

    bool parse() {
        simdjson::error_code code = parser.iterate(text.data(), size, text.size()).get(document);
        if (code == simdjson::MEMALLOC) throw std::bad_alloc();
        if (code != simdjson::SUCCESS)
            return fail(simdjson::error_message(code)); // of the whole file: its place is unknown
        return read_object() && check_lists();
    }
};

gate_log_reader::gate_log_reader() : state_(new state) {}
gate_log_reader::~gate_log_reader() = default;

std::string gate_log_reader::read(const std::string &path, gate_log &log) {
    state_->log = &log;
    state_->seen.fill(false);
    state_->lengths.fill(0);
    if (state_->open(path) && state_->parse()) return "";
    return path + ": " + state_->problem;
}
