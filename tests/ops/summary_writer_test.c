/* summary_writer_test.c -- summary writers behind handles: what the ops write is read back from the
 * event file; queues; files that cannot be opened, writers that are not open, bytes that are no
 * message. */
#include "core/buffer.h"
#include "test.h"

#include <dirent.h>
#include <leat/leat.h>
#include <unistd.h>

static char dir[100];
static leat_graph *g;
static leat_session *s;
static leat_out writer;

static void begin(void)
{
    snprintf(dir, sizeof(dir), "/tmp/leat_summary_writer_test_XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    g = leat_graph_new();
    CHECK_OK(leat_session_open(g, &s));
    writer = leat_op(g, "SummaryWriter", leat_attr_string("shared_name", "w"));
}

static void each_file(void (*fn)(const char *path))
{
    char path[400];
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
            fn(path);
        }
    if (d)
        closedir(d);
}

static void remove_file(const char *path)
{
    unlink(path);
}

static void end(void)
{
    leat_session_close(s);
    leat_graph_free(g);
    each_file(remove_file);
    rmdir(dir);
}

static leat_status run(leat_out x)
{
    return leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(leat_done(x)));
}

static leat_out text(const char *v)
{
    return leat_string_const(g, v);
}

static leat_out bytes(const void *v, size_t n)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_of_string(v, n, &t));
    leat_out x = leat_const(g, t);
    leat_tensor_unref(t);
    return x;
}

static leat_out step(int64_t n)
{
    return leat_scalar(g, LEAT_INT64, (double)n);
}

static leat_out create(const char *logdir, int max_queue, int flush_millis)
{
    return leat_op(g, "CreateSummaryFileWriter", leat_in(writer), leat_in(text(logdir)),
                   leat_in(leat_scalar(g, LEAT_INT32, max_queue)),
                   leat_in(leat_scalar(g, LEAT_INT32, flush_millis)), leat_in(text(".end")));
}

static leat_out scalar_at(int64_t n)
{
    return leat_op(g, "WriteScalarSummary", leat_in(writer), leat_in(step(n)),
                   leat_in(text("loss")), leat_in(leat_scalar(g, LEAT_DOUBLE, 2.5)));
}

/* ---- What is in the files ---- */

typedef struct found {
    int files, events, values[LEAT_SUMMARY_TENSOR + 1], kinds[LEAT_EVENT_METADATA + 1];
    int64_t steps; /* their sum */
    char tags[400];
} found;
static found got;

static void read_file(const char *path)
{
    leat_event_reader *r = NULL;
    const leat_event_record *e;
    got.files++;
    CHECK(strstr(path, "events.out.tfevents.") && !strcmp(path + strlen(path) - 4, ".end"));
    CHECK_OK(leat_event_reader_open(path, &r));
    leat_status bad;
    while (!(bad = leat_event_next(r, &e))) {
        got.events++;
        got.steps += e->step;
        got.kinds[e->kind]++;
        for (int i = 0; i < e->n_values; i++) {
            got.values[e->values[i].kind]++;
            snprintf(got.tags + strlen(got.tags), sizeof(got.tags) - strlen(got.tags), "%s ",
                     e->values[i].tag);
        }
    }
    CHECK_ERROR(bad, OUT_OF_RANGE, "");
    leat_event_reader_free(r);
}

static void read_all(void)
{
    got = (found){0};
    each_file(read_file);
}

/* ---- Tests ---- */

static void every_kind(void)
{
    begin();
    CHECK_OK(run(create(dir, 1000, 1000000)));
    CHECK_OK(run(create("/dev/null/no", 1, 1))); /* it is open already */
    CHECK_OK(run(scalar_at(1)));
    CHECK_OK(run(leat_op(g, "WriteHistogramSummary", leat_in(writer), leat_in(step(2)),
                         leat_in(text("h")), leat_in(leat_zeros(g, LEAT_INT32, leat_shape(3))))));
    CHECK_OK(run(leat_op(
        g, "WriteImageSummary", leat_in(writer), leat_in(step(3)), leat_in(text("i")),
        leat_in(leat_zeros(g, LEAT_FLOAT, leat_shape(5, 4, 4, 3))),
        leat_in(leat_zeros(g, LEAT_UINT8, leat_shape(3))), leat_attr_int("max_images", 2))));
    CHECK_OK(run(leat_op(g, "WriteAudioSummary", leat_in(writer), leat_in(step(4)),
                         leat_in(text("a")), leat_in(leat_zeros(g, LEAT_FLOAT, leat_shape(2, 10))),
                         leat_in(leat_scalar(g, LEAT_FLOAT, 8000)))));
    CHECK_OK(run(leat_op(g, "WriteSummary", leat_in(writer), leat_in(step(5)),
                         leat_in(leat_zeros(g, LEAT_FLOAT, leat_shape(2))), leat_in(text("t")),
                         leat_in(bytes("\n\006\n\004text", 8)))));
    CHECK_OK(run(
        leat_op(g, "WriteGraphSummary", leat_in(writer), leat_in(step(6)), leat_in(bytes("", 0)))));
    /* An Event of step 7 with a file_version, and a Summary with the tag "r" and value 0. */
    CHECK_OK(
        run(leat_op(g, "ImportEvent", leat_in(writer), leat_in(bytes("\020\007\032\001x", 5)))));
    CHECK_OK(run(leat_op(g, "WriteRawProtoSummary", leat_in(writer), leat_in(step(8)),
                         leat_in(bytes("\n\010\n\001r\025\0\0\0\0", 10)))));
    read_all();
    CHECK_INT(got.events, 1); /* the rest waits in memory */
    CHECK_OK(run(leat_op(g, "FlushSummaryWriter", leat_in(writer))));
    read_all();
    CHECK_INT(got.files, 1);
    CHECK_INT(got.events, 9);
    CHECK_INT(got.steps, 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8);
    CHECK_INT(got.values[LEAT_SUMMARY_SCALAR], 2);
    CHECK_INT(got.values[LEAT_SUMMARY_HISTOGRAM], 1);
    CHECK_INT(got.values[LEAT_SUMMARY_IMAGE], 2);
    CHECK_INT(got.values[LEAT_SUMMARY_AUDIO], 2);
    CHECK_INT(got.values[LEAT_SUMMARY_TENSOR], 1);
    CHECK_INT(got.kinds[LEAT_EVENT_GRAPH], 1);
    CHECK_INT(got.kinds[LEAT_EVENT_VERSION], 2);
    CHECK_STR(got.tags, "loss h i/image/0 i/image/1 a/audio/0 a/audio/1 t r ");
    end();
}

/* Events are written when there are more than max_queue, and by the end at the latest; a writer
 * that is opened again has a new file, also within the same second. */
static void queue(void)
{
    begin();
    CHECK_OK(run(create(dir, 2, 1000000)));
    leat_out write = scalar_at(1);
    for (int i = 0; i < 4; i++)
        CHECK_OK(run(write));
    read_all();
    CHECK_INT(got.events, 1 + 3);
    CHECK_OK(run(leat_op(g, "CloseSummaryWriter", leat_in(writer))));
    read_all();
    CHECK_INT(got.events, 1 + 4);
    CHECK_ERROR(run(write), NOT_FOUND, "Resource localhost/w/");
    CHECK_ERROR(run(leat_op(g, "CloseSummaryWriter", leat_in(writer))), NOT_FOUND, "localhost/w/");
    CHECK_OK(run(create(dir, 1000, 0))); /* after 0 ms: at once */
    CHECK_OK(run(write));
    read_all();
    CHECK_INT(got.files, 2);
    CHECK_INT(got.events, 1 + 4 + 2);
    end();
}

static void refused(void)
{
    begin();
    CHECK_ERROR(run(scalar_at(1)), NOT_FOUND, "does not exist");
    CHECK_ERROR(run(create("/dev/null/no", 1, 1)), FAILED_PRECONDITION,
                "Could not initialize events writer: /dev/null");
    leat_out db[4];
    for (int i = 0; i < 4; i++)
        db[i] = text("x.sqlite");
    CHECK_ERROR(run(leat_op(g, "CreateSummaryDbWriter", leat_in(writer), leat_ins(db, 4))),
                UNIMPLEMENTED, "not written to databases (x.sqlite)");
    CHECK_OK(run(create(dir, 1, 1)));
    CHECK_ERROR(run(leat_op(g, "ImportEvent", leat_in(writer), leat_in(bytes("x", 1)))), DATA_LOSS,
                "Bad tf.Event binary proto tensor string");
    CHECK_ERROR(run(leat_op(g, "WriteRawProtoSummary", leat_in(writer), leat_in(step(0)),
                            leat_in(bytes("x", 1)))),
                DATA_LOSS, "Bad tf.compat.v1.Summary binary proto tensor string at index 0");
    CHECK_ERROR(run(leat_op(g, "WriteGraphSummary", leat_in(writer), leat_in(step(0)),
                            leat_in(bytes("x", 1)))),
                DATA_LOSS, "Bad tf.GraphDef binary proto tensor string");
    CHECK_ERROR(run(leat_op(g, "WriteScalarSummary", leat_in(writer),
                            leat_in(leat_zeros(g, LEAT_INT64, leat_shape(2))), leat_in(text("x")),
                            leat_in(leat_scalar(g, LEAT_FLOAT, 1)))),
                INVALID_ARGUMENT, "step must be a scalar, got shape [2]");
    CHECK_ERROR(run(leat_op(g, "WriteScalarSummary", leat_in(writer), leat_in(step(1)),
                            leat_in(text("x")), leat_in(leat_zeros(g, LEAT_FLOAT, leat_shape(0))))),
                INVALID_ARGUMENT, "value must have an element, got shape [0]");
    end();
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"every_kind", every_kind}, {"queue", queue}, {"refused", refused});
}
