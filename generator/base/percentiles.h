// Order statistics of at least one number, for C++. They reorder the numbers.
#ifndef GENTABLES_PERCENTILES_H
#define GENTABLES_PERCENTILES_H

#include <algorithm>
#include <cstddef>
#include <vector>

// The number at `index` in ascending order, and the next one; for the last number it is both.
struct neighbours {
    double low, high;

    neighbours(std::vector<double> &numbers, size_t index) {
        auto at = numbers.begin() + ptrdiff_t(index);
        std::nth_element(numbers.begin(), at, numbers.end());
        low = *at;
        high = at + 1 == numbers.end() ? low : *std::min_element(at + 1, numbers.end());
    }
};

// The median; of an even count the mean of the two numbers in the middle.
inline double median_of(std::vector<double> &numbers) {
    neighbours middle(numbers, (numbers.size() - 1) / 2);
    return numbers.size() % 2 == 1 ? middle.low : (middle.low + middle.high) / 2;
}

// The number below which a share (0 to 1) of the numbers lies; interpolated linearly between the two nearest.
inline double percentile_of(std::vector<double> &numbers, double share) {
    double position = share * double(numbers.size() - 1);
    neighbours nearest(numbers, size_t(position));
    return nearest.low + (nearest.high - nearest.low) * (position - double(size_t(position)));
}

#endif
