// A C program that looks up measured shapes, a shape between two measured ones, and an unmeasured one. Exits
// with 1 if a result is not that of tables/sm90.
#include <stdio.h>
#include <string.h>

#include "allreduce/allreduce_table.h" // with the table's name, for projects with several tables

static int wrong = 0;

static void expect(int tp_size, enum gentables_sm90_fusion fusion, int hidden_size, int num_tokens,
                   const char *strategy, int is_measured) {
    enum gentables_sm90_strategy selected = gentables_sm90_select(tp_size, fusion, hidden_size, num_tokens);
    const char *name = gentables_sm90_strategy_name(selected);
    if (strcmp(name, strategy) == 0 &&
        gentables_sm90_is_measured(tp_size, fusion, hidden_size, num_tokens) == is_measured) {
        return;
    }
    printf("TP %d, hidden size %d, %d tokens: %s; expected %s\n", tp_size, hidden_size, num_tokens, name,
           strategy);
    wrong = 1;
}

int main(void) {
    expect(2, GENTABLES_SM90_FUSION_NONE, 1024, 1, "ONESHOT", 1);
    expect(2, GENTABLES_SM90_FUSION_NONE, 1024, 16, "TWOSHOT", 1);
    expect(2, GENTABLES_SM90_FUSION_RESIDUAL_RMS_NORM, 1024, 16, "TWOSHOT", 1);
    expect(2, GENTABLES_SM90_FUSION_NONE, 2700, 2, "ONESHOT", 1);
    expect(8, GENTABLES_SM90_FUSION_NONE, 1024, 1, "NCCL_SYMMETRIC", 0);
    return wrong;
}
