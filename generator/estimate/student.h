// Student's t and normal distributions.
#ifndef GENTABLES_STUDENT_H
#define GENTABLES_STUDENT_H

#include <stddef.h>

// The probability that Student's t with `freedom` degrees is above t; with 0, that a normal variable is.
double student_upper_tail(double t, size_t freedom);

#endif
