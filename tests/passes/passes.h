/* passes.h -- for tests of passes: compiles a request up to some pass, looks at what is left, and
 * compares what a session computes with the passes and without them. */
#ifndef LEAT_TESTS_PASSES_H
#define LEAT_TESTS_PASSES_H

#include "test.h"

#include <leat/leat.h>
#include "core/buffer.h"
#include "core/threadpool.h"
#include "passes/pass.h"
#include "runtime/plan.h"

typedef leat_status (*pass_fn)(leat_compile *c);

typedef struct compiled {
    leat_compile c;
    leat_target target;
    leat_device *device;
    leat_pool *pool;
} compiled;

static inline bool any_kernel(const leat_node *n, const char *device_type)
{
    return n && device_type;
}

/* Prunes, places, then runs the passes of the NULL-ended list. */
static inline void compile_to(compiled *x, leat_graph *g, const leat_request *q,
                              const pass_fn *passes)
{
    x->pool = leat_pool_new(0, "test");
    CHECK_OK(leat_device_new(&(leat_device_choice){.kind = leat_host_kind(), .job = "localhost"}, 1,
                             x->pool, &x->device));
    x->target = (leat_target){x->device->name, x->device->parsed, 1};
    x->c = (leat_compile){.source = g,
                          .devices = &x->target,
                          .n_devices = 1,
                          .has_kernel = any_kernel,
                          .evaluate = leat_evaluate_node,
                          .arg = x->device};
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_pass_prune(&x->c, q));
    CHECK_OK(leat_pass_place(&x->c));
    for (; *passes; passes++)
        CHECK_OK((*passes)(&x->c));
}
#define COMPILE(x, g, q, ...) compile_to((x), (g), (q), (const pass_fn[]){__VA_ARGS__, NULL})

static inline void compiled_free(compiled *x)
{
    leat_graph_free(x->c.graph);
    leat_device_close(x->device);
    leat_pool_free(x->pool);
}

static inline int count_op(const compiled *x, const char *op) /* NULL: all */
{
    int n = 0;
    for (int i = 0; i < x->c.graph->n_nodes; i++)
        n += !x->c.graph->nodes[i]->dead && (!op || leat_node_is(x->c.graph->nodes[i], op));
    return n;
}

/* The output that the i-th _Retval gets. */
static inline leat_out fetched(const compiled *x, int i)
{
    for (int k = 0; k < x->c.graph->n_nodes; k++) {
        const leat_node *n = x->c.graph->nodes[k];
        if (!n->dead && leat_node_is(n, "_Retval") && leat_node_int(n, "index") == i)
            return n->in[0];
    }
    return (leat_out){0};
}

static inline bool same_bytes(const leat_tensor *a, const leat_tensor *b)
{
    return a && b && a->dtype == b->dtype && leat_shape_equal(&a->shape, &b->shape) &&
           memcmp(a->data, b->data, leat_tensor_bytes(a)) == 0;
}

/* With and without the passes, y is the same, bit for bit. */
static inline void check_same(leat_graph *g, leat_feeds feeds, leat_out y)
{
    leat_tensor *t[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        leat_session *s;
        CHECK_OK(leat_session_open(g, &s, .no_optimization = i == 0));
        CHECK_OK(leat_session_run(s, feeds, LEAT_FETCH({y, &t[i]}), LEAT_NO_TARGET));
        leat_session_close(s);
    }
    CHECK(same_bytes(t[0], t[1]));
    leat_tensor_unref(t[0]);
    leat_tensor_unref(t[1]);
}

static inline leat_tensor *floats(leat_shape shape, const float *v)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, shape, v, &t));
    return t;
}

static inline leat_out floats_const(leat_graph *g, leat_shape shape, const float *v)
{
    leat_tensor *t = floats(shape, v);
    leat_out y = leat_const(g, t);
    leat_tensor_unref(t);
    return y;
}

#endif
