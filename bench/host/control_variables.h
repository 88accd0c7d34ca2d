// Control variables of the MPI library, through MPI's tools interface, or, for Open MPI, through the internal
// functions behind it: opening the tools interface makes Open MPI load all of its components, which takes
// longer than MPI_Init, and these functions do not.
#ifndef BENCH_HOST_CONTROL_VARIABLES_H
#define BENCH_HOST_CONTROL_VARIABLES_H

#include <stdbool.h>

// Whether a variable exists. For libraries other than Open MPI this opens the tools interface for good.
bool control_variable_is_there(const char *name);

// Whether a boolean variable exists and is true.
bool control_variable_is_on(const char *name);

// Reads an integer variable. -1: it does not exist.
int control_variable_read(const char *name, int *value);

// Writes an integer variable. -1: it does not exist, or rejects the value.
int control_variable_write(const char *name, int value);

#endif
