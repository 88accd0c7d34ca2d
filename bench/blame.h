// Who is at work, should it not come back: a candidate that crashes, ends the process or takes too long is
// told on stderr by its name, and the rank ends; mpirun then ends the others.
#ifndef BENCH_BLAME_H
#define BENCH_BLAME_H

// Once per process, after MPI_Init.
void blame_begin(int rank, double timeout_s);

// From here on this is at work: "strategy NAME" or the name of a phase, a text that stays; NULL: nothing that
// has a deadline.
void blame_work(const char *what);

// Memory between `begin` and `end` belongs to nobody: who touches it touched what lies beyond a buffer.
enum { BLAME_GUARDS = 4 };
void blame_guard(int place, const void *begin, const void *end);

void blame_end(void);

#endif
