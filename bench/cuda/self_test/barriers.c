// Stages of the clocks and of barriers. Rank 0's GPU has the events.
#include <stdio.h>

#include "cuda/device/device.h"
#include "elements/statistics.h"
#include "stages.h"

enum { DELAYS = 64, DELAY_STEP_NS = 500, BARRIERS = 10000, WARM_UP = 100 };

// The time of a delay by events. False: see group_failure.
static bool time_delay(struct device *device, uint64_t nanoseconds, double *us) {
    const struct cuda_driver *driver = device->driver;
    float ms = 0;
    bool timed = device_ok(device, driver->cuEventRecord(device->before, device->stream), "an event") &&
                 device_delay(device, nanoseconds) && device_finish(device) &&
                 device_ok(device, driver->cuEventElapsedTime(&ms, device->before, device->after), "a time");
    *us = (double)ms * 1000;
    return timed;
}

// The smallest difference of two times; 0: all are equal.
static double smallest_step(const double times_us[DELAYS]) {
    double step = 0;
    for (int i = 0; i < DELAYS; i++) {
        for (int j = 0; j < DELAYS; j++) {
            double apart = times_us[i] - times_us[j];
            if (apart > 1e-6 && (step <= 0 || apart < step)) step = apart;
        }
    }
    return step;
}

enum stage_end stage_timers(struct group *group, const struct stage *stage, struct findings *findings) {
    struct device *device = device_of(group);
    double times_us[DELAYS] = {0}, excess_us[DELAYS];
    (void)stage;
    if (group->rank != 0) return STAGE_OK;
    snprintf(findings->step, STEP_SIZE, "a delay, by the GPU's timer");
    for (int i = 0; i < DELAYS; i++) {
        uint64_t nanoseconds = (uint64_t)i * DELAY_STEP_NS;
        if (!time_delay(device, nanoseconds, &times_us[i])) return STAGE_FAILED;
        excess_us[i] = times_us[i] - (double)nanoseconds / 1000;
    }
    struct summary excess = summarise(excess_us, DELAYS);
    snprintf(findings->text, FINDING_SIZE,
             "times by events differ by %.3f us at least; delays take %.2f us (%.2f to %.2f us) longer than "
             "requested",
             smallest_step(times_us), excess.median, excess.min, excess.p99);
    return STAGE_OK;
}

enum stage_end stage_barriers(struct group *group, const struct stage *stage, struct findings *findings) {
    struct device *device = device_of(group);
    const struct cuda_driver *driver = device->driver;
    float ms = 0;
    (void)stage;
    if (!ranks_are_reached(group, findings)) return STAGE_FAILED;
    snprintf(findings->step, STEP_SIZE, "%d barriers of %d ranks", BARRIERS, group->size);
    bool right = group_barrier(group);
    if (right && device_enqueues(device)) {
        right = device_barrier(device, WARM_UP) &&
                device_ok(device, driver->cuEventRecord(device->before, device->stream), "an event") &&
                device_barrier(device, BARRIERS) && device_finish(device) &&
                device_ok(device, driver->cuEventElapsedTime(&ms, device->before, device->after), "a time");
    }
    if (!right || !group_barrier(group)) {
        note_flags(group, findings);
        return STAGE_FAILED;
    }
    if (group->rank == 0)
        snprintf(findings->text, FINDING_SIZE, "%d barriers of %d ranks (%s), %.2f us each", BARRIERS,
                 group->size, reach_names[device->reach], (double)ms * 1000 / BARRIERS);
    return STAGE_OK;
}
