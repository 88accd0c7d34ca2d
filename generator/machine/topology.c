// require "core.topology": the processors of this machine, by hwloc. Without hwloc the module is not built.
//
//   topology.read() -> { cpu =, caches =, machine =, usable = } | nil, message
//
// `cpu` is the model (nil: unknown). `caches` has the sizes in bytes of the data caches of the first usable
// thread: L1d, L2, L3 ... `machine` and `usable` have numbers of packages, numa_nodes, cores and threads: of
// the machine, and of its part that this process may use (control groups, affinity). HWLOC_SYNTHETIC and
// HWLOC_XMLFILE replace the machine; all of such a machine is usable.
#include <errno.h>
#include <hwloc.h>
#include <lauxlib.h>
#include <lua.h>
#include <string.h>

#include "base/bindings.h"
#include "system/cleanup.h"

// Objects of hwloc and their names in Lua.
static const struct kind {
    const char *name;
    hwloc_obj_type_t type;
} kinds[] = {{"packages", HWLOC_OBJ_PACKAGE},
             {"numa_nodes", HWLOC_OBJ_NUMANODE},
             {"cores", HWLOC_OBJ_CORE},
             {"threads", HWLOC_OBJ_PU}};

// hwloc's component x86 is left out: it moves this thread to each processor in turn, to find what Linux
// reports anyway.
static hwloc_topology_t load(void) {
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) return NULL;
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (hwloc_topology_load(topology) == 0) return topology;
    hwloc_topology_destroy(topology);
    return NULL;
}

// Removes processors that this process may not use, and nodes without any other. A replaced machine has no
// affinity, and stays as it is.
static void keep_usable(hwloc_topology_t topology) {
    hwloc_bitmap_t mine = hwloc_bitmap_alloc();
    if (mine != NULL && hwloc_get_cpubind(topology, mine, HWLOC_CPUBIND_THREAD) == 0) {
        hwloc_topology_restrict(topology, mine, HWLOC_RESTRICT_FLAG_REMOVE_CPULESS);
    }
    hwloc_bitmap_free(mine);
}

// Sets the field `name` of the table on the stack to the number of objects of each kind. If the system
// reports no cores, each thread is one.
static void set_counts(lua_State *lua, hwloc_topology_t topology, const char *name) {
    lua_newtable(lua);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        int count = hwloc_get_nbobjs_by_type(topology, kinds[i].type);
        if (count == 0 && kinds[i].type == HWLOC_OBJ_CORE) {
            count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
        }
        set_integer(lua, kinds[i].name, count);
    }
    lua_setfield(lua, -2, name);
}

// x86 has names of models, ARM only numbers of parts.
static void set_cpu(lua_State *lua, hwloc_topology_t topology) {
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    if (package == NULL) package = hwloc_get_root_obj(topology);
    const char *model = hwloc_obj_get_info_by_name(package, "CPUModel");
    set_text(lua, "cpu", model != NULL ? model : hwloc_obj_get_info_by_name(package, "CPUPart"));
}

static void set_caches(lua_State *lua, hwloc_topology_t topology) {
    lua_newtable(lua);
    hwloc_obj_t at = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, 0);
    for (; at != NULL; at = at->parent) {
        if (!hwloc_obj_type_is_dcache(at->type)) continue;
        lua_pushfstring(lua, "L%d%s", (int)at->attr->cache.depth,
                        at->attr->cache.type == HWLOC_OBJ_CACHE_DATA ? "d" : "");
        lua_pushinteger(lua, (lua_Integer)at->attr->cache.size);
        lua_settable(lua, -3);
    }
    lua_setfield(lua, -2, "caches");
}

static int topology_read(lua_State *lua) {
    out_of_memory_guard("hwloc"); // hwloc does not check all of its allocations
    hwloc_topology_t topology = load();
    int reason = errno;
    out_of_memory_unguard();
    if (topology == NULL) {
        lua_pushnil(lua);
        lua_pushfstring(lua, "hwloc cannot read the machine's topology: %s (it may be out of memory)",
                        strerror(reason));
        return 2;
    }
    lua_newtable(lua);
    set_cpu(lua, topology);
    set_counts(lua, topology, "machine");
    out_of_memory_guard("hwloc");
    keep_usable(topology);
    out_of_memory_unguard();
    set_counts(lua, topology, "usable");
    set_caches(lua, topology);
    hwloc_topology_destroy(topology);
    return 1;
}

int luaopen_core_topology(lua_State *lua);
int luaopen_core_topology(lua_State *lua) {
    static const luaL_Reg functions[] = {{"read", topology_read}, {NULL, NULL}};
    luaL_newlib(lua, functions);
    return 1;
}
