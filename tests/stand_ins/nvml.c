// A stand-in for libnvidia-ml.so.1: GPUs with 4 NVLinks and a PCIe link below its maximum, throttled by their
// power limit, and at the third and fourth query of the reasons by heat, with a lower clock.
#include <stdatomic.h>
#include <stdbool.h>

int nvmlInit_v2(void);
int nvmlSystemGetDriverVersion(char *version, unsigned length);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *is_active);

static _Atomic int times_asked;
static bool is_hot(int time) {
    return time == 2 || time == 3;
}

int nvmlInit_v2(void) {
    return 0;
}
int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    const char text[] = "999.1";
    for (unsigned i = 0; i < sizeof text && i < length; i++) version[i] = text[i];
    return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
    *device = (void *)bus;
    return 0;
}
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz) {
    (void)device;
    *mhz = which != 1 ? 2619 : is_hot(times_asked) ? 1200 : 1980;
    return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
    (void)device;
    *reasons = is_hot(times_asked++) ? 0x40 : 4;
    return 0;
}

// A function that returns one value of each PCIe link.
#define PCIE_LINK(name, the_value)                                                                           \
    int nvmlDeviceGet##name(void *device, unsigned *value);                                                  \
    int nvmlDeviceGet##name(void *device, unsigned *value) {                                                 \
        (void)device;                                                                                        \
        *value = the_value;                                                                                  \
        return 0;                                                                                            \
    }
PCIE_LINK(CurrPcieLinkGeneration, 4)
PCIE_LINK(CurrPcieLinkWidth, 8)
PCIE_LINK(MaxPcieLinkGeneration, 5)
PCIE_LINK(MaxPcieLinkWidth, 16)

int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *is_active) {
    (void)device;
    *is_active = link < 4;
    return 0;
}
