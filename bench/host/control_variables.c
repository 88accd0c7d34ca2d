// Control variables of the MPI library; see control_variables.h.
#include "control_variables.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>
#include <string.h>

// ---- Open MPI's own -----------------------------------------------------------------------------

// As declared in opal/mca/base/mca_base_var.h of Open MPI 4 and 5; they return 0 on success. Values that the
// tools interface writes have the source "set".
typedef int find_function(const char *full_name, int *index);
typedef int get_function(int index, const void *value, int *source, const char **file);
typedef int set_function(int index, const void *value, size_t size, int source, const char *file);
enum { SOURCE_SET = 4 };

static struct {
    bool was_searched;
    find_function *find;
    get_function *get;
    set_function *set;
} own;

// Looks up an exported function of the libraries of this process; NULL: there is none.
static void look_up(const char *name, void *function) {
    void *symbol = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &symbol, sizeof symbol);
}

static bool has_own(void) {
    if (!own.was_searched) {
        look_up("mca_base_var_find_by_name", &own.find);
        look_up("mca_base_var_get_value", &own.get);
        look_up("mca_base_var_set_value", &own.set);
        own.was_searched = true;
    }
    return own.find != NULL && own.get != NULL && own.set != NULL;
}

static bool own_is_on(const char *name) {
    int index;
    const bool *storage = NULL; // get returns the address of the variable
    return own.find(name, &index) == 0 && own.get(index, &storage, NULL, NULL) == 0 && storage != NULL &&
           *storage;
}

static int own_read(const char *name, int *value) {
    int index;
    const int *storage = NULL;
    if (own.find(name, &index) != 0 || own.get(index, &storage, NULL, NULL) != 0 || storage == NULL)
        return -1;
    *value = *storage;
    return 0;
}

static int own_write(const char *name, int value) {
    int index;
    if (own.find(name, &index) != 0) return -1;
    return own.set(index, &value, sizeof value, SOURCE_SET, NULL) == 0 ? 0 : -1;
}

// ---- MPI's tools interface ----------------------------------------------------------------------

// Opens it once and for good: MPICH has no variables any more once it has been closed.
static bool open_tools(void) {
    static int opened = -1;
    int provided;
    if (opened < 0) opened = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS;
    return opened > 0;
}

static int access_variable(const char *name, int (*access)(MPI_T_cvar_handle, void *), int *value) {
    int index, count, status = -1;
    MPI_T_cvar_handle handle;
    if (!open_tools()) return -1;
    if (MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS &&
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS) {
        if (count == 1 && access(handle, value) == MPI_SUCCESS) status = 0;
        MPI_T_cvar_handle_free(&handle);
    }
    return status;
}

static int read_variable(MPI_T_cvar_handle handle, void *value) {
    return MPI_T_cvar_read(handle, value);
}
static int write_variable(MPI_T_cvar_handle handle, void *value) {
    return MPI_T_cvar_write(handle, value);
}

// ---- either -------------------------------------------------------------------------------------

bool control_variable_is_there(const char *name) {
    int index;
    if (has_own()) return own.find(name, &index) == 0;
    return open_tools() && MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS;
}

bool control_variable_is_on(const char *name) {
    int value = 0;
    if (has_own()) return own_is_on(name);
    return access_variable(name, read_variable, &value) == 0 && value != 0;
}

int control_variable_read(const char *name, int *value) {
    return has_own() ? own_read(name, value) : access_variable(name, read_variable, value);
}

int control_variable_write(const char *name, int value) {
    return has_own() ? own_write(name, value) : access_variable(name, write_variable, &value);
}
