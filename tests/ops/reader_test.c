/* reader_test.c -- readers: keys and records of each kind, counts and state, damaged files, and how
 * reads that wait for a name end. TensorFlow's own values are in tests/vectors/input.vec. */
#include <pthread.h>

#include "ops/runner.h"
#include "io/files.h"
#include "kernels/cpu/reader.h"
#include "ops/queue_fixture.h"
#include "waiters.h"

#define NAMES LEAT_COMPONENTS({LEAT_STRING, leat_shape()})

typedef struct reading {
    fixture f;
    leat_out reader, queue, read, name, put, close;
} reading;

/* A reader of this op with these attributes, a queue, a read, and an enqueue of the name that is
 * fed. */
#define READING(op, ...)                                                                           \
    ({                                                                                             \
        fixture f_ = begin();                                                                      \
        with_queue(f_, LEAT_OP0(f_.g, op "V2", ##__VA_ARGS__));                                    \
    })

static reading with_queue(fixture f, leat_out reader)
{
    reading r = {f, reader, leat_fifo_queue(f.g, 10, NAMES)};
    r.read = LEAT_OP2("ReaderReadV2", reader, r.queue);
    r.name = leat_placeholder(f.g, LEAT_STRING, leat_shape());
    r.put = leat_enqueue(r.queue, r.name);
    r.close = leat_queue_close(r.queue);
    open_session(&r.f);
    return r;
}

static void put(reading *r, const char *path)
{
    leat_tensor *t = leat_scalar_string(path, strlen(path));
    CHECK_OK(leat_session_run(r->f.s, LEAT_FEED({r->name, t}), LEAT_NO_FETCH, LEAT_TARGET(r->put)));
    leat_tensor_unref(t);
}

static leat_status try_read(reading *r, leat_tensor **key, leat_tensor **value)
{
    leat_run_options o = {.timeout_ms = 60000};
    return leat_session_run_with(r->f.s, &o, LEAT_NO_FEED,
                                 LEAT_FETCH({r->read, key}, {leat_output(r->read, 1), value}),
                                 LEAT_NO_TARGET);
}

/* The next record has this value, and a key that is the path, a colon and the number, or the path
 * alone if number is below 0. */
static void expect(reading *r, const char *path, long long number, const char *want)
{
    leat_tensor *key = NULL, *value = NULL;
    CHECK_OK(try_read(r, &key, &value));
    if (key && value) {
        char text[600];
        snprintf(text, sizeof(text), number < 0 ? "%s" : "%s:%lld", path, number);
        CHECK_STR(((const leat_string *)leat_tensor_data(key))->data, text);
        const leat_string *s = leat_tensor_data(value);
        CHECK_STR(s->data ? s->data : "", want);
    }
    leat_tensor_unref(key);
    leat_tensor_unref(value);
}

#define EXPECT_ERROR(r, code, words)                                                               \
    do {                                                                                           \
        leat_tensor *k_ = NULL, *v_ = NULL;                                                        \
        CHECK_ERROR(try_read(r, &k_, &v_), code, words);                                           \
    } while (0)

static void counts(reading *r, const char *records, const char *units)
{
    check_values(r->f.s, LEAT_OP1("ReaderNumRecordsProducedV2", r->reader), records);
    check_values(r->f.s, LEAT_OP1("ReaderNumWorkUnitsCompletedV2", r->reader), units);
}

static const char *file(const char *name, const char *text)
{
    const char *path = here(name);
    CHECK_OK(leat_file_write(path, text, strlen(text)));
    return path;
}

/* ---- Kinds ---- */

static void lines(void)
{
    reading r = READING("TextLineReader", leat_attr_int("skip_header_lines", 1));
    const char *a = file("a.txt", "header\none\n\r\ntwo\r\nthr\ree"), *b = file("b.txt", "header");
    const char *c = file("c.txt", "header\nx\n");
    put(&r, a);
    put(&r, b); /* has no lines but the header */
    put(&r, c);
    CHECK_OK(run(r.f.s, r.close));
    expect(&r, a, 2, "one");
    expect(&r, a, 3, "");
    expect(&r, a, 4, "two");
    counts(&r, "3", "0");
    expect(&r, a, 5, "thr\ree");
    expect(&r, c, 2, "x");
    counts(&r, "5", "2");
    EXPECT_ERROR(&r, OUT_OF_RANGE, "is closed and has insufficient elements");
    counts(&r, "5", "3");
    end(&r.f);
}

/* A line that is longer than the buffer. */
static void long_line(void)
{
    enum { LONG = 700000 };
    reading r = READING("TextLineReader");
    char *text = malloc(LONG + 3);
    memset(text, 'x', LONG);
    memcpy(text + LONG, "\ny", 3);
    const char *a = file("long.txt", text);
    text[LONG] = 0;
    put(&r, a);
    expect(&r, a, 1, text);
    expect(&r, a, 2, "y");
    free(text);
    end(&r.f);
}

static void fixed(void)
{
    const char *a = file("a.bin", "HHabcdefgFF"), *b = file("b.bin", "HH1234567FF");
    reading r = READING("FixedLengthRecordReader", leat_attr_int("header_bytes", 2),
                        leat_attr_int("record_bytes", 3), leat_attr_int("footer_bytes", 2));
    put(&r, a);
    put(&r, b);
    expect(&r, a, 0, "abc");
    expect(&r, a, 1, "def"); /* the rest is no record */
    expect(&r, b, 0, "123");
    end(&r.f);
    r = READING("FixedLengthRecordReader", leat_attr_int("header_bytes", 2),
                leat_attr_int("record_bytes", 3), leat_attr_int("footer_bytes", 2),
                leat_attr_int("hop_bytes", 1));
    put(&r, a);
    CHECK_OK(run(r.f.s, r.close));
    expect(&r, a, 0, "abc");
    expect(&r, a, 1, "bcd");
    expect(&r, a, 2, "cde");
    expect(&r, a, 3, "def");
    expect(&r, a, 4, "efg");
    EXPECT_ERROR(&r, OUT_OF_RANGE, "is closed");
    end(&r.f);
    r = READING("FixedLengthRecordReader", leat_attr_int("record_bytes", 2),
                leat_attr_int("hop_bytes", 5));
    put(&r, a);
    expect(&r, a, 0, "HH");
    expect(&r, a, 1, "de");
    end(&r.f);
    r = READING("FixedLengthRecordReader", leat_attr_int("header_bytes", 20),
                leat_attr_int("record_bytes", 2));
    put(&r, a);
    EXPECT_ERROR(&r, OUT_OF_RANGE, "a.bin has 11 bytes, fewer than the 20 of a header");
    end(&r.f);
}

static void records(void)
{
    static const char *const files[] = {"plain.tfrecord", "gzip.tfrecord", "zlib.tfrecord"};
    static const char *const forms[] = {"", "GZIP", "ZLIB"};
    for (int i = 0; i < 3; i++) {
        reading r = READING("TFRecordReader", leat_attr_string("compression_type", forms[i]));
        const char *a = theirs(files[i]);
        put(&r, a);
        expect(&r, a, 0, "");
        expect(&r, a, 16, "x");
        expect(&r, a, 33, "hello");
        end(&r.f);
    }
}

static void whole_and_names(void)
{
    const char *a = file("a.txt", "all of it\n"), *b = file("empty", "");
    reading r = READING("WholeFileReader");
    put(&r, a);
    put(&r, b);
    expect(&r, a, -1, "all of it\n");
    counts(&r, "1", "1");
    expect(&r, b, -1, "");
    end(&r.f);
    r = READING("IdentityReader");
    put(&r, "some");
    expect(&r, "some", -1, "some");
    end(&r.f);
}

/* The ops of the first version, which take references to string vectors. */
static void first_version(void)
{
    fixture f = begin();
    const leat_dtype string = LEAT_STRING;
    leat_out q = leat_op(f.g, "FIFOQueue", leat_attr_types("component_types", &string, 1));
    leat_out name = leat_string_const(f.g, "work");
    leat_out put = LEAT_OP2("QueueEnqueue", q, name);
    leat_out reader = LEAT_OP0(f.g, "IdentityReader");
    leat_out read = LEAT_OP2("ReaderRead", reader, q);
    open_session(&f);
    CHECK_OK(run(f.s, put));
    check_values(f.s, read, "work");
    check_values(f.s, LEAT_OP1("ReaderNumRecordsProduced", reader), "1");
    CHECK_OK(run(f.s, LEAT_OP1("ReaderReset", reader)));
    check_values(f.s, LEAT_OP1("ReaderNumWorkUnitsCompleted", reader), "0");
    end(&f);
}

/* ---- Many at once, state ---- */

static leat_out up_to(const reading *r, int n)
{
    return LEAT_OP3("ReaderReadUpToV2", r->reader, r->queue, leat_scalar(r->f.g, LEAT_INT64, n));
}

static void read_up_to(void)
{
    reading r = READING("TextLineReader");
    put(&r, file("a.txt", "1\n2\n3\n4\n5\n"));
    put(&r, file("b.txt", ""));
    put(&r, file("c.txt", "6\n7\n"));
    leat_out three = leat_output(up_to(&r, 3), 1), none = leat_output(up_to(&r, 0), 1);
    check_values(r.f.s, three, "[1 2 3]");
    check_values(r.f.s, three, "[4 5]"); /* a batch is of one file */
    check_values(r.f.s, none, "[]");
    check_values(r.f.s, three, "[6 7]");
    counts(&r, "7", "3");
    CHECK_ERROR(run(r.f.s, up_to(&r, -1)), INVALID_ARGUMENT, "num_records must be >= 0 not -1");
    end(&r.f);
}

static leat_out restore(const reading *r, leat_out state)
{
    return LEAT_OP2("ReaderRestoreStateV2", r->reader, state);
}

static void state(void)
{
    reading r = READING("IdentityReader", leat_name("reader"));
    put(&r, "X");
    expect(&r, "X", -1, "X");
    leat_tensor *saved = NULL;
    leat_out save = LEAT_OP1("ReaderSerializeStateV2", r.reader);
    CHECK_OK(leat_session_run(r.f.s, LEAT_NO_FEED, LEAT_FETCH({save, &saved}), LEAT_NO_TARGET));
    put(&r, "Y");
    expect(&r, "Y", -1, "Y");
    counts(&r, "2", "2");
    CHECK_OK(run(r.f.s, restore(&r, leat_const(r.f.g, saved))));
    counts(&r, "1", "1");
    CHECK_OK(run(r.f.s, LEAT_OP1("ReaderResetV2", r.reader)));
    counts(&r, "0", "0");
    CHECK_ERROR(run(r.f.s, restore(&r, leat_string_const(r.f.g, "\x08"))), INVALID_ARGUMENT,
                "Could not parse state for IdentityReader 'reader': \\010");
    CHECK_ERROR(run(r.f.s, restore(&r, leat_string_const(r.f.g, "\x08\x02\x10\x01"))),
                INVALID_ARGUMENT,
                "Inconsistent work started vs. finished when restoring in "
                "IdentityReader 'reader': work_started: 2 work_finished: 1");
    leat_tensor_unref(saved);
    end(&r.f);
    r = READING("TextLineReader");
    CHECK_ERROR(run(r.f.s, LEAT_OP1("ReaderSerializeStateV2", r.reader)), UNIMPLEMENTED,
                "Reader SerializeState");
    CHECK_ERROR(run(r.f.s, restore(&r, leat_string_const(r.f.g, ""))), UNIMPLEMENTED,
                "Reader RestoreState");
    end(&r.f);
}

/* ---- Errors ---- */

/* Records before a damaged one are given, also by ReaderReadUpTo; then the error comes again and
 * again, with the file's name, until the reader is reset or the file is mended. */
static void damaged(void)
{
    char *bytes;
    size_t n;
    const char *path = here("damaged.tfrecord");
    CHECK_OK(leat_file_read(theirs("plain.tfrecord"), &bytes, &n));
    bytes[33 + 12] ^= 1;
    CHECK_OK(leat_file_write(path, bytes, n));
    reading r = READING("TFRecordReader");
    put(&r, path);
    check_values(r.f.s, leat_output(up_to(&r, 10), 1), "[ x]");
    EXPECT_ERROR(&r, DATA_LOSS, "corrupted record at 45 in ");
    EXPECT_ERROR(&r, DATA_LOSS, path);
    bytes[33 + 12] ^= 1;
    CHECK_OK(leat_file_write(path, bytes, 40));
    EXPECT_ERROR(&r, DATA_LOSS, "truncated record at 33 in ");
    CHECK_OK(leat_file_write(path, bytes, n));
    expect(&r, path, 33, "hello");
    counts(&r, "3", "0");
    CHECK_OK(run(r.f.s, LEAT_OP1("ReaderResetV2", r.reader)));
    put(&r, path);
    expect(&r, path, 0, "");
    end(&r.f);
    free(bytes);
}

static void refused(void)
{
    reading r = READING("TextLineReader");
    put(&r, "/no/such/file");
    EXPECT_ERROR(&r, NOT_FOUND, "/no/such/file; No such file or directory");
    const char *a = file("a.txt", "1\n");
    put(&r, "gs://bucket/file");
    EXPECT_ERROR(&r, UNIMPLEMENTED, "File system scheme 'gs' not implemented");
    put(&r, here(""));
    EXPECT_ERROR(&r, FAILED_PRECONDITION, "Is a directory");
    put(&r, a);
    expect(&r, a, 1, "1"); /* the next file */
    leat_tensor *nul = leat_scalar_string("a\0b", 3);
    CHECK_OK(leat_session_run(r.f.s, LEAT_FEED({r.name, nul}), LEAT_NO_FETCH, LEAT_TARGET(r.put)));
    EXPECT_ERROR(&r, INVALID_ARGUMENT, "The file name \"a...\" has a NUL in it");
    leat_tensor_unref(nul);
    end(&r.f);

    r = READING("FixedLengthRecordReader", leat_attr_int("record_bytes", -1));
    EXPECT_ERROR(&r, INVALID_ARGUMENT, "record_bytes must be >= 0 not -1");
    end(&r.f);
    r = READING("FixedLengthRecordReader", leat_attr_int("record_bytes", 0));
    EXPECT_ERROR(&r, INVALID_ARGUMENT, "a file would have records without end");
    end(&r.f);
    r = READING("TextLineReader", leat_attr_int("skip_header_lines", -2));
    EXPECT_ERROR(&r, INVALID_ARGUMENT, "skip_header_lines must be >= 0 not -2");
    end(&r.f);
    r = READING("TFRecordReader", leat_attr_string("compression_type", "gzip"));
    EXPECT_ERROR(&r, INVALID_ARGUMENT,
                 "compression_type must be \"\", \"GZIP\" or \"ZLIB\", not \"gzip\"");
    end(&r.f);
}

/* Queues whose elements are no names. */
static void other_queues(void)
{
    fixture f = begin();
    leat_out reader = LEAT_OP0(f.g, "IdentityReaderV2");
    leat_out one = leat_scalar(f.g, LEAT_INT32, 1), text = leat_string_const(f.g, "a");
    leat_out numbers = leat_fifo_queue(f.g, 2, SCALARS);
    leat_out pairs = leat_fifo_queue(
        f.g, 2, LEAT_COMPONENTS({LEAT_STRING, leat_shape()}, {LEAT_STRING, leat_shape()}));
    leat_out vectors = leat_fifo_queue(f.g, 2, LEAT_COMPONENTS({LEAT_STRING, leat_shape(2)}));
    leat_out two[] = {text, text};
    open_session(&f);
    CHECK_OK(run(f.s, leat_enqueue(numbers, one)));
    CHECK_OK(run(f.s, leat_enqueue(pairs, text, text)));
    CHECK_OK(run(f.s, leat_enqueue(vectors, leat_pack(two, 2, 0))));
    CHECK_ERROR(run(f.s, LEAT_OP2("ReaderReadV2", reader, numbers)), INVALID_ARGUMENT,
                "Expected queue with single string component");
    CHECK_ERROR(run(f.s, LEAT_OP2("ReaderReadV2", reader, pairs)), INVALID_ARGUMENT,
                "Expected single component queue");
    CHECK_ERROR(run(f.s, LEAT_OP2("ReaderReadV2", reader, vectors)), INVALID_ARGUMENT,
                "Expected to dequeue a one-element string tensor");
    CHECK_ERROR(run(f.s, LEAT_OP2("ReaderReadV2", numbers, numbers)), NOT_FOUND, "does not exist");
    end(&f);
}

/* ---- Waiting ---- */

static void start(runner *r, leat_session *s, leat_out target)
{
    *r = (runner){.s = s, .target = target, .cancel = leat_cancellation_new()};
    pthread_create(&r->thread, NULL, runner_main, r);
}

static leat_status stop(runner *r)
{
    pthread_join(r->thread, NULL);
    leat_cancellation_free(r->cancel);
    return r->status;
}

static int in_line(leat_session *s, const char *name)
{
    leat_reader *r = (leat_reader *)resource_of(s, name, "N10tensorflow15ReaderInterfaceE");
    if (!r)
        return 0;
    pthread_mutex_lock(&r->lock);
    int n = waiters_count(&r->line);
    pthread_mutex_unlock(&r->lock);
    leat_resource_unref(&r->base);
    return n;
}

/* The first read waits for a name, the others for their turn. */
static void three_wait(reading *r, runner *w)
{
    const char *queue = leat_node_name(r->queue.node), *name = leat_node_name(r->reader.node);
    start(&w[0], r->f.s, r->read);
    CHECK_SOON(waiters_at_queue(r->f.s, queue) == 1);
    for (int i = 1; i < 3; i++) {
        start(&w[i], r->f.s, r->read);
        CHECK_SOON(in_line(r->f.s, name) == i);
    }
}

static void ends_of_waiting(void)
{
    reading r = READING("IdentityReader");
    runner w[3];
    CHECK_ERROR(try_run(r.f.s, r.read), DEADLINE_EXCEEDED, "ReaderReadV2");
    three_wait(&r, w);
    counts(&r, "0", "0"); /* needs no turn */
    CHECK_ERROR(try_run(r.f.s, LEAT_OP1("ReaderResetV2", r.reader)), DEADLINE_EXCEEDED,
                "ReaderResetV2");
    leat_cancel_runs(w[1].cancel);
    CHECK_ERROR(stop(&w[1]), CANCELLED, "was cancelled");
    leat_cancel_runs(w[0].cancel);
    CHECK_ERROR(stop(&w[0]), CANCELLED, "was cancelled");
    put(&r, "a");
    CHECK_OK(stop(&w[2]));
    three_wait(&r, w);
    put(&r, "b");
    put(&r, "c");
    CHECK_OK(stop(&w[0]));
    CHECK_OK(stop(&w[1]));
    CHECK_OK(run(r.f.s, r.close));
    CHECK_ERROR(stop(&w[2]), OUT_OF_RANGE, "is closed and has insufficient elements");
    counts(&r, "3", "3");
    end(&r.f);
}

static void session_closes(void)
{
    reading r = READING("IdentityReader");
    runner w[3];
    three_wait(&r, w);
    leat_session_close(r.f.s);
    for (int i = 0; i < 3; i++)
        CHECK_ERROR(stop(&w[i]), CANCELLED, "was cancelled");
    leat_graph_free(r.f.g);
}

/* Threads that read the lines of many files by one reader get each line once. */
enum { FILES = 8, LINES = 50, THREADS = 4 };
typedef struct shared_work {
    reading *r;
    int sum;
} shared_work;

static void *read_all(void *arg)
{
    shared_work *w = arg;
    leat_tensor *key, *value;
    for (;;) {
        leat_status s = try_read(w->r, &key, &value);
        if (s) {
            CHECK_ERROR(s, OUT_OF_RANGE, "is closed");
            return NULL;
        }
        w->sum += atoi(((const leat_string *)leat_tensor_data(value))->data);
        leat_tensor_unref(key);
        leat_tensor_unref(value);
    }
}

static void many_threads(void)
{
    reading r = READING("TextLineReader");
    pthread_t threads[THREADS];
    shared_work work[THREADS];
    int want = 0, got = 0;
    for (int i = 0; i < THREADS; i++) {
        work[i] = (shared_work){&r, 0};
        pthread_create(&threads[i], NULL, read_all, &work[i]);
    }
    for (int f = 0; f < FILES; f++) {
        char name[32], text[LINES * 8] = "";
        snprintf(name, sizeof(name), "many%d.txt", f);
        for (int i = 0; i < LINES; i++) {
            want += f * LINES + i;
            snprintf(text + strlen(text), 8, "%d\n", f * LINES + i);
        }
        put(&r, file(name, text));
    }
    CHECK_OK(run(r.f.s, r.close));
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        got += work[i].sum;
    }
    CHECK_INT(got, want);
    counts(&r, "400", "8");
    end(&r.f);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"lines", lines}, {"long_line", long_line}, {"fixed", fixed},
               {"records", records}, {"whole_and_names", whole_and_names},
               {"first_version", first_version}, {"read_up_to", read_up_to}, {"state", state},
               {"damaged", damaged}, {"refused", refused}, {"other_queues", other_queues},
               {"ends_of_waiting", ends_of_waiting}, {"session_closes", session_closes},
               {"many_threads", many_threads});
}
