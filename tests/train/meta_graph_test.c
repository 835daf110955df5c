/* MetaGraphDefs, TensorFlow's and our own, read into graphs: collections, queue runners, savers. */
#include <leat/leat.h>

#include <unistd.h>

#include "test.h"

static const char theirs[] = LEAT_SOURCE_DIR "/tests/train/data/runners.meta";
static char dir[] = "/tmp/leat-meta-XXXXXX";

static const char *here(const char *name)
{
    static char path[100];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static int collected(const leat_graph *g, const char *name)
{
    int n;
    free(leat_collection(g, name, NULL, &n));
    return n;
}

static leat_out only(const leat_graph *g, const char *name)
{
    int n;
    leat_out *v = leat_collection(g, name, NULL, &n), x = n == 1 ? v[0] : (leat_out){0};
    CHECK_INT(n, 1);
    free(v);
    return x;
}

static leat_status run(leat_session *s, leat_out target)
{
    return leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(target));
}

/* Two threads count to 10; what they put is taken, to the end. */
static void use(leat_graph *g)
{
    leat_session *s;
    leat_coordinator *c = leat_coordinator_new();
    leat_out take = only(g, "taken");
    CHECK_INT(collected(g, "variables"), 2);
    CHECK_INT(collected(g, "trainable_variables"), 1);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(run(s, only(g, "init_op")));
    CHECK_OK(leat_start_queue_runners(g, s, c));
    double sum = 0;
    leat_status status = NULL;
    while (!status) {
        leat_tensor *t = NULL;
        status = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({take, &t}), LEAT_NO_TARGET);
        sum += t ? leat_tensor_at(t, 0) : 0;
        leat_tensor_unref(t);
    }
    CHECK_ERROR(status, OUT_OF_RANGE, "is closed and has insufficient elements");
    CHECK_NEAR(sum, 45, 0);
    leat_coordinator_request_stop(c, NULL);
    CHECK_OK(leat_coordinator_join(c, .grace_ms = 5000));
    leat_coordinator_free(c);
    leat_session_close(s);
}

static void save(leat_graph *g, leat_saver *saver, const char *name)
{
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(run(s, only(g, "init_op")));
    CHECK_OK(leat_saver_save(saver, s, here(name), -1, NULL));
    leat_session_close(s);
}

/* What TensorFlow wrote, and what we write of it. */
static void round_trip(void)
{
    leat_graph *g = leat_graph_new(), *again = leat_graph_new();
    leat_saver *saver = NULL, *second = NULL;
    leat_session *s;
    CHECK_OK(leat_meta_graph_read(g, theirs, &saver));
    CHECK(saver != NULL);
    use(g);
    save(g, saver, "m");
    CHECK_OK(leat_meta_graph_read(again, here("m.meta"), &second));
    CHECK(second != NULL);
    use(again);
    CHECK_OK(leat_session_open(again, &s));
    CHECK_OK(leat_saver_restore(second, s, here("m")));
    leat_session_close(s);
    leat_saver_free(saver);
    leat_saver_free(second);
    leat_graph_free(g);
    leat_graph_free(again);
}

static void no_saver(void)
{
    leat_graph *g = leat_graph_new(), *again = leat_graph_new();
    leat_saver *saver = NULL;
    leat_variable(g, "w", leat_scalar(g, LEAT_FLOAT, 1));
    CHECK_OK(leat_meta_graph_write(g, NULL, here("plain.meta")));
    CHECK_OK(leat_meta_graph_read(again, here("plain.meta"), &saver));
    CHECK(saver != NULL);
    leat_saver_free(saver);
    leat_graph_free(g);
    leat_graph_free(again);
}

static void bad_files(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        leat_code code;
        const char *words;
    } rows[] = {
        {"\xff\xff", 2, LEAT_DATA_LOSS, "bad.meta"},
        {"", 0, LEAT_INVALID_ARGUMENT, "there is no graph in it"},
        /* a collection "c" of a name that is not there */
        {"\x12\0\x22\x0a\x0a\1c\x12\5\x0a\3\x0a\1x", 14, LEAT_NOT_FOUND,
         "Collection \"c\": The name 'x' refers to"},
        /* a queue runner of nothing */
        {"\x12\0\x22\x17\x0a\x0dqueue_runners\x12\6\x12\4\x0a\2\x0a\0", 27, LEAT_INVALID_ARGUMENT,
         "Must provide queue"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        leat_graph *g = leat_graph_new();
        leat_saver *saver = NULL;
        FILE *f = fopen(here("bad.meta"), "wb");
        CHECK(f && fwrite(rows[i].bytes, 1, rows[i].n, f) == rows[i].n);
        fclose(f);
        leat_status s = leat_meta_graph_read(g, here("bad.meta"), &saver);
        CHECK_INT(leat_status_code(s), rows[i].code);
        CHECK(strstr(leat_status_message(s), rows[i].words) != NULL);
        leat_status_free(s);
        leat_graph_free(g);
    }
    leat_graph *g = leat_graph_new();
    CHECK_ERROR(leat_meta_graph_read(g, "/none.meta", NULL), NOT_FOUND, "/none.meta");
    leat_graph_free(g);
}

/* Of a shared queue that has only the graph's seed, the second one comes from its name. */
static void shared_seeds(void)
{
    leat_graph *g = leat_graph_new();
    leat_graph_set_seed(g, 42);
    leat_components c = LEAT_COMPONENTS({LEAT_INT32, leat_shape()});
    leat_out a = leat_random_shuffle_queue(g, 10, 2, c, .shared_name = "shared");
    leat_out b = leat_random_shuffle_queue(g, 10, 2, c, .shared_name = "q/\xc3\xbc");
    leat_out own = leat_random_shuffle_queue(g, 10, 2, c, .shared_name = "shared", .seed = 7);
    CHECK_INT(leat_node_int(a.node, "seed"), 42);
    CHECK_INT(leat_node_int(a.node, "seed2"), 1079740356);
    CHECK_INT(leat_node_int(b.node, "seed2"), 985595544);
    CHECK_INT(leat_node_int(own.node, "seed2"), 7);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    if (!mkdtemp(dir))
        return 1;
    int rc = RUN(argc, argv, {"round_trip", round_trip}, {"no_saver", no_saver},
                 {"bad_files", bad_files}, {"shared_seeds", shared_seeds});
    char command[64];
    snprintf(command, sizeof(command), "rm -r %s", dir);
    return system(command) ? 1 : rc;
}
