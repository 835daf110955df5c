/* tree.c -- see tree.h. */
#include "kernels/opencl/tree.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/map.h"
#include "core/strbuf.h"
#include "kernels/opencl/walk.h"

enum {
    MOST_ARGS = 48,   /* an OpenCL device takes at least 1024 bytes of arguments, 16 for each */
    MOST_STEPS = 256, /* in one text */
    MOST_TEXTS = 2048 /* of the process */
};

leat_status leat_cl_tree_init(leat_cl_tree *t, const leat_node *n)
{
    int n_ops, n_operands, n_names;
    const char *const *ops = leat_node_strings(n, "ops", &n_ops);
    const int64_t *operands = leat_node_ints(n, "operands", &n_operands);
    const char *const *names = leat_node_strings(n, "names", &n_names);
    LEAT_REQUIRE(n_ops > 0 && n_operands == 2 * n_ops, INVALID_ARGUMENT,
                 "%s has %d ops and %d operands", leat_node_op(n), n_ops, n_operands);
    t->n_args = (int)leat_node_int(n, "num_args");
    t->steps = leat_new_array(leat_cl_step, n_ops);
    bool *used = leat_new_array(bool, n_ops);
    leat_status s = NULL;
    for (int i = 0; i < n_ops && !s; i++) {
        leat_cl_step *step = &t->steps[i];
        const int64_t a = operands[2 * i], b = operands[2 * i + 1];
        *step = (leat_cl_step){
            .name = i < n_names ? names[i] : leat_node_name(n), .a = (int)a, .b = (int)b};
        step->op = leat_cl_expression(ops[i], b >= 0 ? 2 : 1, &step->same);
        bool right = step->op && a >= 0 && a < t->n_args + i && b >= -1 && b < t->n_args + i;
        for (int o = 0; o < 2 && right; o++) { /* a result is used once */
            const int64_t from = (o ? b : a) - t->n_args;
            right = from < 0 || !used[from];
            if (right && from >= 0)
                used[from] = true;
        }
        if (!right)
            s = leat_error(INVALID_ARGUMENT, "Element-wise step %d, %s, has the wrong operands", i,
                           ops[i]);
        t->n++;
    }
    free(used);
    return s;
}

void leat_cl_tree_release(leat_cl_tree *t)
{
    free(t->steps);
    *t = (leat_cl_tree){0};
}

/* ---- As OpenCL C ---- */

static void put_operand(leat_strbuf *b, const leat_cl_tree *t, int operand)
{
    if (operand < t->n_args)
        leat_strbuf_printf(b, "x%d[AT(%d)]", operand, operand);
    else
        leat_strbuf_printf(b, "t%d", operand - t->n_args);
}

static void put_tree(leat_strbuf *b, const leat_cl_tree *t)
{
    leat_strbuf_puts(b, "#define AT(k) (ONES >> (k) & 1 ? 0 : i)\nKERNEL tree(");
    for (int i = 0; i < t->n_args; i++)
        leat_strbuf_printf(b, "TENSOR(x%d), ", i);
    leat_strbuf_puts(b, "TENSOR(z), int n)\n{\n");
    for (int i = 0; i < t->n_args; i++)
        leat_strbuf_printf(b, "    GLOBAL const float *x%d = OF(const float, x%d);\n", i, i);
    leat_strbuf_puts(b, "    GLOBAL float *z = OF(float, z);\n    EACH(i, n)\n    {\n");
    for (int i = 0; i < t->n; i++) {
        const leat_cl_step *s = &t->steps[i];
        leat_strbuf_printf(b, "        const float t%d = EXPR_%s(", i, s->op);
        put_operand(b, t, s->a);
        if (s->b >= 0) {
            leat_strbuf_puts(b, ", ");
            put_operand(b, t, s->b);
        }
        leat_strbuf_puts(b, ");\n");
    }
    leat_strbuf_printf(b, "        z[i] = t%d;\n    }\n}\n", t->n - 1);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards texts */
static leat_map texts;

const leat_cl_text *leat_cl_tree_text(const leat_cl_tree *t)
{
    leat_strbuf b = {0};
    if (t->n_args > MOST_ARGS || t->n > MOST_STEPS)
        return NULL;
    put_tree(&b, t);
    const char *source = leat_strbuf_text(&b);
    pthread_mutex_lock(&lock);
    leat_cl_text *found = leat_map_get(&texts, source);
    if (!found && texts.n < MOST_TEXTS) {
        found = leat_new(leat_cl_text);
        *found = (leat_cl_text){"tree", leat_xstrdup(source), strlen(source)};
        leat_map_put(&texts, source, found);
    }
    pthread_mutex_unlock(&lock);
    leat_strbuf_release(&b);
    return found;
}
