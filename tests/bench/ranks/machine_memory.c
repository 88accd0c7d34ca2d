// The memory that a process may use: the smallest limit of its control groups and of their parents, of both
// versions, in a folder with the files of such a machine.
#include "../../unit_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ranks/memory_limit.h"

static char root[64];

// Writes a file below the root, and makes its folders.
static void put(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/gentables-memory-XXXXXX");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int remove_root(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

TEST_WITH(make_root, remove_root, without_groups_it_is_the_machines) {
    assert_true(machine_memory_limit(root) == UINT64_MAX);
    assert_true(machine_memory_bytes(root) > 0);
    assert_true(machine_memory_bytes(root) < UINT64_MAX);
}

TEST_WITH(make_root, remove_root, the_smallest_around_it_counts) {
    put("/proc/self/cgroup", "0::/user.slice/of user/job\n");
    put("/sys/fs/cgroup/user.slice/of user/job/memory.max", "3000000\n");
    assert_true(machine_memory_limit(root) == 3000000);
    put("/sys/fs/cgroup/user.slice/of user/memory.max", "max\n");
    put("/sys/fs/cgroup/user.slice/memory.max", "2000000\n");
    put("/sys/fs/cgroup/other/memory.max", "1\n");
    assert_true(machine_memory_limit(root) == 2000000);
    assert_true(machine_memory_bytes(root) == 2000000);
}

TEST_WITH(make_root, remove_root, a_container_sees_its_own_group_as_the_first) {
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/memory.max", "5000000\n");
    assert_true(machine_memory_limit(root) == 5000000);
    put("/proc/self/cgroup", "0::/not/seen/from/here\n");
    assert_true(machine_memory_limit(root) == 5000000);
}

TEST_WITH(make_root, remove_root, version_1_has_a_file_of_its_own) {
    put("/proc/self/cgroup", "9:cpu,memory:/docker/a\n5:memory_other:/b\n1:name=systemd:/c\n0::/d\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(machine_memory_limit(root) == 9223372036854771712ull);
    put("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "7000000\n");
    put("/sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes", "8000000\n");
    put("/sys/fs/cgroup/memory/b/memory.limit_in_bytes", "1\n");
    assert_true(machine_memory_limit(root) == 7000000);
}

TEST_WITH(make_root, remove_root, a_file_that_says_nothing_limits_nothing) {
    put("/proc/self/cgroup", "nonsense\n0:\n0:memory\n0::no path\n\n0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "");
    assert_true(machine_memory_limit(root) == UINT64_MAX);
}

// The files that the kernel may drop count as free memory; of nested groups the one with the least free
// memory counts, which here is not the one with the smallest limit.
TEST_WITH(make_root, remove_root, what_is_left_is_less_than_the_limit) {
    put("/proc/meminfo", "MemTotal: 90 kB\nMemFree: 1 kB\nMemAvailable:      9000 kB\n");
    assert_true(machine_memory_left(root) == 9000 << 10);
    put("/proc/self/cgroup", "0::/slice/job\n");
    put("/sys/fs/cgroup/slice/job/memory.max", "3000000\n");
    put("/sys/fs/cgroup/slice/job/memory.current", "1000000\n");
    assert_true(machine_memory_left(root) == 2000000);
    put("/sys/fs/cgroup/slice/job/memory.stat", "anon 7\nactive_file 1\ninactive_file 400000\n");
    assert_true(machine_memory_left(root) == 2400000);
    put("/sys/fs/cgroup/slice/memory.max", "5000000\n");
    put("/sys/fs/cgroup/slice/memory.current", "4500000\n");
    assert_true(machine_memory_left(root) == 500000);
    assert_true(machine_memory_limit(root) == 3000000);
    put("/sys/fs/cgroup/slice/memory.current", "6000000\n");
    assert_true(machine_memory_left(root) == 0);
    put("/sys/fs/cgroup/slice/memory.max", "max\n");
    put("/proc/meminfo", "MemAvailable: 1 kB\n");
    assert_true(machine_memory_left(root) == 1024);
}

TEST_WITH(make_root, remove_root, version_1_counts_what_lies_in_a_group) {
    put("/proc/self/cgroup", "4:memory:/docker/a\n0::/\n");
    put("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "8000000\n");
    put("/sys/fs/cgroup/memory/docker/memory.usage_in_bytes", "7000000\n");
    put("/sys/fs/cgroup/memory/docker/memory.stat", "inactive_file 1\ntotal_inactive_file 2000000\n");
    assert_true(machine_memory_left(root) == 3000000);
    put("/sys/fs/cgroup/memory/docker/memory.stat", "total_inactive_file 9000000\n");
    assert_true(machine_memory_left(root) == 8000000);
}
