// Stands in for a newer TensorRT-LLM's header: its namespace has a version, and macros open it.
#pragma once
#define TRTLLM_NAMESPACE_BEGIN                                                                               \
    namespace tensorrt_llm {                                                                                 \
    inline namespace _v1 {
#define TRTLLM_NAMESPACE_END                                                                                 \
    }                                                                                                        \
    }
