// The CUDA driver, loaded at run time, so that a program starts on a machine without it. Programs call the
// driver's own interface instead of the runtime library, which need not be installed.
#ifndef BENCH_CUDA_DRIVER_H
#define BENCH_CUDA_DRIVER_H

#include <cuda.h>
#include <stdbool.h>

// FUNCTION(name): every function of the driver that is called, and that each driver of CUDA 12 has. cuda.h
// defines some of these names as those of a version, such as cuMemAlloc as cuMemAlloc_v2; functions are
// looked up by the latter.
#define CUDA_DRIVER_FUNCTIONS(FUNCTION)                                                                      \
    FUNCTION(cuInit)                                                                                         \
    FUNCTION(cuDriverGetVersion)                                                                             \
    FUNCTION(cuGetErrorName)                                                                                 \
    FUNCTION(cuGetErrorString)                                                                               \
    FUNCTION(cuDeviceGetCount)                                                                               \
    FUNCTION(cuDeviceGet)                                                                                    \
    FUNCTION(cuDeviceGetName)                                                                                \
    FUNCTION(cuDeviceGetAttribute)                                                                           \
    FUNCTION(cuDeviceGetPCIBusId)                                                                            \
    FUNCTION(cuDeviceGetByPCIBusId)                                                                          \
    FUNCTION(cuDeviceGetUuid)                                                                                \
    FUNCTION(cuDeviceTotalMem)                                                                               \
    FUNCTION(cuDeviceCanAccessPeer)                                                                          \
    FUNCTION(cuDevicePrimaryCtxRetain)                                                                       \
    FUNCTION(cuDevicePrimaryCtxRelease)                                                                      \
    FUNCTION(cuCtxSetCurrent)                                                                                \
    FUNCTION(cuModuleLoadData)                                                                               \
    FUNCTION(cuModuleUnload)                                                                                 \
    FUNCTION(cuModuleGetFunction)                                                                            \
    FUNCTION(cuFuncGetAttribute)                                                                             \
    FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                    \
    FUNCTION(cuOccupancyMaxActiveClusters)                                                                   \
    FUNCTION(cuLaunchKernelEx)                                                                               \
    FUNCTION(cuStreamCreate)                                                                                 \
    FUNCTION(cuStreamDestroy)                                                                                \
    FUNCTION(cuStreamBeginCapture)                                                                           \
    FUNCTION(cuStreamEndCapture)                                                                             \
    FUNCTION(cuGraphInstantiate)                                                                             \
    FUNCTION(cuGraphUpload)                                                                                  \
    FUNCTION(cuGraphLaunch)                                                                                  \
    FUNCTION(cuGraphDestroy)                                                                                 \
    FUNCTION(cuGraphExecDestroy)                                                                             \
    FUNCTION(cuEventCreate)                                                                                  \
    FUNCTION(cuEventDestroy)                                                                                 \
    FUNCTION(cuEventRecord)                                                                                  \
    FUNCTION(cuEventQuery)                                                                                   \
    FUNCTION(cuEventElapsedTime)                                                                             \
    FUNCTION(cuMemHostAlloc)                                                                                 \
    FUNCTION(cuMemHostGetDevicePointer)                                                                      \
    FUNCTION(cuMemFreeHost)                                                                                  \
    FUNCTION(cuMemGetInfo)                                                                                   \
    FUNCTION(cuStreamWaitValue32)                                                                            \
    FUNCTION(cuMemAlloc)                                                                                     \
    FUNCTION(cuMemFree)                                                                                      \
    FUNCTION(cuMemcpyHtoDAsync)                                                                              \
    FUNCTION(cuMemcpyDtoHAsync)                                                                              \
    FUNCTION(cuMemcpyDtoDAsync)                                                                              \
    FUNCTION(cuMemsetD8Async)                                                                                \
    FUNCTION(cuMemsetD32Async)                                                                               \
    FUNCTION(cuMemsetD2D8Async)                                                                              \
    FUNCTION(cuMemGetAllocationGranularity)                                                                  \
    FUNCTION(cuMemCreate)                                                                                    \
    FUNCTION(cuMemRelease)                                                                                   \
    FUNCTION(cuMemAddressReserve)                                                                            \
    FUNCTION(cuMemAddressFree)                                                                               \
    FUNCTION(cuMemMap)                                                                                       \
    FUNCTION(cuMemUnmap)                                                                                     \
    FUNCTION(cuMemSetAccess)                                                                                 \
    FUNCTION(cuMemExportToShareableHandle)                                                                   \
    FUNCTION(cuMemImportFromShareableHandle)                                                                 \
    FUNCTION(cuIpcGetMemHandle)                                                                              \
    FUNCTION(cuIpcOpenMemHandle)                                                                             \
    FUNCTION(cuIpcCloseMemHandle)

// Those that drivers before 12.1 lack; see driver_has_multicast.
#define CUDA_DRIVER_NEWER_FUNCTIONS(FUNCTION)                                                                \
    FUNCTION(cuMulticastCreate)                                                                              \
    FUNCTION(cuMulticastAddDevice)                                                                           \
    FUNCTION(cuMulticastBindMem)                                                                             \
    FUNCTION(cuMulticastGetGranularity)

struct cuda_driver {
#define FUNCTION(name) __typeof__(&(name)) name;
    CUDA_DRIVER_FUNCTIONS(FUNCTION)
    CUDA_DRIVER_NEWER_FUNCTIONS(FUNCTION)
#undef FUNCTION
    int version; // 13000 is 13.0
};

// Loads the driver and starts it, once per process. NULL: `reason`.
const struct cuda_driver *driver_load(char reason[], size_t reason_size);

// Whether the driver has the functions of multicast. False: they are NULL.
bool driver_has_multicast(const struct cuda_driver *driver);

// How many GPUs the driver sees. 0: `reason`.
int driver_gpus(char reason[], size_t reason_size);

// The version of the driver, without starting it; 0: there is none.
int driver_version(void);

// Whether a call went well; else `reason` becomes "WHAT: the driver's text".
bool driver_ok(const struct cuda_driver *driver, CUresult result, const char *what, char reason[],
               size_t reason_size);

#endif
