/* vector_replay.h -- runs one case of tests/vectors on Leat and compares the results. */
#ifndef LEAT_TEST_VECTOR_REPLAY_H
#define LEAT_TEST_VECTOR_REPLAY_H

#include <leat/leat.h>
#include <stdarg.h>
#include "graph/op_info.h"
#include "proto/graph.pb-c.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"
#include "vector_compare.h"
#include "vector_file.h"

enum { RUN_TIMEOUT_MS = 20000 };

typedef enum outcome { PASSED, FAILED, NO_OP, NO_KERNEL, N_OUTCOMES } outcome;
/* Counts of what was compared in all cases. */
typedef struct vec_counts {
    int values, gradients, errors, shapes;
} vec_counts;

/* One case while it runs. */
typedef struct replay {
    const vec_case *c;
    Leat__GraphDef *def; /* the case's graph */
    leat_arena *arena;
    leat_graph *graph;
    leat_session *session;
    const char *mode;    /* "plain" or "optimised" */
    const char *missing; /* the op or kernel that Leat does not have; or NULL */
    vec_counts *counts;
    bool verbose; /* print what is wrong */
} replay;

/* ---- which ops the graph needs ---- */

static bool is_function(const replay *r, const char *name)
{
    const Leat__FunctionDefLibrary *l = r->def->library;
    for (size_t i = 0; l && i < l->n_function; i++)
        if (strcmp(l->function[i]->signature->name, name) == 0)
            return true;
    return false;
}

static const char *missing_among(const replay *r, Leat__NodeDef *const *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!leat_op_find(nodes[i]->op) && !is_function(r, nodes[i]->op))
            return nodes[i]->op;
    return NULL;
}

/* The first op, also of a function, that Leat does not have. */
static const char *missing_op(const replay *r)
{
    const char *op = missing_among(r, r->def->node, r->def->n_node);
    const Leat__FunctionDefLibrary *l = r->def->library;
    for (size_t i = 0; l && i < l->n_function && !op; i++)
        op = missing_among(r, l->function[i]->node_def, l->function[i]->n_node_def);
    return op ? leat_arena_strdup(r->arena, op) : NULL;
}

static const char *vec_devices; /* of all sessions; NULL: a CPU */

/* ---- what went wrong ---- */

static outcome fail(const replay *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static outcome fail(const replay *r, const char *fmt, ...)
{
    if (r->verbose) {
        va_list ap;
        va_start(ap, fmt);
        printf("  %s (%s): ", r->c->name, r->mode);
        vprintf(fmt, ap);
        printf("\n");
        va_end(ap);
    }
    return FAILED;
}

/* The name in a message such as "No gradient for op 'X'": the text from behind `words` to the next
 * quote. */
static const char *quoted(replay *r, const char *message, const char *words)
{
    const char *at = strstr(message, words);
    if (!at)
        return NULL;
    at += strlen(words);
    return leat_arena_strndup(r->arena, at, strcspn(at, "']"));
}

/* A status that was not expected; takes it. An op, its gradient or a kernel that Leat does not have
 * is no failure. */
static outcome fail_status(replay *r, const char *what, leat_status s)
{
    outcome o;
    const char *message = leat_status_message(s);
    const char *op = quoted(r, message, "Op type not registered '");
    const char *kernel = quoted(r, message, "No OpKernel was registered to support Op '");
    if (op && !is_function(r, op)) {
        r->missing = op;
        o = NO_OP;
    } else if (kernel) {
        const char *attrs = quoted(r, message, "with these attrs: [");
        r->missing = leat_arena_printf(r->arena, "%s[%s]", kernel, attrs ? attrs : "");
        o = NO_KERNEL;
    } else {
        o = fail(r, "%s: %s: %s (%s:%d)", what, leat_code_name(leat_status_code(s)), message,
                 leat_status_file(s), leat_status_line(s));
    }
    leat_status_free(s);
    return o;
}

static leat_tensor *tensor_of(vec_bytes b)
{
    Leat__TensorProto *p = NULL;
    leat_tensor *t = NULL;
    leat_status s = LEAT_UNPACK(tensor_proto, b.s, b.n, &p);
    if (!s)
        s = leat_tensor_from_proto(p, &t);
    leat_proto_free(p);
    LEAT_DIE_ON_ERROR(s); /* the files are part of this repository */
    return t;
}

/* ---- one run ---- */

typedef struct run_args {
    leat_feed *feeds;
    leat_out *targets;
    leat_fetch *fetches;
    leat_tensor **values;
    int n_feeds, n_targets, n_fetches;
} run_args;

static void run_args_release(run_args *a)
{
    for (int i = 0; i < a->n_feeds; i++)
        leat_tensor_unref((leat_tensor *)a->feeds[i].value);
    for (int i = 0; i < a->n_fetches; i++)
        leat_tensor_unref(a->values[i]);
}

static void add_feed(run_args *a, leat_out x, leat_tensor *value)
{
    for (int i = 0; i < a->n_feeds; i++)
        if (a->feeds[i].x.node == x.node && a->feeds[i].x.index == x.index) {
            leat_tensor_unref((leat_tensor *)a->feeds[i].value);
            a->feeds[i].value = value;
            return;
        }
    a->feeds[a->n_feeds++] = (leat_feed){x, value};
}

static leat_status add_feeds(replay *r, run_args *a, vec_list l)
{
    for (uint32_t i = 0; i < l.n; i++) {
        leat_out x;
        LEAT_TRY(leat_graph_find_out(r->graph, l.v[i].name, &x));
        add_feed(a, x, tensor_of(l.v[i].tensor));
    }
    return NULL;
}

static void run_args_init(replay *r, run_args *a, uint32_t feeds, uint32_t targets,
                          uint32_t fetches)
{
    *a = (run_args){
        .feeds = leat_arena_array(r->arena, leat_feed, r->c->feeds.n + feeds),
        .targets = leat_arena_array(r->arena, leat_out, targets),
        .fetches = leat_arena_array(r->arena, leat_fetch, fetches),
        .values = leat_arena_array(r->arena, leat_tensor *, fetches),
    };
}

static void add_fetch(run_args *a, leat_out x)
{
    a->fetches[a->n_fetches] = (leat_fetch){x, &a->values[a->n_fetches]};
    a->n_fetches++;
}

static leat_status prepare(replay *r, const vec_run *v, run_args *a)
{
    run_args_init(r, a, v->feeds.n, v->targets.n, v->fetches.n);
    LEAT_TRY(add_feeds(r, a, r->c->feeds));
    LEAT_TRY(add_feeds(r, a, v->feeds));
    for (uint32_t i = 0; i < v->targets.n; i++) {
        leat_node *n = leat_graph_find(r->graph, v->targets.v[i].name);
        LEAT_REQUIRE(n, NOT_FOUND, "no node %s", v->targets.v[i].name);
        a->targets[a->n_targets++] = (leat_out){n, -1};
    }
    for (uint32_t i = 0; i < v->fetches.n; i++) {
        leat_out x;
        LEAT_TRY(leat_graph_find_out(r->graph, v->fetches.v[i].name, &x));
        add_fetch(a, x);
    }
    return NULL;
}

static leat_status run_now(replay *r, run_args *a)
{
    return leat_session_run_with(r->session, &(leat_run_options){.timeout_ms = RUN_TIMEOUT_MS},
                                 (leat_feeds){a->feeds, a->n_feeds},
                                 (leat_fetches){a->fetches, a->n_fetches},
                                 (leat_targets){a->targets, a->n_targets});
}

static outcome compare(replay *r, const char *what, leat_tensor *got, vec_bytes want, uint32_t kind,
                       double scale)
{
    char why[512];
    leat_tensor *w = tensor_of(want);
    bool ok = vec_alike(got, w, kind, scale, why, sizeof why);
    leat_tensor_unref(w);
    return ok ? PASSED : fail(r, "%s: %s", what, why);
}

/* Checks the status of a run that should fail. Takes s. */
static outcome check_error(replay *r, const vec_run *v, leat_status s)
{
    r->counts->errors++;
    if (!s)
        return fail(r, "no error; want %s: %s",
                    v->code == VEC_ANY_ERROR ? "one" : leat_code_name((leat_code)v->code),
                    v->words);
    if (strstr(leat_status_message(s), "No OpKernel was registered"))
        return fail_status(r, "run", s);
    bool ok = (v->code == VEC_ANY_ERROR || leat_status_code(s) == (leat_code)v->code) &&
              strstr(leat_status_message(s), v->words);
    outcome o = PASSED;
    if (!ok)
        o = fail(r, "error %s: %s; want %s: %s", leat_code_name(leat_status_code(s)),
                 leat_status_message(s),
                 v->code == VEC_ANY_ERROR ? "any" : leat_code_name((leat_code)v->code), v->words);
    leat_status_free(s);
    return o;
}

static outcome replay_run(replay *r, const vec_run *v)
{
    run_args a;
    leat_status s = prepare(r, v, &a);
    if (!s)
        s = run_now(r, &a);
    outcome o = PASSED;
    if (v->code)
        o = check_error(r, v, s);
    else if (s)
        o = fail_status(r, "run", s);
    else
        for (uint32_t i = 0; i < v->fetches.n && o == PASSED; i++) {
            o = compare(r, v->fetches.v[i].name, a.values[i], v->fetches.v[i].tensor,
                        r->c->tolerance, r->c->scale);
            r->counts->values++;
        }
    run_args_release(&a);
    return o;
}

/* ---- inferred shapes: all that TensorFlow knows, Leat must know; it may know more ---- */

static outcome check_shapes(replay *r, const vec_run *v)
{
    for (uint32_t i = 0; i < v->fetches.n; i++) {
        leat_out x;
        leat_status s = leat_graph_find_out(r->graph, v->fetches.v[i].name, &x);
        if (s)
            return fail_status(r, "fetch", s);
        Leat__TensorShapeProto *p = NULL;
        leat_shape want, got = leat_out_shape(x);
        LEAT_DIE_ON_ERROR(
            LEAT_UNPACK(tensor_shape_proto, v->fetches.v[i].shape.s, v->fetches.v[i].shape.n, &p));
        LEAT_DIE_ON_ERROR(leat_shape_from_proto(p, &want));
        leat_proto_free(p);
        bool ok = want.rank < 0 || got.rank == want.rank;
        for (int d = 0; ok && d < want.rank; d++)
            ok = want.dim[d] < 0 || got.dim[d] == want.dim[d];
        r->counts->shapes++;
        if (!ok)
            return fail(r, "%s: inferred shape is %s, want %s", v->fetches.v[i].name,
                        leat_shape_show(&got).s, leat_shape_show(&want).s);
    }
    return PASSED;
}

/* ---- gradients ---- */

static leat_status build_gradient(replay *r, const vec_gradient *v, run_args *a,
                                  leat_grad_value *grads)
{
    leat_out *ys = leat_arena_array(r->arena, leat_out, v->ys.n);
    leat_out *xs = leat_arena_array(r->arena, leat_out, v->xs.n);
    leat_out *grad_ys = leat_arena_array(r->arena, leat_out, v->grad_ys.n);
    run_args_init(r, a, v->grad_ys.n, 0, v->xs.n);
    LEAT_TRY(add_feeds(r, a, r->c->feeds));
    for (uint32_t i = 0; i < v->ys.n; i++)
        LEAT_TRY(leat_graph_find_out(r->graph, v->ys.v[i].name, &ys[i]));
    for (uint32_t i = 0; i < v->xs.n; i++)
        LEAT_TRY(leat_graph_find_out(r->graph, v->xs.v[i].name, &xs[i]));
    for (uint32_t i = 0; i < v->grad_ys.n; i++) {
        leat_tensor *t = tensor_of(v->grad_ys.v[i].tensor);
        grad_ys[i] = leat_placeholder(r->graph, leat_tensor_dtype(t), leat_tensor_shape(t));
        add_feed(a, grad_ys[i], t);
    }
    leat_gradients_options options = {.grad_ys = v->grad_ys.n ? grad_ys : NULL};
    LEAT_TRY(leat_gradients_at(LEAT_AT, ys, (int)v->ys.n, xs, (int)v->xs.n, &options, grads));
    return leat_graph_status(r->graph);
}

static outcome replay_gradient(replay *r, const vec_gradient *v)
{
    run_args a;
    leat_grad_value *grads = leat_arena_array(r->arena, leat_grad_value, v->xs.n);
    leat_status s = build_gradient(r, v, &a, grads);
    outcome o = s ? fail_status(r, "gradients", s) : PASSED;
    for (uint32_t i = 0; i < v->xs.n && o == PASSED; i++) {
        bool none = !grads[i].value.node;
        if (none != (v->xs.v[i].kind == 0))
            o = fail(r, "gradient by %s is %s, want %s", v->xs.v[i].name, none ? "none" : "there",
                     none ? "one" : "none");
        else if (!none)
            add_fetch(&a, leat_grad_dense(grads[i]));
    }
    if (o == PASSED && a.n_fetches && (s = run_now(r, &a)))
        o = fail_status(r, "run of gradients", s);
    for (uint32_t i = 0, k = 0; i < v->xs.n && o == PASSED; i++) {
        if (!v->xs.v[i].kind)
            continue;
        char *what = leat_arena_printf(r->arena, "gradient by %s", v->xs.v[i].name);
        /* sums in another order are allowed even where the op itself is exact */
        o = compare(r, what, a.values[k++], v->xs.v[i].tensor, VEC_RELATIVE, fmax(2, r->c->scale));
        r->counts->gradients++;
    }
    run_args_release(&a);
    return o;
}

/* ---- one case ---- */

static outcome replay_in(replay *r, bool optimised)
{
    r->mode = optimised ? "optimised" : "plain";
    leat_status s = leat_graph_from_binary(r->graph, r->c->graph.s, r->c->graph.n, "");
    if (s)
        return r->c->n_runs && r->c->runs[0].code ? check_error(r, &r->c->runs[0], s)
                                                  : fail_status(r, "import", s);
    if ((s = leat_session_open(r->graph, &r->session, .no_optimization = !optimised,
                               .intra_op_threads = 1, .devices = vec_devices,
                               .allow_soft_placement = vec_devices != NULL)))
        return fail_status(r, "session", s);
    outcome o = PASSED;
    for (uint32_t i = 0; i < r->c->n_runs && o == PASSED; i++) {
        o = check_shapes(r, &r->c->runs[i]);
        if (o == PASSED)
            o = replay_run(r, &r->c->runs[i]);
    }
    for (uint32_t i = 0; i < r->c->n_gradients && o == PASSED; i++)
        o = replay_gradient(r, &r->c->gradients[i]);
    return o;
}

/* Runs the graph as it is, then optimised; gives the result of the first that does not pass.
 * missing_out names the op or kernel that Leat does not have; it lives in the arena. */
static inline outcome vec_replay(const vec_case *c, leat_arena *arena, bool verbose,
                                 vec_counts *counts, const char **missing_out)
{
    replay r = {.c = c, .arena = arena, .mode = "plain", .counts = counts, .verbose = verbose};
    LEAT_DIE_ON_ERROR(LEAT_UNPACK(graph_def, c->graph.s, c->graph.n, &r.def));
    r.missing = missing_op(&r);
    outcome o = r.missing ? NO_OP : PASSED;
    for (int optimised = 0; optimised < 2 && o == PASSED; optimised++) {
        r.graph = leat_graph_new();
        o = replay_in(&r, optimised);
        leat_session_close(r.session);
        r.session = NULL;
        leat_graph_free(r.graph);
    }
    leat_proto_free(r.def);
    *missing_out = r.missing;
    return o;
}

#endif
