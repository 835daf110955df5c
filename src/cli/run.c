/* run.c -- leat run: runs a graph that is read from a file, or a SavedModel, with arrays from
 * files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

typedef struct job {
    cli_values feeds, fetches, targets, inits;
    const char *out, *steps, *most, *timeout, *devices, *cpus, *trace;
    const char *model, *tags, *signature_name;
    bool named;                      /* something to fetch or run was named */
    const leat_signature *signature; /* names of feeds and fetches are those of its tensors */
    bool log_placement, no_optimization;
    long long n_steps, n_most, n_timeout, n_cpus;
    leat_feed *feed;
    leat_fetch *fetch;
    leat_out *target;
    leat_tensor **values; /* one for each fetch */
} job;

/* ---- Names ---- */
static leat_status find_feed(const job *j, const leat_graph *g, const char *name, leat_out *out)
{
    return j->signature ? leat_signature_input(j->signature, name, out)
                        : leat_graph_find_out(g, name, out);
}

static leat_status find_fetch(const job *j, const leat_graph *g, const char *name, leat_out *out)
{
    return j->signature ? leat_signature_output(j->signature, name, out)
                        : leat_graph_find_out(g, name, out);
}

/* ---- Feeds ---- */

static bool is_real(leat_dtype t)
{
    return t != LEAT_STRING && t != LEAT_RESOURCE && t != LEAT_VARIANT && t != LEAT_COMPLEX64 &&
           t != LEAT_COMPLEX128;
}

/* Converts numbers to the dtype that the graph expects, as NumPy does when TensorFlow is fed; takes
 * *t. Values that the dtype cannot hold are an error. */
static leat_status convert(leat_tensor **t, leat_dtype want, const char *name)
{
    leat_dtype have = leat_tensor_dtype(*t);
    if (have == want)
        return NULL;
    LEAT_REQUIRE(is_real(have) && is_real(want), INVALID_ARGUMENT,
                 "%s is %s, cannot be fed with %s", name, leat_dtype_name(want),
                 leat_dtype_name(have));
    leat_tensor *x;
    LEAT_TRY(leat_tensor_new(want, leat_tensor_shape(*t), &x));
    bool whole =
        want != LEAT_FLOAT && want != LEAT_DOUBLE && want != LEAT_HALF && want != LEAT_BFLOAT16;
    for (int64_t i = 0; i < leat_tensor_count(*t); i++) {
        double v = leat_tensor_at(*t, i);
        bool fits = !whole || (v > -9.2e18 && v < 9.2e18);
        if (fits)
            leat_tensor_set_at(x, i, v);
        if (!fits || (whole && leat_tensor_at(x, i) != v)) {
            leat_tensor_unref(x);
            return leat_error(INVALID_ARGUMENT, "%s is %s, cannot be fed with %g", name,
                              leat_dtype_name(want), v);
        }
    }
    leat_tensor_unref(*t);
    *t = x;
    return NULL;
}

/* An array from a file, or a number. */
static leat_status read_value(const char *text, leat_tensor **out)
{
    char *end;
    double v = strtod(text, &end);
    struct stat is;
    if (end == text || *end || stat(text, &is) == 0)
        return cli_npy_read(text, out);
    LEAT_TRY(leat_tensor_new(LEAT_DOUBLE, leat_shape(), out));
    *(double *)leat_tensor_mutable(*out) = v;
    return NULL;
}

static leat_status read_feeds(job *j, leat_graph *g)
{
    for (int i = 0; i < j->feeds.n; i++) {
        const char *text = j->feeds.v[i], *eq = strchr(text, '=');
        LEAT_REQUIRE(eq, INVALID_ARGUMENT, "--feed %s: wants NAME=FILE or NAME=NUMBER", text);
        char *name = cli_text(text, (size_t)(eq - text));
        leat_tensor *t = NULL;
        leat_status s = find_feed(j, g, name, &j->feed[i].x);
        if (!s && j->feed[i].x.index < 0)
            s = leat_error(INVALID_ARGUMENT, "%s has no output that could be fed", name);
        if (!s)
            s = read_value(eq + 1, &t);
        if (!s)
            s = convert(&t, leat_dtype_base(leat_out_dtype(j->feed[i].x)), name);
        j->feed[i].value = t;
        free(name);
        LEAT_TRY(s);
    }
    return NULL;
}

static leat_status find_nodes(job *j, leat_graph *g)
{
    for (int i = 0; i < j->fetches.n; i++) {
        LEAT_TRY(find_fetch(j, g, j->fetches.v[i], &j->fetch[i].x));
        LEAT_REQUIRE(j->fetch[i].x.index >= 0, INVALID_ARGUMENT,
                     "%s has no output to fetch; run it with --target", j->fetches.v[i]);
        j->fetch[i].value = &j->values[i];
    }
    for (int i = 0; i < j->targets.n; i++) {
        LEAT_TRY(leat_graph_find_out(g, j->targets.v[i], &j->target[i]));
        j->target[i].index = -1;
    }
    return NULL;
}

/* ---- Results ---- */

/* "a/b:1" -> "DIR/a_b_1.npy"; ":0" is left out. */
static leat_status write_value(const char *dir, const char *name, const leat_tensor *t)
{
    size_t n = strlen(dir) + strlen(name) + 8;
    char *path = cli_array(n, 1);
    size_t len = strlen(name);
    if (len > 2 && strcmp(name + len - 2, ":0") == 0)
        len -= 2;
    snprintf(path, n, "%s/%.*s.npy", dir, (int)len, name);
    for (char *p = path + strlen(dir) + 1; *p; p++)
        if (*p == '/' || *p == ':')
            *p = '_';
    leat_status s = cli_npy_write(path, t);
    if (!s)
        printf("%s\n", path);
    free(path);
    return s;
}

static void print_value(const job *j, const char *name, const leat_tensor *t)
{
    leat_shape s = leat_tensor_shape(t);
    char *text = leat_tensor_text(t, j->n_most);
    printf("%s %s %s %s\n", name, leat_dtype_name(leat_tensor_dtype(t)), leat_shape_show(&s).s,
           text ? text : "");
    free(text);
}

static leat_status give_results(job *j)
{
    leat_status s = NULL;
    for (int i = 0; i < j->fetches.n; i++) {
        if (!s && j->out)
            s = write_value(j->out, j->fetches.v[i], j->values[i]);
        else if (!s)
            print_value(j, j->fetches.v[i], j->values[i]);
        leat_tensor_unref(j->values[i]);
        j->values[i] = NULL;
    }
    return s;
}

/* ---- Running ---- */

static leat_status write_trace(const char *path, leat_metadata *m)
{
    char *json = NULL;
    LEAT_TRY(leat_metadata_to_chrome(m, &json));
    FILE *f = fopen(path, "w");
    bool ok = f && fputs(json, f) >= 0;
    ok = f && fclose(f) == 0 && ok;
    free(json);
    LEAT_REQUIRE(ok, NOT_FOUND, "%s: %s", path, strerror(errno));
    return NULL;
}

static leat_status one_run(job *j, leat_session *s, bool traced)
{
    leat_metadata *metadata = NULL;
    leat_run_options o = {.metadata_out = traced ? &metadata : NULL};
    leat_status status = leat_session_run_with(s, &o, (leat_feeds){j->feed, j->feeds.n},
                                               (leat_fetches){j->fetch, j->fetches.n},
                                               (leat_targets){j->target, j->targets.n});
    if (!status && metadata)
        status = write_trace(j->trace, metadata);
    leat_metadata_free(metadata);
    return status ? status : give_results(j);
}

static leat_session_options session_options(const job *j)
{
    return (leat_session_options){.devices = j->devices,
                                  .cpu_devices = (int)j->n_cpus,
                                  .allow_soft_placement = true,
                                  .log_device_placement = j->log_placement,
                                  .no_optimization = j->no_optimization,
                                  .timeout_ms = j->n_timeout * 1000};
}

static leat_status run_steps(job *j, leat_graph *g, leat_session *s)
{
    leat_status status = NULL;
    for (int i = 0; i < j->inits.n && !status; i++) {
        leat_out init;
        status = leat_graph_find_out(g, j->inits.v[i], &init);
        if (!status)
            status = leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(leat_done(init)));
    }
    for (long long i = 0; i < j->n_steps && !status; i++)
        status = one_run(j, s, j->trace && i + 1 == j->n_steps);
    return status;
}

/* s is NULL if a session has still to be opened. */
static leat_status run_with(job *j, leat_graph *g, leat_session *s)
{
    leat_session *own = NULL;
    leat_session_options o = session_options(j);
    LEAT_TRY(read_feeds(j, g));
    LEAT_TRY(find_nodes(j, g));
    LEAT_REQUIRE(!j->out || mkdir(j->out, 0777) == 0 || errno == EEXIST, NOT_FOUND, "%s: %s",
                 j->out, strerror(errno));
    if (!s)
        LEAT_TRY(leat_session_open_with(g, &o, &own));
    leat_status status = run_steps(j, g, s ? s : own);
    if (own)
        leat_session_close(own);
    return status;
}

static leat_status run_graph(job *j, leat_graph *g, leat_session *s)
{
    j->feed = cli_array((size_t)j->feeds.n + 1, sizeof(*j->feed));
    j->fetch = cli_array((size_t)j->fetches.n + 1, sizeof(*j->fetch));
    j->target = cli_array((size_t)j->targets.n + 1, sizeof(*j->target));
    j->values = cli_array((size_t)j->fetches.n + 1, sizeof(*j->values));
    leat_status status = run_with(j, g, s);
    for (int i = 0; i < j->feeds.n; i++)
        leat_tensor_unref((leat_tensor *)j->feed[i].value);
    free(j->feed);
    free(j->fetch);
    free(j->target);
    free(j->values);
    return status;
}

static leat_status run_file(job *j, const char *path)
{
    leat_graph *g = leat_graph_new();
    size_t size;
    leat_status s = cli_read_graph(path, g, &size);
    if (!s)
        s = run_graph(j, g, NULL);
    leat_graph_free(g);
    return s;
}

/* What is fetched if nothing is named: all outputs of the signature. */
static leat_status run_model(job *j)
{
    leat_saved_model *m;
    leat_session_options o = session_options(j);
    LEAT_TRY(leat_saved_model_load(j->model, &m, .tags = j->tags, .session = &o));
    leat_status s = leat_saved_model_signature(
        m, j->signature_name ? j->signature_name : "serving_default", &j->signature);
    for (int i = 0; !s && !j->named && i < j->signature->n_outputs; i++)
        cli_values_add(&j->fetches, j->signature->outputs[i].name);
    if (!s)
        s = run_graph(j, leat_saved_model_graph(m), leat_saved_model_session(m));
    leat_saved_model_close(m);
    return s;
}

static bool numbers(job *j)
{
    j->n_steps = 1;
    j->n_most = 1000;
    return (!j->steps || cli_number("run", "steps", j->steps, 1, &j->n_steps)) &&
           (!j->most || cli_number("run", "max", j->most, 0, &j->n_most)) &&
           (!j->timeout || cli_number("run", "timeout", j->timeout, 1, &j->n_timeout)) &&
           (!j->cpus || cli_number("run", "cpu_devices", j->cpus, 1, &j->n_cpus)) &&
           cli_devices_ok("run", j->devices);
}

static int run(int argc, char **argv)
{
    job j = {0};
    cli_values rest = {0};
    const cli_option options[] = {
        {.name = "feed", .values = &j.feeds},
        {.name = "fetch", .values = &j.fetches},
        {.name = "target", .values = &j.targets},
        {.name = "init", .values = &j.inits},
        {.name = "saved_model", .value = &j.model},
        {.name = "signature", .value = &j.signature_name},
        {.name = "tags", .value = &j.tags},
        {.name = "out", .value = &j.out},
        {.name = "steps", .value = &j.steps},
        {.name = "max", .value = &j.most},
        {.name = "timeout", .value = &j.timeout},
        {.name = "devices", .value = &j.devices},
        {.name = "cpu_devices", .value = &j.cpus},
        {.name = "trace", .value = &j.trace},
        {.name = "log_device_placement", .given = &j.log_placement},
        {.name = "no_optimization", .given = &j.no_optimization},
        {0},
    };
    int code = 2;
    if (cli_parse(argc, argv, options, &rest) && numbers(&j)) {
        j.named = j.fetches.n || j.targets.n;
        if (rest.n != !j.model)
            code = cli_bad_use("run", "wants one graph file, or a --saved_model");
        else if (!j.model && (j.signature_name || j.tags))
            code = cli_bad_use("run", "--signature and --tags are of a --saved_model");
        else if (!j.model && !j.named)
            code = cli_bad_use("run", "wants something to --fetch, or a --target");
        else
            code = cli_finish("run", j.model ? run_model(&j) : run_file(&j, rest.v[0]));
    }
    cli_values_free(&rest);
    cli_values_free(&j.feeds);
    cli_values_free(&j.fetches);
    cli_values_free(&j.targets);
    cli_values_free(&j.inits);
    return code;
}

const cli_command cli_run = {
    .name = "run",
    .summary = "run a graph from a file, or a SavedModel",
    .usage =
        "usage: leat run GRAPH [--feed NAME=FILE] [--fetch NAME] [--target NODE] ...\n"
        "       leat run --saved_model DIR [--signature NAME] [--feed NAME=FILE] ...\n\n"
        "Runs a GraphDef (.pb, .pbtxt) and prints what is fetched. Of a SavedModel, names are\n"
        "those of the signature's inputs and outputs; without --fetch all outputs are fetched.\n"
        "`leat show DIR` lists them.\n\n"
        "  --feed NAME=FILE   feed a tensor with a .npy file's array, or NAME=NUMBER\n"
        "  --fetch NAME       fetch a tensor, y or y:1\n"
        "  --target NODE      run a node\n"
        "  --init NODE        run a node first, once\n"
        "  --saved_model DIR  run the model that was saved to DIR\n"
        "  --signature NAME   by its signature NAME (serving_default)\n"
        "  --tags TAG,...     choose the model's graph with these tags (serve)\n"
        "  --out DIR          write what is fetched to DIR/NAME.npy instead of printing it\n"
        "  --steps N          run N times\n"
        "  --max N            print at most N elements (1000)\n"
        "  --timeout SECONDS  of each run\n"
        "  --devices SPEC     have so many devices of each kind: cpu:2,gpu:1\n"
        "  --cpu_devices N    have N CPU devices\n"
        "  --trace FILE       write a Chrome trace of the last run\n"
        "  --log_device_placement, --no_optimization\n",
    .run = run,
};
