/* packed_batch_test.c -- elements that go from files and shuffles to batches as blocks of memory:
 * strings that stay in these blocks, also when the blocks before them are used again, and elements
 * that do not fit together. */
#include "test.h"

#include <leat/leat.h>
#include <pthread.h>
#include <unistd.h>

enum { RECORDS = 500, EPOCHS = 3, BATCH = 32, MOST_BATCHES = RECORDS * EPOCHS / BATCH + 1 };

static const char *file_path(void)
{
    static char path[128];
    snprintf(path, sizeof(path), "/tmp/leat_packed_batch_%d.tfrecord", (int)getpid());
    return path;
}

/* Record i: its number in 4 digits, and after it as many letters as make `size` bytes. */
static size_t record(int i, bool long_ones, char *to)
{
    const size_t size = long_ones ? 400 + (size_t)(i * 7919 % 900) : 4 + (size_t)(i % 5);
    snprintf(to, 8, "%04d", i);
    memset(to + 4, 'a' + i % 26, size - 4);
    return size;
}

static void write_records(bool long_ones)
{
    leat_record_writer *w;
    char bytes[2000];
    CHECK_OK(leat_record_writer_open(file_path(), LEAT_RECORD_PLAIN, &w));
    for (int i = 0; i < RECORDS; i++)
        CHECK_OK(leat_record_write(w, bytes, record(i, long_ones, bytes)));
    CHECK_OK(leat_record_writer_close(w));
}

/* Counts the records of a batch; each has its bytes, and a NUL after them. */
static void count(const leat_tensor *batch, bool long_ones, int *seen)
{
    const leat_string *x = leat_tensor_data(batch);
    for (int64_t i = 0; i < leat_tensor_count(batch); i++) {
        char want[2000];
        const int number =
            atoi((char[]){x[i].data[0], x[i].data[1], x[i].data[2], x[i].data[3], 0});
        CHECK(number >= 0 && number < RECORDS);
        const size_t size = record(number, long_ones, want);
        CHECK_INT(x[i].size, size);
        CHECK(memcmp(x[i].data, want, size) == 0 && !x[i].data[size]);
        seen[number]++;
    }
}

static void *free_batches(void *arg)
{
    leat_tensor **batches = arg;
    for (int i = 0; i < MOST_BATCHES; i += 2) {
        leat_tensor_unref(batches[i]);
        batches[i] = NULL;
    }
    return NULL;
}

/* Every other batch is freed while the iterator goes on, in another thread, and its memory used
 * again; the rest are read after the iterator was closed. */
static void each_record_once(bool long_ones, bool shuffled)
{
    leat_dataset *d;
    leat_data_iterator *it;
    leat_tensor *batches[MOST_BATCHES + 1] = {NULL};
    int seen[RECORDS] = {0}, n = 0;
    leat_status s;
    write_records(long_ones);
    CHECK_OK(leat_dataset_from_records((const char *[]){file_path()}, 1, "", &d));
    if (shuffled)
        CHECK_OK(leat_dataset_shuffle(d, 100, 1, &d));
    CHECK_OK(leat_dataset_repeat(d, EPOCHS, &d));
    CHECK_OK(leat_dataset_batch(d, BATCH, false, &d));
    CHECK_OK(leat_dataset_prefetch(d, 2, &d));
    CHECK_OK(leat_data_iterator_open(d, &it));
    leat_dataset_free(d);
    while (!(s = leat_data_iterator_next(it, &batches[n < MOST_BATCHES ? n : MOST_BATCHES], 1))) {
        CHECK(n < MOST_BATCHES);
        if (n % 2 == 0)
            count(batches[n], long_ones, seen);
        if (++n % 8 == 0) {
            pthread_t t;
            CHECK_INT(pthread_create(&t, NULL, free_batches, batches), 0);
            pthread_join(t, NULL);
        }
    }
    CHECK_ERROR(s, OUT_OF_RANGE, "End of sequence");
    leat_data_iterator_close(it);
    for (int i = 0; i < n; i++) {
        if (i % 2)
            count(batches[i], long_ones, seen);
        leat_tensor_unref(batches[i]);
    }
    for (int i = 0; i < RECORDS; i++)
        CHECK_INT(seen[i], EPOCHS);
    unlink(file_path());
}

static void long_strings(void)
{
    each_record_once(true, true);
    each_record_once(true, false);
}

static void short_strings(void)
{
    each_record_once(false, true);
    each_record_once(false, false);
}

/* *arg is the number from which on elements have one value more. */
static leat_status row(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out, int n_out)
{
    const int64_t x = *(const int64_t *)leat_tensor_data(in[0]);
    const int16_t v[] = {(int16_t)x, (int16_t)-x, 7};
    LEAT_TRY(
        leat_tensor_copy_of(LEAT_INT16, leat_shape(x >= *(const int *)arg ? 3 : 2), v, &out[0]));
    return leat_tensor_copy_of(LEAT_INT64, leat_shape(), &x, &out[1]);
}

static leat_data_iterator *rows(int *longer_from)
{
    const leat_dtype types[] = {LEAT_INT16, LEAT_INT64};
    leat_dataset *d;
    leat_data_iterator *it;
    CHECK_OK(leat_dataset_from_range(0, 40, 1, &d));
    CHECK_OK(leat_dataset_map(d, row, longer_from, types, 2, &d));
    CHECK_OK(leat_dataset_shuffle(d, 16, 3, &d));
    CHECK_OK(leat_dataset_batch(d, 20, false, &d));
    CHECK_OK(leat_data_iterator_open(d, &it));
    leat_dataset_free(d);
    return it;
}

static void numbers(void)
{
    int never = 1000, from = 0, seen = 0;
    leat_tensor *t[2];
    leat_data_iterator *it = rows(&never);
    for (int b = 0; b < 2; b++) {
        CHECK_OK(leat_data_iterator_next(it, t, 2));
        CHECK_INT(leat_tensor_dim(t[0], 0), 20);
        CHECK_INT(leat_tensor_dim(t[0], 1), 2);
        const int16_t *v = leat_tensor_data(t[0]);
        const int64_t *x = leat_tensor_data(t[1]);
        for (int i = 0; i < 20; i++, seen++)
            CHECK(v[2 * i] == x[i] && v[2 * i + 1] == -x[i]);
        leat_tensor_unref(t[0]);
        leat_tensor_unref(t[1]);
    }
    CHECK_INT(seen, 40);
    CHECK_ERROR(leat_data_iterator_next(it, t, 2), OUT_OF_RANGE, "End of sequence");
    leat_data_iterator_close(it);
    from = 5;
    it = rows(&from);
    CHECK_ERROR(leat_data_iterator_next(it, t, 2), INVALID_ARGUMENT,
                "Cannot batch tensors with different shapes in component 0. First element had "
                "shape");
    leat_data_iterator_close(it);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"long_strings", long_strings}, {"short_strings", short_strings},
               {"numbers", numbers});
}
