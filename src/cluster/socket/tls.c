/* tls.c -- one TLS connection.
 *
 * 1. OpenSSL never uses the socket. It reads records from `in` and writes records to `out`, through
 *    a BIO of ours; this file receives and sends the bytes of both. So a thread that waits for the
 *    peer holds no lock, one system call carries many records, and no write raises SIGPIPE.
 * 2. Only one thread at a time may use an SSL. After the handshake one thread reads and another one
 *    writes; each holds `lock` only while a record is encrypted or decrypted.
 * 3. `in` belongs to the thread that reads, `out` to the thread that writes. Therefore OpenSSL must
 *    not write while it reads: the connection ends if the peer requests something that OpenSSL
 *    would reply to (a key update, a renegotiation of TLS 1.2), which no Leat task does.
 * 4. A call that does not wait receives from the socket once, so that a peer which sends bytes
 *    without end cannot keep the caller from other connections.
 * 5. A connection may end without TLS's close_notify. Frames have lengths, so a frame that was cut
 *    off is noticed all the same.
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
    RECORD = 16 << 10,     /* The most bytes of a record before it is encrypted. */
    SEALED = RECORD + 512, /* The most bytes of an encrypted record with a key update before it. */
    OUT_BYTES = 16 * SEALED, /* Bytes that are encrypted before they are sent at once. */
    IN_BYTES = 256 << 10,    /* Bytes that are received at once before they are decrypted. */
};
int64_t leat_tls_key_records = 1 << 22; /* 64 GB. AES-GCM is safe for six times as many records. */

struct leat_tls {
    SSL *ssl;
    pthread_mutex_t lock;    /* Guards ssl, may_write and records once the handshake is done. */
    bool may_write;          /* Whether OpenSSL may write to out now: see rule 3. */
    int64_t records;         /* Records that were encrypted with the present key. */
    size_t in_from, in_to;   /* in[in_from .. in_to-1] was not read by OpenSSL yet. */
    size_t out_from, out_to; /* out[out_from .. out_to-1] was not sent yet. */
    size_t taken;            /* Bytes given to leat_tls_send whose encrypted form is in out. */
    char name[256];          /* The name that the server's certificate must have; "" at a server. */
    char error[400];         /* See leat_tls_error. */
    uint8_t in[IN_BYTES], out[OUT_BYTES];
    uint8_t gathered[RECORD]; /* The bytes of a record that lie in several places. */
};

/* ---- The BIO: how OpenSSL reads from `in` and writes to `out` ---- */
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
/* Sends what is in out. False: errno says why not all could be sent. */
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

/* Receives to in, as recv. OpenSSL has read all of in before. */
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

/* Sets error to the reason why the last function of OpenSSL failed in this thread. */
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
/* Decrypts from in, as recvmsg. EAGAIN: more bytes have to be received first. */
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
        return got; /* If there was an error after these bytes, the next call gets it again. */
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
/* The bytes given to leat_tls_send that were not encrypted yet. */
typedef struct places {
    const struct iovec *v;
    int n;
    size_t at; /* An offset in v[0]. */
} places;

/* Takes the bytes of the next record from p. *out points to them where they lie, or to a copy in
 * t->gathered. Gives their number; 0: none are left. */
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
/* Makes OpenSSL check that the server's certificate is for t->name, a host's name or an IP address.
 * False: t->name is neither. */
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
    memset(t, 0, offsetof(leat_tls, in)); /* Pages of the buffers stay untouched until used. */
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
