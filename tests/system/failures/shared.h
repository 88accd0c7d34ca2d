// What fail_at and the library that it preloads share: a page of memory, and names of environment variables.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { MOST_SITES = 1 << 22 };

struct shared {
    atomic_uint_fast64_t calls;  // of the class so far
    uint64_t fail_from, fail_to; // numbers of the calls that fail, from 1
    bool lists_sites;
    uint64_t sites[MOST_SITES]; // of each call of an allocator: a hash of the functions that led to it
};

#define SHARED_VARIABLE "FAIL_AT_SHARED" // descriptor of the page
#define SOCKET_VARIABLE "FAIL_AT_SOCKET" // descriptor of the socket to which the listener is sent
#define CLASS_VARIABLE  "FAIL_AT_CLASS"
