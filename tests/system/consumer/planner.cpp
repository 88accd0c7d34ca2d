// A C++ program that uses the table: planner TP_SIZE HIDDEN_SIZE NUM_TOKENS prints the strategy.
#include <cstdio>
#include <cstdlib>

#include "allreduce_table.h"

int main(int argc, char **argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: planner TP_SIZE HIDDEN_SIZE NUM_TOKENS\n");
        return 2;
    }
    const auto strategy = gentables_sm90_select(std::atoi(argv[1]), GENTABLES_SM90_FUSION_NONE,
                                                std::atoi(argv[2]), std::atoi(argv[3]));
    std::puts(gentables_sm90_strategy_name(strategy));
    return 0;
}
