/* window_sweep_test.c -- convolutions, pooling, resizing, normalisation and the ops that move
 * blocks of images, with sizes that make no sense. A row is an op as it works. Each number in it,
 * of an attribute, of a shape or of a tensor of integers, is replaced in turn by zero, by negative
 * numbers and by numbers that overflow; each list is made shorter. All of that gives a result or
 * an error that names the node, in bounded time and memory; what can make no sense is an error.
 * Each runs twice, with its inputs as constants and as feeds of unknown shape. Words on the command
 * line choose rows by the op. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "ops/row_run.h"
#include "sanitizers.h"

/* A row uses at most 1.5 GiB, a run takes at most 2 s and not much more, a row 5 minutes. */
enum { RUN_MS = 2000, LATE_MS = 8000, HANG_SECONDS = 300 };
static const int64_t memory_bound = INT64_C(1536) << 20;

/* What makes no sense in a place, so that a result is a mistake. */
enum { ZERO = 1, NEGATIVE = 2, WIDE = 4 /* does not fit into 32 bits */ };

/* By the name of the attribute. */
static const struct {
    const char *name;
    int senseless;
} attrs[] = {
    {"strides", ZERO | NEGATIVE | WIDE},
    {"ksize", ZERO | NEGATIVE | WIDE},
    {"ksizes", ZERO | NEGATIVE | WIDE},
    {"dilations", ZERO | NEGATIVE | WIDE},
    {"rates", ZERO | NEGATIVE | WIDE},
    {"explicit_paddings", NEGATIVE | WIDE},
    {"block_size", ZERO | NEGATIVE | WIDE},
    {"pooling_ratio", ZERO | NEGATIVE | WIDE},
    {"depth_radius", WIDE},
};

#define IMAGES "float[2,6,5,4]{1 -2 0.5 3 0.25}"
#define SMALL "float[2,3,3,4]{1 2 -3}"
#define VOLUMES "float[1,4,5,4,2]{1 -2 0.5 3 0.25}"
#define FILTER "float[3,2,4,3]{1 -1 0.5}"
#define ONES "strides=[1 1 1 1], dilations=[1 1 1 1]"
#define PADDED                                                                                     \
    "padding=\"EXPLICIT\", strides=[1 2 1 1], dilations=[1 1 2 1], "                               \
    "explicit_paddings=[0 0 1 2 0 1 0 0]"
#define FIRST "padding=\"SAME\", data_format=\"NCHW\", strides=[1 1 2 1], dilations=[1 1 1 2]"
#define STEPS_3D "strides=[1 2 1 1 1], dilations=[1 1 1 1 1], padding=\"SAME\""
#define POOL "ksize=[1 2 3 1], strides=[1 2 2 1], padding=\"SAME\""
#define POOL_VALID "ksize=[1 2 3 1], strides=[1 2 1 1], padding=\"VALID\""
#define POOL_FIRST "ksize=[1 1 2 3], strides=[1 1 2 2], padding=\"SAME\", data_format=\"NCHW\""
#define POOL_3D "ksize=[1 2 2 3 1], strides=[1 2 2 2 1], padding=\"SAME\""

/* `ints` is what makes no sense among the elements of int32 and int64 inputs. */
static const struct {
    const char *text;
    int ints;
} rows[] = {
    {"Conv2D(" IMAGES ", " FILTER "; T=float, " ONES ", padding=\"VALID\")", 0},
    {"Conv2D(" IMAGES ", " FILTER "; T=float, " PADDED ")", 0},
    {"Conv2D(float[2,4,6,5]{1 -2}, " FILTER "; T=float, " FIRST ")", 0},
    {"Conv2D(float[1,9,9,16]{1 -2}, float[5,5,16,32]{1 -1}; T=float, " ONES ", padding=\"SAME\")",
     0},
    {"Conv2DBackpropInput(int32[4]{2 6 5 4}, " FILTER ", float[2,4,4,3]{1 2}; T=float, " ONES
     ", padding=\"VALID\")",
     NEGATIVE},
    {"Conv2DBackpropInput(int32[4]{2 6 5 4}, " FILTER ", float[2,4,4,3]{1 2}; T=float, " PADDED ")",
     NEGATIVE},
    {"Conv2DBackpropInput(int32[4]{2 4 6 5}, " FILTER ", float[2,3,3,5]{1 2}; T=float, " FIRST ")",
     NEGATIVE},
    {"Conv2DBackpropFilter(" IMAGES ", int32[4]{3 2 4 3}, float[2,4,4,3]{1 2}; T=float, " ONES
     ", padding=\"VALID\")",
     NEGATIVE},
    {"Conv2DBackpropFilter(" IMAGES ", int32[4]{3 2 4 3}, float[2,4,4,3]{1 2}; T=float, " PADDED
     ")",
     NEGATIVE},
    {"DepthwiseConv2dNative(" IMAGES ", float[3,2,4,2]{1 -1}; T=float, " ONES ", padding=\"SAME\")",
     0},
    {"DepthwiseConv2dNativeBackpropInput(int32[4]{2 6 5 4}, float[3,2,4,2]{1 -1}, "
     "float[2,6,5,8]{1 2}; T=float, " ONES ", padding=\"SAME\")",
     NEGATIVE},
    {"DepthwiseConv2dNativeBackpropFilter(" IMAGES
     ", int32[4]{3 2 4 2}, float[2,6,5,8]{1 2}; T=float, " ONES ", padding=\"SAME\")",
     NEGATIVE},
    {"Conv3D(" VOLUMES ", float[2,3,2,2,3]{1 -1}; T=float, " STEPS_3D ")", 0},
    {"Conv3DBackpropInputV2(int32[5]{1 4 5 4 2}, float[2,3,2,2,3]{1 -1}, "
     "float[1,2,5,4,3]{1 2}; T=float, " STEPS_3D ")",
     NEGATIVE},
    {"Conv3DBackpropFilterV2(" VOLUMES
     ", int32[5]{2 3 2 2 3}, float[1,2,5,4,3]{1 2}; T=float, " STEPS_3D ")",
     NEGATIVE},
    {"Conv3DBackpropInput(" VOLUMES
     ", float[2,3,2,2,3]{1 -1}, float[1,2,5,4,3]{1 2}; T=float, " STEPS_3D ")",
     0},
    {"Conv3DBackpropFilter(" VOLUMES
     ", float[2,3,2,2,3]{1 -1}, float[1,2,5,4,3]{1 2}; T=float, " STEPS_3D ")",
     0},
    {"FusedPadConv2D(" IMAGES ", int32[4,2]{0 0 1 2 1 0 0 0}, " FILTER
     "; T=float, mode=\"REFLECT\", strides=[1 1 1 1], padding=\"SAME\")",
     NEGATIVE},
    {"FusedResizeAndPadConv2D(" IMAGES ", int32[2]{7 9}, int32[4,2]{0 0 1 2 1 0 0 0}, " FILTER
     "; T=float, mode=\"SYMMETRIC\", strides=[1 1 1 1], padding=\"SAME\")",
     NEGATIVE},
    {"Dilation2D(" IMAGES ", float[2,3,4]{1 -1}; T=float, strides=[1 2 1 1], rates=[1 1 2 1], "
     "padding=\"SAME\")",
     0},
    {"Dilation2DBackpropInput(" IMAGES ", float[2,3,4]{1 -1}, float[2,3,5,4]{1}; T=float, "
     "strides=[1 2 1 1], rates=[1 1 2 1], padding=\"SAME\")",
     0},
    {"Dilation2DBackpropFilter(" IMAGES ", float[2,3,4]{1 -1}, float[2,3,5,4]{1}; T=float, "
     "strides=[1 2 1 1], rates=[1 1 2 1], padding=\"SAME\")",
     0},
    {"MaxPool(" IMAGES "; T=float, " POOL ")", 0},
    {"MaxPool(" IMAGES "; T=float, " POOL_VALID ")", 0},
    {"MaxPool(float[2,4,6,5]{1 -2}; T=float, " POOL_FIRST ")", 0},
    {"MaxPool(" IMAGES "; T=float, ksize=[1 1 1 2], strides=[1 1 1 2], padding=\"SAME\")", 0},
    {"MaxPool(qint8[2,1,6,5,4]{1 -2}; T=qint8, ksize=[1 1 2 3], strides=[1 1 2 2], "
     "padding=\"SAME\", "
     "data_format=\"NCHW_VECT_C\")",
     0},
    {"MaxPoolV2(" IMAGES ", int32[4]{1 2 3 1}, int32[4]{1 2 2 1}; T=float, padding=\"SAME\")",
     ZERO | NEGATIVE},
    {"MaxPoolGrad(" IMAGES ", " SMALL ", " SMALL "; T=float, " POOL ")", 0},
    {"MaxPoolGradV2(" IMAGES ", " SMALL ", " SMALL
     ", int32[4]{1 2 3 1}, int32[4]{1 2 2 1}; T=float, "
     "padding=\"SAME\")",
     ZERO | NEGATIVE},
    {"MaxPoolGradGrad(" IMAGES ", " SMALL ", " IMAGES "; T=float, " POOL ")", 0},
    {"MaxPoolGradGradV2(" IMAGES ", " SMALL ", " IMAGES
     ", int32[4]{1 2 3 1}, int32[4]{1 2 2 1}; T=float, "
     "padding=\"SAME\")",
     ZERO | NEGATIVE},
    {"MaxPoolWithArgmax(" IMAGES "; T=float, " POOL ")", 0},
    {"MaxPoolGradWithArgmax(" IMAGES ", " SMALL
     ", int64[2,3,3,4]{7 0 119}; T=float, Targmax=int64, " POOL ")",
     NEGATIVE},
    {"MaxPoolGradGradWithArgmax(" IMAGES ", " IMAGES
     ", int64[2,3,3,4]{7 0 119}; T=float, Targmax=int64, " POOL ")",
     NEGATIVE},
    {"AvgPool(" IMAGES "; T=float, " POOL ")", 0},
    {"AvgPool(float[2,4,6,5]{1 -2}; T=float, " POOL_FIRST ")", 0},
    {"AvgPoolGrad(int32[4]{2 6 5 4}, " SMALL "; T=float, " POOL ")", NEGATIVE},
    {"MaxPool3D(" VOLUMES "; T=float, " POOL_3D ")", 0},
    {"MaxPool3DGrad(" VOLUMES ", float[1,2,3,2,2]{1 2}, float[1,2,3,2,2]{1 2}; T=float, " POOL_3D
     ")",
     0},
    {"MaxPool3DGradGrad(" VOLUMES ", float[1,2,3,2,2]{1 2}, " VOLUMES "; T=float, " POOL_3D ")", 0},
    {"AvgPool3D(" VOLUMES "; T=float, " POOL_3D ")", 0},
    {"AvgPool3DGrad(int32[5]{1 4 5 4 2}, float[1,2,3,2,2]{1 2}; T=float, " POOL_3D ")", NEGATIVE},
    {"FractionalMaxPool(" IMAGES "; T=float, pooling_ratio=[1.0 1.5 1.25 1.0], deterministic=true)",
     0},
    {"FractionalAvgPool(" IMAGES "; T=float, pooling_ratio=[1.0 1.5 1.25 1.0], deterministic=true)",
     0},
    {"FractionalMaxPoolGrad(float[1,4,4,1]{1 2 3}, float[1,2,2,1]{3}, float[1,2,2,1]{1}, "
     "int64[3]{0 2 4}, int64[3]{0 2 4}; T=float, overlapping=false)",
     NEGATIVE},
    {"FractionalAvgPoolGrad(int64[4]{1 4 4 1}, float[1,2,2,1]{1}, int64[3]{0 2 4}, "
     "int64[3]{0 2 4}; T=float, overlapping=false)",
     NEGATIVE},
    {"LRN(" IMAGES "; T=float, depth_radius=2, bias=1.0, alpha=0.5, beta=0.75)", 0},
    {"LRNGrad(" IMAGES ", " IMAGES ", " IMAGES "; T=float, depth_radius=2, bias=1.0)", 0},
    {"FusedBatchNorm(" IMAGES ", float[4]{1}, float[4]{0}, float[0]{}, float[0]{}; T=float)", 0},
    {"FusedBatchNormV2(" IMAGES
     ", float[4]{1}, float[4]{0}, float[4]{0}, float[4]{1}; T=float, U=float, "
     "is_training=false)",
     0},
    {"FusedBatchNormV3(half[2,4,6,5]{1 2}, float[4]{1}, float[4]{0}, float[0]{}, float[0]{}; "
     "data_format=\"NCHW\", T=half, U=float)",
     0},
    {"FusedBatchNormGrad(" IMAGES ", " IMAGES ", float[4]{1}, float[4]{0}, float[4]{1}; T=float)",
     0},
    {"FusedBatchNormGradV2(" IMAGES ", " IMAGES
     ", float[4]{1}, float[4]{0}, float[4]{1}; T=float, U=float, is_training=false)",
     0},
    {"FusedBatchNormGradV3(" IMAGES ", " IMAGES
     ", float[4]{1}, float[4]{0}, float[4]{1}, float[4]{1}; T=float, U=float)",
     0},
    {"BatchNormWithGlobalNormalization(" IMAGES
     ", float[4]{0}, float[4]{1}, float[4]{0}, float[4]{1}; T=float, variance_epsilon=0.001, "
     "scale_after_normalization=true)",
     0},
    {"BatchNormWithGlobalNormalizationGrad(" IMAGES
     ", float[4]{0}, float[4]{1}, float[4]{0}, " IMAGES "; T=float, variance_epsilon=0.001, "
     "scale_after_normalization=true)",
     0},
    {"ResizeBilinear(" IMAGES ", int32[2]{7 9}; T=float, align_corners=true)", ZERO | NEGATIVE},
    {"ResizeNearestNeighbor(" IMAGES ", int32[2]{7 9}; T=float, half_pixel_centers=true)",
     ZERO | NEGATIVE},
    {"ResizeBicubic(" IMAGES ", int32[2]{7 9}; T=float, align_corners=true)", ZERO | NEGATIVE},
    {"ResizeArea(" IMAGES ", int32[2]{7 9}; T=float, align_corners=true)", ZERO | NEGATIVE},
    {"ResizeBilinearGrad(" SMALL ", " IMAGES "; T=float)", 0},
    {"ResizeBicubicGrad(" SMALL ", " IMAGES "; T=float)", 0},
    {"ResizeNearestNeighborGrad(" SMALL ", int32[2]{7 9}; T=float)", NEGATIVE},
    {"QuantizedResizeBilinear(" IMAGES ", int32[2]{7 9}, float[]{0}, float[]{1}; T=float)",
     ZERO | NEGATIVE},
    {"ScaleAndTranslate(" IMAGES ", int32[2]{7 9}, float[2]{1.5 2}, float[2]{1 0}; T=float)",
     ZERO | NEGATIVE},
    {"CropAndResize(" IMAGES ", float[2,4]{0 0 1 1}, int32[2]{0 1}, int32[2]{3 4}; T=float)",
     NEGATIVE},
    {"CropAndResizeGradImage(float[2,3,3,4]{1}, float[2,4]{0 0 1 1}, int32[2]{0 1}, "
     "int32[4]{2 6 5 4}; T=float)",
     NEGATIVE},
    {"CropAndResizeGradBoxes(float[2,3,3,4]{1}, " IMAGES
     ", float[2,4]{0 0 1 1}, int32[2]{0 1}; T=float)",
     NEGATIVE},
    {"ExtractImagePatches(" IMAGES
     "; T=float, ksizes=[1 2 2 1], strides=[1 1 2 1], rates=[1 2 1 1], "
     "padding=\"VALID\")",
     0},
    {"SpaceToBatchND(" IMAGES ", int32[2]{2 3}, int32[2,2]{1 1 0 1}; T=float)", NEGATIVE},
    {"SpaceToBatchND(" IMAGES ", int64[2]{2 3}, int64[2,2]{1 1 0 1}; T=float, Tblock_shape=int64, "
     "Tpaddings=int64)",
     NEGATIVE},
    {"SpaceToBatch(" IMAGES ", int32[2,2]{0 0 1 0}; T=float, block_size=2)", NEGATIVE},
    {"BatchToSpaceND(float[6,2,3,4]{1 2}, int32[2]{2 3}, int32[2,2]{1 1 0 1}; T=float)", NEGATIVE},
    {"BatchToSpaceND(float[6,2,3,4]{1 2}, int64[2]{2 3}, int64[2,2]{1 1 0 1}; T=float, "
     "Tblock_shape=int64, Tcrops=int64)",
     NEGATIVE},
    {"BatchToSpace(float[4,2,3,4]{1 2}, int32[2,2]{0 1 1 0}; T=float, block_size=2)", NEGATIVE},
    {"SpaceToDepth(float[2,6,4,3]{1 2}; T=float, block_size=2)", 0},
    {"DepthToSpace(" IMAGES "; T=float, block_size=2)", 0},
    {"DepthToSpace(float[2,4,6,5]{1}; T=float, block_size=2, data_format=\"NCHW\")", 0},
    {"Dequantize(quint8[2,3]{1 200 3}, float[]{-1}, float[]{1}; T=quint8)", 0},
    {"BiasAdd(float[2,4,6,5]{1}, float[4]{1}; T=float, data_format=\"NCHW\")", 0},
    {"BiasAddGrad(float[2,4,6,5]{1}; T=float, data_format=\"NCHW\")", 0},
};

/* Shared with the child: what it is at, and how many runs it has made. */
typedef struct state {
    char text[1024];
    int runs, results;
} state;

static state *shared;

/* Runs the op in the text. `base`: the row as it stands, which has to give a result. */
static void run(const char *text, bool base, bool senseless)
{
    advisory_row r;
    char row[1100];
    snprintf(shared->text, sizeof(shared->text), "%s", text);
    snprintf(row, sizeof(row), "x any %s", text);
    row_read(&r, row);
    for (int constant = 1; constant >= 0 && !r.broken; constant--) {
        int64_t ms;
        leat_status s = row_run(&r, constant, RUN_MS, &ms);
        const char *words = leat_status_message(s);
        if (getenv("LEAT_SHOW"))
            printf("%s%s: %s %s\n", text, constant ? "" : " (fed)",
                   leat_code_name(leat_status_code(s)), words);
        shared->runs++;
        shared->results += !s;
        if (base && s) {
            test_failures++;
            printf("%s: %s\n", text, words);
        }
        if (!s && senseless) {
            test_failures++;
            printf("%s%s: a result, want an error\n", text, constant ? "" : " (fed)");
        }
        if (s && !strstr(words, "n0")) {
            test_failures++;
            printf("%s: an error that does not name the node: %s\n", text, words);
        }
        if (s && leat_status_code(s) == LEAT_INTERNAL) {
            test_failures++;
            printf("%s: INTERNAL %s\n", text, words);
        }
        if (ms > LATE_MS) {
            test_failures++;
            printf("%s: took %lld ms\n", text, (long long)ms);
        }
        leat_status_free(s);
    }
    if (base && r.broken) {
        test_failures++;
        printf("%s: cannot be read from here on: %s\n", text, r.broken);
    }
    row_release(&r);
}

/* Where a number of a row stands, and what it is of. */
typedef struct place {
    enum { NONE, ATTR, DIM, ELEMENT } kind;
    size_t at, length;
    int senseless;
    bool wide; /* holds 64 bits */
} place;

/* The next number at or after `from`. Elements of floats are none. */
static place next_number(const char *text, size_t from, int ints)
{
    const size_t attributes = strcspn(text, ";");
    for (size_t i = from; text[i]; i++) {
        if (!isdigit((unsigned char)text[i]) && text[i] != '-')
            continue;
        const size_t length = 1 + strspn(text + i + 1, "0123456789.");
        const char before = text[i - 1];
        place p = {.at = i, .length = length};
        if (isalnum((unsigned char)before) || before == '_') { /* part of a name */
        } else if (i > attributes) {
            size_t name = i;
            while (text[name] != '=')
                name--;
            for (size_t a = 0; a < sizeof(attrs) / sizeof(*attrs); a++) {
                const size_t n = strlen(attrs[a].name);
                if (!strncmp(text + name - n, attrs[a].name, n) && text[name - n - 1] == ' ') {
                    p.kind = ATTR;
                    p.wide = true;
                    p.senseless = attrs[a].senseless;
                }
            }
        } else {
            size_t open = i;
            while (text[open] != '[' && text[open] != '{')
                open--;
            size_t type = open;
            while (type > 0 && text[type - 1] != ' ' && text[type - 1] != '(')
                type--;
            p.kind = text[open] == '[' ? DIM : !strncmp(text + type, "int", 3) ? ELEMENT : NONE;
            p.senseless = p.kind == ELEMENT ? ints : 0;
            p.wide = !strncmp(text + type, "int64", 5);
        }
        if (p.kind != NONE)
            return p;
        i += length - 1;
    }
    return (place){NONE, 0, 0, 0, false};
}

static void replace(const char *text, place p, const char *by, bool senseless)
{
    char changed[1024];
    snprintf(changed, sizeof(changed), "%.*s%s%s", (int)p.at, text, by, text + p.at + p.length);
    run(changed, false, senseless);
}

static void sweep(const char *text, int ints)
{
    static const struct {
        const char *number;
        int is;
        bool fits; /* into an int32, so that an input can have it */
    } numbers[] = {{"0", ZERO, true},
                   {"-1", NEGATIVE, true},
                   {"-2147483648", NEGATIVE, true},
                   {"2147483647", 0, true},
                   {"65537", 0, true},
                   {"2147483648", WIDE, false},
                   {"4294967297", WIDE, false},
                   {"9223372036854775807", WIDE, false},
                   {"-9223372036854775808", NEGATIVE | WIDE, false}};
    static const char *const dims[] = {"0", "1", "2", "7"};
    run(text, true, false);
    for (place p = {0}; (p = next_number(text, p.at + p.length, ints)).kind != NONE;) {
        if (p.kind == DIM) {
            for (int i = 0; i < 4; i++)
                replace(text, p, dims[i], false);
        } else {
            for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
                if (p.wide || numbers[i].fits)
                    replace(text, p, numbers[i].number, numbers[i].is & p.senseless);
        }
        replace(text, p, "", false); /* a shorter list, a smaller rank */
    }
}

/* Sweeps over a row in a child. */
static void try_row(const char *text, int ints)
{
    fflush(stdout);
    *shared = (state){0};
    const pid_t child = fork();
    if (child == 0) {
        test_failures = 0;
        row_limit_memory(2 * memory_bound);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        alarm(HANG_SECONDS);
        sweep(text, ints);
        exit(test_failures > 0);
    }
    int status = 0;
    struct rusage used = {0};
    CHECK(wait4(child, &status, 0, &used) == child);
    if (!WIFEXITED(status)) {
        test_failures++;
        printf("%s: signal %d\n", shared->text, WTERMSIG(status));
    } else if (WEXITSTATUS(status)) {
        test_failures++;
        printf("%.*s: exit code %d; the last was %s\n", (int)strcspn(text, "("), text,
               WEXITSTATUS(status), shared->text);
    }
    if (used.ru_maxrss * INT64_C(1024) > memory_bound) {
        test_failures++;
        printf("%s: %ld MB of memory\n", text, used.ru_maxrss / 1024);
    }
}

static char **words;
static int n_words;

static bool chosen(const char *row)
{
    for (int i = 0; i < n_words; i++)
        if (!strncmp(row, words[i], strlen(words[i])))
            return true;
    return n_words == 0;
}

static void sizes(void)
{
    int runs = 0, results = 0;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && shared != MAP_FAILED; i++) {
        if (!chosen(rows[i].text))
            continue;
        try_row(rows[i].text, rows[i].ints);
        CHECK(shared->runs > 1 && shared->results > 0);
        runs += shared->runs;
        results += shared->results;
    }
    printf("%d runs, of which %d gave a result\n", runs, results);
    munmap(shared, sizeof(*shared));
}

int main(int argc, char **argv)
{
    words = argv + 1;
    n_words = argc - 1;
    return RUN(1, argv, {"sizes", sizes});
}
