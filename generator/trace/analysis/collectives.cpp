// The kernels that communicate, with the metadata of the collective in their args.
// trace/collectives/matching.lua matches them over ranks.
//
//   t:collectives() -> events, metadata; in order of the file
//       events: { start, duration, stream, uid, metadata = k }...; metadata[k]: { kernel, name,
//       dtype, group, ranks, in_split, out_split, in_elements, out_elements, group_size }
//   t:collective_durations() -> { { metadata = metadata, durations = { ... } }... }
//       one entry for all collectives with metadata that differ at most in kernel and splits, or have no
//       metadata and one kernel; entries and durations are in order of their starts
//
// Times are in us. A field that the trace does not have is nil.
#include "collectives.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>
#include <utility>

#include "trace_lua.h"

namespace trace {

namespace {

// In lower case: parts of the names of kernels that communicate, and beginnings of names of others.
std::vector<std::string> patterns, others;

// The field `key` of the table at the top of the stack: a list of texts, or of tables with a text `pattern`.
std::vector<std::string> texts_of(lua_State *lua, const char *key) {
    std::vector<std::string> texts;
    int top = lua_gettop(lua);
    lua_getfield(lua, top, key);
    while (lua_rawgeti(lua, top + 1, lua_Integer(texts.size() + 1)) != LUA_TNIL) {
        if (lua_istable(lua, -1)) lua_getfield(lua, -1, "pattern");
        const char *text = lua_tostring(lua, -1);
        texts.emplace_back(text == nullptr ? "" : text);
        lua_settop(lua, top + 1);
    }
    lua_settop(lua, top);
    return texts;
}

void push_metadata(lua_State *lua, const trace &trace, const event &event) {
    lua_createtable(lua, 0, 10);
    set_known_text(lua, "kernel", trace, event.name);
    if (event.arguments != NONE) set_collective(lua, trace, trace.collectives[event.arguments]);
}

void push_event(lua_State *lua, const event &event, lua_Integer metadata) {
    lua_createtable(lua, 0, 5);
    set_number(lua, "start", event.start);
    set_number(lua, "duration", event.duration);
    set_integer(lua, "stream", event.stream);
    set_integer(lua, "uid", event.uid);
    set_integer(lua, "metadata", metadata);
}

// The key of collectives in a summary; each text of a trace has one number.
using identity = std::array<int64_t, 8>;

identity identity_of(const trace &trace, const event &event) {
    if (event.arguments == NONE) return {-1, -1, -1, -1, -1, -1, -1, event.name};
    const collective &metadata = trace.collectives[event.arguments];
    return {metadata.name,        metadata.dtype,        metadata.group,      metadata.ranks,
            metadata.in_elements, metadata.out_elements, metadata.group_size, -1};
}

// Numbers of events, in groups.
using groups = std::vector<std::vector<uint32_t>>;

groups same_collectives(const trace &trace) {
    std::vector<uint32_t> kernels = communication_kernels(trace);
    std::stable_sort(kernels.begin(), kernels.end(),
                     [&](uint32_t a, uint32_t b) { return trace.events[a].start < trace.events[b].start; });
    std::map<identity, size_t> indices;
    groups found;
    for (uint32_t number : kernels) {
        auto [index, is_new] = indices.try_emplace(identity_of(trace, trace.events[number]), found.size());
        if (is_new) found.emplace_back();
        found[index->second].push_back(number);
    }
    return found;
}

} // namespace

void read_communication_patterns(lua_State *lua) {
    lua_getglobal(lua, "require");
    lua_pushliteral(lua, "lists.communication");
    lua_call(lua, 1, 1);
    patterns = texts_of(lua, "kernels");
    others = texts_of(lua, "others");
    lua_pop(lua, 1);
}

bool is_communication(std::string_view kernel) {
    std::string lower(kernel);
    for (char &c : lower) c = char(std::tolower(static_cast<unsigned char>(c)));
    auto begins = [&](const std::string &other) { return lower.compare(0, other.size(), other) == 0; };
    auto holds = [&](const std::string &pattern) { return lower.find(pattern) != std::string::npos; };
    return std::none_of(others.begin(), others.end(), begins) &&
           std::any_of(patterns.begin(), patterns.end(), holds);
}

std::vector<uint32_t> communication_kernels(const trace &trace) {
    enum : char { UNSEEN, NO, YES };
    std::vector<char> seen; // of each text
    std::vector<uint32_t> found;
    for (uint32_t i = 0; i < trace.events.size(); i++) {
        const event &event = trace.events[i];
        if (event.kind != kind::kernel) continue;
        if (event.name >= seen.size()) seen.resize(event.name + 1, UNSEEN);
        char &is = seen[event.name];
        if (is == UNSEEN) is = is_communication(trace.names[event.name]) ? YES : NO;
        if (is == YES) found.push_back(i);
    }
    return found;
}

int lua_collectives(lua_State *lua) {
    const trace &trace = check_trace(lua, 1);
    std::map<std::pair<uint32_t, uint32_t>, lua_Integer> indices;
    lua_newtable(lua);
    lua_newtable(lua);
    lua_Integer row = 0;
    for (uint32_t number : communication_kernels(trace)) {
        const event &event = trace.events[number];
        auto [index, is_new] =
            indices.try_emplace({event.name, event.arguments}, lua_Integer(indices.size() + 1));
        if (is_new) {
            push_metadata(lua, trace, event);
            lua_rawseti(lua, -2, index->second);
        }
        push_event(lua, event, index->second);
        lua_rawseti(lua, -3, ++row);
    }
    return 2;
}

int lua_collective_durations(lua_State *lua) {
    const trace &trace = check_trace(lua, 1);
    groups all = same_collectives(trace);
    push_list(lua, all.size(), [&](size_t group) {
        const std::vector<uint32_t> &numbers = all[group];
        lua_createtable(lua, 0, 2);
        push_metadata(lua, trace, trace.events[numbers.front()]);
        lua_setfield(lua, -2, "metadata");
        set_list(lua, "durations", numbers.size(),
                 [&](size_t i) { lua_pushnumber(lua, trace.events[numbers[i]].duration); });
    });
    return 1;
}

} // namespace trace
