// One gate log of a mixture-of-experts model, as serving frameworks write it per layer: a JSON object
// {"step": [...], "num_tokens": [...], "expert_loads": [[load of each expert], ...]}, one entry per step.
#ifndef GENTABLES_GATE_LOG_H
#define GENTABLES_GATE_LOG_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// Sums numbers and keeps the rounding errors apart: value() is off by at most one unit of the last digit, in
// any order of additions.
class exact_sum {
  public:
    void add(double value) {
        double high = sum_ + value;
        double part = high - sum_;
        lost_ += (sum_ - (high - part)) + (value - part);
        sum_ = high;
    }
    void add(const exact_sum &other) {
        add(other.sum_);
        add(other.lost_);
    }
    double value() const { return sum_ + lost_; }

  private:
    double sum_ = 0, lost_ = 0;
};

struct gate_log {
    std::vector<exact_sum> loads;  // of each expert over all steps; empty: no step
    std::vector<double> imbalance; // of each step: coefficient of variation over the experts; -1: no load
    uint64_t idle = 0;             // experts without load, summed over the steps
    uint32_t most_idle = 0;        // the most in one step
};

// Reads logs one after another with the same memory.
class gate_log_reader {
  public:
    gate_log_reader();
    ~gate_log_reader();

    // Reads the log at `path` into `log`, which is empty. Returns an empty text, or the reason for rejecting
    // the log (no JSON object with these keys, a value that is not a number of at least 0, lists of unequal
    // length, steps with unequal numbers of experts), with path and byte. Throws bad_alloc.
    std::string read(const std::string &path, gate_log &log);

  private:
    struct state;
    std::unique_ptr<state> state_;
};

#endif
