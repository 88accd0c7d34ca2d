// Reports faults of candidates: a candidate that crashes, ends the process or takes too long is named on
// stderr, and the process ends; mpirun then ends the ranks in other processes.
#ifndef BENCH_FAULT_REPORT_H
#define BENCH_FAULT_REPORT_H

// Starts an isolation process (isolation_process.h), which also reports ends without a signal handler, such
// as SIGKILL. Call it before plug-ins are loaded. -1: see errno.
int fault_isolate(void);

// Call it once per rank, after MPI_Init; ranks may be threads of one process.
void fault_begin(int rank, double timeout_s);

// Sets the current work of this rank, and begins its deadline. `what` is "strategy NAME" or the name of a
// phase, and must stay valid. NULL: no work that has a deadline.
void fault_work(const char *what);

// Sets the function that cancels a rank's work. A thread calls it shortly before the rank's deadline.
void fault_on_late(void (*cancel)(int rank));

// The current work of this rank; NULL: none.
const char *fault_current_work(void);

// Call it after the reason for the end of the process has been reported: no fault of the current work is
// reported then.
void fault_already_reported(void);

// Reports `what` and what happened, and ends the process.
_Noreturn void fault_exit(const char *what, const char *happened);

// An access to the memory between `begin` and `end` is reported as one beyond a buffer, until fault_unguard.
// At most 256 ranges at a time; further ones are ignored.
void fault_guard(const void *begin, const void *end);
void fault_unguard(const void *begin);

// Call it once per rank that has begun.
void fault_end(void);

#endif
