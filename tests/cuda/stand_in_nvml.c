// A stand-in for libnvidia-ml.so.1: a GPU with its clocks, held back by its power limit, and 4 links.
int nvmlInit_v2(void);
int nvmlSystemGetDriverVersion(char *version, unsigned length);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *is_active);

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
    *mhz = which == 1 ? 1980 : 2619;
    return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
    (void)device;
    *reasons = 4;
    return 0;
}
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *is_active) {
    (void)device;
    *is_active = link < 4;
    return 0;
}
