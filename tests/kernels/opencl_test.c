/* opencl_test.c -- GPUs by OpenCL, on the devices that PoCL makes of the CPU. */
#include "test.h"

#include <dirent.h>
#include <leat/leat.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "kernels/opencl/cl.h"
#include "opencl_devices.h"

static void product(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, 0, 0, 3};
    leat_tensor *ta, *tb, *out = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(2, 3), a, &ta));
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(3, 2), b, &tb));
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 3));
    leat_out y = leat_placeholder(g, LEAT_FLOAT, leat_shape(3, 2));
    leat_out z = leat_add(leat_matmul(x, y), leat_scalar(g, LEAT_FLOAT, 10));
    CHECK_OK(leat_session_open(g, &s, .devices = "gpu:2"));
    CHECK_OK(
        leat_session_run(s, LEAT_FEED({x, ta}, {y, tb}), LEAT_FETCH({z, &out}), LEAT_NO_TARGET));
    const float want[] = {15, 19, 24, 28};
    for (int i = 0; i < 4 && out; i++)
        CHECK_NEAR(((const float *)leat_tensor_data(out))[i], want[i], 1e-5);
    leat_tensor_unref(ta);
    leat_tensor_unref(tb);
    leat_tensor_unref(out);
    leat_session_close(s);
    leat_graph_free(g);
}

/* ---- The same as on the CPU ---- */

enum { MOST = 6 };

/* Values in [-1, 1), always the same. */
static leat_tensor *drawn(leat_shape shape)
{
    static uint32_t x = 1;
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, shape, &t));
    for (int64_t i = 0; i < leat_shape_count(&shape); i++) {
        x = x * 1664525 + 1013904223;
        ((float *)leat_tensor_mutable(t))[i] = (float)(x >> 8) / (1 << 23) - 1;
    }
    return t;
}

/* Runs the graph on both devices, `runs` times: the values, relative to their largest element,
 * differ by no more than `most`. */
static void compare(leat_graph *g, const leat_feed *feeds, int n_feeds, const leat_out *y, int n,
                    int runs, double most)
{
    static const char *const devices[] = {"cpu:1", "cpu:1,gpu:1"};
    leat_tensor *got[2][MOST] = {{NULL}};
    leat_session *s[2];
    leat_fetch fetches[MOST];
    for (int d = 0; d < 2; d++)
        CHECK_OK(leat_session_open(g, &s[d], .devices = devices[d]));
    for (int r = 0; r < runs; r++) {
        for (int d = 0; d < 2; d++) {
            for (int i = 0; i < n; i++)
                fetches[i] = (leat_fetch){y[i], &got[d][i]};
            CHECK_OK(leat_session_run(s[d], (leat_feeds){feeds, n_feeds},
                                      (leat_fetches){fetches, n}, LEAT_NO_TARGET));
        }
        for (int i = 0; i < n; i++) {
            double size = 0, off = 0;
            for (int64_t e = 0; e < leat_tensor_count(got[0][i]); e++) {
                const double a = leat_tensor_at(got[0][i], e), b = leat_tensor_at(got[1][i], e);
                size = fabs(a) > size ? fabs(a) : size;
                off = fabs(a - b) <= off ? off : fabs(a - b);
            }
            CHECK(size > 0 && off <= most * size);
            for (int d = 0; d < 2; d++)
                leat_tensor_unref(got[d][i]);
        }
    }
    for (int d = 0; d < 2; d++)
        leat_session_close(s[d]);
}

/* Convolutions that minimal filtering computes, with a bias and an activation, and gradients: tiles
 * that reach over the edges, in several chunks, and numbers of channels that do not fill panels. */
static void minimal(void)
{
    leat_graph *g = leat_graph_new();
    leat_tensor *t[3] = {drawn(leat_shape(24, 9, 14, 48)), drawn(leat_shape(5, 5, 48, 80)),
                         drawn(leat_shape(80))};
    leat_out x[3], y[4];
    leat_grad_value dx[2];
    leat_feed feeds[3];
    for (int i = 0; i < 3; i++) {
        x[i] = leat_placeholder(g, LEAT_FLOAT, leat_tensor_shape(t[i]));
        feeds[i] = (leat_feed){x[i], t[i]};
    }
    leat_out z = leat_conv2d(x[0], x[1], 1, 1, "SAME");
    y[0] = leat_relu(leat_bias_add(z, x[2]));
    y[1] = leat_tanh(leat_bias_add(leat_conv2d(x[0], x[1], 1, 1, "VALID"), x[2]));
    const leat_out loss = leat_reduce_sum(leat_square(z));
    CHECK_OK(leat_gradients(&loss, 1, x, 2, dx));
    y[2] = dx[0].value;
    y[3] = dx[1].value;
    compare(g, feeds, 3, y, 4, 1, 1e-4);
    for (int i = 0; i < 3; i++)
        leat_tensor_unref(t[i]);
    leat_graph_free(g);
}

/* Trees of element-wise ops, with operands that are single elements, or are broadcast in other
 * ways; after some runs they are functions of their own. */
static void trees(void)
{
    leat_graph *g = leat_graph_new();
    leat_tensor *t[3] = {drawn(leat_shape(7, 33)), drawn(leat_shape(7, 33)), drawn(leat_shape(33))};
    leat_out x[3], y[3];
    leat_feed feeds[3];
    for (int i = 0; i < 3; i++) {
        x[i] = leat_placeholder(g, LEAT_FLOAT, leat_tensor_shape(t[i]));
        feeds[i] = (leat_feed){x[i], t[i]};
    }
    const leat_out half = leat_scalar(g, LEAT_FLOAT, 0.5);
    y[0] = leat_add(leat_mul(leat_sigmoid(x[0]), leat_tanh(x[1])),
                    leat_mul(half, leat_square(leat_sub(x[0], x[1]))));
    y[1] = leat_mul(leat_add(leat_exp(x[0]), x[2]), leat_neg(x[1])); /* x[2] is a row */
    y[2] = leat_sub(half, leat_square(leat_mul(x[2], half)));
    compare(g, feeds, 3, y, 3, 12, 1e-6);
    for (int i = 0; i < 3; i++)
        leat_tensor_unref(t[i]);
    leat_graph_free(g);
}

/* ---- What the driver refuses ---- */

typedef struct pair {
    leat_graph *g;
    leat_out x, on_gpu, on_cpu;
    leat_tensor *fed;
} pair;

/* A node on the first GPU and one on the CPU. */
static pair pair_new(void)
{
    pair p = {.g = leat_graph_new()};
    leat_with_device(p.g, "/cpu:0") p.x = leat_placeholder(p.g, LEAT_FLOAT, leat_shape(4));
    leat_with_device(p.g, "/gpu:0") p.on_gpu = leat_square(leat_neg(p.x));
    leat_with_device(p.g, "/cpu:0") p.on_cpu = leat_neg(p.x);
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(4), (const float[]){1, 2, 3, 4}, &p.fed));
    return p;
}

static void pair_free(pair *p)
{
    leat_tensor_unref(p->fed);
    leat_graph_free(p->g);
}

/* Fetches the last element. */
static leat_status last_of(leat_session *s, const pair *p, leat_out y, double *out)
{
    leat_tensor *t = NULL;
    leat_status status =
        leat_session_run(s, LEAT_FEED({p->x, p->fed}), LEAT_FETCH({y, &t}), LEAT_NO_TARGET);
    if (!status)
        *out = leat_tensor_at(t, 3);
    leat_tensor_unref(t);
    return status;
}

/* A program that the driver cannot build: the error has what its compiler wrote, and the session
 * goes on. */
static void build_error(void)
{
    pair p = pair_new();
    leat_session *s;
    double value = 0;
    CHECK_OK(leat_session_open(p.g, &s, .devices = "gpu:1"));
    setenv("LEAT_OPENCL_OPTIONS", "-Dfloat=no_such_type", 1);
    for (int i = 0; i < 2; i++) {
        leat_status status = last_of(s, &p, p.on_gpu, &value);
        CHECK_INT(leat_status_code(status), LEAT_INTERNAL);
        const char *m = status ? leat_status_message(status) : "";
        CHECK(strstr(m, "expressions.cl, cwise.cl with the options '-cl-std=CL1.2 "));
        CHECK(strstr(m, "cannot be compiled for /job:localhost/replica:0/task:0/device:GPU:0"));
        CHECK(strstr(m, "CL_BUILD_PROGRAM_FAILURE (-11)"));
        CHECK(strstr(m, "error: ") && strstr(m, "no_such_type"));
        leat_status_free(status);
        CHECK_OK(last_of(s, &p, p.on_cpu, &value));
        CHECK_NEAR(value, -4, 0);
    }
    unsetenv("LEAT_OPENCL_OPTIONS");
    CHECK_OK(last_of(s, &p, p.on_gpu, &value));
    CHECK_NEAR(value, 16, 0);
    leat_session_close(s);
    pair_free(&p);
}

/* The number of calls after which the driver says that the device is gone; -1: never. */
static atomic_int calls_left = -1;
static leat_cl_functions real;

static bool is_gone(void)
{
    int left = atomic_load(&calls_left);
    while (left > 0 && !atomic_compare_exchange_weak(&calls_left, &left, left - 1))
        ;
    return left == 0;
}

enum { GONE = -36 }; /* CL_INVALID_COMMAND_QUEUE */

static int32_t launch(cl_queue q, cl_kernel k, uint32_t dims, const size_t *offset,
                      const size_t *global, const size_t *local, uint32_t n, const cl_event *after,
                      cl_event *out)
{
    return is_gone() ? GONE
                     : real.EnqueueNDRangeKernel(q, k, dims, offset, global, local, n, after, out);
}

static int32_t read_buffer(cl_queue q, cl_memory m, uint32_t blocking, size_t offset, size_t n,
                           void *to, uint32_t n_after, const cl_event *after, cl_event *out)
{
    return is_gone() ? GONE
                     : real.EnqueueReadBuffer(q, m, blocking, offset, n, to, n_after, after, out);
}

static int32_t write_buffer(cl_queue q, cl_memory m, uint32_t blocking, size_t offset, size_t n,
                            const void *from, uint32_t n_after, const cl_event *after,
                            cl_event *out)
{
    return is_gone()
               ? GONE
               : real.EnqueueWriteBuffer(q, m, blocking, offset, n, from, n_after, after, out);
}

static int32_t marker(cl_queue q, uint32_t n, const cl_event *after, cl_event *out)
{
    return is_gone() ? GONE : real.EnqueueMarkerWithWaitList(q, n, after, out);
}

static int32_t barrier(cl_queue q, uint32_t n, const cl_event *after, cl_event *out)
{
    return is_gone() ? GONE : real.EnqueueBarrierWithWaitList(q, n, after, out);
}

/* The device is lost at any point of a step: the step ends with an error that names it, and so do
 * later ones; the CPU goes on, and the session can be closed. */
static void lost(void)
{
    pair p = pair_new();
    double value = 0;
    real = leat_cl;
    leat_cl.EnqueueNDRangeKernel = launch;
    leat_cl.EnqueueReadBuffer = read_buffer;
    leat_cl.EnqueueWriteBuffer = write_buffer;
    leat_cl.EnqueueMarkerWithWaitList = marker;
    leat_cl.EnqueueBarrierWithWaitList = barrier;
    for (int after = 0; after < 24; after++) {
        leat_session *s;
        leat_status status = NULL;
        CHECK_OK(leat_session_open(p.g, &s, .devices = "gpu:1", .timeout_ms = 60000));
        atomic_store(&calls_left, after);
        for (int i = 0; i < 20 && !status; i++)
            status = last_of(s, &p, p.on_gpu, &value);
        CHECK_INT(leat_status_code(status), LEAT_INTERNAL);
        CHECK(status && strstr(leat_status_message(status), "CL_INVALID_COMMAND_QUEUE (-36)"));
        CHECK(status && strstr(leat_status_message(status), "/device:GPU:0"));
        leat_status_free(status);
        CHECK_ERROR(last_of(s, &p, p.on_gpu, &value), INTERNAL, "/device:GPU:0");
        CHECK_OK(last_of(s, &p, p.on_cpu, &value));
        CHECK_NEAR(value, -4, 0);
        leat_session_close(s);
        atomic_store(&calls_left, -1);
    }
    leat_cl = real;
    leat_session *s;
    CHECK_OK(leat_session_open(p.g, &s, .devices = "gpu:1"));
    CHECK_OK(last_of(s, &p, p.on_gpu, &value));
    CHECK_NEAR(value, 16, 0);
    leat_session_close(s);
    pair_free(&p);
}

/* ---- What is kept on disk ---- */

static int count_files(const char *folder, const char *prefix)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    if (d)
        closedir(d);
    return n;
}

static void spoil_files(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "r+");
        if (f) {
            fputs("spoiled", f);
            fclose(f);
        }
    }
    if (d)
        closedir(d);
}

/* Programs and tiles are kept in LEAT_OPENCL_CACHE; a file that was spoiled is written again. */
static void kept(void)
{
    char folder[] = "/tmp/leat-opencl-XXXXXX", command[64];
    CHECK(mkdtemp(folder) != NULL);
    setenv("LEAT_OPENCL_CACHE", folder, 1);
    for (int i = 0; i < 3; i++) {
        product();
        CHECK_INT(count_files(folder, "tiles-"), 1);
        CHECK(count_files(folder, "program-") >= 3); /* products, element-wise ops, moves */
        if (i == 0)
            spoil_files(folder);
    }
    unsetenv("LEAT_OPENCL_CACHE");
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
}

int main(int argc, char **argv)
{
    setenv("POCL_DEVICES", "basic basic", 0);
    if (!test_has_gpus(2)) {
        printf("skipped: there are no two OpenCL devices; pocl-opencl-icd makes them\n");
        return 0;
    }
    return RUN(argc, argv, {"product", product}, {"minimal", minimal}, {"trees", trees},
               {"build_error", build_error}, {"lost", lost}, {"kept", kept});
}
