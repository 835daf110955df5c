/* tls.c -- one TLS connection.
 *
 * 1. OpenSSL never touches the socket. It reads records from `in` and writes records to `out`, by a
 *    BIO of our own; we receive and send these bytes. So a thread that waits for the peer holds no
 *    lock, many records go by one call of the system, and no write raises SIGPIPE.
 * 2. An SSL may be used by one thread at a time. Once the handshake is done one thread reads and
 *    another writes; `lock` is held while a record is encrypted or decrypted, and not longer.
 * 3. `in` belongs to the thread that reads, `out` to the one that writes. To hold this, reading may
 *    not write: a peer that wants an answer from OpenSSL itself (new keys of ours, a TLS 1.2
 *    handshake anew), as no Leat task does, is refused.
 * 4. What does not wait receives once a call: a peer that sends without an end what leads to
 * nothing holds up nobody else.
 * 5. An end without TLS's own goodbye is the end of a connection as any other: frames have lengths,
 *    so that nothing is cut off unnoticed.
 */
#include "cluster/socket/tls.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cluster/socket/openssl.h"
#include "core/alloc.h"

enum {
    RECORD = 16 << 10,       /* bytes of a record before it is encrypted, at most */
    SEALED = RECORD + 512,   /* a record, and a message that changes the key before it */
    OUT_BYTES = 16 * SEALED, /* what is encrypted before it is sent */
    IN_BYTES = 256 << 10,    /* what is received before it is decrypted */
};
int64_t leat_tls_key_records = 1 << 22; /* 64 GB; AES-GCM is safe up to six times as many */

struct leat_tls {
    SSL *ssl;
    pthread_mutex_t lock;    /* guards ssl, may_write and records, once the handshake is done */
    bool may_write;          /* OpenSSL, to out */
    int64_t records;         /* that were written with this key */
    size_t in_from, in_to;   /* what OpenSSL has not read */
    size_t out_from, out_to; /* what was not sent */
    size_t taken;            /* bytes that were given to leat_tls_send and became what is in out */
    char name[256];          /* of the server, which its certificate must have; "": we are it */
    char error[400];         /* see leat_tls_error */
    uint8_t in[IN_BYTES], out[OUT_BYTES];
    uint8_t gathered[RECORD]; /* a record's bytes, if they lie at several places */
};

/* ---- The BIO ---- */
static int bio_read(BIO *b, char *to, int n)
{
    leat_tls *t = BIO_get_data(b);
    size_t here = t->in_to - t->in_from;
    BIO_clear_flags(b, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (!here) {
        BIO_set_flags(b, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
        return -1;
    }
    here = here < (size_t)n ? here : (size_t)n;
    memcpy(to, t->in + t->in_from, here);
    t->in_from += here;
    return (int)here;
}

static int bio_write(BIO *b, const char *from, int n)
{
    leat_tls *t = BIO_get_data(b);
    BIO_clear_flags(b, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (!t->may_write || OUT_BYTES - t->out_to < (size_t)n) {
        BIO_set_flags(b, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY);
        return -1;
    }
    memcpy(t->out + t->out_to, from, (size_t)n);
    t->out_to += (size_t)n;
    return n;
}

static long bio_ctrl(BIO *b, int command, long n, void *p)
{
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;
static pthread_once_t method_once = PTHREAD_ONCE_INIT;

static void make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "leat");
    if (!method)
        return;
    BIO_meth_set_read(method, bio_read);
    BIO_meth_set_write(method, bio_write);
    BIO_meth_set_ctrl(method, bio_ctrl);
}

/* ---- Bytes of the socket ---- */
/* False: errno says why not all could be sent. */
static bool flush(leat_tls *t, int fd)
{
    while (t->out_from < t->out_to) {
        ssize_t n =
            send(fd, t->out + t->out_from, t->out_to - t->out_from, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        t->out_from += n > 0 ? (size_t)n : 0;
    }
    t->out_from = t->out_to = 0;
    return true;
}

/* As recv. OpenSSL has read all that came before. */
static ssize_t fill(leat_tls *t, int fd, int flags)
{
    ssize_t n = recv(fd, t->in, IN_BYTES, flags);
    t->in_from = 0;
    t->in_to = n > 0 ? (size_t)n : 0;
    return n;
}

/* ---- The handshake ---- */
const char *leat_tls_error(const leat_tls *t)
{
    return t->error;
}

/* What OpenSSL says of the function that has failed in this thread. */
static void note_error(leat_tls *t)
{
    long verified = SSL_get_verify_result(t->ssl);
    unsigned long e = ERR_peek_error();
    const char *why = ERR_reason_error_string(e);
    if (verified != X509_V_OK)
        snprintf(t->error, sizeof t->error, "its certificate was refused: %s%s%s",
                 X509_verify_cert_error_string(verified), *t->name ? "; it has to be for " : "",
                 t->name);
    else if (ERR_GET_REASON(e) > SSL_AD_REASON_OFFSET)
        snprintf(t->error, sizeof t->error, "it refused the TLS connection of this task: %s", why);
    else
        snprintf(t->error, sizeof t->error, "the TLS handshake failed: %s", why ? why : "no TLS");
}

static leat_tls_state ended_in_handshake(leat_tls *t, const char *how)
{
    snprintf(t->error, sizeof t->error, "it ended the connection in the TLS handshake%s%s", how,
             *t->name ? ". Perhaps no TLS is set there" : "");
    return LEAT_TLS_FAILED;
}

leat_tls_state leat_tls_handshake(leat_tls *t, int fd)
{
    for (bool received = false;; received = true) {
        ERR_clear_error();
        t->may_write = true;
        int done = SSL_do_handshake(t->ssl), why = SSL_get_error(t->ssl, done);
        t->may_write = false;
        bool failed = done != 1 && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE;
        if (failed)
            note_error(t);
        bool sent = flush(t, fd);
        if (failed)
            return LEAT_TLS_FAILED;
        if (!sent)
            return errno == EAGAIN ? LEAT_TLS_WRITES : ended_in_handshake(t, "");
        if (done == 1)
            return LEAT_TLS_DONE;
        if (why == SSL_ERROR_WANT_WRITE)
            return LEAT_TLS_WRITES;
        ssize_t n = received ? -1 : fill(t, fd, MSG_DONTWAIT);
        if (received || (n < 0 && (errno == EAGAIN || errno == EINTR)))
            return LEAT_TLS_READS;
        if (n <= 0)
            return ended_in_handshake(t, n ? ": the connection was reset" : "");
    }
}

/* ---- Reading ---- */
/* As recvmsg; EAGAIN: more has to be received. */
static ssize_t decrypt(leat_tls *t, const struct iovec *v, int n)
{
    enum { MOST = 1 << 30 };
    ssize_t got = 0;
    size_t at = 0;
    int why = SSL_ERROR_NONE;
    while (n) {
        size_t room = v->iov_len - at;
        if (!room) {
            v++, n--;
            at = 0;
            continue;
        }
        ERR_clear_error();
        pthread_mutex_lock(&t->lock);
        int here = SSL_read(t->ssl, (uint8_t *)v->iov_base + at, (int)(room < MOST ? room : MOST));
        why = SSL_get_error(t->ssl, here);
        if (here <= 0 && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_ZERO_RETURN)
            note_error(t);
        pthread_mutex_unlock(&t->lock);
        if (here <= 0)
            break;
        at += (size_t)here;
        got += here;
    }
    if (got || why == SSL_ERROR_ZERO_RETURN)
        return got; /* what ended it is found again by the next call */
    errno = why == SSL_ERROR_WANT_READ ? EAGAIN : EBADMSG;
    return -1;
}

ssize_t leat_tls_receive(leat_tls *t, int fd, const struct iovec *v, int n, int flags)
{
    for (bool received = false;; received = true) {
        ssize_t got = decrypt(t, v, n);
        if (got >= 0 || errno != EAGAIN || (received && flags & MSG_DONTWAIT))
            return got;
        ssize_t came = fill(t, fd, flags);
        if (came <= 0)
            return came;
    }
}

/* ---- Writing ---- */
/* Places of memory in order, of which some bytes were taken. */
typedef struct places {
    const struct iovec *v;
    int n;
    size_t at; /* in the first */
} places;

/* Up to a record's bytes: where they lie, or gathered. 0: there are none. */
static size_t take_record(leat_tls *t, places *p, const void **out)
{
    size_t sum = 0;
    while (p->n && sum < RECORD) {
        size_t here = p->v->iov_len - p->at, room = RECORD - sum;
        const uint8_t *from = (const uint8_t *)p->v->iov_base + p->at;
        bool alone = !sum && (here >= RECORD || p->n == 1);
        here = here < room ? here : room;
        p->at += here;
        if (p->at == p->v->iov_len)
            *p = (places){p->v + 1, p->n - 1, 0};
        if (alone) {
            *out = from;
            return here;
        }
        memcpy(t->gathered + sum, from, here);
        sum += here;
    }
    *out = t->gathered;
    return sum;
}

static bool encrypt(leat_tls *t, const void *bytes, size_t n)
{
    ERR_clear_error();
    pthread_mutex_lock(&t->lock);
    t->may_write = true;
    if (++t->records >= leat_tls_key_records && SSL_version(t->ssl) == TLS1_3_VERSION) {
        SSL_key_update(t->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        t->records = 0;
    }
    bool ok = SSL_write(t->ssl, bytes, (int)n) == (int)n;
    t->may_write = false;
    pthread_mutex_unlock(&t->lock);
    return ok;
}

ssize_t leat_tls_send(leat_tls *t, int fd, const struct iovec *v, int n)
{
    places p = {v, n, 0};
    const void *bytes;
    if (!t->taken)
        for (size_t here; OUT_BYTES - t->out_to >= SEALED && (here = take_record(t, &p, &bytes));
             t->taken += here)
            if (!encrypt(t, bytes, here)) {
                errno = EBADMSG;
                return -1;
            }
    if (!flush(t, fd))
        return -1;
    ssize_t sent = (ssize_t)t->taken;
    t->taken = 0;
    return sent;
}

/* ---- Beginning and end ---- */
/* The peer's certificate must be for t->name. False: OpenSSL would not check that. */
static bool expect_name(leat_tls *t)
{
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(t->ssl), t->name) == 1)
        return true;
    SSL_set_hostflags(t->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return *t->name && SSL_set1_host(t->ssl, t->name) == 1 &&
           SSL_set_tlsext_host_name(t->ssl, t->name) == 1;
}

leat_status leat_tls_new(leat_tls_context *c, const char *name, leat_tls **out)
{
    pthread_once(&method_once, make_method);
    SSL *ssl = method ? SSL_new(c) : NULL;
    BIO *bio = ssl ? BIO_new(method) : NULL;
    if (!bio) {
        SSL_free(ssl);
        return leat_error(RESOURCE_EXHAUSTED, "OpenSSL gives no connection");
    }
    leat_tls *t = leat_xmalloc(sizeof *t);
    memset(t, 0, offsetof(leat_tls, in)); /* the buffers' pages are touched when they are used */
    t->ssl = ssl;
    pthread_mutex_init(&t->lock, NULL);
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    if (name)
        SSL_set_connect_state(ssl);
    else
        SSL_set_accept_state(ssl);
    snprintf(t->name, sizeof t->name, "%s", name ? name : "");
    if (name && (strlen(name) >= sizeof t->name || !expect_name(t))) {
        leat_tls_free(t);
        return leat_error(INVALID_ARGUMENT, "\"%s\" cannot be the name of a certificate", name);
    }
    *out = t;
    return NULL;
}

void leat_tls_free(leat_tls *t)
{
    if (!t)
        return;
    SSL_free(t->ssl);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
