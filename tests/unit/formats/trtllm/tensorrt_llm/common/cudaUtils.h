// Stands in for TensorRT-LLM's header: what the generated header asks of it.
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
