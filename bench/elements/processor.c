// This machine's processor, by hwloc; see processor.h.
#include "processor.h"

#include <hwloc.h>
#include <stdio.h>

// Packages and caches, and none of the rest, which costs time at each start. hwloc's component x86 is left
// out: it moves this thread to each processor in turn.
static hwloc_topology_t load(void) {
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) return NULL;
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
#if HWLOC_API_VERSION >= 0x00020800
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                                           HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
#endif
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(topology) == 0) return topology;
    hwloc_topology_destroy(topology);
    return NULL;
}

void processor_name(char name[], size_t size) {
    const char *found = NULL;
    hwloc_topology_t topology = load();
    if (topology != NULL) {
        hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
        if (package == NULL) package = hwloc_get_root_obj(topology);
        found = hwloc_obj_get_info_by_name(package, "CPUModel");
        if (found == NULL) found = hwloc_obj_get_info_by_name(package, "CPUPart");
    }
    snprintf(name, size, "%s", found != NULL ? found : "CPU");
    if (topology != NULL) hwloc_topology_destroy(topology);
}

size_t processor_cache_bytes(void) {
    size_t bytes = 0;
    hwloc_topology_t topology = load();
    if (topology == NULL) return 0;
    for (hwloc_obj_t at = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, 0); at != NULL; at = at->parent) {
        if (hwloc_obj_type_is_dcache(at->type)) bytes = at->attr->cache.size;
    }
    hwloc_topology_destroy(topology);
    return bytes;
}
