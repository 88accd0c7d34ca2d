// A stack of its own for each fiber of engine.cpp, and the switch from one stack to another. x86-64 has a
// switch of its own, because swapcontext makes two system calls each time.
#ifndef TESTS_CUDA_ENGINE_CONTEXT_H
#define TESTS_CUDA_ENGINE_CONTEXT_H

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)

struct Context {
    void *stack_pointer;
};

// Saves the registers that a callee must keep, changes the stack, and restores those saved there.
extern "C" void engine_switch_stack(void **from, void *to);
__asm__(".text\n"
        ".globl engine_switch_stack\n"
        "engine_switch_stack:\n"
        "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsp, (%rdi)\n"
        "  mov %rsi, %rsp\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
        "  ret\n");

static inline void switch_context(Context *from, Context *to) {
    engine_switch_stack(&from->stack_pointer, to->stack_pointer);
}

// Tops of stacks are at different places within their pages, so that they do not share one set of a cache.
static inline void **top_of(char *stack, size_t bytes) {
    constexpr size_t LINE_BYTES = 64, PAGE_LINES = 64, FRAME_LINES = 13;
    size_t number = reinterpret_cast<uintptr_t>(stack) / bytes;
    size_t line = number * FRAME_LINES % PAGE_LINES;
    return reinterpret_cast<void **>(stack + bytes - line * LINE_BYTES);
}

// The first switch to the context calls `entry`, which never returns.
static inline void start_context(Context *context, char *stack, size_t bytes, void (*entry)()) {
    void **top = top_of(stack, bytes);
    *--top = nullptr; // the return address of `entry`
    *--top = reinterpret_cast<void *>(entry);
    for (int saved = 0; saved < 6; saved++) *--top = nullptr;
    context->stack_pointer = top;
}

#else

#include <ucontext.h>

using Context = ucontext_t;

static inline void switch_context(Context *from, Context *to) {
    swapcontext(from, to);
}

static inline void start_context(Context *context, char *stack, size_t bytes, void (*entry)()) {
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = bytes;
    context->uc_link = nullptr;
    makecontext(context, entry, 0);
}

#endif
#endif
