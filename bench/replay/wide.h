// WIDE before a function: it is compiled for wider vectors, too, and the processor at hand chooses when the
// program starts. For loops over numbers that checks spend their time in. Needs what resolves functions at
// that time, which glibc has and which sanitizers are in the way of. For static functions alone: clang 14
// gives other functions a name that other files cannot link to.
#ifndef REPLAY_WIDE_H
#define REPLAY_WIDE_H

#include <features.h>

#if defined __x86_64__ && defined __GLIBC__ && defined NDEBUG
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

#endif
