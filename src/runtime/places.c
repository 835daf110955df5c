/* places.c -- in which memory a kernel wants its inputs and makes its outputs. */
#include <string.h>

#include "core/element.h"
#include "runtime/kernel_int.h"

/* Whether a list such as "shape, axis" has this name. */
static bool listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; at && *at;) {
        at += strspn(at, ", ");
        size_t word = strcspn(at, ", ");
        if (word == n && strncmp(at, name, n) == 0)
            return true;
        at += word;
    }
    return false;
}

static int arg_count(const leat_node *n, const leat_arg_info *a)
{
    return a->number_attr >= 0 ? (int)n->attrs[a->number_attr].i
           : a->list_attr >= 0 ? n->attrs[a->list_attr].n
                               : 1;
}

void leat_kernel_places(const leat_kernel_def *def, const leat_node *n, uint8_t *places)
{
    leat_place rest = def->flags & LEAT_KERNEL_ON_HOST      ? LEAT_PLACE_HOST
                      : def->flags & LEAT_KERNEL_ANY_MEMORY ? LEAT_PLACE_ANY
                                                            : LEAT_PLACE_DEVICE;
    int at = 0;
    for (int a = 0; a < n->op->n_in + n->op->n_out; a++) {
        const leat_arg_info *arg = a < n->op->n_in ? &n->op->in[a] : &n->op->out[a - n->op->n_in];
        leat_place place = listed(def->host, arg->name) ? LEAT_PLACE_HOST : rest;
        for (int i = arg_count(n, arg); i > 0; i--, at++) {
            leat_dtype t = at < n->n_in ? leat_out_dtype(n->in[at]) : n->out_types[at - n->n_in];
            places[at] =
                (uint8_t)(leat_dtype_managed(leat_dtype_base(t)) ? LEAT_PLACE_HOST : place);
        }
    }
}

leat_status leat_kernel_places_check(const leat_kernel_def *def)
{
    const leat_op_info *op = leat_op_find(def->op);
    for (const char *at = def->host; at && *at;) {
        at += strspn(at, ", ");
        size_t n = strcspn(at, ", ");
        bool found = false;
        for (int a = 0; a < op->n_in + op->n_out; a++) {
            const char *name = a < op->n_in ? op->in[a].name : op->out[a - op->n_in].name;
            found |= strlen(name) == n && strncmp(at, name, n) == 0;
        }
        LEAT_REQUIRE(found, INTERNAL,
                     "A kernel of %s wants '%.*s' in the host's memory, which the op does not have",
                     def->op, (int)n, at);
        at += n;
    }
    return NULL;
}
