// Rounds a number to what an element holds, for the stand-ins of libraries: the types of the bench and those
// of replays have names in common, so that no file can know both.
#include "element.h"

void stand_in_store(int bytes, int is_brain, void *array, size_t index, double value);

void stand_in_store(int bytes, int is_brain, void *array, size_t index, double value) {
    enum dtype dtype = bytes == 4 ? DTYPE_FLOAT32 : is_brain ? DTYPE_BFLOAT16 : DTYPE_FLOAT16;
    if (bytes == 8)
        ((double *)array)[index] = value;
    else
        element_store(dtype, array, index, (float)value);
}
