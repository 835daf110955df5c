/* run.h -- for tests of kernels: one op on given tensors, run by a session. */
#ifndef LEAT_TESTS_RUN_H
#define LEAT_TESTS_RUN_H

#include <leat/leat.h>

#include "test.h"

static inline leat_tensor *tensor_of(leat_dtype t, leat_shape s)
{
    leat_tensor *x = NULL;
    CHECK_OK(leat_tensor_new(t, s, &x));
    return x;
}

/* Numbers from 0 to m - 1, which depend on seed. */
static inline uint32_t random_to(uint64_t *seed, uint32_t m)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % m;
}

/* The first output of an op of n inputs; args may be NULL. threads: of one kernel. */
static inline leat_status run_op(const char *op, leat_tensor *const *in, int n,
                                 const leat_arg *args, int threads, leat_tensor **out)
{
    leat_graph *g = leat_graph_new();
    leat_arg all[24];
    leat_feed feeds[8];
    int k = 0;
    for (int i = 0; i < n; i++) {
        leat_out x = leat_placeholder(g, leat_tensor_dtype(in[i]), leat_shape_unknown());
        feeds[i] = (leat_feed){x, in[i]};
        all[k++] = leat_in(x);
    }
    for (; args && args->kind != LEAT_ARG_END; args++)
        all[k++] = *args;
    all[k] = (leat_arg){0};
    leat_out y = leat_op_at(LEAT_AT, g, op, all);
    leat_session *s = NULL;
    leat_status bad = leat_graph_status(g);
    if (!bad)
        bad = leat_session_open(g, &s, .intra_op_threads = threads);
    if (!bad)
        bad = leat_session_run(s, (leat_feeds){feeds, n}, LEAT_FETCH({y, out}), LEAT_NO_TARGET);
    leat_session_close(s);
    leat_graph_free(g);
    return bad;
}

#endif
