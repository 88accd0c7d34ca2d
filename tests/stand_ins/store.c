// Reads an element, and stores a number rounded to its type, for the stand-ins of libraries: the headers of
// the bench and of replays share names of types, so that no file can include both.
#include "elements/element.h"

void stand_in_store(int bytes, int is_brain, void *array, size_t index, double value);

double stand_in_load(int bytes, int is_brain, const void *array, size_t index);

static enum dtype dtype_of(int bytes, int is_brain) {
    return bytes == 4 ? DTYPE_FLOAT32 : is_brain ? DTYPE_BFLOAT16 : DTYPE_FLOAT16;
}

double stand_in_load(int bytes, int is_brain, const void *array, size_t index) {
    return bytes == 8 ? ((const double *)array)[index]
                      : element_value(dtype_of(bytes, is_brain), array, index);
}

void stand_in_store(int bytes, int is_brain, void *array, size_t index, double value) {
    enum dtype dtype = dtype_of(bytes, is_brain);
    if (bytes == 8)
        ((double *)array)[index] = value;
    else
        element_store(dtype, array, index, (float)value);
}
