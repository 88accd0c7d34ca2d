// Memory for large arrays that are filled completely.
#ifndef GENTABLES_HUGE_PAGES_H
#define GENTABLES_HUGE_PAGES_H

#include <stddef.h>

// Uninitialised memory, in huge pages if the system has them, which saves a page fault for every 4 KiB. NULL
// if memory runs out. The caller frees it with free().
void *large_allocate(size_t size);

#endif
