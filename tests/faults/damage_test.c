/* damage_test.c -- files that were damaged: of each kind one is cut at every byte, has single bits
 * changed, or is replaced by a file of another kind. Reading it ends with an error that names the
 * file, or the prefix or directory that it belongs to; if the format has no checksums, reading may
 * succeed. */
#define _GNU_SOURCE
#include <leat/leat.h>
#include <zlib.h>

#include "cli/command.h"
#include "io/files.h"

/* ---- The files ---- */

static void write_records(const char *path, leat_record_form form)
{
    leat_record_writer *w;
    char bytes[200];
    CHECK_OK(leat_record_writer_open(path, form, &w));
    for (int i = 0; i < 20; i++) {
        memset(bytes, 'a' + i, sizeof(bytes));
        CHECK_OK(leat_record_write(w, bytes, (size_t)(10 * i)));
    }
    CHECK_OK(leat_record_writer_close(w));
}

static void make_plain(void)
{
    write_records(here("damage.tfrecord"), LEAT_RECORD_PLAIN);
}

static void make_gzip(void)
{
    write_records(here("damage.gz"), LEAT_RECORD_GZIP);
}

static void make_zlib(void)
{
    write_records(here("damage.z"), LEAT_RECORD_ZLIB);
}

static void make_events(void)
{
    leat_summary_writer *w;
    CHECK_OK(leat_summary_writer_open(here("damage_events"), &w));
    for (int i = 0; i < 5; i++)
        CHECK_OK(leat_summary_write_scalar(w, "loss", (float)i, i));
    char path[512];
    snprintf(path, sizeof(path), "%s", leat_summary_writer_path(w));
    CHECK_OK(leat_summary_writer_close(w));
    CHECK_INT(rename(path, here("damage.events")), 0);
}

static void make_idx(void)
{
    static const unsigned char bytes[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
    CHECK_OK(leat_file_write(here("damage.idx"), bytes, sizeof(bytes)));
    gzFile f = gzopen(here("damage.idx.gz"), "wb");
    CHECK(f && gzwrite(f, bytes, sizeof(bytes)) == sizeof(bytes) && gzclose(f) == Z_OK);
}

/* A graph y = x * w + b, its variables, its MetaGraphDef and its SavedModel. */
static void make_models(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 2));
    leat_out w = leat_variable(g, "w", leat_ones(g, LEAT_FLOAT, leat_shape(2, 3)));
    leat_out b = leat_variable(g, "b", leat_zeros(g, LEAT_FLOAT, leat_shape(3)));
    leat_out y = leat_xw_plus_b(x, w, b);
    leat_saver *saver = leat_saver_new(g);
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    CHECK_OK(leat_saver_save(saver, s, here("damage.ckpt"), -1, NULL));
    const leat_signature_tensor in = {"x", x, {0}, {0}}, out = {"y", y, {0}, {0}};
    const leat_signature sig = {"serving_default", NULL, &in, 1, &out, 1};
    char file[600];
    snprintf(file, sizeof(file), "%s/saved_model.pb", here("damage_model"));
    unlink(file);
    CHECK_OK(
        leat_saved_model_write(g, s, here("damage_model"), .signatures = &sig, .n_signatures = 1));
    leat_session_close(s);
    leat_saver_free(saver);
    leat_graph_free(g);
}

/* ---- Reading: everything that the file has ---- */

static leat_status read_records(const char *path, leat_record_form form)
{
    leat_record_reader *r;
    const void *bytes;
    size_t n;
    leat_status s;
    LEAT_TRY(leat_record_reader_open(path, form, &r));
    while (!(s = leat_record_next(r, &bytes, &n)))
        ;
    leat_record_reader_free(r);
    if (leat_status_code(s) != LEAT_OUT_OF_RANGE)
        return s;
    leat_status_free(s);
    return NULL;
}

static leat_status read_plain(const char *path)
{
    return read_records(path, LEAT_RECORD_PLAIN);
}

static leat_status read_gzip(const char *path)
{
    return read_records(path, LEAT_RECORD_GZIP);
}

static leat_status read_zlib(const char *path)
{
    return read_records(path, LEAT_RECORD_ZLIB);
}

static leat_status read_events(const char *path)
{
    leat_event_reader *r;
    const leat_event_record *e;
    leat_status s;
    LEAT_TRY(leat_event_reader_open(path, &r));
    while (!(s = leat_event_next(r, &e)))
        ;
    leat_event_reader_free(r);
    if (leat_status_code(s) != LEAT_OUT_OF_RANGE)
        return s;
    leat_status_free(s);
    return NULL;
}

static leat_status read_idx(const char *path)
{
    leat_tensor *t;
    LEAT_TRY(leat_idx_read(path, &t));
    leat_tensor_unref(t);
    return NULL;
}

static leat_status read_checkpoint(const char *path)
{
    leat_checkpoint *c;
    leat_status s = NULL;
    LEAT_TRY(leat_checkpoint_open(here("damage.ckpt"), &c));
    for (int i = 0; i < leat_checkpoint_count(c) && !s; i++) {
        leat_tensor *t = NULL;
        s = leat_checkpoint_read(c, leat_checkpoint_at(c, i)->name, &t);
        leat_tensor_unref(t);
    }
    leat_checkpoint_free(c);
    return s;
}

static leat_status read_meta(const char *path)
{
    leat_graph *g = leat_graph_new();
    leat_saver *v = NULL;
    leat_status s = leat_meta_graph_read(g, path, &v);
    leat_saver_free(v);
    leat_graph_free(g);
    return s;
}

static leat_status read_model(const char *path)
{
    leat_saved_model *m;
    LEAT_TRY(leat_saved_model_load(here("damage_model"), &m));
    leat_saved_model_close(m);
    return NULL;
}

/* ---- Kinds ---- */

static const struct kind {
    const char *name, *file;
    const char *named; /* what errors name: the file, its prefix or its directory */
    leat_status (*read)(const char *path);
    bool checked; /* the format finds each changed bit */
    bool ended;   /* the format finds each missing byte */
} kinds[] = {
    {"records", "damage.tfrecord", "damage.tfrecord", read_plain, true, false},
    {"gzip records", "damage.gz", "damage.gz", read_gzip, false, false},
    {"zlib records", "damage.z", "damage.z", read_zlib, false, false},
    {"events", "damage.events", "damage.events", read_events, true, false},
    {"idx", "damage.idx", "damage.idx", read_idx, false, true},
    {"gzip idx", "damage.idx.gz", "damage.idx.gz", read_idx, false, true},
    {"index", "damage.ckpt.index", "damage.ckpt", read_checkpoint, false, true},
    {"shard", "damage.ckpt.data-00000-of-00001", "damage.ckpt.data-00000-of-00001", read_checkpoint,
     true, true},
    {"meta graph", "damage.ckpt.meta", "damage.ckpt.meta", read_meta, false, false},
    {"saved model", "damage_model/saved_model.pb", "damage_model", read_model, false, false},
    {"model index", "damage_model/variables/variables.index", "damage_model/variables/variables",
     read_model, false, true},
    {"model shard", "damage_model/variables/variables.data-00000-of-00001",
     "damage_model/variables/variables.data-00000-of-00001", read_model, true, true},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static void make_all(void)
{
    make_plain();
    make_gzip();
    make_zlib();
    make_events();
    make_idx();
    make_models();
}

/* Reads the file, which was damaged as `what` says. */
static void check(const struct kind *k, bool must_fail, const char *what, size_t at)
{
    char path[512], named[512];
    snprintf(path, sizeof(path), "%s", here(k->file));
    snprintf(named, sizeof(named), "%s", here(k->named));
    leat_status s = k->read(path);
    const char *says = leat_status_message(s);
    if (!s && must_fail) {
        test_failures++;
        printf("%s, %s at %zu: no error\n", k->name, what, at);
    }
    if (s && !strstr(says, named)) {
        test_failures++;
        printf("%s, %s at %zu: the error does not name the file: %s\n", k->name, what, at, says);
    }
    leat_status_free(s);
}

static void damage(void (*fn)(const struct kind *k, const char *path, char *bytes, size_t n))
{
    make_all();
    for (int i = 0; i < KINDS; i++) {
        char path[512], *bytes;
        size_t n;
        snprintf(path, sizeof(path), "%s", here(kinds[i].file));
        CHECK_OK(leat_file_read(path, &bytes, &n));
        CHECK_OK(kinds[i].read(path));
        fn(&kinds[i], path, bytes, n);
        CHECK_OK(leat_file_write(path, bytes, n));
        free(bytes);
    }
}

/* Writes in place, which is faster than leat_file_write with its fsync. */
static void put(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

static void cut_one(const struct kind *k, const char *path, char *bytes, size_t n)
{
    const size_t step = n < 400 ? 1 : n / 400;
    for (size_t at = 0; at < n; at += step) {
        put(path, bytes, at);
        check(k, k->ended, "cut", at);
    }
}

static void cut(void)
{
    damage(cut_one);
}

static void flip_one(const struct kind *k, const char *path, char *bytes, size_t n)
{
    const size_t step = n < 400 ? 1 : n / 400;
    for (size_t at = 0; at < n; at += step) {
        bytes[at] ^= (char)(1 << at % 8);
        put(path, bytes, n);
        check(k, k->checked, "bit changed", at);
        bytes[at] ^= (char)(1 << at % 8);
    }
}

static void flipped(void)
{
    damage(flip_one);
}

/* Each file in the place of each other one. Kinds that share a format, or accept what others
 * reject, may succeed. */
static void swap_one(const struct kind *k, const char *path, char *bytes, size_t n)
{
    for (int j = 0; j < KINDS; j++) {
        char *other;
        size_t m;
        if (kinds[j].read == k->read)
            continue;
        CHECK_OK(leat_file_read(here(kinds[j].file), &other, &m));
        put(path, other, m);
        check(k, false, kinds[j].name, 0);
        free(other);
    }
}

static void swapped(void)
{
    damage(swap_one);
}

static void missing_one(const struct kind *k, const char *path, char *bytes, size_t n)
{
    CHECK_INT(unlink(path), 0);
    check(k, true, "missing", 0);
    CHECK_INT(mkdir(path, 0777), 0);
    check(k, true, "a directory", 0);
    CHECK_INT(rmdir(path), 0);
}

static void missing(void)
{
    damage(missing_one);
}

/* What a user sees of a file that is cut in the middle: `leat show` names it and fails. */
static void shown(void)
{
    static const char *const files[] = {"damage.pb", "damage.tfrecord", "damage.events",
                                        "damage.ckpt.index", "damage_model/saved_model.pb"};
    make_all();
    leat_graph *g = leat_graph_new();
    void *bytes;
    size_t size;
    leat_relu(leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 784)));
    CHECK_OK(leat_graph_to_binary(g, &bytes, &size));
    CHECK_OK(leat_file_write(here("damage.pb"), bytes, size));
    leat_graph_free(g);
    free(bytes);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char path[512], dir[512], *whole;
        size_t n;
        snprintf(path, sizeof(path), "%s", here(files[i]));
        snprintf(dir, sizeof(dir), "%s", strstr(path, "_model/") ? here("damage_model") : path);
        CHECK_OK(leat_file_read(path, &whole, &n));
        for (int cut = 0; cut < 2; cut++) {
            put(path, whole, cut ? n / 2 : n);
            command c = command_start("%s/leat show %s", LEAT_BINARY_DIR, dir);
            CHECK_INT(command_end(c), cut);
            CHECK(!cut || strstr(output, dir) != NULL);
        }
        put(path, whole, n);
        free(whole);
    }
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"cut", cut}, {"flipped", flipped}, {"swapped", swapped},
               {"missing", missing}, {"shown", shown});
}
