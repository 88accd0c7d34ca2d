// Reads many gate logs at once, on up to eight cores, and summarises them for Lua: core.gates. gate_log.h
// reads one.
//
//   gates.read(paths, groups) -> table | nil, message
//
//   groups[i] is the group of file i: 1, 2, ... without gaps. The table has
//     experts   their number; 0: no log has a step
//     totals    load of each expert
//     steps     { count, without_load, mean, max, p50, p95, idle_mean, idle_max } of all steps
//     per_step  { mean = {...}, max = {...} } of the n-th steps of all logs; false: all are without load
//     groups    { totals = load per expert, steps, mean, max } of each group
//
// mean, max and the percentiles (linear between neighbours) are of the coefficient of variation over the
// experts of a step, for the steps with load; idle counts the experts without load in a step. If a log cannot
// be read, all fail; the message has the first of them.
#include <algorithm>

#include "base/percentiles.h"
#include "codec/lua_values.h"
#include "gate_log.h"
#include "system/cleanup.h"
#include "system/parallel.h"

namespace {

const char *const BATCH_TYPE = "gentables.gates";

constexpr size_t FILES_PER_TASK = 8; // by one reader
constexpr size_t MOST_THREADS = 8;

// Arguments of gates.read.
enum { PATHS = 1, GROUPS };

constexpr size_t ALL_GROUPS = SIZE_MAX;

// A mean and a maximum in progress.
struct mean_and_max {
    exact_sum sum;
    double max = 0;
    size_t count = 0;

    void add(double value) {
        sum.add(value);
        max = std::max(max, value);
        count++;
    }
    double mean() const { return count == 0 ? 0 : sum.value() / double(count); }
};

struct file {
    std::string path;
    size_t group; // from 0
    gate_log log;
    std::string problem;
};

struct batch {
    std::vector<file> files;
    size_t group_count = 0;
    std::vector<double> imbalances;     // of all steps with load
    std::vector<exact_sum> totals;      // of each expert of one group
    std::vector<mean_and_max> per_step; // of the n-th steps of all logs
    std::string message;
};

// ---- The batch --------------------------------------------------------------------------------

void read_files(void *context, size_t task) {
    auto &files = static_cast<batch *>(context)->files;
    size_t end = std::min(files.size(), (task + 1) * FILES_PER_TASK);
    for (size_t i = task * FILES_PER_TASK; i < end; i++)
        files[i].problem = files[i].path + ": not enough memory";
    try {
        gate_log_reader reader;
        for (size_t i = task * FILES_PER_TASK; i < end; i++)
            files[i].problem = reader.read(files[i].path, files[i].log);
    } catch (const std::bad_alloc &) {
    }
}

// Sets the message if a log could not be read, or if logs have different numbers of experts.
void check(batch &of) {
    size_t failed = 0;
    const file *first = nullptr;
    for (const file &one : of.files) {
        if (!one.problem.empty() && failed++ == 0) of.message = one.problem;
    }
    if (failed > 1) of.message += " (and " + std::to_string(failed - 1) + " more files that cannot be used)";
    for (const file &one : of.files) {
        size_t experts = one.log.loads.size();
        if (experts == 0 || failed > 0) continue;
        if (first == nullptr) first = &one;
        if (experts == first->log.loads.size()) continue;
        of.message = one.path + ": " + std::to_string(experts) + " experts, where " + first->path + " has " +
                     std::to_string(first->log.loads.size());
        return;
    }
    if (first != nullptr) of.totals.resize(first->log.loads.size());
}

void collect_steps(batch &of) {
    size_t most = 0, count = 0;
    for (const file &one : of.files) {
        most = std::max(most, one.log.imbalance.size());
        count += one.log.imbalance.size();
    }
    of.per_step.resize(most);
    of.imbalances.reserve(count);
    for (const file &one : of.files) {
        for (size_t step = 0; step < one.log.imbalance.size(); step++) {
            if (one.log.imbalance[step] < 0) continue;
            of.imbalances.push_back(one.log.imbalance[step]);
            of.per_step[step].add(one.log.imbalance[step]);
        }
    }
}

bool read_all(batch &of) {
    size_t tasks = (of.files.size() + FILES_PER_TASK - 1) / FILES_PER_TASK;
    parallel_run(tasks, MOST_THREADS, read_files, &of);
    check(of);
    if (!of.message.empty()) return false;
    collect_steps(of);
    return true;
}

// ---- Lua: nothing here owns memory, because an error of Lua skips destructors ------------------

void set_mean_and_max(lua_State *lua, const mean_and_max &of) {
    set_number(lua, "mean", of.mean());
    set_number(lua, "max", of.max);
}

// Pushes the summary of all steps.
void push_steps(lua_State *lua, batch &of) {
    mean_and_max all;
    uint64_t idle = 0, steps = 0;
    uint32_t most_idle = 0;
    for (const file &one : of.files) {
        steps += one.log.imbalance.size();
        idle += one.log.idle;
        most_idle = std::max(most_idle, one.log.most_idle);
    }
    for (double imbalance : of.imbalances) all.add(imbalance);
    lua_createtable(lua, 0, 8);
    set_integer(lua, "count", steps);
    set_integer(lua, "without_load", steps - all.count);
    set_mean_and_max(lua, all);
    set_number(lua, "p50", all.count == 0 ? 0 : percentile_of(of.imbalances, 0.50));
    set_number(lua, "p95", all.count == 0 ? 0 : percentile_of(of.imbalances, 0.95));
    set_number(lua, "idle_mean", steps == 0 ? 0 : double(idle) / double(steps));
    set_integer(lua, "idle_max", most_idle);
}

// Sets `key` of the table on top to a list of value(step), false for steps without load.
template <class Value>
void set_per_step(lua_State *lua, const char *key, const std::vector<mean_and_max> &steps, Value value) {
    set_list(lua, key, steps.size(), [&](size_t i) {
        if (steps[i].count > 0) {
            lua_pushnumber(lua, value(steps[i]));
        } else {
            lua_pushboolean(lua, false);
        }
    });
}

// Sets "totals": the load of each expert over the files of a group, or of all (ALL_GROUPS).
void set_totals(lua_State *lua, batch &of, size_t group) {
    std::fill(of.totals.begin(), of.totals.end(), exact_sum());
    for (const file &one : of.files) {
        if (group != ALL_GROUPS && one.group != group) continue;
        for (size_t i = 0; i < one.log.loads.size(); i++) of.totals[i].add(one.log.loads[i]);
    }
    set_list(lua, "totals", of.totals.size(), [&](size_t i) { lua_pushnumber(lua, of.totals[i].value()); });
}

void push_group(lua_State *lua, batch &of, size_t group) {
    mean_and_max all;
    size_t steps = 0;
    for (const file &one : of.files) {
        if (one.group != group) continue;
        steps += one.log.imbalance.size();
        for (double imbalance : one.log.imbalance) {
            if (imbalance >= 0) all.add(imbalance);
        }
    }
    lua_createtable(lua, 0, 4);
    set_integer(lua, "steps", steps);
    set_mean_and_max(lua, all);
    set_totals(lua, of, group);
}

int push_result(lua_State *lua, batch &of) {
    lua_createtable(lua, 0, 5);
    set_integer(lua, "experts", of.totals.size());
    set_totals(lua, of, ALL_GROUPS);
    push_steps(lua, of);
    lua_setfield(lua, -2, "steps");
    lua_createtable(lua, 0, 2);
    set_per_step(lua, "mean", of.per_step, [](const mean_and_max &step) { return step.mean(); });
    set_per_step(lua, "max", of.per_step, [](const mean_and_max &step) { return step.max; });
    lua_setfield(lua, -2, "per_step");
    set_list(lua, "groups", of.group_count, [&](size_t group) { push_group(lua, of, group); });
    return 1;
}

// Adds file i (from 1) of the arguments of gates.read.
void add_file(lua_State *lua, batch &to, lua_Integer i, size_t count) {
    if (lua_rawgeti(lua, PATHS, i) != LUA_TSTRING) luaL_error(lua, "a path must be a text");
    lua_rawgeti(lua, GROUPS, i);
    lua_Integer group = luaL_checkinteger(lua, -1);
    luaL_argcheck(lua, group >= 1 && size_t(group) <= count, GROUPS, "group: 1 to their number");
    to.files.push_back({lua_tostring(lua, -2), size_t(group) - 1, {}, {}});
    to.group_count = std::max(to.group_count, size_t(group));
    lua_pop(lua, 2);
}

int read(lua_State *lua) {
    luaL_checktype(lua, PATHS, LUA_TTABLE);
    luaL_checktype(lua, GROUPS, LUA_TTABLE);
    size_t count = lua_rawlen(lua, PATHS);
    auto &all = push_new<batch>(lua, BATCH_TYPE);
    all.files.reserve(count);
    for (size_t i = 1; i <= count; i++) add_file(lua, all, lua_Integer(i), count);
    return read_all(all) ? push_result(lua, all) : fail_with(lua, all.message.c_str());
}

} // namespace

extern "C" int luaopen_core_gates(lua_State *lua) {
    static const luaL_Reg functions[] = {{"read", guarded<read>}, {nullptr, nullptr}};
    out_of_memory_ends();
    make_type<batch>(lua, BATCH_TYPE);
    luaL_newlib(lua, functions);
    return 1;
}
