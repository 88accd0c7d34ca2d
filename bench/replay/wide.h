// WIDE before a function: it is also compiled for wider vectors, and the version for the processor is chosen
// when the program starts. It is for the loops in which checks spend their time. It needs indirect
// functions, which glibc supports, but which do not work under sanitizers. It is for static functions only:
// clang 14 gives other functions a name that other files cannot link to.
#ifndef REPLAY_WIDE_H
#define REPLAY_WIDE_H

#include <features.h>

#if defined __x86_64__ && defined __GLIBC__ && defined NDEBUG
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

#endif
