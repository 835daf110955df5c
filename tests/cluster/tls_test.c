/* tls_test.c -- TLS on the socket between tasks: the cases of all streams; certificates, names and
 * peers that are refused, with words that say why; bytes that are cut off or changed on their way;
 * large messages both ways at once. */
#define _GNU_SOURCE
#include <poll.h>

#include "cluster/certificates.h"
#include "cluster/socket_offer.h"
#include "core/alloc.h"

static leat_security mutual, no_tls;

/* ---- What is logged ---- */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static leat_strbuf logged; /* guarded by log_lock */

static void on_log(void *arg, leat_log_level level, const char *from, int line, const char *message)
{
    pthread_mutex_lock(&log_lock);
    leat_strbuf_printf(&logged, "%s\n", message);
    pthread_mutex_unlock(&log_lock);
}

static void log_begin(void)
{
    pthread_mutex_lock(&log_lock);
    leat_strbuf_release(&logged);
    pthread_mutex_unlock(&log_lock);
    leat_log_set_sink(on_log, NULL, LEAT_LOG_INFO);
}

static bool log_has(const char *words)
{
    pthread_mutex_lock(&log_lock);
    bool has = strstr(leat_strbuf_text(&logged), words) != NULL;
    pthread_mutex_unlock(&log_lock);
    return has;
}

/* Waits for it, and prints the log if it does not come. */
static void check_logged(const char *words)
{
    for (int i = 0; i < 8000 && !log_has(words); i++)
        usleep(1000);
    if (!log_has(words)) {
        CHECK(log_has(words));
        printf("\"%s\" is not in the log:\n%s", words, leat_strbuf_text(&logged));
    }
}

static void log_end(void)
{
    leat_log_set_sink(NULL, NULL, LEAT_LOG_INFO);
    leat_strbuf_release(&logged);
}

/* ---- Peers that are refused ---- */
static leat_security of(const char *name, const char *authority)
{
    leat_security s = {0};
    char pem[32], key[32];
    snprintf(pem, sizeof pem, "%s.pem", name ? name : "");
    snprintf(key, sizeof key, "%s.key", name ? name : "");
    if (name) {
        s.certificate = file(pem);
        s.key = file(key);
    }
    s.authority = authority ? file(authority) : NULL;
    return s;
}

/* No link comes about between the two, and the logs say so. */
static void check_refused(leat_security client, leat_security server, const char *client_says,
                          const char *server_says)
{
    leat_channel *c;
    log_begin();
    security = &server;
    listen_here();
    leat_offer o = {.data = offer};
    leat_link_target to = {"127.0.0.1:2222", "/job:ps/task:0", &client, &o};
    CHECK_OK(leat_channel_open_link(transport, &to, &c));
    check_logged(client_says);
    check_logged("No socket to /job:ps/task:0 at 127.0.0.1:2222, port ");
    if (server_says) {
        check_logged(server_says);
        check_logged("No TLS with the socket of 127.0.0.1:");
    }
    CHECK(leat_channel_state(c) == LEAT_LINK_OPENING);
    leat_channel_free(c);
    transport->stop(listener, in_ms(500));
    log_end();
    security = &mutual;
}

static void refused(void)
{
    leat_security task = of("task", NULL), task_mutual = mutual;
    check_refused(of(NULL, "ca2.pem"), task,
                  "its certificate was refused: unable to get local issuer certificate",
                  "it refused the TLS connection of this task: tlsv1 alert unknown ca");
    check_refused(of(NULL, "ca.pem"), of("named", NULL),
                  "IP address mismatch; it has to be for 127.0.0.1", "bad certificate");
    leat_security renamed = of(NULL, "ca.pem");
    renamed.name = "elsewhere";
    check_refused(renamed, task, "hostname mismatch; it has to be for elsewhere",
                  "bad certificate");
    check_refused(of(NULL, "ca.pem"), of("expired", NULL), "certificate has expired",
                  "certificate expired");
    /* What the server refuses. */
    check_refused(of(NULL, "ca.pem"), task_mutual, "alert certificate required",
                  "peer did not return a certificate");
    check_refused(of("other", "ca.pem"), task_mutual, "alert unknown ca",
                  "its certificate was refused: unable to get local issuer certificate");
    check_refused(of("expired", "ca.pem"), task_mutual, "alert certificate expired",
                  "its certificate was refused: certificate has expired");
    /* TLS at one end only. */
    check_refused(no_tls, task, "the connection was not accepted", "the TLS handshake failed");
    check_refused(of(NULL, "ca.pem"), no_tls, "it ended the connection in the TLS handshake", NULL);
}

static void check_accepted(leat_security client, leat_security server)
{
    leat_channel *c;
    char reply[8];
    security = &server;
    listen_here();
    security = &client;
    CHECK_OK(open_by(&offer, &c));
    CHECK(leat_channel_state(c) == LEAT_LINK_LIVES);
    CHECK_OK(echo_call(c, "/test/Echo", "hello", reply, sizeof reply, NULL));
    leat_channel_free(c);
    transport->stop(listener, in_ms(500));
    security = &mutual;
}

static void accepted(void)
{
    leat_security renamed = of(NULL, "ca.pem"), local = of(NULL, "ca.pem");
    renamed.name = "elsewhere";
    local.name = "localhost";
    check_accepted(of(NULL, "ca.pem"), of("task", NULL));
    check_accepted(local, of("task", NULL));
    check_accepted(renamed, of("named", NULL));
    check_accepted(mutual, mutual);
    check_accepted(of("named", "ca.pem"), mutual); /* a client's name is its own matter */
    setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", file("ca.pem"), 1);
    check_accepted(of("task", NULL), of("task", NULL));
    unsetenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH");
}

/* The offer's secret is wanted with TLS, too. */
static void secret(void)
{
    leat_channel *c;
    log_begin();
    listen_here();
    leat_stream_name n = socket_name();
    n.secret[7] ^= 1;
    set_offer(&n);
    leat_offer o = {.data = offer};
    leat_link_target to = {"127.0.0.1:2222", "/job:ps/task:0", security, &o};
    CHECK_OK(leat_channel_open_link(transport, &to, &c));
    check_logged("the connection was not accepted");
    CHECK(leat_channel_state(c) == LEAT_LINK_OPENING);
    leat_channel_free(c);
    transport->stop(listener, in_ms(500));
    log_end();
}

static void old_protocol(void)
{
    char command[300];
    log_begin();
    listen_here();
    snprintf(command, sizeof command,
             "openssl s_client -tls1_1 -cipher ALL:@SECLEVEL=0 -connect 127.0.0.1:%d "
             "</dev/null >/dev/null 2>&1",
             socket_name().port);
    CHECK(system(command) != 0);
    check_logged("the TLS handshake failed: unsupported protocol");
    transport->stop(listener, in_ms(500));
    log_end();
}

/* ---- What cannot be used ---- */
static void check_not_offered(leat_security server, const char *words)
{
    log_begin();
    security = &server;
    change_offer = NULL;
    listen_here();
    CHECK_INT(socket_name().port, 0);
    check_logged("No socket is offered to tasks of other machines: ");
    check_logged(words);
    transport->stop(listener, in_ms(500));
    log_end();
    change_offer = from_afar;
    security = &mutual;
}

static void bad_files(void)
{
    leat_security s = of("task", NULL);
    s.certificate = "/no/such.pem";
    check_not_offered(s, "/no/such.pem cannot be used: No such file");
    s.certificate = "/etc/hostname";
    check_not_offered(s, "/etc/hostname cannot be used: no start line");
    s = of("task", NULL);
    s.key = file("other.key");
    check_not_offered(s, "other.key cannot be used: key values mismatch");
    check_not_offered(of(NULL, "ca.pem"), "a certificate and its key are needed");
    s = of("task", NULL);
    s.mutual = true;
    check_not_offered(s, "Mutual TLS needs the authority");
    listen_here();
    leat_channel *c;
    leat_security client = of(NULL, "ca.pem");
    client.authority = "/no/such.pem";
    security = &client;
    CHECK_ERROR(open_by(&offer, &c), INVALID_ARGUMENT, "The file of TLS authorities /no/such.pem");
    client = of("task", "ca.pem");
    client.key = NULL;
    CHECK_ERROR(open_by(&offer, &c), INVALID_ARGUMENT, "only the certificate is given");
    char name[300];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    client = of(NULL, "ca.pem");
    client.name = name;
    CHECK_ERROR(open_by(&offer, &c), INVALID_ARGUMENT, "certificates carry is too long");
    transport->stop(listener, in_ms(500));
    security = &mutual;
}

/* ---- Bytes that are no TLS ---- */
static void garbage(void)
{
    char reply[8];
    start();
    unsigned seed = 5;
    for (int i = 0; i < 100; i++) {
        uint8_t bytes[600];
        int fd = connect_raw();
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)rand_r(&seed);
        if (i % 2) /* the header of a handshake record */
            memcpy(bytes, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
        (void)!send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        CHECK(is_closed(fd));
        close(fd);
    }
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 5000));
    stop();
}

/* Peers that never say a word, or stop in the middle of one, keep nobody out. */
static void silence(void)
{
    enum { N = 200 };
    static int fds[N];
    char reply[8];
    listen_here();
    for (int i = 0; i < N; i++) {
        fds[i] = connect_raw();
        if (i % 2)
            (void)!send(fds[i], "\x16\x03\x01\x02\x00\x01", 6, MSG_NOSIGNAL);
    }
    int64_t begin = leat_now_ns();
    open_channel();
    CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 5000));
    CHECK(leat_now_ns() - begin < 2500000000);
    for (int i = 0; i < N; i++) {
        CHECK(is_closed(fds[i]));
        close(fds[i]);
    }
    stop();
}

static atomic_bool flooding;

/* Sends what is no TLS, and then whatever the listener takes. */
static void *flood(void *arg)
{
    static const char bytes[4096] = "leatsock";
    while (atomic_load(&flooding)) {
        int fd = connect_raw();
        while (atomic_load(&flooding) && send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
            ;
        close(fd);
    }
    return NULL;
}

/* A peer that is refused and goes on sending holds up nobody who comes after it. */
static void flooded(void)
{
    char reply[8];
    pthread_t t;
    atomic_store(&flooding, true);
    listen_here();
    CHECK(pthread_create(&t, NULL, flood, NULL) == 0);
    usleep(200000);
    for (int i = 0; i < 3; i++) {
        open_channel();
        CHECK_OK(ask("/test/Echo", "hello", reply, sizeof reply, 5000));
        leat_channel_free(channel);
    }
    atomic_store(&flooding, false);
    pthread_join(t, NULL);
    transport->stop(listener, in_ms(500));
}

/* ---- A middle-man, who cuts off or changes what passes by ---- */
typedef struct middle {
    int listening;
    /* Indices: 0 from the client, 1 from the server. Bytes after which the connection is cut, or a
     * byte is changed; 0: never. */
    int64_t cut[2], change[2];
} middle;

static void *pass_on(void *arg)
{
    const middle *m = arg;
    int fd[2] = {accept(m->listening, NULL, NULL), connect_raw()};
    int64_t passed[2] = {0, 0};
    for (bool open = true; open;) {
        struct pollfd p[2] = {{fd[0], POLLIN, 0}, {fd[1], POLLIN, 0}};
        poll(p, 2, -1);
        for (int i = 0; i < 2 && open; i++) {
            uint8_t bytes[2000];
            ssize_t n = p[i].revents ? recv(fd[i], bytes, sizeof bytes, 0) : 0;
            if (!p[i].revents)
                continue;
            if (m->change[i] > passed[i] && m->change[i] < passed[i] + n)
                bytes[m->change[i] - passed[i]] ^= 0x10;
            open = n > 0 && (!m->cut[i] || passed[i] + n < m->cut[i]);
            if (n > 0 && !open)
                n = m->cut[i] - passed[i];
            passed[i] += n;
            open = n > 0 && send(fd[!i], bytes, (size_t)n, MSG_NOSIGNAL) == n && open;
        }
    }
    close(fd[0]);
    close(fd[1]);
    return NULL;
}

/* How a call with a large message ends that goes through the middle-man. */
static leat_status through(middle *m)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    m->listening = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(m->listening, (struct sockaddr *)&a, size) == 0 && listen(m->listening, 1) == 0 &&
          getsockname(m->listening, (struct sockaddr *)&a, &size) == 0);
    listen_here();
    pthread_t t;
    CHECK(pthread_create(&t, NULL, pass_on, m) == 0);
    leat_stream_name n = socket_name();
    n.port = ntohs(a.sin_port);
    leat_strbuf to_middle = {0};
    leat_stream_name_write(&n, &to_middle);
    CHECK_OK(open_by(&to_middle, &channel));
    CHECK(leat_channel_state(channel) == LEAT_LINK_LIVES);
    char *text = leat_xmalloc(1 << 20), *reply = leat_xmalloc(1 << 20);
    memset(text, 'x', 1 << 20);
    text[(1 << 20) - 1] = 0;
    leat_status s = ask("/test/Echo", text, reply, 1 << 20, 10000);
    if (!s)
        CHECK_STR(reply, text);
    leat_channel_free(channel);
    pthread_join(t, NULL);
    close(m->listening);
    transport->stop(listener, in_ms(500));
    leat_strbuf_release(&to_middle);
    free(text);
    free(reply);
    return s;
}

static void cut_and_changed(void)
{
    CHECK_OK(through(&(middle){0}));
    CHECK_ERROR(through(&(middle){.cut = {500000, 0}}), UNAVAILABLE,
                "closed the connection in mid-call");
    CHECK_ERROR(through(&(middle){.cut = {0, 500000}}), UNAVAILABLE,
                "closed the connection in mid-call");
    CHECK_ERROR(through(&(middle){.change = {500000, 0}}), UNAVAILABLE,
                "closed the connection in mid-call");
    CHECK_ERROR(through(&(middle){.change = {0, 500000}}), UNAVAILABLE,
                "sent what is no frame: the connection was closed");
}

/* ---- Much at once ---- */
static void *ask_large(void *arg)
{
    enum { N = LARGE, ROUNDS = 6 };
    const uint8_t *bytes = leat_tensor_data(arg);
    for (int i = 0; i < ROUNDS; i++) {
        leat_outgoing out = {0};
        leat_strbuf_puts(&out.text, "odd");
        leat_outgoing_tensor(&out, arg);
        void *reply = NULL;
        size_t n = 0;
        CHECK_OK(leat_channel_call_wait(channel, "/test/Share", &out, NULL, &reply, &n));
        CHECK_INT(n, N);
        CHECK(reply && memcmp(reply, bytes, N) == 0);
        free(reply);
    }
    return NULL;
}

/* Both ends write more than any buffer holds, at the same time. */
static void both_ways(void)
{
    enum { N = LARGE, THREADS = 4 };
    pthread_t t[THREADS];
    leat_tensor *large;
    CHECK_OK(leat_tensor_new(LEAT_UINT8, leat_shape(N), &large));
    uint8_t *bytes = leat_tensor_mutable(large);
    for (int i = 0; i < N; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 4096);
    start();
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&t[i], NULL, ask_large, large) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    stop();
    leat_tensor_unref(large);
}

/* The keys change in the middle of messages. */
static void new_keys(void)
{
    int64_t was = leat_tls_key_records;
    leat_tls_key_records = 3;
    both_ways();
    leat_tls_key_records = was;
}

int main(int argc, char **argv)
{
    transport = &leat_transport_socket;
    in_words = "/job:ps/task:0 (127.0.0.1:2222, socket)";
    change_offer = from_afar;
    bool task = argc == 4 && strcmp(argv[1], "--role") == 0;
    if (task)
        snprintf(certificates, sizeof certificates, "%s", getenv("LEAT_TEST_CERTIFICATES"));
    else if (!certificates_make()) {
        printf("the openssl command is not there\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    setenv("LEAT_TEST_CERTIFICATES", certificates, 1);
    char own[3][100];
    snprintf(own[0], sizeof own[0], "%s/task.pem", certificates);
    snprintf(own[1], sizeof own[1], "%s/task.key", certificates);
    snprintf(own[2], sizeof own[2], "%s/ca.pem", certificates);
    mutual =
        (leat_security){.certificate = own[0], .key = own[1], .authority = own[2], .mutual = true};
    security = &mutual;
    if (task)
        return serve();
    int rc =
        RUN(argc, argv, STREAM_CASES, {"refused", refused}, {"accepted", accepted},
            {"secret", secret}, {"old_protocol", old_protocol}, {"bad_files", bad_files},
            {"garbage", garbage}, {"silence", silence}, {"flooded", flooded},
            {"cut_and_changed", cut_and_changed}, {"both_ways", both_ways}, {"new_keys", new_keys});
    certificates_remove();
    return rc;
}
