/* device_visible_test.c -- which GPUs a process sees, by its environment and by options, how they
 * are numbered, and how much of their memory is used. */
#include "test.h"

#include <leat/leat.h>

#include "guarded_device.h"

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* The ordinals of the four devices of the tests' kind that are visible, "2,0"; or the error. */
static leat_status visible(const leat_gpu_options *o, char *text, size_t size)
{
    int *v, n;
    LEAT_TRY(leat_devices_visible(&guarded_kind, o, GUARDED_MOST, &v, &n));
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%d", i ? "," : "", v[i]);
    free(v);
    return NULL;
}

static void environment(void)
{
    static const struct {
        const char *own, *cuda, *want;
    } rows[] = {
        {NULL, NULL, "0,1,2,3"},
        {NULL, "1", "1"},
        {NULL, "0,1", "0,1"},
        {NULL, "\"0,1\"", "0,1"}, /* as a file that no shell reads has it */
        {NULL, "'3, 1'", "3,1"},
        {NULL, "0,2", "0,2"},
        {NULL, " 3 , 0 ", "3,0"},
        {NULL, "", ""},
        {NULL, "\"\"", ""},
        {NULL, "  ", ""},
        {NULL, "-1", ""},
        {NULL, "NoDevFiles", ""},
        {NULL, "2,-1,0", "2"},
        {NULL, "2,4,0", "2"},
        {NULL, "0,99999999999999999999,1", "0"},
        {NULL, "1,0,1,2", "1,0"},
        {NULL, "0,,1", "0"},
        {NULL, "1,", "1"},
        {NULL, "1x,2", ""},
        {"2,0", "1", "2,0"},
        {"", "0,1", ""},
        {"\"3\"", NULL, "3"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char text[64];
        set("LEAT_VISIBLE_DEVICES", rows[i].own);
        set("CUDA_VISIBLE_DEVICES", rows[i].cuda);
        CHECK_OK(visible(&(leat_gpu_options){0}, text, sizeof(text)));
        CHECK_STR(text, rows[i].want);
    }
    static const struct {
        const char *own, *words;
    } wrong[] = {
        {"0,4", "LEAT_VISIBLE_DEVICES=0,4: \"4\" is not the number of a GUARDED device of this "
                "machine, which has 4"},
        {"-1", "\"-1\" is not the number"},
        {"0,", "\"\" is not the number"},
        {"gpu", "\"gpu\" is not the number"},
        {"1,2,1", "LEAT_VISIBLE_DEVICES=1,2,1: 1 is there twice"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        char text[64];
        set("LEAT_VISIBLE_DEVICES", wrong[i].own);
        int *none, n = -1;
        CHECK_OK(leat_devices_visible(&guarded_kind, &(leat_gpu_options){0}, 0, &none, &n));
        CHECK_INT(n, 0); /* on a machine without such devices there is no wrong number */
        free(none);
        CHECK_ERROR(visible(&(leat_gpu_options){0}, text, sizeof(text)), INVALID_ARGUMENT,
                    wrong[i].words);
    }
    unsetenv("LEAT_VISIBLE_DEVICES");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* Positions in what the environment leaves. */
static void options(void)
{
    char text[64];
    set("CUDA_VISIBLE_DEVICES", "3,1,0");
    CHECK_OK(visible(&(leat_gpu_options){.visible_devices = "2,0"}, text, sizeof(text)));
    CHECK_STR(text, "0,3");
    CHECK_OK(visible(&(leat_gpu_options){.visible_devices = ""}, text, sizeof(text)));
    CHECK_STR(text, "3,1,0");
    static const struct {
        const char *list, *words;
    } wrong[] = {
        {"3", "'visible_device_list' listed an invalid GPU id '3' but visible device count is 3"},
        {"-1", "'visible_device_list' listed an invalid GPU id '-1' but visible device count is 3"},
        {"0,x", "Could not parse entry in 'visible_device_list': 'x'. visible_device_list = 0,x"},
        {"0,", "Could not parse entry in 'visible_device_list': ''"},
        {"1,1", "visible_device_list contained a duplicate entry: 1,1"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        CHECK_ERROR(visible(&(leat_gpu_options){.visible_devices = wrong[i].list}, text, 64),
                    INVALID_ARGUMENT, wrong[i].words);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void names(void)
{
    leat_devices d;
    leat_device_listing *list;
    int n;
    leat_devices_options o = {.spec = "guarded", .job = "localhost"};
    set("LEAT_VISIBLE_DEVICES", "3,1");
    o.spec = "guarded:2";
    CHECK_OK(leat_devices_open(&o, &d));
    CHECK_INT(d.n, 3);
    CHECK_STR(d.v[1]->name, "/job:localhost/replica:0/task:0/device:GUARDED:0");
    CHECK_INT(d.v[1]->ordinal, 3);
    CHECK_STR(d.v[2]->name, "/job:localhost/replica:0/task:0/device:GUARDED:1");
    CHECK_INT(d.v[2]->ordinal, 1);
    leat_devices_close(&d);
    o.gpu.visible_devices = "1";
    CHECK_ERROR(leat_devices_open(&o, &d), NOT_FOUND,
                "2 GUARDED devices are wanted, and there are 1 that this process can see");
    CHECK_OK(leat_devices_list("guarded:2", &list, &n));
    CHECK_INT(n, 3);
    CHECK_INT(list[1].ordinal, 3);
    CHECK_INT(list[2].ordinal, 1);
    free(list);
    set("LEAT_VISIBLE_DEVICES", "7");
    CHECK_ERROR(leat_devices_list("guarded:1", &list, &n), INVALID_ARGUMENT,
                "LEAT_VISIBLE_DEVICES=7");
    o = (leat_devices_options){.job = "localhost"}; /* who wants no GPU is not troubled */
    CHECK_OK(leat_devices_open(&o, &d));
    leat_devices_close(&d);
    unsetenv("LEAT_VISIBLE_DEVICES");
}

/* A kind of which a process takes all devices that it sees. A ps takes those that are named. */
static void parameter_servers(void)
{
    static leat_device_kind all;
    all = guarded_kind;
    all.type = "EAGER";
    all.by_default = -1;
    CHECK_OK(leat_device_kind_register(&all));
    static const struct {
        const char *job, *spec;
        int want;
    } rows[] = {{"worker", NULL, 4}, {"worker", "eager:1", 1}, {"worker", "eager:0", 0},
                {"ps", NULL, 0},     {"ps", "cpu:1", 0},       {"ps", "eager:2", 2},
                {"ps", "eager", 4},  {"localhost", NULL, 4}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        leat_devices d;
        leat_devices_options o = {.spec = rows[i].spec, .job = rows[i].job};
        CHECK_OK(leat_devices_open(&o, &d));
        CHECK_INT(d.n, 1 + rows[i].want);
        leat_devices_close(&d);
    }
}

static void bytes(void)
{
    static const struct {
        const char *text;
        int64_t want;
    } rows[] = {{"4096", 4096},           {"64k", 65536}, {"512M", 512 << 20},
                {"2g", INT64_C(2) << 30}, {"1.5k", 1536}, {"1t", INT64_C(1) << 40}};
    int64_t v = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        CHECK_OK(leat_bytes_read(rows[i].text, &v));
        CHECK_INT(v, rows[i].want);
    }
    static const char *const wrong[] = {"", "k", "0", "-1", "12q", "1mb", "9999999t", "nan", NULL};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        CHECK_ERROR(leat_bytes_read(wrong[i], &v), INVALID_ARGUMENT, "is no number of bytes");
}

static leat_status limit(const leat_gpu_options *gpu, size_t *out)
{
    leat_devices d;
    leat_devices_options o = {.spec = "guarded:1", .job = "localhost", .gpu = *gpu};
    LEAT_TRY(leat_devices_open(&o, &d));
    *out = d.v[1]->allocator->limit;
    CHECK_INT((int64_t)leat_cpu_allocator()->limit, 0);
    leat_devices_close(&d);
    return NULL;
}

static void limits(void)
{
    static const struct {
        double fraction;
        int64_t bytes;
        const char *env_fraction, *env_limit;
        int64_t want;
    } rows[] = {
        {0, 0, NULL, NULL, GUARDED_ARENA},
        {0.25, 0, NULL, NULL, GUARDED_ARENA / 4},
        {0, 1 << 20, NULL, NULL, 1 << 20},
        {0.25, 1 << 20, NULL, NULL, 1 << 20},
        {0.001, 1 << 30, NULL, NULL, GUARDED_ARENA / 1000},
        {0, 0, "0.5", NULL, GUARDED_ARENA / 2},
        {0, 0, NULL, "3m", 3 << 20},
        {0.25, 2 << 20, "0.5", "3m", 2 << 20},
        {0, INT64_C(1) << 40, NULL, NULL, GUARDED_ARENA}, /* not more than there is */
        {0, 0, "", "", GUARDED_ARENA},
    };
    size_t got = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        set("LEAT_GPU_MEMORY_FRACTION", rows[i].env_fraction);
        set("LEAT_GPU_MEMORY_LIMIT", rows[i].env_limit);
        CHECK_OK(limit(
            &(leat_gpu_options){.memory_fraction = rows[i].fraction, .memory_limit = rows[i].bytes},
            &got));
        CHECK_INT((int64_t)got, rows[i].want);
    }
    CHECK_ERROR(limit(&(leat_gpu_options){.memory_fraction = 1.5}, &got), INVALID_ARGUMENT,
                "memory fraction (per_process_gpu_memory_fraction) of 1.5: wants a number above 0");
    CHECK_ERROR(limit(&(leat_gpu_options){.memory_fraction = -0.5}, &got), INVALID_ARGUMENT,
                "memory fraction");
    CHECK_ERROR(limit(&(leat_gpu_options){.memory_limit = -5}, &got), INVALID_ARGUMENT,
                "memory limit of -5 bytes is negative");
    set("LEAT_GPU_MEMORY_FRACTION", "much");
    CHECK_ERROR(limit(&(leat_gpu_options){0}, &got), INVALID_ARGUMENT,
                "LEAT_GPU_MEMORY_FRACTION=much: wants a number");
    unsetenv("LEAT_GPU_MEMORY_FRACTION");
    set("LEAT_GPU_MEMORY_LIMIT", "much");
    CHECK_ERROR(limit(&(leat_gpu_options){0}, &got), INVALID_ARGUMENT,
                "LEAT_GPU_MEMORY_LIMIT: \"much\" is no number of bytes");
    unsetenv("LEAT_GPU_MEMORY_LIMIT");
}

/* A session in this process has options of GPUs; one at a server has the server's. */
static void sessions(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    CHECK_ERROR(leat_session_open(g, &s, .devices = "guarded:1", .gpu.visible_devices = "9"),
                INVALID_ARGUMENT, "'visible_device_list' listed an invalid GPU id '9'");
    CHECK_OK(leat_session_open(g, &s, .devices = "guarded:1", .gpu.visible_devices = "3"));
    leat_session_close(s);
    CHECK_ERROR(leat_session_open(g, &s, .target = "grpc://127.0.0.1:1", .gpu.memory_limit = 5),
                INVALID_ARGUMENT, "are those of its servers");
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    unsetenv("LEAT_VISIBLE_DEVICES");
    unsetenv("CUDA_VISIBLE_DEVICES");
    LEAT_DIE_ON_ERROR(leat_device_kind_register(&guarded_kind));
    return RUN(argc, argv, {"environment", environment}, {"options", options}, {"names", names},
               {"bytes", bytes}, {"limits", limits}, {"sessions", sessions},
               {"parameter_servers", parameter_servers});
}
