// The processor on synthetic machines of hwloc, and where the bench was built WITHOUT_HWLOC.
#include "../../unit_test.h"

#include <stdlib.h>
#include <string.h>

#include "elements/processor.h"

#ifdef WITHOUT_HWLOC
enum { L3_BYTES = 0, L2_BYTES = 0 };
#else
enum { L3_BYTES = 32 << 20, L2_BYTES = 1 << 20 };
#endif

static size_t cache_bytes_of(const char *machine) {
    setenv("HWLOC_SYNTHETIC", machine, 1);
    return processor_cache_bytes();
}

TEST(the_last_level_counts_and_not_the_number_of_caches) {
    assert_int_equal(cache_bytes_of("pack:2 numa:2 l3:2(size=33554432) l2:2(size=1048576) core:1 pu:2"),
                     L3_BYTES);
    assert_int_equal(cache_bytes_of("pack:1 l2:4(size=1048576) l1d:1(size=32768) core:1 pu:1"), L2_BYTES);
}

TEST(a_machine_without_caches_has_none) {
    assert_int_equal(cache_bytes_of("pack:2 core:2 pu:1"), 0);
}

TEST(a_processor_without_a_name_is_a_cpu) {
    char name[40];
    setenv("HWLOC_SYNTHETIC", "pack:1 core:2 pu:1", 1);
    processor_name(name, sizeof name);
    assert_string_equal(name, "CPU");
}

TEST(a_name_is_cut_to_its_array) {
    char name[200], start[4];
    unsetenv("HWLOC_SYNTHETIC");
    processor_name(name, sizeof name);
    processor_name(start, sizeof start);
    assert_true(strlen(name) >= strlen(start));
    assert_memory_equal(name, start, strlen(start));
    assert_true(strlen(start) > 0);
}
