/* fuse.c -- several nodes become one that passes over the memory once: a product (MatMul, Conv2D),
 * the bias that is added to its rows, and an element-wise op of one operand (Relu) become the op
 * that the product's definition names for that (_FusedMatMul, _FusedConv2D). Values between them
 * must have no other user. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "passes/pass.h"

typedef struct fuser {
    leat_compile *c;
    leat_uses uses;
} fuser;

/* Whether x's node has a single consumer, by one input. */
static leat_node *only_user(const fuser *f, leat_node *n)
{
    int at = f->uses.at[n->id];
    const leat_use *u = &f->uses.v[at];
    if (f->uses.at[n->id + 1] - at != 1 || u->input < 0 || n->wanted ||
        strcmp(u->node->device, n->device) != 0)
        return NULL;
    return u->node;
}

/* The input of n that is the bias of a product at the other input, or -1. */
static int bias_input(const leat_node *n, const leat_node *product)
{
    if (leat_node_role(n) == LEAT_ROLE_BIAS_ADD)
        return n->in[0].node == product && strcmp(leat_node_string(n, "data_format"), "NCHW") != 0
                   ? 1
                   : -1;
    if (leat_node_role(n) != LEAT_ROLE_ADD)
        return -1;
    int bias = n->in[0].node == product ? 1 : 0;
    leat_shape b = leat_out_shape(n->in[bias]), y = product->out_shapes[0];
    return b.rank == 1 && y.rank == 2 && b.dim[0] > 0 && b.dim[0] == y.dim[1] ? bias : -1;
}

static leat_attr strings_attr(leat_arena *a, const char *name, const char *const *v, int n)
{
    int *sizes = leat_arena_array(a, int, n);
    for (int i = 0; i < n; i++)
        sizes[i] = (int)strlen(v[i]);
    leat_attr x = {.name = name, .kind = LEAT_ARG_STRINGS, .n = n, .strings = v, .sizes = sizes};
    return leat_attr_copy(a, &x);
}

/* The attributes of the fused op, in the order of its definition. */
static leat_attr *fused_attrs(const leat_op_info *op, const leat_node *product, leat_arena *a,
                              const char *const *fused, int n_fused)
{
    leat_attr *attrs = leat_arena_array(a, leat_attr, op->n_attrs);
    for (int i = 0; i < op->n_attrs; i++) {
        const char *name = op->attrs[i].name;
        const leat_attr *same = leat_node_attr(product, name);
        if (same)
            attrs[i] = leat_attr_copy(a, same);
        else if (strcmp(name, "fused_ops") == 0)
            attrs[i] = strings_attr(a, name, fused, n_fused);
        else if (strcmp(name, "num_args") == 0)
            attrs[i] = (leat_attr){.name = name, .kind = LEAT_ARG_INT, .i = 1};
        else
            attrs[i] = leat_attr_copy(a, op->attrs[i].fallback);
        attrs[i].name = name;
    }
    return attrs;
}

/* Replaces `last` by the fused node, if its device has a kernel for that. */
static void make_fused(fuser *f, leat_node *product, leat_node *add, int bias, leat_node *last)
{
    const char *fused[2] = {"BiasAdd", last->op->def->name};
    leat_arena *a = &last->graph->arena;
    const leat_target *d = leat_pass_device(f->c, last);
    leat_node made = *last;
    made.op = leat_op_find(product->op->def->fused);
    made.n_attrs = made.op->n_attrs;
    made.attrs = fused_attrs(made.op, product, a, fused, last == add ? 1 : 2);
    made.n_in = 3;
    made.in = leat_arena_array(a, leat_out, 3);
    made.in[0] = product->in[0];
    made.in[1] = product->in[1];
    made.in[2] = add->in[bias];
    if (!d || !f->c->has_kernel(&made, d->parsed.type))
        return;
    for (int i = 0; i < last->n_attrs; i++)
        leat_attr_release(&last->attrs[i]);
    *last = made;
    leat_take_controls(last, product);
    product->dead = true;
    if (last != add) {
        leat_take_controls(last, add);
        add->dead = true;
    }
}

/* Whether elements of a bias belong to columns of the product: to its last dimension. */
static bool channels_last(const leat_node *product)
{
    return !leat_node_has(product, "data_format") ||
           strcmp(leat_node_string(product, "data_format"), "NHWC") == 0;
}

static void fuse_product(fuser *f, leat_node *product)
{
    leat_node *add = only_user(f, product);
    if (!leat_node_is_pure(product) || product->out_types[0] != LEAT_FLOAT || !add ||
        !leat_node_is_pure(add) || !channels_last(product))
        return;
    int bias = bias_input(add, product);
    if (bias < 0)
        return;
    leat_node *act = only_user(f, add);
    bool has_act = act && act->n_in == 1 && leat_node_flag(act, LEAT_OP_CWISE);
    make_fused(f, product, add, bias, has_act ? act : add);
}

leat_status leat_pass_fuse(leat_compile *c)
{
    fuser f = {.c = c, .uses = leat_uses_of(c->graph)};
    for (int i = 0; i < c->graph->n_nodes; i++)
        if (!c->graph->nodes[i]->dead && leat_node_role(c->graph->nodes[i]) == LEAT_ROLE_PRODUCT &&
            c->graph->nodes[i]->op->def->fused)
            fuse_product(&f, c->graph->nodes[i]);
    leat_uses_free(&f.uses);
    return NULL;
}
