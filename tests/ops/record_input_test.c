/* record_input_test.c -- RecordInput: TensorFlow 1.15's orders where they do not depend on its
 * threads, epochs, files of all forms, damaged and missing ones. */
#include <leat/io.h>
#include <leat/leat.h>
#include <pthread.h>
#include <unistd.h>

#include "test.h"

static void make_folder(char *folder, size_t size)
{
    snprintf(folder, size, "%s/record_input.XXXXXX", LEAT_BINARY_DIR);
    CHECK(mkdtemp(folder));
}

static void remove_folder(const char *folder)
{
    char path[600];
    for (int i = 0; i < 7; i++) {
        snprintf(path, sizeof(path), "%s/f.%d", folder, i);
        unlink(path);
    }
    CHECK_INT(rmdir(folder), 0);
}

/* File i of the folder has these records, "i.0", "i.1" and so on. */
static void write_file(const char *folder, int i, int n, leat_record_form form)
{
    char path[600], text[32];
    leat_record_writer *w = NULL;
    snprintf(path, sizeof(path), "%s/f.%d", folder, i);
    CHECK_OK(leat_record_writer_open(path, form, &w));
    for (int j = 0; w && j < n; j++) {
        const int size = snprintf(text, sizeof(text), "%d.%d", i, j);
        CHECK_OK(leat_record_write(w, text, (size_t)size));
    }
    CHECK_OK(leat_record_writer_close(w));
}

/* Files of 1, 3, 5, 0, 9, 11 and 13 records. */
static void write_seven(const char *folder)
{
    for (int i = 0; i < 7; i++)
        write_file(folder, i, i == 3 ? 0 : 2 * i + 1, LEAT_RECORD_PLAIN);
}

typedef struct options {
    int files; /* named one by one; 0: by a pattern */
    int64_t seed, size, parallelism, batch;
    double shift;
    const char *compression;
} options;

typedef struct reading {
    leat_graph *g;
    leat_session *s;
    leat_out records;
} reading;

static reading reading_of(const char *folder, options o)
{
    char pattern[6000] = "";
    reading r = {.g = leat_graph_new()};
    for (int i = 0; i < o.files; i++) {
        const size_t used = strlen(pattern);
        snprintf(pattern + used, sizeof(pattern) - used, "%s%s/f.%d", i ? "," : "", folder, i);
    }
    if (!o.files)
        snprintf(pattern, sizeof(pattern), "%s/f.*", folder);
    r.records = leat_op(
        r.g, "RecordInput", leat_attr_string("file_pattern", pattern),
        leat_attr_int("file_random_seed", o.seed), leat_attr_int("file_buffer_size", o.size),
        leat_attr_int("file_parallelism", o.parallelism), leat_attr_int("batch_size", o.batch),
        leat_attr_float("file_shuffle_shift_ratio", (float)o.shift),
        leat_attr_string("compression_type", o.compression ? o.compression : ""));
    CHECK_OK(leat_graph_status(r.g));
    CHECK_OK(leat_session_open(r.g, &r.s));
    return r;
}

/* Adds the records of a batch to text. */
static leat_status read_batch(reading *r, char *text, size_t size)
{
    leat_tensor *t = NULL;
    LEAT_TRY(leat_session_run(r->s, LEAT_NO_FEED, LEAT_FETCH({r->records, &t}), LEAT_NO_TARGET));
    const leat_string *v = leat_tensor_data(t);
    for (int64_t i = 0; i < leat_tensor_count(t); i++) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%.*s", used ? " " : "", (int)v[i].size, v[i].data);
    }
    leat_tensor_unref(t);
    return NULL;
}

static void end(reading *r)
{
    leat_session_close(r->s);
    leat_graph_free(r->g);
}

static void check_order(const char *folder, options o, int batches, const char *want)
{
    char text[4096] = "";
    reading r = reading_of(folder, o);
    for (int i = 0; i < batches; i++)
        CHECK_OK(read_batch(&r, text, sizeof(text)));
    CHECK_STR(text, want);
    end(&r);
}

/* ---- Cases ---- */

/* With one shard and a buffer of one record, or of all, TensorFlow's threads do not matter. */
static void orders(void)
{
    char folder[400];
    make_folder(folder, sizeof(folder));
    write_seven(folder);
    check_order(
        folder, (options){7, 301, 1, 1, 1}, 50,
        "6.1 6.2 6.3 6.4 6.5 6.6 6.7 6.8 6.9 6.10 6.11 6.12 4.0 4.1 4.2 4.3 4.4 4.5 4.6 4.7 "
        "4.8 2.0 2.1 2.2 2.3 2.4 0.0 6.0 1.2 1.1 1.0 5.10 5.9 5.8 5.7 5.6 5.5 5.4 5.3 5.2 "
        "5.1 5.0 6.6 6.7 6.8 6.9 6.10 6.11 6.12 5.0");
    check_order(
        folder, (options){7, 7, 1, 1, 7, .shift = 0.33}, 8,
        "5.1 5.2 5.3 5.4 5.5 5.6 5.7 5.8 5.9 5.10 1.0 1.1 1.2 6.0 6.1 6.2 6.3 6.4 6.5 6.6 "
        "6.7 6.8 6.9 6.10 6.11 6.12 0.0 5.0 4.8 4.7 4.6 4.5 4.4 4.3 4.2 4.1 4.0 2.4 2.3 2.2 "
        "2.1 2.0 2.4 1.0 1.1 1.2 6.0 6.1 6.2 6.3 6.4 6.5 6.6 6.7 6.8 6.9");
    check_order(folder, (options){7, -5, 1000, 1, 42}, 1,
                "5.9 5.5 1.0 2.4 1.2 6.11 6.0 6.2 2.2 5.8 0.0 5.3 5.10 2.0 6.5 4.5 4.0 6.4 2.1 5.2 "
                "6.8 4.4 2.3 5.6 1.1 6.12 6.7 4.3 5.7 5.1 6.10 5.4 4.2 6.6 6.9 4.1 6.3 4.8 6.1 5.0 "
                "4.7 4.6");
    check_order(folder, (options){6, 1, 1, 1, 2}, 20,
                "2.1 2.2 2.3 2.4 4.0 4.1 4.2 4.3 4.4 4.5 4.6 4.7 4.8 0.0 2.0 5.10 5.9 5.8 5.7 5.6 "
                "5.5 5.4 5.3 5.2 5.1 5.0 1.2 1.1 1.0 5.6 5.7 5.8 5.9 5.10 1.0 1.1 1.2 0.0 2.0 2.1");
    remove_folder(folder);
}

enum { RECORDS = 42 };

/* The text has each record of the seven files once. */
static void check_epoch(const char *text)
{
    char all[4096], one[32];
    snprintf(all, sizeof(all), " %s ", text);
    for (int f = 0; f < 7; f++)
        for (int j = 0; j < (f == 3 ? 0 : 2 * f + 1); j++) {
            snprintf(one, sizeof(one), " %d.%d ", f, j);
            const char *at = strstr(all, one);
            CHECK(at && !strstr(at + 1, one));
        }
}

/* Each record comes once in an epoch, whatever the sizes are. */
static void epochs(void)
{
    static const options o[] = {{0, 301, 10000, 16, 1, 0.5},
                                {0, 2, 7, 3, 6},
                                {0, 0, 20, 2, 21, -1},
                                {0, 9, 1, INT64_MAX, 14, 0.99}};
    char folder[400];
    make_folder(folder, sizeof(folder));
    write_seven(folder);
    for (int i = 0; i < 4; i++) {
        reading r = reading_of(folder, o[i]);
        for (int epoch = 0; epoch < 3; epoch++) {
            char text[4000] = "";
            for (int n = 0; n < RECORDS; n += (int)o[i].batch)
                CHECK_OK(read_batch(&r, text, sizeof(text)));
            check_epoch(text);
        }
        end(&r);
    }
    remove_folder(folder);
}

typedef struct part {
    reading *r;
    char text[1000];
} part;

static void *read_part(void *arg)
{
    part *p = arg;
    for (int i = 0; i < 7; i++)
        CHECK_OK(read_batch(p->r, p->text, sizeof(p->text)));
    return NULL;
}

/* Steps at the same time share the records of an epoch. */
static void at_once(void)
{
    char folder[400];
    make_folder(folder, sizeof(folder));
    write_seven(folder);
    reading r = reading_of(folder, (options){0, 301, 10, 2, 2});
    for (int epoch = 0; epoch < 3; epoch++) {
        part parts[3] = {{&r}, {&r}, {&r}};
        pthread_t threads[3];
        char text[4000] = "";
        for (int i = 0; i < 3; i++)
            pthread_create(&threads[i], NULL, read_part, &parts[i]);
        for (int i = 0; i < 3; i++) {
            pthread_join(threads[i], NULL);
            strcat(strcat(text, parts[i].text), " ");
        }
        check_epoch(text);
    }
    end(&r);
    remove_folder(folder);
}

static void forms(void)
{
    char folder[400];
    make_folder(folder, sizeof(folder));
    write_file(folder, 0, 2, LEAT_RECORD_GZIP);
    check_order(folder, (options){1, 301, 1, 1, 4, .compression = "GZIP"}, 1, "0.1 0.0 0.1 0.0");
    write_file(folder, 0, 2, LEAT_RECORD_ZLIB);
    check_order(folder, (options){1, 301, 1, 1, 2, .compression = "ZLIB"}, 1, "0.1 0.0");
    check_order(folder, (options){1, 301, 1, 1, 0, .compression = "ZLIB"}, 2, "");
    remove_folder(folder);
}

static void check_error(const char *folder, options o, leat_code code, const char *words)
{
    char text[400] = "";
    reading r = reading_of(folder, o);
    for (int i = 0; i < 2; i++) { /* The error stays. */
        leat_status s = read_batch(&r, text, sizeof(text));
        CHECK_INT(leat_status_code(s), code);
        CHECK(strstr(leat_status_message(s), words));
        leat_status_free(s);
    }
    end(&r);
}

static void errors(void)
{
    char folder[400], path[600], text[400] = "";
    make_folder(folder, sizeof(folder));
    check_error(folder, (options){0, 1, 1, 1, 1}, LEAT_NOT_FOUND, "Found no files at ");
    write_file(folder, 0, 0, LEAT_RECORD_PLAIN);
    check_error(folder, (options){0, 1, 1, 1, 1}, LEAT_NOT_FOUND, "have no records");
    check_error(folder, (options){0, 1, 0, 1, 1}, LEAT_INVALID_ARGUMENT,
                "file_buffer_size is 0, must be at least 1");
    check_error(folder, (options){0, 1, 1, 0, 1}, LEAT_INVALID_ARGUMENT,
                "file_parallelism is 0, must be at least 1");
    check_error(folder, (options){0, 1, 1, 1, -1}, LEAT_INVALID_ARGUMENT,
                "batch_size is -1, must not be negative");
    check_error(folder, (options){0, 1, 1, 1, 1, .compression = "LZ4"}, LEAT_INVALID_ARGUMENT,
                "Unsupported compression_type");
    check_error(folder, (options){0, 1, 1, 1, INT64_C(1) << 44}, LEAT_RESOURCE_EXHAUSTED, "");

    /* The records before a torn one are given. */
    write_file(folder, 0, 20, LEAT_RECORD_PLAIN);
    snprintf(path, sizeof(path), "%s/f.0", folder);
    CHECK_INT(truncate(path, 10 * 19 + 10 * 20 - 10), 0);
    reading r = reading_of(folder, (options){0, 1, 1, 1, 9});
    CHECK_OK(read_batch(&r, text, sizeof(text)));
    CHECK_OK(read_batch(&r, text, sizeof(text)));
    CHECK_ERROR(read_batch(&r, text, sizeof(text)), DATA_LOSS, "f.0");
    end(&r);
    remove_folder(folder);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"orders", orders}, {"epochs", epochs}, {"at_once", at_once},
               {"forms", forms}, {"errors", errors});
}
