/* op_check.c -- checks that the properties of an op (flags, role, gradient ...) agree with its
 * inputs, outputs and attributes. Passes and executor rely on that. */
#include <string.h>

#include "graph/op_info.h"

#define WANT(cond, ...) LEAT_REQUIRE(cond, INVALID_ARGUMENT, "Op %s " __VA_ARGS__)

static bool single(const leat_arg_info *a)
{
    return a->number_attr < 0 && a->list_attr < 0;
}

static bool same_type(const leat_arg_info *a, const leat_arg_info *b)
{
    return single(a) && single(b) && a->type == b->type && a->type_attr == b->type_attr;
}

static bool one_to_one(const leat_op_info *op)
{
    return op->n_in == 1 && op->n_out == 1 && same_type(&op->in[0], &op->out[0]);
}

bool leat_op_is_like_cwise(const leat_op_info *op)
{
    if (op->n_in < 1 || op->n_in > 2 || op->n_out != 1 || op->n_attrs != 1 ||
        strcmp(op->attrs[0].name, "T") != 0 || op->out[0].is_ref || op->out[0].type_attr != 0)
        return false;
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i].is_ref || !same_type(&op->in[i], &op->out[0]))
            return false;
    return true;
}

static leat_status check_flags(const leat_op_info *op)
{
    const leat_op_def *d = op->def;
    const char *name = d->name;
    bool takes_ref = false;
    for (int i = 0; i < op->n_in; i++)
        takes_ref |= op->in[i].is_ref;
    if (d->flags & LEAT_OP_IDENTITY)
        WANT(one_to_one(op) && !(d->flags & (LEAT_OP_STATEFUL | LEAT_OP_CHECKS)),
             "is LEAT_OP_IDENTITY: it must have one input and one output of the same type, and "
             "neither state nor checks",
             name);
    if (d->flags & LEAT_OP_INVOLUTION)
        WANT(one_to_one(op),
             "is LEAT_OP_INVOLUTION: it must have one input and one output of the same type", name);
    if (d->flags & LEAT_OP_RESHAPES)
        WANT(op->n_in && op->n_out == 1 && same_type(&op->in[0], &op->out[0]),
             "is LEAT_OP_RESHAPES: its output must have the type of input 0", name);
    if (d->flags & LEAT_OP_PLACEHOLDER)
        WANT(op->n_in <= 1 && op->n_out == 1,
             "is LEAT_OP_PLACEHOLDER: it must have one output, and a default at most", name);
    if (d->flags & LEAT_OP_CWISE)
        WANT(leat_op_is_like_cwise(op) && !(d->flags & LEAT_OP_STATEFUL),
             "is LEAT_OP_CWISE: it must take one or two inputs of type T, give one output of type "
             "T, have no attribute but T, and no state",
             name);
    if (d->flags & LEAT_OP_NO_EFFECTS)
        WANT(!op->n_out || !op->out[0].is_ref || takes_ref || d->role == LEAT_ROLE_VARIABLE,
             "is LEAT_OP_NO_EFFECTS and gives a reference: it must have got one", name);
    return NULL;
}

/* What a role requires of the definition: the number of input and output arguments, and an
 * attribute. */
static const struct {
    int n_in, n_out; /* -1: any number */
    const char *attr;
} roles[] = {
    [LEAT_ROLE_NONE] = {-1, -1, NULL},
    [LEAT_ROLE_SWITCH] = {2, 2, NULL},
    [LEAT_ROLE_MERGE] = {1, 2, "N"},
    [LEAT_ROLE_ENTER] = {1, 1, "frame_name"},
    [LEAT_ROLE_EXIT] = {1, 1, NULL},
    [LEAT_ROLE_NEXT_ITERATION] = {1, 1, NULL},
    [LEAT_ROLE_LOOP_COND] = {1, 1, NULL},
    [LEAT_ROLE_TRIGGER] = {0, 0, NULL},
    [LEAT_ROLE_NO_OP] = {0, 0, NULL},
    [LEAT_ROLE_CONST] = {0, 1, "value"},
    [LEAT_ROLE_ARG] = {0, 1, "index"},
    [LEAT_ROLE_LATE_ARG] = {0, 1, "index"},
    [LEAT_ROLE_RETVAL] = {1, 0, "index"},
    [LEAT_ROLE_SEND] = {1, 0, "tensor_name"},
    [LEAT_ROLE_RECV] = {0, 1, "tensor_name"},
    [LEAT_ROLE_SHAPE] = {1, 1, NULL},
    [LEAT_ROLE_SIZE] = {1, 1, NULL},
    [LEAT_ROLE_RANK] = {1, 1, NULL},
    [LEAT_ROLE_VARIABLE] = {0, 1, "shared_name"},
    [LEAT_ROLE_HANDLE] = {0, 1, "shared_name"},
    [LEAT_ROLE_READ] = {1, 1, NULL},
    [LEAT_ROLE_IS_INITIALIZED] = {1, 1, NULL},
    [LEAT_ROLE_COUNTER] = {1, 1, "limit"},
    [LEAT_ROLE_QUEUE] = {0, 1, "shared_name"},
    [LEAT_ROLE_IF] = {2, 1, "then_branch"},
    [LEAT_ROLE_CASE] = {2, 1, "branches"},
    [LEAT_ROLE_WHILE] = {1, 1, "body"},
    [LEAT_ROLE_ADD] = {2, 1, NULL},
    [LEAT_ROLE_SUB] = {2, 1, NULL},
    [LEAT_ROLE_MUL] = {2, 1, NULL},
    [LEAT_ROLE_DIV] = {2, 1, NULL},
    [LEAT_ROLE_BIAS_ADD] = {2, 1, "data_format"},
    [LEAT_ROLE_PRODUCT] = {2, 1, NULL},
    [LEAT_ROLE_CROSS_ENTROPY] = {2, 2, NULL},
    [LEAT_ROLE_CONCAT] = {2, 1, "N"},
    [LEAT_ROLE_SPLIT] = {2, 1, "num_split"},
    [LEAT_ROLE_SIGMOID] = {1, 1, NULL},
    [LEAT_ROLE_TANH] = {1, 1, NULL},
    [LEAT_ROLE_SIGMOID_GRAD] = {2, 1, NULL},
    [LEAT_ROLE_TANH_GRAD] = {2, 1, NULL},
};

static leat_status check_role(const leat_op_info *op)
{
    const char *name = op->def->name;
    const leat_role role = op->def->role;
    WANT((size_t)role < sizeof(roles) / sizeof(*roles), "has no role that there is: %d", name,
         (int)role);
    const int n_in = roles[role].n_in, n_out = roles[role].n_out;
    WANT(n_in < 0 || (op->n_in == n_in && op->n_out == n_out),
         "has a role for %d inputs and %d outputs, and it has %d and %d", name, n_in, n_out,
         op->n_in, op->n_out);
    WANT(!roles[role].attr || leat_op_attr_index(op, roles[role].attr) >= 0,
         "has a role that needs the attribute '%s'", name, roles[role].attr);
    const bool arithmetic = role >= LEAT_ROLE_ADD && role <= LEAT_ROLE_DIV;
    WANT(!arithmetic || op->def->shape == leat_shape_broadcast_binary,
         "has a role for operands that broadcast: its shape function must be "
         "leat_shape_broadcast_binary",
         name);
    WANT(role < LEAT_ROLE_SIGMOID || op->def->flags & LEAT_OP_CWISE,
         "has a role for element-wise ops: it must be LEAT_OP_CWISE", name);
    WANT(!op->def->fused || role == LEAT_ROLE_PRODUCT || role == LEAT_ROLE_CROSS_ENTROPY,
         "names a fused op: its role must be a product or a cross entropy", name);
    return NULL;
}

static bool is_variable(const leat_arg_info *a)
{
    return a->is_ref || a->type == LEAT_RESOURCE;
}

static leat_status check_gradient(leat_op_info *op)
{
    const char *name = op->def->name, *gradient = op->def->gradient;
    if (!gradient)
        return NULL;
    int n_vars = 0;
    while (n_vars < op->n_in && is_variable(&op->in[n_vars]))
        n_vars++;
    for (int i = n_vars; i < op->n_in; i++) {
        WANT(!is_variable(&op->in[i]) && single(&op->in[i]),
             "applies a gradient: its variables come first, then single values; '%s' does not fit",
             name, op->in[i].name);
        if (strcmp(op->in[i].name, gradient) == 0)
            op->gradient = i;
    }
    WANT(n_vars && op->gradient,
         "applies the gradient '%s': it must have a variable first and an input of this name", name,
         gradient);
    return NULL;
}

static leat_status check_position(const leat_op_info *op)
{
    const leat_op_def *d = op->def;
    WANT(!d->save_position == !d->restore_position,
         "has a position: it must name both the op that saves and the op that restores it",
         d->name);
    WANT(!d->save_position || (op->n_in == 0 && op->n_out == 1 && single(&op->out[0]) &&
                               op->out[0].type == LEAT_RESOURCE),
         "has a position: it must have no input, and one output, a resource", d->name);
    return NULL;
}

leat_status leat_op_check(leat_op_info *op)
{
    LEAT_TRY(check_flags(op));
    LEAT_TRY(check_role(op));
    LEAT_TRY(check_position(op));
    WANT(!op->def->pairwise || (op->n_in == 1 && op->in[0].number_attr >= 0 && op->n_out == 1),
         "is done in pairs by %s: it must have one list of inputs and one output", op->def->name,
         op->def->pairwise);
    return check_gradient(op);
}
