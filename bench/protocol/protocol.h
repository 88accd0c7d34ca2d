// The lines that the generator and the bench exchange over standard input and output of rank 0.
//
// Every line is a word and fields `key=value`, with one space between them. A field `reason` or `library`
// comes last and takes the rest of the line. Below, indented lines continue the line above. The bench begins
// with these lines (under Open MPI after a line of protocol_write_segments):
//   hello world_size=2 nodes=1 ranks_per_node=2 cores=2 placement=dedicated roundtrip_us=0.1234 protocol=3
//     bench=HASH isa=avx512 compiler=gcc-12.2.0 library=Open MPI v4.1.4
//   strategy name=MPI status=available
//   strategy name=MPI_SM status=unavailable reason=...
//   device rank=0 gpu=0 sm=90 ...                     (one per rank with a device: facts for the provenance)
//   ready
// It answers each request
//   measure id=1 op=allreduce dtype=bfloat16 fusion=NONE hidden_size=1024 num_tokens=4 mode=eager
//     min_samples=20 max_samples=200 budget_us=100000 precision=0.01 seed=7 strategies=MPI,ONESHOT
// (or count=N in place of hidden_size and num_tokens; an alltoallv has splits=3:1, the weights of its
// destinations) with a line for each strategy, in any order, and an end:
//   row id=1 strategy=ONESHOT time_us=1.2 low_us=1.1 high_us=1.3 samples=50 min_us=1.0 p95_us=1.9 p99_us=2.5
//     skew_us=0.05 bound_us=0.2 floor_us=1.1 calls=32 bits=0123456789abcdef mode=eager accumulate=fp32
//     placement=dedicated
//   none id=1 strategy=TWOSHOT reason=fewer tokens than ranks
//   done id=1 roundtrip_us=0.1234
//
// `cores` are those of the node with the fewest. A row has skew_us, floor_us and calls if the backend has
// them; ranks on several nodes have no skew_us. budget_us is the time for sampling all strategies of a
// request; sampling ends earlier if every strategy is either clearly slower than the best, or its interval is
// within `precision` of its median (0: never). `left_us`, if present, is the time limit of the whole request:
// a strategy without samples by then is `none ... reason=budget spent`, and rows may have fewer samples than
// min_samples. `bits` is a hash of the results, the same for strategies with equal bits (0: it differs
// between ranks or calls). roundtrip_us is measured again after each request, unless ranks share cores.
//
// A request that cannot be read is answered with `error reason=...` and exit code 1; so is a rank that died
// or hangs, if rank 0 can still answer, with `strategy=NAME` before the reason if a candidate was at work.
// `quit`, or the end of the input, ends the bench with exit code 0, on GPUs after further lines `device` with
// the state at the end.
#ifndef BENCH_PROTOCOL_H
#define BENCH_PROTOCOL_H

#include <stdio.h>

#include "measure/harness.h"

enum { PROTOCOL_VERSION = 3 };

// The stream of these lines and of the printed table: standard output. After protocol_keep_apart, which must
// be called before a library is loaded, it is a descriptor of its own, and standard output of libraries goes
// to standard error. -1: see errno.
FILE *protocol_out(void);
int protocol_keep_apart(void);

// The identity of this bench: hash of its sources, instruction set, compiler, libraries; for --version and
// hello.
void protocol_write_identity(FILE *out);

// Every candidate with its ops and parameters (as `reason`); then a hash of the libraries of plug-ins.
void protocol_write_candidates(FILE *out);

// Under Open MPI's mpirun, before MPI_Init: the user, job and folder of the segments of its shared-memory
// transport, so that the generator can remove a segment of a rank that was killed while it made it. Also with
// the bench's options --trial, --brief-trial and --pass.
void protocol_write_segments(FILE *out);

// The lines from `hello` to `ready`.
void protocol_write_hello(FILE *out, const struct harness *harness);

// All lines of the answer to a request, the last of them `done`.
void protocol_write_results(FILE *out, const struct harness *harness, const struct request *request,
                            const struct result results[]);

// One line `row` without its newline, so that callers can add fields.
void protocol_write_row(FILE *out, const struct harness *harness, const struct request *request,
                        const struct result *result);

enum line_kind { LINE_MEASURE, LINE_QUIT, LINE_WRONG };

// Reads one request line, for ranks on `nodes` nodes, without its newline, and changes it. LINE_WRONG:
// `reason`.
enum line_kind protocol_read_request(char *line, int nodes, struct request *request, char reason[],
                                     size_t reason_size);

// Index of a name in a list of `count`, or -1.
int find_name(const char *const names[], int count, const char *name);

// Marks the candidates of a comma-separated list as wanted. -1 with `reason` for an unknown name.
int want_strategies(struct request *request, const char *list, char reason[], size_t reason_size);

// If no candidate is wanted yet, marks all that are not optional, run on so many nodes and do the request's
// op.
void want_usual(struct request *request, int nodes);

#endif
