// Cells on a GPU: their data, their timed calls, and hashes of the results.
#ifndef BENCH_CUDA_CELL_BUFFERS_H
#define BENCH_CUDA_CELL_BUFFERS_H

#include "cuda/device/device.h"

// The functions of struct backend that take a place.
int place_open(struct group *group, struct cell *cell, enum mode mode, void **place,
               char reason[REASON_SIZE]);
size_t place_bytes(const struct shape *shape);
void place_close(void *place);
struct call place_call(void *place, const struct candidate *candidate, size_t shift, int slot);
int place_slots(const void *place);
int place_poison(void *place);
int place_sample(void *place, const struct candidate *candidate, void *state, size_t shift,
                 struct stamp *stamp, char reason[REASON_SIZE]);
int place_floor(void *place, const struct candidate *candidate, void *state, double *time_us,
                char reason[REASON_SIZE]);
int place_finish(void *place);
int place_fetch(void *place, int slot);
uint64_t place_hash(void *place, int slot);
bool place_stays(void *place, int slot);

// Destroys the graphs that this rank's open places have captured; the next samples capture them again. For
// NCCL: the end of a communicator waits until graphs with calls of it are destroyed.
void place_forget_graphs(struct device *device);

#endif
