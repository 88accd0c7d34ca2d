// The functions of the stages of the self-test on GPUs, which stages.c lists; see calls/stage.h.
#ifndef BENCH_CUDA_STAGES_H
#define BENCH_CUDA_STAGES_H

#include "calls/stage.h"
#include "cuda/device/device.h"

// context.c: the driver, the first GPU, and the kernels that it loads.
enum stage_end stage_context(struct findings *findings);

// loaded_code.c: the registers and instructions of these kernels.
enum stage_end stage_code(struct findings *findings);

// barriers.c: the steps of the clocks, and barriers of the ranks on their GPUs.
enum stage_end stage_timers(struct group *group, const struct stage *stage, struct findings *findings);
enum stage_end stage_barriers(struct group *group, const struct stage *stage, struct findings *findings);

// launches.c: verified calls of our own kernels. stage_messages: many calls of one data type, without an
// epilogue, with messages through peer memory; stage_launches: each data type with each epilogue;
// stage_graphs: one data type with each epilogue, in graphs; stage_processes: the same, eager, on ranks that
// are processes.
enum stage_end stage_messages(struct group *group, const struct stage *stage, struct findings *findings);
enum stage_end stage_launches(struct group *group, const struct stage *stage, struct findings *findings);
enum stage_end stage_graphs(struct group *group, const struct stage *stage, struct findings *findings);
enum stage_end stage_processes(struct group *group, const struct stage *stage, struct findings *findings);

// between_processes.c: memory of another process, through one kind of handle.
enum stage_end stage_handles(struct group *group, const struct stage *stage, struct findings *findings);

// multicast_sums.c: sums by the switch: exact ones, then how it rounds the others.
enum stage_end stage_multicast(struct group *group, const struct stage *stage, struct findings *findings);

// context.c: takes the first GPU, and reads its name and SM version; false: the text is the reason.
bool open_first_gpu(const struct cuda_driver *driver, char name[CUDA_NAME_SIZE], int *sm,
                    struct findings *findings);

// launches.c: whether ranks reach each other's memory; else the text is the reason.
bool ranks_are_reached(const struct group *group, struct findings *findings);

// hang_notes.c: appends this rank's flags and epochs to the notes, if its kernels have left their waits.
void note_flags(struct group *group, struct findings *findings);

#endif
