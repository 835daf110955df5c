/* transports_test.c -- the list of transports: a transport that the test adds is checked, offered
 * by GetStatus, used for calls, not used when its link has broken, and used again. */
#include "echo.h"

#include <leat/leat.h>
#include <pthread.h>

#include "cluster/call_many.h"
#include "cluster/server.h"
#include "cluster/transport_int.h"
#include "core/alloc.h"
#include "proto/wire.h"

/* ---- A transport that fails every call, so that one can see where calls went ---- */
static struct {
    leat_status listen_error, open_error;
    leat_link_state state;
    atomic_int calls, opened, listening, replaced;
    char offer[16];
} fake;

typedef struct fake_reply {
    leat_reply_fn fn;
    void *arg;
} fake_reply;

static void *fail_call(void *arg)
{
    fake_reply r = *(fake_reply *)arg;
    free(arg);
    r.fn(r.arg, leat_error(ABORTED, "went by the fake"), NULL);
    return NULL;
}

static void fake_cancel(leat_call *call) {}

static void fake_call(leat_link *l, const char *method, leat_outgoing *request,
                      const leat_call_options *options, leat_reply_fn fn, void *arg,
                      leat_call **call_out)
{
    static leat_call call = {fake_cancel};
    atomic_fetch_add(&fake.calls, 1);
    leat_outgoing_release(request);
    if (call_out)
        *call_out = &call;
    fake_reply *r = leat_new(fake_reply);
    *r = (fake_reply){fn, arg};
    pthread_t t;
    CHECK(pthread_create(&t, NULL, fail_call, r) == 0);
    pthread_detach(t);
}

static void fake_free(leat_link *l)
{
    free(l);
}

static void fake_replaced(leat_link *l)
{
    atomic_fetch_add(&fake.replaced, 1);
}

static leat_link_state fake_state(const leat_link *l)
{
    return fake.state;
}

static leat_status fake_open(const leat_link_target *to, leat_link **out)
{
    static const leat_link_ops ops = {
        .call = fake_call, .free = fake_free, .state = fake_state, .replaced = fake_replaced};
    if (fake.open_error)
        return leat_status_copy(fake.open_error);
    CHECK_INT(to->offer->data.n, strlen(fake.offer));
    CHECK(memcmp(to->offer->data.s, fake.offer, to->offer->data.n) == 0);
    atomic_fetch_add(&fake.opened, 1);
    *out = leat_new(leat_link);
    (*out)->ops = &ops;
    return NULL;
}

static leat_status fake_listen(const char *address, const leat_listen_options *options,
                               leat_handler_fn handler, void *arg, leat_strbuf *offer_out,
                               leat_endpoint **out)
{
    if (fake.listen_error)
        return leat_status_copy(fake.listen_error);
    leat_strbuf_puts(offer_out, fake.offer);
    atomic_fetch_add(&fake.listening, 1);
    *out = leat_new(leat_endpoint);
    return NULL;
}

static void fake_stop(leat_endpoint *e, int64_t deadline_ns)
{
    atomic_fetch_sub(&fake.listening, 1);
    free(e);
}

static leat_transport fake_transport;
extern const leat_transport leat_transport_grpc;
static const leat_transport *const with_fake[] = {&fake_transport, &leat_transport_grpc, NULL};
static const leat_transport *const *built_in;

static void begin(void)
{
    if (!built_in)
        built_in = leat_transports;
    leat_transports = with_fake;
    fake_transport = (leat_transport){
        .name = "fake", .listen = fake_listen, .stop = fake_stop, .open = fake_open};
    leat_status_free(fake.listen_error);
    leat_status_free(fake.open_error);
    fake.listen_error = fake.open_error = NULL;
    fake.state = LEAT_LINK_LIVES;
    atomic_store(&fake.calls, 0);
    atomic_store(&fake.opened, 0);
    atomic_store(&fake.replaced, 0);
    snprintf(fake.offer, sizeof fake.offer, "first");
    echo_begin();
}

static void end(void)
{
    leat_transports = built_in;
}

/* ---- A listener and a channel ---- */
static leat_listener *listener;
static leat_channel *channel;
static leat_offers offers;

static void start(uint32_t mask)
{
    char address[32];
    leat_listen_options o = {.transports = mask, .offers = &offers};
    CHECK_OK(leat_listen("127.0.0.1:0", &o, echo_handle, NULL, &listener));
    snprintf(address, sizeof address, "127.0.0.1:%d", leat_listener_port(listener));
    CHECK_OK(leat_channel_open(address, "/job:ps/task:0", NULL, &channel));
}

static void stop(void)
{
    leat_channel_free(channel);
    leat_listener_stop(listener, in_ms(500));
    leat_offers_release(&offers);
    CHECK_INT(atomic_load(&fake.listening), 0);
}

/* Whether a call uses the test's transport; otherwise it uses gRPC, and peer is the caller's
 * address. */
static char peer[64];
static bool by_fake(void)
{
    int before = atomic_load(&fake.calls);
    leat_call_options o = {.deadline_ns = in_ms(20000)};
    leat_status s = echo_call(channel, "/test/Peer", "", peer, sizeof peer, &o);
    bool went = atomic_load(&fake.calls) > before;
    if (went)
        CHECK_ERROR(s, ABORTED, "went by the fake");
    else
        CHECK_OK(s);
    return went;
}

static void chosen(void)
{
    begin();
    start(1);
    CHECK_INT(offers.n, 1);
    CHECK_STR(offers.v[0].transport, "fake");
    CHECK(!by_fake()); /* the channel does not have the offer yet */
    leat_channel_use_offers(channel, &offers, 0);
    CHECK(!by_fake());
    leat_channel_use_offers(channel, &offers, 1);
    CHECK(by_fake());
    leat_channel_use_offers(channel, &offers, 1);
    CHECK_INT(atomic_load(&fake.opened), 1); /* it has that link already */
    CHECK(!leat_channel_degraded(channel));
    fake.state = LEAT_LINK_OPENING;
    CHECK(!by_fake());
    CHECK(!leat_channel_degraded(channel));
    fake.state = LEAT_LINK_DEAD;
    CHECK(!by_fake());
    CHECK(leat_channel_degraded(channel));
    /* The peer was started anew, and offers something else. */
    snprintf(fake.offer, sizeof fake.offer, "second");
    offers.v[0].data.n = 0;
    leat_strbuf_puts(&offers.v[0].data, "second");
    leat_channel_use_offers(channel, &offers, 1);
    CHECK_INT(atomic_load(&fake.opened), 2);
    CHECK_INT(atomic_load(&fake.replaced), 1);
    fake.state = LEAT_LINK_LIVES;
    CHECK(by_fake());
    stop();
    end();
}

/* When a link dies, the connection of the other one may be dead, too, which is not noticed while no
 * call uses it: the first call after that gets a new connection, later ones keep it. */
static void renewed(void)
{
    char first[64], second[64];
    begin();
    start(1);
    CHECK(!by_fake());
    snprintf(first, sizeof first, "%s", peer);
    leat_channel_use_offers(channel, &offers, 1);
    CHECK(by_fake());
    fake.state = LEAT_LINK_DEAD;
    CHECK(!by_fake());
    snprintf(second, sizeof second, "%s", peer);
    CHECK(strcmp(first, second) != 0);
    CHECK(!by_fake());
    CHECK_STR(peer, second);
    stop();
    end();
}

static void refused(void)
{
    begin();
    start(1);
    fake.open_error = leat_error(UNAVAILABLE, "not today");
    leat_channel_use_offers(channel, &offers, 1);
    CHECK(!by_fake());
    CHECK(!leat_channel_degraded(channel));
    stop();
    /* A server that cannot listen on one transport listens on the others. */
    fake.listen_error = leat_error(UNAVAILABLE, "no room");
    start(1);
    CHECK_INT(offers.n, 0);
    CHECK(!by_fake());
    stop();
    end();
}

static void checked(void)
{
    static const leat_transport *const only_fake[] = {&fake_transport, NULL};
    leat_channel *c;
    begin();
    fake_transport.open = NULL;
    CHECK_ERROR(leat_channel_open("localhost:1", "x", NULL, &c), INTERNAL,
                "Transport fake has no function \"open\"");
    CHECK_ERROR(leat_listen("localhost:0", NULL, echo_handle, NULL, &listener), INTERNAL,
                "Transport fake has no function \"open\"");
    fake_transport.open = fake_open;
    fake_transport.name = "a name that is too long";
    CHECK_ERROR(leat_transports_check(), INTERNAL, "too long");
    fake_transport.name = "fake";
    leat_transports = only_fake;
    CHECK_ERROR(leat_transports_check(), INTERNAL, "has to be spoken by every address, not 0");
    fake_transport.by_address = true;
    CHECK_ERROR(leat_transports_check(), INTERNAL, "no function \"port\"");
    leat_transports = with_fake;
    end();
    CHECK_OK(leat_transports_check());
}

static void parsed(void)
{
    uint32_t mask;
    begin();
    CHECK_OK(leat_transports_parse(NULL, &mask));
    CHECK(mask == UINT32_MAX);
    CHECK_OK(leat_transports_parse("", &mask));
    CHECK_INT(mask, 0);
    CHECK_OK(leat_transports_parse("grpc", &mask));
    CHECK_INT(mask, 2);
    CHECK_OK(leat_transports_parse("grpc,fake", &mask));
    CHECK_INT(mask, 3);
    CHECK_ERROR(leat_transports_parse("fak", &mask), INVALID_ARGUMENT,
                "\"fak\" is no transport: there are fake, grpc");
    CHECK_ERROR(leat_transports_parse("fake,pigeon", &mask), INVALID_ARGUMENT, "\"pigeon\"");
    end();
}

/* ---- Servers: what one offers by GetStatus the other takes up ---- */
static leat_cluster *cluster_of(leat_server *a)
{
    leat_cluster *c = leat_cluster_new();
    CHECK_OK(leat_cluster_add(c, "worker", leat_server_target(a) + strlen("grpc://")));
    return c;
}

static leat_status call_status(leat_peer *p)
{
    leat_pending_call q = {.peer = p};
    leat_status s = leat_call_many(&q, 1, "/tensorflow.WorkerService/GetStatus", "test",
                                   in_ms(20000), false, NULL);
    leat_status_free(q.status);
    free(q.reply);
    return s;
}

static void offered(void)
{
    leat_server *server;
    leat_peers *peers;
    begin();
    CHECK_OK(leat_server_start_local(&server));
    CHECK_INT(atomic_load(&fake.listening), 1);
    leat_cluster *c = cluster_of(server);
    CHECK_OK(leat_peers_new(c, NULL, &peers));
    CHECK_OK(call_status(leat_peers_at(peers, 0)));
    await(&fake.opened, 1);
    CHECK_ERROR(call_status(leat_peers_at(peers, 0)), ABORTED, "went by the fake");
    /* The link breaks: calls go on, and the peer's next status brings an offer for a new link. */
    fake.state = LEAT_LINK_DEAD;
    CHECK_OK(call_status(leat_peers_at(peers, 0)));
    for (int i = 0; i < 100 && atomic_load(&fake.opened) < 2; i++) {
        CHECK_OK(call_status(leat_peers_at(peers, 0)));
        usleep(100000);
    }
    CHECK_INT(atomic_load(&fake.opened), 2);
    leat_peers_free(peers);
    leat_server_free(server);
    leat_cluster_free(c);
    CHECK_INT(atomic_load(&fake.listening), 0);
    end();
}

/* A server that may use gRPC alone neither offers nor uses another transport. */
static void turned_off(void)
{
    leat_server *server;
    begin();
    leat_cluster *c = leat_cluster_new();
    CHECK_OK(leat_cluster_add(c, "worker", "localhost:0"));
    leat_server_options o = {.transports = "grpc"};
    CHECK_OK(leat_server_start(c, "worker", 0, &o, &server));
    CHECK_INT(atomic_load(&fake.listening), 0);
    leat_server_free(server);
    o.transports = "smoke";
    CHECK_ERROR(leat_server_start(c, "worker", 0, &o, &server), INVALID_ARGUMENT,
                "\"smoke\" is no transport");
    leat_cluster_free(c);
    end();
}

/* Whether the status of a server with these options offers that transport. */
static bool offers_it(const leat_server_options *o, const char *name)
{
    leat_server *server;
    leat_channel *to;
    void *reply = NULL;
    size_t n = 0;
    leat_cluster *c = leat_cluster_new();
    CHECK_OK(leat_cluster_add(c, "worker", "localhost:0"));
    CHECK_OK(leat_server_start(c, "worker", 0, o, &server));
    const char *address = leat_server_target(server) + strlen("grpc://");
    CHECK_OK(leat_channel_open(address, "/job:worker/task:0", NULL, &to));
    leat_call_options options = {.deadline_ns = in_ms(20000)};
    CHECK_OK(leat_channel_call_wait(to, "/tensorflow.WorkerService/GetStatus", &(leat_outgoing){0},
                                    &options, &reply, &n));
    Leat__GetStatusResponse *r = NULL;
    CHECK_OK(LEAT_UNPACK(get_status_response, reply, n, &r));
    bool found = false;
    for (size_t i = 0; r && r->leat && i < r->leat->n_offer; i++)
        found |= strcmp(r->leat->offer[i]->transport, name) == 0;
    leat_proto_free(r);
    free(reply);
    leat_channel_free(to);
    leat_server_free(server);
    leat_cluster_free(c);
    return found;
}

/* The option leaves shared memory out, and nothing else. */
static void no_shared_memory(void)
{
    leat_server_options o = {0};
    CHECK(offers_it(&o, "shm"));
    o.no_shared_memory = true;
    CHECK(!offers_it(&o, "shm"));
    CHECK(offers_it(&o, "socket"));
    o.transports = "grpc,shm";
    CHECK(!offers_it(&o, "shm"));
    CHECK(!offers_it(&o, "socket"));
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"chosen", chosen}, {"renewed", renewed}, {"refused", refused},
               {"checked", checked}, {"parsed", parsed}, {"offered", offered},
               {"turned_off", turned_off}, {"no_shared_memory", no_shared_memory});
}
