// GPU activity of torch-profiler traces for Lua: core.activity. Reads a trace once and keeps only what
// metrics are made of: kernels, copies, memsets, marks of the program, shapes of GEMMs, metadata of
// collectives.
//
//   activity.format(path) -> "json" | "gzip" | "zstd" | "sqlite" | nil, message     by the first bytes
//   activity.read(path) -> { rank, world_size, kernels, copies, sets, collectives, marks, gemms, left_out }
//                          | nil, message                                     JSON, or gzip of it
//
// kernels, copies and sets are columns { start, stop, name, device, stream, bytes }, by start; times are
// whole nanoseconds, bytes -1 where not told. metric/activity.lua makes the model of it.
extern "C" {
#include "file.h"
}

#define ZLIB_CONST
#include <lua.hpp>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <new>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

namespace od = simdjson::ondemand;
using simdjson::error_code;

constexpr int64_t UNKNOWN = -1;
constexpr size_t LARGEST = 0xFFFFFFFF; // of a document that simdjson takes

// ---- What is kept -----------------------------------------------------------------------------

struct event {
    int64_t start, stop; // ns
    int name;            // in trace::names
    int64_t device, stream, bytes;
    int collective;   // in trace::collectives, or UNKNOWN
    int64_t external; // id of the operation that launched it, or UNKNOWN
};

struct collective {
    std::string name, dtype, group, ranks;
    int64_t in_elements = UNKNOWN, out_elements = UNKNOWN, group_size = UNKNOWN;
    bool told() const { return !name.empty(); }
};

struct gemm {
    int name, thread;
    int64_t start, stop;
    bool shaped; // every argument has a shape of plain numbers, or none
    std::vector<std::vector<int64_t>> dims;
};

enum kind { KERNEL, COPY, SET, KINDS };

struct trace {
    std::vector<event> events[KINDS];
    std::vector<event> marks;
    std::vector<gemm> gemms;
    std::vector<collective> collectives;
    std::unordered_map<int64_t, int> collective_of; // external id -> collectives
    std::vector<std::string> names;
    std::unordered_map<std::string, int> name_of;
    std::map<std::pair<std::string, std::string>, int> thread_of; // (pid, tid)
    int64_t rank = UNKNOWN, world_size = UNKNOWN, left_out = 0;
    bool has_events = false;
    error_code broken = simdjson::SUCCESS;

    int intern(std::string_view name) {
        auto [at, is_new] = name_of.emplace(name, int(names.size()));
        if (is_new) names.emplace_back(name);
        return at->second;
    }
};

// ---- Values -----------------------------------------------------------------------------------

// simdjson reads while it goes. Of an error in the document itself nothing may be read any more: it stands in
// trace::broken, and everything below looks there before it goes on.

using any = simdjson::simdjson_result<od::value>;

// Whether a value could be read. Another type than wanted, or no such field, is no broken document.
bool is_read(error_code problem, trace &to) {
    switch (problem) {
    case simdjson::SUCCESS: return true;
    case simdjson::NO_SUCH_FIELD:
    case simdjson::INCORRECT_TYPE:
    case simdjson::NUMBER_ERROR:
    case simdjson::STRING_ERROR: return false;
    default: to.broken = problem; return false;
    }
}

any find(od::object &object, std::string_view key, trace &to) {
    if (to.broken != simdjson::SUCCESS) return any(error_code(to.broken));
    return object.find_field_unordered(key);
}

int64_t integer_or_unknown(any value, trace &to) {
    int64_t integer;
    return is_read(value.get_int64().get(integer), to) ? integer : UNKNOWN;
}

std::string text_or_empty(any value, trace &to) {
    std::string_view text;
    return is_read(value.get_string().get(text), to) ? std::string(text) : std::string();
}

std::string token_or_empty(any value, trace &to) {
    std::string_view token;
    if (!is_read(value.raw_json_token().get(token), to)) return "";
    return std::string(token.substr(0, token.find_last_not_of(" \t\r\n") + 1));
}

// ---- One event --------------------------------------------------------------------------------

// µs with a fraction to whole ns. What no clock shows is refused.
bool to_ns(double us, int64_t *ns) {
    if (!(std::fabs(us) < 4e15)) return false;
    double whole = std::floor(us);
    *ns = int64_t(whole) * 1000 + std::llround((us - whole) * 1000);
    return true;
}

// ts and dur of a complete event. Returns whether both are numbers that make sense.
bool read_times(od::object &object, int64_t *start, int64_t *stop, trace &to) {
    double ts, dur;
    int64_t length;
    if (!is_read(find(object, "ts", to).get_double().get(ts), to)) return false;
    if (!is_read(find(object, "dur", to).get_double().get(dur), to)) return false;
    if (!to_ns(ts, start) || !to_ns(dur, &length) || length < 0) return false;
    *stop = *start + length;
    return true;
}

// What args of a GPU event, or of record_param_comms, say.
struct arguments {
    int64_t device = UNKNOWN, stream = UNKNOWN, bytes = UNKNOWN, external = UNKNOWN;
    collective comms;
};

// Takes one of args. Fields that no metric needs are passed over unread.
void take_argument(od::field &field, arguments &said, trace &to) {
    static const struct {
        const char *key;
        int64_t arguments::*value;
    } numbers[] = {{"device", &arguments::device},
                   {"stream", &arguments::stream},
                   {"bytes", &arguments::bytes},
                   {"External id", &arguments::external},
                   {"external id", &arguments::external}};
    static const struct {
        const char *key;
        int64_t collective::*value;
    } counts[] = {{"In msg nelems", &collective::in_elements},
                  {"Out msg nelems", &collective::out_elements},
                  {"Group size", &collective::group_size}};
    static const struct {
        const char *key;
        std::string collective::*value;
    } texts[] = {{"Collective name", &collective::name},
                 {"dtype", &collective::dtype},
                 {"Process Group Name", &collective::group},
                 {"Process Group Ranks", &collective::ranks}};
    od::raw_json_string key = field.key();
    for (const auto &known : numbers) {
        if (key == known.key) said.*known.value = integer_or_unknown(any(std::move(field.value())), to);
    }
    for (const auto &known : counts) {
        if (key == known.key) said.comms.*known.value = integer_or_unknown(any(std::move(field.value())), to);
    }
    for (const auto &known : texts) {
        if (key == known.key) said.comms.*known.value = text_or_empty(any(std::move(field.value())), to);
    }
}

arguments read_arguments(od::object &object, trace &to) {
    arguments said;
    od::object args;
    if (!is_read(find(object, "args", to).get_object().get(args), to)) return said;
    for (simdjson::simdjson_result<od::field> entry : args) {
        od::field field;
        if (!is_read(std::move(entry).get(field), to)) break;
        take_argument(field, said, to);
        if (to.broken != simdjson::SUCCESS) break;
    }
    return said;
}

void read_gpu_event(od::object &object, kind kind, trace &to) {
    event event{};
    std::string_view name;
    if (!is_read(find(object, "name", to).get_string().get(name), to) ||
        !read_times(object, &event.start, &event.stop, to)) {
        to.left_out++;
        return;
    }
    event.name = to.intern(name);
    int64_t pid = integer_or_unknown(find(object, "pid", to), to);
    int64_t tid = integer_or_unknown(find(object, "tid", to), to);
    arguments said = read_arguments(object, to);
    event.device = said.device != UNKNOWN ? said.device : pid;
    event.stream = said.stream != UNKNOWN ? said.stream : tid;
    event.bytes = said.bytes;
    event.external = said.external;
    event.collective = UNKNOWN;
    if (said.comms.told()) {
        event.collective = int(to.collectives.size());
        to.collectives.push_back(std::move(said.comms));
    }
    to.events[kind].push_back(event);
}

// record_param_comms: what a collective is about, for kernels of the same operation that do not say it.
void read_comms(od::object &object, trace &to) {
    arguments said = read_arguments(object, to);
    if (!said.comms.told() || said.external == UNKNOWN) return;
    to.collective_of[said.external] = int(to.collectives.size());
    to.collectives.push_back(std::move(said.comms));
}

void read_mark(od::object &object, std::string_view name, trace &to) {
    event event{};
    if (read_times(object, &event.start, &event.stop, to)) {
        event.name = to.intern(name);
        to.marks.push_back(event);
    } else {
        to.left_out++;
    }
}

// One shape: a list of plain numbers. Lists of tensors are none.
bool read_shape(any item, std::vector<int64_t> &shape, trace &to) {
    od::array numbers;
    if (!is_read(item.get_array().get(numbers), to)) return false;
    for (any number : numbers) {
        int64_t size;
        if (!is_read(number.get_int64().get(size), to)) return false;
        shape.push_back(size);
    }
    return true;
}

bool read_dims(od::object &object, gemm &gemm, trace &to) {
    od::object args;
    od::array dims;
    if (!is_read(find(object, "args", to).get_object().get(args), to)) return false;
    if (!is_read(find(args, "Input Dims", to).get_array().get(dims), to)) return false;
    for (any item : dims) {
        gemm.dims.emplace_back();
        if (!read_shape(item, gemm.dims.back(), to)) return false;
    }
    return true;
}

void read_gemm(od::object &object, std::string_view name, trace &to) {
    gemm gemm{};
    if (!read_times(object, &gemm.start, &gemm.stop, to)) {
        to.left_out++;
        return;
    }
    gemm.name = to.intern(name);
    std::string pid = token_or_empty(find(object, "pid", to), to);
    std::string tid = token_or_empty(find(object, "tid", to), to);
    gemm.thread = to.thread_of.emplace(std::make_pair(pid, tid), int(to.thread_of.size())).first->second;
    gemm.shaped = read_dims(object, gemm, to);
    to.gemms.push_back(std::move(gemm));
}

bool is_gemm(std::string_view name) {
    return name == "aten::mm" || name == "aten::addmm" || name == "aten::bmm" || name == "aten::baddbmm" ||
           name == "aten::_scaled_mm";
}

// An operation or mark of the host.
void read_host_event(od::object &object, bool is_mark, trace &to) {
    std::string_view name;
    if (!is_read(find(object, "name", to).get_string().get(name), to)) return;
    if (is_mark) {
        read_mark(object, name, to);
    } else if (name == "record_param_comms") {
        read_comms(object, to);
    } else if (is_gemm(name)) {
        read_gemm(object, name, to);
    }
}

void read_event(any item, trace &to) {
    od::object object;
    if (error_code problem = item.get_object().get(object)) {
        to.broken = problem;
        return;
    }
    od::raw_json_string cat, ph;
    if (!is_read(find(object, "ph", to).get_raw_json_string().get(ph), to) || ph != "X") return;
    if (!is_read(find(object, "cat", to).get_raw_json_string().get(cat), to)) return;
    // The second names are those of PyTorch before 2.
    if (cat == "kernel" || cat == "Kernel") {
        read_gpu_event(object, KERNEL, to);
    } else if (cat == "gpu_memcpy" || cat == "Memcpy") {
        read_gpu_event(object, COPY, to);
    } else if (cat == "gpu_memset" || cat == "Memset") {
        read_gpu_event(object, SET, to);
    } else if (cat == "cpu_op" || cat == "Operator") {
        read_host_event(object, false, to);
    } else if (cat == "user_annotation") {
        read_host_event(object, true, to);
    }
}

// ---- The document -----------------------------------------------------------------------------

void read_events(simdjson::simdjson_result<od::array> list, trace &to) {
    od::array events;
    if ((to.broken = std::move(list).get(events)) != simdjson::SUCCESS) return;
    to.has_events = true;
    for (any item : events) {
        read_event(item, to);
        if (to.broken != simdjson::SUCCESS) return;
    }
}

void read_distributed(any value, trace &to) {
    od::object info;
    if (!is_read(value.get_object().get(info), to)) return;
    to.rank = integer_or_unknown(find(info, "rank", to), to);
    to.world_size = integer_or_unknown(find(info, "world_size", to), to);
}

void read_root(od::document &document, trace &to) {
    od::object root;
    if ((to.broken = document.get_object().get(root)) != simdjson::SUCCESS) return;
    for (simdjson::simdjson_result<od::field> entry : root) {
        od::field field;
        if ((to.broken = std::move(entry).get(field)) != simdjson::SUCCESS) return;
        od::raw_json_string key = field.key();
        if (key == "traceEvents") {
            read_events(field.value().get_array(), to);
        } else if (key == "distributedInfo") {
            read_distributed(any(std::move(field.value())), to);
        }
        if (to.broken != simdjson::SUCCESS) return;
    }
    const char *left; // behind the root
    if (document.current_location().get(left) == simdjson::SUCCESS) to.broken = simdjson::TRAILING_CONTENT;
}

// `text` has room for simdjson's padding; see reserve.
error_code parse(od::parser &parser, const std::string &text, trace &to) {
    od::document document;
    error_code problem = parser.iterate(text.data(), text.size(), text.capacity()).get(document);
    if (problem != simdjson::SUCCESS) return problem;
    od::json_type type;
    if ((problem = document.type().get(type)) != simdjson::SUCCESS) return problem;
    if (type == od::json_type::object) read_root(document, to);
    if (type == od::json_type::array) read_events(document.get_array(), to);
    return to.broken; // of another type: no trace, and has_events stays false
}

// How many bytes the UTF-8 character at `text` has; 0: it is none.
size_t character_length(const unsigned char *text, size_t left) {
    size_t length = text[0] < 0x80 ? 1 : text[0] < 0xC2 ? 0 : text[0] < 0xE0 ? 2 : text[0] < 0xF0 ? 3 : 4;
    if (length == 0 || text[0] > 0xF4 || length > left) return 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80) return 0;
    }
    bool overlong = (text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xF0 && text[1] < 0x90);
    bool beyond = (text[0] == 0xED && text[1] > 0x9F) || (text[0] == 0xF4 && text[1] > 0x8F);
    return overlong || beyond ? 0 : length;
}

// Profilers write names as the program had them. Control characters become spaces, which JSON takes inside
// texts and between them, and bytes that are no UTF-8 become question marks.
void mend(std::string &text) {
    auto *bytes = reinterpret_cast<unsigned char *>(text.data());
    for (size_t i = 0; i < text.size();) {
        size_t length = character_length(bytes + i, text.size() - i);
        if (length == 0) bytes[i] = '?';
        if (length == 1 && bytes[i] < 0x20) bytes[i] = ' ';
        i += length == 0 ? 1 : length;
    }
}

// Kernels of an operation whose collective is known take it over. Then everything in order.
void finish(trace &to) {
    for (event &kernel : to.events[KERNEL]) {
        if (kernel.collective != UNKNOWN || kernel.external == UNKNOWN) continue;
        auto found = to.collective_of.find(kernel.external);
        if (found != to.collective_of.end()) kernel.collective = found->second;
    }
    auto earlier = [](const auto &a, const auto &b) { return a.start < b.start; };
    for (std::vector<event> &events : to.events) std::stable_sort(events.begin(), events.end(), earlier);
    std::stable_sort(to.marks.begin(), to.marks.end(), earlier);
    std::stable_sort(to.gemms.begin(), to.gemms.end(), earlier);
}

bool read_json(const char *path, std::string &text, trace &to, problem &why) {
    od::parser parser;
    error_code problem = parse(parser, text, to);
    if (problem == simdjson::UNESCAPED_CHARS || problem == simdjson::UTF8_ERROR) {
        mend(text);
        to = trace();
        problem = parse(parser, text, to);
    }
    if (problem == simdjson::INCORRECT_TYPE) {
        return problem_set(&why, "%s: no profiler trace: traceEvents is no list of objects", path);
    }
    if (problem != simdjson::SUCCESS) {
        return problem_set(&why, "%s: not JSON, or cut off: %s", path, simdjson::error_message(problem));
    }
    if (!to.has_events) {
        return problem_set(&why, "%s: no profiler trace: there are no traceEvents in it", path);
    }
    finish(to);
    return true;
}

// ---- Files ------------------------------------------------------------------------------------

bool starts_with(const file_map &map, std::string_view bytes) {
    return map.size >= bytes.size() && std::memcmp(map.data, bytes.data(), bytes.size()) == 0;
}

const char *format_of(const file_map &map) {
    if (starts_with(map, "\x1f\x8b")) return "gzip";
    if (starts_with(map, "\x28\xb5\x2f\xfd")) return "zstd";
    if (starts_with(map, "SQLite format 3")) return "sqlite";
    return "json";
}

void reserve(std::string &text, size_t size) {
    text.reserve(size + simdjson::SIMDJSON_PADDING);
}

// What the last member's end says of its size, where that can be true of the whole.
size_t guess_unpacked(const file_map &map) {
    enum { TRAILER = 4, BEST_RATIO = 1100 };
    if (map.size < TRAILER) return 0;
    const auto *end = reinterpret_cast<const unsigned char *>(map.data) + map.size - TRAILER;
    size_t said = end[0] | size_t(end[1]) << 8 | size_t(end[2]) << 16 | size_t(end[3]) << 24;
    return said / BEST_RATIO <= map.size ? said : 0;
}

// Inflates all members to `text`, of about `guess` bytes. Returns what is wrong, or NULL.
const char *inflate_members(z_stream &stream, size_t guess, std::string &text) {
    static const char cut_off[] = "the gzip data end too early; is it cut off?";
    for (;;) {
        size_t had = text.size();
        if (had >= LARGEST) return "larger than 4 GiB unpacked, which is more than is read";
        size_t next = std::min(LARGEST, std::max({had * 2, guess + 1, size_t(1) << 16}));
        reserve(text, next);
        text.resize(next);
        stream.next_out = reinterpret_cast<Bytef *>(text.data() + had);
        stream.avail_out = uInt(next - had);
        int status = inflate(&stream, Z_NO_FLUSH);
        text.resize(next - stream.avail_out);
        if (status == Z_STREAM_END) {
            bool more = stream.avail_in >= 2 && stream.next_in[0] == 0x1f && stream.next_in[1] == 0x8b;
            if (!more) return nullptr;
            inflateReset(&stream);
        } else if (status == Z_BUF_ERROR || (status == Z_OK && stream.avail_out > 0)) {
            return cut_off;
        } else if (status != Z_OK) {
            return "the gzip data are damaged";
        }
    }
}

bool inflate_file(const char *path, const file_map &map, std::string &text, problem &why) {
    z_stream stream{};
    if (inflateInit2(&stream, 15 + 16) != Z_OK) return problem_set(&why, "%s: out of memory", path);
    stream.next_in = reinterpret_cast<const Bytef *>(map.data);
    stream.avail_in = uInt(map.size);
    const char *wrong = nullptr;
    try {
        wrong = inflate_members(stream, guess_unpacked(map), text);
    } catch (const std::bad_alloc &) {
        wrong = "out of memory";
    }
    inflateEnd(&stream);
    return wrong == nullptr || problem_set(&why, "%s: %s", path, wrong);
}

// The file's text, unpacked. The map is closed before it is parsed: memory holds it once.
bool load_text(const char *path, std::string &text, problem &why) {
    file_map map;
    if (!file_open(path, &map, &why)) return false;
    bool done = map.size <= LARGEST;
    if (!done) {
        problem_set(&why, "%s: larger than 4 GiB, which is more than is read", path);
    } else if (std::strcmp(format_of(map), "gzip") == 0) {
        done = inflate_file(path, map, text, why);
    } else {
        try {
            reserve(text, map.size);
            if (map.data != nullptr) text.assign(map.data, map.size);
        } catch (const std::bad_alloc &) {
            done = problem_set(&why, "%s: out of memory", path);
        }
    }
    file_close(&map);
    return done;
}

bool read_file(const char *path, trace &to, problem &why) {
    std::string text;
    if (!load_text(path, text, why)) return false;
    try {
        return read_json(path, text, to, why);
    } catch (const std::bad_alloc &) {
        return problem_set(&why, "%s: out of memory", path);
    }
}

// ---- Lua --------------------------------------------------------------------------------------

const char *const TRACE_TYPE = "gentables.activity_trace";

void set_integer(lua_State *lua, const char *key, int64_t value) {
    lua_pushinteger(lua, lua_Integer(value));
    lua_setfield(lua, -2, key);
}

void set_text(lua_State *lua, const char *key, const std::string &value) {
    lua_pushlstring(lua, value.data(), value.size());
    lua_setfield(lua, -2, key);
}

// Sets table[key] to the list that `push` pushes an item of, `count` times.
template <typename Push> void set_list(lua_State *lua, const char *key, size_t count, Push push) {
    lua_createtable(lua, int(count), 0);
    for (size_t i = 0; i < count; i++) {
        push(i);
        lua_rawseti(lua, -2, lua_Integer(i) + 1);
    }
    lua_setfield(lua, -2, key);
}

// `names`: where on the stack the list of names is.
void push_events(lua_State *lua, const std::vector<event> &events, int names) {
    auto column = [&](const char *key, auto member) {
        set_list(lua, key, events.size(),
                 [&](size_t i) { lua_pushinteger(lua, lua_Integer(events[i].*member)); });
    };
    lua_createtable(lua, 0, 7);
    column("start", &event::start);
    column("stop", &event::stop);
    column("device", &event::device);
    column("stream", &event::stream);
    column("bytes", &event::bytes);
    set_list(lua, "name", events.size(), [&](size_t i) { lua_rawgeti(lua, names, events[i].name + 1); });
}

// { [index in kernels] = { name, dtype, group, in_elements, out_elements, group_size } }
void push_collectives(lua_State *lua, const trace &from) {
    lua_newtable(lua);
    const std::vector<event> &kernels = from.events[KERNEL];
    for (size_t i = 0; i < kernels.size(); i++) {
        if (kernels[i].collective == UNKNOWN) continue;
        const collective &comms = from.collectives[size_t(kernels[i].collective)];
        lua_createtable(lua, 0, 6);
        set_text(lua, "name", comms.name);
        set_text(lua, "dtype", comms.dtype);
        set_text(lua, "group", comms.group + " " + comms.ranks); // names alone may be those of several
        set_integer(lua, "in_elements", comms.in_elements);
        set_integer(lua, "out_elements", comms.out_elements);
        set_integer(lua, "group_size", comms.group_size);
        lua_rawseti(lua, -2, lua_Integer(i) + 1);
    }
}

void push_gemm(lua_State *lua, const gemm &from, int names) {
    lua_createtable(lua, 0, 5);
    lua_rawgeti(lua, names, from.name + 1);
    lua_setfield(lua, -2, "name");
    set_integer(lua, "thread", from.thread);
    set_integer(lua, "start", from.start);
    set_integer(lua, "stop", from.stop);
    if (!from.shaped) return;
    set_list(lua, "dims", from.dims.size(), [&](size_t i) {
        const std::vector<int64_t> &shape = from.dims[i];
        lua_createtable(lua, int(shape.size()), 0);
        for (size_t k = 0; k < shape.size(); k++) {
            lua_pushinteger(lua, lua_Integer(shape[k]));
            lua_rawseti(lua, -2, lua_Integer(k) + 1);
        }
    });
}

void push_trace(lua_State *lua, const trace &from) {
    lua_createtable(lua, int(from.names.size()), 0);
    int names = lua_gettop(lua);
    for (size_t i = 0; i < from.names.size(); i++) {
        lua_pushlstring(lua, from.names[i].data(), from.names[i].size());
        lua_rawseti(lua, names, lua_Integer(i) + 1);
    }
    static const char *const keys[KINDS] = {"kernels", "copies", "sets"};
    lua_createtable(lua, 0, 9);
    for (int kind = 0; kind < KINDS; kind++) {
        push_events(lua, from.events[kind], names);
        lua_setfield(lua, -2, keys[kind]);
    }
    push_events(lua, from.marks, names);
    lua_setfield(lua, -2, "marks");
    push_collectives(lua, from);
    lua_setfield(lua, -2, "collectives");
    set_list(lua, "gemms", from.gemms.size(), [&](size_t i) { push_gemm(lua, from.gemms[i], names); });
    if (from.rank != UNKNOWN) set_integer(lua, "rank", from.rank);
    if (from.world_size != UNKNOWN) set_integer(lua, "world_size", from.world_size);
    set_integer(lua, "left_out", from.left_out);
}

int collect_trace(lua_State *lua) {
    auto **held = static_cast<trace **>(luaL_checkudata(lua, 1, TRACE_TYPE));
    delete *held;
    *held = nullptr;
    return 0;
}

int fail_with(lua_State *lua, const problem &why) {
    lua_pushnil(lua);
    lua_pushstring(lua, why.text);
    return 2;
}

// read(path). The trace is held by Lua while tables are made of it, which may raise.
int lua_read(lua_State *lua) {
    const char *path = luaL_checkstring(lua, 1);
    auto **held = static_cast<trace **>(lua_newuserdatauv(lua, sizeof(trace *), 0));
    *held = nullptr;
    luaL_setmetatable(lua, TRACE_TYPE);
    *held = new (std::nothrow) trace;
    if (*held == nullptr) return luaL_error(lua, "out of memory");
    problem why;
    if (!read_file(path, **held, why)) return fail_with(lua, why);
    push_trace(lua, **held);
    return 1;
}

// format(path)
int lua_format(lua_State *lua) {
    file_map map;
    problem why;
    if (!file_open(luaL_checkstring(lua, 1), &map, &why)) return fail_with(lua, why);
    lua_pushstring(lua, format_of(map));
    file_close(&map);
    return 1;
}

} // namespace

extern "C" int luaopen_core_activity(lua_State *lua);
extern "C" int luaopen_core_activity(lua_State *lua) {
    static const luaL_Reg functions[] = {{"read", lua_read}, {"format", lua_format}, {nullptr, nullptr}};
    luaL_newmetatable(lua, TRACE_TYPE);
    lua_pushcfunction(lua, collect_trace);
    lua_setfield(lua, -2, "__gc");
    lua_pop(lua, 1);
    luaL_newlib(lua, functions);
    return 1;
}
