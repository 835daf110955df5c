/* options_test.c -- options of constructors: one that is not written has its default or is a
 * mistake, one that is written as 0 is 0. */
#include <leat/leat.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/given.h"
#include "test.h"

/* The graph's mistake has these words and names this line of this file. */
static void check_mistake(leat_graph *g, const char *words, int line)
{
    char at[64];
    snprintf(at, sizeof(at), "options_test.c:%d)", line);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, words);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, at);
    leat_graph_free(g);
}

static bool given(const char *text, const char *option)
{
    return leat_is_given(&(leat_given){.options = text}, option, 0);
}

static void text_of_options(void)
{
    CHECK(given(".beta1 = 0", "beta1"));
    CHECK(given(".name = \"a\", . beta1=0", "beta1"));
    CHECK(given(".stddev, .seed", "seed"));
    CHECK(!given(".beta10 = 0, .beta = 0", "beta1"));
    CHECK(!given(".beta1_power = 0", "beta1"));
    CHECK(!given("", "beta1"));
    CHECK(!given(NULL, "beta1"));
    /* Inside of the value of another option. */
    CHECK(!given(".rate = leat_polynomial_decay(step, .power = 0)", "power"));
    CHECK(!given(".init = {.a = 1, .seed = 0}, .n = v[f(1, 2)]", "seed"));
    CHECK(!given(".name = \", .seed = \\\", .seed\", .c = ',', .d = '\\''", "seed"));
    CHECK(given(".name = \"unclosed, (\\\"\", .seed = 0", "seed"));
    CHECK(!given(".name = \"", "seed"));
    CHECK(leat_is_given(&(leat_given){0}, "beta1", 0.5)); /* a struct without a text */
}

/* ---- Training ---- */

static int minimize_line;

/* A graph with the update of one variable. */
static leat_graph *minimized(leat_optimizer *opt)
{
    leat_graph *g = leat_graph_new();
    leat_out w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    leat_out loss = leat_reduce_sum(w), step = leat_global_step(g);
    minimize_line = __LINE__ + 1;
    leat_minimize(opt, loss, .global_step = step, .name = "update");
    leat_optimizer_free(opt);
    return g;
}

/* The value of a constant of the graph. */
static double constant(leat_graph *g, const char *name)
{
    leat_node *n = leat_graph_find(g, name);
    CHECK(n);
    return n ? leat_tensor_at(leat_node_tensor(n, "value"), 0) : NAN;
}

static void check_constant(leat_optimizer *opt, const char *name, double want)
{
    leat_graph *g = minimized(opt);
    CHECK_OK(leat_graph_status(g));
    CHECK_NEAR(constant(g, name), want, 1e-7);
    leat_graph_free(g);
}

static void missing_hyperparameters(void)
{
    check_mistake(minimized(leat_gradient_descent()),
                  "leat_gradient_descent has no learning_rate, and there is no default: give "
                  ".learning_rate or .learning_rate_tensor",
                  __LINE__ - 3);
    check_mistake(minimized(leat_momentum(.momentum = 0.9)), "leat_momentum has no learning_rate",
                  __LINE__ - 1);
    check_mistake(minimized(leat_momentum(.learning_rate = 0.1)), "leat_momentum has no momentum",
                  __LINE__ - 1);
    check_mistake(minimized(leat_adagrad()), "leat_adagrad has no learning_rate", __LINE__);
    check_mistake(minimized(leat_rmsprop(.momentum = 0)), "leat_rmsprop has no learning_rate",
                  __LINE__ - 1);
    check_mistake(minimized(leat_sync_replicas(leat_adagrad(), .replicas_to_aggregate = 1)),
                  "leat_adagrad has no learning_rate", __LINE__ - 1);
    leat_graph *g = minimized(leat_sync_replicas(leat_adam()));
    check_mistake(g, "leat_sync_replicas has no replicas_to_aggregate", minimize_line);
}

static void hyperparameters_of_zero(void)
{
    check_constant(leat_gradient_descent(.learning_rate = 0), "update/learning_rate", 0);
    check_constant(leat_momentum(.learning_rate = 0.1, .momentum = 0), "update/momentum", 0);
    check_constant(leat_adam(.learning_rate = 0), "update/learning_rate", 0);
    check_constant(leat_adam(.beta1 = 0.0), "update/beta1", 0);
    check_constant(leat_adam(.beta2 = 0.0), "update/beta2", 0);
    check_constant(leat_adam(.epsilon = 0.0), "update/epsilon", 0);
    check_constant(leat_rmsprop(.learning_rate = 1, .decay = 0), "update/decay", 0);
    check_constant(leat_rmsprop(.learning_rate = 1, .epsilon = 0), "update/epsilon", 0);
    const double none = 0;
    check_constant(leat_adam(.beta1 = none, .name = "other"), "update/beta1", 0);
    /* Defaults. */
    check_constant(leat_adam(.beta1 = 0), "update/beta2", 0.999);
    check_constant(leat_adam(), "update/learning_rate", 0.001);
    check_constant(leat_rmsprop(.learning_rate = 1), "update/decay", 0.9);
    leat_graph *g = minimized(leat_adagrad(.learning_rate = 1, .initial_accumulator_value = 0));
    check_mistake(g, "initial_accumulator_value must be positive: 0", minimize_line);
    leat_optimizer *adam = leat_adam();
    g = minimized(leat_sync_replicas(adam, .replicas_to_aggregate = 1, .total_num_replicas = 0));
    check_mistake(g, "total_num_replicas must be positive, but was 0", minimize_line);
}

static void schedules(void)
{
    leat_graph *g = leat_graph_new();
    leat_out step = leat_global_step(g);
    leat_polynomial_decay(step, .learning_rate = 1, .decay_steps = 10, .end_learning_rate = 0.0,
                          .power = 0, .name = "p");
    leat_polynomial_decay(step, .learning_rate = 0, .decay_steps = 10, .name = "q");
    leat_exponential_decay(step, .learning_rate = 1, .decay_steps = 10, .decay_rate = 0,
                           .name = "e");
    CHECK_OK(leat_graph_status(g));
    CHECK_NEAR(constant(g, "p/end_learning_rate"), 0, 0);
    CHECK_NEAR(constant(g, "p/power"), 0, 0);
    CHECK_NEAR(constant(g, "q/end_learning_rate"), 0.0001, 1e-9);
    CHECK_NEAR(constant(g, "q/power"), 1, 0);
    CHECK_NEAR(constant(g, "e/decay_rate"), 0, 0);
    leat_exponential_decay(step, .learning_rate = 1, .decay_steps = 10);
    check_mistake(g, "leat_exponential_decay has no decay_rate", __LINE__ - 1);

    g = leat_graph_new();
    leat_polynomial_decay(leat_global_step(g), .decay_steps = 10);
    check_mistake(g, "leat_polynomial_decay has no learning_rate", __LINE__ - 1);
    g = leat_graph_new();
    leat_inverse_time_decay(leat_global_step(g), .learning_rate = 1, .decay_rate = 0.5);
    check_mistake(g, "leat_inverse_time_decay has no decay_steps", __LINE__ - 1);
    g = leat_graph_new();
    step = leat_global_step(g);
    leat_natural_exp_decay(step, .learning_rate = 1, .decay_rate = 0.5, .decay_steps = 0);
    check_mistake(g, "leat_natural_exp_decay: decay_steps must be positive, got 0", __LINE__ - 1);
}

static void moving_averages(void)
{
    for (int missing = 0; missing < 2; missing++) {
        leat_graph *g = leat_graph_new();
        leat_out w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
        leat_moving_average *ema =
            missing ? leat_moving_average_new() : leat_moving_average_new(.decay = 0);
        int line = __LINE__ - 1;
        leat_moving_average_apply(ema, &w, 1);
        leat_moving_average_free(ema);
        if (missing) {
            check_mistake(g, "leat_moving_average_new has no decay", line);
        } else {
            CHECK_OK(leat_graph_status(g));
            CHECK_NEAR(constant(g, "ExponentialMovingAverage/decay"), 0, 0);
            leat_graph_free(g);
        }
    }
}

/* ---- Building ---- */

static int64_t seed2_of(leat_graph *g, const char *name)
{
    leat_node *n = leat_graph_find(g, name);
    CHECK(n);
    return n ? leat_node_int(n, "seed2") : -1;
}

static void random_values(void)
{
    leat_graph *g = leat_graph_new();
    leat_shape s = leat_shape(2);
    leat_graph_set_seed(g, 5);
    leat_random_normal(g, s, .stddev = 0, .name = "n");
    leat_random_uniform(g, s, .low = -1, .high = 0, .seed = 0, .name = "u");
    leat_random_uniform(g, s, .low = -1, .name = "v");
    leat_dropout(leat_ones(g, LEAT_FLOAT, s), 0.5, .seed = 0);
    leat_random_shuffle(leat_ints(g, 1, 2), .seed = 0, .name = "shuffle");
    leat_random_shuffle_queue(g, 10, 5, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()}), .seed = 0,
                              .name = "queue");
    leat_get_variable(g, "w", s, .initializer = leat_random_normal_initializer(0, 0, .seed = 0));
    leat_get_variable(g, "b", s, .initializer = leat_random_uniform_initializer(0, 0));
    CHECK_OK(leat_graph_status(g));
    CHECK_NEAR(constant(g, "n/stddev"), 0, 0);
    CHECK_NEAR(constant(g, "u/max"), 0, 0);
    CHECK_NEAR(constant(g, "v/max"), 1, 0);
    CHECK_INT(seed2_of(g, "u/RandomUniform"), 0);
    CHECK(seed2_of(g, "v/RandomUniform") > 0);
    CHECK_INT(seed2_of(g, "dropout/random_uniform/RandomUniform"), 0);
    CHECK_INT(seed2_of(g, "shuffle"), 0);
    CHECK_INT(seed2_of(g, "queue"), 0);
    CHECK_INT(seed2_of(g, "w/Initializer/random_normal/RandomStandardNormal"), 0);
    CHECK_NEAR(constant(g, "w/Initializer/random_normal/stddev"), 0, 0);
    CHECK(seed2_of(g, "b/Initializer/random_uniform/RandomUniform") > 0);
    CHECK_NEAR(constant(g, "b/Initializer/random_uniform/max"), 0, 0);
    leat_graph_free(g);
}

static leat_out once_more(leat_graph *g, void *arg, const leat_out *vars)
{
    return leat_less(vars[0], leat_scalar_like(vars[0], 3));
}

static void add_one(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    next[0] = leat_add(vars[0], leat_scalar_like(vars[0], 1));
}

static void loops(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_scalar(g, LEAT_INT32, 0);
    leat_while_loop(once_more, add_one, NULL, &x, 1, &x);
    CHECK_OK(leat_graph_status(g));
    leat_while_loop(once_more, add_one, NULL, &x, 1, &x, .parallel_iterations = 0);
    check_mistake(g, "`parallel_iterations` must be a positive integer: 0", __LINE__ - 1);
}

static void partitioners(void)
{
    leat_shape s = leat_shape(1000, 1000), slices;
    leat_partitioner p = leat_variable_axis_size_partitioner(4000, .n = 0);
    CHECK_ERROR(p.slices(&s, LEAT_FLOAT, &p, &slices), INVALID_ARGUMENT,
                "The most slices, .n, must be positive: 0");
    p = leat_variable_axis_size_partitioner(4000);
    CHECK_OK(p.slices(&s, LEAT_FLOAT, &p, &slices));
    CHECK_INT(slices.dim[0], 1000);
    p = leat_min_max_variable_partitioner(100, .bytes = 0);
    CHECK_ERROR(
        p.slices(&s, LEAT_FLOAT, &p, &slices), INVALID_ARGUMENT,
        "The least bytes of a slice, .bytes, and .bytes_per_string must be positive: 0, 16");
    p = leat_min_max_variable_partitioner(100);
    CHECK_OK(p.slices(&s, LEAT_FLOAT, &p, &slices));
    CHECK_INT(slices.dim[0], 16);
    p = leat_variable_axis_size_partitioner(4000, .bytes_per_string = 0);
    CHECK_ERROR(p.slices(&s, LEAT_STRING, &p, &slices), INVALID_ARGUMENT,
                "max_shard_bytes and .bytes_per_string must be positive: 4000, 0");
}

/* ---- Sessions ---- */

typedef struct model {
    leat_graph *g;
    leat_out train;
    char dir[64];
} model;

static model make_model(void)
{
    model m = {.g = leat_graph_new(), .dir = "/tmp/leat_options_XXXXXX"};
    CHECK(mkdtemp(m.dir));
    m.train =
        leat_assign_add(leat_variable_ref(leat_global_step(m.g)), leat_scalar(m.g, LEAT_INT64, 1));
    return m;
}

static void free_model(model *m)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -r %s", m->dir);
    CHECK_INT(system(command), 0);
    leat_graph_free(m->g);
}

static bool has(const model *m, const char *file)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", m->dir, file);
    return access(path, F_OK) == 0;
}

/* How many steps a session does before it stops, at most 10. Closes it. */
static int steps_of(leat_monitored *ms, leat_out train)
{
    int n = 0;
    for (; n < 10 && !leat_monitored_should_stop(ms); n++)
        CHECK_OK(leat_monitored_run(ms, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(train)));
    CHECK_OK(leat_monitored_close(ms));
    return n;
}

static void monitored_sessions(void)
{
    model m = make_model();
    leat_monitored *ms = NULL;
    CHECK_OK(leat_monitored_open(m.g, &ms, .last_step = 0));
    CHECK_INT(steps_of(ms, m.train), 1);
    CHECK_OK(leat_monitored_open(m.g, &ms, .num_steps = 0, .last_step = -1));
    CHECK_INT(steps_of(ms, m.train), 1);
    CHECK_OK(leat_monitored_open(m.g, &ms, .last_step = -1, .stop_grace_secs = 0));
    CHECK_INT(steps_of(ms, m.train), 10);
    /* Nothing is written. */
    CHECK_OK(leat_monitored_open(m.g, &ms, .checkpoint_dir = m.dir, .save_checkpoint_secs = 0,
                                 .save_summaries_steps = 0, .log_step_count_steps = 0));
    CHECK_INT(steps_of(ms, m.train), 10);
    CHECK(!has(&m, "checkpoint"));
    CHECK_INT(rmdir(m.dir), 0);
    CHECK_INT(mkdir(m.dir, 0700), 0);
    /* Saved after every step. */
    leat_hook *hooks[] = {leat_checkpoint_hook(.checkpoint_dir = m.dir, .save_secs = 0), NULL};
    CHECK_OK(leat_monitored_open(m.g, &ms, .num_steps = 3, .hooks = hooks));
    CHECK_INT(steps_of(ms, m.train), 3);
    for (int i = 0; i <= 3; i++) {
        char name[32];
        snprintf(name, sizeof(name), "model.ckpt-%d.index", i);
        CHECK(has(&m, name));
    }
    leat_supervisor *sv = NULL;
    leat_session *s = NULL;
    CHECK_OK(leat_supervisor_open(m.g, &sv, .logdir = m.dir, .save_model_secs = 0,
                                  .checkpoint_basename = "sv", .save_summaries_secs = 0,
                                  .max_wait_secs = 10));
    CHECK_OK(leat_supervisor_session(sv, "", &s));
    CHECK_OK(leat_supervisor_close(sv));
    CHECK(!has(&m, "sv-3.index"));
    free_model(&m);
}

/* A hook that monitored sessions refuse. */
static void check_hook(leat_hook *hook, const char *words)
{
    model m = make_model();
    leat_monitored *ms = NULL;
    CHECK_ERROR(leat_monitored_open(m.g, &ms, .hooks = (leat_hook *[]){hook, NULL}),
                INVALID_ARGUMENT, words);
    free_model(&m);
}

static void hooks(void)
{
    check_hook(leat_stop_at_step_hook(), "one of .num_steps and .last_step must be given");
    check_hook(leat_stop_at_step_hook(.num_steps = 0, .last_step = 0), "only one of .num_steps");
    check_hook(leat_checkpoint_hook(.checkpoint_dir = "d"), "one of .save_secs and .save_steps");
    check_hook(leat_checkpoint_hook(.checkpoint_dir = "d", .save_secs = 0, .save_steps = 0),
               "leat_checkpoint_hook: only one of .save_secs and .save_steps");
    check_hook(leat_checkpoint_hook(.save_secs = 0), "needs a .checkpoint_dir");
    check_hook(leat_summary_hook(), "leat_summary_hook: one of .save_secs and .save_steps");
    check_hook(leat_logging_hook(.every_n_iter = 0), ".every_n_iter must be positive");
    check_hook(leat_logging_hook(), ".at_end, .every_n_iter or .every_n_secs must be given");
}

static void savers(void)
{
    for (int all = 0; all < 2; all++) {
        model m = make_model();
        leat_saver *v = all ? leat_saver_new(m.g, .max_to_keep = 0)
                            : leat_saver_new(m.g, .max_to_keep = 1, .keep_every_hours = 0);
        leat_session *s = NULL;
        char path[96];
        snprintf(path, sizeof(path), "%s/model", m.dir);
        leat_out init = leat_global_variables_initializer(m.g);
        CHECK_OK(leat_session_open(m.g, &s));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
        for (int i = 0; i < 7; i++)
            CHECK_OK(leat_saver_save(v, s, path, i, NULL));
        CHECK(has(&m, "model-0.index")); /* none is deleted */
        CHECK(has(&m, "model-3.index"));
        leat_session_close(s);
        leat_saver_free(v);
        free_model(&m);
    }
}

static leat_status sleep_long(void *arg)
{
    leat_coordinator_wait_for_stop(arg, -1);
    usleep(300 * 1000);
    return NULL;
}

static void coordinators(void)
{
    leat_coordinator *c = leat_coordinator_new();
    CHECK_OK(leat_coordinator_start(c, "sleeper", sleep_long, c));
    leat_coordinator_request_stop(c, NULL);
    CHECK_ERROR(leat_coordinator_join(c, .grace_ms = 0), DEADLINE_EXCEEDED,
                "still running: sleeper");
    leat_coordinator_free(c);
    usleep(500 * 1000); /* the thread uses c until it ends */
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"text_of_options", text_of_options},
               {"missing_hyperparameters", missing_hyperparameters},
               {"hyperparameters_of_zero", hyperparameters_of_zero}, {"schedules", schedules},
               {"moving_averages", moving_averages}, {"random_values", random_values},
               {"loops", loops}, {"partitioners", partitioners},
               {"monitored_sessions", monitored_sessions}, {"hooks", hooks}, {"savers", savers},
               {"coordinators", coordinators});
}
