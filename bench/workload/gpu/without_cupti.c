// Replaces gpu_activity.c in a build without CUPTI's headers.
#include <stdio.h>

#include "gpu_activity.h"

bool gpu_activity_open(char reason[], size_t reason_size) {
    snprintf(reason, reason_size, "built without CUPTI");
    return false;
}

void gpu_activity_close(void) {}

bool gpu_activity_begin(void) {
    return false;
}

void gpu_activity_enter(uint32_t id) {
    (void)id;
}

void gpu_activity_leave(void) {}

void gpu_activity_launched(void) {}

bool gpu_activity_end(const struct gpu_activity_needs *needs, char reason[], size_t reason_size) {
    (void)needs;
    snprintf(reason, reason_size, "was not found at build time");
    return false;
}

void gpu_activity_each(void (*take)(void *context, const struct gpu_activity *activity), void *context) {
    (void)take;
    (void)context;
}
