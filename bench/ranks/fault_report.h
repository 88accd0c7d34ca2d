// Who is at work, should it not come back: a candidate that crashes, ends the process or takes too long is
// told on stderr by its name, and the process ends; ranks that are others' processes are ended by mpirun.
#ifndef BENCH_FAULT_REPORT_H
#define BENCH_FAULT_REPORT_H

// Before libraries of others are loaded: those whom no handler sees ending are told, too, by a process beside
// this one (isolation_process.h). -1: that cannot be, see errno.
int fault_isolate(void);

// Once per rank, after MPI_Init; ranks may be threads of one process.
void fault_begin(int rank, double timeout_s);

// From here on this rank is at this work: "strategy NAME" or the name of a phase, a text that stays; NULL:
// nothing that has a deadline.
void fault_work(const char *what);

// What to do shortly before a rank's deadline, in a thread of its own: who waits for a word to end gets it.
void fault_on_late(void (*cancel)(int rank));

// What this rank is at; NULL: nothing.
const char *fault_current_work(void);

// Why the process will end has been told; who is at work is not to blame for that.
void fault_already_reported(void);

// Says what `what` did, and ends the process.
_Noreturn void fault_exit(const char *what, const char *happened);

// Memory between `begin` and `end` belongs to nobody, until it is told again by its beginning: who touches it
// touched what lies beyond a buffer. Of very many at once some are not known.
void fault_guard(const void *begin, const void *end);
void fault_unguard(const void *begin);

// Once per rank that has begun.
void fault_end(void);

#endif
