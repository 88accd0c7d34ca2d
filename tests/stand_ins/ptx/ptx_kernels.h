// The kernels of a translated PTX file (translate.lua), and the functions that they need of the program.
#ifndef TESTS_PTX_KERNELS_H
#define TESTS_PTX_KERNELS_H

#include <cstdint>

struct PtxKernel {
    const char *name;
    unsigned parameter_bytes;
    void (*run)(const void *parameters); // by one thread
};
extern const PtxKernel ptx_kernels[]; // after the last one: a name that is NULL

// Ends the program unless a kernel may access these bytes of global memory.
void ptx_check_range(uint64_t at, unsigned bytes);

// Called by a poll once all threads wait: lets kernels leave their waits.
void ptx_give_up();

// What an access orders, and by which name of its memory it comes (layer.h, order_multicast).
enum class Order { plain, relaxed, acquire, release };
enum class Name { own, multicast };

#endif
