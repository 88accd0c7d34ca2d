// The content of the header in this target.
#include "tensorrt_llm/common/customAllReduceUtils.h"

int kernelsStrategy(int tp, int hidden, int tokens) {
    return static_cast<int>(tensorrt_llm::utils::customAllReduceUtils::selectStrategyLookUpTable(
        static_cast<std::size_t>(tokens), static_cast<std::size_t>(hidden), AllReduceFusionOp::NONE, tp));
}
