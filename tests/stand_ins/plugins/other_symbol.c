// A library that is no plug-in: it lacks the function gentables_plugin.
#include "plugin.h"

const gt_plugin *another_plugin(uint32_t abi);
const gt_plugin *another_plugin(uint32_t abi) {
    (void)abi;
    return NULL;
}
