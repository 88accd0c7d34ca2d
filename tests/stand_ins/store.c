// Stores a number rounded to the type of an element, for the stand-ins of libraries: the headers of the bench
// and of replays share names of types, so that no file can include both.
#include "elements/element.h"

void stand_in_store(int bytes, int is_brain, void *array, size_t index, double value);

void stand_in_store(int bytes, int is_brain, void *array, size_t index, double value) {
    enum dtype dtype = bytes == 4 ? DTYPE_FLOAT32 : is_brain ? DTYPE_BFLOAT16 : DTYPE_FLOAT16;
    if (bytes == 8)
        ((double *)array)[index] = value;
    else
        element_store(dtype, array, index, (float)value);
}
