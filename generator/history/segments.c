// Change points of a series; see segments.h.
#include "segments.h"

#include <math.h>
#include <string.h>

#include "estimate/student.h"

static const double CLIP = 4;           // standard deviations
static const double LEAST_T2 = 6;       // the square of Student's t below which nothing is significant
static const double MAD_TO_SD = 1.4826; // of a normal distribution
enum { NEIGHBOURS = 5, FEWEST_RUNS = 4 };

// ---- order statistics --------------------------------------------------------------------------

double segments_select(double *values, size_t count, size_t rank) {
    size_t low = 0, high = count - 1;
    while (low < high) {
        double pivot = values[low + (high - low) / 2];
        size_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot) i++;
            while (values[j] > pivot) j--;
            if (i > j) break;
            double swapped = values[i];
            values[i++] = values[j], values[j] = swapped;
            if (j == 0) break;
            j--;
        }
        if (rank <= j) {
            high = j;
        } else if (rank >= i) {
            low = i;
        } else {
            break;
        }
    }
    return values[rank];
}

double segments_median(double *values, size_t count) {
    return segments_select(values, count, (count - 1) / 2);
}

// ---- clipping ----------------------------------------------------------------------------------

static void clip(double *levels, size_t count, double *medians, double *distances) {
    for (size_t i = 0; i < count; i++) {
        double near[NEIGHBOURS];
        size_t first = i < NEIGHBOURS / 2 ? 0 : i - NEIGHBOURS / 2;
        if (first + NEIGHBOURS > count) first = count - NEIGHBOURS;
        memcpy(near, levels + first, sizeof near);
        medians[i] = segments_median(near, NEIGHBOURS);
        distances[i] = fabs(levels[i] - medians[i]);
    }
    double most = CLIP * MAD_TO_SD * segments_median(distances, count);
    for (size_t i = 0; i < count; i++) {
        levels[i] = fmin(fmax(levels[i], medians[i] - most), medians[i] + most);
    }
}

// ---- the search --------------------------------------------------------------------------------

struct search {
    const struct segments_options *options;
    const double *raw;            // the levels before clipping
    const double *sums, *squares; // of the levels before an index
    struct segments_change best;  // of a part
    double best_t2;
    size_t count;       // of levels in the part
    double differences; // the sum of squares of the differences of neighbours in the part
    size_t tests;       // in the part
};

static double square(double value) {
    return value * value;
}

// Half the mean square of the differences of neighbours in the part but for that at a change: the variance of
// levels without changes, and little more with a few. It has about 2/3 of their degrees of freedom (von
// Neumann, 1941).
static double noise_without(const struct search *search, size_t at) {
    double rest = search->differences - square(search->raw[at] - search->raw[at - 1]);
    return fmax(rest, 0) / (double)(2 * (search->count - 2));
}

// Tests all changes within [from, to), and keeps the best one if it is the best of the part.
static void test_interval(struct search *search, size_t from, size_t to) {
    size_t shortest = search->options->shortest, at = 0;
    double sum = search->sums[to] - search->sums[from], length = (double)(to - from), best = 0;
    for (size_t i = from + shortest; i + shortest <= to; i++) {
        double before = (double)(i - from), after = (double)(to - i),
               left = search->sums[i] - search->sums[from];
        double shift = (sum - left) / after - left / before;
        double between = shift * shift * before * after / length;
        if (between > best) best = between, at = i;
        search->tests++;
    }
    if (at == 0) return;
    double left = search->sums[at] - search->sums[from];
    double shift = (sum - left) / (double)(to - at) - left / (double)(at - from);
    double within = search->squares[to] - search->squares[from] - sum * sum / length - best;
    size_t freedom = to - from - 2;
    double variance = within / (double)freedom;
    double noise = noise_without(search, at);
    if (noise >= variance) {
        variance = noise;
        if (freedom < 2 * search->count / 3) freedom = 2 * search->count / 3;
    }
    double t2 = variance > 0 ? best / variance : INFINITY;
    if (fabs(shift) < search->options->threshold || t2 < LEAST_T2) return;
    double p = 2 * fmax(0, student_upper_tail(sqrt(t2), freedom));
    if (p > search->best.p || (p == search->best.p && t2 <= search->best_t2)) return;
    search->best.at = at, search->best.p = p, search->best_t2 = t2;
}

// The best change of a part, with its probability of all tests; p is 1 if there is none.
static struct segments_change best_of_part(struct search *search, size_t from, size_t to) {
    search->best = (struct segments_change){.from = from, .to = to, .p = 1};
    search->best_t2 = 0, search->tests = 0, search->count = to - from, search->differences = 0;
    for (size_t i = from + 1; i < to; i++) search->differences += square(search->raw[i] - search->raw[i - 1]);
    double count = (double)(to - from), shortest = (double)(2 * search->options->shortest);
    shortest = fmax(shortest, FEWEST_RUNS);
    for (int layer = 0; count * pow(0.5, layer / 2.0) >= shortest; layer++) {
        size_t length = (size_t)ceil(count * pow(0.5, layer / 2.0));
        size_t intervals = layer == 0 ? 1 : 2 * (size_t)ceil(pow(2, layer / 2.0)) - 1;
        for (size_t i = 0; i < intervals; i++) {
            double share = intervals == 1 ? 0 : (double)i / (double)(intervals - 1);
            size_t first = from + (size_t)(share * (count - (double)length) + 0.5);
            test_interval(search, first, first + length);
        }
    }
    search->best.p = search->best_t2 > 0 ? search->best.p * (double)search->tests : 1;
    return search->best;
}

size_t segments_find(double *levels, size_t count, const struct segments_options *options, double *work,
                     struct segments_change *changes) {
    if (count < FEWEST_RUNS) return 0;
    double *sums = work, *squares = work + count + 1, *raw = squares + count + 1;
    memcpy(raw, levels, count * sizeof *raw);
    if (options->clips && count >= NEIGHBOURS) clip(levels, count, work, work + count);
    double middle = levels[count / 2]; // taken off for the sake of precision
    sums[0] = squares[0] = 0;
    for (size_t i = 0; i < count; i++) {
        double level = levels[i] - middle;
        sums[i + 1] = sums[i] + level, squares[i + 1] = squares[i] + level * level;
    }
    struct search search = {.options = options, .raw = raw, .sums = sums, .squares = squares};
    size_t found = 0;
    struct segments_change whole = best_of_part(&search, 0, count);
    if (whole.p < options->p) changes[found++] = whole;
    for (size_t searched = 0; searched < found; searched++) {
        const struct segments_change parent = changes[searched];
        for (int side = 0; side < 2 && found < SEGMENTS_MAX; side++) {
            struct segments_change child = side == 0 ? best_of_part(&search, parent.from, parent.at)
                                                     : best_of_part(&search, parent.at, parent.to);
            child.parent = searched + 1;
            if (child.p < options->p) changes[found++] = child;
        }
    }
    return found;
}
