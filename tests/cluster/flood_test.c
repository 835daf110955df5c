/* flood_test.c -- floods of HTTP/2 frames at a listener on gRPC: its memory stays bounded, and the
 * calls of others go on. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/resource.h>

#include "cluster/grpc/parts.h"
#include "cluster/http2_attacker.h"
#include "echo.h"
#include "task.h"

/* MEMORY_MB: the most that the server's memory may grow during a flood. AFTER_MB: what it may keep
 * after it; the C library keeps up to 32 MB at the end of each of its heaps. */
enum { FLOOD_MS = 2000, MEMORY_MB = 400, AFTER_MB = 32 };

/* The server process. The token "few": it accepts 8 calls at a time. */
static int serve(const char *token)
{
    leat_listener *l;
    leat_security security = {.token = token};
    leat_listen_options o = {.security = *token ? &security : NULL,
                             .max_calls = strcmp(token, "few") == 0 ? 8 : 0};
    CHECK_OK(leat_listen("127.0.0.1:0", &o, echo_handle, NULL, &l));
    printf("%d\n", leat_listener_port(l));
    fflush(stdout);
    while (pause() < 0)
        ;
    return 0;
}

/* The resident memory of a process, in MB. 0 under sanitizers, which keep memory that was freed. */
static long memory_of(pid_t pid)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0;
#endif
    char path[64];
    long size = 0, resident = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    CHECK_INT(fscanf(f, "%ld %ld", &size, &resident), 2);
    fclose(f);
    return resident * sysconf(_SC_PAGESIZE) >> 20;
}

typedef struct server {
    task task;
    char address[32];
    int port;
    leat_security security;
    leat_channel *channel;
} server;

static void server_start(server *s, const char *token)
{
    *s = (server){.task = task_start("server", token), .security = {.token = token}};
    CHECK_INT(fscanf(s->task.says, "%d", &s->port), 1);
    snprintf(s->address, sizeof s->address, "127.0.0.1:%d", s->port);
    CHECK_OK(
        leat_channel_open(s->address, "/job:ps/task:0", *token ? &s->security : NULL, &s->channel));
}

static void server_end(server *s)
{
    leat_channel_free(s->channel);
    task_end(&s->task);
}

/* An attacker sends for FLOOD_MS, while another client makes calls. message_first: the attacker is
 * a client that has made a call. */
static void flood(attack kind, const char *token, int message_first)
{
    server s;
    char reply[8];
    server_start(&s, token);
    CHECK_OK(echo_call(s.channel, "/test/Echo", "hello", reply, sizeof reply, NULL));
    long before = memory_of(s.task.pid), most = before;
    attacker a = {.kind = kind, .port = s.port, .message_first = message_first};
    attacker_start(&a);
    int calls = 0;
    for (int64_t end = in_ms(FLOOD_MS); leat_now_ns() < end || calls < 3 || !atomic_load(&a.cut);
         calls++) {
        CHECK_OK(echo_call(s.channel, "/test/Echo", "hello", reply, sizeof reply,
                           &(leat_call_options){.deadline_ns = in_ms(30000)}));
        long now = memory_of(s.task.pid);
        most = now > most ? now : most;
        if (most - before >= MEMORY_MB || leat_now_ns() > end + INT64_C(30000000000))
            break;
        usleep(1000);
    }
    attacker_stop(&a);
    CHECK(most - before < MEMORY_MB);
    CHECK(atomic_load(&a.cut) > 0);
    CHECK_SOON(memory_of(s.task.pid) - before < AFTER_MB);
    printf("%lld KB sent, %d connections closed, %ld MB of memory before, %ld MB at most, %ld MB "
           "after, %d calls\n",
           (long long)a.sent >> 10, (int)a.cut, before, most, memory_of(s.task.pid), calls);
    server_end(&s);
}

static void resets(void)
{
    flood(ATTACK_RESETS, "", 0);
    flood(ATTACK_RESETS, "open sesame", 0);
    flood(ATTACK_RESETS, "", 1);
}

static void continuation(void)
{
    flood(ATTACK_CONTINUATION, "", 0);
    flood(ATTACK_CONTINUATION, "open sesame", 0);
    flood(ATTACK_CONTINUATION, "", 1);
}

static void streams(void)
{
    flood(ATTACK_STREAMS, "", 0);
    flood(ATTACK_STREAMS, "open sesame", 0);
}

static void pings(void)
{
    flood(ATTACK_PINGS, "", 0);
}

static void use_one_cpu(void)
{
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
}

static void *spin(void *stop)
{
    use_one_cpu();
    while (!atomic_load((atomic_bool *)stop))
        ;
    return NULL;
}

/* The server's CPU is busy with other work, so that gRPC frees the memory of the flood long after
 * the connection was ended. */
static void little_cpu(void)
{
    enum { SPINNERS = 5 };
    pthread_t spinner[SPINNERS];
    atomic_bool stop = false;
    server s = {.task = task_start_after(use_one_cpu, "server", "")};
    CHECK_INT(fscanf(s.task.says, "%d", &s.port), 1);
    long before = memory_of(s.task.pid);
    for (int i = 0; i < SPINNERS; i++)
        pthread_create(&spinner[i], NULL, spin, &stop);
    attacker a = {.kind = ATTACK_STREAMS, .port = s.port};
    attacker_start(&a);
    CHECK_SOON(atomic_load(&a.cut) > 0);
    attacker_stop(&a);
    long most = memory_of(s.task.pid);
    CHECK_SOON(memory_of(s.task.pid) - before < AFTER_MB);
    atomic_store(&stop, true);
    for (int i = 0; i < SPINNERS; i++)
        pthread_join(spinner[i], NULL);
    printf("%ld MB of memory before, %ld MB when cut off, %ld MB at last\n", before, most,
           memory_of(s.task.pid));
    task_end(&s.task);
}

/* The first call of a connection has a large message: as one, as TensorFlow's clients send it, or
 * in parts. */
static void large_first(void)
{
    enum { BYTES = 100 << 20 };
    const size_t usual = leat_parts_from, from[] = {SIZE_MAX, usual};
    char *text = malloc(BYTES + 1);
    memset(text, 'x', BYTES);
    text[BYTES] = 0;
    for (int i = 0; i < 2; i++) {
        server s;
        leat_parts_from = from[i];
        server_start(&s, "open sesame");
        CHECK_OK(echo_call(s.channel, "/test/Echo", text, NULL, 0, NULL));
        server_end(&s);
    }
    leat_parts_from = usual;
    free(text);
}

/* A client makes as many calls at once as a connection may have. */
static void many_calls(void)
{
    enum { CALLS = 4500 };
    server s;
    server_start(&s, "");
    result *r = calloc(CALLS, sizeof *r);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CALLS; i++) {
            leat_outgoing out = {0};
            leat_strbuf_puts(&out.text, "hello");
            leat_event_init(&r[i].done);
            leat_channel_call(s.channel, "/test/Echo", &out, NULL, on_result, &r[i], NULL);
        }
        for (int i = 0; i < CALLS; i++) {
            leat_event_wait(&r[i].done, 0);
            CHECK_OK(r[i].status);
        }
    }
    free(r);
    server_end(&s);
}

/* Calls whose message never comes fill the table of calls from several connections; others are
 * accepted all the same. */
static void table_full(void)
{
    server s;
    char reply[8];
    server_start(&s, "few");
    CHECK_OK(echo_call(s.channel, "/test/Echo", "hello", reply, sizeof reply, NULL));
    int fds[4];
    attacker a[4];
    for (int i = 0; i < 4; i++) {
        a[i] = (attacker){.port = s.port, .token = "few"};
        fds[i] = attacker_connect(&a[i]);
        attacker_open(&a[i], fds[i], 2);
    }
    for (int i = 0; i < 20; i++) {
        leat_status e = echo_call(s.channel, "/test/Echo", "hello", reply, sizeof reply, NULL);
        if (e && leat_status_code(e) == LEAT_RESOURCE_EXHAUSTED) /* For a second. */
            usleep(200000);
        else if (!e)
            break;
        CHECK(i < 19);
        leat_status_free(e);
    }
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    server_end(&s);
}

static void few_descriptors(void)
{
    struct rlimit r;
    getrlimit(RLIMIT_NOFILE, &r);
    r.rlim_cur = 512;
    setrlimit(RLIMIT_NOFILE, &r);
}

/* More connections than the server has descriptors, which send nothing. gRPC would never accept a
 * connection again after one that it could not accept. */
static void crowd(void)
{
    enum { N = 900 };
    static int fds[N];
    server s = {.task = task_start_after(few_descriptors, "server", "")};
    CHECK_INT(fscanf(s.task.says, "%d", &s.port), 1);
    snprintf(s.address, sizeof s.address, "127.0.0.1:%d", s.port);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)s.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < N; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(fds[i], (struct sockaddr *)&to, sizeof to);
    }
    sleep(1);
    for (int i = 0; i < N; i++)
        close(fds[i]);
    CHECK_OK(leat_channel_open(s.address, "/job:ps/task:0", NULL, &s.channel));
    char reply[8];
    CHECK_OK(echo_call(s.channel, "/test/Echo", "hello", reply, sizeof reply,
                       &(leat_call_options){.deadline_ns = in_ms(20000), .wait_ready = true}));
    server_end(&s);
}

/* One connection gets half of all calls. */
static void half(void)
{
    server s;
    server_start(&s, "few");
    CHECK_OK(echo_call(s.channel, "/test/Echo", "", NULL, 0, NULL));
    result r[4];
    for (int i = 0; i < 4; i++) {
        leat_outgoing out = {0};
        leat_event_init(&r[i].done);
        leat_channel_call(s.channel, "/test/Park", &out, NULL, on_result, &r[i], NULL);
    }
    CHECK_ERROR(echo_call(s.channel, "/test/Echo", "", NULL, 0, NULL), RESOURCE_EXHAUSTED,
                "The connection has 4 calls under way, which is its limit: half of the 8");
    server_end(&s);
    for (int i = 0; i < 4; i++) {
        leat_event_wait(&r[i].done, 0);
        leat_status_free(r[i].status);
    }
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "--role") == 0)
        return serve(argv[3]);
    return RUN(argc, argv, {"resets", resets}, {"continuation", continuation}, {"streams", streams},
               {"pings", pings}, {"little_cpu", little_cpu}, {"large_first", large_first},
               {"many_calls", many_calls}, {"table_full", table_full}, {"crowd", crowd},
               {"half", half});
}
