/* dataset_snapshot_test.c -- Snapshot: what is written and read, by which datasets, in which files;
 * several iterators at once; damaged and unwritable files; positions. */
#define _GNU_SOURCE
#include "dataset_functions.h"

#include <dirent.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/snapshot.h"

static char dir[64]; /* of the case that runs */

static int remove_one(const char *path, const struct stat *s, int flag, struct FTW *f)
{
    return remove(path);
}

static void remove_dir(void)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void new_dir(void)
{
    snprintf(dir, sizeof(dir), "/tmp/leat_snapshot_%d", (int)getpid());
    remove_dir();
    CHECK_INT(mkdir(dir, 0777), 0);
}

static leat_out words(leat_graph *g, const char *s)
{
    leat_tensor *t = leat_scalar_string(s, strlen(s));
    leat_out c = leat_const(g, t);
    leat_tensor_unref(t);
    return c;
}

typedef struct options {
    const char *compression;
    int64_t shard_bytes, expiry;
} options;

static leat_out snapshot_with(leat_graph *g, leat_out d, options o)
{
    return DATASET("SnapshotDataset", leat_in(d), leat_in(words(g, dir)),
                   leat_attr_string("compression", o.compression ? o.compression : ""),
                   leat_attr_int("shard_size_bytes", o.shard_bytes ? o.shard_bytes : -1),
                   leat_attr_int("pending_snapshot_expiry_seconds", o.expiry ? o.expiry : -1));
}

static leat_out snapshot(leat_graph *g, leat_out d)
{
    return snapshot_with(g, d, (options){0});
}

static void counts_calls(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_mul(in[0], number(g, *(const int64_t *)arg));
}

/* A dataset whose function has this name, and multiplies by x. */
static leat_out multiplied(leat_graph *g, const char *name, int64_t x)
{
    leat_function_define(g, name, counts_calls, &x, 1, LEAT_INT64);
    return map(g, range(g, 4), name);
}

static void check_elements(leat_graph *g, leat_out d, const char *want)
{
    elements e = elements_of(g, d);
    char text[1024] = "";
    CHECK_OK(begin(&e));
    read_some(&e, 50, text, sizeof(text));
    CHECK_STR(text, want);
    close_elements(&e);
}

/* Entries of a directory that end with `end`; the last one's path in *path. */
static int entries(const char *of, const char *end, char *path, size_t size)
{
    int n = 0;
    DIR *d = opendir(of);
    for (struct dirent *x; d && (x = readdir(d));) {
        const size_t a = strlen(x->d_name), b = strlen(end);
        if (x->d_name[0] == '.' || a < b || strcmp(x->d_name + a - b, end) != 0)
            continue;
        snprintf(path, size, "%s/%s", of, x->d_name);
        n++;
    }
    if (d)
        closedir(d);
    return n;
}

/* Checks that there is one snapshot, of one run; gives the directories' paths and the number of
 * files of elements. */
static int only_run(char *snapshot_dir, char *run_dir, char *file, size_t size)
{
    CHECK_INT(entries(dir, "", snapshot_dir, size), 1);
    CHECK_INT(entries(snapshot_dir, "", run_dir, size), 2); /* the run and the metadata */
    CHECK_INT(entries(snapshot_dir, "snapshot.metadata", file, size), 1);
    leat_snapshot_metadata m;
    CHECK_OK(leat_snapshot_metadata_read(snapshot_dir, &m));
    CHECK(m.finalized);
    snprintf(run_dir, size, "%s/%s", snapshot_dir, m.run_id);
    return entries(run_dir, ".snapshot", file, size);
}

/* A snapshot that was written is read: the input, whose elements would fail now, is not used. */
static void written_and_read(void)
{
    static const char *const compressions[] = {"", "GZIP"};
    for (int i = 0; i < 2; i++) {
        char a[300], b[300], c[300];
        const options o = {.compression = compressions[i]};
        new_dir();
        leat_graph *g = graph();
        check_elements(g, snapshot_with(g, multiplied(g, "Times", 3), o), "0 3 6 9 END");
        CHECK_INT(only_run(a, b, c, sizeof(a)), 1);
        CHECK_STR(c + strlen(b), "/00000000.snapshot");
        /* What is read is what the file has. */
        int64_t ten = 10;
        leat_tensor *t;
        leat_snapshot_writer *w;
        CHECK_OK(leat_tensor_copy_of(LEAT_INT64, leat_shape(), &ten, &t));
        CHECK_OK(leat_snapshot_writer_open(c, i == 1, &w));
        CHECK_OK(leat_snapshot_write(w, &t, 1));
        CHECK_OK(leat_snapshot_writer_close(w));
        leat_tensor_unref(t);
        g = graph();
        check_elements(g, snapshot_with(g, multiplied(g, "OtherName", 3), o), "10 END");
        /* Another input has another snapshot. */
        g = graph();
        check_elements(g, snapshot_with(g, multiplied(g, "Times", 4), o), "0 4 8 12 END");
        CHECK_INT(entries(dir, "", a, sizeof(a)), 2);
        remove_dir();
    }
}

static void empty_input(void)
{
    char a[300], b[300], c[300];
    new_dir();
    for (int i = 0; i < 2; i++) {
        leat_graph *g = graph();
        check_elements(g, snapshot(g, range(g, 0)), "END");
        CHECK_INT(only_run(a, b, c, sizeof(a)), 1);
    }
    remove_dir();
}

/* The snapshot is complete with the last element, though nobody has asked for the end. */
static void complete_with_the_last(void)
{
    char a[300], b[300], c[300], text[64] = "";
    new_dir();
    leat_graph *g = graph();
    elements e = elements_of(g, snapshot(g, range(g, 3)));
    CHECK_OK(begin(&e));
    read_some(&e, 3, text, sizeof(text));
    CHECK_STR(text, "0 1 2");
    CHECK_INT(only_run(a, b, c, sizeof(a)), 1);
    close_elements(&e);
    remove_dir();
}

static void large(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    const int32_t n = 128 * 1024;
    leat_tensor *t;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT32, leat_shape(1), &n, &t));
    out[0] = leat_fill(leat_const(g, t), in[0]);
    leat_tensor_unref(t);
}

static void shards(void)
{
    char a[300], b[300], c[300];
    new_dir();
    for (int i = 0; i < 2; i++) { /* written, and read: 5 elements of a MB */
        leat_graph *g = graph();
        leat_function_define(g, "Large", large, NULL, 1, LEAT_INT64);
        leat_out d =
            snapshot_with(g, map(g, range(g, 5), "Large"), (options){.shard_bytes = 2 << 20});
        elements e = elements_of(g, counted(g, "SkipDataset", d, 3));
        leat_tensor *t = NULL;
        CHECK_OK(begin(&e));
        CHECK_OK(get(&e, &t));
        CHECK_INT(((const int64_t *)leat_tensor_data(t))[7], 3);
        leat_tensor_unref(t);
        CHECK_OK(get(&e, &t));
        leat_tensor_unref(t);
        CHECK_ERROR(get(&e, &t), OUT_OF_RANGE, "End of sequence");
        close_elements(&e);
        CHECK_INT(only_run(a, b, c, sizeof(a)), 2);
    }
    remove_dir();
}

/* Of two iterators at once one writes; the other one hands its input through. */
static void two_at_once(void)
{
    char a[300], b[300], c[300], text[64] = "", other[64] = "";
    new_dir();
    leat_graph *g = graph(), *h = graph();
    elements e = elements_of(g, snapshot(g, range(g, 3)));
    elements f = elements_of(h, snapshot(h, range(h, 3)));
    CHECK_OK(begin(&e));
    CHECK_OK(begin(&f));
    for (int i = 0; i < 4; i++) {
        read_some(&e, 1, text, sizeof(text));
        read_some(&f, 1, other, sizeof(other));
    }
    CHECK_STR(text, "0 1 2 END");
    CHECK_STR(other, "0 1 2 END");
    CHECK_INT(only_run(a, b, c, sizeof(a)), 1);
    close_elements(&e);
    close_elements(&f);
    remove_dir();
}

/* A run that was begun long ago and never ended is replaced by another one. */
static void expired(void)
{
    char a[300], b[300], text[64] = "";
    new_dir();
    leat_graph *g = graph();
    elements e = elements_of(g, snapshot(g, range(g, 9)));
    CHECK_OK(begin(&e));
    read_some(&e, 3, text, sizeof(text));
    CHECK_INT(entries(dir, "", a, sizeof(a)), 1);
    leat_snapshot_metadata m;
    CHECK_OK(leat_snapshot_metadata_read(a, &m));
    CHECK(!m.finalized);
    m.created_us -= 10 * INT64_C(1000000);
    CHECK_OK(leat_snapshot_metadata_write(a, &m));
    g = graph();
    check_elements(g, snapshot_with(g, range(g, 9), (options){.expiry = 5}),
                   "0 1 2 3 4 5 6 7 8 END");
    CHECK_INT(entries(a, "", b, sizeof(b)), 3);
    CHECK_OK(leat_snapshot_metadata_read(a, &m));
    CHECK(m.finalized);
    /* The first run ends, and leaves the snapshot as it is. */
    read_some(&e, 50, text, sizeof(text));
    CHECK_STR(text, "0 1 2 3 4 5 6 7 8 END");
    leat_snapshot_metadata now;
    CHECK_OK(leat_snapshot_metadata_read(a, &now));
    CHECK_STR(now.run_id, m.run_id);
    close_elements(&e);
    remove_dir();
}

static void check_error(leat_code code, const char *message)
{
    leat_graph *g = graph();
    elements e = elements_of(g, snapshot(g, range(g, 3)));
    leat_tensor *t = NULL;
    leat_status s = begin(&e);
    for (int i = 0; !s && i < 4; i++) {
        s = get(&e, &t);
        leat_tensor_unref(t);
        t = NULL;
    }
    CHECK_INT(leat_status_code(s), code);
    if (!strstr(leat_status_message(s), message))
        CHECK_STR(leat_status_message(s), message);
    leat_status_free(s);
    close_elements(&e);
}

static void write_file(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

static void damaged(void)
{
    char a[300], b[300], c[300];
    new_dir();
    leat_graph *g = graph();
    check_elements(g, snapshot(g, range(g, 3)), "0 1 2 END");
    CHECK_INT(only_run(a, b, c, sizeof(a)), 1);
    struct stat st;
    CHECK_INT(stat(c, &st), 0);
    CHECK_INT(st.st_size % 3, 0);
    const long record = (long)st.st_size / 3;
    char want[400];
    CHECK_INT(truncate(c, st.st_size - 1), 0);
    snprintf(want, sizeof(want), "%s: the record at byte %ld is cut off", c, 2 * record);
    check_error(LEAT_DATA_LOSS, want);
    CHECK_INT(truncate(c, record + 5), 0);
    snprintf(want, sizeof(want), "%s: the record at byte %ld is cut off", c, record);
    check_error(LEAT_DATA_LOSS, want);
    write_file(c, "\3\0\0\0\0\0\0\0\x0a\xff\xff", 11);
    snprintf(want, sizeof(want), "%s: the record at byte 0 is damaged: ", c);
    check_error(LEAT_DATA_LOSS, want);
    write_file(c, "\xff\xff\xff\xff\xff\xff\xff\x7f\x0a", 9);
    check_error(LEAT_DATA_LOSS, "the record at byte 0 is cut off");
    write_file(c, "\0\0\0\0\0\0\0\0", 8);
    check_error(LEAT_DATA_LOSS, "it has 0 tensors, not 1");
    CHECK_INT(unlink(c), 0);
    check_error(LEAT_INVALID_ARGUMENT, "Could not find any files in dir: /tmp/leat_snapshot_");
    char metadata[400];
    snprintf(metadata, sizeof(metadata), "%s/snapshot.metadata", a);
    write_file(metadata, "abc", 3);
    check_error(LEAT_DATA_LOSS, "snapshot.metadata: the record at byte 0 is cut off");
    remove_dir();
}

/* Of two tensors the second one is damaged: none is given. */
static void second_is_damaged(void)
{
    static const char bytes[] = "\15\0\0\0\0\0\0\0\x0a\x07\x08\x09\x12\0\x52\1\5\x0a\2\x08\x63";
    leat_snapshot_reader *r;
    leat_tensor *t[2] = {NULL, NULL};
    CHECK_OK(leat_snapshot_reader_over(bytes, sizeof(bytes) - 1, false, &r));
    CHECK_ERROR(leat_snapshot_next(r, t, 2), DATA_LOSS, "the record at byte 0 is damaged: ");
    CHECK(!t[0] && !t[1]);
    leat_snapshot_reader_free(r);
}

/* Elements of another type than the dataset's. */
static void of_another_type(void)
{
    char a[300], b[300], c[300];
    new_dir();
    leat_graph *g = graph();
    check_elements(g, snapshot(g, range(g, 3)), "0 1 2 END");
    CHECK_INT(only_run(a, b, c, sizeof(a)), 1);
    leat_tensor *t = leat_scalar_float(1);
    leat_snapshot_writer *w;
    CHECK_OK(leat_snapshot_writer_open(c, false, &w));
    CHECK_OK(leat_snapshot_write(w, &t, 1));
    CHECK_OK(leat_snapshot_writer_close(w));
    leat_tensor_unref(t);
    check_error(LEAT_DATA_LOSS, "component 0 of an element is float, not int64");
    remove_dir();
}

/* A directory that cannot be made is an error, each time. */
static void unwritable(void)
{
    new_dir();
    char file[80];
    snprintf(file, sizeof(file), "%s/file", dir);
    write_file(file, "x", 1);
    snprintf(dir + strlen(dir), sizeof(dir) - strlen(dir), "/file");
    check_error(LEAT_FAILED_PRECONDITION, "Not a directory");
    new_dir();
    remove_dir();
}

static void bad_attributes(void)
{
    const struct {
        options o;
        const char *message;
    } bad[] = {
        {{.compression = "ZLIB"}, "compression must be either '' or 'GZIP'."},
        {{.shard_bytes = 1000}, "shard_size_bytes must be at least 1 MiB."},
        {{.expiry = -2}, "pending_snapshot_expiry_seconds must be at least 1 second."},
    };
    new_dir();
    for (int i = 0; i < 3; i++) {
        leat_graph *g = graph();
        elements e = elements_of(g, snapshot_with(g, range(g, 3), bad[i].o));
        CHECK_ERROR(begin(&e), INVALID_ARGUMENT, bad[i].message);
        close_elements(&e);
    }
    remove_dir();
}

/* Saved after n elements, by an iterator that writes, or that reads, and restored elsewhere. */
static void positions(void)
{
    for (int reads = 0; reads < 2; reads++) {
        for (int n = 0; n < 5; n++) {
            char before[64] = "", rest[64] = "", again[64] = "";
            leat_tensor *position = NULL;
            new_dir();
            leat_graph *g = graph(), *h = graph();
            if (reads)
                check_elements(h, snapshot(h, range(h, 4)), "0 1 2 3 END");
            h = reads ? graph() : h;
            elements e = elements_of(g, snapshot(g, range(g, 4)));
            elements f = elements_of(h, snapshot(h, range(h, 4)));
            CHECK_OK(begin(&e));
            read_some(&e, n, before, sizeof(before));
            CHECK_OK(leat_session_run(e.s, LEAT_NO_FEED, LEAT_FETCH({e.position, &position}),
                                      LEAT_NO_TARGET));
            read_some(&e, 9, rest, sizeof(rest));
            CHECK_OK(begin(&f));
            CHECK_OK(leat_session_run(f.s, LEAT_FEED({f.saved, position}), LEAT_NO_FETCH,
                                      LEAT_TARGET(f.restore)));
            read_some(&f, 9, again, sizeof(again));
            CHECK_STR(again, rest);
            leat_tensor_unref(position);
            close_elements(&e);
            close_elements(&f);
            remove_dir();
        }
    }
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"written_and_read", written_and_read}, {"empty_input", empty_input},
               {"complete_with_the_last", complete_with_the_last}, {"shards", shards},
               {"two_at_once", two_at_once}, {"expired", expired}, {"damaged", damaged},
               {"second_is_damaged", second_is_damaged}, {"of_another_type", of_another_type},
               {"unwritable", unwritable}, {"bad_attributes", bad_attributes},
               {"positions", positions});
}
