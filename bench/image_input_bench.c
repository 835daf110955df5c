/* image_input_bench.c -- CIFAR-10's distorted inputs: uint8 images of 32 x 32 x 3 through a dataset's
 * parallel map (crop to 24 x 24, flip, brightness, contrast, standardize), in batches of 128.
 *
 *     image_input_bench SECONDS [CALLS [resize]]     CALLS of the map at once (2)
 *
 * prints images_per_s and cpu_us_per_image, which does not depend on how busy the machine is. With
 * "resize" the map resizes float images of 256 x 256 x 3 to 224 x 224 instead. The same pipelines
 * by TensorFlow: bench/peers/tensorflow_image_input.py.
 */
#include <leat/leat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/threadpool.h"

enum { BATCH = 128 };

static void distort(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    (void)g;
    (void)arg;
    leat_out image = leat_cast(leat_reshape_to(in[0], leat_shape(32, 32, 3)), LEAT_FLOAT);
    leat_out crop = leat_image_random_crop(image, leat_shape(24, 24, 3));
    leat_out flip = leat_image_random_flip_left_right(crop);
    leat_out light = leat_image_random_brightness(flip, 63);
    out[0] = leat_image_standardize(leat_image_random_contrast(light, 0.2, 1.8));
}

static void resize(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    (void)g;
    (void)arg;
    leat_out image = leat_cast(leat_reshape_to(in[0], leat_shape(256, 256, 3)), LEAT_FLOAT);
    out[0] = leat_image_resize(image, 224, 224);
}

static leat_out constant(leat_graph *g, leat_dtype t, const void *v)
{
    leat_tensor *c;
    LEAT_DIE_ON_ERROR(leat_tensor_copy_of(t, leat_shape(), v, &c));
    leat_out out = leat_const(g, c);
    leat_tensor_unref(c);
    return out;
}

static leat_out number(leat_graph *g, int64_t v)
{
    return constant(g, LEAT_INT64, &v);
}

static leat_out images(leat_graph *g, int64_t n, int64_t side)
{
    leat_tensor *t;
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_UINT8, leat_shape(n, side, side, 3), &t));
    uint8_t *p = leat_tensor_mutable(t);
    uint32_t x = 1;
    for (int64_t i = 0; i < n * side * side * 3; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = (uint8_t)(x >> 24);
    }
    leat_out c = leat_const(g, t);
    leat_tensor_unref(t);
    return c;
}

#define ELEMENTS(t, s)                                                                             \
    leat_attr_types("output_types", LEAT_ARRAY(leat_dtype, t), 1),                                 \
        leat_attr_shapes("output_shapes", (leat_shape[]){s}, 1)

/* The next batch of the pipeline; *init starts it. */
static leat_out pipeline(leat_graph *g, bool resized, int32_t calls, leat_out *init)
{
    const int64_t side = resized ? 256 : 32, out = resized ? 224 : 24;
    const int64_t batch = resized ? 16 : BATCH;
    leat_out source = images(g, resized ? 16 : 1024, side);
    leat_out d =
        leat_op(g, "TensorSliceDataset", leat_ins(&source, 1),
                leat_attr_types("Toutput_types", LEAT_ARRAY(leat_dtype, LEAT_UINT8), 1),
                leat_attr_shapes("output_shapes", (leat_shape[]){leat_shape(side, side, 3)}, 1));
    d = leat_op(g, "RepeatDataset", leat_in(d), leat_in(number(g, -1)),
                ELEMENTS(LEAT_UINT8, leat_shape(side, side, 3)));
    leat_function_define(g, "change", resized ? resize : distort, NULL, 1, LEAT_UINT8);
    d = leat_op(g, "ParallelMapDataset", leat_in(d), leat_ins(NULL, 0),
                leat_in(constant(g, LEAT_INT32, &calls)), leat_attr_func("f", "change"),
                ELEMENTS(LEAT_FLOAT, leat_shape(out, out, 3)));
    leat_out drop = constant(g, LEAT_BOOL, &(bool){true});
    const leat_shape all = leat_shape(batch, out, out, 3);
    d = leat_op(g, "BatchDatasetV2", leat_in(d), leat_in(number(g, batch)), leat_in(drop),
                ELEMENTS(LEAT_FLOAT, all));
    d = leat_op(g, "PrefetchDataset", leat_in(d), leat_in(number(g, 1)), ELEMENTS(LEAT_FLOAT, all));
    leat_out it = leat_op(g, "IteratorV2", leat_attr_string("shared_name", ""),
                          leat_attr_string("container", ""), ELEMENTS(LEAT_FLOAT, all));
    *init = leat_op(g, "MakeIterator", leat_in(d), leat_in(it));
    return leat_op(g, "IteratorGetNext", leat_in(it), ELEMENTS(LEAT_FLOAT, all));
}

/* Seconds of processor time that all threads have used. */
static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 2;
    const bool resized = argc > 3 && strcmp(argv[3], "resize") == 0;
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out init, next = pipeline(g, resized, argc > 2 ? atoi(argv[2]) : 2, &init);
    LEAT_DIE_ON_ERROR(leat_graph_status(g));
    LEAT_DIE_ON_ERROR(leat_session_open(g, &s));
    LEAT_DIE_ON_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    int64_t images_done = 0, begin = 0;
    double cpu = 0;
    for (int64_t warm = 5;; warm--) {
        leat_tensor *t = NULL;
        LEAT_DIE_ON_ERROR(
            leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({next, &t}), LEAT_NO_TARGET));
        const int64_t n = leat_tensor_shape(t).dim[0];
        leat_tensor_unref(t);
        if (warm == 0) {
            begin = leat_now_ns();
            cpu = cpu_seconds();
        } else if (warm < 0) {
            images_done += n;
        }
        if (warm < 0 && (double)(leat_now_ns() - begin) > seconds * 1e9)
            break;
    }
    printf("images_per_s %.0f\n", (double)images_done / ((double)(leat_now_ns() - begin) / 1e9));
    printf("cpu_us_per_image %.2f\n", (cpu_seconds() - cpu) * 1e6 / (double)images_done);
    leat_session_close(s);
    leat_graph_free(g);
    return 0;
}
