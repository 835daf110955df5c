/* download.c -- see download.h. The numbers of options and errors are those of libcurl's binary
 * interface, which do not change; so no header of libcurl is needed to build. */
#include "data/download.h"

#include <pthread.h>

#include "core/library.h"

enum {
    WRITE_DATA = 10001,
    URL = 10002,
    ERROR_TEXT = 10010,
    USER_AGENT = 10018,
    WRITE_FUNCTION = 20011,
    LOW_SPEED_LIMIT = 19,
    LOW_SPEED_TIME = 20,
    NO_PROGRESS = 43,
    FAIL_ON_ERROR = 45,
    FOLLOW_LOCATION = 52,
    MOST_REDIRECTIONS = 68,
    CONNECT_TIMEOUT = 78,
    NO_SIGNAL = 99,
    PROTOCOLS = 181,
    REDIRECTION_PROTOCOLS = 182,
    HTTP_AND_HTTPS = 3,
    RESPONSE_CODE = 0x200002, /* for getinfo */
    ERROR_TEXT_SIZE = 256,
    SLOW = 100, /* bytes a second that count as nearly nothing */
    /* Results of perform: */
    PARTIAL_FILE = 18,
    HTTP_ERROR = 22,
    TIMED_OUT = 28,
    GLOBAL_ALL = 3, /* for global_init */
};

static struct {
    int (*global_init)(long flags);
    void *(*init)(void);
    int (*setopt)(void *handle, int option, ...);
    int (*perform)(void *handle);
    int (*getinfo)(void *handle, int info, ...);
    const char *(*error)(int code);
    void (*cleanup)(void *handle);
} curl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static leat_status failure; /* why libcurl cannot be used; NULL if it was loaded */

/* The packages of libcurl for different TLS libraries have different names. */
static void load(void)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    const leat_library_function functions[] = {
        {"curl_global_init", &curl.global_init}, {"curl_easy_init", &curl.init},
        {"curl_easy_setopt", &curl.setopt},      {"curl_easy_perform", &curl.perform},
        {"curl_easy_getinfo", &curl.getinfo},    {"curl_easy_strerror", &curl.error},
        {"curl_easy_cleanup", &curl.cleanup},
    };
    void *library = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !library; i++) {
        leat_status_free(failure);
        failure = leat_library_load(names[i], functions, sizeof(functions) / sizeof(*functions),
                                    &library);
    }
    if (failure)
        return;
    leat_library_keep_openssl(library);
    if (curl.global_init(GLOBAL_ALL) != 0)
        failure = leat_error(UNAVAILABLE, "libcurl cannot be initialised");
}

typedef struct transfer {
    leat_strbuf *to;
    size_t begin, most;
    bool too_large;
} transfer;

static size_t take(char *bytes, size_t size, size_t n, void *arg)
{
    transfer *t = arg;
    if (t->to->n - t->begin + size * n > t->most) {
        t->too_large = true;
        return 0; /* ends the transfer */
    }
    leat_strbuf_add(t->to, bytes, size * n);
    return t->to->lacking ? 0 : size * n;
}

static leat_status outcome(void *handle, int code, const transfer *t, const char *url,
                           const leat_download_limits *limits, const char *text)
{
    long http = 0;
    if (code == 0)
        return NULL;
    LEAT_TRY(leat_strbuf_check(t->to));
    LEAT_REQUIRE(!t->too_large, DATA_LOSS, "%s is larger than %zu bytes, the size of %s", url,
                 t->most, limits->what);
    if (!*text)
        text = curl.error(code);
    curl.getinfo(handle, RESPONSE_CODE, &http);
    if (code == HTTP_ERROR)
        return http == 404 || http == 410
                   ? leat_error(NOT_FOUND, "%s is not there: the server answered %ld", url, http)
                   : leat_error(UNAVAILABLE, "%s: the server answered %ld", url, http);
    if (code == PARTIAL_FILE)
        return leat_error(DATA_LOSS, "%s was cut off after %zu bytes: %s", url, t->to->n - t->begin,
                          text);
    if (code == TIMED_OUT)
        return leat_error(DEADLINE_EXCEEDED, "%s came too slowly: %s", url, text);
    return leat_error(UNAVAILABLE, "%s: %s", url, text);
}

leat_status leat_download(const char *url, const leat_download_limits *limits, leat_strbuf *to)
{
    pthread_once(&once, load);
    LEAT_REQUIRE(!failure, NOT_FOUND,
                 "Downloads need libcurl, which cannot be loaded (%s): install the Debian package "
                 "libcurl4",
                 leat_status_message(failure));
    void *h = curl.init();
    LEAT_REQUIRE(h, RESOURCE_EXHAUSTED, "%s: libcurl has no memory", url);
    char text[ERROR_TEXT_SIZE] = "";
    transfer t = {.to = to, .begin = to->n, .most = limits->size};
    curl.setopt(h, URL, url);
    curl.setopt(h, ERROR_TEXT, text);
    curl.setopt(h, WRITE_FUNCTION, take);
    curl.setopt(h, WRITE_DATA, &t);
    curl.setopt(h, USER_AGENT, "leat");
    curl.setopt(h, NO_PROGRESS, 1L);
    curl.setopt(h, NO_SIGNAL, 1L);
    curl.setopt(h, FAIL_ON_ERROR, 1L);
    curl.setopt(h, FOLLOW_LOCATION, 1L);
    curl.setopt(h, MOST_REDIRECTIONS, 5L);
    curl.setopt(h, PROTOCOLS, (long)HTTP_AND_HTTPS);
    curl.setopt(h, REDIRECTION_PROTOCOLS, (long)HTTP_AND_HTTPS);
    curl.setopt(h, CONNECT_TIMEOUT, limits->connect_s);
    curl.setopt(h, LOW_SPEED_LIMIT, (long)SLOW);
    curl.setopt(h, LOW_SPEED_TIME, limits->stalled_s);
    const int code = curl.perform(h);
    leat_status s = outcome(h, code, &t, url, limits, text);
    curl.cleanup(h);
    return s;
}
