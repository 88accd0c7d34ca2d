// This machine's processor, by hwloc; see processor.h.
#include "processor.h"

#include <hwloc.h>
#include <sched.h>
#include <stdio.h>

// What hwloc finds by default, without distances and kinds of memory and of processors. Its component x86 is
// left out: it moves this thread to each processor in turn.
static hwloc_topology_t load(void) {
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0) return NULL;
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
#if HWLOC_API_VERSION >= 0x00020800
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
                                           HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
#endif
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

int processor_numa_node(void) {
    int found = -1;
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return -1;
    hwloc_topology_t topology = load();
    hwloc_bitmap_t set = topology != NULL ? hwloc_bitmap_alloc() : NULL;
    for (unsigned cpu = 0; set != NULL && cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &cpus)) hwloc_bitmap_set(set, cpu);
    }
    int count = set != NULL ? hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) : 0;
    for (int i = 0; i < count && found < 0; i++) {
        hwloc_obj_t node = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)i);
        if (hwloc_bitmap_isincluded(set, node->cpuset)) found = i;
    }
    hwloc_bitmap_free(set);
    if (topology != NULL) hwloc_topology_destroy(topology);
    return found;
}
