// The text of --help of gentables-bench and gentables-bench-cuda.
#ifndef BENCH_HELP_H
#define BENCH_HELP_H

void print_help(void);

#endif
