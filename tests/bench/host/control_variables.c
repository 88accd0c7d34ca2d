// Control variables of Open MPI: bench/host/control_variables.c writes and reads the same values as MPI's
// tools interface, with Open MPI's own functions (`own`), which do not open the tools interface, and without
// them (`tools`). Run under mpirun with --mca coll_tuned_use_dynamic_rules 1.
#include "host/control_variables.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char variable[] = "coll_tuned_allreduce_algorithm";
static bool hides;
static int failures;

// In place of dlsym (--wrap): simulates an Open MPI with hidden functions.
void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name) {
    return hides && strncmp(name, "mca_base_var_", 13) == 0 ? NULL : __real_dlsym(library, name);
}

static void expect(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "control_variables: not so: %s\n", what);
    failures++;
}

static bool tools_are_open(void) {
    int count;
    return MPI_T_cvar_get_num(&count) == MPI_SUCCESS;
}

// The variable's value, by the tools interface; -1: it has none.
static int value_by_tools(void) {
    int index, count, value = -1;
    MPI_T_cvar_handle handle;
    if (MPI_T_cvar_get_index(variable, &index) != MPI_SUCCESS) return -1;
    if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS) return -1;
    MPI_T_cvar_read(handle, &value);
    MPI_T_cvar_handle_free(&handle);
    return value;
}

int main(int argc, char **argv) {
    hides = argc > 1 && strcmp(argv[1], "tools") == 0;
    MPI_Init(&argc, &argv);
    expect(control_variable_is_on("coll_tuned_use_dynamic_rules"), "a variable that is on is on");
    expect(control_variable_is_there("mpi_show_handle_leaks"), "another is there");
    expect(!control_variable_is_on("mpi_show_handle_leaks"), "one that is off is off");
    expect(!control_variable_is_on("coll_tuned_no_such_rules"), "one that is not there is off");
    expect(control_variable_is_there(variable), "a variable is there");
    expect(!control_variable_is_there("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"), "MPICH's is not");
    expect(control_variable_write("coll_tuned_no_such_algorithm", 1) != 0, "what is not there is refused");
    int value = -1;
    expect(control_variable_read("coll_tuned_no_such_algorithm", &value) != 0 && value == -1, "nor read");
    expect(control_variable_write(variable, 4) == 0, "a variable is written");
    expect(control_variable_read(variable, &value) == 0 && value == 4, "it is read");
    expect(control_variable_write(variable, 99) != 0, "no algorithm 99");
    expect(tools_are_open() == hides, "the tools interface is opened just where it is needed");
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    expect(value_by_tools() == 4, "it has the value that was written");
    expect(control_variable_write(variable, 0) == 0 && value_by_tools() == 0, "it is set back");
    MPI_T_finalize();
    MPI_Finalize();
    return failures > 0;
}
