// Many gate logs at once, on all cores, and what they say together, for Lua: core.gates. One log is
// gate_log.h's.
//
//   gates.read(paths, groups) -> table | nil, message
//
// groups[i] is the group of file i: 1, 2, ... without gaps. The table:
//   experts   how many; 0 where no log has a step
//   totals    load of each expert
//   steps     summary: { count, without_load, mean, max, p50, p95, idle_mean, idle_max }
//   places    the steps that came n-th in their logs: { mean = {...}, max = {...} }; false where none had
//   load groups    { totals = load per expert, steps, mean, max } each
// mean, max and the percentiles (linear between neighbours) are those of the coefficient of variation over
// the experts of one step, of the steps that have load; idle counts experts without load in a step. One log
// that cannot be read fails the whole; the message names the first of them.
#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gate_log.h"
#include "system/parallel.h"

#define BATCH_TYPE "gentables.gates"

enum {
    FILES_PER_TASK = 8, // share their scratch
    MOST_THREADS = 8,
};

// read's arguments.
enum { PATHS = 1, GROUPS };

#define ALL_GROUPS SIZE_MAX

// A mean and a maximum in the making.
struct spread {
    double sum, lost, max;
    size_t count;
};

struct file {
    const char *path; // Lua's
    size_t group;     // from 0
    struct gate_log log;
    bool failed;
};

struct batch {
    size_t file_count, group_count, experts;
    struct file *files;
    struct problem *problems; // of each file that failed
    double *imbalances;       // of all steps with load, once collected
    double *sums, *lost;      // of each expert of one group
    struct spread *places;
    size_t place_count;
};

// ---- statistics -------------------------------------------------------------------------------

static void spread_add(struct spread *spread, double value) {
    gate_add(&spread->sum, &spread->lost, value);
    if (value > spread->max) spread->max = value;
    spread->count++;
}

static double spread_mean(const struct spread *spread) {
    return spread->count == 0 ? 0 : (spread->sum + spread->lost) / (double)spread->count;
}

// Moves what is below `limit` (with `also_equal` what equals it, too) to the front; returns how many.
static size_t partition(double *values, size_t count, double limit, bool also_equal) {
    size_t front = 0;
    for (size_t i = 0; i < count; i++) {
        double value = values[i];
        values[i] = values[front];
        values[front] = value;
        front += value < limit || (also_equal && value <= limit);
    }
    return front;
}

static double middle_of(double a, double b, double c) {
    double low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

// The value that would be at `rank` if the values were sorted, which it puts there, what is less before it.
static double select_rank(double *values, size_t count, size_t rank) {
    for (;;) {
        double pivot = middle_of(values[0], values[count / 2], values[count - 1]);
        size_t less = partition(values, count, pivot, false);
        if (rank < less) {
            count = less;
            continue;
        }
        size_t equal = partition(values + less, count - less, pivot, true);
        if (rank < less + equal) return pivot;
        values += less + equal;
        count -= less + equal;
        rank -= less + equal;
    }
}

// The percentile (0 to 1) of at least one value, linear between the two nearest. Reorders the values.
static double percentile(double *values, size_t count, double share) {
    double place = share * (double)(count - 1);
    size_t rank = (size_t)place;
    double low = select_rank(values, count, rank);
    if (rank + 1 == count) return low;
    double high = values[rank + 1];
    for (size_t i = rank + 2; i < count; i++) high = values[i] < high ? values[i] : high;
    return low + (high - low) * (place - (double)rank);
}

// ---- the batch --------------------------------------------------------------------------------

static void read_files(void *context, size_t task) {
    struct batch *batch = context;
    struct gate_scratch scratch = {0};
    size_t first = task * FILES_PER_TASK, end = first + FILES_PER_TASK;
    if (end > batch->file_count) end = batch->file_count;
    for (size_t i = first; i < end; i++) {
        struct file *file = &batch->files[i];
        file->failed = !gate_log_read(file->path, &scratch, &file->log, &batch->problems[i]);
    }
    gate_scratch_free(&scratch);
}

// The first file's problem, and how many others have one; NULL: none.
static const char *first_problem(const struct batch *batch, size_t *others) {
    const char *first = NULL;
    *others = 0;
    for (size_t i = 0; i < batch->file_count; i++) {
        if (!batch->files[i].failed) continue;
        if (first == NULL) {
            first = batch->problems[i].text;
        } else {
            ++*others;
        }
    }
    return first;
}

// Sets batch->experts, which all files must agree on. Returns the file that does not, or NULL.
static const struct file *find_experts(struct batch *batch, const struct file **told) {
    for (size_t i = 0; i < batch->file_count; i++) {
        const struct file *file = &batch->files[i];
        if (file->log.experts == 0) continue;
        if (batch->experts == 0) *told = file;
        if (batch->experts == 0) batch->experts = file->log.experts;
        if (file->log.experts != batch->experts) return file;
    }
    return NULL;
}

static bool allocate_results(struct batch *batch, size_t *step_count) {
    *step_count = 0;
    for (size_t i = 0; i < batch->file_count; i++) {
        size_t steps = batch->files[i].log.steps;
        *step_count += steps;
        if (steps > batch->place_count) batch->place_count = steps;
    }
    batch->imbalances = calloc(*step_count + 1, sizeof *batch->imbalances);
    batch->places = calloc(batch->place_count + 1, sizeof *batch->places);
    batch->sums = calloc(2 * batch->experts + 1, sizeof *batch->sums);
    batch->lost = batch->sums + batch->experts;
    return batch->imbalances != NULL && batch->places != NULL && batch->sums != NULL;
}

static int collect_batch(lua_State *lua) {
    struct batch *batch = luaL_checkudata(lua, 1, BATCH_TYPE);
    for (size_t i = 0; batch->files != NULL && i < batch->file_count; i++)
        gate_log_free(&batch->files[i].log);
    free(batch->files);
    free(batch->problems);
    free(batch->imbalances);
    free(batch->places);
    free(batch->sums);
    *batch = (struct batch){0};
    return 0;
}

// ---- Lua --------------------------------------------------------------------------------------

static void set_number(lua_State *lua, const char *key, double value) {
    lua_pushnumber(lua, value);
    lua_setfield(lua, -2, key);
}

static void set_count(lua_State *lua, const char *key, uint64_t value) {
    lua_pushinteger(lua, (lua_Integer)value);
    lua_setfield(lua, -2, key);
}

static void set_spread(lua_State *lua, const struct spread *spread) {
    set_number(lua, "mean", spread_mean(spread));
    set_number(lua, "max", spread->max);
}

// Pushes the summary of all steps; fills batch->places.
static void push_steps(lua_State *lua, struct batch *batch, size_t step_count) {
    struct spread all = {0};
    uint64_t idle = 0;
    uint32_t most_idle = 0;
    for (size_t i = 0; i < batch->file_count; i++) {
        const struct gate_log *log = &batch->files[i].log;
        idle += log->idle;
        if (log->most_idle > most_idle) most_idle = log->most_idle;
        for (size_t place = 0; place < log->steps; place++) {
            if (log->imbalance[place] < 0) continue;
            batch->imbalances[all.count] = log->imbalance[place];
            spread_add(&all, log->imbalance[place]);
            spread_add(&batch->places[place], log->imbalance[place]);
        }
    }
    lua_createtable(lua, 0, 8);
    set_count(lua, "count", step_count);
    set_count(lua, "without_load", step_count - all.count);
    set_spread(lua, &all);
    set_number(lua, "p50", all.count == 0 ? 0 : percentile(batch->imbalances, all.count, 0.50));
    set_number(lua, "p95", all.count == 0 ? 0 : percentile(batch->imbalances, all.count, 0.95));
    set_number(lua, "idle_mean", step_count == 0 ? 0 : (double)idle / (double)step_count);
    set_count(lua, "idle_max", most_idle);
}

static void push_number_if(lua_State *lua, bool is_known, double value) {
    if (is_known) {
        lua_pushnumber(lua, value);
    } else {
        lua_pushboolean(lua, false);
    }
}

static void push_places(lua_State *lua, const struct batch *batch) {
    lua_createtable(lua, 0, 2);
    lua_createtable(lua, (int)batch->place_count, 0);
    lua_createtable(lua, (int)batch->place_count, 0);
    for (size_t i = 0; i < batch->place_count; i++) {
        const struct spread *place = &batch->places[i];
        push_number_if(lua, place->count > 0, spread_mean(place));
        lua_rawseti(lua, -3, (lua_Integer)i + 1);
        push_number_if(lua, place->count > 0, place->max);
        lua_rawseti(lua, -2, (lua_Integer)i + 1);
    }
    lua_setfield(lua, -3, "max");
    lua_setfield(lua, -2, "mean");
}

// Pushes the load of each expert over the files of a group, or of all (ALL_GROUPS).
static void push_totals(lua_State *lua, struct batch *batch, size_t group) {
    memset(batch->sums, 0, 2 * batch->experts * sizeof *batch->sums);
    for (size_t i = 0; i < batch->file_count; i++) {
        const struct gate_log *log = &batch->files[i].log;
        if (group != ALL_GROUPS && batch->files[i].group != group) continue;
        for (size_t expert = 0; expert < log->experts; expert++) {
            gate_add(&batch->sums[expert], &batch->lost[expert], log->loads[expert]);
            gate_add(&batch->sums[expert], &batch->lost[expert], log->loads[log->experts + expert]);
        }
    }
    lua_createtable(lua, (int)batch->experts, 0);
    for (size_t expert = 0; expert < batch->experts; expert++) {
        lua_pushnumber(lua, batch->sums[expert] + batch->lost[expert]);
        lua_rawseti(lua, -2, (lua_Integer)expert + 1);
    }
}

static void push_group(lua_State *lua, struct batch *batch, size_t group) {
    struct spread spread = {0};
    size_t steps = 0;
    for (size_t i = 0; i < batch->file_count; i++) {
        const struct gate_log *log = &batch->files[i].log;
        if (batch->files[i].group != group) continue;
        steps += log->steps;
        for (size_t place = 0; place < log->steps; place++) {
            if (log->imbalance[place] >= 0) spread_add(&spread, log->imbalance[place]);
        }
    }
    lua_createtable(lua, 0, 4);
    set_count(lua, "steps", steps);
    set_spread(lua, &spread);
    push_totals(lua, batch, group);
    lua_setfield(lua, -2, "totals");
}

// Fills the batch from read's arguments; the userdata on top of the stack keeps it.
static struct batch *new_batch(lua_State *lua) {
    luaL_checktype(lua, PATHS, LUA_TTABLE);
    luaL_checktype(lua, GROUPS, LUA_TTABLE);
    size_t count = lua_rawlen(lua, PATHS);
    struct batch *batch = lua_newuserdatauv(lua, sizeof *batch, 0);
    *batch = (struct batch){.file_count = count};
    luaL_setmetatable(lua, BATCH_TYPE);
    batch->files = calloc(count + 1, sizeof *batch->files);
    batch->problems = calloc(count + 1, sizeof *batch->problems);
    if (batch->files == NULL || batch->problems == NULL) luaL_error(lua, "not enough memory");
    for (size_t i = 0; i < count; i++) {
        struct file *file = &batch->files[i];
        if (lua_rawgeti(lua, PATHS, (lua_Integer)i + 1) != LUA_TSTRING) luaL_error(lua, "a path is no text");
        file->path = lua_tostring(lua, -1); // lives as long as its place in the table
        lua_rawgeti(lua, GROUPS, (lua_Integer)i + 1);
        lua_Integer group = luaL_checkinteger(lua, -1);
        luaL_argcheck(lua, group >= 1 && (size_t)group <= count, GROUPS, "no group's number");
        file->group = (size_t)group - 1;
        if (file->group >= batch->group_count) batch->group_count = file->group + 1;
        lua_pop(lua, 2);
    }
    return batch;
}

static int push_result(lua_State *lua, struct batch *batch) {
    size_t step_count;
    if (!allocate_results(batch, &step_count)) return luaL_error(lua, "not enough memory");
    lua_createtable(lua, 0, 5);
    set_count(lua, "experts", batch->experts);
    push_totals(lua, batch, ALL_GROUPS);
    lua_setfield(lua, -2, "totals");
    push_steps(lua, batch, step_count);
    lua_setfield(lua, -2, "steps");
    push_places(lua, batch);
    lua_setfield(lua, -2, "places");
    lua_createtable(lua, (int)batch->group_count, 0);
    for (size_t group = 0; group < batch->group_count; group++) {
        push_group(lua, batch, group);
        lua_rawseti(lua, -2, (lua_Integer)group + 1);
    }
    lua_setfield(lua, -2, "groups");
    return 1;
}

static int lua_read(lua_State *lua) {
    struct batch *batch = new_batch(lua);
    const struct file *odd, *told = NULL;
    size_t others;
    parallel_run((batch->file_count + FILES_PER_TASK - 1) / FILES_PER_TASK, MOST_THREADS, read_files, batch);
    const char *problem = first_problem(batch, &others);
    if (problem != NULL) {
        lua_pushnil(lua);
        lua_pushstring(lua, problem);
        if (others == 0) return 2;
        lua_pushfstring(lua, "%s (and %d more files that cannot be used)", problem, (int)others);
        return lua_replace(lua, -2), 2;
    }
    if ((odd = find_experts(batch, &told)) != NULL) {
        lua_pushnil(lua);
        lua_pushfstring(lua, "%s: %d experts, where %s has %d", odd->path, (int)odd->log.experts, told->path,
                        (int)told->log.experts);
        return 2;
    }
    return push_result(lua, batch);
}

int luaopen_core_gates(lua_State *lua);
int luaopen_core_gates(lua_State *lua) {
    static const luaL_Reg functions[] = {{"read", lua_read}, {NULL, NULL}};
    luaL_newmetatable(lua, BATCH_TYPE);
    lua_pushcfunction(lua, collect_batch);
    lua_setfield(lua, -2, "__gc");
    lua_pop(lua, 1);
    luaL_newlib(lua, functions);
    return 1;
}
