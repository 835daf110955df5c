/* models_test.c -- the programs of models/ that train on records, save, go on after a kill,
 * evaluate and classify. */
#include "command.h"

#include <leat/leat.h>
#include <regex.h>

static char dir[64];

/* Runs a model with a directory of its own as cache, log and output. */
static void model(int code, const char *words, const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    command c = command_start(
        "cd %s && LEAT_DATA_CACHE=%s/cache LEAT_DATA_URL=none " LEAT_BINARY_DIR "/models/%s", dir,
        dir, line);
    command_read(c, NULL);
    int got = command_end(c);
    if (got != code || !strstr(output, words)) {
        test_failures++;
        printf("%s gives %d, want %d with \"%s\"; it printed:\n%s", line, got, code, words, output);
    }
}

static void begin(void)
{
    strcpy(dir, "/tmp/leat-models-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
}

static void end(void)
{
    char line[128];
    snprintf(line, sizeof(line), "rm -rf %s", dir);
    CHECK_INT(system(line), 0);
}

static const char *in_dir(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

/* A small MNIST: n digits, drawn as bars whose place is the label. */
static void write_mnist(void)
{
    static const char *const names[] = {"train", "t10k"};
    for (int set = 0; set < 2; set++) {
        const int n = set ? 200 : 2000;
        char path[256];
        const unsigned char head[16] = {
            0, 0, 8, 3, 0, 0, (unsigned char)(n >> 8), (unsigned char)n, 0, 0, 0, 28, 0, 0, 0, 28};
        snprintf(path, sizeof(path), "%s/%s-images-idx3-ubyte", dir, names[set]);
        FILE *images = fopen(path, "wb");
        snprintf(path, sizeof(path), "%s/%s-labels-idx1-ubyte", dir, names[set]);
        FILE *labels = fopen(path, "wb");
        fwrite(head, 1, 16, images);
        fwrite("\0\0\10\1", 1, 4, labels);
        fwrite(head + 4, 1, 4, labels);
        for (int i = 0; i < n; i++) {
            unsigned char pixels[784] = {0};
            for (int k = 0; k < 28; k++)
                pixels[28 * k + 2 * (i % 10) + 4] = (unsigned char)(200 + i % 50);
            fwrite(pixels, 1, 784, images);
            fputc(i % 10, labels);
        }
        fclose(images);
        fclose(labels);
    }
}

/* Images and labels of a file of records. */
static void check_records(const char *name, int n, int size, int depth)
{
    char path[256];
    leat_record_reader *r;
    const void *bytes;
    size_t got;
    int count = 0;
    leat_tensor *t[2];
    const leat_feature_spec features[] = {{"image_raw", LEAT_STRING, leat_shape(), NULL},
                                          {"depth", LEAT_INT64, leat_shape(), NULL}};
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    CHECK_OK(leat_record_reader_open(path, LEAT_RECORD_AUTO, &r));
    leat_status s;
    while (!(s = leat_record_next(r, &bytes, &got))) {
        if (count++ == 0) {
            CHECK_OK(leat_example_parse(bytes, got, features, 2, t));
            CHECK_INT(((const leat_string *)leat_tensor_data(t[0]))->size, size);
            CHECK_INT(leat_tensor_at(t[1], 0), depth);
            leat_tensor_unref(t[0]);
            leat_tensor_unref(t[1]);
        }
    }
    CHECK_ERROR(s, OUT_OF_RANGE, "");
    CHECK_INT(count, n);
    leat_record_reader_free(r);
}

static void converts(void)
{
    begin();
    write_mnist();
    model(0, "mnist_train.tfrecords: 2000 examples", "convert_to_records --data_dir .");
    check_records("mnist_train.tfrecords", 2000, 784, 1);
    check_records("mnist_test.tfrecords", 200, 784, 1);
    model(0, "mnist_test.tfrecords.gz: 200 examples",
          "convert_to_records --data_dir . --output_dir made --compression GZIP");
    check_records("made/mnist_test.tfrecords.gz", 200, 784, 1);
    model(0, "mnist_test.tfrecords.zlib: 200 examples",
          "convert_to_records --data_dir . --compression ZLIB");
    check_records("mnist_test.tfrecords.zlib", 200, 784, 1);
    model(0, "cifar10_test.tfrecords: 10000 examples", "convert_to_records --data cifar10");
    CHECK(strstr(output, "images that this program draws itself") != NULL);
    check_records("cifar10_test.tfrecords", 10000, 3072, 3);
    model(2, "--data is mnist or cifar10, not mni", "convert_to_records --data mni");
    model(2, "--compression is GZIP or ZLIB, not BZIP", "convert_to_records --compression BZIP");
    model(1, "/proc/nowhere", "convert_to_records --data_dir . --output_dir /proc/nowhere");
    model(0, "--output_dir S", "convert_to_records --help");
    end();
}

static int64_t newest_step(void)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/log", dir);
    char *newest = leat_latest_checkpoint(path);
    int64_t step = newest ? atoll(strrchr(newest, '-') + 1) : -1;
    free(newest);
    return step;
}

#define TOWERS "mnist_towers --data_dir . --log_dir log --hidden_units 20 --batch_size 20 "

/* Trains, is killed after a checkpoint, goes on from it; is tested, and classifies. */
static void trains(void)
{
    begin();
    write_mnist();
    command c = command_start("cd %s && exec " LEAT_BINARY_DIR "/models/" TOWERS
                              "--train_steps 1000000 --save_steps 50",
                              dir);
    CHECK(command_read(c, "writing ./mnist_train.tfrecords"));
    CHECK_SOON(newest_step() >= 100);
    kill(c.pid, SIGKILL);
    command_read(c, NULL);
    command_end(c);
    const int64_t step = newest_step();
    char words[128];
    snprintf(words, sizeof(words), "going on from step %lld", (long long)step);
    model(0, words, TOWERS "--train_steps %lld --save_steps 50", (long long)step + 60);
    CHECK(strstr(output, "writing ") == NULL); /* the records are there */
    CHECK(strstr(output, "trained 60 steps of 2 towers") != NULL);
    CHECK(strstr(output, "test accuracy 100.00 %") != NULL);
    CHECK_INT(newest_step(), step + 60);

    snprintf(words, sizeof(words), "precision @ 1 = 1.0000 (step %lld)", (long long)step + 60);
    model(0, words, "mnist_eval --log_dir log --data_dir . --eval_dir eval");
    CHECK(access(in_dir("eval"), F_OK) == 0);
    model(0, words, "mnist_eval --log_dir log --data_dir . --eval_interval_secs 0.1 --evals 1");
    model(1, "none has no checkpoint", "mnist_eval --log_dir none --data_dir .");
    model(2, "--log_dir is required", "mnist_eval --data_dir .");
    model(0, "row 3: 3, probability", "mnist_infer --log_dir log --data_dir . --row 3 --rows 2");
    CHECK(strstr(output, "row 4: 4, probability") != NULL && strstr(output, "label 4\n") != NULL);
    model(0, "t10k-images-idx3-ubyte 199: 9, probability",
          "mnist_infer --log_dir log --images t10k-images-idx3-ubyte");
    model(1, "rows [199, 209) of 200", "mnist_infer --log_dir log --data_dir . --row 199");
    model(1, "absent: cannot be opened", "mnist_infer --log_dir log --images absent");
    model(2, "--log_dir is required", "mnist_infer");
    end();
}

static void images(void)
{
    char path[128];
    begin();
    write_mnist();
    model(0, "test accuracy", TOWERS "--train_steps 100");
    snprintf(path, sizeof(path), "%s/seven.pgm", dir);
    FILE *f = fopen(path, "wb");
    fputs("P5\n# a bar\n28 28\n255\n", f);
    for (int i = 0; i < 784; i++)
        fputc(i % 28 == 18 ? 220 : 0, f);
    fclose(f);
    model(0, "seven.pgm 0: 7, probability",
          "mnist_infer --log_dir log --images seven.pgm,seven.pgm");
    CHECK_INT(truncate(path, 500), 0);
    model(1, "seven.pgm is cut off", "mnist_infer --log_dir log --images seven.pgm");
    f = fopen(path, "wb");
    fputs("P5\n20 28\n255\n", f);
    fclose(f);
    model(1, "a PGM file of 28x28 pixels", "mnist_infer --log_dir log --images seven.pgm");
    /* Without a directory for it, nothing is written. */
    model(0, "test accuracy", "mnist_towers --data_dir . --train_steps 2 --hidden_units 20");
    end();
}

static bool matches(const char *pattern)
{
    regex_t r;
    CHECK(regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE) == 0);
    const bool found = regexec(&r, output, 0, NULL, 0) == 0;
    regfree(&r);
    return found;
}

#define CIFAR10                                                                                    \
    "cifar10_towers --train_dir log --records_dir . --batch_size 4 --num_devices 2 "               \
    "--log_frequency 1 "

static void cifar10(void)
{
    begin();
    model(0, "step 2, loss = ", CIFAR10 "--max_steps 3");
    CHECK(strstr(output, "writing ./shapes_train.tfrecords") != NULL);
    CHECK(matches("^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}: step 2, "
                  "loss = [0-9]+\\.[0-9]{2} \\([0-9]+\\.[0-9] examples/sec; "
                  "[0-9]+\\.[0-9]{3} sec/batch\\)$"));
    CHECK_INT(newest_step(), 3);
    /* The next run goes on from the checkpoint. */
    model(0, "step 3, loss = ", CIFAR10 "--max_steps 4 --summary_steps 1");
    CHECK(strstr(output, "step 2,") == NULL && strstr(output, "writing") == NULL);
    CHECK_INT(newest_step(), 4);
    model(0, "(step 4)", "cifar10_eval --checkpoint_dir log --num_examples 200 --eval_dir eval");
    CHECK(strstr(output, "precision @ 1 = 0.") != NULL);
    model(1, "none: no checkpoint", "cifar10_eval --checkpoint_dir none");
    model(2, "--checkpoint_dir is required", "cifar10_eval");
    model(2, "--num_devices: at most 64", "cifar10_towers --num_devices 65");
    model(1, "", CIFAR10 "--max_steps 50 --learning_rate 1e30 --train_dir bad");
    CHECK(strstr(output, "Model diverged: ") != NULL);
    CHECK(matches("^The first op: .*: Tensor had (NaN|Inf) values"));
    /* The same where the summaries of a step find it. */
    model(1, "Model diverged: ",
          CIFAR10 "--max_steps 50 --learning_rate 1e30 --summary_steps 1 --train_dir bad2");
    CHECK(matches("^The first op: .*: Tensor had (NaN|Inf) values"));
    end();
}

/* Whether a file of the directory contains the words. */
static bool file_has(const char *name, const char *words)
{
    static char text[1 << 20];
    FILE *f = fopen(in_dir(name), "r");
    const size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    return strstr(text, words) != NULL;
}

/* Starts a server, a task of the cluster of workers at these two ports, which writes to
 * worker_TASK. */
static command worker(const int ports[2], int task)
{
    char log[32];
    snprintf(log, sizeof(log), "worker_%d", task);
    command c = command_start("cd %s && exec " LEAT_BINARY_DIR
                              "/leat server --cluster 'worker=127.0.0.1:%d,127.0.0.1:%d'"
                              " --job_name worker --task_index %d > %s 2>&1",
                              dir, ports[0], ports[1], task, log);
    CHECK_SOON(file_has(log, "answers at"));
    return c;
}

/* The loss that the program printed with a step. */
static double loss_of_step(int step)
{
    char words[32];
    snprintf(words, sizeof(words), "step %d, loss = ", step);
    const char *at = strstr(output, words);
    return at ? atof(at + strlen(words)) : -1;
}

/* In-graph replication: this program alone drives towers on the tasks of a cluster. */
static void cifar10_on_tasks(void)
{
    const int ports[2] = {free_port(), free_port()};
    begin();
    model(0, "step 2, loss = ", CIFAR10 "--max_steps 3 --train_dir alone");
    const double want = loss_of_step(0);
    command workers[2];
    for (int i = 0; i < 2; i++)
        workers[i] = worker(ports, i);
    model(0, "step 2, loss = ",
          CIFAR10 "--max_steps 3 --log_device_placement --target grpc://127.0.0.1:%d --device_list "
                  "/job:worker/task:0,/job:worker/task:1",
          ports[0]);
    CHECK_NEAR(loss_of_step(0), want, 0.1);
    CHECK(file_has("worker_0", "tower_0/conv1/Conv2D: (Conv2D): /job:worker/replica:0/task:0/"));
    CHECK(file_has("worker_0", "tower_1/conv1/Conv2D: (Conv2D): /job:worker/replica:0/task:1/"));
    CHECK_INT(newest_step(), 3);
    for (int i = 0; i < 2; i++)
        CHECK_INT(command_signal(workers[i], SIGTERM), 0);
    end();
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"converts", converts}, {"trains", trains}, {"images", images},
               {"cifar10", cifar10}, {"cifar10_on_tasks", cifar10_on_tasks});
}
