// Reports the current stack to the sanitizer of the program: ThreadSanitizer, for which a fiber is a thread,
// or AddressSanitizer. Without these, the functions do nothing.
#ifndef TESTS_CUDA_ENGINE_SANITIZERS_H
#define TESTS_CUDA_ENGINE_SANITIZERS_H

#include <cstddef>

extern "C" {
__attribute__((weak)) void *__tsan_get_current_fiber(void);
__attribute__((weak)) void *__tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void *fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void *fiber, unsigned flags);
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);
__attribute__((weak)) void __sanitizer_start_switch_fiber(void **kept, const void *stack, size_t bytes);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void *kept, const void **stack, size_t *bytes);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void *memory, size_t bytes);
}

// The data of sanitizers about a fiber.
struct SanitizedFiber {
    void *thread;      // of ThreadSanitizer
    const void *stack; // that of the first fiber is unknown before the first switch from it
    size_t bytes;
    void *kept; // of AddressSanitizer
};

static inline void release(void *address) {
    if (__tsan_release != nullptr) __tsan_release(address);
}
static inline void acquire(void *address) {
    if (__tsan_acquire != nullptr) __tsan_acquire(address);
}

static inline void take_current(SanitizedFiber *fiber) {
    if (__tsan_get_current_fiber != nullptr) fiber->thread = __tsan_get_current_fiber();
}

// Returns whether the fiber needs its stack at once: ThreadSanitizer treats mmap as a write of the fiber that
// calls it, so only the first fiber may make stacks.
static inline bool create(SanitizedFiber *fiber) {
    *fiber = {};
    if (__tsan_create_fiber == nullptr) return false;
    fiber->thread = __tsan_create_fiber(0);
    return true;
}

static inline void set_bounds(SanitizedFiber *fiber, const void *stack, size_t bytes) {
    fiber->stack = stack;
    fiber->bytes = bytes;
}

// Makes the stack of an abandoned fiber usable again: its frames never returned, so their red zones remain.
static inline void forget_frames(const SanitizedFiber &fiber) {
    if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(fiber.stack, fiber.bytes);
}

// Returns whether the next fiber needs another stack.
static inline bool destroy(const SanitizedFiber &fiber) {
    if (__tsan_destroy_fiber == nullptr) return false;
    __tsan_destroy_fiber(fiber.thread);
    return true;
}

// Call before a switch. The switch orders no accesses.
static inline void leave(SanitizedFiber *from, const SanitizedFiber &to, bool for_good) {
    constexpr unsigned NO_SYNC = 1;
    if (__tsan_switch_to_fiber != nullptr) __tsan_switch_to_fiber(to.thread, NO_SYNC);
    if (__sanitizer_start_switch_fiber == nullptr) return;
    __sanitizer_start_switch_fiber(for_good ? nullptr : &from->kept, to.stack, to.bytes);
}

// Call after a switch, on the other stack.
static inline void arrive(const SanitizedFiber &here, SanitizedFiber *from) {
    if (__sanitizer_finish_switch_fiber == nullptr) return;
    __sanitizer_finish_switch_fiber(here.kept, &from->stack, &from->bytes);
}

#endif
