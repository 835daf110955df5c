/* cl.c -- loads libOpenCL, and words its errors. */
#include "kernels/opencl/cl.h"

#include <pthread.h>
#include <stdio.h>

#include "core/library.h"

leat_cl_functions leat_cl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static leat_status failure; /* Why there is no OpenCL; kept for the life of the process. */

static const leat_library_function functions[] = {
#define X(name, args) {"cl" #name, &leat_cl.name},
    LEAT_CL_FUNCTIONS(X)
#undef X
#define X(type, name, args) {"cl" #name, &leat_cl.name},
        LEAT_CL_MAKERS(X)
#undef X
};

static void load(void)
{
    void *library;
    failure = leat_library_load("libOpenCL.so.1", functions, sizeof functions / sizeof *functions,
                                &library);
}

leat_status leat_cl_load(void)
{
    pthread_once(&once, load);
    LEAT_REQUIRE(!failure, NOT_FOUND, "OpenCL cannot be used: %s", leat_status_message(failure));
    return NULL;
}

static const struct {
    int32_t error;
    const char *name;
} names[] = {
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-12, "CL_MAP_FAILURE"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-30, "CL_INVALID_VALUE"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-42, "CL_INVALID_BINARY"},
    {-43, "CL_INVALID_BUILD_OPTIONS"},
    {-44, "CL_INVALID_PROGRAM"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-48, "CL_INVALID_KERNEL"},
    {-49, "CL_INVALID_ARG_INDEX"},
    {-50, "CL_INVALID_ARG_VALUE"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

const char *leat_cl_error_name(int32_t error)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].error == error)
            return names[i].name;
    return "an error";
}

leat_status leat_cl_status(const char *function, int32_t error)
{
    if (!error)
        return NULL;
    if (error == -4 || error == -5 || error == -6)
        return leat_error(RESOURCE_EXHAUSTED, "%s failed with %s (%d)", function,
                          leat_cl_error_name(error), (int)error);
    return leat_error(INTERNAL, "%s failed with %s (%d)", function, leat_cl_error_name(error),
                      (int)error);
}
