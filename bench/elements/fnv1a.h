// The hash FNV-1a (Fowler, Noll, Vo) of 64 bits. Not for security.
#ifndef BENCH_FNV1A_H
#define BENCH_FNV1A_H

#include <stdint.h>

#define FNV1A_START UINT64_C(0xcbf29ce484222325)

// The hash with one more byte.
static inline uint64_t fnv1a_add(uint64_t hash, uint64_t byte) {
    return (hash ^ byte) * UINT64_C(0x100000001b3);
}

#endif
