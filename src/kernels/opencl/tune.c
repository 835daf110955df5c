/* tune.c -- see tune.h. Products with few columns and those with more have their own tiles. When a
 * device first computes one of a kind, and no file says which tiles are best, each candidate
 * multiplies a few times. */
#include "kernels/opencl/tune.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/map.h"
#include "core/threadpool.h"
#include "kernels/opencl/gemm.h"
#include "kernels/opencl/walk.h"

extern const leat_cl_text leat_cl_text_gemm, leat_cl_text_common;

enum { NARROW = 16 /* most columns of the first class */, ROUNDS = 4 };

#define CPU(mr, nv, vw)                                                                            \
    {                                                                                              \
        mr, nv *vw, "-DMR=" #mr " -DNV=" #nv " -DVW=" #vw                                          \
    }
#define GPU(per)                                                                                   \
    {                                                                                              \
        16 * per, 16 * per, "-DPER=" #per                                                          \
    }
/* The first of each list is taken if no other is faster. */
static const leat_cl_tiles on_cpus[] = {CPU(6, 2, 16), CPU(12, 2, 16), CPU(4, 2, 16), CPU(6, 2, 8),
                                        CPU(8, 1, 16)},
                           narrow_on_cpus[] = {CPU(8, 1, 16), CPU(12, 1, 16), CPU(8, 1, 8)},
                           on_gpus[] = {GPU(4), GPU(2), GPU(8)},
                           narrow_on_gpus[] = {GPU(2), GPU(1), GPU(4)};

typedef struct candidates {
    const leat_cl_tiles *v;
    int n;
    int64_t columns; /* of the product that they are tried with */
} candidates;

#define LIST(list, columns)                                                                        \
    {                                                                                              \
        list, (int)(sizeof list / sizeof *list), columns                                           \
    }
static const candidates lists[2][2] = {{LIST(narrow_on_gpus, 16), LIST(on_gpus, 256)},
                                       {LIST(narrow_on_cpus, 16), LIST(on_cpus, 64)}};

/* ---- Trying ---- */

typedef struct trial {
    leat_opencl *d;
    int64_t rows, columns, depth;
    void *a, *panels, *c; /* zeros; the device's memory */
} trial;

static leat_status finish(leat_opencl *d)
{
    pthread_mutex_lock(&d->enqueuing);
    leat_status s = leat_cl_status("clFinish", leat_cl.Finish(d->queues[LEAT_QUEUE_COMPUTE]));
    pthread_mutex_unlock(&d->enqueuing);
    return s;
}

/* The seconds that a product takes by these tiles, at best. */
static leat_status measure(const trial *t, const leat_cl_tiles *tiles, double *out)
{
    const leat_cl_product p = {.m = t->rows,
                               .n = t->columns,
                               .parts = 1,
                               .left = {.rows = leat_cl_digit(t->depth),
                                        .parts = leat_cl_digit(0),
                                        .len = (int32_t)t->depth,
                                        .by = 1},
                               .a = t->a,
                               .panels = t->panels,
                               .c = t->c,
                               .ldc = t->columns};
    double best = 0;
    for (int i = 0; i <= ROUNDS; i++) { /* the first one compiles */
        const int64_t start = leat_now_ns();
        LEAT_TRY(leat_cl_gemm_by(t->d, &p, tiles));
        LEAT_TRY(finish(t->d));
        const double took = (double)(leat_now_ns() - start) * 1e-9;
        if (i && (best == 0 || took < best))
            best = took;
    }
    *out = best;
    return NULL;
}

static leat_status room(const trial *t, int64_t n, void **out)
{
    *out = t->d->memory.alloc(&t->d->memory, (size_t)n * sizeof(float));
    LEAT_REQUIRE(*out, RESOURCE_EXHAUSTED, "%s has no memory to try tiles of products with",
                 t->d->device->name);
    return leat_cl_fill(t->d, *out, n, sizeof(float), NULL);
}

static leat_status try_all(trial *t, const candidates *list, int *best_out)
{
    double best = 0, seconds;
    int widest = 0;
    for (int i = 0; i < list->n; i++)
        widest = list->v[i].width > widest ? list->v[i].width : widest;
    LEAT_TRY(room(t, t->rows * t->depth, &t->a));
    LEAT_TRY(room(t, (t->columns + widest) * t->depth, &t->panels));
    LEAT_TRY(room(t, t->rows * t->columns, &t->c));
    for (int i = 0; i < list->n; i++) {
        leat_status s = measure(t, &list->v[i], &seconds);
        if (s && i > 0) { /* more registers or memory than the device has */
            leat_status_free(s);
            continue;
        }
        LEAT_TRY(s);
        LEAT_LOG(INFO, "%s: products by tiles %s: %.1f GFLOP/s", t->d->device->name,
                 list->v[i].options,
                 2e-9 * (double)t->rows * (double)t->columns * (double)t->depth / seconds);
        if (i == 0 || seconds < 0.97 * best) {
            best = seconds;
            *best_out = i;
        }
    }
    return NULL;
}

static void drop(leat_opencl *d, void *memory)
{
    if (memory)
        d->memory.free(&d->memory, memory, 0);
}

/* Without memory to try with, the first candidate is taken, and *tried_out is false. */
static leat_status find(leat_opencl *d, const candidates *list, bool *tried_out, int *best_out)
{
    const bool on_cpu = d->listed->on_cpu;
    trial t = {.d = d,
               .rows = on_cpu ? 384 : 4096,
               .columns = list->columns,
               .depth = on_cpu ? 256 : 1024};
    *best_out = 0;
    leat_status s = try_all(&t, list, best_out);
    drop(d, t.a);
    drop(d, t.panels);
    drop(d, t.c);
    *tried_out = !s;
    if (s && leat_status_code(s) == LEAT_RESOURCE_EXHAUSTED) {
        leat_status_free(s);
        s = NULL;
    }
    return s;
}

/* ---- What is kept ---- */

/* Depends on the texts that are compiled and on the candidates. */
static uint64_t key_of(const leat_opencl *d, const candidates *list)
{
    uint64_t h = leat_hash(leat_cl_text_gemm.text, leat_cl_text_gemm.size, 3);
    h = leat_hash(leat_cl_text_common.text, leat_cl_text_common.size, h);
    for (int i = 0; i < list->n; i++)
        h = leat_hash(list->v[i].options, strlen(list->v[i].options), h);
    return h + (uint64_t)list->columns;
}

static bool read_best(const leat_opencl *d, const candidates *list, int *best_out)
{
    char *bytes;
    size_t n;
    if (!leat_cl_cache_read(d, "tiles", key_of(d, list), &bytes, &n))
        return false;
    int i = 0;
    while (i < list->n &&
           (n != strlen(list->v[i].options) || memcmp(bytes, list->v[i].options, n) != 0))
        i++;
    free(bytes);
    *best_out = i;
    return i < list->n;
}

leat_status leat_cl_tiles_for(leat_opencl *d, int64_t n, const leat_cl_tiles **out)
{
    const int class = n > NARROW;
    const candidates *list = &lists[d->listed->on_cpu][class];
    leat_status s = NULL;
    int best = 0;
    bool known = true;
    pthread_mutex_lock(&d->tuning);
    if (d->tiles[class]) {
        best = (int)(d->tiles[class] - list->v);
    } else if (!read_best(d, list, &best)) {
        s = find(d, list, &known, &best);
        if (!s && known)
            leat_cl_cache_write(d, "tiles", key_of(d, list), list->v[best].options,
                                strlen(list->v[best].options));
    }
    if (!s && known)
        d->tiles[class] = &list->v[best];
    pthread_mutex_unlock(&d->tuning);
    *out = &list->v[best];
    return s;
}
