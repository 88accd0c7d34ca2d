// The content of the header in this target.
#include "tensorrt_llm/common/customAllReduceUtils.h"

int runtimeTables() {
    return static_cast<int>(tensorrt_llm::utils::customAllReduceUtils::AllReduceBestStrategyTable.size());
}
