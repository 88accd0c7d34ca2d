// Merging for Lua: core.merge.
//
//   merge.write(path, { { path =, rank = nil: that of the file }... },
//               { categories = { name... }, workers =, gzip = bool, chunk_size = })
//   -> { { rank, file_rank, world_size, base_nanoseconds, devices = { pid... },
//          kept = { [category] = number of events }, malformed, negative, long_ids, lone_flows }... },
//      in order of the files, or nil, message
//   merge.can_gzip() -> bool
#include "merge.h"
#include "packed.h"
#include "trace/analysis/trace_lua.h"

namespace trace {

namespace {

constexpr const char *COUNTS[] = {"malformed", "negative", "long_ids", "lone_flows"};
static_assert(sizeof COUNTS / sizeof *COUNTS == size_t(merge_count::count));

// The data of a call, owned by Lua's garbage collector, because Lua may raise.
struct call {
    std::string path;
    std::vector<merge_input> inputs;
    merge_options options;
    std::vector<merge_found> found;
    ::problem problem{};
};

constexpr const char *CALL_TYPE = "gentables.merge";

void take_inputs(lua_State *lua, call &call) {
    luaL_checktype(lua, 2, LUA_TTABLE);
    auto count = lua_Integer(lua_rawlen(lua, 2));
    for (lua_Integer i = 1; i <= count; i++) {
        lua_geti(lua, 2, i);
        lua_getfield(lua, -1, "path");
        lua_getfield(lua, -2, "rank");
        merge_input input;
        input.path = luaL_checkstring(lua, -2);
        if (!lua_isnil(lua, -1)) input.rank = luaL_checkinteger(lua, -1);
        call.inputs.push_back(std::move(input));
        lua_pop(lua, 3);
    }
}

void take_options(lua_State *lua, merge_options &options) {
    luaL_checktype(lua, 3, LUA_TTABLE);
    lua_getfield(lua, 3, "categories");
    auto count = lua_Integer(lua_rawlen(lua, -1));
    for (lua_Integer i = 1; i <= count; i++) {
        lua_geti(lua, -1, i);
        options.categories.emplace_back(luaL_checkstring(lua, -1));
        lua_pop(lua, 1);
    }
    lua_getfield(lua, 3, "workers");
    options.workers = int(luaL_optinteger(lua, -1, 1));
    lua_getfield(lua, 3, "gzip");
    options.packs = lua_toboolean(lua, -1) != 0;
    lua_getfield(lua, 3, "chunk_size");
    options.chunk_size = size_t(luaL_optinteger(lua, -1, lua_Integer(options.chunk_size)));
    lua_pop(lua, 4);
}

void push_found(lua_State *lua, const merge_found &found, const std::vector<std::string> &categories) {
    lua_createtable(lua, 0, 10);
    set_known(lua, "rank", found.rank);
    set_known(lua, "file_rank", found.file_rank);
    set_known(lua, "world_size", found.world_size);
    set_known(lua, "base_nanoseconds", found.base_nanoseconds);
    for (size_t i = 0; i < size_t(merge_count::count); i++) {
        set_integer(lua, COUNTS[i], found.counts[i]);
    }
    lua_newtable(lua);
    for (size_t i = 0; i < found.kept.size(); i++) {
        set_integer(lua, categories[i].c_str(), found.kept[i]);
    }
    lua_setfield(lua, -2, "kept");
    set_list(lua, "devices", found.devices.size(), [&](size_t i) { push_text(lua, found.devices[i]); });
}

int write(lua_State *lua) {
    luaL_checkstring(lua, 1);
    lua_settop(lua, 3);
    auto &call = push_new<::trace::call>(lua, CALL_TYPE);
    call.path = lua_tostring(lua, 1);
    take_inputs(lua, call);
    take_options(lua, call.options);
    if (!merge(call.path, call.inputs, call.options, call.found, call.problem))
        return fail_with(lua, call.problem.text);
    push_list(lua, call.found.size(),
              [&](size_t i) { push_found(lua, call.found[i], call.options.categories); });
    return 1;
}

int can_gzip(lua_State *lua) {
    lua_pushboolean(lua, can_pack());
    return 1;
}

} // namespace

} // namespace trace

extern "C" int luaopen_core_merge(lua_State *lua);

int luaopen_core_merge(lua_State *lua) {
    static const luaL_Reg functions[] = {
        {"write", guarded<trace::write>}, {"can_gzip", trace::can_gzip}, {nullptr, nullptr}};
    make_type<trace::call>(lua, trace::CALL_TYPE);
    luaL_newlib(lua, functions);
    return 1;
}
