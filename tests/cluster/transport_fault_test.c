/* transport_fault_test.c -- calls over gRPC to peers that are not there, are killed, are stopped,
 * come back, or are no tasks at all; and the messages of the errors. */
#include "echo.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "cluster/grpc/channel_int.h"
#include "task.h"

/* A server process: prints its port, and runs until it is killed. */
static int serve(const char *where)
{
    leat_listener *l;
    LEAT_DIE_ON_ERROR(leat_listen(where, NULL, echo_handle, NULL, &l));
    printf("%d\n", leat_listener_port(l));
    fflush(stdout);
    while (pause() < 0)
        ;
    return 0;
}

static char address[32];
static leat_channel *channel;

static task start_server(const char *where)
{
    task t = task_start("server", where);
    int port = 0;
    CHECK_INT(fscanf(t.says, "%d", &port), 1);
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    return t;
}

static void open_channel(const char *where)
{
    CHECK_OK(leat_channel_open(where, "/job:ps/task:0", NULL, &channel));
}

static leat_status ask(const char *method, int64_t timeout_ms, bool wait_ready)
{
    leat_call_options o = {.deadline_ns = timeout_ms ? in_ms(timeout_ms) : 0,
                           .wait_ready = wait_ready};
    return echo_call(channel, method, "", NULL, 0, &o);
}

static void park(result *r)
{
    leat_event_init(&r->done);
    leat_channel_call(channel, "/test/Park", &(leat_outgoing){0}, NULL, on_result, r, NULL);
    CHECK_OK(ask("/test/Echo", 20000, false)); /* so it is there, too */
}

static void refused(void)
{
    open_channel("127.0.0.1:1");
    CHECK_ERROR(ask("/test/Echo", 20000, false), UNAVAILABLE,
                "/job:ps/task:0 (127.0.0.1:1) refused the connection");
    CHECK_ERROR(ask("/test/Echo", 20000, false), UNAVAILABLE, "[/test/Echo, after ");
    CHECK_ERROR(ask("/test/Echo", 300, true), DEADLINE_EXCEEDED, "refused the connection");
    leat_channel_free(channel);
}

static void unresolved(void)
{
    open_channel("no-such-host.invalid:2222");
    CHECK_ERROR(ask("/test/Echo", 20000, false), UNAVAILABLE,
                "(no-such-host.invalid:2222) has a name that does not resolve");
    leat_channel_free(channel);
}

/* Calls a listener that sends these bytes, or closes the connection (none), or sends nothing
 * (NULL). */
static void talk_to(const char *bytes, leat_code code, const char *words)
{
    int l = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    bind(l, (struct sockaddr *)&a, sizeof a);
    listen(l, 5);
    getsockname(l, (struct sockaddr *)&a, &n);
    snprintf(address, sizeof address, "127.0.0.1:%d", ntohs(a.sin_port));
    open_channel(address);
    result r;
    leat_event_init(&r.done);
    leat_channel_call(channel, "/test/Echo", &(leat_outgoing){0},
                      &(leat_call_options){.deadline_ns = in_ms(bytes ? 20000 : 700)}, on_result,
                      &r, NULL);
    int c = accept(l, NULL, NULL);
    char ignored[1000];
    CHECK(read(c, ignored, sizeof ignored) > 0);
    if (bytes && *bytes)
        CHECK(write(c, bytes, strlen(bytes)) > 0);
    if (bytes && !*bytes)
        close(c);
    leat_event_wait(&r.done, 0);
    CHECK_INT(leat_status_code(r.status), code);
    CHECK(strstr(leat_status_message(r.status), words));
    leat_status_free(r.status);
    leat_channel_free(channel);
    close(c);
    close(l);
}

static void no_tasks(void)
{
    talk_to("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", LEAT_UNAVAILABLE,
            "speaks HTTP/1, not gRPC");
    talk_to("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", LEAT_UNAVAILABLE, "does not speak gRPC");
    talk_to("", LEAT_UNAVAILABLE, "closed the connection before it sent anything");
    talk_to(NULL, LEAT_DEADLINE_EXCEEDED, "is silent: no connection came about in time");
}

static void killed(void)
{
    task t = start_server("127.0.0.1:0");
    open_channel(address);
    result r;
    park(&r);
    task_end(&t);
    leat_event_wait(&r.done, 0);
    CHECK_ERROR(r.status, UNAVAILABLE, "closed the connection in mid-call");
    CHECK_ERROR(ask("/test/Echo", 20000, false), UNAVAILABLE, "refused");
    /* Started again on the same port: calls that wait are served. */
    char where[32];
    snprintf(where, sizeof where, "%s", address);
    t = start_server(where);
    CHECK_OK(ask("/test/Echo", 20000, true));
    task_end(&t);
    leat_channel_free(channel);
}

static void stopped(void)
{
    task t = start_server("127.0.0.1:0");
    open_channel(address);
    result r;
    park(&r);
    task_pause(&t);
    CHECK_ERROR(ask("/test/Echo", 300, false), DEADLINE_EXCEEDED, "did not answer in time");
    int64_t begin = leat_now_ns();
    leat_event_wait(&r.done, 0);
    CHECK(leat_now_ns() - begin < 20000000000); /* 2 s, and more on a busy machine */
    CHECK_ERROR(r.status, UNAVAILABLE, "fell silent");
    kill(t.pid, SIGCONT);
    CHECK_OK(ask("/test/Echo", 20000, true));
    /* Calls to a peer that is only slow do not fail. */
    park(&r);
    CHECK(!leat_event_wait(&r.done, in_ms(4000)));
    leat_channel_free(channel);
    leat_status_free(r.status);
    task_end(&t);
}

/* The loss of a caller that is killed, or stopped, is noticed without a deadline. */
static int call_and_wait(const char *where)
{
    open_channel(where);
    leat_status_free(ask("/test/Park", 0, false));
    return 0;
}

static void caller_vanishes(bool killed)
{
    echo_begin();
    leat_listener *l;
    CHECK_OK(leat_listen("127.0.0.1:0", NULL, echo_handle, NULL, &l));
    snprintf(address, sizeof address, "127.0.0.1:%d", leat_listener_port(l));
    task t = task_start("client", address);
    await(&entered, 1);
    if (killed)
        task_end(&t);
    else
        task_pause(&t);
    for (int i = 0; i < 20000 && !atomic_load(&gone); i++)
        usleep(1000);
    CHECK_INT(atomic_load(&gone), 1);
    if (!killed)
        task_end(&t);
    leat_server_call_reply(parked, NULL, NULL);
    leat_listener_stop(l, in_ms(1000));
}

static void caller_killed(void)
{
    caller_vanishes(true);
}

static void caller_stopped(void)
{
    caller_vanishes(false);
}

/* Bytes that are no HTTP/2, and HTTP/1, do not harm the listener. */
static void garbage(void)
{
    leat_listener *l;
    CHECK_OK(leat_listen("127.0.0.1:0", NULL, echo_handle, NULL, &l));
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)leat_listener_port(l)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    snprintf(address, sizeof address, "127.0.0.1:%d", leat_listener_port(l));
    unsigned seed = 1;
    for (int i = 0; i < 20; i++) {
        int c = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(connect(c, (struct sockaddr *)&a, sizeof a) == 0);
        char bytes[4000] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        for (size_t k = i % 2 ? 24 : 0; k < sizeof bytes; k++)
            bytes[k] = (char)rand_r(&seed);
        if (i == 3)
            strcpy(bytes, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        if (send(c, bytes, sizeof bytes, MSG_NOSIGNAL) < 0)
            CHECK(0);
        close(c);
    }
    open_channel(address);
    CHECK_OK(ask("/test/Echo", 20000, false));
    leat_channel_free(channel);
    leat_listener_stop(l, in_ms(1000));
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--role") == 0)
        return strcmp(argv[2], "server") == 0 ? serve(argv[3]) : call_and_wait(argv[3]);
    leat_ping_after_ns = 1000000000;
    return RUN(argc, argv, {"refused", refused}, {"unresolved", unresolved}, {"no_tasks", no_tasks},
               {"killed", killed}, {"stopped", stopped}, {"caller_killed", caller_killed},
               {"caller_stopped", caller_stopped}, {"garbage", garbage});
}
