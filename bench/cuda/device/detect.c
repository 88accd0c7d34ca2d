// Describes this machine's GPUs, links and libraries, for the protocol and for people: at the beginning, and
// what changes meanwhile, such as clocks, again after the last request. Without NVML, its facts are left out.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "libraries/nccl_library.h"

// ---- NVML --------------------------------------------------------------------------------------------

enum {
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_DONE = 0,
    MOST_LINKS = 18,
    NVML_TEXT = 96,
    STATE_SIZE = 256
};

// Its functions as nvml.h declares them; the header is not needed.
static struct {
    int (*init)(void);
    int (*driver_version)(char *version, unsigned length);
    int (*by_bus)(const char *bus, void **device);
    int (*clock)(void *device, int which, unsigned *mhz);
    int (*throttle_reasons)(void *device, unsigned long long *reasons);
    int (*link_state)(void *device, unsigned link, int *is_active);
    int (*pcie[4])(void *device, unsigned *value); // as pcie_names[]; NULL: it has no such function
    bool is_ready;
} nvml;

static const char *const pcie_names[] = {
    "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetCurrPcieLinkWidth",
    "nvmlDeviceGetMaxPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkWidth"};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_nvml(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == NULL) return;
    *(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
    *(void **)&nvml.driver_version = dlsym(library, "nvmlSystemGetDriverVersion");
    *(void **)&nvml.by_bus = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void **)&nvml.clock = dlsym(library, "nvmlDeviceGetClockInfo");
    *(void **)&nvml.throttle_reasons = dlsym(library, "nvmlDeviceGetCurrentClocksThrottleReasons");
    *(void **)&nvml.link_state = dlsym(library, "nvmlDeviceGetNvLinkState");
    for (int i = 0; i < 4; i++) *(void **)&nvml.pcie[i] = dlsym(library, pcie_names[i]);
    nvml.is_ready = nvml.init != NULL && nvml.driver_version != NULL && nvml.by_bus != NULL &&
                    nvml.clock != NULL && nvml.throttle_reasons != NULL && nvml.link_state != NULL &&
                    nvml.init() == NVML_DONE;
}

static bool has_nvml(void) {
    pthread_once(&once, load_nvml);
    return nvml.is_ready;
}

static int active_links(void *handle) {
    int count = 0;
    for (unsigned link = 0; link < MOST_LINKS; link++) {
        int is_active = 0;
        if (nvml.link_state(handle, link, &is_active) == NVML_DONE && is_active) count++;
    }
    return count;
}

// Fields of the PCIe link: generation x width now, which an idle GPU lowers, and at most.
static void describe_pcie(void *handle, char text[], size_t text_size) {
    unsigned of[4] = {0};
    text[0] = '\0';
    for (int i = 0; i < 4; i++) {
        if (nvml.pcie[i] == NULL || nvml.pcie[i](handle, &of[i]) != NVML_DONE) return;
    }
    snprintf(text, text_size, " pcie=%ux%u pcie_most=%ux%u", of[0], of[1], of[2], of[3]);
}

// Reads the clocks from NVML. Returns its handle of the GPU; NULL: it has none.
static void *read_clocks(const struct device *device, struct gpu_clocks *now) {
    void *handle = NULL;
    *now = (struct gpu_clocks){0};
    if (!has_nvml() || nvml.by_bus(device->bus, &handle) != NVML_DONE) return NULL;
    nvml.clock(handle, NVML_CLOCK_SM, &now->mhz);
    nvml.clock(handle, NVML_CLOCK_MEMORY, &now->memory_mhz);
    nvml.throttle_reasons(handle, &now->throttle);
    return handle;
}

// Called right after calls: at the ends of a run the GPU may be idle, with low clocks for that reason.
void detect_note_clocks(struct device *device) {
    struct gpu_clocks now, *seen = &device->clocks_seen;
    if (read_clocks(device, &now) == NULL) return;
    if (seen->mhz == 0 || now.mhz < seen->mhz) seen->mhz = now.mhz;
    if (seen->memory_mhz == 0 || now.memory_mhz < seen->memory_mhz) seen->memory_mhz = now.memory_mhz;
    seen->throttle |= now.throttle;
}

// Fields of clocks, the reasons for their throttling (as bits; 0: none), and links.
static void describe_state(const struct device *device, char text[], size_t text_size) {
    char pcie[64];
    struct gpu_clocks now;
    void *handle = read_clocks(device, &now);
    text[0] = '\0';
    if (handle == NULL) return;
    describe_pcie(handle, pcie, sizeof pcie);
    snprintf(text, text_size, " clock_mhz=%u memory_clock_mhz=%u throttle=0x%llx nvlinks=%d%s", now.mhz,
             now.memory_mhz, now.throttle, active_links(handle), pcie);
}

// ---- for the protocol --------------------------------------------------------------------------------

static void without_spaces(char *text) {
    for (; *text != '\0'; text++) {
        if (*text == ' ') *text = '_';
    }
}

// The code of the kernels: that of an SM version, or PTX that the driver compiled.
static void describe_kernels(struct kernel_versions versions, char text[], size_t text_size) {
    if (kernels_compiled_at_load(versions)) {
        snprintf(text, text_size, "ptx_%d.%d_compiled_at_load", versions.ptx / 10, versions.ptx % 10);
    } else {
        snprintf(text, text_size, "sm_%d", versions.binary);
    }
}

void detect_line(struct device *device, char line[], size_t line_size) {
    char state[STATE_SIZE], name[CUDA_NAME_SIZE], kernels[48];
    describe_state(device, state, sizeof state);
    describe_kernels(device->versions, kernels, sizeof kernels);
    snprintf(name, sizeof name, "%s", device->name);
    without_spaces(name);
    snprintf(line, line_size,
             "device rank=%d gpu=%d bus=%s sm=%d kernels=%s multiprocessors=%d l2_bytes=%zu reach=%s "
             "multicast=%s link_gb_per_s=%.1f%s name=%s",
             device->group->rank, device->ordinal, device->bus, device->sm, kernels, device->multiprocessors,
             device->l2_bytes, reach_names[device->reach], device->can_multicast ? "yes" : "no",
             device->link_bytes_per_us / 1000, state, name);
}

void detect_write(const struct group *group, FILE *out) {
    struct device *device = device_of(group);
    device->is_described = true;
    for (int rank = 0; rank < group->size; rank++) fprintf(out, "%s\n", device->lines[rank]);
}

// Appends a field to the line of a rank, which it begins if it is empty.
static void append_switch_error(const struct group *group, char line[LINE_SIZE]) {
    if (group->switch_error <= 0) return;
    if (line[0] == '\0') snprintf(line, LINE_SIZE, "device rank=%d", group->rank);
    size_t used = strlen(line);
    snprintf(line + used, LINE_SIZE - used, " largest_switch_error_ulp=%.2f", group->switch_error);
}

// Writes the same fields, and the lowest clocks, all reasons, and the largest error of sums in a switch, of
// the whole run.
void detect_write_end(struct group *group, FILE *out) {
    struct device *device = device_of(group);
    char state[STATE_SIZE], line[LINE_SIZE] = "";
    describe_state(device, state, sizeof state);
    if (state[0] != '\0') {
        snprintf(line, sizeof line,
                 "device rank=%d%s least_clock_mhz=%u least_memory_clock_mhz=%u "
                 "throttle_seen=0x%llx",
                 group->rank, state, device->clocks_seen.mhz, device->clocks_seen.memory_mhz,
                 device->clocks_seen.throttle);
    }
    append_switch_error(group, line);
    if (!group_exchange(group, line, sizeof line, device->lines) || group->rank != 0) return;
    for (int rank = 0; rank < group->size; rank++) {
        if (device->lines[rank][0] != '\0') fprintf(out, "%s\n", device->lines[rank]);
    }
    fflush(out);
}

// ---- without a group -----------------------------------------------------------------------------------

// The driver reads it once, when it starts. Loading a kernel at its first launch could wait for a running
// kernel, which may wait for the kernel of another rank that is being loaded.
static void load_kernels_early(void) {
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

const struct cuda_driver *device_driver(char reason[], size_t reason_size) {
    static pthread_once_t is_set = PTHREAD_ONCE_INIT;
    pthread_once(&is_set, load_kernels_early);
    return driver_load(reason, reason_size);
}

// The first GPU's name and SM version, and how many there are.
static int look_at_gpus(char name[CUDA_NAME_SIZE], int *sm) {
    char reason[REASON_SIZE];
    const struct cuda_driver *driver = device_driver(reason, sizeof reason);
    int count = 0, major = 0, minor = 0;
    CUdevice first;
    if (driver == NULL || driver->cuDeviceGetCount(&count) != CUDA_SUCCESS || count == 0 ||
        driver->cuDeviceGet(&first, 0) != CUDA_SUCCESS)
        return 0;
    driver->cuDeviceGetName(name, CUDA_NAME_SIZE, first);
    driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, first);
    driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, first);
    *sm = 10 * major + minor;
    return count;
}

void detect_describe(char library[], size_t library_size, char isa[], size_t isa_size) {
    char name[CUDA_NAME_SIZE] = "", driver[NVML_TEXT] = "", nccl[32] = "no NCCL";
    int sm = 0, count = look_at_gpus(name, &sm), version = driver_version(), of_nccl = nccl_version();
    if (has_nvml()) nvml.driver_version(driver, sizeof driver);
    if (of_nccl > 0) {
        snprintf(nccl, sizeof nccl, "NCCL %d.%d.%d", of_nccl / 10000, of_nccl / 100 % 100, of_nccl % 100);
    }
    if (sm > 0) {
        snprintf(isa, isa_size, "sm_%d", sm);
    } else {
        snprintf(isa, isa_size, "none");
    }
    snprintf(library, library_size, "CUDA %d.%d with driver %s%s%d.%d and %s on %d x %s", CUDA_VERSION / 1000,
             CUDA_VERSION % 1000 / 10, driver, driver[0] ? " for " : "", version / 1000, version % 1000 / 10,
             nccl, count, count > 0 ? name : "GPU");
}
