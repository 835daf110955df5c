/* bundle_test.c -- checkpoints: the same bytes as TensorFlow's, and TensorFlow's read. */
#include "io/bundle.h"

#include "core/buffer.h"
#include "core/element.h"
#include "io/crc32c.h"
#include "io/files.h"

/* i % 100 in a tensor of any number type. */
static leat_tensor *ramp(leat_dtype t, leat_shape s)
{
    leat_tensor *x = NULL;
    CHECK_OK(leat_tensor_new(t, s, &x));
    for (int64_t i = 0; x && i < x->count; i++) {
        int v = (int)(i % 100);
        switch (t) {
#define CASE(T, type)                                                                              \
    case LEAT_##T:                                                                                 \
        ((type *)x->data)[i] = (type)v;                                                            \
        break;
            CASE(FLOAT, float)
            CASE(DOUBLE, double)
            CASE(INT32, int32_t)
            CASE(UINT8, uint8_t)
            CASE(INT16, int16_t)
            CASE(INT8, int8_t)
            CASE(INT64, int64_t)
            CASE(UINT16, uint16_t)
#undef CASE
        case LEAT_HALF:
            ((leat_half *)x->data)[i] = leat_half_from_float((float)v);
            break;
        case LEAT_BFLOAT16:
            ((leat_bfloat16 *)x->data)[i] = leat_bfloat16_from_float((float)v);
            break;
        case LEAT_BOOL:
            ((bool *)x->data)[i] = v % 2 == 1;
            break;
        case LEAT_COMPLEX64:
            ((leat_complex64 *)x->data)[i].re = (float)v;
            break;
        default:
            CHECK(!"a type that has no numbers");
        }
    }
    return x;
}

static leat_tensor *words(leat_shape s, const leat_string *v)
{
    leat_tensor *x = NULL;
    CHECK_OK(leat_tensor_new(LEAT_STRING, s, &x));
    for (int64_t i = 0; x && i < x->count; i++)
        CHECK(leat_string_set((leat_string *)x->data + i, v[i].data, v[i].size));
    return x;
}

static void add(leat_bundle_writer *w, const char *name, leat_tensor *t)
{
    CHECK_OK(leat_bundle_add(w, name, strlen(name), t));
    leat_tensor_unref(t);
}

static void finish(leat_bundle_writer *w)
{
    CHECK_OK(leat_bundle_finish(w));
    leat_bundle_writer_free(w);
}

static void check_tensor(leat_bundle *b, const char *name, leat_tensor *want)
{
    leat_tensor *got = NULL;
    CHECK_OK(leat_bundle_tensor(b, name, strlen(name), &got));
    if (got && want) {
        char *x = leat_tensor_text(got, -1), *y = leat_tensor_text(want, -1);
        CHECK_STR(x, y);
        CHECK_INT(got->dtype, want->dtype);
        CHECK(leat_shape_equal(&got->shape, &want->shape));
        free(x);
        free(y);
    }
    leat_tensor_unref(got);
    leat_tensor_unref(want);
}

static const struct {
    leat_dtype t;
    const char *name;
} numbers[] = {{LEAT_FLOAT, "float32/v"}, {LEAT_DOUBLE, "float64/v"}, {LEAT_INT32, "int32/v"},
               {LEAT_UINT8, "uint8/v"},   {LEAT_INT16, "int16/v"},    {LEAT_INT8, "int8/v"},
               {LEAT_INT64, "int64/v"},   {LEAT_UINT16, "uint16/v"},  {LEAT_HALF, "float16/v"}};

/* Every kind of tensor, to visit(arg, name, tensor), which takes the tensor. */
static void each_kind(void (*visit)(void *arg, const char *name, leat_tensor *t), void *arg)
{
    static char long_one[300];
    memset(long_one, 'd', 300);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        visit(arg, numbers[i].name, ramp(numbers[i].t, leat_shape(3, 4)));
    visit(arg, "bool", ramp(LEAT_BOOL, leat_shape(5)));
    visit(arg, "complex", ramp(LEAT_COMPLEX64, leat_shape(2, 2)));
    visit(arg, "scalar", leat_scalar_int64(7));
    visit(arg, "empty", ramp(LEAT_FLOAT, leat_shape(0, 3)));
    visit(arg, "strings",
          words(leat_shape(2, 2),
                (leat_string[]){{NULL, 0}, {"a", 1}, {"b\0c", 3}, {long_one, 300}}));
    visit(arg, "no_strings", words(leat_shape(0), NULL));
    visit(arg, "empty_string", words(leat_shape(), (leat_string[]){{NULL, 0}}));
    visit(arg, "bfloat16", ramp(LEAT_BFLOAT16, leat_shape(3)));
}

static void visit_add(void *arg, const char *name, leat_tensor *t)
{
    add(arg, name, t);
}

static void visit_check(void *arg, const char *name, leat_tensor *t)
{
    check_tensor(arg, name, t);
}

static void kinds(void)
{
    leat_bundle_writer *w;
    CHECK_OK(leat_bundle_writer_open(here("kinds"), &w));
    each_kind(visit_add, w);
    finish(w);
    same_file(here("kinds.index"), theirs("kinds.index"));
    same_file(here("kinds.data-00000-of-00001"), theirs("kinds.data-00000-of-00001"));
    const char *prefixes[] = {here("kinds"), theirs("kinds")};
    for (int i = 0; i < 2; i++) {
        leat_bundle *b;
        CHECK_OK(leat_bundle_open(prefixes[i], &b));
        CHECK_INT(leat_bundle_table(b)->n, 18);
        each_kind(visit_check, b);
        leat_bundle_free(b);
    }
}

static void scopes(void)
{
    leat_bundle_writer *w;
    char name[64];
    CHECK_OK(leat_bundle_writer_open(here("scopes"), &w));
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "layer_%d/kernel/Adam_%d", i / 4, i % 4);
        add(w, name, ramp(LEAT_FLOAT, leat_shape(i + 1)));
    }
    finish(w);
    same_file(here("scopes.index"), theirs("scopes.index"));
    same_file(here("scopes.data-00000-of-00001"), theirs("scopes.data-00000-of-00001"));
}

static uint32_t zip_crc(const char *p, size_t n)
{
    uint32_t c = ~0u;
    for (; n; n--, p++) {
        c ^= (unsigned char)*p;
        for (int i = 0; i < 8; i++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}

/* An index of several blocks. */
static void wide(void)
{
    leat_bundle_writer *w;
    char name[256], line[256], file[64];
    CHECK_OK(leat_bundle_writer_open(here("wide"), &w));
    for (int i = 0; i < 3000; i++) {
        int n = snprintf(name, sizeof(name), "%d/", (int)(i * 7919LL % 100003));
        memset(name + n, 'x', 100 + (size_t)(i % 37));
        name[n + 100 + i % 37] = 0;
        add(w, name, leat_scalar_float((float)i));
    }
    finish(w);
    FILE *sums = fopen(theirs("wide.sums"), "r");
    size_t want_n;
    unsigned want_crc;
    while (sums && fgets(line, sizeof(line), sums)) {
        CHECK_INT(sscanf(line, "%63s %zu %x", file, &want_n, &want_crc), 3);
        char *bytes = NULL;
        size_t n = 0;
        CHECK_OK(leat_file_read(here(file), &bytes, &n));
        CHECK_INT(n, want_n);
        CHECK_INT(zip_crc(bytes, n), want_crc);
        free(bytes);
    }
    CHECK(sums);
    fclose(sums);
    leat_bundle *b;
    CHECK_OK(leat_bundle_open(here("wide"), &b));
    CHECK_INT(leat_bundle_table(b)->n, 3001);
    memset(name, 'x', 256);
    memcpy(name, "7919/", 5);
    name[5 + 101] = 0;
    check_tensor(b, name, leat_scalar_float(1));
    leat_bundle_free(b);
}

static void add_part(leat_bundle_writer *w, const char *spec, const float *v)
{
    leat_shape whole, part;
    leat_slice slice;
    leat_tensor *t;
    CHECK_OK(leat_slice_parse(spec, strlen(spec), &whole, &slice, &part));
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, part, v, &t));
    CHECK_OK(leat_bundle_add_slice(w, "part", 4, &whole, &slice, t));
    leat_tensor_unref(t);
}

static void check_part(leat_bundle *b, const char *spec)
{
    leat_shape whole, part;
    leat_slice slice, all;
    leat_bundle_item item;
    float got[40], want[40];
    leat_tensor *t = ramp(LEAT_FLOAT, leat_shape(10, 4));
    CHECK_OK(leat_slice_parse(spec, strlen(spec), &whole, &slice, &part));
    CHECK_OK(leat_bundle_find(b, "part", 4, &slice, &item));
    item.data = got;
    CHECK_OK(leat_bundle_read(b, &item, 1));
    CHECK(leat_shape_equal(&item.shape, &part));
    all = leat_slice_all(2);
    CHECK_OK(leat_slice_copy(LEAT_FLOAT, &whole, &all, t->data, &slice, want));
    CHECK(memcmp(got, want, (size_t)leat_shape_count(&part) * 4) == 0);
    leat_bundle_item_release(&item);
    leat_tensor_unref(t);
}

static void shards(void)
{
    leat_bundle_writer *w;
    float v[3][20];
    for (int i = 0; i < 20; i++)
        v[0][i] = (float)i;
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 4; j++)
            *(j == 0 ? &v[1][i] : &v[2][i * 3 + j - 1]) = (float)(20 + i * 4 + j);
    CHECK_OK(leat_bundle_writer_open(here("shard0"), &w));
    add_part(w, "10 4 0,5:-", v[0]);
    add(w, "a", ramp(LEAT_INT32, leat_shape(3)));
    finish(w);
    CHECK_OK(leat_bundle_writer_open(here("shard1"), &w));
    add_part(w, "10 4 5,5:0,1", v[1]);
    add_part(w, "10 4 5,5:1,3", v[2]);
    add(w, "b", ramp(LEAT_INT32, leat_shape(4)));
    finish(w);
    same_file(here("shard0.index"), theirs("shard0.index"));
    same_file(here("shard1.index"), theirs("shard1.index"));
    char a[512], b[512], merged[512];
    snprintf(a, 512, "%s", here("shard0"));
    snprintf(b, 512, "%s", here("shard1"));
    snprintf(merged, 512, "%s", here("merged"));
    CHECK_OK(leat_bundle_merge((const char *[]){a, b}, 2, merged));
    same_file(here("merged.index"), theirs("merged.index"));
    same_file(here("merged.data-00000-of-00002"), theirs("merged.data-00000-of-00002"));
    same_file(here("merged.data-00001-of-00002"), theirs("merged.data-00001-of-00002"));
    CHECK(!leat_bundle_exists(a));
    leat_bundle *bundle;
    CHECK_OK(leat_bundle_open(merged, &bundle));
    check_tensor(bundle, "part", ramp(LEAT_FLOAT, leat_shape(10, 4)));
    check_tensor(bundle, "a", ramp(LEAT_INT32, leat_shape(3)));
    check_part(bundle, "10 4 0,5:-");
    check_part(bundle, "10 4 -:-");
    check_part(bundle, "10 4 0,10:-");
    check_part(bundle, "10 4 3,4:1,2");
    check_part(bundle, "10 4 9,1:3,1");
    leat_bundle_free(bundle);
    /* half of a tensor is no tensor */
    leat_tensor *t;
    CHECK_OK(leat_bundle_open(theirs("shard0"), &bundle));
    CHECK_ERROR(leat_bundle_tensor(bundle, "part", 4, &t), INVALID_ARGUMENT,
                "Does not have sufficient slices for partitioned tensor part");
    CHECK_ERROR(leat_bundle_tensor(bundle, "c", 1, &t), NOT_FOUND, "Key c not found in checkpoint");
    leat_bundle_free(bundle);
}

static void bad_specs(void)
{
    static const struct {
        const char *spec, *words;
    } rows[] = {
        {"10", "Need least two elements"},
        {"10 4 0,5", "Mismatching ranks"},
        {"10 x 0,5:-", "Non numerical dimension"},
        {"10 4 0,11:-", "Extent in dimension 0 out of bounds"},
        {"10 4 0:-", "Expected a pair of numbers or '-'"},
        {"10 4 -1,5:-", "Expected non-negative start and positive length"},
        {"10 4 0,0:-", "Expected non-negative start and positive length"},
        {"10 4 9223372036854775807,9223372036854775807:-", "out of bounds"},
        {"9223372036854775807 9223372036854775807 -:-", "too many elements"},
        {"1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 -", "Non numerical"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        leat_shape whole, part;
        leat_slice slice;
        leat_status s = leat_slice_parse(rows[i].spec, strlen(rows[i].spec), &whole, &slice, &part);
        if (!strstr(leat_status_message(s), rows[i].words)) {
            test_failures++;
            printf("%s: %s\n", rows[i].spec, leat_status_message(s));
        }
        leat_status_free(s);
    }
}

/* Each byte of an index changed: an error, or what was there before, never a crash. */
static void broken_index(void)
{
    char *bytes;
    size_t n;
    int unseen = 0;
    CHECK_OK(leat_file_read(theirs("merged.index"), &bytes, &n));
    for (size_t i = 0; i < n; i++) {
        char *copy = malloc(n);
        memcpy(copy, bytes, n);
        copy[i] = (char)(copy[i] ^ 0x41);
        leat_bundle *b = NULL;
        leat_status s = leat_bundle_parse(copy, n, theirs("merged"), &b);
        unseen += !s && i < n - 48; /* the footer's padding has no checksum */
        leat_status_free(s);
        leat_bundle_free(b);
    }
    CHECK_INT(unseen, 13); /* an empty block that nobody uses */
    for (size_t cut = 0; cut < n; cut++) {
        char *copy = malloc(cut + 1);
        memcpy(copy, bytes, cut);
        leat_bundle *b = NULL;
        CHECK_ERROR(leat_bundle_parse(copy, cut, "x", &b), DATA_LOSS, "sstable");
    }
    free(bytes);
}

static void broken_data(void)
{
    leat_bundle *b;
    leat_tensor *t = NULL;
    char *bytes;
    size_t n;
    unlink(here("broken.data-00000-of-00001"));
    copy_file(theirs("kinds.index"), here("broken.index"));
    CHECK_OK(leat_file_read(theirs("kinds.data-00000-of-00001"), &bytes, &n));
    CHECK_OK(leat_bundle_open(here("broken"), &b));
    CHECK_ERROR(leat_bundle_tensor(b, "bool", 4, &t), NOT_FOUND, "No such file or directory");
    leat_bundle_free(b);
    CHECK_OK(leat_file_write(here("broken.data-00000-of-00001"), bytes, 3));
    CHECK_OK(leat_bundle_open(here("broken"), &b));
    CHECK_ERROR(leat_bundle_tensor(b, "bool", 4, &t), DATA_LOSS, "has 3 bytes");
    leat_bundle_free(b);
    for (size_t i = 0; i < n; i++)
        bytes[i] ^= 1;
    CHECK_OK(leat_file_write(here("broken.data-00000-of-00001"), bytes, n));
    CHECK_OK(leat_bundle_open(here("broken"), &b));
    CHECK_ERROR(leat_bundle_tensor(b, "bool", 4, &t), DATA_LOSS, "Checksum does not match");
    CHECK_ERROR(leat_bundle_tensor(b, "strings", 7, &t), DATA_LOSS, "checksum does not match");
    leat_bundle_free(b);
    free(bytes);
}

/* A writer that died between the two names: the old index with the new data, and the old data under
 * the name that rule 3 gives it. */
static void replaced_halfway(void)
{
    leat_bundle_writer *w;
    char prefix[512], data[600], index[600];
    snprintf(prefix, 512, "%s", here("twice"));
    snprintf(data, 600, "%s.data-00000-of-00001", prefix);
    snprintf(index, 600, "%s.index", prefix);
    CHECK_OK(leat_bundle_writer_open(prefix, &w));
    add(w, "x", leat_scalar_float(1));
    finish(w);
    char *bytes;
    size_t n;
    CHECK_OK(leat_file_read(index, &bytes, &n));
    char *old = leat_bundle_old_path(data, leat_crc32c(bytes, n));
    unlink(old);
    CHECK_INT(link(data, old), 0);
    CHECK_OK(leat_bundle_writer_open(here("other"), &w));
    add(w, "x", leat_scalar_float(2));
    finish(w);
    copy_file(here("other.data-00000-of-00001"), data);
    leat_bundle *b;
    CHECK_OK(leat_bundle_open(prefix, &b));
    check_tensor(b, "x", leat_scalar_float(1));
    leat_bundle_free(b);
    /* the next writer leaves all as it should be */
    CHECK_OK(leat_bundle_writer_open(prefix, &w));
    add(w, "x", leat_scalar_float(3));
    finish(w);
    CHECK(access(old, F_OK) != 0);
    CHECK_OK(leat_bundle_open(prefix, &b));
    check_tensor(b, "x", leat_scalar_float(3));
    leat_bundle_free(b);
    free(old);
    free(bytes);
}

static void large(void)
{
    leat_bundle_writer *w;
    leat_tensor *t = ramp(LEAT_FLOAT, leat_shape(3000001)),
                *u = ramp(LEAT_INT64, leat_shape(1500007));
    CHECK_OK(leat_bundle_writer_open(here("large"), &w));
    add(w, "small", ramp(LEAT_FLOAT, leat_shape(3)));
    add(w, "t", leat_tensor_ref(t));
    add(w, "u", leat_tensor_ref(u));
    finish(w);
    leat_bundle *b;
    CHECK_OK(leat_bundle_open(here("large"), &b));
    leat_bundle_item items[2];
    float *x = malloc(3000001 * 4);
    int64_t *y = malloc(1500007 * 8);
    CHECK_OK(leat_bundle_find(b, "t", 1, NULL, &items[0]));
    CHECK_OK(leat_bundle_find(b, "u", 1, NULL, &items[1]));
    items[0].data = x;
    items[1].data = y;
    CHECK_OK(leat_bundle_read(b, items, 2));
    CHECK(memcmp(x, t->data, 3000001 * 4) == 0);
    CHECK(memcmp(y, u->data, 1500007 * 8) == 0);
    leat_bundle_item_release(&items[0]);
    leat_bundle_item_release(&items[1]);
    leat_bundle_free(b);
    free(x);
    free(y);
    leat_tensor_unref(t);
    leat_tensor_unref(u);
    unlink(here("large.data-00000-of-00001"));
}

static void refused(void)
{
    leat_bundle_writer *w;
    CHECK_ERROR(leat_bundle_writer_open("/proc/none/x", &w), NOT_FOUND, "/proc/none");
    CHECK_OK(leat_file_write(here("a_file"), "", 0));
    CHECK_ERROR(leat_bundle_writer_open(here("a_file/x"), &w), FAILED_PRECONDITION,
                "Not a directory");
    CHECK_OK(leat_bundle_writer_open(here("dup"), &w));
    add(w, "x", leat_scalar_float(1));
    leat_tensor *t = leat_scalar_float(1);
    CHECK_ERROR(leat_bundle_add(w, "x", 1, t), INVALID_ARGUMENT, "Adding duplicate key: x");
    CHECK_ERROR(leat_bundle_add(w, "", 0, t), INVALID_ARGUMENT, "without a name");
    leat_tensor_unref(t);
    leat_bundle_writer_free(w);
    CHECK(!leat_bundle_exists(here("dup")));
    leat_bundle *b;
    CHECK_ERROR(leat_bundle_open(here("dup"), &b), NOT_FOUND, "dup.index; No such file");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"kinds", kinds}, {"scopes", scopes}, {"wide", wide}, {"shards", shards},
               {"bad_specs", bad_specs}, {"broken_index", broken_index},
               {"broken_data", broken_data}, {"replaced_halfway", replaced_halfway},
               {"large", large}, {"refused", refused});
}
