/* security.c -- see security.h. Files are read when a channel or listener is opened. */
#include "cluster/grpc/security.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/socket/tls.h"
#include "core/log.h"
#include "core/strbuf.h"

static leat_status read_pem(const char *file, const char *what, leat_strbuf *out)
{
    enum { MOST = 4 << 20 };
    FILE *f = fopen(file, "re");
    LEAT_REQUIRE(f, NOT_FOUND, "Cannot read the %s %s: %s", what, file, strerror(errno));
    char part[4096];
    for (size_t n; out->n < MOST && (n = fread(part, 1, sizeof part, f));)
        leat_strbuf_add(out, part, n);
    const int broken = ferror(f) ? errno : 0;
    fclose(f);
    LEAT_REQUIRE(!broken, UNAVAILABLE, "Cannot read the %s %s: %s", what, file, strerror(broken));
    LEAT_REQUIRE(strstr(leat_strbuf_text(out), "-----BEGIN "), INVALID_ARGUMENT,
                 "The %s %s is no PEM file", what, file);
    return NULL;
}

/* Texts of the three files; those that are not given stay empty. */
typedef struct pems {
    leat_strbuf certificate, key, authority;
} pems;

static void release(pems *p)
{
    if (p->key.s)
        explicit_bzero(p->key.s, p->key.n);
    leat_strbuf_release(&p->certificate);
    leat_strbuf_release(&p->key);
    leat_strbuf_release(&p->authority);
}

static leat_status read_all(const leat_security *s, pems *p)
{
    LEAT_REQUIRE(!s->certificate == !s->key, INVALID_ARGUMENT,
                 "A TLS certificate and its key go together: only the %s is given",
                 s->key ? "key" : "certificate");
    if (s->certificate) {
        LEAT_TRY(read_pem(s->certificate, "TLS certificate", &p->certificate));
        LEAT_TRY(read_pem(s->key, "key of the TLS certificate", &p->key));
        LEAT_TRY(leat_tls_check_own(s));
    }
    if (s->authority)
        LEAT_TRY(read_pem(s->authority, "file of TLS authorities", &p->authority));
    return NULL;
}

static bool names_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "localhost:", 10) == 0 ||
           strncmp(address, "[::1]:", 6) == 0;
}

/* gRPC refuses metadata with other bytes. */
static leat_status check_token(const leat_security *s)
{
    for (const char *p = s && s->token ? s->token : ""; *p; p++)
        LEAT_REQUIRE(*p >= 0x20 && *p < 0x7f, INVALID_ARGUMENT,
                     "A token must be printable ASCII: its byte %d is not",
                     (int)(p - s->token) + 1);
    return NULL;
}

leat_status leat_security_client(const leat_security *s, const char *address,
                                 grpc_channel_credentials **out)
{
    LEAT_TRY(check_token(s));
    if (!s || (!s->certificate && !s->authority)) {
        if (s && s->token && !names_loopback(address))
            LEAT_LOG(WARNING, "The token for %s travels without TLS: whoever listens has it",
                     address);
        *out = grpc_insecure_credentials_create();
        return NULL;
    }
    pems p = {0};
    leat_status st = read_all(s, &p);
    if (!st) {
        grpc_ssl_pem_key_cert_pair pair = {p.key.s, p.certificate.s};
        *out =
            grpc_ssl_credentials_create(p.authority.s, s->certificate ? &pair : NULL, NULL, NULL);
    }
    release(&p);
    return st;
}

/* For an address that other machines reach. */
static void warn(const leat_security *s, const char *address)
{
    const bool tls = s && s->certificate;
    if (tls && (s->token || s->mutual))
        return;
    if (s && s->token)
        LEAT_LOG(WARNING,
                 "%s is not a loopback address, and without TLS the token can be read on its way",
                 address);
    else
        LEAT_LOG(WARNING,
                 "%s is not a loopback address, and %s: whoever reaches it may run programs here, "
                 "and read and write the files of this user (below --file_root, if that is given)",
                 address,
                 tls ? "neither a token nor mutual TLS is set" : "neither TLS nor a token is set");
}

leat_status leat_security_server(const leat_security *s, const char *address, bool loopback,
                                 grpc_server_credentials **out)
{
    LEAT_TRY(check_token(s));
    if (!s || !s->certificate) {
        LEAT_REQUIRE(!s || (!s->key && !s->mutual), INVALID_ARGUMENT,
                     "To listen with TLS a certificate and its key are needed");
        if (!loopback)
            warn(s, address);
        *out = grpc_insecure_server_credentials_create();
        return NULL;
    }
    LEAT_REQUIRE(!s->mutual || s->authority, INVALID_ARGUMENT,
                 "Mutual TLS needs the authority that signs the callers' certificates");
    if (!loopback)
        warn(s, address);
    pems p = {0};
    leat_status st = read_all(s, &p);
    if (!st) {
        grpc_ssl_pem_key_cert_pair pair = {p.key.s, p.certificate.s};
        *out = grpc_ssl_server_credentials_create_ex(
            s->mutual ? p.authority.s : NULL, &pair, 1,
            s->mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                      : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            NULL);
    }
    release(&p);
    return st;
}

grpc_slice leat_security_bearer(const leat_security *s)
{
    if (!s || !s->token)
        return grpc_empty_slice();
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "Bearer %s", s->token);
    grpc_slice slice = grpc_slice_from_copied_buffer(b.s, b.n);
    leat_strbuf_release(&b);
    return slice;
}

/* Takes a time that depends on n alone. */
static bool same(const char *want, const uint8_t *shown, size_t n)
{
    size_t want_n = strlen(want);
    unsigned differ = n != want_n;
    for (size_t i = 0; i < n; i++)
        differ |= shown[i] ^ (unsigned char)want[i < want_n ? i : want_n];
    return !differ;
}

bool leat_security_allows(const leat_security *s, const grpc_metadata_array *metadata)
{
    static const char bearer[] = "Bearer ";
    enum { N = sizeof bearer - 1 };
    if (!s || !s->token)
        return true;
    bool allows = false;
    for (size_t i = 0; i < metadata->count; i++) {
        const grpc_metadata *m = &metadata->metadata[i];
        const uint8_t *shown = GRPC_SLICE_START_PTR(m->value);
        size_t n = GRPC_SLICE_LENGTH(m->value);
        if (grpc_slice_str_cmp(m->key, LEAT_TOKEN_KEY) == 0 && n >= N &&
            memcmp(shown, bearer, N) == 0)
            allows |= same(s->token, shown + N, n - N);
    }
    return allows;
}
