// Stands in for TensorRT-LLM's header: the parts that the generated header uses.
#pragma once
#include <cstddef>

namespace tensorrt_llm::common {
inline bool getEnvForceDeterministicAllReduce() {
    return false;
}
inline std::size_t getEnvAllReduceWorkspaceSize() {
    return 1000;
}
} // namespace tensorrt_llm::common
