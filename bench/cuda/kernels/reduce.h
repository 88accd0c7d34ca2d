// Sums over ranks, in rank order, so that all ranks get the same bits.
#ifndef BENCH_CUDA_REDUCE_H
#define BENCH_CUDA_REDUCE_H

#include "arguments.h"
#include "types.h"

// A sum over ranks at one access, with its terms in rank order: in fp32 and rounded once at the end, or
// rounded to the type at every step (native).
template <class Type, Accumulate accumulate> struct Sum {
    float values[Type::per_access];

    DEVICE_MEMBER void begin(Word4 term) { unpack<Type>(term, values); }

    DEVICE_MEMBER void add(Word4 term) {
        float terms[Type::per_access];
        unpack<Type>(term, terms);
        for (int i = 0; i < Type::per_access; i++) values[i] += terms[i];
#ifdef FAULT_NATIVE_ACCUMULATION
        unpack<Type>(pack<Type>(values), values);
#else
        if constexpr (accumulate == Accumulate::native) unpack<Type>(pack<Type>(values), values);
#endif
    }

    DEVICE_MEMBER Word4 rounded() const {
        return pack<Type>(values);
    }
};

template <class Type, Accumulate accumulate, int count>
DEVICE_FUNCTION Word4 sum_of_terms(const Word4 *terms) {
    Sum<Type, accumulate> sum;
    sum.begin(terms[0]);
    for (int i = 1; i < count; i++) sum.add(terms[i]);
    return sum.rounded();
}

#endif
