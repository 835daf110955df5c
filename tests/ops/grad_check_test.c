/* grad_check_test.c -- the numeric checker, run over every op of the vectors that has a gradient:
 * the cases in double and float whose inputs are fed. A function has no derivative at a kink, and
 * the stored inputs hit some (ties of Maximum, whole numbers of Floor ...): an op passes if it has
 * a case that agrees to 1e-6 (float: 2e-2) and at most a fifth of its cases do not. What is wrong
 * at a kink the vectors decide. */
#include "test.h"

#include "vector_replay.h"

static const char *const families[] = {"array", "index", "cwise", "reduce", "math",
                                       "nn",    "state", "flow",  "extra"};

/* Gradients that are not derivatives, by TensorFlow's definition or by the inputs' ties. */
static const char *const exempt[] = {
    "StopGradient/",            /* what it is for */
    "Exit/while/stopped",       /* through StopGradient */
    "DynamicStitch/float/2_[3", /* values that a later one overwrites get a gradient, too */
    "LoopCond/while/until",     /* how often the loop runs depends on the input */
    "UnsortedSegmentMax/float", /* ties */
    "UnsortedSegmentMin/float", /* ties */
};

static bool is_exempt(const char *name)
{
    for (size_t i = 0; i < sizeof(exempt) / sizeof(*exempt); i++)
        if (strncmp(name, exempt[i], strlen(exempt[i])) == 0)
            return true;
    return false;
}

typedef struct op_row {
    char name[64];
    int right, wrong;
    double worst;
    char where[160];
} op_row;
static op_row ops[512];
static int n_ops;

static op_row *row_of(const char *op)
{
    for (int i = 0; i < n_ops; i++)
        if (strcmp(ops[i].name, op) == 0)
            return &ops[i];
    snprintf(ops[n_ops].name, sizeof(ops[n_ops].name), "%s", op);
    return &ops[n_ops++];
}

static bool is_float(leat_dtype t)
{
    return t == LEAT_FLOAT || t == LEAT_DOUBLE;
}

static bool finite_tensor(const leat_tensor *t)
{
    for (int64_t i = 0; i < leat_tensor_count(t); i++)
        if (!isfinite(leat_tensor_at(t, i)))
            return false;
    return true;
}

/* The xs that are fed and of y's dtype; 0 if y or one of the values does not suit. */
static int suitable(replay *r, const vec_gradient *g, const run_args *a, leat_out *y, leat_out *xs)
{
    int n = 0;
    leat_status s = leat_graph_find_out(r->graph, g->ys.v[0].name, y);
    leat_status_free(s);
    if (s || g->ys.n != 1 || !is_float(leat_out_dtype(*y)))
        return 0;
    for (uint32_t i = 0; i < g->xs.n && n < 8; i++) {
        leat_out x;
        s = leat_graph_find_out(r->graph, g->xs.v[i].name, &x);
        leat_status_free(s);
        if (s || leat_out_dtype(x) != leat_out_dtype(*y) || !g->xs.v[i].kind)
            continue;
        for (int f = 0; f < a->n_feeds; f++)
            if (a->feeds[f].x.node == x.node && finite_tensor(a->feeds[f].value) &&
                leat_tensor_count(a->feeds[f].value) > 0)
                xs[n++] = x;
    }
    return n;
}

static void check_case(replay *r)
{
    const vec_case *c = r->c;
    r->graph = leat_graph_new();
    leat_status s = leat_graph_from_binary(r->graph, c->graph.s, c->graph.n, "");
    if (!s)
        s = leat_session_open(r->graph, &r->session);
    run_args a = {0};
    for (uint32_t i = 0; i < c->n_runs && !s; i++) { /* variables are set by the runs */
        run_args_release(&a);
        s = prepare(r, &c->runs[i], &a);
        leat_status_free(s ? NULL : run_now(r, &a));
    }
    leat_out y, xs[8];
    int n = s ? 0 : suitable(r, &c->gradients[0], &a, &y, xs);
    double worst = NAN;
    if (n)
        s = leat_check_gradients(r->session, y, xs, n, ((leat_feeds){a.feeds, a.n_feeds}), &worst,
                                 .elements = 12);
    if (n && !s && isfinite(worst)) {
        op_row *o = row_of(c->op);
        bool right = worst < (leat_out_dtype(y) == LEAT_DOUBLE ? 1e-6 : 2e-2);
        o->right += right;
        o->wrong += !right;
        if (!right && worst > o->worst) {
            o->worst = worst;
            snprintf(o->where, sizeof(o->where), "%s", c->name);
        }
    }
    leat_status_free(s);
    run_args_release(&a);
    leat_session_close(r->session);
    leat_graph_free(r->graph);
}

static void every_gradient(void)
{
    for (size_t f = 0; f < sizeof(families) / sizeof(*families); f++) {
        char path[512];
        snprintf(path, sizeof(path), "%s/tests/vectors/%s.vec", LEAT_SOURCE_DIR, families[f]);
        vec_file file;
        CHECK(vec_open(&file, path));
        for (;;) {
            leat_arena arena;
            vec_case c;
            leat_arena_init(&arena);
            bool more = vec_next(&file, &arena, &c);
            if (more && c.n_gradients && !is_exempt(c.name))
                check_case(&(replay){.c = &c, .arena = &arena});
            leat_arena_release(&arena);
            if (!more)
                break;
        }
        vec_close(&file);
    }
    int right = 0, wrong = 0;
    for (int i = 0; i < n_ops; i++) {
        right += ops[i].right;
        wrong += ops[i].wrong;
        if (!ops[i].right || ops[i].wrong * 4 > ops[i].right) {
            test_failures++;
            printf("%s: %d of %d cases disagree, by up to %.2g in %s\n", ops[i].name, ops[i].wrong,
                   ops[i].right + ops[i].wrong, ops[i].worst, ops[i].where);
        }
    }
    printf("%d ops, %d gradients agree with finite differences, %d at kinks\n", n_ops, right,
           wrong);
    CHECK(n_ops > 80);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"every_gradient", every_gradient});
}
