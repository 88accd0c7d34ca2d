// Control variables of the MPI library: by MPI's tools interface, or, where the library is Open MPI, by the
// functions behind it.
//
// Open MPI loads every component that it has when its tools interface is opened, which takes longer than all
// of MPI_Init; the functions behind it need none of that.
#ifndef GENTABLES_HOST_CONTROL_VARIABLES_H
#define GENTABLES_HOST_CONTROL_VARIABLES_H

#include <stdbool.h>

// Whether there is a variable of that name. If it is not one of Open MPI's, the tools interface is open then,
// and stays so.
bool control_variable_is_there(const char *name);

// Whether there is a variable of that name, of the kind that is on or off, and it is on.
bool control_variable_is_on(const char *name);

// Writes an integer variable; -1 where there is none of that name, or it refuses.
int control_variable_write(const char *name, int value);

#endif
