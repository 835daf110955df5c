/* The `leat` command and the models' flags, run as users do: what they print, their exit codes. */
#include "command.h"

#include <leat/leat.h>

#include <sys/stat.h>

static char dir[64];

static void check(const char *program, const char *args, int code, const char *words)
{
    command c = command_start("cd %s && %s/%s %s", dir, LEAT_BINARY_DIR, program, args);
    expect(args, command_end(c), code, words);
}

static void begin(void)
{
    strcpy(dir, "/tmp/leat-cli-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", dir);
    CHECK_INT(system(command), 0);
}

static void write_file(const char *name, const void *bytes, size_t n)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n);
    if (f)
        fclose(f);
}

/* y = x * 2 + v, z = sum(y), with a variable v that step counts up. Files g.pb and g.pbtxt. */
static void write_graph(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 2), leat_name("x"));
    leat_out v = leat_variable(g, "v", leat_scalar(g, LEAT_FLOAT, 10));
    leat_out y = leat_add(leat_mul(x, leat_scalar_like(x, 2)), v, leat_name("y"));
    leat_sum(y, leat_ints(g, 0, 1), leat_name("z"));
    leat_assign_add(leat_variable_ref(v), leat_scalar(g, LEAT_FLOAT, 1), leat_name("step"));
    leat_global_variables_initializer(g);
    void *bytes = NULL;
    char *text = NULL;
    size_t n = 0;
    CHECK_OK(leat_graph_to_binary(g, &bytes, &n));
    CHECK_OK(leat_graph_to_text(g, &text));
    write_file("g.pb", bytes, n);
    write_file("g.pbtxt", text, strlen(text));
    write_file("cut.pb", bytes, n / 2);
    free(bytes);
    free(text);
    leat_graph_free(g);
}

static void write_npy(const char *name, const char *descr, const char *shape, const void *data,
                      size_t size)
{
    unsigned char b[512] = "\x93NUMPY\1";
    int n = snprintf((char *)b + 10, 200,
                     "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape);
    b[8] = (unsigned char)n;
    memcpy(b + 10 + n, data, size);
    write_file(name, b, 10 + (size_t)n + size);
}

static void bad_use(void)
{
    begin();
    check("leat", "", 2, "usage: leat COMMAND");
    check("leat", "--version", 0, "leat ");
    check("leat", "help", 0, "run a graph");
    check("leat", "help run", 0, "--feed NAME=FILE");
    check("leat", "run --help", 0, "--feed NAME=FILE");
    check("leat", "help nothing", 2, "nothing: no such command");
    check("leat", "dance", 2, "dance: no such command");
    check("leat", "lunch", 2, "lunch: no such command; did you mean `leat launch`?");
    check("leat", "run", 2, "wants one graph file");
    check("leat", "run a b --fetch x", 2, "wants one graph file");
    check("leat", "run a.pb", 2, "wants something to --fetch");
    check("leat", "run a.pb --fetch", 2, "--fetch: wants a value");
    check("leat", "run a.pb --frobnicate 1", 2, "--frobnicate: no such option");
    check("leat", "run a.pb --fetsh=x", 2, "--fetsh=x: no such option; did you mean --fetch?");
    check("leat", "run a.pb --fetch x --steps many", 2, "wants a whole number");
    check("leat", "show", 2, "wants one file");
    check("leat", "devices --cpu_devices 0", 2, "wants a whole number from 1");
    check("leat", "devices extra", 2, "takes no arguments");
    setenv("LEAT_CPU", "z80", 1);
    check("leat", "devices", 2, "LEAT_CPU is z80, which this libleat was not built for");
    unsetenv("LEAT_CPU");
    check("leat", "devices --devices cpu:2,npu:1", 2, "no devices of kind NPU, only of CPU");
    check("leat", "devices --devices cpu:0", 2, "1 to 1024 CPU devices, not 0");
    check("leat", "run nowhere.pb --fetch x", 1, "nowhere.pb: No such file");
    end();
}

static void shows(void)
{
    begin();
    write_graph();
    check("leat", "show g.pb", 0, "x  float [?,2]");
    CHECK(strstr(output, "1 variables, 4 bytes"));
    CHECK(strstr(output, "outputs\n"));
    CHECK(strstr(output, "VariableV2"));
    check("leat", "show g.pbtxt", 0, "x  float [?,2]");
    check("leat", "show g.pb --text", 0, "op: \"VariableV2\"");
    check("leat", "show cut.pb", 1, "cut.pb: ");
    check("leat", "devices --cpu_devices 2", 0, "device:CPU:1");
    check("leat", "devices --devices cpu:3", 0, "device:CPU:2  CPU");
    check("leat", "devices", 0, " GB  ");
    end();
}

/* Files of the other kinds, made by TensorFlow (tests/io/data). */
static void shows_files(void)
{
    static const struct {
        const char *args;
        int code;
        const char *words;
    } rows[] = {
        {"kinds", 0, "kinds: checkpoint, 17 tensors"},
        {"kinds.index", 0, "strings  string [2,2]"},
        {"merged.data-00001-of-00002", 0, "part  float [10,4], 3 slices"},
        {"kinds --tensor scalar", 0, "scalar  int64 []\n7\n"},
        {"kinds --tensor none", 1, "Key none not found in checkpoint"},
        {"v1", 0, "part  float [10,4]"},
        {"gzip.tfrecord", 0, "TFRecord, 4 records of 0 to 1280 bytes"},
        {"events.out.tfevents.0000000001.host", 0,
         "loss  scalar, 1 times, steps 3 to 3, last: 0.5"},
        {"events.out.tfevents.0000000001.host --text", 0, "step 4  session  START"},
        {"", 0, "event file, "},
        {"../../fuzz/corpus/image_fuzz/three.gif", 0,
         "three.gif: GIF, 6 x 7 pixels (height x width), 3 channels of 8 bits, 3 frames\n"},
        {"../../fuzz/corpus/image_fuzz/gray16.png", 0,
         "PNG, 5 x 13 pixels (height x width), 1 channel of 16 bits\n"},
        {"../../fuzz/corpus/image_fuzz/cmyk_adobe.jpg", 0, "JPEG, 16 x 16 pixels"},
        {"../../fuzz/corpus/image_fuzz/down.bmp", 0, "BMP, 3 x 5 pixels"},
    };
    begin();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char args[700];
        snprintf(args, sizeof(args), "show %s/tests/io/data/%s", LEAT_SOURCE_DIR, rows[i].args);
        check("leat", args, rows[i].code, rows[i].words);
    }
    write_file("cut.png", "\x89PNG\r\n\x1a\n\0\0", 10);
    check("leat", "show cut.png", 1, "cut.png: Invalid PNG header, data size 10");
    end();
}

/* Curves and bars; a run that goes on while its events are shown. */
static void shows_runs(void)
{
    begin();
    char events[128];
    leat_summary_writer *w = NULL;
    snprintf(events, sizeof(events), "%s/run", dir);
    CHECK_OK(leat_summary_writer_open(events, &w));
    for (int i = 0; i < 100; i++)
        CHECK_OK(leat_summary_write_scalar(w, "loss", 10.0f / (float)(i + 1), i));
    CHECK_OK(leat_summary_flush(w));
    check("leat", "show run", 0, "loss  scalar, 100 times, steps 0 to 99, last: 0.1");
    saw("          10 |*\n");
    saw("        step  0                                                             99\n");
    command c = command_start("exec %s/leat show --follow %s", LEAT_BINARY_DIR, events);
    CHECK(command_read(c, "step 99  summary  loss = 0.1\n"));
    CHECK_OK(leat_summary_write_scalar(w, "later", 7, 100));
    CHECK_OK(leat_summary_flush(w));
    CHECK(command_read(c, "step 100  summary  later = 7\n"));
    CHECK_OK(leat_summary_writer_reopen(w)); /* the program was started again */
    CHECK_OK(leat_summary_write_scalar(w, "again", 8, 101));
    CHECK_OK(leat_summary_flush(w));
    CHECK(command_read(c, "step 101  summary  again = 8\n"));
    CHECK_INT(command_signal(c, SIGINT), -SIGINT);
    CHECK_OK(leat_summary_writer_close(w));
    end();
}

/* Histograms as bars of equal width, sizes of images and sounds, the first line of a text; beside a
 * checkpoint. */
static void shows_kinds(void)
{
    begin();
    char path[128];
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_summary_writer *w = NULL;
    leat_tensor *all = NULL;
    leat_saver *saver;
    leat_out v = leat_variable(g, "v", leat_zeros(g, LEAT_FLOAT, leat_shape(3)));
    leat_histogram_summary("h", LEAT_OP3("Range", leat_scalar(g, LEAT_FLOAT, 0),
                                         leat_scalar(g, LEAT_FLOAT, 1201),
                                         leat_scalar(g, LEAT_FLOAT, 1)));
    leat_image_summary("i", leat_zeros(g, LEAT_UINT8, leat_shape(1, 4, 5, 3)), 1);
    leat_audio_summary("a", leat_zeros(g, LEAT_FLOAT, leat_shape(1, 4000)), 8000, 1);
    leat_text_summary("t", leat_string_const(g, "first\033 line\nsecond"));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({leat_merge_all_summaries(g), &all}),
                              LEAT_NO_TARGET));
    snprintf(path, sizeof(path), "%s/kinds", dir);
    CHECK_OK(leat_summary_writer_open(path, &w));
    CHECK_OK(leat_summary_write(w, all, 7));
    CHECK_OK(leat_summary_writer_close(w));
    snprintf(path, sizeof(path), "%s/kinds/model.ckpt", dir);
    saver = leat_saver_new(g);
    CHECK_OK(leat_saver_save(saver, s, path, 7, NULL));
    check("leat", "show kinds", 0, "h  histogram, 1 times, steps 7 to 7, last: 1201 values from 0");
    saw("         100 |############################################");
    saw("        1200 |\n");
    saw("i/image  image, 1 times, steps 7 to 7, last: 4 x 5 pixels, 3 channels\n");
    saw("a/audio  audio, 1 times, steps 7 to 7, last: 0.50 s, 8000 Hz, 1 channel\n");
    saw("t  tensor, 1 times, steps 7 to 7, last: \"first? line ...\"\n");
    saw("model.ckpt-7: checkpoint, 1 tensors");
    (void)v;
    leat_tensor_unref(all);
    leat_saver_free(saver);
    leat_session_close(s);
    leat_graph_free(g);
    end();
}

/* A SavedModel, y = x v: shown, run, frozen. */
static void saved_models(void)
{
    begin();
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1), leat_name("in"));
    leat_out v = leat_variable(g, "v", leat_scalar(g, LEAT_FLOAT, 3));
    leat_out y = leat_mul(x, v), init = leat_global_variables_initializer(g);
    leat_session *s = NULL;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    const leat_signature_tensor in = {"x", x}, out = {"y", y};
    const leat_signature sig = {
        .name = "serving_default", .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1};
    char path[128];
    snprintf(path, sizeof(path), "%s/model", dir);
    CHECK_OK(leat_saved_model_write(g, s, path, .signatures = &sig, .n_signatures = 1));
    snprintf(path, sizeof(path), "%s/m", dir);
    leat_saver *saver = leat_saver_new(g);
    CHECK_OK(leat_saver_save(saver, s, path, -1, NULL));
    leat_saver_free(saver);
    leat_session_close(s);
    leat_graph_free(g);
    static const float numbers[] = {1, 2};
    write_npy("x.npy", "<f4", "(2,)", numbers, sizeof(numbers));
    check("leat", "show model", 0, "input x: float [?], in:0");
    check("leat", "run --saved_model model --feed x=x.npy", 0, "y float [2] [3 6]");
    check("leat", "run --saved_model model --signature s", 1, "the model's signatures are: serv");
    check("leat", "run --saved_model model --tags train", 1, "no graph has exactly the tags train");
    check("leat", "run --saved_model model --fetch z --feed x=x.npy", 1, "its outputs are: y");
    check("leat", "run --saved_model . --feed x=x.npy", 1, "is no SavedModel");
    check("leat", "run model/saved_model.pb --signature s --fetch y", 2, "are of a --saved_model");
    check("leat", "freeze f.pb --saved_model model", 0, "f.pb: ");
    check("leat", "run f.pb --feed in=x.npy --fetch Mul", 0, "Mul float [2] [3 6]");
    check("leat", "freeze f.pbtxt --text --meta_graph m.meta --checkpoint m --fetch Mul", 0,
          "f.pbtxt");
    check("leat", "run f.pbtxt --feed in=x.npy --fetch Mul", 0, "Mul float [2] [3 6]");
    check("leat", "freeze f.pb --meta_graph m.meta --checkpoint m", 1, "name some by --fetch");
    check("leat", "freeze f.pb --meta_graph m.meta", 2, "wants a --saved_model, or");
    check("leat", "freeze --saved_model model", 2, "wants one file to write");
    check("leat", "freeze no/f.pb --saved_model model", 1, "no/f.pb: No such file");
    end();
}

static void runs(void)
{
    begin();
    write_graph();
    static const float x[] = {1, 2, 3, 4};
    static const double wide[] = {1, 2, 3, 4};
    static const char words[] = "abcd";
    write_npy("x.npy", "<f4", "(2, 2)", x, sizeof(x));
    write_npy("wide.npy", "<f8", "(2, 2)", wide, sizeof(wide));
    write_npy("row.npy", "<f4", "(4,)", x, sizeof(x));
    write_npy("words.npy", "|S2", "(1, 2)", words, 4);
    write_npy("cut.npy", "<f4", "(2, 3)", x, sizeof(x));
    write_npy("odd.npy", "<m8", "(2,)", x, sizeof(x));
    check("leat", "run g.pb --init init --feed x=x.npy --fetch y", 0,
          "y float [2,2] [[12 14][16 18]]");
    check("leat", "run g.pbtxt --init=init --feed x:0=wide.npy --fetch=z:0", 0, "z:0 float [] 60");
    check("leat", "run g.pb --init init --target step --fetch v/read --steps 3", 0, "v/read float");
    check("leat", "run g.pb --init init --feed x=x.npy --fetch y:0 --fetch z --out res", 0,
          "res/y.npy");
    check("leat", "run g.pb --init init --feed x=res/y.npy --fetch y", 0, "[[34 38][42 46]]");
    check("leat", "run g.pb --feed v/read=0.5 --feed x=x.npy --fetch y", 0, "[[2.5 4.5]");
    check("leat", "run g.pb --feed x=x.npy --fetch y", 1, "uninitialized value v");
    check("leat", "run g.pb --init init --feed x=row.npy --fetch y", 1, "[4]");
    check("leat", "run g.pb --feed x=words.npy --fetch y", 1, "cannot be fed with string");
    check("leat", "run g.pb --feed x=cut.npy --fetch y", 1, "cut.npy is cut");
    check("leat", "run g.pb --feed x=odd.npy --fetch y", 1, "'m8' are not known");
    check("leat", "run g.pb --feed x=g.pb --fetch y", 1, "is not a .npy file");
    check("leat", "run g.pb --feed q=x.npy --fetch y", 1, "no node \"q\"");
    check("leat", "run g.pb --feed x --fetch y", 1, "wants NAME=FILE");
    check("leat", "run g.pb --fetch y:7", 1, "has 1 outputs");
    check("leat", "run g.pb --fetch init", 1, "no output to fetch");
    check("leat", "run g.pb --init init --feed x=x.npy --fetch y --trace t.json", 0, "y float");
    end();
}

static void model_flags(void)
{
    begin();
    check("models/mnist", "--help", 0, "--hidden_units N");
    check("models/mnist", "--batch_size 0", 2, "is too small");
    check("models/mnist", "--batch_size ten", 2, "wants a whole number");
    check("models/mnist", "--learning_rate=x", 2, "wants a number");
    check("models/mnist", "--epochs", 2, "wants a value");
    check("models/mnist", "--speed 3", 2, "unknown flag");
    check("models/mnist", "--learning-rate=1", 2, "unknown flag; did you mean --learning_rate?");
    check("models/mnist", "fast", 2, "not a flag");
    check("models/mnist_towers", "--num_devices 1000", 2, "at most");
    end();
}

/* Damaged data is an error; some steps go through on whatever digits there are. */
static void models(void)
{
    begin();
    check("models/mnist", "--train_steps 60 --batch_size=50", 0, "test accuracy");
    double accuracy = atof(strstr(output, "test accuracy") + 13);
    CHECK(accuracy > 50);
    check("models/mnist_towers", "--train_steps 20 --hidden_units 30 --records_dir .", 0,
          "test accuracy");
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    for (int i = 0; i < 4; i++)
        write_file(names[i], "\0\0\10\3\0\0\0\5", 8);
    check("models/mnist", "--data_dir .", 1, "DATA_LOSS: ./train-images-idx3-ubyte is cut");
    end();
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"bad_use", bad_use}, {"shows", shows}, {"shows_files", shows_files},
               {"shows_runs", shows_runs}, {"shows_kinds", shows_kinds},
               {"saved_models", saved_models}, {"runs", runs}, {"model_flags", model_flags},
               {"models", models});
}
