// The cases of kernels.cpp: a kernel of one strategy, type, fusion and TP size each.
#ifndef TESTS_CUDA_KERNEL_CASES_H
#define TESTS_CUDA_KERNEL_CASES_H

#include "cuda/kernels/arguments.h"

#include <functional>
#include <vector>

// Whether kernels have programmatic launches, clusters and multicast.
#ifdef BEFORE_SM90
constexpr bool OF_SM90 = false;
#else
constexpr bool OF_SM90 = true;
#endif

struct Case {
    const char *strategy;
    const char *accumulate;
    int dtype; // of lists.h
    int tp;
    int fusion;                                  // of lists.h
    std::function<void(const Arguments &)> body; // one thread's work
};

// Adds all cases of the TP size CASES_TP, a definition of the compiler.
void add_cases(std::vector<Case> &cases);

#endif
