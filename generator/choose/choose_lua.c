// require "core.choose": choices for Lua. A failure gives nil, message.
//
// - classes(rows, slice, options): see classes.c.
// - losses(rows, slice, sizes, options) gives a table NAME -> expected loss for each of `sizes`, of the
//   strategies that have a time at each of its shapes, which are its bin. A size is a list of shapes {
//   num_tokens =, hidden_size =, times = { NAME = microseconds } }; the rows show how noisy times are (see
//   evidence.h); without launches the times count as exact. Options: may_win = { NAME = true }, loopback.
// - rule = { right = a loss up to this is right, confidence =, expected_loss =, margin = of a choice that is
//   not uncertain, tolerance = }; see select.h.
// - along(points, regret) gives the strategy of each of the ascending points, { { badness = (NAME -> expected
//   loss) }... }: the fewest borders, by the rule of select.c; false where a point has no strategy.
// - select(rows, options) gives a table. Options:
//     candidates    names of strategies; nil: all that may win
//     loopback      whether loopback rows compete
//     least         whether the least of repeated rows counts; otherwise repeated rows are an error
//     lookup        the lookup rule of the reader, which makes the bins: "nearest", "floor", "log2" or
//                   "exact" (default)
//     cells         { { world_size =, dtype =, op =, mode =, fusions = {}, hidden_sizes = {},
//                   num_tokens = {} }... }: cells that the table has in addition to those of the rows
//     only_cells    rows between `cells` make no cells, but count for the bins that they lie in
//     workload      { { hidden_size =, num_tokens =, weight = }... }
//     derived       { { world_size =, ..., num_tokens =, strategy =, placement =, time_us = }... }: times
//                   that were not measured; those with predicted = true, low_us =, high_us = count in planes
//                   without rows, too
//     untried       { { world_size =, ..., num_tokens =, strategy = }... }: strategies that may do a cell,
//                   and have no time at it or near it; they win nothing, but make other choices uncertain
//     incumbent     a table that keeps the choices that lose hardly more than the best
//     judged        { old, new }: two tables; the cells of the result have the losses of their choices
//     same_bits_as  a strategy: only strategies with the same bits may win
//     stable        each row of token counts keeps to one class of equal bits: that of the choices of this
//                   table or, if `true`, the one that loses least
//     regret        the loss that a cell may have for the sake of fewer borders, as a share (default: 0)
#include <lauxlib.h>
#include <lua.h>
#include <math.h>

#include "base/bindings.h"
#include "choose.h"
#include "classes.h"
#include "estimate/evidence.h"
#include "rows/rows_lua.h"
#include "select.h"
#include "select_options.h"
#include "table/table_lua.h"

static void take_tables(lua_State *lua, struct selection *selection) {
    if (lua_getfield(lua, 2, "incumbent") != LUA_TNIL) selection->incumbent = table_lua_check(lua, -1);
    lua_pop(lua, 1);
    if (lua_getfield(lua, 2, "stable") == LUA_TUSERDATA) selection->stable_as = table_lua_check(lua, -1);
    lua_pop(lua, 1);
    if (lua_getfield(lua, 2, "judged") != LUA_TNIL) {
        for (int i = 0; i < 2; i++, lua_pop(lua, 1)) {
            lua_geti(lua, -1, i + 1);
            selection->judged[i] = table_lua_check(lua, -1);
        }
    }
    lua_pop(lua, 1);
}

static int lua_select(lua_State *lua) {
    const struct rows *rows = rows_check(lua, 1);
    const struct lists *lists = lists_of(lua);
    struct selection selection;
    struct problem problem;
    lua_settop(lua, 2);
    if (lua_isnil(lua, 2)) {
        lua_newtable(lua);
        lua_replace(lua, 2);
    }
    select_options_take(lua, 2, lists, &selection);
    take_tables(lua, &selection);
    struct table **table = table_lua_push(lua);
    *table = table_select(rows, &selection, lists, &problem);
    return *table != NULL ? 1 : push_failed(lua, problem.text);
}

// ---- choices along an axis

static double take_number(lua_State *lua, int index, const char *field, double otherwise) {
    lua_getfield(lua, index, field);
    double value = lua_type(lua, -1) == LUA_TNUMBER ? lua_tonumber(lua, -1) : otherwise;
    lua_pop(lua, 1);
    return value;
}

// A size while its losses are computed.
struct size_losses {
    const struct lists *lists;
    struct evidence_shape *shapes;
    size_t shape_count;
    double expected[NAMES_MAX]; // by strategy: sums over shapes, from their times alone
    size_t times[NAMES_MAX];    // the number of shapes at which it has a time
};

// Adds the times of the shape on top of the stack, taken as exact.
static void add_times(lua_State *lua, struct size_losses *size) {
    double time_us[NAMES_MAX], least_us = INFINITY;
    lua_getfield(lua, -1, "times");
    luaL_checktype(lua, -1, LUA_TTABLE);
    for (size_t s = 0; s < size->lists->strategies.count; s++) {
        time_us[s] = take_number(lua, -1, size->lists->strategies.name[s], NAN);
        least_us = fmin(least_us, time_us[s]);
    }
    for (size_t s = 0; s < size->lists->strategies.count; s++) {
        if (isnan(time_us[s])) continue;
        size->expected[s] += time_us[s] / least_us - 1;
        size->times[s]++;
    }
    lua_pop(lua, 1);
}

// The size on top of the stack; its shapes stay on the stack.
static void take_size(lua_State *lua, uint8_t fusion, struct size_losses *size) {
    size->shape_count = (size_t)luaL_len(lua, -1);
    if (size->shape_count == 0) luaL_error(lua, "a size without shapes");
    size->shapes = lua_newuserdatauv(lua, size->shape_count * sizeof *size->shapes, 0);
    for (size_t k = 0; k < size->shape_count; k++, lua_pop(lua, 1)) {
        lua_geti(lua, -2, (lua_Integer)k + 1);
        luaL_checktype(lua, -1, LUA_TTABLE);
        size->shapes[k] = (struct evidence_shape){fusion, log2(take_number(lua, -1, "hidden_size", NAN)),
                                                  log2(take_number(lua, -1, "num_tokens", NAN)), 1};
        add_times(lua, size);
    }
}

// Pushes the expected losses of a size: for strategies with evidence those estimated from launches.
static void push_losses(lua_State *lua, const struct evidence *evidence, const struct size_losses *size) {
    uint8_t covered[NAMES_MAX];
    struct loss_figures figures[NAMES_MAX];
    size_t count = 0;
    lua_newtable(lua);
    for (size_t s = 0; s < size->lists->strategies.count; s++) {
        if (size->times[s] != size->shape_count) continue;
        if (evidence_covers(evidence, (uint8_t)s)) covered[count++] = (uint8_t)s;
        set_number(lua, size->lists->strategies.name[s], size->expected[s] / (double)size->shape_count);
    }
    if (count == 0) return;
    if (!evidence_losses(evidence, &size->shapes[0], size->shapes, size->shape_count, covered, count,
                         figures)) {
        luaL_error(lua, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        set_number(lua, size->lists->strategies.name[covered[i]], figures[i].expected);
    }
}

static const char evidence_type[] = "gentables.evidence";

static int collect_evidence(lua_State *lua) {
    struct evidence **evidence = luaL_checkudata(lua, 1, evidence_type);
    evidence_free(*evidence);
    *evidence = NULL;
    return 0;
}

// The evidence of a slice's block, which the stack keeps.
static const struct evidence *take_evidence(lua_State *lua, const struct rows *rows, struct slice_key slice,
                                            const struct lists *lists) {
    bool may_win[NAMES_MAX] = {false};
    lua_getfield(lua, 4, "may_win");
    luaL_checktype(lua, -1, LUA_TTABLE);
    for (size_t s = 0; s < lists->strategies.count; s++) {
        may_win[s] = lua_getfield(lua, -1, lists->strategies.name[s]) != LUA_TNIL;
        lua_pop(lua, 1);
    }
    const struct names *placements = &lists->placements;
    const struct evidence_scope scope = {
        .block = slice,
        .may_win = may_win,
        .barred = field_boolean(lua, 4, "loopback") ? NAME_NONE : names_index(placements, "loopback"),
        .oversubscribed = names_index(placements, "oversubscribed"),
    };
    struct evidence **evidence = lua_newuserdatauv(lua, sizeof *evidence, 0);
    *evidence = NULL;
    luaL_setmetatable(lua, evidence_type);
    if (!evidence_make(rows, &scope, lists, evidence)) luaL_error(lua, "out of memory");
    return *evidence;
}

static int lua_losses(lua_State *lua) {
    const struct lists *lists = lists_of(lua);
    const struct rows *rows = rows_check(lua, 1);
    struct slice_key slice = slice_key_take(lua, 2);
    luaL_checktype(lua, 3, LUA_TTABLE);
    luaL_checktype(lua, 4, LUA_TTABLE);
    const struct evidence *evidence = take_evidence(lua, rows, slice, lists);
    lua_Integer count = luaL_len(lua, 3);
    lua_createtable(lua, (int)count, 0);
    int found = lua_gettop(lua);
    for (lua_Integer i = 1; i <= count; i++, lua_settop(lua, found)) {
        struct size_losses size = {.lists = lists};
        lua_geti(lua, 3, i);
        take_size(lua, slice.fusion, &size);
        push_losses(lua, evidence, &size);
        lua_seti(lua, found, i);
    }
    return 1;
}

// The options of the point on top of the stack, in the order of the list of strategies.
static size_t take_options(lua_State *lua, const struct lists *lists, struct border_option *options) {
    size_t count = 0;
    lua_getfield(lua, -1, "badness");
    luaL_checktype(lua, -1, LUA_TTABLE);
    for (size_t s = 0; s < lists->strategies.count; s++) {
        double badness = take_number(lua, -1, lists->strategies.name[s], NAN);
        if (isfinite(badness)) options[count++] = (struct border_option){badness, (uint8_t)s, false};
    }
    lua_pop(lua, 1);
    return count;
}

static int lua_along(lua_State *lua) {
    const struct lists *lists = lists_of(lua);
    double regret = luaL_checknumber(lua, 2);
    luaL_checktype(lua, 1, LUA_TTABLE);
    size_t count = (size_t)luaL_len(lua, 1), width = lists->strategies.count;
    struct border_option *options = lua_newuserdatauv(lua, (count * width + 1) * sizeof *options, 0);
    struct border_point *points = lua_newuserdatauv(lua, (count + 1) * sizeof *points, 0);
    for (size_t i = 0; i < count; i++, lua_pop(lua, 1)) {
        lua_geti(lua, 1, (lua_Integer)i + 1);
        struct border_option *own = options + i * width;
        points[i] = (struct border_point){.options = own, .count = take_options(lua, lists, own)};
        if (points[i].count > 0) select_allow(own, points[i].count, NAME_NONE, regret, false);
    }
    if (!borders_choose(points, count)) return luaL_error(lua, "out of memory");
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        if (points[i].chosen == BORDER_NONE) {
            lua_pushboolean(lua, false);
        } else {
            lua_pushstring(lua, lists->strategies.name[points[i].options[points[i].chosen].strategy]);
        }
        lua_seti(lua, -2, (lua_Integer)i + 1);
    }
    return 1;
}

int luaopen_core_choose(lua_State *lua);
int luaopen_core_choose(lua_State *lua) {
    static const luaL_Reg functions[] = {{"along", lua_along},
                                         {"classes", choose_lua_classes},
                                         {"losses", lua_losses},
                                         {"select", lua_select},
                                         {NULL, NULL}};
    static const luaL_Reg of_evidence[] = {{"__gc", collect_evidence}, {NULL, NULL}};
    make_type(lua, evidence_type, of_evidence);
    luaL_newlib(lua, functions);
    lua_createtable(lua, 0, 5);
    set_number(lua, "right", LOSSES_RIGHT);
    set_number(lua, "confidence", SELECT_CONFIDENCE);
    set_number(lua, "expected_loss", SELECT_EXPECTED_LOSS);
    set_number(lua, "margin", SELECT_MARGIN);
    set_number(lua, "tolerance", SELECT_TOLERANCE);
    lua_setfield(lua, -2, "rule");
    return 1;
}
