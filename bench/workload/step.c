// Runs one step; see step.h.
#include "workload/step.h"

static void multiply(const struct blas *blas, const struct gemm *gemm) {
    int m = (int)gemm->m, n = (int)gemm->n, k = (int)gemm->k;
    blas->sgemm(BLAS_ROW_MAJOR, gemm->trans_a ? BLAS_TRANS : BLAS_NO_TRANS,
                gemm->trans_b ? BLAS_TRANS : BLAS_NO_TRANS, m, n, k, 1, gemm->a, gemm->trans_a ? m : k,
                gemm->b, gemm->trans_b ? k : n, gemm->accumulate ? 1 : 0, gemm->c, n);
}

static void act(const struct program *program, const struct blas *blas, struct crew *crew,
                enum step_mode mode, struct action action) {
    if (action.kind == DO_GEMM) {
        multiply(blas, &program->gemms[action.index]);
    } else if (mode != STEP_GEMMS && action.kind == DO_POST) {
        crew_post(crew, action.index);
        if (mode == STEP_SERIAL) crew_await(crew, action.index);
    } else if (mode != STEP_GEMMS) {
        crew_await(crew, action.index);
    }
}

static void act_and_note(const struct program *program, const struct blas *blas, struct crew *crew,
                         struct action action, struct note *note) {
    uint64_t cpu_ns = 0;
    note->begin_ns = clock_ns();
    if (action.kind == DO_GEMM) cpu_ns = thread_cpu_ns();
    note->launch_ns = clock_ns();
    note->work_ns = note->launched_ns = clock_ns();
    note->is_told = false;
    act(program, blas, crew, STEP_OVERLAPPED, action);
    note->work_end_ns = clock_ns();
    if (action.kind == DO_GEMM) note->cpu_ns = thread_cpu_ns() - cpu_ns;
    note->end_ns = clock_ns();
}

uint64_t step_run(const struct program *program, const struct blas *blas, struct crew *crew,
                  enum step_mode mode, struct step_notes *notes) {
    crew_rest(crew, mode == STEP_GEMMS);
    crew->spans = mode == STEP_TRACED ? notes->spans : NULL; // seen by all with the first hand-over
    uint64_t begin_ns = clock_ns();
    for (size_t i = 0; i < program->action_count; i++) {
        if (mode == STEP_TRACED)
            act_and_note(program, blas, crew, program->actions[i], &notes->notes[i]);
        else
            act(program, blas, crew, mode, program->actions[i]);
    }
    for (int i = 0; mode != STEP_GEMMS && i < (int)program->collective_count; i++) crew_await(crew, i);
    uint64_t end_ns = clock_ns();
    if (mode == STEP_TRACED) {
        notes->begin_ns = begin_ns;
        notes->end_ns = end_ns;
    }
    return end_ns - begin_ns;
}
