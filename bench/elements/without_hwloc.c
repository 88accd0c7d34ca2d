// Where hwloc is missing, the processor is unknown; see processor.h.
#include <stdio.h>

#include "processor.h"

void processor_name(char name[], size_t size) {
    snprintf(name, size, "CPU");
}

size_t processor_cache_bytes(void) {
    return 0;
}

int processor_numa_node(void) {
    return -1;
}
