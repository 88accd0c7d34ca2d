// Stands in for TensorRT-LLM's header: the parts that the generated header uses.
#pragma once

namespace tensorrt_llm::common {
inline int &smVersion() {
    static int version = 90;
    return version;
}
inline int getSMVersion() {
    return smVersion();
}
} // namespace tensorrt_llm::common
