/* tune.c -- which tiles products of matrices use on a device. */
#include "kernels/opencl/tune.h"

#define TILES(mr, nv, vw)                                                                          \
    {                                                                                              \
        mr, nv *vw, "-DMR=" #mr " -DNV=" #nv " -DVW=" #vw                                          \
    }
static const leat_cl_tiles wide = TILES(6, 2, 16), narrow = TILES(8, 1, 16);
static const leat_cl_tiles gpu = {64, 64, "-DVW=4"};

leat_status leat_cl_tiles_for(leat_kernel *k, int64_t n, const leat_cl_tiles **out)
{
    *out = !leat_cl_of(k)->listed->on_cpu ? &gpu : n > 16 ? &wide : &narrow;
    return NULL;
}
