/* packed_test.c -- elements packed and unpacked; what the buffer of a shuffle takes of memory. */
#include "kernels/dataset/packed.h"

#include <leat/leat.h>
#include <malloc.h>

#include "core/block.h"
#include "test.h"

static leat_tensor *strings(int64_t n)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_STRING, leat_shape(n), &t));
    for (int64_t i = 0; i < n; i++)
        leat_string_set((leat_string *)t->data + i, "a\0bcdefgh", (size_t)(i % 10));
    return t;
}

static leat_tensor *numbers(leat_shape s)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, s, &t));
    for (int64_t i = 0; i < t->count; i++)
        ((float *)t->data)[i] = (float)i;
    return t;
}

static bool same(const leat_tensor *a, const leat_tensor *b)
{
    if (a->dtype != b->dtype || !leat_shape_equal(&a->shape, &b->shape))
        return false;
    if (a->dtype != LEAT_STRING)
        return memcmp(a->data, b->data, leat_tensor_bytes(a)) == 0;
    for (int64_t i = 0; i < a->count; i++) {
        const leat_string *x = (const leat_string *)a->data + i;
        const leat_string *y = (const leat_string *)b->data + i;
        if (x->size != y->size || (x->size && memcmp(x->data, y->data, x->size) != 0))
            return false;
    }
    return true;
}

/* The same tensors again, one by one, two, and more than are copied; with a spare block of another
 * size, and with one that fits. */
static void round_trip(void)
{
    leat_spares spares = {0};
    for (int n = 0; n <= 12; n++)
        for (int again = 0; again < 2; again++) {
            leat_element e = leat_element_new(n), back = {0};
            leat_tensor *want[12];
            for (int i = 0; i < n; i++) {
                leat_tensor *t = i % 5 == 0   ? strings(n + i)
                                 : i % 5 == 1 ? leat_scalar_string("scalar", 6)
                                 : i % 5 == 2 ? numbers(leat_shape(3, n, 1))
                                 : i % 5 == 3 ? leat_scalar_int64(-i)
                                              : numbers(leat_shape(0, 4));
                CHECK_OK(leat_tensor_clone(NULL, t, &want[i]));
                e.v[i] = t;
            }
            leat_packed *p = leat_element_pack(&e, &spares);
            CHECK(e.n == 0 && !e.v);
            CHECK_OK(leat_element_unpack(p, &back));
            CHECK_INT(back.n, n);
            for (int i = 0; i < n && i < back.n; i++) {
                CHECK(same(back.v[i], want[i]));
                leat_tensor_unref(want[i]);
            }
            leat_element_clear(&back);
            leat_packed_spare(p, &spares);
        }
    leat_spares_release(&spares);
}

/* Tensors that have other owners, are large, or are no data, are shared. */
static void shared(void)
{
    leat_tensor *all = numbers(leat_shape(10, 10)), *variant = NULL, *back_row;
    leat_element e = leat_element_new(4), back = {0};
    CHECK_OK(leat_tensor_rows(all, 2, 3, &e.v[0]));
    e.v[1] = numbers(leat_shape(100, 100));
    CHECK_OK(leat_tensor_new(LEAT_VARIANT, leat_shape(), &variant));
    e.v[2] = variant;
    e.v[3] = leat_scalar_int64(5);
    leat_tensor *row = e.v[0], *large = e.v[1];
    leat_spares spares = {0};
    leat_packed *p = leat_element_pack(&e, &spares);
    CHECK_OK(leat_element_unpack(p, &back));
    back_row = back.v[0];
    CHECK(back_row == row && back.v[1] == large && back.v[2] == variant);
    CHECK(((const float *)back_row->data)[0] == 20);
    leat_element_clear(&back);
    leat_packed_free(p);
    leat_spares_release(&spares);
    CHECK(leat_tensor_sole(all));
    leat_tensor_unref(all);
}

static leat_status to_image(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out,
                            int n_out)
{
    return leat_tensor_new(LEAT_UINT8, leat_shape(32, 32, 3), out);
}

static leat_status to_string(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out,
                             int n_out)
{
    static const char bytes[1000];
    *out = leat_scalar_string(bytes, sizeof(bytes));
    return NULL;
}

/* The memory of a shuffle buffer is at most a fifth more than the bytes of its elements. */
static void memory(void)
{
    enum { N = 20000 };
    static const struct {
        leat_dataset_fn fn;
        leat_dtype type;
        double bytes;
    } rows[] = {{to_string, LEAT_STRING, 1000}, {to_image, LEAT_UINT8, 32 * 32 * 3}};
    if (LEAT_ASAN || mallinfo2().uordblks == 0)
        SKIP("a sanitizer has an allocator of its own");
    for (int i = 0; i < 2; i++) {
        leat_dataset *d;
        leat_data_iterator *it;
        leat_tensor *t = NULL;
        CHECK_OK(leat_dataset_from_range(0, 1 << 30, 1, &d));
        CHECK_OK(leat_dataset_map(d, rows[i].fn, NULL, &rows[i].type, 1, &d));
        CHECK_OK(leat_dataset_shuffle(d, N, 1, &d));
        CHECK_OK(leat_data_iterator_open(d, &it));
        const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
        CHECK_OK(leat_data_iterator_next(it, &t, 1));
        const size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
        const double ratio = (double)(after - before) / (N * rows[i].bytes);
        CHECK(ratio > 0.9 && ratio < 1.2);
        leat_tensor_unref(t);
        leat_data_iterator_close(it);
        leat_dataset_free(d);
    }
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"round_trip", round_trip}, {"shared", shared}, {"memory", memory});
}
