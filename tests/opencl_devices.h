/* opencl_devices.h -- for tests that want OpenCL devices: those that PoCL makes of the CPU, unless
 * POCL_DEVICES is set. A test sets the environment before it first opens a session. */
#ifndef LEAT_TESTS_OPENCL_DEVICES_H
#define LEAT_TESTS_OPENCL_DEVICES_H

#include "runtime/device_kind.h"

/* PoCL's compiler and the code that it makes are not instrumented: ThreadSanitizer sees their
 * memory being used without the locks that they take. */
#ifdef __SANITIZE_THREAD__
enum { TEST_OPENCL = 0 };
#else
enum { TEST_OPENCL = 1 };
#endif
/* Programs take PoCL's compiler minutes where it is slowed by AddressSanitizer. */
#ifdef __SANITIZE_ADDRESS__
enum { TEST_MUCH_OPENCL = 0 };
#else
enum { TEST_MUCH_OPENCL = TEST_OPENCL };
#endif

/* True if this machine has at least n GPUs, and tests may use them. */
static inline bool test_has_gpus(int n)
{
    int most = 0;
    if (!TEST_OPENCL)
        return false;
    leat_status s = leat_device_kind_find("GPU")->probe(&most);
    leat_status_free(s);
    return most >= n;
}

#endif
