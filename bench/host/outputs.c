// Poison in outputs; see outputs.h.
#include "outputs.h"

#include <stdio.h>
#include <string.h>

#include "calls/backend.h"
#include "ranks/fault_report.h"

enum { FULLY_POISONED = 64 << 10 }; // bytes; larger outputs are poisoned in part

// Poison is all ones, of which no right result consists. Small outputs are poisoned as a whole, large ones in
// the first cache line of each page and in their last cache line, which is enough to detect writes.
typedef bool range_function(unsigned char *at, size_t bytes);

static bool poison(unsigned char *at, size_t bytes) {
    memset(at, 0xff, bytes);
    return true;
}

bool is_poisoned(unsigned char *at, size_t bytes) {
    return bytes == 0 || (*at == 0xff && memcmp(at, at + 1, bytes - 1) == 0);
}

static bool of_output(unsigned char *out, size_t bytes, range_function *each) {
    if (bytes <= FULLY_POISONED) return each(out, bytes);
    for (size_t at = 0; at < bytes; at += PAGE_BYTES) {
        if (!each(out + at, bytes - at < CACHE_LINE ? bytes - at : CACHE_LINE)) return false;
    }
    return each(out + bytes - CACHE_LINE, CACHE_LINE);
}

_Noreturn void exit_for_late_write(int candidate) {
    char what[80];
    snprintf(what, sizeof what, "strategy %s", backend->candidates[candidate].name);
    fault_exit(what, "writes after it has returned");
}

void output_check(const struct output *output) {
    if (!of_output(output->data, output->poisoned_bytes, is_poisoned)) exit_for_late_write(output->candidate);
}

struct output *outputs_next(struct outputs *outputs) {
    struct output *output = &outputs->of[outputs->calls++ % OUTPUTS];
    output_check(output);
    output->poisoned_bytes = 0;
    return output;
}

void output_poison(struct output *output, size_t bytes) {
    of_output(output->data, bytes, poison);
}

void output_poison_returned(struct output *output, size_t bytes) {
    output_poison(output, bytes);
    output->poisoned_bytes = bytes;
}
