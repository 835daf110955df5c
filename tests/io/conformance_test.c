/* conformance_test.c -- files that other people made with TensorFlow: every checkpoint, event,
 * record and meta graph under ../shared/conformance/files is read whole. */
#include <leat/leat.h>

#include "io/files.h"
#include "proto/meta_graph.pb-c.h"
#include "proto/wire.h"

static char root[600];

static bool found(void)
{
    static const char *const places[] = {"../shared", "../../shared"};
    for (int i = 0; i < 2; i++) {
        snprintf(root, sizeof(root), "%s/%s/conformance/files", LEAT_SOURCE_DIR, places[i]);
        if (access(root, R_OK) == 0)
            return true;
    }
    return false;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

static int n_checkpoints, n_tensors, n_records, n_events, n_meta;

static void read_checkpoint(const char *path)
{
    char prefix[1200];
    snprintf(prefix, sizeof(prefix), "%.*s", (int)strlen(path) - 6, path);
    leat_checkpoint *c;
    leat_status s = leat_checkpoint_open(prefix, &c);
    CHECK_OK(leat_status_copy(s));
    n_checkpoints++;
    for (int i = 0; !s && i < leat_checkpoint_count(c); i++) {
        leat_tensor *t = NULL;
        CHECK_OK(leat_checkpoint_read(c, leat_checkpoint_at(c, i)->name, &t));
        leat_tensor_unref(t);
        n_tensors++;
    }
    if (!s)
        leat_checkpoint_free(c);
    leat_status_free(s);
}

static void read_records(const char *path)
{
    leat_record_reader *r;
    const void *bytes;
    size_t n;
    leat_status s = leat_record_reader_open(path, LEAT_RECORD_AUTO, &r);
    CHECK_OK(leat_status_copy(s));
    if (!s) {
        while (!(s = leat_record_next(r, &bytes, &n)))
            n_records++;
        CHECK_INT(leat_status_code(s), LEAT_OUT_OF_RANGE);
        leat_record_reader_free(r);
    }
    leat_status_free(s);
}

static void read_events(const char *path)
{
    leat_event_reader *r;
    const leat_event_record *e;
    leat_status s = leat_event_reader_open(path, &r);
    CHECK_OK(leat_status_copy(s));
    if (!s) {
        while (!(s = leat_event_next(r, &e)))
            n_events++;
        CHECK_INT(leat_status_code(s), LEAT_OUT_OF_RANGE);
        leat_event_reader_free(r);
    }
    leat_status_free(s);
}

static void read_meta(const char *path)
{
    char *bytes = NULL;
    size_t n = 0;
    Leat__MetaGraphDef *m = NULL;
    CHECK_OK(leat_file_read(path, &bytes, &n));
    CHECK_OK(LEAT_UNPACK(meta_graph_def, bytes, n, &m));
    CHECK(m && m->graph_def && m->graph_def->n_node > 0 && m->n_collection_def > 0);
    n_meta++;
    leat_proto_free(m);
    free(bytes);
}

static void walk(const char *dir)
{
    char **names = NULL;
    size_t n = 0;
    leat_status s = leat_dir_list(dir, &names, &n);
    leat_status_free(s);
    for (size_t i = 0; i < n; i++) {
        char path[1100];
        struct stat st;
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            walk(path);
        else if (ends_with(path, ".index"))
            read_checkpoint(path);
        else if (ends_with(path, ".meta"))
            read_meta(path);
        else if (strstr(names[i], "tfevents"))
            read_events(path);
        else if (strstr(names[i], "tfrecord"))
            read_records(path);
        free(names[i]);
    }
    free(names);
}

static void others(void)
{
    if (!found())
        SKIP("../shared/conformance/files is not there");
    walk(root);
    printf("%d checkpoints with %d tensors, %d events, %d records, %d meta graphs\n", n_checkpoints,
           n_tensors, n_events, n_records, n_meta);
    CHECK(n_checkpoints >= 5 && n_tensors >= 50);
    CHECK(n_events >= 1003);
    CHECK(n_records >= 946 + 165 + 5 + 3);
    CHECK(n_meta >= 2);
}

/* The index of this one is compressed. */
static void snappy(void)
{
    if (!found())
        SKIP("../shared/conformance/files is not there");
    char prefix[700];
    snprintf(prefix, sizeof(prefix), "%s/mnist_ckpt_snappy/model.ckpt-46900", root);
    leat_checkpoint *c;
    leat_tensor *t = NULL;
    CHECK_OK(leat_checkpoint_open(prefix, &c));
    CHECK_OK(leat_checkpoint_read(c, "global_step", &t));
    CHECK_NEAR(leat_tensor_at(t, 0), 46900, 0);
    leat_tensor_unref(t);
    leat_checkpoint_free(c);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"others", others}, {"snappy", snappy});
}
