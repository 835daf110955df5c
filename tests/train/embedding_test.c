/* embedding_test.c -- lookups, candidate samplers, sampled losses, and the rows that optimizers
 * update, against TensorFlow 1.15: values and gradients. make_embedding.py has written
 * data/embedding.txt by the same graphs. Mistakes and their messages. */
#include "train/values.h"

enum { ROWS = 11, SIZE = 3, MOST = 16 };

/* What a case computes: outputs, and the tensors that gradients are taken by. */
typedef struct graph_case {
    leat_graph *g;
    leat_out y[2], x[MOST];
    int n_y, n_x;
} graph_case;

/* Runs the case, compares outputs with NAME.values and gradients of their weighted sum with
 * NAME.grads, and frees the graph. */
static void check_case(graph_case *c, const char *name, double tolerance)
{
    char line[96];
    leat_session *s;
    leat_tensor *got[MOST] = {0};
    leat_grad_value grads[MOST];
    leat_fetch fetch[MOST];
    leat_out loss = {0};
    for (int i = 0; i < c->n_y; i++) {
        leat_out w = constant(c->g, LEAT_FLOAT, leat_out_shape(c->y[i]), 50 + i);
        leat_out part = leat_reduce_sum(leat_mul(leat_cast(c->y[i], LEAT_FLOAT), w));
        loss = i ? leat_add(loss, part) : part;
        fetch[i] = (leat_fetch){c->y[i], &got[i]};
    }
    CHECK_OK(leat_graph_status(c->g));
    CHECK_OK(leat_session_open(c->g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, (leat_fetches){fetch, c->n_y}, LEAT_NO_TARGET));
    snprintf(line, sizeof(line), "%s.values", name);
    check_sequence("embedding.txt", line, got, c->n_y, tolerance);
    leat_session_close(s);
    if (c->n_x > 0) {
        CHECK_OK(leat_gradients(&loss, 1, c->x, c->n_x, grads));
        for (int i = 0; i < c->n_x; i++)
            fetch[i] = (leat_fetch){leat_grad_dense(grads[i]), &got[i]};
        CHECK_OK(leat_session_open(c->g, &s));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, (leat_fetches){fetch, c->n_x}, LEAT_NO_TARGET));
        snprintf(line, sizeof(line), "%s.grads", name);
        check_sequence("embedding.txt", line, got, c->n_x, 2 * tolerance);
        leat_session_close(s);
    }
    leat_graph_free(c->g);
}

/* n parts of a table of ROWS rows of `size` elements (0: of numbers), appended to c->x; gives the
 * first. */
static leat_out *parts(graph_case *c, leat_dtype t, int n, int64_t size, int k)
{
    leat_out *first = &c->x[c->n_x];
    for (int i = 0; i < n; i++) {
        const int64_t rows = ROWS / n + (i < ROWS % n);
        c->x[c->n_x++] = constant(c->g, t, size ? leat_shape(rows, size) : leat_shape(rows), k + i);
    }
    return first;
}

static leat_out of_ints(leat_graph *g, leat_dtype t, leat_shape s, const int64_t *v)
{
    leat_out flat = leat_int_vector_at(LEAT_AT, g, t, v, (int)leat_shape_count(&s));
    return leat_reshape_to(flat, s);
}

static leat_out of_floats(leat_graph *g, int n, const float *v)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(n), v, &t));
    leat_out x = leat_const(g, t);
    leat_tensor_unref(t);
    return x;
}

/* ---- Lookups ---- */

static void lookups(void)
{
    for (int n = 1; n <= 3; n += 2)
        for (int blocks = 0; blocks < 2; blocks++)
            for (int norm = 0; norm < 2; norm++) {
                char name[64];
                graph_case c = {.g = leat_graph_new(), .n_y = 1};
                leat_out *p = parts(&c, LEAT_FLOAT, n, SIZE, 0);
                leat_out ids = of_ints(c.g, LEAT_INT32, leat_shape(2, 3),
                                       (const int64_t[]){0, 10, 3, 7, 3, 5});
                c.y[0] =
                    norm ? leat_embedding_lookup(p, n, ids, .in_blocks = blocks, .max_norm = 0.7)
                         : leat_embedding_lookup(p, n, ids, .in_blocks = blocks);
                snprintf(name, sizeof(name), "lookup_%d_%s%s", n, blocks ? "div" : "mod",
                         norm ? "_norm" : "");
                check_case(&c, name, 1e-6);
            }
}

static leat_sparse_value sparse(leat_graph *g, int n, const int64_t (*at)[2], leat_out values,
                                int64_t rows, int64_t columns)
{
    return (leat_sparse_value){of_ints(g, LEAT_INT64, leat_shape(n, 2), &at[0][0]), values,
                               of_ints(g, LEAT_INT64, leat_shape(2), (int64_t[]){rows, columns})};
}

static const int64_t places[6][2] = {{0, 0}, {0, 2}, {1, 0}, {2, 0}, {2, 1}, {2, 3}};
static const int64_t which[6] = {3, 10, 0, 3, 3, 7};
static const float weights[6] = {1, 0.5f, 2, -1, 3, 0.25f};
static const char *const combiners[] = {"mean", "sum", "sqrtn"};

static leat_sparse_value some_ids(leat_graph *g)
{
    return sparse(g, 6, places, of_ints(g, LEAT_INT64, leat_shape(6), which), 3, 4);
}

static void sparse_lookups(void)
{
    static const struct {
        int n;
        const char *name;
    } tables[] = {{1, "1_mod"}, {3, "3_mod"}, {3, "3_div"}};
    for (int how = 0; how < 3; how++)
        for (int weighted = 0; weighted < 2; weighted++)
            for (int k = 0; k < 3; k++) {
                char name[64];
                graph_case c = {.g = leat_graph_new(), .n_y = 1};
                leat_out *p = parts(&c, LEAT_FLOAT, tables[k].n, SIZE, 0);
                const leat_sparse_value ids = some_ids(c.g);
                const leat_sparse_value w = {ids.indices, of_floats(c.g, 6, weights),
                                             ids.dense_shape};
                const leat_sparse_value *given = weighted ? &w : NULL;
                c.y[0] = k < 2 ? leat_embedding_lookup_sparse(p, tables[k].n, ids,
                                                              .combiner = (leat_combiner)how,
                                                              .weights = given)
                               : leat_embedding_lookup_sparse(
                                     p, tables[k].n, ids, .combiner = (leat_combiner)how,
                                     .weights = given, .in_blocks = true, .max_norm = 0.6);
                c.y[0] = leat_reshape_to(c.y[0], leat_shape(3, SIZE));
                snprintf(name, sizeof(name), "sparse_%s_%s_%s", combiners[how],
                         weighted ? "weighted" : "plain", tables[k].name);
                check_case(&c, name, 2e-6);
            }
    graph_case c = {.g = leat_graph_new(), .n_y = 1};
    leat_out half = leat_cast(constant(c.g, LEAT_FLOAT, leat_shape(ROWS, SIZE), 0), LEAT_HALF);
    c.y[0] =
        leat_reshape_to(leat_embedding_lookup_sparse(&half, 1, some_ids(c.g)), leat_shape(3, SIZE));
    check_case(&c, "sparse_half", 2e-6);
}

static void safe_lookups(void)
{
    static const int64_t holes[6][2] = {{0, 0}, {0, 2}, {2, 0}, {3, 0}, {3, 1}, {3, 3}};
    static const int64_t found[6] = {3, -1, -4, 3, 9, 7};
    for (int how = 0; how < 3; how++)
        for (int weighted = 0; weighted < 2; weighted++)
            for (int standard = 0; standard < 2; standard++) {
                char name[64];
                graph_case c = {.g = leat_graph_new(), .n_y = 1};
                leat_out *p = parts(&c, LEAT_FLOAT, 2, SIZE, 0);
                const leat_sparse_value ids =
                    sparse(c.g, 6, holes, of_ints(c.g, LEAT_INT64, leat_shape(6), found), 5, 4);
                const leat_sparse_value w = {ids.indices, of_floats(c.g, 6, weights),
                                             ids.dense_shape};
                const leat_sparse_value *given = weighted ? &w : NULL;
                c.y[0] = standard ? leat_safe_embedding_lookup_sparse(
                                        p, 2, ids, .combiner = (leat_combiner)how, .weights = given,
                                        .in_blocks = true, .default_id = 2)
                                  : leat_safe_embedding_lookup_sparse(
                                        p, 2, ids, .combiner = (leat_combiner)how, .weights = given,
                                        .in_blocks = true);
                c.y[0] = leat_reshape_to(c.y[0], leat_shape(5, SIZE));
                snprintf(name, sizeof(name), "safe_%s_%s%s", combiners[how],
                         weighted ? "weighted" : "plain", standard ? "_default" : "");
                check_case(&c, name, 2e-6);
            }
}

static void safe_cube(void)
{
    static const int64_t at[] = {0, 0, 0, 0, 2, 1, 1, 1, 0, 1, 1, 1};
    graph_case c = {.g = leat_graph_new(), .n_y = 1};
    leat_out *p = parts(&c, LEAT_FLOAT, 1, SIZE, 0);
    const leat_sparse_value ids = {
        of_ints(c.g, LEAT_INT64, leat_shape(4, 3), at),
        of_ints(c.g, LEAT_INT64, leat_shape(4), (const int64_t[]){3, 10, 0, 2}),
        of_ints(c.g, LEAT_INT64, leat_shape(3), (const int64_t[]){2, 3, 2})};
    c.y[0] = leat_reshape_to(leat_safe_embedding_lookup_sparse(p, 1, ids), leat_shape(2, 3, SIZE));
    check_case(&c, "safe_cube", 2e-6);
}

/* ---- Sampled losses ---- */

static const double unigrams[ROWS] = {5, 1, 0.5, 9, 3, 3, 2, 8, 1, 1, 6};
enum { LABELS = 2, SAMPLES = 6, SEED = 5 };

static const struct {
    const char *name;
    leat_sampler kind;
    double distortion;
} samplers[] = {{"log_uniform", LEAT_SAMPLE_LOG_UNIFORM, 0},
                {"uniform", LEAT_SAMPLE_UNIFORM, 0},
                {"learned", LEAT_SAMPLE_LEARNED, 0},
                {"thread_unsafe", LEAT_SAMPLE_THREAD_UNSAFE_LEARNED, 0},
                {"fixed", LEAT_SAMPLE_FIXED, 1},
                {"distorted", LEAT_SAMPLE_FIXED, 0.5},
                {"all", LEAT_SAMPLE_ALL, 0}};

/* What a case of losses needs. */
typedef struct loss_case {
    graph_case c;
    leat_out *w, *b, x, labels;
    int n;
} loss_case;

static void loss_begin(loss_case *l, int n)
{
    static const int64_t labels[] = {0, 9, 4, 1, 2, 2, 10, 3};
    *l = (loss_case){.c = {.g = leat_graph_new(), .n_y = 2}, .n = n};
    leat_graph_set_seed(l->c.g, 7);
    l->w = parts(&l->c, LEAT_FLOAT, n, SIZE, 0);
    l->b = parts(&l->c, LEAT_FLOAT, n, 0, 10);
    l->x = l->c.x[l->c.n_x++] = constant(l->c.g, LEAT_FLOAT, leat_shape(4, SIZE), 20);
    l->labels = of_ints(l->c.g, LEAT_INT64, leat_shape(4, LABELS), labels);
}

static void sampled_losses(void)
{
    for (size_t i = 0; i < sizeof(samplers) / sizeof(*samplers); i++)
        for (int k = 0; k < 3; k++) {
            char name[64];
            const int64_t samples = samplers[i].kind == LEAT_SAMPLE_ALL ? ROWS : SAMPLES;
            loss_case l;
            loss_begin(&l, k ? 3 : 1);
            const leat_candidates drawn =
                samplers[i].kind == LEAT_SAMPLE_FIXED
                    ? leat_candidate_sampler(LEAT_SAMPLE_FIXED, l.labels, samples, ROWS,
                                             .seed = SEED, .unigrams = unigrams, .n_unigrams = ROWS,
                                             .distortion = samplers[i].distortion)
                    : leat_candidate_sampler(samplers[i].kind, l.labels, samples, ROWS,
                                             .seed = SEED);
            l.c.y[0] = leat_nce_loss(l.w, l.n, l.b, l.n, l.labels, l.x, samples, ROWS,
                                     .candidates = &drawn, .remove_accidental_hits = true,
                                     .in_blocks = k == 2);
            l.c.y[1] = leat_sampled_softmax_loss(l.w, l.n, l.b, l.n, l.labels, l.x, samples, ROWS,
                                                 .candidates = &drawn, .in_blocks = k == 2,
                                                 .remove_accidental_hits = true);
            snprintf(name, sizeof(name), "loss_%s_%d_%s", samplers[i].name, l.n,
                     k == 2 ? "div" : "mod");
            check_case(&l.c, name, 5e-6);
        }
}

/* Classes that are drawn twice; samples that are true classes, which count or not; the sampler that
 * a loss makes if it is given none. */
static void loss_options(void)
{
    loss_case l;
    loss_begin(&l, 1);
    leat_candidates drawn = leat_candidate_sampler(LEAT_SAMPLE_UNIFORM, l.labels, SAMPLES, ROWS,
                                                   .seed = SEED, .repeated = true);
    l.c.y[0] = leat_nce_loss(l.w, 1, l.b, 1, l.labels, l.x, SAMPLES, ROWS, .candidates = &drawn);
    l.c.y[1] = leat_sampled_softmax_loss(l.w, 1, l.b, 1, l.labels, l.x, SAMPLES, ROWS,
                                         .candidates = &drawn, .remove_accidental_hits = false);
    check_case(&l.c, "loss_repeated", 5e-6);

    loss_begin(&l, 3);
    drawn = leat_candidate_sampler(LEAT_SAMPLE_LOG_UNIFORM, l.labels, SAMPLES, ROWS, .seed = SEED);
    l.c.y[0] = leat_nce_loss(l.w, 3, l.b, 3, l.labels, l.x, SAMPLES, ROWS, .candidates = &drawn,
                             .in_blocks = true);
    l.c.y[1] = leat_sampled_softmax_loss(l.w, 3, l.b, 3, l.labels, l.x, SAMPLES, ROWS,
                                         .candidates = &drawn, .in_blocks = true,
                                         .remove_accidental_hits = false);
    check_case(&l.c, "loss_kept", 5e-6);

    loss_begin(&l, 1);
    drawn = leat_candidate_sampler(LEAT_SAMPLE_LOG_UNIFORM, l.labels, SAMPLES, ROWS, .seed = SEED);
    l.c.y[0] = leat_nce_loss(l.w, 1, l.b, 1, l.labels, l.x, SAMPLES, ROWS, .candidates = &drawn);
    l.c.y[1] = leat_sampled_softmax_loss(l.w, 1, l.b, 1, l.labels, l.x, SAMPLES, ROWS,
                                         .candidates = &drawn);
    check_case(&l.c, "loss_hits", 5e-6);

    loss_begin(&l, 1);
    l.c.n_y = 1;
    l.c.y[0] =
        leat_sampled_softmax_loss(l.w, 1, l.b, 1, l.labels, l.x, SAMPLES, ROWS, .seed = SEED);
    check_case(&l.c, "loss_default", 5e-6);
}

/* ---- Rows that optimizers update ---- */

/* The loss of a tower: rows of a table in two parts, looked up by ids and by sparse ids. */
static leat_out tower_loss(leat_graph *g, const leat_out *e, leat_out w, const int64_t *ids, int i)
{
    static const int64_t at[4][2] = {{0, 0}, {0, 1}, {1, 0}, {2, 0}};
    leat_out flat = of_ints(g, LEAT_INT64, leat_shape(4), ids);
    leat_out rows = leat_embedding_lookup(e, 2, flat, .in_blocks = true);
    leat_out combined = leat_embedding_lookup_sparse(
        e, 2, sparse(g, 4, at, flat, 3, 2), .in_blocks = true, .combiner = LEAT_COMBINE_SUM);
    leat_out squares = leat_reduce_sum(leat_mul(leat_mul(rows, rows), w));
    return leat_add(leat_mul(squares, leat_scalar_like(squares, i + 1)),
                    leat_reduce_sum(leat_mul(combined, w)));
}

static void check_updates(const char *name, leat_optimizer *opt, bool handles)
{
    static const int64_t ids[2][4] = {{0, 6, 0, 3}, {5, 5, 0, 1}};
    leat_graph *g = leat_graph_new();
    leat_var_grad *towers[2];
    leat_out v[3] = {leat_variable(g, "a", constant(g, LEAT_FLOAT, leat_shape(4, SIZE), 0),
                                   .use_resource = handles),
                     leat_variable(g, "b", constant(g, LEAT_FLOAT, leat_shape(3, SIZE), 1),
                                   .use_resource = handles),
                     leat_variable(g, "w", constant(g, LEAT_FLOAT, leat_shape(SIZE), 30),
                                   .use_resource = handles)};
    int n;
    for (int i = 0; i < 2; i++)
        towers[i] = leat_compute_gradients(opt, tower_loss(g, v, v[2], ids[i], i), &n, .vars = v,
                                           .n_vars = 3);
    leat_var_grad *mean = leat_average_gradients(towers, 2, 3);
    leat_grad_value grads[3] = {mean[0].grad, mean[1].grad, mean[2].grad};
    CHECK(grads[0].indices.node && grads[1].indices.node && !grads[2].indices.node);
    leat_out norm = leat_clip_by_global_norm(grads, 3, 2.0);
    for (int i = 0; i < 3; i++)
        mean[i].grad = grads[i];
    leat_out train = leat_apply_gradients(opt, mean, 3);
    leat_out init = leat_global_variables_initializer(g);
    leat_session *s;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    for (int i = 0; i < 3; i++) {
        char line[64];
        leat_tensor *got[4] = {0};
        snprintf(line, sizeof(line), "rows_%s %d", name, i);
        CHECK_OK(
            leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({norm, &got[0]}), LEAT_TARGET(train)));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED,
                                  LEAT_FETCH({v[0], &got[1]}, {v[1], &got[2]}, {v[2], &got[3]}),
                                  LEAT_NO_TARGET));
        check_sequence("embedding.txt", line, got, 4, 5e-6);
    }
    leat_session_close(s);
    free(mean);
    free(towers[0]);
    free(towers[1]);
    leat_optimizer_free(opt);
    leat_graph_free(g);
}

static void updates(void)
{
    for (int handles = 0; handles < 2; handles++) {
        check_updates("sgd", leat_gradient_descent(.learning_rate = 0.1), handles);
        check_updates("momentum", leat_momentum(.learning_rate = 0.1, .momentum = 0.9), handles);
        check_updates("nesterov",
                      leat_momentum(.learning_rate = 0.1, .momentum = 0.9, .use_nesterov = true),
                      handles);
        check_updates("adam",
                      leat_adam(.learning_rate = 0.1, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-7),
                      handles);
        check_updates("adagrad", leat_adagrad(.learning_rate = 0.1), handles);
        for (int centered = 0; centered < 2; centered++)
            check_updates(centered ? "centered" : "rmsprop",
                          leat_rmsprop(.learning_rate = 0.1, .decay = 0.8, .momentum = 0.5,
                                       .epsilon = 1e-3, .centered = centered),
                          handles);
    }
}

/* ---- Mistakes ---- */

static void mistake(leat_graph *g, const char *words)
{
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, words);
    leat_graph_free(g);
}

static void mistakes(void)
{
    leat_graph *g = leat_graph_new();
    leat_out flat = leat_ints(g, 1, 2), w = leat_zeros(g, LEAT_FLOAT, leat_shape(4, 2));
    leat_candidate_sampler(LEAT_SAMPLE_UNIFORM, flat, 2, 4);
    mistake(g, "true classes must be (batch, num_true), with a known num_true of at least 1: their "
               "shape is [2]");
    g = leat_graph_new();
    leat_out ids = leat_placeholder(g, LEAT_INT64, leat_shape(-1, 1));
    leat_candidate_sampler(LEAT_SAMPLE_UNIFORM, ids, 0, 4);
    mistake(g, "the number of samples must be positive, got 0");
    g = leat_graph_new();
    ids = leat_placeholder(g, LEAT_INT64, leat_shape(-1, 1));
    leat_candidate_sampler(LEAT_SAMPLE_LEARNED, ids, 1, -3);
    mistake(g, "the number of classes must be positive, got -3");
    g = leat_graph_new();
    ids = leat_placeholder(g, LEAT_INT64, leat_shape(-1, -1));
    w = leat_zeros(g, LEAT_FLOAT, leat_shape(4, 2));
    leat_out b = leat_zeros(g, LEAT_FLOAT, leat_shape(4));
    leat_nce_loss(&w, 1, &b, 1, ids, w, 2, 4);
    mistake(g, "labels must be (batch, num_true), with a known num_true of at least 1: their shape "
               "is [?,?]");
    g = leat_graph_new();
    w = leat_zeros(g, LEAT_FLOAT, leat_shape(4, 2));
    leat_embedding_lookup_sparse(&w, 1, (leat_sparse_value){.values = leat_ints(g, 1)});
    mistake(g, "sparse ids need indices, values and a dense_shape");
    g = leat_graph_new();
    w = leat_zeros(g, LEAT_FLOAT, leat_shape(4, 2));
    leat_safe_embedding_lookup_sparse(&w, 1, some_ids(g), .weights = &(leat_sparse_value){{0}});
    mistake(g, "the weights of sparse ids need values");
    g = leat_graph_new();
    w = leat_zeros(g, LEAT_FLOAT, leat_shape(4, 2));
    leat_embedding_lookup_sparse(&w, 1, some_ids(g), .combiner = (leat_combiner)7);
    mistake(g, "combiner 7 is none of leat_combiner");
    g = leat_graph_new();
    const leat_out one[2] = {leat_zeros(g, LEAT_FLOAT, leat_shape(1, 2)),
                             leat_zeros(g, LEAT_FLOAT, leat_shape(0, 2))};
    leat_embedding_lookup(one, 2, leat_ints(g, 0), .in_blocks = true);
    mistake(g, "1 rows cannot be in 2 parts");
}

/* A tensor that is missing is a mistake, whichever it is. */
static void missing(void)
{
    for (int i = 0; i < 6; i++) {
        leat_graph *g = leat_graph_new();
        leat_out given[4] = {leat_zeros(g, LEAT_FLOAT, leat_shape(4, 2)),
                             leat_zeros(g, LEAT_FLOAT, leat_shape(4)),
                             leat_zeros(g, LEAT_INT64, leat_shape(3, 1)),
                             leat_zeros(g, LEAT_FLOAT, leat_shape(3, 2))};
        leat_candidates c = {given[2], given[2], given[2]};
        if (i < 4)
            given[i] = (leat_out){0};
        else
            *(i == 4 ? &c.sampled : &c.true_expected) = (leat_out){0};
        leat_out y = leat_sampled_softmax_loss(&given[0], 1, &given[1], 1, given[2], given[3], 2, 4,
                                               .candidates = i < 4 ? NULL : &c);
        leat_status s = leat_graph_status(g);
        CHECK(s != NULL || !y.node);
        leat_status_free(s);
        leat_graph_free(g);
    }
}

/* Ids that no row has: the error names node, position and value. */
static void bad_ids(void)
{
    static const struct {
        int n;
        bool blocks;
        int32_t id;
        const char *words;
    } rows[] = {{1, false, ROWS, "indices[1] = 11 is not in [0, 11)"},
                {1, false, -1, "indices[1] = -1 is not in [0, 11)"},
                {3, false, 3 * ROWS, "indices[1] = 11 is not in [0, 4)"},
                {3, true, ROWS + 40, "partitions[1] = 16 is not in [0, 3)"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        graph_case c = {.g = leat_graph_new()};
        leat_session *s;
        leat_tensor *y = NULL, *in;
        leat_out *p = parts(&c, LEAT_FLOAT, rows[i].n, SIZE, 0);
        leat_out ids = leat_placeholder(c.g, LEAT_INT32, leat_shape(-1));
        leat_out found = leat_embedding_lookup(p, rows[i].n, ids, .in_blocks = rows[i].blocks);
        CHECK_OK(leat_session_open(c.g, &s));
        CHECK_OK(leat_tensor_copy_of(LEAT_INT32, leat_shape(2), (int32_t[]){0, rows[i].id}, &in));
        leat_status e =
            leat_session_run(s, LEAT_FEED({ids, in}), LEAT_FETCH({found, &y}), LEAT_NO_TARGET);
        CHECK(e && strstr(leat_status_message(e), "{{node embedding_lookup"));
        CHECK_ERROR(e, INVALID_ARGUMENT, rows[i].words);
        leat_tensor_unref(in);
        /* No ids at all are no mistake. */
        CHECK_OK(leat_tensor_new(LEAT_INT32, leat_shape(0), &in));
        CHECK_OK(
            leat_session_run(s, LEAT_FEED({ids, in}), LEAT_FETCH({found, &y}), LEAT_NO_TARGET));
        CHECK_INT(y ? leat_tensor_count(y) : -1, 0);
        leat_tensor_unref(in);
        leat_tensor_unref(y);
        leat_session_close(s);
        leat_graph_free(c.g);
    }
}

/* A batch without examples has no losses, and its gradient has no rows but zeros. */
static void empty_batch(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *got[2] = {0};
    leat_grad_value grad;
    leat_out w = leat_ones(g, LEAT_FLOAT, leat_shape(4, 2));
    leat_out b = leat_zeros(g, LEAT_FLOAT, leat_shape(4));
    leat_out labels = leat_zeros(g, LEAT_INT64, leat_shape(0, 1));
    leat_out x = leat_zeros(g, LEAT_FLOAT, leat_shape(0, 2));
    leat_out y[] = {leat_nce_loss(&w, 1, &b, 1, labels, x, 2, 4),
                    leat_sampled_softmax_loss(&w, 1, &b, 1, labels, x, 2, 4)};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(leat_gradients(&y[i], 1, &w, 1, &grad));
        CHECK_OK(leat_session_open(g, &s));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED,
                                  LEAT_FETCH({y[i], &got[0]}, {leat_grad_dense(grad), &got[1]}),
                                  LEAT_NO_TARGET));
        CHECK_INT(got[0] ? leat_tensor_count(got[0]) : -1, 0);
        for (int64_t k = 0; got[1] && k < leat_tensor_count(got[1]); k++)
            CHECK_NEAR(leat_tensor_at(got[1], k), 0, 0);
        leat_tensor_unref(got[0]);
        leat_tensor_unref(got[1]);
        leat_session_close(s);
    }
    leat_graph_free(g);
}

/* Samplers of one class, which is then sure to be drawn; more samples than classes. */
static void one_class(void)
{
    for (size_t i = 0; i < sizeof(samplers) / sizeof(*samplers); i++) {
        const double one[] = {2};
        leat_graph *g = leat_graph_new();
        leat_session *s;
        leat_tensor *got[3] = {0};
        leat_out labels = leat_zeros(g, LEAT_INT64, leat_shape(1, 1));
        const leat_candidates c =
            leat_candidate_sampler(samplers[i].kind, labels, 1, 1, .unigrams = one,
                                   .n_unigrams = samplers[i].distortion ? 1 : 0);
        CHECK_OK(leat_session_open(g, &s));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED,
                                  LEAT_FETCH({c.sampled, &got[0]}, {c.true_expected, &got[1]},
                                             {c.sampled_expected, &got[2]}),
                                  LEAT_NO_TARGET));
        for (int k = 0; k < 3; k++) {
            CHECK_NEAR(got[k] ? leat_tensor_at(got[k], 0) : -1, k ? 1 : 0, 0);
            leat_tensor_unref(got[k]);
        }
        leat_session_close(s);
        leat_graph_free(g);
    }
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *y = NULL;
    leat_out labels = leat_zeros(g, LEAT_INT64, leat_shape(1, 1));
    const leat_candidates c = leat_candidate_sampler(LEAT_SAMPLE_UNIFORM, labels, 2, 1);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({c.sampled, &y}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "Sampler's range is too small.");
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"lookups", lookups}, {"sparse_lookups", sparse_lookups},
               {"safe_lookups", safe_lookups}, {"safe_cube", safe_cube},
               {"sampled_losses", sampled_losses}, {"loss_options", loss_options},
               {"updates", updates}, {"mistakes", mistakes}, {"missing", missing},
               {"bad_ids", bad_ids}, {"empty_batch", empty_batch}, {"one_class", one_class});
}
