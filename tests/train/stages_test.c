/* stages_test.c -- nets whose stages are on several devices: what a step computes is the same on
 * any number of devices and with any number of micro-batches in flight; no more are in flight than
 * allowed; devices work at the same time. */
#include "test.h"

#include <leat/leat.h>
#include <leat/extend.h>
#include <limits.h>
#include <stdatomic.h>
#include <unistd.h>

#include "guarded_device.h"
#include "mlp.h"

enum { STAGES = 3, BATCH = 24, IN = 10, UNITS = 16, CLASSES = 4, STEPS = 5 };

/* ---- Marks: ops that count what is in flight at a stage, and which stages work at once ---- */

static struct {
    atomic_int in_flight[STAGES], most[STAGES];
    atomic_int at_work, together; /* stages between begin and end of a mark; the most at once */
    int pause_us;
} marks;

static void raise_to(atomic_int *most, int v)
{
    int m = atomic_load(most);
    while (v > m && !atomic_compare_exchange_weak(most, &m, v))
        ;
}

static leat_status mark_run(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const int stage = (int)leat_node_int(n, "stage");
    raise_to(&marks.together, atomic_fetch_add(&marks.at_work, 1) + 1);
    if (strcmp(leat_node_op(n), "MarkForward") == 0)
        raise_to(&marks.most[stage], atomic_fetch_add(&marks.in_flight[stage], 1) + 1);
    usleep((useconds_t)marks.pause_us);
    if (strcmp(leat_node_op(n), "MarkBackward") == 0)
        atomic_fetch_sub(&marks.in_flight[stage], 1);
    atomic_fetch_sub(&marks.at_work, 1);
    leat_kernel_set(k, 0, leat_tensor_ref((leat_tensor *)leat_kernel_in(k, 0)));
    return NULL;
}

static leat_status mark_grad(leat_grad *g)
{
    const int64_t stage = leat_node_int(leat_grad_node(g), "stage");
    return leat_grad_in(
        g, 0, LEAT_OP1("MarkBackward", leat_grad_out(g, 0), leat_attr_int("stage", stage)));
}

static const leat_op_def mark_ops[] = {
    {.name = "MarkForward",
     .inputs = "x: float",
     .outputs = "y: float",
     .attrs = "stage: int",
     .shape = leat_shape_unchanged,
     .grad = mark_grad,
     .flags = LEAT_OP_STATEFUL},
    {.name = "MarkBackward",
     .inputs = "x: float",
     .outputs = "y: float",
     .attrs = "stage: int",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
};
static const leat_kernel_def mark_kernels[] = {
    {.op = "MarkForward", .run = mark_run},
    {.op = "MarkBackward", .run = mark_run},
};

/* ---- The net ---- */

typedef struct layer {
    int stage;
    bool marked;
} layer;

static leat_out dense(leat_graph *g, leat_out x, int64_t in, int64_t units, int seed)
{
    leat_out w =
        leat_get_variable(g, "w", leat_shape(in, units),
                          .initializer = leat_random_uniform_initializer(-0.5, 0.5, .seed = seed));
    leat_out b = leat_get_variable(
        g, "b", leat_shape(units),
        .initializer = leat_random_uniform_initializer(-0.5, 0.5, .seed = seed + 9));
    return leat_xw_plus_b(x, w, b);
}

static void build_layer(leat_graph *g, void *arg, const leat_out *batch, const leat_out *in,
                        leat_out *out)
{
    const layer *l = arg;
    char name[16];
    leat_out x = l->stage ? in[0] : batch[0], y = {0};
    snprintf(name, sizeof(name), "layer%d", l->stage);
    const bool last = l->stage == STAGES - 1;
    leat_with_variable_scope(g, name) y =
        dense(g, x, l->stage ? UNITS : IN, last ? CLASSES : UNITS, l->stage + 1);
    if (l->marked) /* where a gradient comes back, which is not so of the batch */
        y = LEAT_OP1("MarkForward", y, leat_attr_int("stage", l->stage));
    out[0] = last ? leat_reduce_mean(leat_softmax_cross_entropy(y, batch[1])) : leat_tanh(y);
}

typedef struct net {
    leat_graph *g;
    leat_out x, y, loss, train, init, vars[2 * STAGES];
    int n_vars;
    leat_optimizer *opt;
} net;

/* devices: how many of this kind share the stages. */
static void build_net(net *n, const char *kind, int devices, int towers, bool marked,
                      const leat_pipeline_options *o)
{
    static layer layers[STAGES];
    char names[STAGES][32];
    leat_stage stages[STAGES] = {{0}};
    leat_var_grad *grads[4];
    int n_vars = 0;
    leat_graph *g = n->g = leat_graph_new();
    n->x = leat_placeholder(g, LEAT_FLOAT, leat_shape(BATCH, IN));
    n->y = leat_placeholder(g, LEAT_FLOAT, leat_shape(BATCH, CLASSES));
    leat_out axis = leat_scalar(g, LEAT_INT32, 0);
    for (int t = 0; t < towers; t++) {
        for (int s = 0; s < STAGES; s++) {
            layers[s] = (layer){s, marked};
            snprintf(names[s], sizeof(names[s]), "/device:%s:%d", kind, (t + s) % devices);
            stages[s] = (leat_stage){.device = names[s], .build = build_layer, .arg = &layers[s]};
        }
        leat_out batch[] = {n->x, n->y};
        for (int i = 0; towers > 1 && i < 2; i++)
            batch[i] = leat_output(leat_split(axis, batch[i], towers), t);
        leat_with_variable_scope(g, leat_variable_scope_name(g), .reuse = LEAT_AUTO_REUSE)
            grads[t] =
                leat_pipeline_gradients_at(LEAT_AT, stages, STAGES, batch, 2, o, &n->loss, &n_vars);
    }
    n->opt = leat_gradient_descent(.learning_rate = 0.5);
    leat_var_grad *all = towers > 1 ? leat_average_gradients(grads, towers, n_vars) : grads[0];
    n->train = leat_apply_gradients(n->opt, all, n_vars);
    n->init = leat_global_variables_initializer(g);
    n->n_vars = n_vars;
    for (int i = 0; i < n_vars; i++)
        n->vars[i] = leat_variable_value(all[i].var);
    for (int t = 0; t < towers; t++)
        free(grads[t]);
    if (towers > 1)
        free(all);
    CHECK_OK(leat_graph_status(g));
    CHECK_INT(n_vars, 2 * STAGES);
}

static void net_free(net *n)
{
    leat_optimizer_free(n->opt);
    leat_graph_free(n->g);
}

static leat_tensor *x_fed, *y_fed;

/* All weights after some steps, and the last loss, in one array; free with free(). */
static float *train(net *n, const char *spec, int64_t *count_out)
{
    enum { MOST = 4096 };
    float *all = calloc(MOST, sizeof(*all));
    leat_session *s = NULL;
    leat_tensor *loss = NULL;
    int64_t at = 0;
    CHECK_OK(leat_session_open(n->g, &s, .devices = spec, .inter_op_threads = 4,
                               .allow_soft_placement = true, .timeout_ms = 60000));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(n->init)));
    for (int i = 0; i < STEPS; i++) {
        leat_tensor_unref(loss);
        loss = NULL;
        CHECK_OK(leat_session_run(s, LEAT_FEED({n->x, x_fed}, {n->y, y_fed}),
                                  LEAT_FETCH({n->loss, &loss}), LEAT_TARGET(n->train)));
    }
    all[at++] = loss ? (float)leat_tensor_at(loss, 0) : NAN;
    leat_tensor_unref(loss);
    for (int i = 0; i < n->n_vars; i++) {
        leat_tensor *t = NULL;
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({n->vars[i], &t}), LEAT_NO_TARGET));
        for (int64_t k = 0; t && k < leat_tensor_count(t) && at < MOST; k++)
            all[at++] = (float)leat_tensor_at(t, k);
        leat_tensor_unref(t);
    }
    leat_session_close(s);
    *count_out = at;
    return all;
}

static float *trained(const char *kind, int devices, int towers, const leat_pipeline_options *o,
                      int64_t *count_out)
{
    net n;
    char spec[32];
    snprintf(spec, sizeof(spec), "%s:%d", kind, devices);
    build_net(&n, kind, devices, towers, false, o);
    float *v = train(&n, spec, count_out);
    net_free(&n);
    return v;
}

static double greatest_difference(const float *a, const float *b, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= worst))
            worst = fabs((double)a[i] - (double)b[i]);
    return worst;
}

/* Bit for bit the same on 1, 2 or 3 devices of any kind and with any number in flight; and the same
 * but for rounding whatever the number of micro-batches. */
static void same_result(void)
{
    int64_t n_whole, n;
    float *whole = trained("CPU", 1, 1, &(leat_pipeline_options){0}, &n_whole);
    CHECK(n_whole == 1 + IN * UNITS + UNITS + UNITS * UNITS + UNITS + UNITS * CLASSES + CLASSES);
    for (int micro = 1; micro <= 6; micro = micro == 1 ? 2 : micro * 3) {
        leat_pipeline_options o = {.micro_batches = micro};
        float *one = trained("CPU", 1, 1, &o, &n);
        CHECK_INT(n, n_whole);
        CHECK(greatest_difference(whole, one, n) < 1e-6);
        for (o.in_flight = 0; o.in_flight < 5; o.in_flight++)
            for (int devices = 1; devices <= STAGES; devices++) {
                float *v = trained("CPU", devices, 1, &o, &n);
                CHECK(memcmp(v, one, sizeof(*v) * (size_t)n) == 0);
                free(v);
            }
        float *v = trained("GUARDED", STAGES, 1, &o, &n);
        CHECK(greatest_difference(v, one, n) < 1e-6);
        free(v);
        free(one);
    }
    free(whole);
}

/* Towers of such nets: the same as one net on the whole batch. */
static void hybrid(void)
{
    int64_t n;
    float *one = trained("CPU", 1, 1, &(leat_pipeline_options){0}, &n);
    for (int micro = 1; micro < 4; micro++) {
        float *v = trained("CPU", 3, 2, &(leat_pipeline_options){.micro_batches = micro}, &n);
        /* The last tower's loss is that of its half of the batch. */
        CHECK(greatest_difference(v + 1, one + 1, n - 1) < 1e-6);
        free(v);
    }
    free(one);
}

static void run_marked(int micro, int in_flight, int pause_us)
{
    net n;
    int64_t count;
    memset(&marks, 0, sizeof(marks));
    marks.pause_us = pause_us;
    build_net(&n, "CPU", STAGES, 1, true,
              &(leat_pipeline_options){.micro_batches = micro, .in_flight = in_flight});
    free(train(&n, "cpu:3", &count));
    net_free(&n);
    for (int s = 0; s < STAGES; s++)
        CHECK_INT(atomic_load(&marks.in_flight[s]), 0);
}

static void bound(void)
{
    for (int in_flight = 1; in_flight <= 4; in_flight++) {
        run_marked(6, in_flight, 300);
        for (int s = 0; s < STAGES; s++) {
            int most = in_flight - s > 1 ? in_flight - s : 1;
            CHECK(atomic_load(&marks.most[s]) <= most);
        }
    }
    run_marked(6, 4, 3000); /* the bound is reached: the first stage goes ahead of the last */
    CHECK(atomic_load(&marks.most[0]) > 1);
}

/* With one micro-batch, or with one in flight, stages take turns; otherwise they work side by side.
 */
static void overlap(void)
{
    run_marked(1, 0, 1000);
    CHECK_INT(atomic_load(&marks.together), 1);
    run_marked(4, 1, 1000);
    CHECK_INT(atomic_load(&marks.together), 1);
    run_marked(6, 3, 3000);
    CHECK(atomic_load(&marks.together) >= 2);
}

/* ---- Gradients of rows; several tensors between stages; a variable that two stages use ---- */

static void embed(leat_graph *g, void *arg, const leat_out *batch, const leat_out *in,
                  leat_out *out)
{
    leat_out table = leat_get_variable(g, "table", leat_shape(7, 3),
                                       .initializer =
                                           leat_random_uniform_initializer(-1, 1, .seed = 3)),
             shared = leat_get_variable(g, "shared", leat_shape(3),
                                        .initializer = leat_ones_initializer());
    leat_out axis = leat_scalar(g, LEAT_INT32, 0);
    out[0] = leat_mul(leat_gather(table, batch[0], axis), shared);
    out[1] = leat_add(batch[0], batch[0]); /* integers have no gradient */
}

static void score(leat_graph *g, void *arg, const leat_out *batch, const leat_out *in,
                  leat_out *out)
{
    leat_out shared = leat_get_variable(g, "shared", leat_shape(3));
    leat_out y = leat_mul(leat_square(in[0]), shared);
    leat_out weight = leat_expand_dims(leat_cast(in[1], LEAT_FLOAT), leat_scalar(g, LEAT_INT32, 1));
    out[0] = leat_reduce_mean(leat_mul(y, weight));
}

static void rows(void)
{
    float losses[2][2];
    for (int k = 0; k < 2; k++) {
        leat_graph *g = leat_graph_new();
        leat_session *s;
        leat_tensor *t = NULL;
        const int32_t ids[] = {1, 1, 4, 6, 0, 1, 4, 2};
        const leat_stage stages[] = {{.device = "/cpu:0", .build = embed, .n_out = 2},
                                     {.device = "/cpu:1", .build = score}};
        leat_tensor *fed;
        leat_out batch = leat_placeholder(g, LEAT_INT32, leat_shape(-1)), loss;
        int n;
        CHECK_OK(leat_tensor_copy_of(LEAT_INT32, leat_shape(8), ids, &fed));
        leat_var_grad *grads =
            leat_pipeline_gradients(stages, 2, &batch, 1, &loss, &n, .micro_batches = k ? 4 : 1);
        CHECK_INT(n, 2);
        CHECK(grads[0].grad.indices.node && !grads[1].grad.indices.node);
        leat_optimizer *opt = leat_gradient_descent(.learning_rate = 0.1);
        leat_out update = leat_apply_gradients(opt, grads, n),
                 init = leat_global_variables_initializer(g);
        free(grads);
        CHECK_OK(leat_graph_status(g));
        CHECK_OK(leat_session_open(g, &s, .devices = "cpu:2"));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
        CHECK_OK(leat_session_run(s, LEAT_FEED({batch, fed}), LEAT_NO_FETCH, LEAT_TARGET(update)));
        CHECK_OK(
            leat_session_run(s, LEAT_FEED({batch, fed}), LEAT_FETCH({loss, &t}), LEAT_NO_TARGET));
        losses[k][0] = t ? (float)leat_tensor_at(t, 0) : NAN;
        leat_tensor_unref(t);
        leat_tensor_unref(fed);
        leat_session_close(s);
        leat_optimizer_free(opt);
        leat_graph_free(g);
    }
    CHECK_NEAR(losses[0][0], losses[1][0], 1e-5);
}

/* ---- Mistakes ---- */

static void nothing(leat_graph *g, void *arg, const leat_out *batch, const leat_out *in,
                    leat_out *out)
{
}

static void vector_loss(leat_graph *g, void *arg, const leat_out *batch, const leat_out *in,
                        leat_out *out)
{
    leat_get_variable(g, "v", leat_shape(2));
    out[0] = leat_neg(batch[0]);
}

static void constant_loss(leat_graph *g, void *arg, const leat_out *batch, const leat_out *in,
                          leat_out *out)
{
    out[0] = leat_reduce_mean(batch[0]);
}

static void mistakes(void)
{
    static const struct {
        leat_stage stages[2];
        int n;
        leat_pipeline_options o;
        const char *words;
    } rows[] = {
        {{{0}}, 0, {0}, "A pipeline needs at least one stage"},
        {{{0}}, 1, {0}, "Stage 0 has no function that builds it"},
        {{{.build = nothing}}, 1, {0}, "Stage 0 has not given tensor 0 of 1"},
        {{{.build = nothing, .n_out = 65}}, 1, {0}, "Stage 0 gives 65 tensors: wants 1 to 64"},
        {{{.build = nothing, .n_out = -1}}, 1, {0}, "Stage 0 gives -1 tensors"},
        {{{.build = nothing, .n_out = 2}}, 1, {0}, "The last stage gives 2 tensors"},
        {{{.build = vector_loss}}, 1, {0}, "The last stage gives the loss, a scalar; "},
        {{{.build = constant_loss}}, 1, {0}, "No variables to optimize."},
        {{{.build = nothing}}, 1, {.micro_batches = 5}, "has 6 examples, which 5 micro-batches do"},
        {{{.build = nothing}}, 1, {.micro_batches = -1}, "-1 micro-batches"},
        {{{.build = nothing}}, 1, {.in_flight = -1}, "-1 in flight"},
        {{{.build = nothing}}, 1, {.micro_batches = INT_MAX}, "micro-batches: at most 65536"},
        {{{.build = nothing}}, 1, {.n_vars = -1}, "A pipeline's n_vars is -1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        leat_graph *g = leat_graph_new();
        leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(6, 2)), loss;
        int n = -1;
        free(leat_pipeline_gradients_at(LEAT_AT, rows[i].stages, rows[i].n, &x, 1, &rows[i].o,
                                        &loss, &n));
        CHECK_INT(n, 0);
        CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, rows[i].words);
        leat_graph_free(g);
    }
    leat_graph *g = leat_graph_new();
    leat_out x = leat_scalar(g, LEAT_FLOAT, 1), loss;
    int n;
    const leat_stage stage = {.build = constant_loss};
    free(leat_pipeline_gradients(&stage, 1, &x, 1, &loss, &n, .micro_batches = 2));
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "is a scalar");
    leat_graph_free(g);
    g = leat_graph_new();
    leat_out batch[2] = {leat_zeros(g, LEAT_FLOAT, leat_shape(2, 2))};
    free(leat_pipeline_gradients(&stage, 1, batch, 2, &loss, &n));
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "batch is no tensor of the graph");
    leat_graph_free(g);
    g = leat_graph_new();
    batch[0] = leat_zeros(g, LEAT_FLOAT, leat_shape(2, 2));
    free(leat_pipeline_gradients(NULL, 1, batch, 1, &loss, &n));
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "A pipeline needs at least one stage");
    leat_graph_free(g);
    free(leat_pipeline_gradients(&stage, 1, NULL, 1, &loss, &n));
    CHECK(!loss.node);
}

int main(int argc, char **argv)
{
    LEAT_DIE_ON_ERROR(leat_device_kind_register(&guarded_kind));
    for (size_t i = 0; i < sizeof(mark_ops) / sizeof(*mark_ops); i++)
        LEAT_DIE_ON_ERROR(leat_register_op(&mark_ops[i]));
    LEAT_DIE_ON_ERROR(leat_register_kernels("CPU", mark_kernels, 2));
    x_fed = mlp_tensor(leat_shape(BATCH, IN), 1);
    leat_tensor *unused;
    mlp_batch(BATCH, IN, CLASSES, &unused, &y_fed);
    leat_tensor_unref(unused);
    int failed = RUN(argc, argv, {"same_result", same_result}, {"hybrid", hybrid}, {"bound", bound},
                     {"overlap", overlap}, {"rows", rows}, {"mistakes", mistakes});
    leat_tensor_unref(x_fed);
    leat_tensor_unref(y_fed);
    return failed;
}
