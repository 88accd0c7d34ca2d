// Translated PTX in the stand-in for libcuda.so.1 (driver.cpp), in place of kernels compiled from C++.
#include "ptx_kernels.h"

#include <cstdio>
#include <cstdlib>

// Kernels share the memory of the program with the host, which the driver protects: an access to an address
// that is not mapped ends the program.
void ptx_check_range(uint64_t, unsigned) {}

void ptx_give_up() {
    std::fprintf(stderr, "stand-in: kernels of PTX wait for ever\n");
    std::abort();
}
