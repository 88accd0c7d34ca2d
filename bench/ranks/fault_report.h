// Who is at work, should it not come back: a candidate that crashes, ends the process or takes too long is
// told on stderr by its name, and the process ends; ranks that are others' processes are ended by mpirun.
#ifndef BENCH_BLAME_H
#define BENCH_BLAME_H

// Before libraries of others are loaded: those whom no handler sees ending are told, too, by a process beside
// this one (isolation_process.h). -1: that cannot be, see errno.
int blame_begin_apart(void);

// Once per rank, after MPI_Init; ranks may be threads of one process.
void blame_begin(int rank, double timeout_s);

// From here on this rank is at this work: "strategy NAME" or the name of a phase, a text that stays; NULL:
// nothing that has a deadline.
void blame_work(const char *what);

// What to do shortly before a rank's deadline, in a thread of its own: who waits for a word to end gets it.
void blame_on_late(void (*cancel)(int rank));

// What this rank is at; NULL: nothing.
const char *blame_at_work(void);

// Why the process will end has been told; who is at work is not to blame for that.
void blame_nobody(void);

// Says what `what` did, and ends the process.
_Noreturn void blame_now(const char *what, const char *happened);

// Memory between `begin` and `end` belongs to nobody, until it is told again by its beginning: who touches it
// touched what lies beyond a buffer. Of very many at once some are not known.
void blame_guard(const void *begin, const void *end);
void blame_unguard(const void *begin);

// Once per rank that has begun.
void blame_end(void);

#endif
