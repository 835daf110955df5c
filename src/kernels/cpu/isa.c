/* isa.c -- the kernels are compiled for an instruction set (LEAT_CPU in CMake): says so when this
 * machine lacks it, instead of dying of an illegal instruction. */
#include <leat/status.h>

#include "runtime/session_int.h"

leat_status leat_isa_check(void)
{
#if defined(__x86_64__) && defined(__AVX2__)
    LEAT_REQUIRE(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
                 FAILED_PRECONDITION,
                 "This libleat was built for CPUs with AVX2 and FMA (%s), which this one lacks: "
                 "build it with -DLEAT_CPU=x86-64",
                 LEAT_CPU);
#endif
    return NULL;
}
