// Global memory that is as weak as PTX permits, as far as flags, barriers and launches go, and a detector of
// races, for translated PTX (ptx.h). A program with it runs under no sanitizer.
//
// A load may return the value before the last store to a word until that store is ordered before the load, or
// this thread has seen it. Order comes from barriers of blocks and clusters, from the ends of launches, and
// from a release to an acquire that reads it. The program ends as a failed test does if two accesses without
// an order meet, one of them a store and one of them plain; and at an access by another name of the memory
// than that of the last store, with no fence between both, unless it is a relaxed load: a poll may see that
// store or the value before.
//
// It keeps one old value of a word, delays no loads, and has no fences but those of aliases.
#ifndef TESTS_PTX_MODEL_H
#define TESTS_PTX_MODEL_H

#include "ptx_kernels.h"

void model_load(uint64_t at, unsigned bytes, Order order, Name name, void *value);
void model_store(uint64_t at, unsigned bytes, Order order, Name name, const void *value);
void model_fence_of_aliases();

#endif
