/* move.c -- moving elements from places with strides to others, as slices, transposes, pads, tiles
 * and concatenations do, and setting them. */
#include "kernels/opencl/walk.h"

extern const leat_cl_text leat_cl_text_move;
static const leat_cl_text *const texts[] = {&leat_cl_text_move, NULL};

/* A type of OpenCL C of this many bytes. */
static const char *options_of(size_t size)
{
    return size == 1   ? "-DT=uchar"
           : size == 2 ? "-DT=ushort"
           : size == 4 ? "-DT=uint"
           : size == 8 ? "-DT=ulong"
                       : "-DT=ulong2";
}

leat_status leat_cl_move(leat_opencl *d, const leat_cl_walk *w, size_t size, void *to,
                         const void *from)
{
    leat_cl_walk x = *w;
    int64_t n = 1;
    if (!x.rank)
        x = (leat_cl_walk){1, {1}, {1}, {1}};
    for (int i = 0; i < x.rank; i++)
        n *= x.dim[i];
    if (!n)
        return NULL;
    if (x.rank == 1 && x.a[0] == 1 && x.b[0] == 1)
        return leat_cl_copy(d->device, LEAT_QUEUE_COMPUTE, LEAT_COPY_WITHIN, to, from,
                            (size_t)n * size);
    leat_cl_launch l = leat_cl_begin(d, texts, options_of(size), "move");
    leat_cl_at(&l, to);
    leat_cl_at(&l, from);
    leat_cl_bytes(&l, &x, sizeof x);
    leat_cl_int(&l, n);
    return leat_cl_each(&l, n, 1);
}

leat_status leat_cl_move_views(leat_device *device, const leat_move *m, size_t size, void *to,
                               const void *from)
{
    leat_opencl *d = device->state;
    leat_cl_walk w = {0};
    int64_t n = 1;
    for (int i = 0; i < m->rank; i++) {
        LEAT_TRY(leat_cl_walk_dim(&w, m->dim[i], m->to[i], from ? m->from[i] : 0));
        n *= m->dim[i];
    }
    if (from)
        return leat_cl_move(d, &w, size, to, from);
    LEAT_REQUIRE(w.rank == 0 || (w.rank == 1 && w.a[0] == 1), INTERNAL,
                 "zeros are set in neighbouring elements only");
    return leat_cl_fill(d, to, n, size, NULL);
}

leat_status leat_cl_fill(leat_opencl *d, void *to, int64_t n, size_t size, const void *value)
{
    const uint64_t zero[2] = {0};
    if (n <= 0)
        return NULL;
    leat_cl_launch l = leat_cl_begin(d, texts, options_of(size), "fill");
    leat_cl_at(&l, to);
    leat_cl_bytes(&l, value ? value : zero, size);
    leat_cl_int(&l, n);
    return leat_cl_each(&l, n, 0.5);
}
