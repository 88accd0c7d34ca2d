// Memory for what is large and filled from end to end.
#ifndef GENTABLES_LARGE_H
#define GENTABLES_LARGE_H

#include <stddef.h>

// Uninitialised memory, in huge pages where the system has them: that spares a page fault for every 4 KiB.
// NULL where it runs out; free() frees it.
void *large_allocate(size_t size);

#endif
