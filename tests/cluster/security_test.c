/* security_test.c -- TLS, mutual TLS and tokens between channels and listeners. */
#include <time.h>

#include "cluster/certificates.h"
#include "echo.h"

static bool made;

static leat_status try_call(const leat_security *client, const leat_security *server)
{
    leat_listener *l;
    leat_listen_options o = {.security = server};
    LEAT_TRY(leat_listen("127.0.0.1:0", &o, echo_handle, NULL, &l));
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", leat_listener_port(l));
    leat_channel *c;
    leat_status s = leat_channel_open(address, "/job:ps/task:0", client, &c);
    if (!s) {
        s = echo_call(c, "/test/Echo", "", NULL, 0,
                      &(leat_call_options){.deadline_ns = in_ms(3000)});
        leat_channel_free(c);
    }
    leat_listener_stop(l, in_ms(500));
    return s;
}

static void token(void)
{
    leat_security right = {.token = "open sesame"}, wrong = {.token = "open barley"};
    leat_security shorter = {.token = "open"}, longer = {.token = "open sesames"};
    CHECK_OK(try_call(&right, &right));
    CHECK_OK(try_call(&right, NULL));
    CHECK_ERROR(try_call(&wrong, &right), UNAUTHENTICATED, "/job:ps/task:0");
    CHECK_ERROR(try_call(&shorter, &right), UNAUTHENTICATED, "no token, or a wrong one");
    CHECK_ERROR(try_call(&longer, &right), UNAUTHENTICATED, "no token, or a wrong one");
    leat_security unprintable = {.token = "a\nb"};
    CHECK_ERROR(try_call(&unprintable, NULL), INVALID_ARGUMENT, "its byte 2 is not");
    CHECK_ERROR(try_call(NULL, &right), UNAUTHENTICATED, "no token, or a wrong one");
}

static void tls(void)
{
    if (!made)
        SKIP("the openssl command is not there");
    leat_security server = {.certificate = file("task.pem"), .key = file("task.key")};
    leat_security client = {.authority = file("ca.pem")};
    leat_security stranger = {.authority = file("ca2.pem")};
    CHECK_OK(try_call(&client, &server));
    CHECK_ERROR(try_call(&stranger, &server), UNAVAILABLE, "TLS");
    CHECK_ERROR(try_call(NULL, &server), UNAVAILABLE, "TLS");
    CHECK_ERROR(try_call(&client, NULL), UNAVAILABLE, "TLS");
    /* With a token in it. */
    server.token = client.token = "open sesame";
    CHECK_OK(try_call(&client, &server));
    client.token = NULL;
    CHECK_ERROR(try_call(&client, &server), UNAUTHENTICATED, "token");
}

static void mutual(void)
{
    if (!made)
        SKIP("the openssl command is not there");
    leat_security task = {.certificate = file("task.pem"),
                          .key = file("task.key"),
                          .authority = file("ca.pem"),
                          .mutual = true};
    leat_security nameless = {.authority = file("ca.pem")};
    leat_security other = {
        .certificate = file("other.pem"), .key = file("other.key"), .authority = file("ca.pem")};
    CHECK_OK(try_call(&task, &task));
    CHECK_ERROR(try_call(&nameless, &task), UNAVAILABLE, "/job:ps/task:0");
    CHECK_ERROR(try_call(&other, &task), UNAVAILABLE, "/job:ps/task:0");
}

static void names(void)
{
    if (!made)
        SKIP("the openssl command is not there");
    leat_security server = {.certificate = file("named.pem"), .key = file("named.key")};
    leat_security client = {.authority = file("ca.pem")};
    CHECK_ERROR(try_call(&client, &server), UNAVAILABLE, "certificate");
    client.name = "elsewhere";
    CHECK_OK(try_call(&client, &server));
}

static void bad_files(void)
{
    leat_security s = {.certificate = "/no/such.pem", .key = "/no/such.key"};
    CHECK_ERROR(try_call(NULL, &s), NOT_FOUND, "/no/such.pem");
    CHECK_ERROR(try_call(&s, NULL), NOT_FOUND, "/no/such.pem");
    s = (leat_security){.certificate = "/etc/hostname", .key = "/etc/hostname"};
    CHECK_ERROR(try_call(NULL, &s), INVALID_ARGUMENT, "is no PEM file");
    s = (leat_security){.certificate = "/etc/hostname"};
    CHECK_ERROR(try_call(NULL, &s), INVALID_ARGUMENT, "go together");
    s = (leat_security){.mutual = true};
    CHECK_ERROR(try_call(NULL, &s), INVALID_ARGUMENT, "certificate and its key");
    if (made) {
        s = (leat_security){.certificate = file("task.pem"), .key = file("other.key")};
        CHECK_ERROR(try_call(NULL, &s), INVALID_ARGUMENT, "do not fit");
    }
}

/* A certificate of one's own that no peer would accept is refused at the start. */
static void own_dates(void)
{
    if (!made)
        SKIP("the openssl command is not there");
    leat_security s = {.certificate = file("expired.pem"), .key = file("expired.key")};
    time_t then = time(NULL) - 24 * 3600;
    char day[32], words[200];
    strftime(day, sizeof day, "%Y-%m-%d", gmtime(&then));
    snprintf(words, sizeof words, "The TLS certificate %s expired on %s", s.certificate, day);
    CHECK_ERROR(try_call(NULL, &s), INVALID_ARGUMENT, words);
    CHECK_ERROR(try_call(&s, NULL), INVALID_ARGUMENT, words);
    s = (leat_security){.certificate = file("future.pem"), .key = file("future.key")};
    snprintf(words, sizeof words, "%s is not valid before 2099-01-01 00:00 UTC", s.certificate);
    CHECK_ERROR(try_call(NULL, &s), INVALID_ARGUMENT, words);
    CHECK_ERROR(try_call(&s, NULL), INVALID_ARGUMENT, words);
    s = (leat_security){.certificate = file("task.pem"), .key = file("other.key")};
    snprintf(words, sizeof words, "The TLS certificate %s and the key %s do not fit", s.certificate,
             s.key);
    CHECK_ERROR(try_call(NULL, &s), INVALID_ARGUMENT, words);
    CHECK_ERROR(try_call(&s, NULL), INVALID_ARGUMENT, words);
}

static char warning[1000];

static void note(void *arg, leat_log_level level, const char *file, int line, const char *message)
{
    if (level == LEAT_LOG_WARNING)
        snprintf(warning, sizeof(warning), "%s", message);
}

/* A listener that other machines reach says at its start what it lets anyone do. */
static void warned(void)
{
    static const char files[] = "whoever reaches it may run programs here, and read and write the "
                                "files of this user (below --file_root, if that is given)";
    leat_security token = {.token = "open sesame"};
    leat_security tls = {.certificate = file("task.pem"), .key = file("task.key")};
    leat_security both = tls, mutual = tls;
    both.token = token.token;
    mutual.authority = file("ca.pem");
    mutual.mutual = true;
    const struct {
        const char *address;
        const leat_security *security;
        const char *says[2];
    } rows[] = {
        {"127.0.0.1:0", NULL, {NULL}},
        {"0.0.0.0:0", NULL, {"neither TLS nor a token is set", files}},
        {"0.0.0.0:0", &token, {"without TLS the token can be read on its way", ""}},
        {"127.0.0.1:0", &tls, {NULL}},
        {"0.0.0.0:0", &tls, {"neither a token nor mutual TLS is set", files}},
        {"0.0.0.0:0", &both, {NULL}},
        {"0.0.0.0:0", &mutual, {NULL}},
    };
    leat_log_set_sink(note, NULL, LEAT_LOG_WARNING);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (rows[i].security && rows[i].security->certificate && !made)
            continue;
        leat_listener *l;
        warning[0] = 0;
        leat_listen_options o = {.security = rows[i].security};
        CHECK_OK(leat_listen(rows[i].address, &o, echo_handle, NULL, &l));
        leat_listener_stop(l, 0);
        CHECK(rows[i].says[0] || !warning[0]);
        for (int j = 0; j < 2 && rows[i].says[0]; j++)
            CHECK(strstr(warning, rows[i].says[j]) != NULL);
    }
    leat_log_set_sink(NULL, NULL, LEAT_LOG_INFO);
}

int main(int argc, char **argv)
{
    made = certificates_make();
    int rc = RUN(argc, argv, {"token", token}, {"tls", tls}, {"mutual", mutual}, {"names", names},
                 {"bad_files", bad_files}, {"own_dates", own_dates}, {"warned", warned});
    certificates_remove();
    return rc;
}
