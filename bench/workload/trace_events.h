// Single events of a trace in Kineto's JSON; trace.c composes a trace of them.
#ifndef BENCH_WORKLOAD_TRACE_EVENTS_H
#define BENCH_WORKLOAD_TRACE_EVENTS_H

#include <stdio.h>

#include "step.h"

struct trace_writer {
    const struct trace *trace; // what trace.c writes
    FILE *file;
    int pid, tid, rank;       // of this rank's process, of the thread that computes, of its device
    uint64_t base_ns;         // where times count from
    bool first;               // no event is written yet
    unsigned events;          // host events so far: Ev Idx, and External id counts from 1
    unsigned correlation;     // of the last launch
    uint64_t communicated_ns; // end of the last collective on the first communication stream
    size_t next_activity;     // index of the next one to write, in a step that a profiler recorded
};

// Writes `,"KEY":` and a time in microseconds.
void trace_print_us(const struct trace_writer *writer, const char *key, uint64_t ns);

// Writes an event with this one argument.
void trace_metadata(struct trace_writer *writer, const char *name, int pid, int tid, const char *key,
                    const char *value);

// Writes an event with a duration and leaves it open: the caller adds its arguments and "}".
void trace_begin_complete(struct trace_writer *writer, const char *category, const char *name, int pid,
                          int tid, uint64_t begin_ns, uint64_t end_ns);

// The next four write events of an action. Those that begin one leave its arguments open: the caller adds
// more of them and "}}".

// The host's side of an action. Returns its External id.
unsigned trace_begin_operation(struct trace_writer *writer, const char *name, const struct note *note);

// A launch on the host, from and until these times, and the arrow to the work, which begins at `work_ns`.
void trace_write_launch(struct trace_writer *writer, unsigned id, uint64_t from_ns, uint64_t until_ns,
                        int stream, uint64_t work_ns);

// The work of the last launch, of which only the times are known: on a processor one thread in one block,
// with its processor time; on a GPU (NO_CPU) a kernel with an unknown grid.
void trace_begin_kernel(struct trace_writer *writer, const char *name, unsigned id, int stream,
                        uint64_t begin_ns, uint64_t end_ns, uint64_t cpu_ns);

// The work of the last launch, as a profiler recorded it.
void trace_begin_activity(struct trace_writer *writer, const struct gpu_activity *activity, const char *name,
                          unsigned id, int stream);

#endif
