// Puts an addend into a result; see addend.h.
#include "addend.h"

#include <string.h>

#include "parallel_for.h"

enum { WORTH_A_THREAD = 1 << 20 }; // bytes

struct target {
    const struct operands *operands;
    size_t row_bytes;
    bool is_row; // the addend is one row, for all
};

static void fill_rows(void *context, size_t from, size_t to) {
    const struct target *at = context;
    size_t bytes = at->row_bytes;
    char *out = at->operands->out.data;
    const char *added = at->operands->c.data;
    if (!at->is_row) memcpy(out + from * bytes, added + from * bytes, (to - from) * bytes);
    for (size_t i = from; i < to && at->is_row; i++) memcpy(out + i * bytes, added, bytes);
}

void copy_addend(const struct gemm *gemm, const struct operands *operands, int threads) {
    size_t rows = (size_t)(gemm->batch * gemm->m);
    size_t row_bytes = (size_t)gemm->n * data_type_size(operands->out.type);
    struct target at = {operands, row_bytes, gemm->addend == ADD_ROW};
    parallel_for(rows * row_bytes < WORTH_A_THREAD ? 1 : threads, rows, fill_rows, &at);
}
