/* random_op.h -- makes a node of any registered op from a string of bytes, with inputs and
 * attributes that are sometimes right, and runs it. Whatever the bytes, there must be a result or a
 * status. */
#ifndef LEAT_RANDOM_OP_H
#define LEAT_RANDOM_OP_H

#include <leat/leat.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "graph/graph_int.h"

typedef struct bytes {
    const uint8_t *p;
    size_t n;
} bytes;

static unsigned pick(bytes *b, unsigned n) /* below n; 0 when the bytes have ended */
{
    unsigned v = 0;
    for (unsigned most = n - 1; most && b->n; most >>= 8) {
        v = v << 8 | *b->p++;
        b->n--;
    }
    return v % n;
}

static int64_t some_int(bytes *b)
{
    static const int64_t odd[] = {-1,        INT32_MAX, INT32_MIN, INT64_MAX,
                                  INT64_MIN, 1 << 20,   100,       -100};
    return pick(b, 8) ? (int64_t)pick(b, 8) - 2 : odd[pick(b, 8)];
}

static double some_float(bytes *b)
{
    static const double odd[] = {0, -0.0, 1e-30, 1e30, -1e30, INFINITY, -INFINITY, NAN};
    return pick(b, 6) ? (double)pick(b, 256) / 16 - 8 : odd[pick(b, 8)];
}

static leat_shape some_shape(bytes *b, bool partial)
{
    leat_shape s = {.rank = (int)pick(b, 6)};
    if (partial && s.rank == 5)
        return leat_shape_unknown();
    for (int i = 0; i < s.rank; i++) {
        s.dim[i] = (int64_t)pick(b, 5);
        if (partial && pick(b, 4) == 0)
            s.dim[i] = -1;
        if (pick(b, 64) == 0)
            s.dim[i] = partial ? INT64_C(1) << (20 + pick(b, 40)) : 300;
    }
    /* Where one dimension is 0, others may be as large as they like: there are no elements. */
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] == 0 && pick(b, 4) == 0)
            for (int k = 0; k < s.rank; k++)
                s.dim[k] = s.dim[k] > 0 ? INT64_C(1) << (20 + pick(b, 43)) : 0;
    return s;
}

static leat_tensor *some_tensor(bytes *b, leat_dtype t)
{
    leat_tensor *x = NULL;
    if (t == LEAT_RESOURCE || t == LEAT_VARIANT || !leat_dtype_size(t))
        t = LEAT_FLOAT;
    leat_status s = leat_tensor_new(t, some_shape(b, false), &x);
    if (s) {
        leat_status_free(s);
        return leat_scalar_float(1);
    }
    for (int64_t i = 0; i < x->count && i < 4096; i++) {
        char text[8];
        switch (t) {
        case LEAT_FLOAT:
            ((float *)x->data)[i] = (float)some_float(b);
            break;
        case LEAT_DOUBLE:
            ((double *)x->data)[i] = some_float(b);
            break;
        case LEAT_HALF:
            ((leat_half *)x->data)[i] = leat_half_from_float((float)some_float(b));
            break;
        case LEAT_BFLOAT16:
            ((leat_bfloat16 *)x->data)[i] = leat_bfloat16_from_float((float)some_float(b));
            break;
        case LEAT_BOOL:
            ((bool *)x->data)[i] = pick(b, 2);
            break;
        case LEAT_STRING:
            for (size_t c = 0; c < sizeof(text); c++)
                text[c] = "0123-.eabc\0\xff"[pick(b, 12)];
            leat_string_set(&((leat_string *)x->data)[i], text, pick(b, sizeof(text)));
            break;
        default: {
            int64_t v = some_int(b);
            memcpy((char *)x->data + (size_t)i * leat_dtype_size(t), &v,
                   leat_dtype_size(t) < 8 ? leat_dtype_size(t) : 8);
        }
        }
    }
    return x;
}

static leat_dtype some_type(bytes *b, leat_types set)
{
    leat_dtype t = (leat_dtype)(1 + pick(b, 23));
    for (int i = 0; i < 23 && !leat_types_has(set, t); i++)
        t = (leat_dtype)(t % 23 + 1);
    return t;
}

/* What one try has allocated, to be freed at its end. */
typedef struct attempt {
    bytes *b;
    leat_graph *g;
    leat_attr attrs[40];
    int n_attrs;
    leat_out in[64];
    int n_in, list_n[40];
    leat_out feeds[64];
    leat_tensor *values[64];
    int n_feeds;
    leat_out init[64];
    int n_init;
} attempt;

static const char *const words[] = {"",     "a",    "SAME", "VALID", "NHWC",
                                    "NCHW", "left", "b/c",  "loc:@x"};

static leat_attr some_attr(attempt *a, const leat_attr_info *info)
{
    bytes *b = a->b;
    leat_arena *arena = &a->g->arena;
    leat_attr v = {.name = info->name, .kind = info->kind, .n = (int)pick(b, 4)};
    switch (info->kind) {
    case LEAT_ARG_INT:
        v.i = info->has_min && pick(b, 4) ? info->min + pick(b, 4) : some_int(b);
        break;
    case LEAT_ARG_BOOL:
        v.i = pick(b, 2);
        break;
    case LEAT_ARG_FLOAT:
        v.f = (float)some_float(b);
        break;
    case LEAT_ARG_TYPE:
        v.i = some_type(b, pick(b, 16) ? info->types : LEAT_TYPES_ANY);
        break;
    case LEAT_ARG_STRING:
        v.s = info->n_strings && pick(b, 8) ? info->strings[pick(b, (unsigned)info->n_strings)]
                                            : words[pick(b, 9)];
        v.n = (int)strlen(v.s);
        break;
    case LEAT_ARG_SHAPE: {
        leat_shape s = some_shape(b, true);
        v.shape = leat_arena_memdup(arena, &s, sizeof(s));
        break;
    }
    case LEAT_ARG_TENSOR:
        v.tensor = some_tensor(b, some_type(b, LEAT_TYPES_ANY));
        break;
    case LEAT_ARG_FUNC:
        v.func = leat_arena_memdup(arena, &(leat_func){.name = "f"}, sizeof(leat_func));
        break;
    case LEAT_ARG_INTS:
    case LEAT_ARG_BOOLS: {
        int64_t *x = leat_arena_array(arena, int64_t, 4);
        for (int i = 0; i < v.n; i++)
            x[i] = info->kind == LEAT_ARG_BOOLS ? pick(b, 2) : some_int(b);
        v.ints = x;
        break;
    }
    case LEAT_ARG_FLOATS: {
        double *x = leat_arena_array(arena, double, 4);
        for (int i = 0; i < v.n; i++)
            x[i] = some_float(b);
        v.floats = x;
        break;
    }
    case LEAT_ARG_TYPES: {
        leat_dtype *x = leat_arena_array(arena, leat_dtype, 4);
        for (int i = 0; i < v.n; i++)
            x[i] = some_type(b, info->types);
        v.types = x;
        break;
    }
    case LEAT_ARG_SHAPES: {
        leat_shape *x = leat_arena_array(arena, leat_shape, 4);
        for (int i = 0; i < v.n; i++)
            x[i] = some_shape(b, true);
        v.shapes = x;
        break;
    }
    case LEAT_ARG_STRINGS: {
        const char **x = leat_arena_array(arena, const char *, 4);
        int *sizes = leat_arena_array(arena, int, 4);
        for (int i = 0; i < v.n; i++) {
            x[i] = words[pick(b, 9)];
            sizes[i] = (int)strlen(x[i]);
        }
        v.strings = x;
        v.sizes = sizes;
        break;
    }
    default:
        v.n = 0;
        break;
    }
    return v;
}

/* A tensor of this dtype for an input: a constant, a fed placeholder, a variable. */
static leat_out some_input(attempt *a, leat_dtype t, bool ref)
{
    bytes *b = a->b;
    leat_graph *g = a->g;
    leat_out x;
    if (t == LEAT_RESOURCE || ref) {
        leat_dtype held = ref ? t : some_type(b, LEAT_TYPES_REAL);
        leat_tensor *v = some_tensor(b, held);
        leat_arg type = leat_attr_type("dtype", held), shape = leat_attr_shape("shape", v->shape);
        x = LEAT_OP0(g, ref ? "VariableV2" : "VarHandleOp", type, shape);
        leat_out value = leat_const(g, v), init;
        init = ref ? leat_assign(x, value) : LEAT_OP2("AssignVariableOp", x, value);
        if (pick(b, 8) && a->n_init < 64)
            a->init[a->n_init++] = init;
        leat_tensor_unref(v);
        return x;
    }
    leat_tensor *v = some_tensor(b, t);
    if (pick(b, 2) || a->n_feeds == 64) {
        x = leat_const(g, v);
        leat_tensor_unref(v);
        return x;
    }
    x = leat_placeholder(g, v->dtype, pick(b, 2) ? v->shape : leat_shape_unknown());
    a->feeds[a->n_feeds] = x;
    a->values[a->n_feeds++] = v;
    return x;
}

static const leat_attr *attr_of(const attempt *a, const char *name)
{
    for (int i = 0; i < a->n_attrs; i++)
        if (strcmp(a->attrs[i].name, name) == 0)
            return &a->attrs[i];
    return NULL;
}

static bool on_queue(const char *op)
{
    return strncmp(op, "Queue", 5) == 0;
}

static bool on_accumulator(const char *op)
{
    return strstr(op, "Accumulator") && !strstr(op, "ConditionalAccumulator");
}

/* Nothing fills or empties a staging area: an op that waits for it ends by the time-out of the run,
 * which must be short. */
static bool on_staging_area(const char *op)
{
    return strstr(op, "tage") || strstr(op, "MapPeek");
}

/* Makes a queue for an op, mostly of the op's dtypes. Nothing fills or empties it: an op that waits
 * for it ends by the time-out of the run, which must be short. */
static leat_out some_queue(attempt *a, bool ref)
{
    static const char *const kinds[] = {"FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue",
                                        "PriorityQueue"};
    bytes *b = a->b;
    const leat_attr *types = attr_of(a, "Tcomponents");
    types = types ? types : attr_of(a, "component_types");
    leat_dtype t[4] = {LEAT_FLOAT, LEAT_STRING, LEAT_INT32, LEAT_INT64};
    int n = 1 + (int)pick(b, 3), kind = (int)pick(b, 4);
    if (types && pick(b, 8)) {
        n = types->n;
        memcpy(t, types->types, sizeof(*t) * (size_t)n);
    }
    leat_shape shapes[4];
    for (int i = 0; i < 4; i++)
        shapes[i] = some_shape(b, kind == 1);
    char op[40];
    snprintf(op, sizeof(op), "%s%s", kinds[kind], ref ? "" : "V2");
    return LEAT_OP0(a->g, op, leat_attr_types("component_types", t, n),
                    leat_attr_shapes("shapes", shapes, kind == 1 || pick(b, 2) ? n : 0),
                    leat_attr_int("capacity", pick(b, 2) ? 2 : -1));
}

static leat_out some_accumulator(attempt *a, const char *op, bool ref)
{
    const leat_attr *type = attr_of(a, "dtype");
    return LEAT_OP0(a->g,
                    strncmp(op, "Sparse", 6) == 0 || (ref && pick(a->b, 8) == 0)
                        ? "SparseConditionalAccumulator"
                    : ref ? "ConditionalAccumulator"
                          : "ResourceConditionalAccumulator",
                    leat_attr_type("dtype", type ? (leat_dtype)type->i : LEAT_FLOAT),
                    leat_attr_shape("shape", some_shape(a->b, true)));
}

static int attr_int(const attempt *a, const char *name, int fallback)
{
    for (int i = 0; i < a->n_attrs; i++)
        if (strcmp(a->attrs[i].name, name) == 0 && a->attrs[i].kind == LEAT_ARG_INT)
            return (int)(a->attrs[i].i < 0 || a->attrs[i].i > 6 ? fallback : a->attrs[i].i);
    return fallback;
}

static void some_inputs(attempt *a, const leat_op_info *op)
{
    const char *name = op->def->name;
    for (int i = 0; i < op->n_in; i++) {
        const leat_arg_info *arg = &op->in[i];
        int n = arg->number_attr >= 0 ? attr_int(a, op->attrs[arg->number_attr].name, 2)
                : arg->list_attr >= 0 ? a->attrs[arg->list_attr].n
                                      : 1;
        a->list_n[i] = n;
        for (int k = 0; k < n && a->n_in < 64; k++) {
            leat_dtype t = arg->type_attr >= 0   ? (leat_dtype)a->attrs[arg->type_attr].i
                           : arg->list_attr >= 0 ? a->attrs[arg->list_attr].types[k]
                                                 : arg->type;
            bool handle = i == 0 && (t == LEAT_RESOURCE || arg->is_ref) && pick(a->b, 8);
            a->in[a->n_in++] = handle && on_queue(name) ? some_queue(a, arg->is_ref)
                               : handle && on_accumulator(name)
                                   ? some_accumulator(a, name, arg->is_ref)
                                   : some_input(a, leat_dtype_base(t), arg->is_ref);
        }
    }
}

static void ignore(leat_status s)
{
    leat_status_free(s);
}

static void run_node(attempt *a, leat_node *n)
{
    leat_session *s;
    leat_feed feeds[64];
    leat_fetch fetches[4];
    leat_tensor *out[4] = {0};
    leat_out done = {n, -1};
    for (int i = 0; i < a->n_feeds; i++)
        feeds[i] = (leat_feed){a->feeds[i], a->values[i]};
    int n_out = n->n_out > 4 ? 4 : n->n_out;
    for (int i = 0; i < n_out; i++)
        fetches[i] = (leat_fetch){{n, i}, &out[i]};
    const char *op = n->op->def->name;
    const bool waits = on_queue(op) || on_accumulator(op) || on_staging_area(op);
    leat_status status = leat_session_open(a->g, &s, .no_optimization = pick(a->b, 2),
                                           .inter_op_threads = 1, .timeout_ms = waits ? 5 : 5000);
    if (status) {
        leat_status_free(status);
        return;
    }
    if (a->n_init)
        ignore(
            leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, (leat_targets){a->init, a->n_init}));
    for (int i = 0; i < 2; i++) {
        ignore(leat_session_run(s, (leat_feeds){feeds, a->n_feeds}, (leat_fetches){fetches, n_out},
                                (leat_targets){&done, 1}));
        for (int k = 0; k < n_out; k++) {
            leat_tensor_unref(out[k]);
            out[k] = NULL;
        }
    }
    leat_session_close(s);
}

/* Builds the gradient of what can have one, and runs it. */
static void run_gradient(attempt *a, leat_node *n)
{
    leat_grad_value grads[64];
    leat_out y = {n, 0};
    leat_dtype t = n->n_out ? n->out_types[0] : LEAT_INVALID;
    if ((t != LEAT_FLOAT && t != LEAT_DOUBLE) || !a->n_in)
        return;
    if (n->n_out > 1000) /* the gradient has as many nodes: it would take too long */
        return;
    leat_status s = leat_gradients(&y, 1, a->in, a->n_in, grads);
    for (int i = 0; !s && i < a->n_in; i++)
        if (grads[i].value.node)
            run_node(a, grads[i].value.node);
    leat_status_free(s);
}

/* Makes and runs one node: of the op with this index, or, if it is negative, of an op that the
 * first bytes choose. */
static void random_op(const uint8_t *data, size_t size, int index)
{
    bytes b = {data, size};
    const leat_op_info *op =
        leat_op_at_index(index >= 0 ? index : (int)pick(&b, (unsigned)leat_op_count()));
    const char *name = op->def->name;
    if (name[0] == '_' || strncmp(name, "Print", 5) == 0)
        return;
    attempt *a = calloc(1, sizeof(*a));
    a->b = &b;
    a->g = leat_graph_new();
    for (int i = 0; i < op->n_attrs; i++)
        a->attrs[a->n_attrs++] = op->attrs[i].fallback && pick(&b, 2) ? *op->attrs[i].fallback
                                                                      : some_attr(a, &op->attrs[i]);
    some_inputs(a, op);
    leat_node *n;
    leat_node_spec spec = {.op = name,
                           .in = a->in,
                           .n_in = a->n_in,
                           .list_n = a->list_n,
                           .attrs = a->attrs,
                           .n_attrs = a->n_attrs};
    bool inputs_ok = true;
    for (int i = 0; i < a->n_in; i++)
        inputs_ok &= leat_out_ok(a->in[i]);
    leat_status s = inputs_ok ? leat_graph_add(a->g, &spec, &n) : leat_error(INTERNAL, "no inputs");
    if (!s) {
        run_node(a, n);
        run_gradient(a, n);
    }
    leat_status_free(s);
    for (int i = 0; i < a->n_attrs; i++)
        if (a->attrs[i].kind == LEAT_ARG_TENSOR &&
            (!op->attrs[i].fallback || a->attrs[i].tensor != op->attrs[i].fallback->tensor))
            leat_tensor_unref(a->attrs[i].tensor);
    for (int i = 0; i < a->n_feeds; i++)
        leat_tensor_unref(a->values[i]);
    leat_graph_free(a->g);
    free(a);
}

#endif
