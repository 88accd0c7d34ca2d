// Memory in huge pages; see huge_pages.h.
#include "huge_pages.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

void *large_allocate(size_t size) {
    if (size < HUGE_PAGE) return malloc(size);
    size_t whole = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *memory = aligned_alloc(HUGE_PAGE, whole);
    if (memory != NULL) (void)madvise(memory, whole, MADV_HUGEPAGE);
    return memory;
}
