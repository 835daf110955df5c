/* input_bench.c -- the benchmarks of input, summaries and checkpoints, for Leat: each run prints
 * figures, as "name value". bench/input calls this program and bench/peers/tensorflow_input.py,
 * which has the same commands for TensorFlow 1.15 and 2.x.
 *
 *     input_bench write DIR                  the files that the other commands read
 *     input_bench dataset DIR HOW SECONDS    records/s of a graph of dataset ops in a session.
 *                                            HOW: single, batched (see tensorflow_input.py)
 *     input_bench program DIR SECONDS        the same by the functions of leat/data.h
 *     input_bench classic DIR READERS SECONDS    records/s of readers, queues and their threads
 *     input_bench scalars DIR N              scalars/s into an event file
 *     input_bench memory DIR KIND N          bytes that a shuffle buffer of N elements takes, to
 *                                            each of payload. KIND: string, image
 *     input_bench save DIR, restore DIR      seconds for 400 MB in four variables
 *     input_bench stage DIR KIND N SECONDS   elements/s of a stage of size N, -1: AUTOTUNE. KIND:
 *                                            map, interleave (100 us of work an element), cheap (a
 *                                            map without work), wait (a map that sleeps for 1 ms),
 *                                            prefetch (N elements, which come 32 at a time)
 */
#include <leat/leat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    FILES = 4,
    RECORDS = 60000, /* in all files */
    PIXELS = 784,
    BATCH = 100,
    BUFFER = 10000,
    STRING = 1000, /* bytes of the records for `memory string` */
    IMAGE = 32 * 32 * 3
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_time(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static const char *path_of(const char *dir, const char *kind, int i)
{
    static char paths[FILES + 1][4096];
    snprintf(paths[i], sizeof(*paths), "%s/%s-%d.tfrecord", dir, kind, i);
    return paths[i];
}

/* ---- The files ---- */

static void draw(unsigned char *to, size_t n)
{
    static uint32_t x = 123456789;
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        to[i] = (unsigned char)(x >> 24);
    }
}

static void write_examples(const char *path, int n)
{
    leat_record_writer *w;
    unsigned char image[PIXELS];
    LEAT_DIE_ON_ERROR(leat_record_writer_open(path, LEAT_RECORD_PLAIN, &w));
    for (int i = 0; i < n; i++) {
        const int64_t label = i % 10;
        void *bytes;
        size_t size;
        draw(image, sizeof(image));
        leat_example *e = leat_example_new();
        LEAT_DIE_ON_ERROR(leat_example_add_bytes(e, "image", image, sizeof(image)));
        LEAT_DIE_ON_ERROR(leat_example_add_ints(e, "label", &label, 1));
        LEAT_DIE_ON_ERROR(leat_example_encode(e, &bytes, &size));
        LEAT_DIE_ON_ERROR(leat_record_write(w, bytes, size));
        free(bytes);
        leat_example_free(e);
    }
    LEAT_DIE_ON_ERROR(leat_record_writer_close(w));
}

static void write_strings(const char *path, int n, size_t size)
{
    leat_record_writer *w;
    unsigned char bytes[IMAGE];
    LEAT_DIE_ON_ERROR(leat_record_writer_open(path, LEAT_RECORD_PLAIN, &w));
    for (int i = 0; i < n; i++) {
        draw(bytes, size);
        LEAT_DIE_ON_ERROR(leat_record_write(w, bytes, size));
    }
    LEAT_DIE_ON_ERROR(leat_record_writer_close(w));
}

static void write_all(const char *dir)
{
    mkdir(dir, 0777);
    for (int i = 0; i < FILES; i++)
        write_examples(path_of(dir, "mnist", i), RECORDS / FILES);
    write_strings(path_of(dir, "string", 0), 1000, STRING);
    write_strings(path_of(dir, "image", 0), 1000, IMAGE);
}

/* ---- Graphs of dataset ops ---- */

static leat_out constant(leat_graph *g, leat_tensor *t) /* takes t */
{
    leat_out c = leat_const(g, t);
    leat_tensor_unref(t);
    return c;
}

static leat_out int64(leat_graph *g, int64_t x)
{
    return constant(g, leat_scalar_int64(x));
}

static leat_out text(leat_graph *g, const char *const *v, int n, bool scalar)
{
    leat_tensor *t;
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_STRING, scalar ? leat_shape() : leat_shape(n), &t));
    for (int i = 0; i < n; i++)
        leat_string_set((leat_string *)leat_tensor_data(t) + i, v[i], strlen(v[i]));
    return constant(g, t);
}

static leat_out empty(leat_graph *g, leat_dtype t)
{
    leat_tensor *x;
    LEAT_DIE_ON_ERROR(leat_tensor_new(t, leat_shape(0), &x));
    return constant(g, x);
}

static const char *const keys[] = {"image", "label"};
static const leat_dtype stored[] = {LEAT_STRING, LEAT_INT64}, types[] = {LEAT_FLOAT, LEAT_INT64};
#define SCALARS (leat_shape[]){leat_shape(), leat_shape()}, 2

static void decode(leat_out parsed, int first, leat_out *out)
{
    leat_out raw =
        LEAT_OP1("DecodeRaw", leat_output(parsed, first), leat_attr_type("out_type", LEAT_UINT8));
    out[0] = leat_cast(raw, LEAT_FLOAT);
    out[1] = leat_output(parsed, first + 1);
}

static void parse_single(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    const leat_out missing[] = {empty(g, LEAT_STRING), empty(g, LEAT_INT64)};
    decode(leat_op(g, "ParseSingleExample", leat_in(in[0]), leat_ins(missing, 2),
                   leat_attr_int("num_sparse", 0), leat_attr_strings("sparse_keys", NULL, 0),
                   leat_attr_strings("dense_keys", keys, 2),
                   leat_attr_types("sparse_types", NULL, 0), leat_attr_types("Tdense", stored, 2),
                   leat_attr_shapes("dense_shapes", SCALARS)),
           0, out);
}

static void parse_batch(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    const leat_out missing[] = {empty(g, LEAT_STRING), empty(g, LEAT_INT64)};
    const leat_out names[] = {text(g, &keys[0], 1, true), text(g, &keys[1], 1, true)};
    decode(leat_op(g, "ParseExample", leat_in(in[0]), leat_in(empty(g, LEAT_STRING)),
                   leat_ins(NULL, 0), leat_ins(names, 2), leat_ins(missing, 2),
                   leat_attr_types("sparse_types", NULL, 0), leat_attr_types("Tdense", stored, 2),
                   leat_attr_shapes("dense_shapes", SCALARS)),
           0, out);
}

/* What the elements of a dataset are. */
typedef struct form {
    leat_dtype types[2];
    leat_shape shapes[2];
    int n;
} form;
#define ELEMENTS(f)                                                                                \
    leat_attr_types("output_types", (f).types, (f).n),                                             \
        leat_attr_shapes("output_shapes", (f).shapes, (f).n)

static leat_out names_of(leat_graph *g, const char *dir, int n)
{
    const char *names[FILES];
    for (int i = 0; i < n; i++)
        names[i] = path_of(dir, "mnist", i);
    return text(g, names, n, false);
}

static leat_out mapped(leat_graph *g, leat_out d, const char *f, const form *out)
{
    return leat_op(g, "ParallelMapDataset", leat_in(d), leat_ins(NULL, 0),
                   leat_in(constant(g, leat_scalar_int32(2))), leat_attr_func("f", f),
                   ELEMENTS(*out));
}

/* The next batch. single: records are parsed one by one, and parsed ones are shuffled; else records
 * are shuffled, and batches of them parsed. */
static leat_out pipeline(leat_graph *g, const char *dir, bool single, leat_out *init)
{
    const char *none = "";
    const form record = {{LEAT_STRING}, {leat_shape()}, 1};
    const form records = {{LEAT_STRING}, {leat_shape(-1)}, 1};
    const form example = {{LEAT_FLOAT, LEAT_INT64}, {leat_shape(PIXELS), leat_shape()}, 2};
    const form batch = {{LEAT_FLOAT, LEAT_INT64}, {leat_shape(-1, PIXELS), leat_shape(-1)}, 2};
    leat_function_define(g, "ParseSingle", parse_single, NULL, 2, LEAT_STRING);
    leat_function_define(g, "ParseBatch", parse_batch, NULL, 2, LEAT_STRING);
    leat_out d = leat_op(g, "TFRecordDataset", leat_in(names_of(g, dir, FILES)),
                         leat_in(text(g, &none, 1, true)), leat_in(int64(g, 0)));
    if (single)
        d = mapped(g, d, "ParseSingle", &example);
    const form one = single ? example : record, many = single ? batch : records;
    d = leat_op(g, "ShuffleDataset", leat_in(d), leat_in(int64(g, BUFFER)), leat_in(int64(g, 1)),
                leat_in(int64(g, 2)), ELEMENTS(one));
    d = leat_op(g, "RepeatDataset", leat_in(d), leat_in(int64(g, -1)), ELEMENTS(one));
    d = leat_op(g, "BatchDataset", leat_in(d), leat_in(int64(g, BATCH)), ELEMENTS(many));
    if (!single)
        d = mapped(g, d, "ParseBatch", &batch);
    d = leat_op(g, "PrefetchDataset", leat_in(d), leat_in(int64(g, 2)), ELEMENTS(batch));
    leat_out handle = leat_op(g, "IteratorV2", leat_attr_string("shared_name", ""),
                              leat_attr_string("container", ""), ELEMENTS(batch));
    *init = leat_op(g, "MakeIterator", leat_in(d), leat_in(handle));
    return leat_op(g, "IteratorGetNext", leat_in(handle), ELEMENTS(batch));
}

static void check_batch(leat_tensor **x)
{
    if (leat_tensor_count(x[0]) != BATCH * PIXELS || leat_tensor_count(x[1]) != BATCH) {
        fprintf(stderr, "input_bench: a batch has the wrong size\n");
        exit(1);
    }
    leat_tensor_unref(x[0]);
    leat_tensor_unref(x[1]);
}

typedef leat_status (*next_fn)(void *arg, leat_tensor **x);

/* Records/s of batches, and the CPU time of a record, after the first ones. */
static void measure(next_fn next, void *arg, double seconds)
{
    double start = 0, used = 0;
    for (int64_t i = -BUFFER / BATCH;; i++) {
        leat_tensor *x[2];
        if (i == 0) {
            start = now();
            used = cpu_time();
        }
        if (i > 0 && i % 16 == 0 && now() - start >= seconds) {
            printf("records_per_s %.0f\n", (double)(i * BATCH) / (now() - start));
            printf("cpu_us %.3f\n", (cpu_time() - used) / (double)(i * BATCH) * 1e6);
            return;
        }
        LEAT_DIE_ON_ERROR(next(arg, x));
        check_batch(x);
    }
}

typedef struct fetcher {
    leat_session *s;
    leat_out image, label;
} fetcher;

static leat_status next_of_session(void *arg, leat_tensor **x)
{
    const fetcher *f = arg;
    return leat_session_run(f->s, LEAT_NO_FEED, LEAT_FETCH({f->image, &x[0]}, {f->label, &x[1]}),
                            LEAT_NO_TARGET);
}

static void dataset(const char *dir, const char *how, double seconds)
{
    leat_graph *g = leat_graph_new();
    leat_out init, next = pipeline(g, dir, strcmp(how, "single") == 0, &init);
    LEAT_DIE_ON_ERROR(leat_graph_status(g));
    fetcher f = {.image = next, .label = leat_output(next, 1)};
    LEAT_DIE_ON_ERROR(leat_session_open(g, &f.s));
    LEAT_DIE_ON_ERROR(leat_session_run(f.s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    measure(next_of_session, &f, seconds);
    leat_session_close(f.s);
    leat_graph_free(g);
}

/* ---- The same by a program ---- */

static leat_status parse_in_program(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out,
                                    int n_out)
{
    const leat_string *record = leat_tensor_data(in[0]);
    leat_example *e;
    leat_tensor *image = NULL;
    LEAT_TRY(leat_example_decode(record->data, record->size, &e));
    leat_status s = leat_example_feature(e, "image", &image);
    if (!s)
        s = leat_example_feature(e, "label", &out[1]);
    leat_example_free(e);
    const leat_string *bytes = image ? leat_tensor_data(image) : NULL;
    if (!s && bytes->size != PIXELS)
        s = leat_error(INVALID_ARGUMENT, "An image has %zu bytes", bytes->size);
    if (!s)
        s = leat_tensor_new(LEAT_FLOAT, leat_shape(PIXELS), &out[0]);
    float *to = s ? NULL : leat_tensor_mutable(out[0]);
    for (int i = 0; to && i < PIXELS; i++)
        to[i] = (float)(unsigned char)bytes->data[i];
    leat_tensor_unref(image);
    return s;
}

static leat_status next_of_program(void *arg, leat_tensor **x)
{
    return leat_data_iterator_next(arg, x, 2);
}

static void program(const char *dir, double seconds)
{
    const char *names[FILES];
    for (int i = 0; i < FILES; i++)
        names[i] = path_of(dir, "mnist", i);
    leat_dataset *d;
    leat_data_iterator *it;
    LEAT_DIE_ON_ERROR(leat_dataset_from_records(names, FILES, "", &d));
    LEAT_DIE_ON_ERROR(leat_dataset_shuffle(d, BUFFER, 1, &d));
    LEAT_DIE_ON_ERROR(leat_dataset_repeat(d, -1, &d));
    LEAT_DIE_ON_ERROR(leat_dataset_prefetch(d, 1000, &d));
    LEAT_DIE_ON_ERROR(leat_dataset_map(d, parse_in_program, NULL, types, 2, &d));
    LEAT_DIE_ON_ERROR(leat_dataset_batch(d, BATCH, false, &d));
    LEAT_DIE_ON_ERROR(leat_dataset_prefetch(d, 2, &d));
    LEAT_DIE_ON_ERROR(leat_data_iterator_open(d, &it));
    measure(next_of_program, it, seconds);
    leat_data_iterator_close(it);
    leat_dataset_free(d);
}

/* ---- Readers and queues ---- */

static void classic(const char *dir, int readers, double seconds)
{
    enum { MOST = 16 };
    leat_graph *g = leat_graph_new();
    leat_out examples[MOST][2], batch[2];
    leat_outs lists[MOST];
    const leat_shape shapes[] = {leat_shape(PIXELS), leat_shape()};
    leat_out files = leat_string_input_producer(names_of(g, dir, FILES));
    for (int i = 0; i < readers; i++) {
        leat_out record = leat_output(leat_reader_read(leat_tf_record_reader(g), files), 1);
        parse_single(g, NULL, &record, examples[i]);
        lists[i] = (leat_outs){examples[i], 2};
    }
    leat_shuffle_batch_join(lists, readers, BATCH, BUFFER + 3 * BATCH, BUFFER, batch,
                            .shapes = shapes);
    LEAT_DIE_ON_ERROR(leat_graph_status(g));
    fetcher f = {.image = batch[0], .label = batch[1]};
    leat_coordinator *c = leat_coordinator_new();
    LEAT_DIE_ON_ERROR(leat_session_open(g, &f.s));
    LEAT_DIE_ON_ERROR(leat_start_queue_runners(g, f.s, c));
    measure(next_of_session, &f, seconds);
    leat_coordinator_request_stop(c, NULL);
    leat_status_free(leat_coordinator_join(c));
    leat_coordinator_free(c);
    leat_session_close(f.s);
    leat_graph_free(g);
}

/* ---- Summaries ---- */

static void scalars(const char *dir, int n)
{
    char events[4096];
    leat_summary_writer *w;
    snprintf(events, sizeof(events), "%s/events", dir);
    const double start = now();
    LEAT_DIE_ON_ERROR(leat_summary_writer_open(events, &w));
    for (int i = 0; i < n; i++)
        LEAT_DIE_ON_ERROR(leat_summary_write_scalar(w, "loss", (float)i, i));
    LEAT_DIE_ON_ERROR(leat_summary_writer_close(w));
    printf("scalars_per_s %.0f\n", n / (now() - start));
}

/* ---- Memory ---- */

static double resident(void)
{
    long pages = 0, used = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &pages, &used) != 2)
        exit(1);
    fclose(f);
    return (double)used * (double)sysconf(_SC_PAGESIZE);
}

static leat_status to_image(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out,
                            int n_out)
{
    return leat_tensor_copy_of(LEAT_UINT8, leat_shape(32, 32, 3),
                               ((const leat_string *)leat_tensor_data(in[0]))->data, out);
}

static void memory(const char *dir, const char *kind, int n)
{
    const bool image = strcmp(kind, "image") == 0;
    const char *path = path_of(dir, kind, 0);
    const leat_dtype type = LEAT_UINT8;
    leat_dataset *d;
    leat_data_iterator *it;
    leat_tensor *x;
    double before = 0;
    for (int i = 0; i < 2; i++) { /* first with few elements, so that all else is there */
        LEAT_DIE_ON_ERROR(leat_dataset_from_records(&path, 1, "", &d));
        LEAT_DIE_ON_ERROR(leat_dataset_repeat(d, -1, &d));
        if (image)
            LEAT_DIE_ON_ERROR(leat_dataset_map(d, to_image, NULL, &type, 1, &d));
        LEAT_DIE_ON_ERROR(leat_dataset_shuffle(d, i == 0 ? 100 : n, 1, &d));
        LEAT_DIE_ON_ERROR(leat_data_iterator_open(d, &it));
        LEAT_DIE_ON_ERROR(leat_data_iterator_next(it, &x, 1));
        if (i == 1)
            printf("bytes_to_payload %.3f\n",
                   (resident() - before) / ((double)n * (image ? IMAGE : STRING)));
        leat_tensor_unref(x);
        leat_data_iterator_close(it);
        leat_dataset_free(d);
        before = resident();
    }
}

/* ---- Checkpoints ---- */

static void checkpoint(const char *dir, bool save)
{
    char path[4096];
    leat_graph *g = leat_graph_new();
    leat_session *s;
    snprintf(path, sizeof(path), "%s/model.ckpt", dir);
    for (int i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof(name), "v%d", i);
        leat_variable(g, name, leat_zeros(g, LEAT_FLOAT, leat_shape(25, 1000, 1000)));
    }
    leat_saver *saver = leat_saver_new(g);
    LEAT_DIE_ON_ERROR(leat_graph_status(g));
    LEAT_DIE_ON_ERROR(leat_session_open(g, &s));
    LEAT_DIE_ON_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                                       LEAT_TARGET(leat_global_variables_initializer(g))));
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        const double start = now();
        LEAT_DIE_ON_ERROR(save ? leat_saver_save(saver, s, path, -1, NULL)
                               : leat_saver_restore(saver, s, path));
        const double took = now() - start;
        best = took < best ? took : best;
    }
    printf("%s_s %.4f\n", save ? "save" : "restore", best);
    leat_session_close(s);
    leat_saver_free(saver);
    leat_graph_free(g);
}

/* ---- Stages and AUTOTUNE ---- */

typedef struct load {
    int64_t us;    /* for each element */
    int64_t burst; /* 0, or how many elements come at once, after the time of all of them */
    bool sleeps;
} load;

static void pass_time(const load *l, int64_t us)
{
    const double end = now() + 1e-6 * (double)us;
    if (l->sleeps)
        usleep((useconds_t)us);
    while (now() < end) { /* works */
    }
}

static leat_status loaded(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out, int n_out)
{
    const load *l = arg;
    const int64_t i = *(const int64_t *)leat_tensor_data(in[0]);
    if (l->us && !(l->burst && i % l->burst))
        pass_time(l, l->burst ? l->us * l->burst : l->us);
    out[0] = leat_scalar_int64(i);
    return NULL;
}

static const leat_dtype number[] = {LEAT_INT64};

static leat_status loaded_range(void *arg, leat_tensor *const *in, int n_in, leat_dataset **out)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_from_range(0, 1000000, 1, &d));
    return leat_dataset_map(d, loaded, arg, number, 1, out);
}

static leat_status stage_of(const char *kind, int64_t n, load *l, leat_dataset **out)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_from_range(0, INT64_MAX, 1, &d));
    if (strcmp(kind, "prefetch") == 0) {
        *l = (load){.us = 50, .burst = 32};
        LEAT_TRY(leat_dataset_map(d, loaded, l, number, 1, &d));
        return leat_dataset_prefetch(d, n, out);
    }
    l->us = strcmp(kind, "cheap") == 0 ? 0 : strcmp(kind, "wait") == 0 ? 1000 : 100;
    l->sleeps = strcmp(kind, "wait") == 0;
    if (strcmp(kind, "interleave") == 0)
        LEAT_TRY(leat_dataset_interleave(d, loaded_range, l, number, 1, n, 4, true, &d));
    else
        LEAT_TRY(leat_dataset_parallel_map(d, n, loaded, l, number, 1, &d));
    return leat_dataset_prefetch(d, 64, out);
}

static void stage(const char *kind, int64_t n, double seconds)
{
    load l = {0};
    const load use = {.us = strcmp(kind, "prefetch") == 0 ? 50 : 0};
    leat_dataset *d;
    leat_data_iterator *it;
    double start = 0;
    LEAT_DIE_ON_ERROR(stage_of(kind, n, &l, &d));
    LEAT_DIE_ON_ERROR(leat_data_iterator_open(d, &it));
    for (int64_t i = -200;; i++) {
        leat_tensor *x;
        if (i == 0)
            start = now();
        if (i > 0 && i % 16 == 0 && now() - start >= seconds) {
            printf("elements_per_s %.0f\n", (double)i / (now() - start));
            break;
        }
        LEAT_DIE_ON_ERROR(leat_data_iterator_next(it, &x, 1));
        leat_tensor_unref(x);
        pass_time(&use, use.us);
    }
    leat_data_iterator_close(it);
    leat_dataset_free(d);
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "", *dir = argc > 2 ? argv[2] : "";
    const char *a = argc > 3 ? argv[3] : "1", *b = argc > 4 ? argv[4] : "1";
    if (strcmp(what, "write") == 0)
        write_all(dir);
    else if (strcmp(what, "dataset") == 0)
        dataset(dir, a, atof(b));
    else if (strcmp(what, "program") == 0)
        program(dir, atof(a));
    else if (strcmp(what, "classic") == 0)
        classic(dir, atoi(a) < 16 ? atoi(a) : 16, atof(b));
    else if (strcmp(what, "scalars") == 0)
        scalars(dir, atoi(a));
    else if (strcmp(what, "memory") == 0)
        memory(dir, a, atoi(b));
    else if (strcmp(what, "save") == 0 || strcmp(what, "restore") == 0)
        checkpoint(dir, what[0] == 's');
    else if (strcmp(what, "stage") == 0)
        stage(a, atoll(b), argc > 5 ? atof(argv[5]) : 1);
    else
        return fprintf(stderr, "input_bench write|dataset|program|classic|scalars|memory|save|"
                               "restore|stage DIR ...\n"),
               2;
    return 0;
}
