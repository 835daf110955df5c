/* tls_context.c -- makes OpenSSL's contexts from the certificates, keys and authorities of
 * leat_security. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/socket/openssl.h"
#include "cluster/socket/tls.h"

bool leat_tls_wanted(const leat_security *s)
{
    return s && (s->certificate || s->authority);
}

static leat_status cannot_use(const char *what, const char *file)
{
    unsigned long e = ERR_peek_error();
    const char *why =
        ERR_SYSTEM_ERROR(e) ? strerror(ERR_GET_REASON(e)) : ERR_reason_error_string(e);
    return leat_error(INVALID_ARGUMENT, "The %s %s cannot be used: %s", what, file,
                      why ? why : "unknown error");
}

static leat_status use_certificate(SSL_CTX *c, const leat_security *s)
{
    LEAT_REQUIRE(s->key, INVALID_ARGUMENT,
                 "A TLS certificate and its key go together: only the certificate is given");
    if (SSL_CTX_use_certificate_chain_file(c, s->certificate) != 1)
        return cannot_use("TLS certificate", s->certificate);
    if (SSL_CTX_use_PrivateKey_file(c, s->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(c) != 1)
        return cannot_use("key of the TLS certificate", s->key);
    return NULL;
}

/* If file is NULL, uses the authorities that gRPC would use: those of the file that an environment
 * variable names, or else the system's. */
static leat_status use_authorities(SSL_CTX *c, const char *file)
{
    file = file ? file : getenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH");
    if (file ? SSL_CTX_load_verify_locations(c, file, NULL) != 1
             : SSL_CTX_set_default_verify_paths(c) != 1)
        return cannot_use("file of TLS authorities", file ? file : "of the system");
    X509_STORE_set_flags(SSL_CTX_get_cert_store(c),
                         X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST); /* As gRPC. */
    return NULL;
}

/* Makes a context without session resumption, so that every connection checks the certificates. */
static leat_status new_context(SSL_CTX **out)
{
    LEAT_TRY(leat_openssl_load());
    ERR_clear_error();
    SSL_CTX *c = SSL_CTX_new(TLS_method());
    LEAT_REQUIRE(c, RESOURCE_EXHAUSTED, "OpenSSL gives no context");
    SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
    SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_num_tickets(c, 0);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_default_passwd_cb_userdata(c, ""); /* An encrypted key fails, without a prompt. */
    *out = c;
    return NULL;
}

/* Sets *out to c, or frees c if s is an error. Gives s. */
static leat_status give(leat_status s, SSL_CTX *c, leat_tls_context **out)
{
    if (s)
        SSL_CTX_free(c);
    else
        *out = c;
    return s;
}

leat_status leat_tls_server(const leat_security *s, leat_tls_context **out)
{
    SSL_CTX *c;
    LEAT_REQUIRE(s->certificate && s->key, INVALID_ARGUMENT,
                 "To listen with TLS a certificate and its key are needed");
    LEAT_REQUIRE(!s->mutual || s->authority, INVALID_ARGUMENT,
                 "Mutual TLS needs the authority that signs the callers' certificates");
    LEAT_TRY(new_context(&c));
    leat_status st = use_certificate(c, s);
    if (!st && s->mutual) {
        SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        st = use_authorities(c, s->authority);
    }
    return give(st, c, out);
}

leat_status leat_tls_client(const leat_security *s, leat_tls_context **out)
{
    SSL_CTX *c;
    LEAT_TRY(new_context(&c));
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
    leat_status st = use_authorities(c, s->authority);
    if (!st && s->certificate)
        st = use_certificate(c, s);
    return give(st, c, out);
}

/* Writes a time of a certificate, such as "2026-11-17 05:21 UTC". */
static const char *date(const ASN1_TIME *t, char out[32])
{
    struct tm tm;
    if (ASN1_TIME_to_tm(t, &tm) != 1 || !strftime(out, 32, "%Y-%m-%d %H:%M UTC", &tm))
        snprintf(out, 32, "a time that cannot be read");
    return out;
}

static leat_status check_dates(const X509 *x, const char *file)
{
    char text[32], now_text[32];
    time_t now = time(NULL);
    struct tm tm;
    const ASN1_TIME *from = X509_get0_notBefore(x), *to = X509_get0_notAfter(x);
    strftime(now_text, sizeof now_text, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &tm));
    LEAT_REQUIRE(X509_cmp_time(to, &now) > 0, INVALID_ARGUMENT,
                 "The TLS certificate %s expired on %s, and peers would refuse it: install a new "
                 "one. This machine's clock says %s",
                 file, date(to, text), now_text);
    LEAT_REQUIRE(X509_cmp_time(from, &now) < 0, INVALID_ARGUMENT,
                 "The TLS certificate %s is not valid before %s, and peers would refuse it. This "
                 "machine's clock says %s: is it right?",
                 file, date(from, text), now_text);
    return NULL;
}

static leat_status check_own(SSL_CTX *c, const leat_security *s)
{
    if (SSL_CTX_use_certificate_chain_file(c, s->certificate) != 1)
        return cannot_use("TLS certificate", s->certificate);
    if (SSL_CTX_use_PrivateKey_file(c, s->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(c) != 1) {
        leat_status why = cannot_use("key of the TLS certificate", s->key);
        leat_status both = leat_error(INVALID_ARGUMENT,
                                      "The TLS certificate %s and the key %s do not fit, or the "
                                      "key is damaged: %s",
                                      s->certificate, s->key, leat_status_message(why));
        leat_status_free(why);
        return both;
    }
    return check_dates(SSL_CTX_get0_certificate(c), s->certificate);
}

leat_status leat_tls_check_own(const leat_security *s)
{
    SSL_CTX *c;
    leat_status st = leat_openssl_load();
    if (st) { /* gRPC may have a TLS library of its own, which checks less. */
        leat_status_free(st);
        return NULL;
    }
    LEAT_TRY(new_context(&c));
    st = check_own(c, s);
    SSL_CTX_free(c);
    return st;
}

void leat_tls_context_free(leat_tls_context *c)
{
    if (c) /* If c is NULL, OpenSSL may not be loaded. */
        SSL_CTX_free(c);
}
