// planted_trace FILE: writes a trace of made-up notes, which a real clock could give, with special cases (a
// wait of length 0, times with odd nanoseconds, collectives that overlap on two threads, a step that waits at
// its end), and prints the events that it must have: `kernel NAME START_NS DURATION_NS CPU_NS`, `op NAME
// START_NS DURATION_NS`, and `wait BUCKET START_NS DURATION_NS`.
#include <stdio.h>
#include <string.h>

#include "workload/trace.h"

static const char *const lines[] = {
    "begin name=planted gemms=3 collectives=2 actions=6 seed=1",
    "collective name=there kind=all_to_all matrix=6,12,6,12",
    "collective name=bucket kind=allreduce dtype=bfloat16 elements=30",
    "gemm name=first m=2,4 n=5 k=6 layout=NT phase=forward sequence=0 a=0@0",
    "gemm name=first m=5 n=6 k=2,4 layout=TN phase=backward sequence=0 dtype=bfloat16 into=1@0",
    "gemm name=first m=5 n=6 k=2,4 layout=TN phase=backward sequence=0 dtype=bfloat16 into=1@0 accumulate=1",
    "do post=0",
    "do await=0",
    "do gemm=0",
    "do gemm=1",
    "do gemm=2",
    "do post=1",
    "end",
};

enum { STEPS = 3, ACTIONS = 6, COLLECTIVES = 2 };

static const uint64_t base_ns = 987654321;
static struct note notes[STEPS][ACTIONS];
static struct span spans[STEPS][COLLECTIVES][MAX_THREADS];
static struct final_wait final_waits[STEPS][COLLECTIVES];
static struct step_notes steps[STEPS];

// Notes of one step that begins `at`; `odd` makes the nanoseconds differ.
static void plant_step(size_t step, uint64_t at, uint64_t odd) {
    for (size_t i = 0; i < ACTIONS; i++) {
        uint64_t begin = at + 100003 * i, work = begin + 41 + odd;
        notes[step][i] = (struct note){.begin_ns = begin,
                                       .launch_ns = begin + 20,
                                       .launched_ns = work,
                                       .work_ns = work,
                                       .work_end_ns = work + 7001 * i + odd,
                                       .cpu_ns = 999 * i};
        notes[step][i].end_ns = notes[step][i].work_end_ns + 17;
    }
    spans[step][0][0] = (struct span){at + 1001, at + 90007 + odd, 4001};
    spans[step][0][1] = (struct span){at + 2003, at + 650011, 4003};
    spans[step][1][0] = (struct span){at + 600001, at + 660001, 5}; // begins before thread 1 ends
    spans[step][1][1] = (struct span){at + 650013, at + 670003, 7};
    steps[step] = (struct step_notes){
        .begin_ns = at, .end_ns = at + 700001, .notes = notes[step], .spans = &spans[step][0][0]};
    if (step == 0) return; // has nothing to wait for at its end
    final_waits[step][0] = (struct final_wait){at + 660123 + odd, at + 670011, 0};
    final_waits[step][1] = (struct final_wait){at + 670123 + odd, at + 699987, 1};
    steps[step].final_waits = final_waits[step];
    steps[step].final_wait_count = 2;
}

static void print_event(const char *kind, const char *name, uint64_t begin, uint64_t end) {
    printf("%s %s %llu %llu", kind, name, (unsigned long long)(begin - base_ns),
           (unsigned long long)(end - begin));
}

static void print_step(size_t step) {
    static const char *const kernels[] = {"openblas_Core_sgemm_NT", "openblas_Core_sgemm_of_bf16_TN",
                                          "openblas_Core_sgemm_of_bf16_TN"};
    static const char *const ops[] = {"aten::mm", "aten::mm", "aten::addmm"};
    const struct span *first = spans[step][0], *second = spans[step][1];
    for (size_t i = 0; i < 3; i++) {
        const struct note *note = &notes[step][i + 2];
        print_event("op", ops[i], note->begin_ns, note->end_ns);
        printf("\n");
        print_event("kernel", kernels[i], note->work_ns, note->work_end_ns);
        printf(" %llu\n", (unsigned long long)note->cpu_ns);
    }
    print_event("op", "record_param_comms", notes[step][0].begin_ns, notes[step][0].end_ns);
    printf("\n");
    print_event("kernel", "ncclGentables_ALL_TO_ALL_f32", first[0].begin_ns, first[1].end_ns);
    printf(" 8004\n");
    print_event("op", "record_param_comms", notes[step][5].begin_ns, notes[step][5].end_ns);
    printf("\n");
    print_event("kernel", "ncclGentables_TWOSHOT_bf16", first[1].end_ns, second[1].end_ns);
    printf(" 12\n");
    print_event("wait", "there", notes[step][1].begin_ns, notes[step][1].end_ns);
    printf("\n");
    if (steps[step].final_wait_count == 0) return;
    print_event("wait", "there", final_waits[step][0].begin_ns, final_waits[step][0].end_ns);
    printf("\n");
    print_event("wait", "bucket", final_waits[step][1].begin_ns, final_waits[step][1].end_ns);
    printf("\n");
}

int main(int argc, char **argv) {
    struct program program = {.rank = 1, .ranks = 2};
    const struct engine_description description = {
        .backend = "host",
        .clock = "host_thread",
        .transport_kernel = "TWOSHOT",
        .device = "host core",
        .library = "OpenBLAS 0.0 on Core",
        .gemm_kernels =
            {[DTYPE_FLOAT32] = "openblas_Core_sgemm", [DTYPE_BFLOAT16] = "openblas_Core_sgemm_of_bf16"},
        .computed_in = {DTYPE_FLOAT32, DTYPE_FLOAT32, DTYPE_FLOAT32},
        .channels = 2,
        .threads = 2,
        .multiprocessors = 1,
        .streams = 2,
        .tids = {4323, 4324}};
    char reason[PROGRAM_REASON];
    if (argc != 2) return 2;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (program_read(&program, lines[i], reason) < 0) return 1;
    }
    for (size_t step = 0; step < STEPS; step++) {
        plant_step(step, base_ns + 1 + step * 12345678901u, step * 3);
        print_step(step);
    }
    struct trace trace = {.program = &program,
                          .description = &description,
                          .wait = "futex",
                          .pid = 4321,
                          .tid = 4322,
                          .oversubscribed = true,
                          .base_ns = base_ns,
                          .base_unix_ns = 1767189312000000007,
                          .steps = steps,
                          .step_count = STEPS};
    int problem = trace_write(&trace, argv[1]);
    if (problem != 0) fprintf(stderr, "%s: %s\n", argv[1], strerror(problem));
    program_free(&program);
    return problem != 0;
}
