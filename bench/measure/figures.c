// A function for each measured column of benchmark files; see figures.h.
#include "figures.h"

#include <math.h>

static double figure_time_us(const struct measurement *measured) {
    return measured->time_us.median;
}

static double figure_low_us(const struct measurement *measured) {
    return measured->time_us.low;
}

static double figure_high_us(const struct measurement *measured) {
    return measured->time_us.high;
}

static double figure_samples(const struct measurement *measured) {
    return (double)measured->time_us.samples;
}

static double figure_min_us(const struct measurement *measured) {
    return measured->time_us.min;
}

static double figure_p95_us(const struct measurement *measured) {
    return measured->time_us.p95;
}

static double figure_p99_us(const struct measurement *measured) {
    return measured->time_us.p99;
}

static double figure_skew_us(const struct measurement *measured) {
    return measured->skews_us != NULL ? median(measured->skews_us, measured->time_us.samples) : NAN;
}

static double figure_bound_us(const struct measurement *measured) {
    return measured->bound_us;
}

static double figure_floor_us(const struct measurement *measured) {
    return measured->floor_us > 0 ? measured->floor_us : NAN;
}

static double figure_calls(const struct measurement *measured) {
    return measured->floor_us > 0 ? (double)measured->calls : NAN;
}

// ---- the list ---------------------------------------------------------------------------------------

#define FIGURE(key, format) {" " #key "=" format, figure_##key},
static const struct {
    const char *format;
    double (*value)(const struct measurement *measured);
} list[FIGURES] = {FIGURE_LIST(FIGURE)};

void figures_of(const struct measurement *measurement, double figures[FIGURES]) {
    for (int i = 0; i < FIGURES; i++) figures[i] = list[i].value(measurement);
}

void figures_write(FILE *out, const double figures[FIGURES]) {
    for (int i = 0; i < FIGURES; i++) {
        if (!isnan(figures[i])) fprintf(out, list[i].format, figures[i]);
    }
}
