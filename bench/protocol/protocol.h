// The lines that the generator and the bench exchange over standard input and output of rank 0. The contract:
//
// Every line is a word and fields `key=value`, one space between them; a field called reason or library comes
// last and takes the rest of the line. The bench begins with
//   hello protocol=2 bench=HASH world_size=2 cores=2 placement=dedicated isa=avx512 roundtrip_us=0.1234
//   compiler=gcc-12.2.0
//     library=Open MPI v4.1.4        (one line)
//   strategy name=MPI status=available
//   strategy name=MPI_SM status=unavailable reason=...
//   device rank=0 gpu=0 sm=90 ...        (where ranks have one: facts for the provenance, one line each)
//   ready
// It answers each request
//   measure id=1 op=allreduce dtype=bfloat16 fusion=NONE hidden_size=1024 num_tokens=4 mode=eager
//   min_samples=20
//     max_samples=200 budget_us=100000 precision=0.01 seed=7 strategies=MPI,ONESHOT        (one line)
// (or count=N in place of hidden_size and num_tokens; an alltoallv has splits=3:1, the weights of its
// destinations)
// by one line for each strategy, in any order, and an end:
//   row id=1 strategy=ONESHOT time_us=1.2 low_us=1.1 high_us=1.3 samples=50 min_us=1.0 p95_us=1.9 p99_us=2.5
//   skew_us=0.05
//     bound_us=0.2 floor_us=1.1 calls=32 bits=0123456789abcdef mode=eager accumulate=fp32 placement=dedicated
//     (one line)
//   none id=1 strategy=TWOSHOT reason=fewer tokens than ranks
//   done id=1 roundtrip_us=0.1234
// skew_us, floor_us and calls stand there where the backend tells them.
// budget_us is for the sampling of all strategies of a request together; it ends before that where every
// strategy is either clearly slower than the best, or its interval within `precision` of its median (0:
// never). `left_us`, where it stands there, is all that may pass from the request to its answer: what is not
// sampled by then is `none ... reason=budget spent`, and rows may have fewer samples than min_samples.
// `bits` is a hash of the results, which strategies with equal bits share (0: it differs among ranks
// or calls). `roundtrip_us` is taken anew after each request. A request that cannot be read gives `error
// reason=...` and exit code 1; so does a rank that died or hangs, where rank 0 can still say so. `quit`, or
// the end of the input, ends the bench with exit code 0.
#ifndef BENCH_PROTOCOL_H
#define BENCH_PROTOCOL_H

#include <stdio.h>

#include "measure/harness.h"

enum { PROTOCOL_VERSION = 2 };

// Where rank 0 writes these lines, and what people read by hand: standard output, or, once it is kept apart,
// a descriptor of its own, while what a library prints on standard output goes to standard error.
FILE *protocol_out(void);
int protocol_keep_apart(void); // before a library is loaded; -1: errno says why

// Who this bench is: hash of its sources, instruction set, compiler, MPI library; for --version and hello.
void protocol_write_identity(FILE *out);

// Every candidate, what it does, and its parameters (as `reason`); then a hash of the libraries of plug-ins.
void protocol_write_candidates(FILE *out);

// Before rank 0 meets the others under Open MPI's mpirun: whose and what job's the segments of its
// shared-memory transport will be, and where. A rank that is killed while it makes one leaves it behind.
void protocol_write_segments(FILE *out);

void protocol_write_hello(FILE *out, const struct harness *harness);
void protocol_write_results(FILE *out, const struct harness *harness, const struct request *request,
                            const struct result results[]);

// One line `row` without its end, for those who add fields.
void protocol_write_row(FILE *out, const struct harness *harness, const struct request *request,
                        const struct result *result);

enum line_kind { LINE_MEASURE, LINE_QUIT, LINE_WRONG };

// Reads one line (without its newline; it is changed) of a request. LINE_WRONG with `reason` where it is
// none.
enum line_kind protocol_read_request(char *line, struct request *request, char reason[], size_t reason_size);

// Index of a name in a list of `count`, or -1.
int find_name(const char *const names[], int count, const char *name);

// Marks the candidates of a comma-separated list as wanted. -1 and `reason` for an unknown name.
int want_strategies(struct request *request, const char *list, char reason[], size_t reason_size);

// Where none is wanted yet: marks those that are measured unless others are named, and do the request's op.
void want_usual(struct request *request);

#endif
