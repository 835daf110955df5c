/* dataset_functions_test.c -- datasets of leat/data.h: all sources and transformations, functions
 * of the program, generators, Examples; what they give, their positions, and mistakes. */
#include "test.h"

#include <leat/leat.h>
#include <pthread.h>
#include <stdatomic.h>

static const leat_dtype ints[] = {LEAT_INT64, LEAT_INT64};
static const leat_dtype strings[] = {LEAT_STRING};

static leat_dataset *range(int64_t n)
{
    leat_dataset *d = NULL;
    CHECK_OK(leat_dataset_from_range(0, n, 1, &d));
    return d;
}

/* All elements: tensors with commas between them, a space after each element. Frees d. */
static char *all_of(leat_dataset *d, int n)
{
    static char text[4096];
    leat_data_iterator *it;
    leat_tensor *t[4];
    leat_status s;
    text[0] = 0;
    CHECK_OK(leat_data_iterator_open(d, &it));
    leat_dataset_free(d);
    while (!(s = leat_data_iterator_next(it, t, n))) {
        for (int i = 0; i < n; i++) {
            char *value = leat_tensor_text(t[i], -1);
            size_t used = strlen(text);
            snprintf(text + used, sizeof(text) - used, "%s%s", value, i + 1 < n ? "," : " ");
            free(value);
            leat_tensor_unref(t[i]);
        }
    }
    CHECK_ERROR(s, OUT_OF_RANGE, "End of sequence");
    leat_data_iterator_close(it);
    return text;
}

/* What follows after `before` elements is the same after the position was saved and restored by
 * another iterator. */
static void check_position(leat_dataset *d, int before)
{
    leat_data_iterator *it, *other;
    leat_tensor *t, *u;
    leat_status s = NULL, v;
    void *bytes;
    size_t n;
    CHECK_OK(leat_data_iterator_open(d, &it));
    CHECK_OK(leat_data_iterator_open(d, &other));
    leat_dataset_free(d);
    for (int i = 0; i < before; i++) {
        CHECK_OK(leat_data_iterator_next(it, &t, 1));
        leat_tensor_unref(t);
    }
    CHECK_OK(leat_data_iterator_save(it, &bytes, &n));
    CHECK_OK(leat_data_iterator_restore(other, bytes, n));
    while (!s) {
        s = leat_data_iterator_next(it, &t, 1);
        v = leat_data_iterator_next(other, &u, 1);
        CHECK_INT(leat_status_code(v), leat_status_code(s));
        if (s || v) {
            leat_status_free(v);
            break;
        }
        char *a = leat_tensor_text(t, -1), *b = leat_tensor_text(u, -1);
        CHECK_STR(b, a);
        free(a);
        free(b);
        leat_tensor_unref(t);
        leat_tensor_unref(u);
    }
    leat_status_free(s);
    free(bytes);
    leat_data_iterator_close(it);
    leat_data_iterator_close(other);
}

/* ---- Functions ---- */

static int64_t number(leat_tensor *t)
{
    return *(const int64_t *)leat_tensor_data(t);
}

static leat_status twice(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out, int n_out)
{
    return (out[0] = leat_scalar_int64(2 * number(in[0])))
               ? NULL
               : leat_error(RESOURCE_EXHAUSTED, "no memory");
}

static leat_status odd(void *arg, leat_tensor *const *in, int n_in, bool *yes)
{
    *yes = number(in[0]) % 2 == 1;
    return number(in[0]) == 100 ? leat_error(INVALID_ARGUMENT, "neither odd nor even") : NULL;
}

/* 0, 1 ... below the element. */
static leat_status below(void *arg, leat_tensor *const *in, int n_in, leat_dataset **out)
{
    if (number(in[0]) == 99)
        return NULL; /* no dataset */
    return leat_dataset_from_range(0, number(in[0]), 1, out);
}

static leat_status pair(void *arg, leat_tensor *const *in, int n_in, leat_dataset **out)
{
    const leat_tensor *both[] = {in[0], in[0]};
    return leat_dataset_from_tensors(both, 2, out);
}

static void functions(void)
{
    leat_dataset *d;
    CHECK_OK(leat_dataset_parallel_map(range(20), 4, twice, NULL, ints, 1, &d));
    CHECK_STR(all_of(d, 1), "0 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30 32 34 36 38 ");
    CHECK_OK(leat_dataset_filter(range(8), odd, NULL, &d));
    CHECK_STR(all_of(d, 1), "1 3 5 7 ");
    CHECK_OK(leat_dataset_flat_map(range(4), below, NULL, ints, 1, &d));
    CHECK_STR(all_of(d, 1), "0 0 1 0 1 2 ");
    for (int parallel = 0; parallel < 2; parallel++) {
        CHECK_OK(leat_dataset_from_range(3, 6, 1, &d));
        CHECK_OK(leat_dataset_interleave(d, below, NULL, ints, 1, 2, 2, parallel, &d));
        CHECK_STR(all_of(d, 1), "0 1 0 1 2 2 3 0 1 2 3 4 ");
    }
    CHECK_OK(leat_dataset_parallel_map(range(20), -1, twice, NULL, ints, 1, &d));
    check_position(d, 7);
    CHECK_OK(leat_dataset_flat_map(range(5), below, NULL, ints, 1, &d));
    check_position(d, 4);
}

/* Calls of a parallel map run at the same time: each waits until another one has begun. */
typedef struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t came;
    int inside;
    bool met;
} meeting;

static leat_status meet(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out, int n_out)
{
    meeting *m = arg;
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 20;
    pthread_mutex_lock(&m->lock);
    m->inside++;
    m->met |= m->inside > 1;
    pthread_cond_broadcast(&m->came);
    while (!m->met && pthread_cond_timedwait(&m->came, &m->lock, &limit) == 0)
        ;
    m->inside--;
    pthread_mutex_unlock(&m->lock);
    out[0] = leat_tensor_ref(in[0]);
    return NULL;
}

static void at_the_same_time(void)
{
    meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false};
    leat_dataset *d;
    CHECK_OK(leat_dataset_parallel_map(range(6), 2, meet, &m, ints, 1, &d));
    CHECK_STR(all_of(d, 1), "0 1 2 3 4 5 ");
    CHECK(m.met);
}

/* ---- Generators ---- */

typedef struct counting {
    int64_t next, end;
} counting;

static atomic_int begun, ended;

static leat_status count_begin(void *arg, void **state)
{
    counting *c = malloc(sizeof(*c));
    *c = (counting){0, *(const int64_t *)arg};
    *state = c;
    begun++;
    return NULL;
}

static leat_status count_next(void *state, leat_tensor **out, int n)
{
    counting *c = state;
    if (c->next == c->end)
        return leat_error(OUT_OF_RANGE, "no more");
    if (c->next == 50)
        return leat_error(INTERNAL, "fifty");
    out[0] = leat_scalar_int64(c->next * c->next);
    c->next++;
    return NULL;
}

static void count_end(void *state)
{
    free(state);
    ended++;
}

static void generators(void)
{
    int64_t end = 4;
    const leat_generator g = {&end, count_begin, count_next, count_end};
    leat_dataset *d;
    leat_data_iterator *it;
    leat_tensor *t;
    begun = ended = 0;
    CHECK_OK(leat_dataset_from_generator(&g, ints, 1, &d));
    CHECK_OK(leat_dataset_repeat(d, 2, &d));
    CHECK_OK(leat_dataset_prefetch(d, 2, &d));
    CHECK_STR(all_of(d, 1), "0 1 4 9 0 1 4 9 ");
    CHECK_INT(begun, ended);
    end = 20;
    CHECK_OK(leat_dataset_from_generator(&g, ints, 1, &d));
    check_position(d, 6);
    CHECK_INT(begun, ended);
    /* A generator that gives less than before its position was saved. */
    void *bytes;
    size_t n;
    CHECK_OK(leat_dataset_from_generator(&g, ints, 1, &d));
    CHECK_OK(leat_data_iterator_open(d, &it));
    for (int i = 0; i < 6; i++) {
        CHECK_OK(leat_data_iterator_next(it, &t, 1));
        leat_tensor_unref(t);
    }
    CHECK_OK(leat_data_iterator_save(it, &bytes, &n));
    end = 3;
    CHECK_ERROR(leat_data_iterator_restore(it, bytes, n), DATA_LOSS,
                "The generator has given 3 elements; the position that is to be restored is after "
                "element 6");
    free(bytes);
    leat_data_iterator_close(it);
    leat_dataset_free(d);
    /* An error is given, and the generator is asked again. */
    end = 60;
    CHECK_OK(leat_dataset_from_generator(&g, ints, 1, &d));
    CHECK_OK(leat_dataset_skip(d, 50, &d));
    CHECK_OK(leat_data_iterator_open(d, &it));
    leat_dataset_free(d);
    CHECK_ERROR(leat_data_iterator_next(it, &t, 1), INTERNAL,
                "fifty\n\t [[dataset generator (GeneratorDataset), element 50]]");
    leat_data_iterator_close(it);
    CHECK_INT(begun, ended);
}

/* ---- Counting, joining, batching ---- */

static void joined(void)
{
    leat_dataset *d, *e;
    CHECK_OK(leat_dataset_shard(range(10), 3, 1, &d));
    CHECK_STR(all_of(d, 1), "1 4 7 ");
    CHECK_OK(leat_dataset_from_range(10, 100, 10, &e));
    CHECK_OK(leat_dataset_zip((leat_dataset *const[]){range(3), e}, 2, &d));
    CHECK_STR(all_of(d, 2), "0,10 1,20 2,30 ");
    CHECK_OK(leat_dataset_concatenate(range(3), range(2), &d));
    CHECK_STR(all_of(d, 1), "0 1 2 0 1 ");
    CHECK_OK(leat_dataset_batch(range(5), 2, false, &d));
    CHECK_OK(leat_dataset_unbatch(d, &d));
    CHECK_STR(all_of(d, 1), "0 1 2 3 4 ");
    char *mixed;
    CHECK_OK(leat_dataset_shuffle_and_repeat(range(4), 4, 3, 2, &d));
    int64_t sum = 0, at = 0;
    mixed = all_of(d, 1);
    for (char *p = mixed; *p; p = strchr(p, ' ') + 1, at++)
        sum += atoi(p);
    CHECK_INT(at, 8);
    CHECK_INT(sum, 12);
}

static leat_status batch_window(void *arg, leat_tensor *const *in, int n_in, leat_dataset **out)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_from_variant(in[0], &d));
    return leat_dataset_batch(d, 3, false, out);
}

static leat_status ones(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out, int n_out)
{
    LEAT_TRY(leat_tensor_new(LEAT_INT64, leat_shape(number(in[0])), &out[0]));
    for (int64_t i = 0; i < number(in[0]); i++)
        leat_tensor_set_at(out[0], i, 1);
    return NULL;
}

static void batched(void)
{
    leat_dataset *d;
    CHECK_OK(leat_dataset_window(range(5), 3, 1, 1, true, &d));
    CHECK_OK(leat_dataset_flat_map(d, batch_window, NULL, ints, 1, &d));
    CHECK_STR(all_of(d, 1), "[0 1 2] [1 2 3] [2 3 4] ");
    const leat_shape some = leat_shape(-1);
    leat_tensor *seven = leat_scalar_int64(7), *half = leat_scalar_float(0.5f);
    CHECK_OK(leat_dataset_map(range(4), ones, NULL, ints, 1, &d));
    CHECK_OK(
        leat_dataset_padded_batch(d, 2, &some, (const leat_tensor *const[]){seven}, false, &d));
    CHECK_STR(all_of(d, 1), "[[7][1]] [[1 1 7][1 1 1]] ");
    CHECK_OK(leat_dataset_map(range(4), ones, NULL, ints, 1, &d));
    CHECK_ERROR(leat_dataset_padded_batch(d, 2, NULL, NULL, false, &d), INVALID_ARGUMENT,
                "The padded shape of tensor 0 is not known");
    CHECK_OK(leat_dataset_map(range(4), ones, NULL, ints, 1, &d));
    CHECK_ERROR(
        leat_dataset_padded_batch(d, 2, &some, (const leat_tensor *const[]){half}, false, &d),
        INVALID_ARGUMENT, "Mismatched type between padding value 0");
    CHECK_OK(leat_dataset_padded_batch(range(3), 2, NULL, NULL, true, &d));
    CHECK_STR(all_of(d, 1), "[0 1] ");
    leat_tensor_unref(seven);
    leat_tensor_unref(half);
}

static void caches(void)
{
    leat_dataset *d;
    int64_t end = 3;
    const leat_generator g = {&end, count_begin, count_next, count_end};
    char path[64], command[96];
    snprintf(path, sizeof(path), "/tmp/leat_cache_%d", (int)getpid());
    for (int round = 0; round < 2; round++) {
        begun = 0;
        CHECK_OK(leat_dataset_from_generator(&g, ints, 1, &d));
        CHECK_OK(leat_dataset_cache(d, round ? path : NULL, &d));
        CHECK_OK(leat_dataset_repeat(d, 3, &d));
        CHECK_STR(all_of(d, 1), "0 1 4 0 1 4 0 1 4 ");
        CHECK_INT(begun, 1);
    }
    end = 5; /* The file has what was there. */
    CHECK_OK(leat_dataset_from_generator(&g, ints, 1, &d));
    CHECK_OK(leat_dataset_cache(d, path, &d));
    CHECK_STR(all_of(d, 1), "0 1 4 ");
    CHECK_INT(begun, 1);
    snprintf(command, sizeof(command), "rm -f %s*", path);
    CHECK_INT(system(command), 0);
}

/* ---- Sources ---- */

static void sparse(void)
{
    const int64_t at[] = {0, 1, 0, 2, 2, 0}, shape[] = {3, 4};
    const float v[] = {5, 6, 7};
    leat_tensor *indices, *values, *dense;
    leat_dataset *d;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT64, leat_shape(3, 2), at, &indices));
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(3), v, &values));
    CHECK_OK(leat_tensor_copy_of(LEAT_INT64, leat_shape(2), shape, &dense));
    CHECK_OK(leat_dataset_from_sparse(indices, values, dense, &d));
    CHECK_STR(all_of(d, 3), "[[1][2]],[5 6],[4] [],[],[4] [[0]],[7],[4] ");
    CHECK_ERROR(leat_dataset_from_sparse(values, values, dense, &d), INVALID_ARGUMENT,
                "are int64, not float and int64");
    CHECK_ERROR(leat_dataset_from_sparse(dense, values, dense, &d), INVALID_ARGUMENT,
                "Input indices must be a matrix");
    leat_tensor_unref(indices);
    leat_tensor_unref(values);
    leat_tensor_unref(dense);
}

static void texts(void)
{
    char path[64];
    leat_dataset *d;
    snprintf(path, sizeof(path), "/tmp/leat_text_%d", (int)getpid());
    FILE *f = fopen(path, "wb");
    fputs("one\ntwo\r\nlast", f);
    fclose(f);
    CHECK_OK(leat_dataset_from_lines((const char *const[]){path, path}, 2, "", &d));
    CHECK_STR(all_of(d, 1), "one two last one two last ");
    CHECK_OK(leat_dataset_from_lines((const char *const[]){path}, 1, "", &d));
    check_position(d, 2);
    CHECK_OK(leat_dataset_from_fixed((const char *const[]){path}, 1, "", 2, 4, 3, &d));
    CHECK_STR(all_of(d, 1), "e\\ntw o\\r\\nl ");
    CHECK_OK(leat_dataset_from_fixed((const char *const[]){path}, 1, "", 0, 5, 0, &d));
    leat_data_iterator *it;
    leat_tensor *t;
    CHECK_OK(leat_data_iterator_open(d, &it));
    leat_dataset_free(d);
    CHECK_ERROR(leat_data_iterator_next(it, &t, 1), INVALID_ARGUMENT,
                "has body length 13 bytes, which is not an exact multiple of the record length (5");
    leat_data_iterator_close(it);
    CHECK_ERROR(leat_dataset_from_fixed((const char *const[]){path}, 1, "", 0, 0, 0, &d),
                INVALID_ARGUMENT, "`record_bytes` must be > 0");
    CHECK_ERROR(leat_dataset_from_lines((const char *const[]){path}, 1, "XZ", &d), INVALID_ARGUMENT,
                "not \"XZ\"");
    unlink(path);
}

/* ---- Examples ---- */

static leat_status example_text(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out,
                                int n_out)
{
    const int64_t x = number(in[0]);
    const float pair[] = {(float)x, 0.5f};
    leat_example *e = leat_example_new();
    void *bytes;
    size_t size;
    leat_status s = leat_example_add_ints(e, "label", &x, 1);
    if (!s && x != 3)
        s = leat_example_add_floats(e, "pair", pair, 2);
    for (int64_t i = 0; i < x && !s; i++)
        s = leat_example_add_bytes(e, "words", "ab", 1 + (size_t)i % 2);
    if (!s)
        s = leat_example_encode(e, &bytes, &size);
    leat_example_free(e);
    if (s)
        return s;
    out[0] = leat_scalar_string(bytes, size);
    free(bytes);
    return NULL;
}

static void parse_fails(const leat_feature_spec *f, const char *words)
{
    leat_dataset *d;
    leat_data_iterator *it;
    leat_tensor *t;
    CHECK_OK(leat_dataset_from_range(3, 4, 1, &d));
    CHECK_OK(leat_dataset_map(d, example_text, NULL, strings, 1, &d));
    CHECK_OK(leat_dataset_parse(d, f, 1, &d));
    CHECK_OK(leat_data_iterator_open(d, &it));
    leat_dataset_free(d);
    CHECK_ERROR(leat_data_iterator_next(it, &t, 1), INVALID_ARGUMENT, words);
    leat_data_iterator_close(it);
}

static void examples(void)
{
    leat_dataset *d;
    const float none[] = {-1, -1};
    leat_tensor *missing, *label = leat_scalar_int64(0);
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(2), none, &missing));
    const leat_feature_spec features[] = {
        {"label", LEAT_INT64, leat_shape(), NULL},
        {"pair", LEAT_FLOAT, leat_shape(2), missing},
        {"words", LEAT_STRING, leat_shape(-1), NULL},
    };
    CHECK_OK(leat_dataset_from_range(0, 4, 1, &d));
    CHECK_OK(leat_dataset_map(d, example_text, NULL, strings, 1, &d));
    CHECK_OK(leat_dataset_parse(d, features, 3, &d));
    leat_tensor_unref(missing);
    CHECK_STR(all_of(d, 3), "0,[0 0.5],[] 1,[1 0.5],[a] 2,[2 0.5],[a ab] 3,[-1 -1],[a ab a] ");

    parse_fails(&(leat_feature_spec){"pair", LEAT_FLOAT, leat_shape(2), NULL},
                "Feature: pair (data type: float) is required but could not be found.");
    parse_fails(&(leat_feature_spec){"label", LEAT_FLOAT, leat_shape(), NULL},
                "Key: label.  Data types don't match. Expected type: float, Actual type: int64");
    parse_fails(&(leat_feature_spec){"words", LEAT_STRING, leat_shape(2), NULL},
                "Key: words.  Number of string values != expected.  values size: 3 but output "
                "shape: [2]");
    parse_fails(&(leat_feature_spec){"words", LEAT_STRING, leat_shape(-1, 2), NULL},
                "values size: 3 but output shape: [?,2]");
    parse_fails(&(leat_feature_spec){"label", LEAT_INT32, leat_shape(), NULL},
                "Key: label.  A feature is float, int64 or string; it cannot be parsed as int32");
    parse_fails(&(leat_feature_spec){"label", LEAT_INT64, leat_shape(2, -1), NULL},
                "may have one unknown dimension, the first");
    parse_fails(&(leat_feature_spec){"label", LEAT_INT64, leat_shape(3), label},
                "Key: label.  The default is int64 []; the feature is int64 [3]");
    parse_fails(&(leat_feature_spec){NULL, LEAT_INT64, leat_shape(), NULL}, "feature 0 has no key");
    leat_tensor_unref(label);
    CHECK_OK(leat_dataset_parse(range(1), features, 1, &d));
    leat_data_iterator *it;
    leat_tensor *t;
    CHECK_OK(leat_data_iterator_open(d, &it));
    leat_dataset_free(d);
    CHECK_ERROR(leat_data_iterator_next(it, &t, 1), INVALID_ARGUMENT,
                "An Example is one string scalar; the element is 1 tensors, int64");
    leat_data_iterator_close(it);
}

/* ---- Mistakes ---- */

static void first_fails(leat_dataset *d, const char *words)
{
    leat_data_iterator *it;
    leat_tensor *t;
    CHECK_OK(leat_data_iterator_open(d, &it));
    leat_dataset_free(d);
    CHECK_ERROR(leat_data_iterator_next(it, &t, 1), INVALID_ARGUMENT, words);
    leat_data_iterator_close(it);
}

static void mistakes(void)
{
    leat_dataset *d;
    CHECK_ERROR(leat_dataset_parallel_map(range(1), 0, twice, NULL, ints, 1, &d), INVALID_ARGUMENT,
                "num_parallel_calls must be greater than zero.");
    CHECK_ERROR(leat_dataset_map(range(1), NULL, NULL, ints, 1, &d), INVALID_ARGUMENT,
                "The function is NULL");
    CHECK_ERROR(leat_dataset_flat_map(range(1), below, NULL, ints, 0, &d), INVALID_ARGUMENT,
                "An element has at least one tensor, not 0");
    CHECK_ERROR(leat_dataset_interleave(range(1), below, NULL, ints, 1, 0, 1, false, &d),
                INVALID_ARGUMENT, "`cycle_length` must be > 0");
    CHECK_ERROR(leat_dataset_shard(range(1), 2, 2, &d), INVALID_ARGUMENT,
                "Index must be between 0 and 1 (currently index = 2).");
    CHECK_ERROR(leat_dataset_window(range(1), 2, 0, 1, false, &d), INVALID_ARGUMENT,
                "Window shift must be greater than zero.");
    CHECK_ERROR(leat_dataset_shuffle_and_repeat(range(1), 2, 0, 0, &d), INVALID_ARGUMENT,
                "count must be greater than zero or equal to -1.");
    CHECK_ERROR(leat_dataset_unbatch(range(1), &d), INVALID_ARGUMENT,
                "Cannot unbatch an input with scalar components.");
    CHECK_ERROR(leat_dataset_parse(range(1), NULL, 1, &d), INVALID_ARGUMENT, "wants features");
    leat_dataset *texts;
    CHECK_OK(leat_dataset_from_lines((const char *const[]){"x"}, 1, "", &texts));
    CHECK_ERROR(leat_dataset_concatenate(range(1), texts, &d), INVALID_ARGUMENT,
                "have different output_types int64 and string");
    leat_tensor *x = leat_scalar_float(1);
    CHECK_ERROR(leat_dataset_from_variant(x, &d), INVALID_ARGUMENT,
                "Dataset tensor must be a scalar of dtype DT_VARIANT.");
    leat_tensor_unref(x);
    CHECK_ERROR(leat_dataset_from_generator(&(leat_generator){0}, ints, 1, &d), INVALID_ARGUMENT,
                "The generator has no function `next`");
    CHECK_OK(leat_dataset_from_range(100, 101, 1, &d));
    CHECK_OK(leat_dataset_filter(d, odd, NULL, &d));
    first_fails(d, "neither odd nor even\n\t [[dataset filter (FilterDataset), element 0]]");
    CHECK_OK(leat_dataset_from_range(99, 100, 1, &d));
    CHECK_OK(leat_dataset_flat_map(d, below, NULL, ints, 1, &d));
    first_fails(d, "The function has given no dataset");
    CHECK_OK(leat_dataset_flat_map(range(1), pair, NULL, ints, 1, &d));
    first_fails(d, "The function has given a dataset whose elements have 2 tensors, not 1");
    CHECK_OK(leat_dataset_flat_map(range(1), below, NULL, strings, 1, &d));
    first_fails(d, "The function has given a dataset whose tensor 0 is int64, not string");
    CHECK_OK(leat_dataset_map(range(1), twice, NULL, strings, 1, &d));
    first_fails(d, "Tensor 0 of the function is int64, not string");
}

int main(int argc, char **argv)
{
    setenv("LEAT_NUM_THREADS", "4", 1); /* read once */
    return RUN(argc, argv, {"functions", functions}, {"at_the_same_time", at_the_same_time},
               {"generators", generators}, {"joined", joined}, {"batched", batched},
               {"caches", caches}, {"sparse", sparse}, {"texts", texts}, {"examples", examples},
               {"mistakes", mistakes});
}
