/* collisions_test.c -- keys that were chosen so that a hash table would have them all in one place:
 * a search takes no longer than among others, or, where the hash is TensorFlow's, ends with its
 * step. The keys are made for the hashes of map.c and unique.c without a secret. */
#include "test.h"

#include <leat/leat.h>

#include "core/map.h"
#include "core/threadpool.h"

enum { MS = 60000 }; /* for a run, which takes minutes if all keys collide */

static leat_tensor *new_tensor(leat_dtype t, int64_t n)
{
    leat_tensor *x = NULL;
    CHECK_OK(leat_tensor_new(t, leat_shape(n), &x));
    return x;
}

/* Keys of 16 bytes, the second half of which cancels out the first in leat_hash(key, 16, 0). */
static leat_tensor *colliding_strings(int64_t n)
{
    __extension__ typedef unsigned __int128 wide;
    const uint64_t k0 = 0x9e3779b97f4a7c15u, k1 = 0xd1b54a32d192ed03u;
    leat_tensor *x = new_tensor(LEAT_STRING, n);
    leat_string *v = leat_tensor_mutable(x);
    const wide begin = (wide)(k0 ^ 16) * k1;
    for (int64_t i = 0; i < n; i++) {
        uint64_t word[2] = {(uint64_t)i};
        const wide p = (wide)(((uint64_t)begin ^ (uint64_t)(begin >> 64)) ^ word[0]) * k0;
        word[1] = ((uint64_t)p ^ (uint64_t)(p >> 64)) + k1;
        leat_string_set(&v[i], (const char *)word, sizeof(word));
    }
    CHECK(leat_hash(v[0].data, 16, 0) == leat_hash(v[n - 1].data, 16, 0));
    return x;
}

/* Numbers x for which x * odd is i * 2^shift + i % 2^low. */
static leat_tensor *colliding_ints(int64_t n, uint64_t odd, int shift, int low)
{
    leat_tensor *x = new_tensor(LEAT_INT64, n);
    int64_t *v = leat_tensor_mutable(x);
    uint64_t inverse = odd;
    for (int i = 0; i < 6; i++)
        inverse *= 2 - odd * inverse;
    for (int64_t i = 0; i < n; i++)
        v[i] = (int64_t)((((uint64_t)i << shift) | ((uint64_t)i & ((1u << low) - 1))) * inverse);
    return x;
}

static leat_status run(leat_graph *g, leat_feeds feeds, leat_out y, int timeout_ms)
{
    leat_session *s = NULL;
    CHECK_OK(leat_session_open(g, &s, .timeout_ms = timeout_ms));
    leat_status status = leat_session_run(s, feeds, LEAT_NO_FETCH, LEAT_TARGET(y));
    leat_session_close(s);
    return status;
}

static void unique(void)
{
    const int64_t n = 400000;
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_INT64, leat_shape(-1));
    leat_tensor *v = colliding_ints(n, 0x9e3779b97f4a7c15u, 29, 20);
    CHECK_OK(run(g, LEAT_FEED({x, v}), LEAT_OP1("Unique", x), MS));
    CHECK_OK(run(g, LEAT_FEED({x, v}), LEAT_OP2("ListDiff", x, x), MS));
    leat_tensor_unref(v);
    v = colliding_strings(100000);
    x = leat_placeholder(g, LEAT_STRING, leat_shape(-1));
    CHECK_OK(run(g, LEAT_FEED({x, v}), LEAT_OP1("Unique", x), MS));
    leat_tensor_unref(v);
    leat_graph_free(g);
}

static void accidental_hits(void)
{
    const int64_t n = 400000;
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_INT64, leat_shape(-1));
    leat_out column = leat_expand_dims(x, leat_scalar(g, LEAT_INT32, 1));
    leat_tensor *v = colliding_ints(n, 0x9e3779b97f4a7c15u, 32, 20);
    CHECK_OK(run(g, LEAT_FEED({x, v}),
                 LEAT_OP2("ComputeAccidentalHits", column, x, leat_attr_int("num_true", 1)), MS));
    leat_tensor_unref(v);
    leat_graph_free(g);
}

static leat_out table(leat_graph *g, const char *op, leat_dtype key)
{
    return LEAT_OP0(g, op, leat_attr_type("key_dtype", key),
                    leat_attr_type("value_dtype", LEAT_INT64));
}

static void lookup(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_STRING, leat_shape(-1)), found = {0};
    leat_out t = table(g, "MutableHashTableV2", LEAT_STRING);
    leat_out values = leat_fill(leat_shape_of(x), leat_scalar(g, LEAT_INT64, 7));
    leat_out put = LEAT_OP3("LookupTableInsertV2", t, x, values);
    leat_with_control(g, leat_done(put)) found =
        LEAT_OP3("LookupTableFindV2", t, x, leat_scalar(g, LEAT_INT64, 0));
    leat_tensor *v = colliding_strings(100000);
    CHECK_OK(run(g, LEAT_FEED({x, v}), found, MS));
    leat_tensor_unref(v);
    leat_graph_free(g);
}

/* The hash of an int64 is the number itself, as in TensorFlow, whose checkpoints have the buckets.
 */
static void dense(void)
{
    enum { SOME = 200 };
    const int64_t n = 1000000;
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_out x = leat_placeholder(g, LEAT_INT64, leat_shape(-1));
    leat_out t = LEAT_OP2("MutableDenseHashTableV2", leat_scalar(g, LEAT_INT64, -1),
                          leat_scalar(g, LEAT_INT64, -2), leat_attr_type("key_dtype", LEAT_INT64),
                          leat_attr_type("value_dtype", LEAT_INT64),
                          leat_attr_int("initial_num_buckets", 4));
    leat_out put = LEAT_OP3("LookupTableInsertV2", t, x, leat_identity(x));
    leat_out size = LEAT_OP1("LookupTableSizeV2", t);
    leat_out find = LEAT_OP3("LookupTableFindV2", t, x, leat_scalar(g, LEAT_INT64, 0));
    leat_tensor *v = new_tensor(LEAT_INT64, n), *some = new_tensor(LEAT_INT64, SOME), *got = NULL;
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)leat_tensor_mutable(v))[i] = i << 30;
    for (int64_t i = 0; i < SOME; i++)
        ((int64_t *)leat_tensor_mutable(some))[i] = i << 30;
    CHECK_OK(leat_session_open(g, &s, .timeout_ms = 1000));
    CHECK_OK(leat_session_run(s, LEAT_FEED({x, some}), LEAT_NO_FETCH, LEAT_TARGET(leat_done(put))));
    const int64_t begin = leat_now_ns();
    CHECK_ERROR(leat_session_run(s, LEAT_FEED({x, v}), LEAT_NO_FETCH, LEAT_TARGET(leat_done(put))),
                DEADLINE_EXCEEDED, "(LookupTableInsertV2) was running");
    CHECK((leat_now_ns() - begin) / 1000000 < 6000);
    CHECK_OK(leat_session_run(s, LEAT_FEED({x, some}), LEAT_FETCH({find, &got}), LEAT_NO_TARGET));
    for (int64_t i = 0; got && i < SOME; i++)
        CHECK_INT(((const int64_t *)leat_tensor_data(got))[i], i << 30);
    leat_tensor_unref(got);
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({size, &got}), LEAT_NO_TARGET));
    CHECK(leat_tensor_at(got, 0) >= SOME);
    leat_tensor_unref(got);
    leat_tensor_unref(v);
    leat_tensor_unref(some);
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"unique", unique}, {"accidental_hits", accidental_hits},
               {"lookup", lookup}, {"dense", dense});
}
