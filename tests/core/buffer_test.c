/* buffer_test.c -- blocks, the CPU's allocator, limits, managed elements, blocks that change
 * threads. */
#include "core/buffer.h"

#include <pthread.h>

#include "core/block.h"
#include "test.h"

static void sizes(void)
{
    static const int64_t counts[] = {
        0,     1,     63,    64,    65,    960,    961,     1024,          1025,    4000,
        32703, 32704, 32705, 32768, 32769, 100000, 1 << 20, (1 << 20) + 1, 5 << 20, 9000001};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        leat_buffer *b = NULL;
        CHECK_OK(leat_buffer_new(NULL, LEAT_UINT8, counts[i], &b));
        CHECK_INT((uintptr_t)b->data % LEAT_ALIGN, 0);
        CHECK_INT(b->size, counts[i]);
        memset(b->data, 1, b->size);
        CHECK(leat_buffer_sole(b));
        leat_buffer_ref(b);
        CHECK(!leat_buffer_sole(b));
        b->cached = true;
        CHECK(leat_buffer_sole(b));
        leat_buffer_unref(b);
        leat_buffer_unref(b);
    }
    leat_buffer_unref(NULL);
}

/* All blocks of all classes at once: none may overlap another. */
static void blocks(void)
{
    enum { N = 3000 };
    unsigned char **p = malloc(N * sizeof *p);
    size_t size[N];
    int bad = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            size[i] = (size_t)i * 131 % (i % 10 ? 2000 : LEAT_BLOCK_MAX) + 1;
            p[i] = leat_block_alloc(size[i]);
            bad += (uintptr_t)p[i] % LEAT_ALIGN != 0;
            memset(p[i], i, size[i]);
        }
        for (int i = 0; i < N; i++) {
            bad += p[i][0] != (unsigned char)i || p[i][size[i] - 1] != (unsigned char)i;
            leat_block_free(p[i], size[i]);
        }
    }
    CHECK_INT(bad, 0);
    free(p);
}

static void *free_all(void *arg)
{
    leat_tensor **t = arg;
    for (int i = 0; i < 2000; i++)
        leat_tensor_unref(t[i]);
    return NULL;
}

/* One thread allocates, another frees: blocks come back through the shared lists. */
static void other_thread(void)
{
    static leat_tensor *t[2000];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2000; i++)
            t[i] = leat_scalar_int32(i);
        for (int i = 0; i < 2000; i++)
            CHECK(leat_tensor_at(t[i], 0) == i);
        pthread_t thread;
        pthread_create(&thread, NULL, free_all, t);
        pthread_join(thread, NULL);
    }
}

static void counted(void)
{
    leat_allocator *a = leat_cpu_allocator();
    size_t before = a->in_use;
    leat_buffer *b;
    CHECK_OK(leat_buffer_new(NULL, LEAT_FLOAT, 1 << 20, &b));
    CHECK_INT(a->in_use - before, 4 << 20);
    CHECK(a->peak >= 4 << 20);
    a->limit = a->in_use + 1000000;
    leat_tensor *t = NULL;
    leat_shape shape = leat_shape(1000, 1000);
    CHECK_ERROR(leat_tensor_alloc(NULL, LEAT_FLOAT, &shape, &t), RESOURCE_EXHAUSTED,
                "OOM when allocating tensor with shape[1000,1000] and type float on CPU");
    CHECK(t == NULL);
    a->limit = 0;
    leat_buffer_unref(b);
    CHECK_INT(a->in_use, before);
}

static void too_large(void)
{
    leat_buffer *b = NULL;
    CHECK_ERROR(leat_buffer_new(NULL, LEAT_FLOAT, INT64_MAX / 2, &b), INVALID_ARGUMENT, "2**63");
    CHECK_ERROR(leat_buffer_new(NULL, LEAT_FLOAT, -1, &b), INVALID_ARGUMENT, "2**63");
    CHECK_ERROR(leat_buffer_new(NULL, LEAT_INVALID, 1, &b), INVALID_ARGUMENT, "invalid");
    CHECK_ERROR(leat_buffer_new(NULL, (leat_dtype)(LEAT_FLOAT + LEAT_REF), 1, &b), INVALID_ARGUMENT,
                "float_ref");
    CHECK_ERROR(leat_buffer_new(NULL, LEAT_FLOAT, INT64_C(1) << 50, &b), RESOURCE_EXHAUSTED,
                "OOM when allocating");
    CHECK(b == NULL);
}

/* Freed memory is found again, so that steps of the same shapes map nothing new. */
static void reused(void)
{
    if (LEAT_ASAN)
        SKIP("every buffer is fresh under AddressSanitizer");
    leat_buffer *b;
    CHECK_OK(leat_buffer_new(NULL, LEAT_FLOAT, 3 << 20, &b));
    void *data = b->data;
    leat_buffer_unref(b);
    CHECK_OK(leat_buffer_new(NULL, LEAT_FLOAT, 3 << 20, &b));
    CHECK(b->data == data);
    leat_buffer_unref(b);
    leat_buffer *many[200]; /* more than are kept */
    for (int i = 0; i < 200; i++)
        CHECK_OK(leat_buffer_new(NULL, LEAT_FLOAT, 10000 + i * 1000, &many[i]));
    for (int i = 0; i < 200; i++)
        leat_buffer_unref(many[i]);
}

static int objects;
static void object_ref(void *object)
{
    objects++;
}
static void object_unref(void *object)
{
    objects--;
}

static void managed(void)
{
    static const leat_variant_type type = {"counter", object_ref, object_unref};
    leat_buffer *b;
    CHECK_OK(leat_buffer_new(NULL, LEAT_VARIANT, 3, &b));
    leat_variant *v = b->data;
    CHECK(v[2].type == NULL);
    objects = 1;
    leat_variant one = {&type, &objects};
    v[0] = one;
    CHECK_OK(leat_elements_copy(LEAT_VARIANT, &v[1], &v[0], 1));
    CHECK_OK(leat_elements_copy(LEAT_VARIANT, &v[1], &v[0], 1));
    CHECK_INT(objects, 2);
    leat_buffer_unref(b);
    CHECK_INT(objects, 0);

    leat_handle *h = leat_handle_new("/cpu:0", "c", "name", "Queue", 7);
    CHECK_OK(leat_buffer_new(NULL, LEAT_RESOURCE, 2, &b));
    CHECK_OK(leat_elements_copy(LEAT_RESOURCE, b->data, &h, 1));
    CHECK_INT(h->refs, 2);
    leat_buffer_unref(b);
    CHECK_INT(h->refs, 1);
    CHECK_STR(h->type_name, "Queue");
    leat_handle_unref(h);
    leat_handle_unref(NULL);
}

static void *device_alloc(leat_allocator *a, size_t size)
{
    return leat_cpu_memory.alloc(&leat_cpu_memory, size);
}
static void device_free(leat_allocator *a, void *p, size_t size)
{
    leat_cpu_memory.free(&leat_cpu_memory, p, size);
}

static void other_allocator(void)
{
    leat_allocator device = {
        .name = "GPU:0", .alloc = device_alloc, .free = device_free, .limit = 5000};
    leat_tensor *t = NULL, *copy = NULL;
    leat_shape shape = leat_shape(1000);
    CHECK_OK(leat_tensor_alloc(&device, LEAT_FLOAT, &shape, &t));
    memset(t->data, 0, 4000);
    CHECK_INT(device.in_use, 4000);
    CHECK_ERROR(leat_tensor_clone(&device, t, &copy), RESOURCE_EXHAUSTED, "type float on GPU:0");
    CHECK_OK(leat_tensor_clone(NULL, t, &copy));
    leat_tensor_unref(copy);
    leat_tensor_unref(t);
    CHECK_INT(device.in_use, 0);
    CHECK_INT(device.peak, 4000);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"sizes", sizes}, {"blocks", blocks}, {"other_thread", other_thread},
               {"counted", counted}, {"too_large", too_large}, {"reused", reused},
               {"managed", managed}, {"other_allocator", other_allocator});
}
