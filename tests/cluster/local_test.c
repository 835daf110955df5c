/* local_test.c -- calls between tasks of one process: the cases of all transports, tensors that are
 * not copied, offers of other processes, and calls that end in several ways at once. */
#include <leat/leat.h>

#include "cluster/call_cases.h"
#include "core/later.h"
#include "core/thread.h"

extern const leat_transport leat_transport_local;

/* ---- Without a copy ---- */
static const void *sent, *served;

static void give_back(void *arg, leat_server_call *a, const char *method, const leat_incoming *in)
{
    leat_outgoing out = {0};
    CHECK_INT(in->n, 3); /* text, tensor, text */
    CHECK(in->slices[1].owner && !in->slices[0].owner && !in->slices[2].owner);
    CHECK(memcmp(in->slices[0].data, "before", 6) == 0);
    served = in->slices[1].data;
    leat_shape shape = leat_shape((int64_t)in->slices[1].n);
    leat_buffer_ref(in->slices[1].owner);
    leat_tensor *t = leat_tensor_over(in->slices[1].owner, (void *)served, LEAT_UINT8, &shape);
    leat_outgoing_tensor(&out, t);
    leat_tensor_unref(t);
    leat_server_call_reply(a, NULL, &out);
}

typedef struct came {
    leat_event done;
    const void *data;
    leat_buffer *kept;
} came;

static void keep(void *arg, leat_status s, const leat_incoming *in)
{
    came *c = arg;
    CHECK_OK(s);
    if (in && in->n == 1) {
        c->data = in->slices[0].data;
        c->kept = in->slices[0].owner;
        leat_buffer_ref(c->kept);
    }
    leat_event_set(&c->done);
}

static void by_reference(void)
{
    came c = {0};
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_UINT8, leat_shape(100), &t));
    memset(leat_tensor_mutable(t), 7, 100);
    sent = leat_tensor_data(t);
    leat_strbuf_release(&offer);
    CHECK_OK(transport->listen("", &(leat_listen_options){0}, give_back, NULL, &offer, &listener));
    open_channel();
    leat_outgoing out = {0};
    leat_strbuf_puts(&out.text, "before");
    leat_outgoing_tensor(&out, t);
    leat_strbuf_puts(&out.text, "after");
    leat_event_init(&c.done);
    leat_channel_call(channel, "/test/Give", &out, NULL, keep, &c, NULL);
    leat_event_wait(&c.done, 0);
    stop();
    CHECK(served == sent && c.data == sent && c.kept == t->buffer);
    leat_tensor_unref(t);
    CHECK(c.kept && ((const uint8_t *)c.kept->data)[99] == 7); /* it is the receiver's now */
    leat_buffer_unref(c.kept);
}

/* ---- Offers ---- */
static void set_offer(const char *text)
{
    leat_strbuf_release(&offer);
    leat_strbuf_puts(&offer, text);
}

static void elsewhere(void)
{
    unsigned long long identity, number;
    long long pid;
    char text[64];
    listen_here();
    CHECK_INT(sscanf(offer.s, "%llx %lld %llu", &identity, &pid, &number), 3);
    snprintf(text, sizeof text, "%llx %lld %llu", identity ^ 1, pid, number);
    set_offer(text);
    CHECK_ERROR(open_by(&offer, &channel), FAILED_PRECONDITION,
                "/job:ps/task:0 is in another process");
    /* A process that was forked off has the same random number. */
    snprintf(text, sizeof text, "%llx %lld %llu", identity, pid + 1, number);
    set_offer(text);
    CHECK_ERROR(open_by(&offer, &channel), FAILED_PRECONDITION, "is in another process");
    snprintf(text, sizeof text, "%llx %lld %llu", identity, pid, number);
    transport->stop(listener, in_ms(100));
    set_offer(text);
    CHECK_ERROR(open_by(&offer, &channel), UNAVAILABLE,
                "The server of /job:ps/task:0 in this process was stopped");
    static const char *const bad[] = {
        "",
        "zz",
        "1 2",
        "1 2 3 4",
        "1 2 3 ",
        "11111111111111111 2 3",
        "1 2 3333333333333333333333333333333333333333333333333333333333333333333"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        set_offer(bad[i]);
        CHECK_ERROR(open_by(&offer, &channel), INVALID_ARGUMENT, "cannot be read");
    }
}

/* ---- Ends that race ---- */
enum { ROUNDS = 2000 };

typedef struct race {
    leat_call *call;
    pthread_mutex_t lock; /* guards call, as callers do; NULL once the reply function runs */
    leat_event done;
    int replies;
    leat_status status;
} race;

static void race_ends(void *arg, leat_status s, const leat_incoming *in)
{
    race *r = arg;
    pthread_mutex_lock(&r->lock);
    r->call = NULL;
    r->replies++;
    pthread_mutex_unlock(&r->lock);
    r->status = s;
    leat_event_set(&r->done);
}

static void *reply_soon(void *arg)
{
    leat_server_call *a = arg;
    leat_server_call_reply(a, NULL, &(leat_outgoing){0});
    return NULL;
}

static atomic_int raced_gone;
static void note_raced(void *arg)
{
    atomic_fetch_add(&raced_gone, 1);
}

static void handle_race(void *arg, leat_server_call *a, const char *method, const leat_incoming *in)
{
    pthread_t t;
    leat_server_call_on_cancel(a, note_raced, NULL);
    if (strcmp(method, "/test/Now") == 0) {
        reply_soon(a);
        return;
    }
    CHECK(pthread_create(&t, NULL, reply_soon, a) == 0);
    pthread_detach(t);
}

/* A call is replied to, cancelled and late at the same time: it ends once. */
static void ends_once(void)
{
    leat_strbuf_release(&offer);
    CHECK_OK(
        transport->listen("", &(leat_listen_options){0}, handle_race, NULL, &offer, &listener));
    open_channel();
    for (int i = 0; i < ROUNDS; i++) {
        race r = {.lock = PTHREAD_MUTEX_INITIALIZER};
        leat_event_init(&r.done);
        leat_call_options o = {.deadline_ns = i % 3 ? 0 : leat_now_ns() + i % 100 * 1000};
        pthread_mutex_lock(&r.lock);
        leat_channel_call(channel, i % 2 ? "/test/Now" : "/test/Soon", &(leat_outgoing){0}, &o,
                          race_ends, &r, &r.call);
        pthread_mutex_unlock(&r.lock);
        for (int k = 0; k < i % 50; k++)
            sched_yield();
        pthread_mutex_lock(&r.lock);
        if (r.call)
            leat_call_cancel(r.call);
        pthread_mutex_unlock(&r.lock);
        leat_event_wait(&r.done, 0);
        leat_code code = leat_status_code(r.status);
        CHECK(code == LEAT_OK || code == LEAT_CANCELLED || code == LEAT_DEADLINE_EXCEEDED);
        leat_status_free(r.status);
        CHECK_INT(r.replies, 1);
    }
    stop();
}

/* Deadlines that are set in any order are kept, also while one far away is waited for. */
static void deadlines(void)
{
    enum { N = 6 };
    static const int ms[N] = {5000, 60, 30, 90, 20000, 10};
    result r[N];
    start();
    int64_t begin = leat_now_ns();
    for (int i = 0; i < N; i++) {
        leat_event_init(&r[i].done);
        leat_call_options o = {.deadline_ns = begin + ms[i] * INT64_C(1000000)};
        leat_event_init(&released[i]);
        leat_channel_call(channel, "/test/Block", &(leat_outgoing){0}, &o, on_result, &r[i], NULL);
    }
    for (int i = 0; i < N; i++)
        if (ms[i] < 1000) {
            leat_event_wait(&r[i].done, 0);
            CHECK(leat_now_ns() - begin < INT64_C(2000000000));
            CHECK_ERROR(r[i].status, DEADLINE_EXCEEDED, "did not answer in time");
        }
    CHECK(leat_now_ns() - begin >= INT64_C(90000000));
    await(&entered, N);
    for (int i = 0; i < N; i++)
        leat_event_set(&released[i]);
    for (int i = 0; i < N; i++)
        if (ms[i] > 1000) {
            leat_event_wait(&r[i].done, 0);
            CHECK_OK(r[i].status);
        }
    stop();
}

static void release_first(void *arg, leat_status s, const leat_incoming *in)
{
    leat_event_set(&released[0]);
    on_result(arg, s, in);
}

/* A thread that puts jobs off runs the handlers of its calls later, itself: one that blocks does
 * not hold up the next one. */
static void put_off(void)
{
    result r[2];
    start();
    leat_event_init(&released[0]);
    leat_later_jobs_begin();
    call("/test/Block", &r[0], NULL);
    leat_event_init(&r[1].done);
    leat_channel_call(channel, "/test/Echo", &(leat_outgoing){0}, NULL, release_first, &r[1], NULL);
    usleep(20000);
    CHECK_INT(atomic_load(&entered), 0);
    leat_later_jobs_end(); /* the first handler waits for the second call's reply */
    for (int i = 0; i < 2; i++) {
        leat_event_wait(&r[i].done, 0);
        CHECK_OK(r[i].status);
    }
    stop();
}

/* ---- No thread can be started ---- */
static void refuse_threads(bool on)
{
    __atomic_store_n(&leat_threads_refused, on, __ATOMIC_SEQ_CST);
}

static void no_thread_to_open(void)
{
    leat_strbuf none = {0};
    leat_endpoint *e;
    refuse_threads(true);
    CHECK_ERROR(transport->listen("", &(leat_listen_options){0}, handle, NULL, &none, &e),
                RESOURCE_EXHAUSTED, "ulimit -u");
    refuse_threads(false);
    start();
    CHECK_OK(ask("/test/Echo", "", NULL, 0, 0));
    stop();
}

/* A call for which there is no thread fails at once and says why. Its caller may hold a lock that
 * the reply function takes. */
static void no_thread_to_call(void)
{
    race r = {.lock = PTHREAD_MUTEX_INITIALIZER};
    leat_call_options o = {.deadline_ns = in_ms(20000)};
    int64_t begin = leat_now_ns();
    start();
    refuse_threads(true);
    leat_event_init(&r.done);
    pthread_mutex_lock(&r.lock);
    leat_channel_call(channel, "/test/Echo", &(leat_outgoing){0}, &o, race_ends, &r, &r.call);
    pthread_mutex_unlock(&r.lock);
    leat_event_wait(&r.done, 0);
    CHECK_INT(r.replies, 1);
    CHECK_ERROR(r.status, RESOURCE_EXHAUSTED,
                "no thread can be started for the call: Resource temporarily unavailable");
    /* The same for a call that a thread has put off. */
    leat_event_init(&r.done);
    leat_later_jobs_begin();
    leat_channel_call(channel, "/test/Echo", &(leat_outgoing){0}, &o, race_ends, &r, &r.call);
    leat_event_wait(&r.done, 0);
    leat_later_jobs_end();
    CHECK_ERROR(r.status, RESOURCE_EXHAUSTED, "ulimit -u");
    refuse_threads(false);
    CHECK_OK(ask("/test/Echo", "", NULL, 0, 0));
    CHECK(leat_now_ns() - begin < INT64_C(10000000000));
    stop();
}

/* Without a thread for its reply function, a call ends by its deadline, by its handler's reply and
 * when it is cancelled. */
static void no_thread_to_reply(void)
{
    enum { LATE, REPLIED, CANCELLED, N };
    race r[N];
    start();
    for (int i = 0; i < N; i++) {
        r[i] = (race){.lock = PTHREAD_MUTEX_INITIALIZER};
        leat_event_init(&r[i].done);
        leat_event_init(&released[i]);
        leat_call_options o = {.deadline_ns = i == LATE ? in_ms(300) : 0};
        leat_channel_call(channel, "/test/Block", &(leat_outgoing){0}, &o, race_ends, &r[i],
                          &r[i].call);
        await(&entered, i + 1);
    }
    refuse_threads(true);
    leat_event_wait(&r[LATE].done, 0);
    CHECK_ERROR(r[LATE].status, DEADLINE_EXCEEDED, "did not answer in time");
    leat_event_set(&released[REPLIED]);
    leat_event_wait(&r[REPLIED].done, 0);
    CHECK_OK(r[REPLIED].status);
    leat_call_cancel(r[CANCELLED].call);
    leat_event_wait(&r[CANCELLED].done, 0);
    CHECK_ERROR(r[CANCELLED].status, CANCELLED, "was cancelled");
    refuse_threads(false);
    for (int i = 0; i < N; i++)
        leat_event_set(&released[i]);
    stop();
}

/* Over gRPC first; within the process as soon as the offer is known. */
static void beside_grpc(void)
{
    char reply[64], address[32];
    leat_listener *l;
    leat_offers offers = {0};
    uint32_t mask;
    CHECK_OK(leat_transports_parse(NULL, &mask));
    leat_listen_options o = {.transports = mask, .offers = &offers};
    echo_begin();
    CHECK_OK(leat_listen("127.0.0.1:0", &o, handle, NULL, &l));
    CHECK_STR(offers.v[0].transport, "local"); /* the most preferred one */
    snprintf(address, sizeof address, "127.0.0.1:%d", leat_listener_port(l));
    CHECK_OK(leat_channel_open(address, "/job:ps/task:0", NULL, &channel));
    CHECK_OK(ask("/test/Peer", "", reply, sizeof reply, 5000));
    CHECK(strncmp(reply, "ipv4:127", 8) == 0);
    leat_channel_use_offers(channel, &offers, mask);
    CHECK_OK(ask("/test/Peer", "", reply, sizeof reply, 5000));
    CHECK_STR(reply, "this process");
    leat_channel_free(channel);
    leat_listener_stop(l, in_ms(500));
    leat_offers_release(&offers);
}

int main(int argc, char **argv)
{
    transport = &leat_transport_local;
    in_words = "/job:ps/task:0 (127.0.0.1:2222, in this process)";
    return RUN(argc, argv, CALL_CASES, {"by_reference", by_reference}, {"elsewhere", elsewhere},
               {"ends_once", ends_once}, {"deadlines", deadlines}, {"put_off", put_off},
               {"no_thread_to_open", no_thread_to_open}, {"no_thread_to_call", no_thread_to_call},
               {"no_thread_to_reply", no_thread_to_reply}, {"beside_grpc", beside_grpc});
}
