// Cells on a GPU: their data, their timed calls, and hashes of the results.
#ifndef BENCH_CUDA_CELL_BUFFERS_H
#define BENCH_CUDA_CELL_BUFFERS_H

#include "cuda/device/device.h"

// The functions of struct backend that take buffers.
int buffers_open(struct group *group, struct cell *cell, enum mode mode, void **buffers,
                 char reason[REASON_SIZE]);
size_t buffer_bytes(const struct shape *shape);
void buffers_close(void *buffers);
struct call buffers_call(void *buffers, const struct candidate *candidate, size_t data_set, int slot);
int buffers_slots(const void *buffers);
int buffers_poison(void *buffers);
int buffers_sample(void *buffers, const struct candidate *candidate, void *state, size_t data_set,
                   struct stamp *stamp, char reason[REASON_SIZE]);
int buffers_floor(void *buffers, const struct candidate *candidate, void *state, double *time_us,
                  char reason[REASON_SIZE]);
int buffers_finish(void *buffers);
int buffers_fetch(void *buffers, int slot, struct cell_part part);
uint64_t buffers_hash(void *buffers, int slot);
bool buffers_are_unchanged(void *buffers, int slot);

// Destroys the graphs that were captured with this rank's open buffers; the next samples capture them again.
// For NCCL: the end of a communicator waits until graphs with calls of it are destroyed.
void device_drop_graphs(struct device *device);

#endif
