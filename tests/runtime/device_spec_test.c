/* device_spec_test.c -- lines such as "cpu:2,gpu:1", and the devices that they make. */
#include "test.h"

#include <leat/leat.h>
#include "core/buffer.h"
#include "runtime/device.h"

static void counts(void)
{
    leat_device_count c[LEAT_DEVICE_COUNTS];
    int n = -1;
    CHECK_OK(leat_device_counts_read(NULL, c, &n));
    CHECK_INT(n, 0);
    CHECK_OK(leat_device_counts_read("", c, &n));
    CHECK_INT(n, 0);
    CHECK_OK(leat_device_counts_read("cpu:2,GPU,x_9:0", c, &n));
    CHECK_INT(n, 3);
    CHECK_STR(c[0].type, "CPU");
    CHECK_INT(c[0].n, 2);
    CHECK_STR(c[1].type, "GPU");
    CHECK_INT(c[1].n, -1);
    CHECK_STR(c[2].type, "X_9");
    CHECK_INT(c[2].n, 0);
}

static void mistakes(void)
{
    static const struct {
        const char *spec, *words;
    } rows[] = {
        {":2", "\":2\" names no kind"},
        {"cpu:1,,gpu:1", "\"\" names no kind"},
        {"cpu:", "\"cpu:\" has no number"},
        {"cpu:two", "\"cpu:two\" has no number"},
        {"cpu:-1", "\"cpu:-1\" has no number"},
        {"cpu:1 ", "\"cpu:1 \" has no number"},
        {"cpu 1", "\"cpu 1\" names no kind"},
        {"cpu:1,", "nothing follows the last comma"},
        {"cpu:1,CPU:2", "CPU is there twice"},
        {"cpu:1025", "are more than 1024"},
        {"cpu:99999999999999999999", "are more than 1024"},
        {"averyveryverylongname:1", "names no kind"},
        {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "more than 16 kinds"},
        {"cpu:0", "A process has 1 to 1024 CPU devices, not 0"},
        {"tpu:1", "there are no devices of kind TPU, only of CPU"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        leat_devices d;
        leat_device_listing *list;
        int n;
        leat_devices_options o = {.spec = rows[i].spec, .job = "localhost"};
        CHECK_ERROR(leat_devices_open(&o, &d), INVALID_ARGUMENT, rows[i].words);
        CHECK_ERROR(leat_devices_list(rows[i].spec, &list, &n), INVALID_ARGUMENT, rows[i].words);
    }
}

static void devices(void)
{
    leat_devices d;
    leat_devices_options o = {.spec = "cpu:3", .host_devices = 2, .job = "ps", .task = 4};
    CHECK_OK(leat_devices_open(&o, &d));
    CHECK_INT(d.n, 3);
    CHECK_STR(d.v[2]->name, "/job:ps/replica:0/task:4/device:CPU:2");
    CHECK(d.v[0]->incarnation != d.v[1]->incarnation);
    CHECK(d.v[0]->kind == leat_host_kind() && d.v[0]->kind->host_memory);
    leat_devices_close(&d);
    o.spec = NULL;
    CHECK_OK(leat_devices_open(&o, &d));
    CHECK_INT(d.n, 2);
    leat_devices_close(&d);
    leat_devices_close(&d);
    o.spec = "tpu:0,cpu:1"; /* none of a kind that does not exist */
    CHECK_OK(leat_devices_open(&o, &d));
    CHECK_INT(d.n, 1);
    leat_devices_close(&d);
}

static void listing(void)
{
    leat_device_listing *list;
    int n;
    CHECK_OK(leat_devices_list(NULL, &list, &n));
    CHECK_INT(n, 1);
    CHECK_STR(list[0].name, "/job:localhost/replica:0/task:0/device:CPU:0");
    CHECK_STR(list[0].kind, "CPU");
    CHECK(list[0].memory > 1 << 20);
    free(list);
    leat_cpu_allocator()->limit = 1 << 30; /* a limit is what there is */
    CHECK_OK(leat_devices_list("cpu:2", &list, &n));
    leat_cpu_allocator()->limit = 0;
    CHECK_INT(n, 2);
    CHECK_INT(list[1].memory, 1 << 30);
    free(list);
}

static void sessions(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    int n;
    CHECK_OK(leat_session_open(g, &s, .devices = "cpu:4"));
    leat_session_devices(s, &n);
    CHECK_INT(n, 4);
    leat_session_close(s);
    CHECK_ERROR(leat_session_open(g, &s, .devices = "fpga:1"), INVALID_ARGUMENT,
                "no devices of kind FPGA");
    CHECK_ERROR(leat_session_open(g, &s, .inter_op_threads = -1), INVALID_ARGUMENT,
                "Thread counts cannot be negative");
    leat_graph_free(g);
}

/* Kinds that lack something are refused; none of these gets into the list. */
static void registration(void)
{
    leat_device_kind k = *leat_host_kind();
    int before = leat_device_kinds();
    CHECK_ERROR(leat_device_kind_register(&k), ALREADY_EXISTS, "a kind of devices CPU already");
    k.type = "";
    CHECK_ERROR(leat_device_kind_register(&k), INVALID_ARGUMENT, "needs a name");
    k.type = "OTHER";
    k.open = NULL;
    CHECK_ERROR(leat_device_kind_register(&k), INVALID_ARGUMENT, "lacks probe, describe, open");
    CHECK_INT(leat_device_kinds(), before);
    CHECK_INT(leat_device_priority("cpu"), 70);
    CHECK_INT(leat_device_priority("OTHER"), -1);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"counts", counts}, {"mistakes", mistakes}, {"devices", devices},
               {"listing", listing}, {"sessions", sessions}, {"registration", registration});
}
