/* cl.h -- the part of OpenCL 1.2 that Leat uses: its types, constants and functions, whose numbers
 * the standard fixes. No OpenCL is needed to build Leat: libOpenCL is loaded when a process first
 * asks for GPUs, and a machine without it has none. */
#ifndef LEAT_OPENCL_CL_H
#define LEAT_OPENCL_CL_H

#include <leat/status.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cl_platform_struct *cl_platform;
typedef struct cl_device_struct *cl_device;
typedef struct cl_context_struct *cl_context;
typedef struct cl_queue_struct *cl_queue;
typedef struct cl_memory_struct *cl_memory;
typedef struct cl_program_struct *cl_program;
typedef struct cl_kernel_struct *cl_kernel;
typedef struct cl_event_struct *cl_event;

enum {
    CL_SUCCESS = 0,
    CL_DEVICE_NOT_FOUND = -1,
    CL_COMPLETE = 0,
    CL_TRUE = 1,
    CL_FALSE = 0,

    CL_DEVICE_TYPE_CPU = 1 << 1,
    CL_DEVICE_TYPE_GPU = 1 << 2,
    CL_DEVICE_TYPE_ACCELERATOR = 1 << 3,

    CL_PLATFORM_VERSION = 0x0901,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_AVAILABLE = 0x1027,
    CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    CL_DEVICE_NAME = 0x102B,
    CL_DEVICE_VENDOR = 0x102C,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_VERSION = 0x102F,
    CL_DEVICE_ENDIAN_LITTLE = 0x1026,

    CL_MEM_READ_WRITE = 1,
    CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
};

/* Each function of OpenCL that Leat calls: X(name, arguments). All of them give an error number,
 * which is CL_SUCCESS or negative. */
#define LEAT_CL_FUNCTIONS(X)                                                                       \
    X(GetPlatformIDs, (uint32_t n, cl_platform * out, uint32_t * n_out))                           \
    X(GetPlatformInfo, (cl_platform p, uint32_t what, size_t n, void *out, size_t *n_out))         \
    X(GetDeviceIDs,                                                                                \
      (cl_platform p, uint64_t types, uint32_t n, cl_device * out, uint32_t * n_out))              \
    X(GetDeviceInfo, (cl_device d, uint32_t what, size_t n, void *out, size_t *n_out))             \
    X(ReleaseContext, (cl_context c))                                                              \
    X(ReleaseCommandQueue, (cl_queue q))                                                           \
    X(ReleaseMemObject, (cl_memory m))                                                             \
    X(BuildProgram, (cl_program p, uint32_t n, const cl_device *d, const char *options,            \
                     void (*done)(cl_program p, void *arg), void *arg))                            \
    X(GetProgramInfo, (cl_program p, uint32_t what, size_t n, void *out, size_t *n_out))           \
    X(GetProgramBuildInfo,                                                                         \
      (cl_program p, cl_device d, uint32_t what, size_t n, void *out, size_t *n_out))              \
    X(ReleaseProgram, (cl_program p))                                                              \
    X(SetKernelArg, (cl_kernel k, uint32_t i, size_t n, const void *value))                        \
    X(ReleaseKernel, (cl_kernel k))                                                                \
    X(EnqueueNDRangeKernel,                                                                        \
      (cl_queue q, cl_kernel k, uint32_t dims, const size_t *offset, const size_t *global,         \
       const size_t *local, uint32_t n, const cl_event *after, cl_event *out))                     \
    X(EnqueueReadBuffer, (cl_queue q, cl_memory m, uint32_t blocking, size_t offset, size_t n,     \
                          void *to, uint32_t n_after, const cl_event *after, cl_event *out))       \
    X(EnqueueWriteBuffer,                                                                          \
      (cl_queue q, cl_memory m, uint32_t blocking, size_t offset, size_t n, const void *from,      \
       uint32_t n_after, const cl_event *after, cl_event *out))                                    \
    X(EnqueueCopyBuffer,                                                                           \
      (cl_queue q, cl_memory from, cl_memory to, size_t from_offset, size_t to_offset, size_t n,   \
       uint32_t n_after, const cl_event *after, cl_event *out))                                    \
    X(EnqueueMarkerWithWaitList, (cl_queue q, uint32_t n, const cl_event *after, cl_event *out))   \
    X(EnqueueBarrierWithWaitList, (cl_queue q, uint32_t n, const cl_event *after, cl_event *out))  \
    X(Flush, (cl_queue q))                                                                         \
    X(Finish, (cl_queue q))                                                                        \
    X(GetEventInfo, (cl_event e, uint32_t what, size_t n, void *out, size_t *n_out))               \
    X(SetEventCallback,                                                                            \
      (cl_event e, int32_t status, void (*fn)(cl_event e, int32_t status, void *arg), void *arg))  \
    X(ReleaseEvent, (cl_event e))

/* Those that give an object, and the error number by their last argument: X(type, name, args). */
#define LEAT_CL_MAKERS(X)                                                                          \
    X(cl_context, CreateContext,                                                                   \
      (const intptr_t *properties, uint32_t n, const cl_device *d,                                 \
       void (*notify)(const char *text, const void *data, size_t n, void *arg), void *arg,         \
       int32_t *error))                                                                            \
    X(cl_queue, CreateCommandQueue,                                                                \
      (cl_context c, cl_device d, uint64_t properties, int32_t * error))                           \
    X(cl_memory, CreateBuffer,                                                                     \
      (cl_context c, uint64_t flags, size_t n, void *host, int32_t *error))                        \
    X(cl_program, CreateProgramWithSource,                                                         \
      (cl_context c, uint32_t n, const char **text, const size_t *sizes, int32_t *error))          \
    X(cl_program, CreateProgramWithBinary,                                                         \
      (cl_context c, uint32_t n, const cl_device *d, const size_t *sizes,                          \
       const unsigned char **binaries, int32_t *status, int32_t *error))                           \
    X(cl_kernel, CreateKernel, (cl_program p, const char *name, int32_t *error))

typedef struct leat_cl_functions {
#define X(name, args) int32_t(*name) args;
    LEAT_CL_FUNCTIONS(X)
#undef X
#define X(type, name, args) type(*name) args;
    LEAT_CL_MAKERS(X)
#undef X
} leat_cl_functions;

/* Set by leat_cl_load. */
extern leat_cl_functions leat_cl;
/* Loads libOpenCL, once. NOT_FOUND if the machine has none. */
leat_status leat_cl_load(void) LEAT_MUST_CHECK;
const char *leat_cl_error_name(int32_t error); /* "CL_OUT_OF_RESOURCES (-5)" */

/* Returns INTERNAL, or RESOURCE_EXHAUSTED where the device lacks memory, with the function's name
 * and the error's unless the call gives CL_SUCCESS. */
leat_status leat_cl_status(const char *function, int32_t error) LEAT_MUST_CHECK;
#define LEAT_CL_TRY(name, ...)                                                                     \
    do {                                                                                           \
        int32_t error_ = leat_cl.name(__VA_ARGS__);                                                \
        if (error_)                                                                                \
            return leat_cl_status("cl" #name, error_);                                             \
    } while (0)

#endif
