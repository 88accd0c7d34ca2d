// Calls the lookups of TensorRT-LLM's header. Standard input has lines `sm tp fusion hidden tokens` with the
// fusion's number; for each it prints the numbers of the strategies: by the table, by SelectStrategyLP, by
// tokens, and by bytes, with two bytes an element. With an argument it prints the workspace instead.
#include "tensorrt_llm/common/customAllReduceUtils.h"

#include <iostream>

namespace utils = tensorrt_llm::utils::customAllReduceUtils;

static_assert(utils::NUM_POINTERS_PER_RANK == 7, "a constant of TensorRT-LLM's");

// The constants agree with the tables.
static bool constants_are_true() {
    int tp = 0, hidden = 0, tokens = 0;
    for (auto const &entry : utils::AllReduceTableAxesOf) {
        tp = std::max(tp, static_cast<int>(entry.second.size()));
        for (auto const &axes : entry.second) {
            hidden = std::max(hidden, static_cast<int>(axes.hiddenSizes.size()));
            tokens = std::max(tokens, static_cast<int>(axes.numTokens.size()));
        }
    }
    for (auto const &entry : utils::AllReduceBestStrategyTable) {
        for (auto const &fusions : entry.second) {
            if (static_cast<int>(fusions.size()) != utils::kFusionOpChoice) return false;
        }
    }
    return tp == utils::kTpSizeChoice && hidden == utils::kHiddenSizeChoice &&
           tokens == utils::kNumTokensChoice;
}

// Prints the workspace of two and of eight ranks.
static int print_workspaces() {
    for (int ranks : {2, 8}) std::cout << utils::getMaxRequiredWorkspaceSize(ranks) << '\n';
    return 0;
}

int main(int count, char **) {
    if (!constants_are_true()) {
        std::cout << "a constant is not true\n";
        return 1;
    }
    if (count > 1) return print_workspaces();
    int sm, tp, fusion;
    std::size_t hidden, tokens;
    while (std::cin >> sm >> tp >> fusion >> hidden >> tokens) {
        tensorrt_llm::common::smVersion() = sm;
        auto const op = static_cast<AllReduceFusionOp>(fusion);
        std::cout << static_cast<int>(utils::selectStrategyLookUpTable(tokens, hidden, op, tp)) << ' '
                  << static_cast<int>(utils::SelectStrategyLP(tokens, hidden, tp, op)) << ' '
                  << static_cast<int>(utils::selectStrategyByTokens(tokens, hidden, op, tp)) << ' '
                  << static_cast<int>(utils::selectStrategyByBytes(2 * tokens * hidden, op, tp)) << '\n';
    }
    return 0;
}
