/* dataset_api_test.c -- datasets and iterators of leat/data.h: elements, functions of the program,
 * positions, mistakes. */
#include "test.h"

#include <leat/leat.h>
#include <unistd.h>

static leat_status square(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out, int n_out)
{
    int64_t x = *(const int64_t *)leat_tensor_data(in[0]);
    int *calls = arg;
    ++*calls;
    if (x == 100)
        return leat_error(INVALID_ARGUMENT, "100 is too much");
    float y = (float)(x * x);
    return leat_tensor_copy_of(LEAT_FLOAT, leat_shape(), &y, &out[0]);
}

static leat_status nothing(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out,
                           int n_out)
{
    return NULL;
}

/* Adds what is left to text. */
static void read_rest(leat_data_iterator *it, char *text, size_t size)
{
    leat_tensor *t = NULL;
    leat_status s;
    while (!(s = leat_data_iterator_next(it, &t, 1))) {
        char *value = leat_tensor_text(t, -1);
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s ", value);
        free(value);
        leat_tensor_unref(t);
    }
    CHECK_ERROR(s, OUT_OF_RANGE, "End of sequence");
}

static void pipeline(void)
{
    leat_dataset *d;
    leat_data_iterator *it;
    int calls = 0;
    const leat_dtype types[] = {LEAT_FLOAT};
    char text[256] = "";
    CHECK_OK(leat_dataset_from_range(0, 10, 1, &d));
    CHECK_OK(leat_dataset_skip(d, 2, &d));
    CHECK_OK(leat_dataset_map(d, square, &calls, types, 1, &d));
    CHECK_OK(leat_dataset_take(d, 3, &d));
    CHECK_OK(leat_dataset_repeat(d, 2, &d));
    CHECK_OK(leat_dataset_batch(d, 4, false, &d));
    CHECK_OK(leat_dataset_prefetch(d, 2, &d));
    CHECK_OK(leat_data_iterator_open(d, &it));
    leat_dataset_free(d);
    read_rest(it, text, sizeof(text));
    CHECK_STR(text, "[4 9 16 4] [9 16] ");
    CHECK_INT(calls, 6);
    leat_data_iterator_close(it);
}

/* Rows of two tensors come in one order, which the seed decides. */
static void shuffled_slices(void)
{
    leat_tensor *x, *y, *got[2];
    int64_t a[50], sum = 0;
    float b[50];
    for (int i = 0; i < 50; i++)
        b[i] = (float)(a[i] = i) / 2;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT64, leat_shape(50), a, &x));
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(50), b, &y));
    int64_t first[2] = {0};
    for (int round = 0; round < 2; round++) {
        leat_dataset *d;
        leat_data_iterator *it;
        sum = 0;
        CHECK_OK(leat_dataset_from_slices((const leat_tensor *[]){x, y}, 2, &d));
        CHECK_OK(leat_dataset_shuffle(d, 20, 42, &d));
        CHECK_OK(leat_data_iterator_open(d, &it));
        leat_dataset_free(d);
        for (int i = 0; i < 50; i++) {
            CHECK_OK(leat_data_iterator_next(it, got, 2));
            int64_t row = *(const int64_t *)leat_tensor_data(got[0]);
            CHECK_NEAR(leat_tensor_at(got[1], 0), (double)row / 2, 0);
            if (i == 0)
                first[round] = row;
            sum += row;
            leat_tensor_unref(got[0]);
            leat_tensor_unref(got[1]);
        }
        CHECK_INT((int)sum, 1225);
        CHECK_ERROR(leat_data_iterator_next(it, got, 2), OUT_OF_RANGE, "End of sequence");
        leat_data_iterator_close(it);
    }
    CHECK_INT((int)first[0], (int)first[1]);
    leat_tensor_unref(x);
    leat_tensor_unref(y);
}

static void positions(void)
{
    leat_dataset *d;
    leat_data_iterator *it, *other;
    leat_tensor *t;
    void *bytes;
    size_t n;
    char rest[512] = "", again[512] = "";
    CHECK_OK(leat_dataset_from_range(0, 20, 1, &d));
    CHECK_OK(leat_dataset_shuffle(d, 5, 7, &d));
    CHECK_OK(leat_dataset_prefetch(d, 3, &d));
    CHECK_OK(leat_data_iterator_open(d, &it));
    for (int i = 0; i < 6; i++) {
        CHECK_OK(leat_data_iterator_next(it, &t, 1));
        leat_tensor_unref(t);
    }
    CHECK_OK(leat_data_iterator_save(it, &bytes, &n));
    read_rest(it, rest, sizeof(rest));
    CHECK_OK(leat_data_iterator_open(d, &other));
    CHECK_OK(leat_data_iterator_restore(other, bytes, n));
    CHECK_ERROR(leat_data_iterator_restore(other, bytes, n / 2), DATA_LOSS,
                "The saved position is damaged");
    read_rest(other, again, sizeof(again));
    CHECK_STR(again, rest);
    free(bytes);
    leat_data_iterator_close(it);
    leat_data_iterator_close(other);
    leat_dataset_free(d);
}

static void records(void)
{
    char path[128], text[64] = "", missing[160];
    snprintf(path, sizeof(path), "/tmp/leat_dataset_%d.tfrecord", (int)getpid());
    snprintf(missing, sizeof(missing), "%s.not", path);
    leat_record_writer *w;
    CHECK_OK(leat_record_writer_open(path, LEAT_RECORD_PLAIN, &w));
    CHECK_OK(leat_record_write(w, "one", 3));
    CHECK_OK(leat_record_write(w, "two", 3));
    CHECK_OK(leat_record_writer_close(w));
    leat_dataset *d;
    leat_data_iterator *it;
    leat_tensor *t;
    CHECK_OK(leat_dataset_from_records((const char *[]){path, path}, 2, "", &d));
    CHECK_OK(leat_data_iterator_open(d, &it));
    leat_dataset_free(d);
    read_rest(it, text, sizeof(text));
    CHECK_STR(text, "one two one two ");
    leat_data_iterator_close(it);

    FILE *f = fopen(path, "r+b"); /* damage in the second record */
    fseek(f, 16 + 3 + 13, SEEK_SET);
    fputc('X', f);
    fclose(f);
    CHECK_OK(leat_dataset_from_records((const char *[]){path, missing}, 2, "", &d));
    CHECK_OK(leat_data_iterator_open(d, &it));
    leat_dataset_free(d);
    CHECK_OK(leat_data_iterator_next(it, &t, 1));
    leat_tensor_unref(t);
    leat_status s = leat_data_iterator_next(it, &t, 1);
    CHECK(s && strstr(leat_status_message(s), path) != NULL);
    CHECK_ERROR(s, DATA_LOSS, "[[dataset records (TFRecordDataset), element 1]]");
    CHECK_ERROR(leat_data_iterator_next(it, &t, 1), NOT_FOUND, "No such file or directory");
    leat_data_iterator_close(it);
    unlink(path);
}

static void mistakes(void)
{
    leat_dataset *d;
    leat_data_iterator *it;
    leat_tensor *t[2];
    int calls = 0;
    const leat_dtype types[] = {LEAT_FLOAT};
    CHECK_OK(leat_dataset_from_range(99, 102, 1, &d));
    CHECK_ERROR(leat_dataset_batch(d, 0, false, &d), INVALID_ARGUMENT,
                "Batch size must be greater than zero.");
    CHECK_ERROR(leat_dataset_batch(NULL, 1, false, &d), INVALID_ARGUMENT, "leat_dataset_batch");
    CHECK_ERROR(leat_dataset_from_range(0, 1, 0, &d), INVALID_ARGUMENT, "non-zero");
    CHECK_ERROR(leat_dataset_from_tensors(NULL, 0, &d), INVALID_ARGUMENT, "tensors");
    CHECK_ERROR(leat_dataset_from_records((const char *[]){"x"}, 1, "LZ4", &d), INVALID_ARGUMENT,
                "not \"LZ4\"");
    CHECK_OK(leat_dataset_from_range(99, 102, 1, &d));
    CHECK_OK(leat_dataset_map(d, square, &calls, types, 1, &d));
    CHECK_OK(leat_data_iterator_open(d, &it));
    leat_dataset_free(d);
    CHECK_ERROR(leat_data_iterator_next(it, t, 2), INVALID_ARGUMENT,
                "The element has 1 tensors, not 2");
    CHECK_ERROR(leat_data_iterator_next(it, t, 1), INVALID_ARGUMENT,
                "100 is too much\n\t [[dataset map (MapDataset), element 1]]");
    CHECK_OK(leat_data_iterator_next(it, t, 1));
    leat_tensor_unref(t[0]);
    leat_data_iterator_close(it);
    CHECK_OK(leat_dataset_from_range(0, 2, 1, &d));
    CHECK_OK(leat_dataset_map(d, nothing, NULL, types, 1, &d));
    CHECK_OK(leat_data_iterator_open(d, &it));
    leat_dataset_free(d);
    CHECK_ERROR(leat_data_iterator_next(it, t, 1), INVALID_ARGUMENT,
                "The function has not written tensor 0 of 1");
    leat_data_iterator_close(it);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"pipeline", pipeline}, {"shuffled_slices", shuffled_slices},
               {"positions", positions}, {"records", records}, {"mistakes", mistakes});
}
