/* preflight_test.c -- the check of a cluster's tasks, against listeners that reply as tasks do, and
 * wrong ones. */
#include <math.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cluster/cluster_spec.h"
#include "cluster/messages/methods.h"
#include "cluster/transport.h"
#include "proto/cluster.pb-c.h"
#include "proto/wire.h"
#include "test.h"

typedef struct fake { /* how a task replies */
    const char *device;
    const char *release; /* NULL: a TensorFlow task */
    double ahead;        /* seconds */
    leat_code code;      /* not OK: with this error */
    const char *cluster; /* its list of tasks; NULL: it sends none */
} fake;

static void answer(void *arg, leat_server_call *a, const char *method, const leat_incoming *in)
{
    const fake *f = arg;
    leat_outgoing out = {0};
    if (f->code) {
        leat_server_call_reply(a, leat_status_new(f->code, __FILE__, __LINE__, "no"), &out);
        return;
    }
    CHECK_STR(method, LEAT_METHOD_GET_STATUS);
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    Leat__GetStatusResponse r = LEAT__GET_STATUS_RESPONSE__INIT;
    Leat__DeviceAttributes d = LEAT__DEVICE_ATTRIBUTES__INIT, *devices[] = {&d};
    Leat__LeatPeer peer = LEAT__LEAT_PEER__INIT;
    d.name = (char *)f->device;
    r.device_attributes = devices;
    r.n_device_attributes = 1;
    peer.version = 1;
    peer.release = (char *)f->release;
    peer.clock_micros = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 + (int64_t)(f->ahead * 1e6);
    leat_cluster *list = NULL;
    if (f->cluster) {
        CHECK_OK(leat_cluster_parse(f->cluster, &list));
        peer.cluster = leat_cluster_to_def(list);
    }
    if (f->release)
        r.leat = &peer;
    CHECK_OK(leat_proto_pack(&r, &out.text));
    if (peer.cluster)
        leat__cluster_def__free_unpacked(peer.cluster, NULL);
    leat_cluster_free(list);
    leat_server_call_reply(a, NULL, &out);
}

static leat_cluster *c;
static leat_probe *probes;
static int n;

static void add(const char *job, int port)
{
    char address[64];
    snprintf(address, sizeof(address), "127.0.0.1:%d", port);
    CHECK_OK(leat_cluster_add(c, job, address));
}

static leat_listener *listener(const char *job, fake *f)
{
    leat_listener *l = NULL;
    CHECK_OK(leat_listen("127.0.0.1:0", &(leat_listen_options){0}, answer, f, &l));
    add(job, leat_listener_port(l));
    return l;
}

/* A port that is bound, and, if `listen`, open, but at which nothing replies. */
static int dead_port(const char *job, bool open)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(a);
    CHECK(bind(fd, (struct sockaddr *)&a, size) == 0);
    CHECK(!open || listen(fd, 5) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&a, &size) == 0);
    add(job, ntohs(a.sin_port));
    return fd;
}

static void well(void)
{
    fake ps = {"/job:ps/replica:0/task:0/device:CPU:0", "0.1.0", 0.2, LEAT_OK};
    fake worker = {"/job:worker/replica:0/task:0/device:CPU:0", NULL, 0, LEAT_OK};
    c = leat_cluster_new();
    leat_listener *a = listener("ps", &ps), *b = listener("worker", &worker);
    CHECK_OK(leat_cluster_check(c, NULL, &probes, &n));
    CHECK_INT(n, 2);
    CHECK_STR(probes[0].problem, "");
    CHECK_INT(probes[0].reach, LEAT_REACH_OK);
    CHECK_STR(probes[0].kind, "Leat");
    CHECK_STR(probes[0].version, "0.1.0");
    CHECK_INT(probes[0].devices, 1);
    CHECK_NEAR(probes[0].clock_ahead, 0.2, 0.1);
    CHECK(probes[0].round_trip > 0 && probes[0].round_trip < 1);
    CHECK_STR(probes[1].kind, "TensorFlow");
    CHECK_STR(probes[1].job, "worker");
    CHECK(isnan(probes[1].clock_ahead));
    free(probes);
    leat_listener_stop(a, 0);
    leat_listener_stop(b, 0);
    leat_cluster_free(c);
}

static void not_well(void)
{
    static fake fakes[] = {
        {"/job:worker/replica:0/task:7/device:CPU:0", "0.1.0", 0, LEAT_OK},
        {"/job:worker/replica:0/task:1/device:CPU:0", "0.1.0", -30, LEAT_OK},
        {NULL, NULL, 0, LEAT_UNIMPLEMENTED},
        {NULL, NULL, 0, LEAT_UNAUTHENTICATED},
    };
    leat_listener *l[4];
    c = leat_cluster_new();
    for (int i = 0; i < 4; i++)
        l[i] = listener("worker", &fakes[i]);
    int closed = dead_port("worker", false), open = dead_port("worker", true);
    CHECK_OK(leat_cluster_add(c, "worker", "no-such-host.invalid:1"));
    CHECK_OK(leat_cluster_add(c, "ps", leat_cluster_address(c, "worker", 0)));
    CHECK_OK(leat_cluster_check(c, &(leat_probe_options){.timeout_ms = 1000}, &probes, &n));
    static const struct {
        leat_reach reach;
        const char *words;
    } want[] = {
        {LEAT_REACH_WRONG, "task:7/device:CPU:0, not /job:worker/task:0"},
        {LEAT_REACH_WRONG, "clock is 30.0 s behind ours"},
        {LEAT_REACH_MUTE, "is no task of a cluster"},
        {LEAT_REACH_MUTE, "check the token"},
        {LEAT_REACH_REFUSED, "nobody listens at port"},
        {LEAT_REACH_MUTE, "the port is open, but"},
        {LEAT_REACH_UNRESOLVED, "no-such-host.invalid does not resolve"},
        {LEAT_REACH_WRONG, "task:7/device:CPU:0, not /job:ps/task:0"},
    };
    CHECK_INT(n, 8);
    for (int i = 0; i < 8 && n == 8; i++) {
        CHECK_STR(leat_reach_name(probes[i].reach), leat_reach_name(want[i].reach));
        if (!strstr(probes[i].problem, want[i].words)) {
            test_failures++;
            printf("%d: \"%s\", want \"%s\"\n", i, probes[i].problem, want[i].words);
        }
    }
    free(probes);
    close(closed);
    close(open);
    for (int i = 0; i < 4; i++)
        leat_listener_stop(l[i], 0);
    leat_cluster_free(c);
}

/* A ps whose list is the same but for its own address, and workers with other lists. */
static void other_list(void)
{
    char lists[4][200], own[100], want[500];
    static fake fakes[] = {
        {"/job:ps/replica:0/task:0/device:CPU:0", "0.1.0", 0, LEAT_OK, NULL},
        {"/job:worker/replica:0/task:0/device:CPU:0", "0.1.0", 0, LEAT_OK, NULL},
        {"/job:worker/replica:0/task:1/device:CPU:0", "0.1.0", 0, LEAT_OK, NULL},
        {"/job:worker/replica:0/task:2/device:CPU:0", "0.1.0", 0, LEAT_OK, NULL},
    };
    leat_listener *l[4];
    c = leat_cluster_new();
    for (int i = 0; i < 4; i++)
        l[i] = listener(i ? "worker" : "ps", &fakes[i]);
    const char *ps = leat_cluster_address(c, "ps", 0), *w0 = leat_cluster_address(c, "worker", 0),
               *w1 = leat_cluster_address(c, "worker", 1),
               *w2 = leat_cluster_address(c, "worker", 2);
    snprintf(lists[0], 200, "ps=0.0.0.0:2222;worker=%s,%s,%s", w0, w1, w2);
    snprintf(lists[1], 200, "ps=wrong:1;worker=%s,%s,%s", w0, w1, w2);
    snprintf(lists[2], 200, "ps=%s;worker=%s,%s", ps, w0, w1); /* a part of the list */
    snprintf(lists[3], 200, "ps=%s,extra:1;worker=%s", ps, w0);
    snprintf(own, sizeof(own), "ps=%s;worker=%s,%s,%s", ps, w0, w1, w2);
    for (int i = 0; i < 4; i++)
        fakes[i].cluster = lists[i];
    CHECK_OK(leat_cluster_check(c, NULL, &probes, &n));
    CHECK_INT(n, 4);
    CHECK_STR(probes[0].problem, "");
    CHECK_INT(probes[1].reach, LEAT_REACH_WRONG);
    snprintf(want, sizeof(want),
             "was started with another list of tasks: /job:ps/replica:0/task:0 is at %s, not at "
             "wrong:1. Its list: \"%s\"; the one that is checked: \"%s\". Start all tasks with the "
             "same lists of hosts",
             ps, lists[1], own);
    CHECK_STR(probes[1].problem, want);
    CHECK_STR(probes[2].problem, "");
    CHECK_INT(probes[3].reach, LEAT_REACH_WRONG);
    CHECK(strstr(probes[3].problem, "there is no /job:ps/replica:0/task:1, but a /job:worker"));
    free(probes);
    for (int i = 0; i < 4; i++)
        leat_listener_stop(l[i], 0);
    leat_cluster_free(c);
}

static void empty(void)
{
    c = leat_cluster_new();
    CHECK_ERROR(leat_cluster_check(c, NULL, &probes, &n), INVALID_ARGUMENT, "no tasks");
    leat_cluster_free(c);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"well", well}, {"not_well", not_well}, {"other_list", other_list},
               {"empty", empty});
}
