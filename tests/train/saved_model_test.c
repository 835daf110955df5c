/* saved_model_test.c -- SavedModels that Leat writes and loads, models that are damaged or are not
 * what was asked for, frozen graphs. TensorFlow reads what `written` leaves in io_files
 * (tests/interop/files_saved_model.py). */
#include <leat/leat.h>

#include "core/buffer.h"
#include "io/files.h"

#define TEXT(...) #__VA_ARGS__

static void clean(const char *dir)
{
    char command[600];
    snprintf(command, sizeof(command), "rm -rf '%s'", here(dir));
    CHECK_INT(system(command), 0);
}

/* y = x w + b; ids: the lines of a vocabulary. w is a reference, b is behind a handle. */
typedef struct model {
    leat_graph *g;
    leat_session *s;
    leat_out x, w, b, y, words, ids, path, tables;
} model;

static void write_vocabulary(void)
{
    static const char words[] = "apple\nbanana\ncherry\n";
    CHECK_OK(leat_file_write(here("vocabulary.txt"), words, sizeof(words) - 1));
}

static leat_tensor *floats(leat_shape shape, const float *v)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, shape, &t));
    memcpy(leat_tensor_mutable(t), v, leat_tensor_bytes(t));
    return t;
}

static leat_out constant(leat_graph *g, leat_shape shape, const float *v)
{
    leat_tensor *t = floats(shape, v);
    leat_out x = leat_const(g, t);
    leat_tensor_unref(t);
    return x;
}

static model begin(void)
{
    model m = {.g = leat_graph_new()};
    leat_graph *g = m.g;
    write_vocabulary();
    m.x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 2), leat_name("x"));
    leat_with_device(g, "/cpu:0") m.w =
        leat_variable(g, "w", constant(g, leat_shape(2, 2), (float[]){1, 2, 3, 4}));
    m.b =
        leat_variable(g, "b", constant(g, leat_shape(2), (float[]){10, 20}), .use_resource = true);
    m.y = leat_add(leat_matmul(m.x, m.w), m.b);
    m.words = leat_placeholder(g, LEAT_STRING, leat_shape_unknown(), leat_name("words"));
    m.path = leat_string_const(g, here("vocabulary.txt"));
    leat_out table = leat_op(g, "HashTableV2", leat_attr_type("key_dtype", LEAT_STRING),
                             leat_attr_type("value_dtype", LEAT_INT64), leat_name("table"));
    m.tables = leat_op(g, "InitializeTableFromTextFileV2", leat_in(table), leat_in(m.path),
                       leat_attr_int("key_index", -2), leat_attr_int("value_index", -1));
    m.ids = leat_op(g, "LookupTableFindV2", leat_in(table), leat_in(m.words),
                    leat_in(leat_scalar(g, LEAT_INT64, -1)));
    leat_out init = leat_global_variables_initializer(g);
    CHECK_OK(leat_session_open(g, &m.s));
    CHECK_OK(
        leat_session_run(m.s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init, leat_done(m.tables))));
    return m;
}

static void end(model *m)
{
    leat_session_close(m->s);
    leat_graph_free(m->g);
}

static leat_status write_model(model *m, const char *dir)
{
    const leat_signature_tensor x = {"x", m->x}, y = {"y", m->y}, words = {"words", m->words},
                                ids = {"ids", m->ids};
    const leat_signature signatures[] = {
        {.name = "serving_default", .inputs = &x, .n_inputs = 1, .outputs = &y, .n_outputs = 1},
        {.name = "words", .inputs = &words, .n_inputs = 1, .outputs = &ids, .n_outputs = 1}};
    const leat_asset asset = {m->path, here("vocabulary.txt")};
    return leat_saved_model_write(m->g, m->s, dir, .signatures = signatures, .n_signatures = 2,
                                  .assets = &asset, .n_assets = 1, .main_op = m->tables,
                                  .clear_devices = true);
}

/* Checks that y is [[1, 1], [0, 2]] w + b. */
static void check_y(leat_session *s, leat_out x, leat_out y)
{
    static const double want[] = {14, 26, 16, 28};
    leat_tensor *in = floats(leat_shape(2, 2), (float[]){1, 1, 0, 2}), *out = NULL;
    CHECK_OK(leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({y, &out}), LEAT_NO_TARGET));
    for (int i = 0; out && i < 4; i++)
        CHECK_NEAR(leat_tensor_at(out, i), want[i], 0);
    leat_tensor_unref(in);
    leat_tensor_unref(out);
}

static void check_ids(leat_session *s, leat_out words, leat_out ids)
{
    leat_tensor *in = NULL, *out = NULL;
    CHECK_OK(leat_tensor_of_string("cherry", 6, &in));
    CHECK_OK(leat_session_run(s, LEAT_FEED({words, in}), LEAT_FETCH({ids, &out}), LEAT_NO_TARGET));
    if (out)
        CHECK_NEAR(leat_tensor_at(out, 0), 2, 0);
    leat_tensor_unref(in);
    leat_tensor_unref(out);
}

/* The model does not need the files that it was made of. */
static void written(void)
{
    clean("model");
    model m = begin();
    CHECK_OK(write_model(&m, here("model")));
    CHECK_ERROR(write_model(&m, here("model")), ALREADY_EXISTS, "saved_model.pb is there already");
    end(&m);
    CHECK_INT(remove(here("vocabulary.txt")), 0);
    leat_saved_model *l = NULL;
    CHECK_OK(leat_saved_model_load(here("model"), &l));
    int n = 0;
    const leat_signature *all = leat_saved_model_signatures(l, &n), *sig = NULL;
    CHECK_INT(n, 2);
    CHECK_STR(all[0].name, "serving_default");
    CHECK_STR(all[0].method, "tensorflow/serving/predict");
    leat_out x, y;
    CHECK_OK(leat_saved_model_signature(l, "serving_default", &sig));
    CHECK_OK(leat_signature_input(sig, "x", &x));
    CHECK_OK(leat_signature_output(sig, "y", &y));
    check_y(leat_saved_model_session(l), x, y);
    CHECK_ERROR(leat_signature_input(sig, "y", &x), NOT_FOUND,
                "signature \"serving_default\" has no input \"y\"; its inputs are: x");
    CHECK_ERROR(leat_saved_model_signature(l, "predict", &sig), NOT_FOUND,
                "the model's signatures are: serving_default, words");
    CHECK_OK(leat_saved_model_signature(l, "words", &sig));
    check_ids(leat_saved_model_session(l), sig->inputs[0].x, sig->outputs[0].x);
    CHECK_STR(leat_node_device(leat_graph_find(leat_saved_model_graph(l), "w")), "");
    leat_saved_model_close(l);
}

static void rewrite(const char *name, const void *bytes, size_t n)
{
    char path[600];
    snprintf(path, sizeof(path), "%s", here(name));
    CHECK_OK(leat_file_write(path, bytes, n));
}

/* Every cut of the file is an error, and none a crash. */
static void damaged(void)
{
    leat_saved_model *l = NULL;
    clean("model");
    CHECK_ERROR(leat_saved_model_load(here("model"), &l), NOT_FOUND, "is no SavedModel");
    model m = begin();
    CHECK_OK(write_model(&m, here("model")));
    end(&m);
    CHECK_ERROR(leat_saved_model_load(here("model"), &l, .tags = "serve,gpu"), NOT_FOUND,
                "no graph has exactly the tags serve,gpu; the graphs' tags are: serve");
    CHECK_ERROR(leat_saved_model_load(NULL, &l), INVALID_ARGUMENT, "dir is NULL");
    char *bytes = NULL;
    size_t n = 0;
    CHECK_OK(leat_file_read(here("model/saved_model.pb"), &bytes, &n));
    for (size_t i = 0; i < n; i += 1 + n / 97) {
        rewrite("model/saved_model.pb", bytes, i);
        leat_status s = leat_saved_model_load(here("model"), &l);
        CHECK(s != NULL);
        if (!s)
            leat_saved_model_close(l);
        leat_status_free(s);
    }
    for (size_t i = 0; i < n; i += 1 + n / 211) {
        bytes[i] ^= 0x41;
        rewrite("model/saved_model.pb", bytes, n);
        bytes[i] ^= 0x41;
        leat_status s = leat_saved_model_load(here("model"), &l);
        if (!s)
            leat_saved_model_close(l);
        leat_status_free(s);
    }
    rewrite("model/saved_model.pb", bytes, n);
    free(bytes);
    CHECK_INT(truncate(here("model/variables/variables.data-00000-of-00002"), 7), 0);
    CHECK_ERROR(leat_saved_model_load(here("model"), &l), DATA_LOSS, "variables.data-00000-of-");
    CHECK_INT(remove(here("model/assets/vocabulary.txt")), 0);
}

/* A signature or asset that names what the graph does not have. */
static void text_forms(void)
{
    static const char good[] = TEXT(saved_model_schema_version : 1 meta_graphs{
        meta_info_def{tags : "serve" tags : "gpu"} graph_def{
            node{name : "x" op : "Placeholder" attr{key : "dtype" value{type : DT_FLOAT}}}
            node{name : "y" op : "Neg" input : "x" attr{key : "T" value{type : DT_FLOAT}}}}
        signature_def{
            key : "s" value{inputs{key : "x" value{name : "x:0"}}
                            outputs{key : "y" value{name : "%s"}}}
        }});
    leat_saved_model *l = NULL;
    char text[1000];
    clean("text");
    int n = snprintf(text, sizeof(text), good, "y:0");
    rewrite("text/saved_model.pbtxt", text, (size_t)n);
    CHECK_OK(leat_saved_model_load(here("text"), &l, .tags = "gpu,serve"));
    leat_saved_model_close(l);
    n = snprintf(text, sizeof(text), good, "z:0");
    rewrite("text/saved_model.pbtxt", text, (size_t)n);
    CHECK_ERROR(leat_saved_model_load(here("text"), &l), NOT_FOUND, "\"y\" of signature \"s\": ");
    n = snprintf(text, sizeof(text), good, "y:1");
    rewrite("text/saved_model.pbtxt", text, (size_t)n);
    CHECK_ERROR(leat_saved_model_load(here("text"), &l), INVALID_ARGUMENT, "y:1");
    rewrite("text/saved_model.pbtxt", "meta_graphs { nonsense: 1 }", 27);
    CHECK_ERROR(leat_saved_model_load(here("text"), &l), INVALID_ARGUMENT, "nonsense");
    rewrite("text/saved_model.pbtxt", "", 0);
    CHECK_ERROR(leat_saved_model_load(here("text"), &l), INVALID_ARGUMENT, "there is no graph");
}

/* What cannot be written, and what is wrong with a model's own ops. */
static void refused(void)
{
    clean("refused");
    model m = begin();
    const leat_signature_tensor none = {"y"}, x = {"x", m.x};
    const leat_signature bad = {.name = "s", .outputs = &none, .n_outputs = 1}, unnamed = {0};
    char words[512]; /* paths of here() are valid for a few calls only */
    snprintf(words, sizeof(words), "%s", here("vocabulary.txt"));
    const leat_asset missing = {m.path, "/no/such/missing.txt"},
                     twice[] = {{m.path, words}, {m.path, "vocabulary.txt"}};
    CHECK_ERROR(
        leat_saved_model_write(m.g, m.s, here("refused"), .signatures = &bad, .n_signatures = 1),
        INVALID_ARGUMENT, "\"y\" of signature \"s\": it has no tensor");
    CHECK_ERROR(leat_saved_model_write(m.g, m.s, here("refused"), .signatures = &unnamed,
                                       .n_signatures = 1),
                INVALID_ARGUMENT, "a signature has no name");
    CHECK_ERROR(leat_saved_model_write(m.g, m.s, here("refused"), .tags = ""), INVALID_ARGUMENT,
                "the graph has no tags");
    CHECK_ERROR(
        leat_saved_model_write(m.g, m.s, here("refused"), .assets = &missing, .n_assets = 1),
        NOT_FOUND, "missing.txt");
    CHECK_ERROR(leat_saved_model_write(m.g, m.s, here("refused"), .assets = twice, .n_assets = 2),
                INVALID_ARGUMENT, "two assets are called vocabulary.txt");
    leat_saved_model *l = NULL;
    CHECK_ERROR(leat_saved_model_load(here("refused"), &l), NOT_FOUND, "is no SavedModel");
    /* The main op needs a tensor that nobody feeds. */
    const leat_signature good = {.name = "s", .inputs = &x, .n_inputs = 1};
    CHECK_OK(leat_saved_model_write(m.g, m.s, here("refused"), .signatures = &good,
                                    .n_signatures = 1, .main_op = m.y));
    CHECK_ERROR(leat_saved_model_load(here("refused"), &l), INVALID_ARGUMENT,
                "The model's main op: You must feed a value");
    end(&m);
}

static void frozen(void)
{
    model m = begin();
    leat_graph *f = NULL;
    leat_out row = leat_op(m.g, "ResourceGather", leat_in(leat_variable_ref(m.b)),
                           leat_in(leat_scalar(m.g, LEAT_INT32, 1)),
                           leat_attr_type("dtype", LEAT_FLOAT), leat_name("row"));
    CHECK_OK(leat_freeze(m.g, m.s, (leat_out[]){m.y, row}, 2, &f));
    leat_session *s = NULL;
    CHECK_OK(leat_session_open(f, &s));
    leat_out x, y, r;
    CHECK_OK(leat_graph_find_out(f, "x", &x));
    CHECK_OK(leat_graph_find_out(f, leat_node_name(m.y.node), &y));
    CHECK_OK(leat_graph_find_out(f, "row", &r));
    check_y(s, x, y);
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({r, &t}), LEAT_NO_TARGET));
    CHECK_NEAR(leat_tensor_at(t, 0), 20, 0);
    leat_tensor_unref(t);
    CHECK(leat_graph_find(f, "words") == NULL);
    CHECK_STR(leat_node_op(leat_graph_find(f, "w")), "Const");
    leat_session_close(s);
    leat_graph_free(f);
    leat_out add = leat_variable_assign_add(m.b, leat_ones_like(m.b));
    CHECK_ERROR(leat_freeze(m.g, m.s, &add, 1, &f), FAILED_PRECONDITION,
                "needs the variable \"b\" itself");
    CHECK_ERROR(leat_freeze(m.g, m.s, NULL, 0, &f), INVALID_ARGUMENT, "needs outputs");
    end(&m);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"written", written}, {"damaged", damaged}, {"text_forms", text_forms},
               {"refused", refused}, {"frozen", frozen});
}
