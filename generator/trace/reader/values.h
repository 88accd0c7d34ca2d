// Values of a trace: tokens, and numbers, also as texts. Each function that reads a value returns simdjson's
// error; for another value it is INCORRECT_TYPE or NUMBER_ERROR, and the value can be read as another type.
#ifndef GENTABLES_TRACE_VALUES_H
#define GENTABLES_TRACE_VALUES_H

#include <cmath>
#include <cstdint>
#include <simdjson.h>
#include <string_view>

#include "blanks.h"

namespace trace {

using any_value = simdjson::simdjson_result<simdjson::ondemand::value>;

// Whether an error is one of the document: simdjson parses while it reads, and after such an error the
// document must not be read further. Other errors mean a missing value or one of another type.
inline bool is_of_document(simdjson::error_code problem) {
    switch (problem) {
    case simdjson::SUCCESS:
    case simdjson::NO_SUCH_FIELD:
    case simdjson::INCORRECT_TYPE:
    case simdjson::NUMBER_OUT_OF_RANGE:
    case simdjson::NUMBER_ERROR:
    case simdjson::STRING_ERROR: return false;
    default: return true;
    }
}

// A token as simdjson returns it, without the blanks after it.
inline std::string_view trim(std::string_view token) {
    while (!token.empty() && is_blank(token.back())) token.remove_suffix(1);
    return token;
}

inline simdjson::error_code read_number(any_value value, double &number) {
    if (value.get_double().get(number) == simdjson::SUCCESS) return simdjson::SUCCESS;
    return value.get_double_in_string().get(number);
}

// Also reads whole numbers with a fraction or an exponent.
inline simdjson::error_code read_integer(any_value value, int64_t &integer) {
    if (value.get_int64().get(integer) == simdjson::SUCCESS) return simdjson::SUCCESS;
    if (value.get_int64_in_string().get(integer) == simdjson::SUCCESS) return simdjson::SUCCESS;
    double number;
    simdjson::error_code problem = value.get_double().get(number);
    if (problem != simdjson::SUCCESS) return problem;
    constexpr double LARGEST = 9007199254740992; // up to it a double has all whole numbers
    if (!(std::fabs(number) <= LARGEST) || number != std::floor(number)) return simdjson::NUMBER_ERROR;
    integer = int64_t(number);
    return simdjson::SUCCESS;
}

} // namespace trace

#endif
