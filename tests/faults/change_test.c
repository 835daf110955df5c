/* change_test.c -- files that change while they are read: they are cut, grow, vanish or are
 * replaced; and two writers of one checkpoint. */
#include <leat/leat.h>
#include <pthread.h>

#include "io/files.h"
#include "io/stream.h"

enum { RECORDS = 2000, SIZE = 1000 }; /* more than a reader keeps in memory */

static void write_some(const char *path, int from, int to)
{
    leat_record_writer *w;
    char bytes[SIZE];
    CHECK_OK(leat_record_writer_open(path, LEAT_RECORD_PLAIN, &w));
    for (int i = from; i < to; i++) {
        memset(bytes, i & 127, sizeof(bytes));
        CHECK_OK(leat_record_write(w, bytes, sizeof(bytes)));
    }
    CHECK_OK(leat_record_writer_close(w));
}

static void append(const char *path, const char *from, size_t skip)
{
    char *bytes;
    size_t n;
    CHECK_OK(leat_file_read(from, &bytes, &n));
    FILE *f = fopen(path, "ab");
    CHECK(f && fwrite(bytes + skip, 1, n - skip, f) == n - skip && fclose(f) == 0);
    free(bytes);
}

/* Reads records until there is an error; gives their number. */
static int read_on(leat_record_reader *r, int from, int most, leat_status *end)
{
    const void *bytes;
    size_t n;
    int i = from;
    *end = NULL;
    for (; i < most && !(*end = leat_record_next(r, &bytes, &n)); i++)
        CHECK(n == SIZE && ((const char *)bytes)[n - 1] == (i & 127));
    return i;
}

/* The records before the cut are read; then the error names file and offset. When the rest is there
 * again, reading goes on. */
static void cut_records(void)
{
    char path[512];
    leat_record_reader *r;
    leat_status s;
    const long cut = 1500 * (SIZE + 16) + 100;
    snprintf(path, sizeof(path), "%s", here("cut_while_read"));
    write_some(path, 0, RECORDS);
    write_some(here("whole"), 0, RECORDS);
    CHECK_OK(leat_record_reader_open(path, LEAT_RECORD_PLAIN, &r));
    CHECK_INT(read_on(r, 0, 10, &s), 10);
    CHECK_INT(truncate(path, cut), 0);
    const int got = read_on(r, 10, RECORDS, &s);
    CHECK(got > 10 && got <= 1500);
    const char *says = leat_status_message(s);
    CHECK(leat_status_code(s) == LEAT_DATA_LOSS && strstr(says, path) && strstr(says, "byte "));
    leat_status_free(s);
    CHECK_INT(read_on(r, got, RECORDS, &s), 1500);
    char words[100];
    snprintf(words, sizeof(words), "truncated record at %d", 1500 * (SIZE + 16) + 12);
    CHECK_ERROR(s, DATA_LOSS, words);
    append(path, here("whole"), (size_t)cut);
    CHECK_INT(read_on(r, 1500, RECORDS, &s), RECORDS);
    leat_record_reader_free(r);
}

/* What is added after the end was read is read by the next call. */
static void grown_records(void)
{
    char path[512];
    leat_record_reader *r;
    leat_status s;
    snprintf(path, sizeof(path), "%s", here("grows"));
    write_some(path, 0, 10);
    write_some(here("more"), 10, 20);
    CHECK_OK(leat_record_reader_open(path, LEAT_RECORD_PLAIN, &r));
    CHECK_INT(read_on(r, 0, 100, &s), 10);
    CHECK_ERROR(s, OUT_OF_RANGE, "eof");
    append(path, here("more"), 0);
    CHECK_INT(read_on(r, 10, 100, &s), 20);
    CHECK_ERROR(s, OUT_OF_RANGE, "eof");
    leat_record_reader_free(r);
}

/* A file that was opened is read to its end, though its name is gone. */
static void vanished_records(void)
{
    leat_record_reader *r;
    leat_status s;
    write_some(here("vanishes"), 0, RECORDS);
    CHECK_OK(leat_record_reader_open(here("vanishes"), LEAT_RECORD_PLAIN, &r));
    CHECK_INT(read_on(r, 0, 10, &s), 10);
    CHECK_INT(unlink(here("vanishes")), 0);
    CHECK_INT(read_on(r, 10, RECORDS, &s), RECORDS);
    leat_record_reader_free(r);
    CHECK_ERROR(leat_record_reader_open(here("vanishes"), LEAT_RECORD_PLAIN, &r), NOT_FOUND,
                "/vanishes; No such file or directory");
}

static void lines(void)
{
    leat_stream *x;
    leat_strbuf line = {0};
    bool end = false;
    CHECK_OK(leat_file_write(here("lines"), "one\ntwo\n", 8));
    CHECK_OK(leat_stream_open(here("lines"), LEAT_RECORD_PLAIN, &x));
    for (int i = 0; i < 3; i++) {
        leat_strbuf_clear(&line);
        CHECK_OK(leat_stream_line(x, &line, &end));
        CHECK_INT(end, i == 2);
    }
    FILE *f = fopen(here("lines"), "a");
    CHECK(f && fputs("three\n", f) >= 0 && fclose(f) == 0);
    CHECK_OK(leat_stream_line(x, &line, &end));
    CHECK_STR(leat_strbuf_text(&line), "three");
    leat_stream_close(x);
    leat_strbuf_release(&line);
}

/* A dataset over two files, of which one vanishes: the error names it, and the next pull goes on
 * with the file after it. */
static void vanished_file_of_dataset(void)
{
    char a[512], b[512];
    const char *const paths[] = {a, b};
    leat_dataset *d;
    leat_data_iterator *it;
    leat_tensor *t = NULL;
    snprintf(a, sizeof(a), "%s", here("first"));
    snprintf(b, sizeof(b), "%s", here("second"));
    write_some(a, 0, 3);
    write_some(b, 3, 5);
    CHECK_OK(leat_dataset_from_records(paths, 2, "", &d));
    CHECK_OK(leat_data_iterator_open(d, &it));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(leat_data_iterator_next(it, &t, 1));
        leat_tensor_unref(t);
    }
    CHECK_INT(unlink(b), 0);
    CHECK_ERROR(leat_data_iterator_next(it, &t, 1), NOT_FOUND, "/second; No such file");
    CHECK_ERROR(leat_data_iterator_next(it, &t, 1), OUT_OF_RANGE, "End of sequence");
    leat_data_iterator_close(it);
    leat_dataset_free(d);
}

/* ---- Checkpoints ---- */

typedef struct model {
    leat_graph *g;
    leat_session *s;
    leat_saver *saver;
    leat_out v[2];
} model;

static model begin(double value)
{
    model m = {.g = leat_graph_new()};
    leat_out init = leat_add(leat_zeros(m.g, LEAT_FLOAT, leat_shape(1000)),
                             leat_scalar(m.g, LEAT_FLOAT, value));
    m.v[0] = leat_variable(m.g, "a", init);
    m.v[1] = leat_variable(m.g, "b", init);
    m.saver = leat_saver_new(m.g, .max_to_keep = 0);
    CHECK_OK(leat_graph_status(m.g));
    CHECK_OK(leat_session_open(m.g, &m.s));
    CHECK_OK(leat_session_run(m.s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(m.g))));
    return m;
}

static void end(model *m)
{
    leat_session_close(m->s);
    leat_saver_free(m->saver);
    leat_graph_free(m->g);
}

/* The data of a checkpoint that was opened are cut, or its files are replaced by those of another
 * one: an error that names the file, or the values of the one or the other. */
static void checkpoint(void)
{
    model m = begin(1);
    leat_checkpoint *c;
    leat_tensor *t = NULL;
    const char data[] = "changes.data-00000-of-00001";
    CHECK_OK(leat_saver_save(m.saver, m.s, here("changes"), -1, NULL));
    CHECK_OK(leat_checkpoint_open(here("changes"), &c));
    CHECK_INT(truncate(here(data), 100), 0);
    CHECK_ERROR(leat_checkpoint_read(c, "b", &t), DATA_LOSS, data);
    CHECK_INT(unlink(here(data)), 0);
    leat_checkpoint_free(c);
    CHECK_OK(leat_checkpoint_open(here("changes"), &c));
    CHECK_ERROR(leat_checkpoint_read(c, "b", &t), NOT_FOUND, data);
    leat_checkpoint_free(c);
    end(&m);
}

typedef struct saving {
    model m;
    const char *path;
    int times;
    leat_status status;
} saving;

static void *save_often(void *arg)
{
    saving *x = arg;
    for (int i = 0; i < x->times && !x->status; i++)
        x->status = leat_saver_save(x->m.saver, x->m.s, x->path, -1, NULL, .no_meta_graph = true);
    return NULL;
}

/* Two programs save to one name at the same time: the checkpoint that is left is one of theirs as a
 * whole, or an error says that it is not. */
static void two_writers(void)
{
    for (int round = 0; round < 5; round++) {
        pthread_t thread[2];
        mkdir(here("shared"), 0777);
        const char *path = here("shared/model");
        saving x[2] = {{begin(1), path, 10, NULL}, {begin(2), path, 10, NULL}};
        for (int i = 0; i < 2; i++)
            CHECK_INT(pthread_create(&thread[i], NULL, save_often, &x[i]), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(thread[i], NULL);
        for (int i = 0; i < 2; i++) {
            if (x[i].status && !strstr(leat_status_message(x[i].status), "shared/"))
                CHECK_OK(leat_status_copy(x[i].status));
            leat_status_free(x[i].status);
        }
        leat_tensor *a = NULL, *b = NULL;
        leat_status s = leat_saver_restore(x[0].m.saver, x[0].m.s, here("shared/model"));
        if (!s) {
            CHECK_OK(leat_session_run(x[0].m.s, LEAT_NO_FEED,
                                      LEAT_FETCH({x[0].m.v[0], &a}, {x[0].m.v[1], &b}),
                                      LEAT_NO_TARGET));
            CHECK(leat_tensor_at(a, 0) == leat_tensor_at(b, 999));
            leat_tensor_unref(a);
            leat_tensor_unref(b);
        } else {
            CHECK(strstr(leat_status_message(s), "shared/model") != NULL);
            leat_status_free(s);
        }
        /* The next save of a single writer gives a whole checkpoint in any case. */
        CHECK_OK(leat_saver_save(x[1].m.saver, x[1].m.s, here("shared/model"), -1, NULL));
        CHECK_OK(leat_saver_restore(x[0].m.saver, x[0].m.s, here("shared/model")));
        end(&x[0].m);
        end(&x[1].m);
    }
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"cut_records", cut_records}, {"grown_records", grown_records},
               {"vanished_records", vanished_records}, {"lines", lines},
               {"vanished_file_of_dataset", vanished_file_of_dataset}, {"checkpoint", checkpoint},
               {"two_writers", two_writers});
}
