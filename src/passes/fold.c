/* fold.c -- constant folding. A pure node whose inputs are all constants becomes a constant, and so
 * does the shape of a tensor whose shape is known before it is computed.
 *
 * A constant that replaces a node gets the control inputs of the node's inputs, so that it is in
 * the same frame of a loop, and dead when the node would have been. A node whose computation fails
 * is not replaced, and fails when it runs.
 */
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "passes/pass.h"

enum {
    MOST_BYTES = 10 << 20, /* limit of a constant that folding makes */
    GROWN_BYTES = 1 << 20, /* limit if the inputs are smaller than the constant */
    FEW = 16,              /* inputs or outputs that fit on the stack */
};
/* Limit of what folding computes for one plan, in elements read, written and multiplied: a second
 * or so. What is left is computed by the steps, which can use all threads. */
static const double most_work = 1e9;

typedef struct folder {
    leat_compile *c;
    leat_uses uses;
    bool *below_flow;
    int n_nodes; /* number of nodes that uses and below_flow have */
    double work; /* done so far */
} folder;

static bool may_fold(const leat_node *n)
{
    if (leat_is_const(n) || !n->n_in || !leat_node_is_pure(n))
        return false;
    for (int i = 0; i < n->n_out; i++)
        if (n->out_types[i] == LEAT_RESOURCE || n->out_types[i] == LEAT_VARIANT)
            return false;
    return true;
}

static int64_t bytes_of(const leat_tensor *t)
{
    int64_t bytes = (int64_t)leat_tensor_bytes(t);
    const leat_string *s = t->data;
    for (int64_t i = 0; t->dtype == LEAT_STRING && i < t->count; i++)
        bytes += (int64_t)s[i].size;
    return bytes;
}

static bool small_enough(int64_t bytes, int64_t in_bytes)
{
    return bytes <= MOST_BYTES && (bytes <= GROWN_BYTES || bytes <= in_bytes);
}

/* The shapes of the outputs, if shape inference knows them; else the node has to be run to know
 * them. */
static bool may_be_small(leat_node *n, int64_t in_bytes)
{
    leat_status s = leat_node_infer(n);
    leat_status_free(s);
    for (int i = 0; i < n->n_out && !s; i++) {
        int64_t count = leat_shape_count(&n->out_shapes[i]);
        if (count > MOST_BYTES ||
            !small_enough(count * (int64_t)leat_dtype_size(n->out_types[i]), in_bytes))
            return false;
    }
    return !s;
}

/* Elements that a kernel reads, writes and, in a product of matrices, multiplies: the root of m*k,
 * k*n and m*n multiplied is m*n*k. */
static double work_of(const leat_node *n, leat_tensor *const *in)
{
    double sum = 0, product = 1;
    for (int i = 0; i < n->n_in; i++) {
        sum += (double)in[i]->count;
        product *= i < 2 ? (double)in[i]->count : 1;
    }
    for (int i = 0; i < n->n_out; i++) {
        const int64_t count = leat_shape_count(&n->out_shapes[i]);
        sum += count < 0 ? 0 : (double)count;
        product *= count < 0 ? 1 : (double)count;
    }
    return leat_node_role(n) == LEAT_ROLE_PRODUCT ? sqrt(product) : sum;
}

/* Makes all consumers of n's outputs from the second on use the first outputs of these nodes. */
static void use_instead(const folder *f, const leat_node *n, leat_node *const *made)
{
    for (int i = f->uses.at[n->id]; i < f->uses.at[n->id + 1]; i++) {
        const leat_use *u = &f->uses.v[i];
        if (u->output > 0)
            u->node->in[u->input] = (leat_out){made[u->output], 0};
    }
}

/* Replaces n's outputs by these values. */
static leat_status become(folder *f, leat_node *n, leat_tensor **values)
{
    leat_control_adder controls = leat_control_adder_of(n);
    for (int i = 0; i < n->n_in; i++)
        for (int j = 0; j < n->in[i].node->n_controls; j++)
            leat_control_adder_add(&controls, n->in[i].node->controls[j]);
    leat_node **made = leat_new_array(leat_node *, n->n_out + 1);
    leat_status s = NULL;
    for (int i = 1; i < n->n_out && !s; i++) {
        const leat_attr attrs[] = {{.name = "dtype", .kind = LEAT_ARG_TYPE, .i = values[i]->dtype},
                                   {.name = "value", .kind = LEAT_ARG_TENSOR, .tensor = values[i]}};
        leat_node_spec spec = {.op = "Const",
                               .name = leat_arena_printf(&n->graph->arena, "%s/_%d", n->name, i),
                               .device = n->device,
                               .controls = n->controls,
                               .n_controls = n->n_controls,
                               .attrs = attrs,
                               .n_attrs = 2,
                               .exact_name = true};
        s = leat_graph_add(n->graph, &spec, &made[i]);
    }
    if (!s) {
        use_instead(f, n, made);
        leat_pass_make_const(n, values[0]);
    }
    free(made);
    return s;
}

static leat_status compute(folder *f, leat_node *n, leat_tensor **in, leat_tensor **out)
{
    int64_t in_bytes = 0;
    for (int i = 0; i < n->n_in; i++) {
        const leat_tensor *t = leat_pass_value(n->in[i]);
        if (!t)
            return NULL;
        in[i] = (leat_tensor *)t;
        in_bytes += bytes_of(t);
    }
    if (!may_be_small(n, in_bytes))
        return NULL;
    const double work = work_of(n, in);
    if (f->work + work > most_work)
        return NULL;
    f->work += work;
    leat_status s = f->c->evaluate(f->c, n, in, out);
    leat_status_free(s);
    if (s)
        return leat_stop_check(&f->c->stop);
    bool fits = true;
    for (int i = 0; i < n->n_out; i++)
        fits &= small_enough(bytes_of(out[i]), in_bytes);
    return fits ? become(f, n, out) : NULL;
}

static leat_status fold(folder *f, leat_node *n)
{
    leat_tensor *few[2 * FEW] = {0}, **v = few;
    int n_in = n->n_in, n_out = n->n_out;
    if (n_in + n_out > 2 * FEW)
        v = leat_new_array(leat_tensor *, n_in + n_out);
    leat_status s = compute(f, n, v, v + n_in);
    for (int i = 0; i < n_out; i++)
        leat_tensor_unref(v[n_in + i]);
    if (v != few)
        free(v);
    return s;
}

/* ---- Shape, ShapeN, Size, Rank ---- */

static leat_tensor *int_tensor(leat_dtype t, const int64_t *v, int n, bool scalar)
{
    leat_tensor *y;
    for (int i = 0; i < n; i++)
        if (t == LEAT_INT32 && v[i] > INT32_MAX)
            return NULL;
    leat_status s = leat_tensor_new(t, scalar ? leat_shape() : leat_shape(n), &y);
    leat_status_free(s);
    for (int i = 0; i < n && !s; i++) {
        if (t == LEAT_INT32)
            ((int32_t *)y->data)[i] = (int32_t)v[i];
        else
            ((int64_t *)y->data)[i] = v[i];
    }
    return s ? NULL : y;
}

/* Output i, from the known shape of input i; NULL if it is not fully known. */
static leat_tensor *shape_value(const leat_node *n, int i)
{
    leat_shape s = leat_out_shape(n->in[i]);
    leat_dtype t = n->out_types[i];
    if (leat_node_role(n) == LEAT_ROLE_RANK)
        return s.rank < 0 ? NULL : int_tensor(t, &(int64_t){s.rank}, 1, true);
    int64_t count = leat_shape_count(&s);
    if (count < 0)
        return NULL;
    return leat_node_role(n) == LEAT_ROLE_SIZE ? int_tensor(t, &count, 1, true)
                                               : int_tensor(t, s.dim, s.rank, false);
}

/* Constants that the pass has made are not in the list. If one of them is a control input, then
 * because it is below a flow op. */
static bool is_below_flow(const folder *f, const leat_node *n)
{
    if (n->id < f->n_nodes)
        return f->below_flow[n->id];
    for (int i = 0; i < n->n_controls; i++)
        if (n->controls[i]->id >= f->n_nodes || f->below_flow[n->controls[i]->id])
            return true;
    return false;
}

static leat_status fold_shape(folder *f, leat_node *n)
{
    leat_tensor *few[FEW] = {0};
    leat_status s = NULL;
    int n_out = n->n_out;
    bool all = n_out <= FEW;
    for (int i = 0; i < n_out && all; i++)
        all = (few[i] = shape_value(n, i)) != NULL;
    if (all) {
        /* A node in a frame, or one that may be dead, is not moved out of it. */
        leat_control_adder controls = leat_control_adder_of(n);
        for (int i = 0; i < n->n_in; i++)
            if (is_below_flow(f, n->in[i].node))
                leat_control_adder_add(&controls, n->in[i].node);
        s = become(f, n, few);
    }
    for (int i = 0; i < n_out && i < FEW; i++)
        leat_tensor_unref(few[i]);
    return s;
}

static bool reads_reference(leat_out x)
{
    if (leat_is_identity(x.node))
        x = x.node->in[0];
    return leat_dtype_is_ref(leat_out_dtype(x));
}

/* Rank of a variable is not folded: tf.assert_variables_initialized uses it to find out whether the
 * variable has a value. */
static bool is_shape_op(const leat_node *n)
{
    const leat_role role = leat_node_role(n);
    return role == LEAT_ROLE_SHAPE || role == LEAT_ROLE_SIZE ||
           (role == LEAT_ROLE_RANK && !reads_reference(n->in[0]));
}

leat_status leat_pass_fold(leat_compile *c)
{
    folder f = {.c = c,
                .uses = leat_uses_of(c->graph),
                .below_flow = leat_pass_below_flow(c->graph),
                .n_nodes = c->graph->n_nodes};
    int n;
    leat_node **order = leat_pass_order(c->graph, &n);
    leat_status s = NULL;
    for (int i = 0; i < n && !s && !(s = leat_pass_stopped(c, i)); i++) {
        if (is_shape_op(order[i]))
            s = fold_shape(&f, order[i]);
        if (!s && c->evaluate && may_fold(order[i]))
            s = fold(&f, order[i]);
    }
    free(order);
    free(f.below_flow);
    leat_uses_free(&f.uses);
    return s;
}
