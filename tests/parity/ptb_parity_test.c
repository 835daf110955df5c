/* ptb_parity_test.c -- a net of the PTB tutorial that TensorFlow 1.15 exported with its seeds
 * (make_ptb.py): 100 steps, each of which goes on with the states of the last one, give
 * TensorFlow's losses, to 1e-4: by TensorFlow's own graph, and by the net of models/ with the same
 * initial values, in each of its modes.
 *
 * LEAT_PTB_PARITY=small:0.1:DIR has the files that make_ptb.py wrote to DIR for that configuration
 * and learning rate. */
#include "test.h"

#include <leat/leat.h>

#include "../../models/common_lm.h"

enum { STEPS = 100, STATES = 4, MOST_VARS = 16 };

typedef struct setting {
    char dir[256];
    lm_config c;
    double rate;
} setting;

static setting find_setting(void)
{
    setting s = {.dir = LEAT_SOURCE_DIR "/tests/parity",
                 .c = {.vocab_size = 60,
                       .hidden_size = 16,
                       .num_layers = 2,
                       .num_steps = 4,
                       .batch_size = 5,
                       .keep_prob = 1},
                 .rate = 1};
    const char *other = getenv("LEAT_PTB_PARITY");
    char name[16];
    if (other && sscanf(other, "%15[a-z]:%lf:%255s", name, &s.rate, s.dir) == 3) {
        const bool medium = strcmp(name, "medium") == 0;
        s.c.vocab_size = 10000;
        s.c.hidden_size = medium ? 650 : 200;
        s.c.num_steps = medium ? 35 : 20;
        s.c.batch_size = 20;
    }
    return s;
}

/* Word i of all batches, by the formula of make_ptb.py. */
static int32_t word(const lm_config *c, uint64_t i)
{
    const uint64_t high = i * 2654435761u % (UINT64_C(1) << 32) >> 16;
    return (int32_t)(high * high * (uint64_t)c->vocab_size >> 32);
}

/* The words of batches (batch, steps + 1) come from a file, or from the formula if words is NULL.
 */
static void make_batch(const lm_config *c, FILE *words, int step, leat_tensor **x, leat_tensor **y)
{
    const leat_shape shape = leat_shape(c->batch_size, c->num_steps);
    const uint64_t wide = (uint64_t)c->num_steps + 1, rows = (uint64_t)c->batch_size;
    CHECK_OK(leat_tensor_new(LEAT_INT32, shape, x));
    CHECK_OK(leat_tensor_new(LEAT_INT32, shape, y));
    int32_t *to[2] = {leat_tensor_mutable(*x), leat_tensor_mutable(*y)};
    for (uint64_t i = 0; i < rows * wide; i++) {
        const uint64_t row = i / wide, column = i % wide;
        int32_t id = 0;
        if (words)
            CHECK(fread(&id, sizeof(id), 1, words) == 1);
        else
            id = word(c, i + (uint64_t)step * rows * wide);
        if (column + 1 < wide)
            to[0][row * (wide - 1) + column] = id;
        if (column > 0)
            to[1][row * (wide - 1) + column - 1] = id;
    }
}

static leat_out find(leat_graph *g, const char *name)
{
    leat_out x = {0};
    CHECK_OK(leat_graph_find_out(g, name, &x));
    return x;
}

static leat_status import(leat_graph *g, const char *dir)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/ptb.pb", dir);
    FILE *f = fopen(path, "rb");
    const size_t most = 64 << 20;
    char *bytes = malloc(most);
    size_t n = f ? fread(bytes, 1, most, f) : 0;
    if (f)
        fclose(f);
    leat_status s = leat_graph_from_binary(g, bytes, n, "");
    free(bytes);
    return s;
}

/* Trains m for 100 steps and compares its losses with TensorFlow's. */
static void compare(const setting *k, const char *what, leat_session *s, lm_model *m,
                    leat_out train)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/ptb.losses", k->dir);
    FILE *losses = fopen(path, "r");
    snprintf(path, sizeof(path), "%s/ptb.words", k->dir);
    FILE *words = fopen(path, "rb"); /* not there: the formula gives them */
    double worst = 0;
    CHECK_OK(lm_begin(s, m));
    for (int step = 0; step < STEPS; step++) {
        leat_tensor *x = NULL, *y = NULL, *value = NULL;
        leat_feed feeds[LM_MOST_FEEDS];
        leat_fetch fetches[LM_MOST_STATES + 1];
        double want = 0;
        make_batch(&k->c, words, step, &x, &y);
        const int n_feeds = lm_feeds(m, x, y, feeds);
        int n = lm_fetches(m, fetches);
        fetches[n++] = (leat_fetch){m->cost, &value};
        CHECK_OK(leat_session_run(s, (leat_feeds){feeds, n_feeds}, (leat_fetches){fetches, n},
                                  LEAT_TARGET(train)));
        lm_advance(m);
        CHECK(losses && fscanf(losses, "%lf", &want) == 1);
        double off = value ? fabs(leat_tensor_at(value, 0) - want) / fabs(want) : INFINITY;
        worst = off > worst ? off : worst;
        leat_tensor_unref(x);
        leat_tensor_unref(y);
        leat_tensor_unref(value);
    }
    lm_end(m);
    printf("%s: losses of %d steps differ by at most %.2g (relative)\n", what, STEPS, worst);
    CHECK(worst < 1e-4);
    if (losses)
        fclose(losses);
    if (words)
        fclose(words);
}

/* The nodes of TensorFlow's graph, as those of a model. */
static lm_model model_of(leat_graph *g)
{
    lm_model m = {.n_states = STATES};
    m.x = find(g, "x:0");
    m.y = find(g, "y:0");
    m.cost = find(g, "loss:0");
    for (int i = 0; i < STATES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "first_%d:0", i);
        leat_out first = find(g, name);
        m.first[i] = first.node ? leat_node_input(first.node, 0) : first;
        snprintf(name, sizeof(name), "last_%d:0", i);
        m.last[i] = find(g, name);
    }
    return m;
}

static void graph(void)
{
    const setting k = find_setting();
    leat_graph *g = leat_graph_new();
    leat_session *s;
    CHECK_OK(import(g, k.dir));
    lm_model m = model_of(g);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(find(g, "^init_all"))));
    compare(&k, "TensorFlow's graph", s, &m, find(g, "^train"));
    leat_session_close(s);
    leat_graph_free(g);
}

/* ---- The net of models/ ---- */

/* The initial values of variables, by their names in TensorFlow's graph. */
typedef struct values {
    const char *names[MOST_VARS];
    leat_tensor *v[MOST_VARS];
    int n;
} values;

static void read_values(const setting *k, values *w)
{
    static const char *const names[] = {"Model/embedding",
                                        "Model/RNN/multi_rnn_cell/cell_0/basic_lstm_cell/kernel",
                                        "Model/RNN/multi_rnn_cell/cell_0/basic_lstm_cell/bias",
                                        "Model/RNN/multi_rnn_cell/cell_1/basic_lstm_cell/kernel",
                                        "Model/RNN/multi_rnn_cell/cell_1/basic_lstm_cell/bias",
                                        "Model/softmax_w",
                                        "Model/softmax_b"};
    leat_graph *g = leat_graph_new();
    leat_session *s;
    CHECK_OK(import(g, k->dir));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(find(g, "^init_all"))));
    w->n = (int)(sizeof(names) / sizeof(*names));
    for (int i = 0; i < w->n; i++) {
        char name[128];
        snprintf(name, sizeof(name), "%s/read:0", names[i]);
        w->names[i] = names[i];
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({find(g, name), &w->v[i]}),
                                  LEAT_NO_TARGET));
    }
    leat_session_close(s);
    leat_graph_free(g);
}

/* Assigns the value of the variable of this name; block cells' are called lstm_cell. */
static void assign(leat_graph *g, leat_session *s, leat_out var, const values *w)
{
    char name[160];
    const char *own = leat_variable_name(var), *cell = strstr(own, "/lstm_cell/");
    snprintf(name, sizeof(name), "%.*s%s%s", cell ? (int)(cell - own) : 0, own,
             cell ? "/basic_lstm_cell/" : "", cell ? cell + 11 : own);
    int i = 0;
    while (i < w->n && strcmp(w->names[i], name) != 0)
        i++;
    CHECK(i < w->n);
    leat_out value = leat_placeholder(g, LEAT_FLOAT, leat_shape_unknown());
    leat_out done = leat_variable_assign(var, value);
    if (i < w->n)
        CHECK_OK(
            leat_session_run(s, LEAT_FEED({value, w->v[i]}), LEAT_NO_FETCH, LEAT_TARGET(done)));
}

static void net(const char *mode)
{
    setting k = find_setting();
    values w = {0};
    lm_model m;
    int n;
    leat_grad_value clipped[MOST_VARS];
    leat_session *s;
    read_values(&k, &w);
    leat_graph *g = leat_graph_new();
    k.c.rnn_mode = mode;
    CHECK_OK(lm_check(&k.c));
    leat_with_variable_scope(g, "Model") lm_build(g, &k.c, true, &m);
    leat_optimizer *opt = leat_gradient_descent(.learning_rate = k.rate);
    leat_var_grad *grads = leat_compute_gradients(opt, m.cost, &n);
    for (int i = 0; i < n; i++)
        clipped[i] = grads[i].grad;
    leat_clip_by_global_norm(clipped, n, 5);
    for (int i = 0; i < n; i++)
        grads[i].grad = clipped[i];
    leat_out train = leat_apply_gradients(opt, grads, n);
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_INT(n, w.n);
    for (int i = 0; i < n; i++)
        assign(g, s, grads[i].var, &w);
    compare(&k, mode, s, &m, train);
    for (int i = 0; i < w.n; i++)
        leat_tensor_unref(w.v[i]);
    free(grads);
    leat_optimizer_free(opt);
    leat_session_close(s);
    leat_graph_free(g);
}

static void basic(void)
{
    net("basic");
}

static void block(void)
{
    net("block");
}

static void fused(void)
{
    net("fused");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"graph", graph}, {"basic", basic}, {"block", block}, {"fused", fused});
}
