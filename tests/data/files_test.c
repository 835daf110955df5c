/* files_test.c -- where the files of data sets are found, and downloads, whole and broken, from a
 * server on loopback. */
#include "data/files.h"

#include <dirent.h>
#include <sys/stat.h>

#include "core/md5.h"
#include "data/download.h"
#include "data/tar.h"
#include "http.h"
#include "test.h"

static char dir[64];
static http_server server;

static void make_dir(void)
{
    strcpy(dir, "/tmp/leat-files-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    setenv("LEAT_DATA_CACHE", dir, 1);
}

static void remove_dir(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    CHECK_INT(system(command), 0);
}

/* Files in DIR/toy, whatever their names are. */
static int files_there(void)
{
    char path[128];
    int n = 0;
    snprintf(path, sizeof(path), "%s/toy", dir);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static void use_server(const http_page *pages, int n)
{
    char url[64];
    http_start(&server, pages, n);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", server.port);
    setenv("LEAT_DATA_URL", url, 1);
}

static bool has_curl(void)
{
    leat_strbuf b = {.checked = true};
    leat_status s = leat_download("http://127.0.0.1:9/", &(leat_download_limits){1, 1, 1, "x"}, &b);
    bool lacks = s && strstr(leat_status_message(s), "libcurl, which cannot be loaded");
    leat_status_free(s);
    leat_strbuf_release(&b);
    return !lacks;
}

/* A set of two files, "hello" and "world" */
static const leat_data_file toy_files[] = {
    {"a.txt", "a.txt", 5, "5d41402abc4b2a76b9719d911017c592"},
    {"b.txt", "b.txt", 5, "7d793037a0760186574b0282f2f435e7"},
};
static const leat_data_set toy = {
    .name = "toy", .title = "TOY", .url = "http://127.0.0.1:9", .files = toy_files, .n = 2};

static void found(const char *data_dir, const char *want_dir, const char *want_why)
{
    char *at, *why;
    CHECK_OK(leat_data_find(&toy, data_dir, &at, &why));
    if (want_dir)
        CHECK_STR(at, want_dir);
    else
        CHECK(at == NULL);
    if (want_why && (!why || !strstr(why, want_why))) {
        test_failures++;
        printf("\"%s\" lacks \"%s\"\n", why ? why : "NULL", want_why);
    }
    free(at);
    free(why);
}

static void downloads(void)
{
    if (!has_curl())
        SKIP("libcurl is not installed");
    const http_page pages[] = {{"/toy/a.txt", "hello", 5, HTTP_WHOLE},
                               {"/toy/b.txt", "world", 5, HTTP_UNSAID}};
    char cache[128];
    make_dir();
    snprintf(cache, sizeof(cache), "%s/toy", dir);
    use_server(pages, 2);
    found(NULL, cache, NULL);
    CHECK_INT(server.requests, 2);
    leat_strbuf b = {.checked = true};
    CHECK_OK(leat_data_read(cache, "b.txt", 5, &b));
    CHECK_STR(leat_strbuf_text(&b), "world");
    leat_strbuf_clear(&b);
    CHECK_ERROR(leat_data_read(cache, "b.txt", 4, &b), DATA_LOSS, "more than the 4 bytes");
    leat_strbuf_release(&b);
    found(NULL, cache, NULL); /* nothing is downloaded twice */
    CHECK_INT(server.requests, 2);
    found(cache, cache, NULL);
    http_stop(&server);
    setenv("LEAT_DATA_URL", "none", 1);
    found("/nowhere", cache, NULL);
    remove_dir();
    found("/nowhere", NULL, "no TOY in /nowhere");
    found(NULL, NULL, "no TOY found");
}

/* Whatever is wrong with a download, the reason is given and nothing of it is kept. */
static void broken(void)
{
    if (!has_curl())
        SKIP("libcurl is not installed");
    static const struct {
        http_page b;
        const char *words;
    } cases[] = {
        {{"/toy/b.txt", "wOrld", 5, HTTP_WHOLE}, "has another checksum than the one that is"},
        {{"/toy/b.txt", "worl", 4, HTTP_UNSAID}, "its 4 bytes have"},
        {{"/toy/b.txt", "world", 5, HTTP_CUT}, "/toy/b.txt was cut off after 2 bytes"},
        {{"/toy/b.txt", "world, and more", 15, HTTP_WHOLE}, "b.txt is larger than 5 bytes"},
        {{"/toy/b.txt", "world, and more", 15, HTTP_UNSAID}, "b.txt is larger than 5 bytes"},
        {{"/elsewhere", "world", 5, HTTP_WHOLE}, "b.txt is not there: the server answered 404"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const http_page pages[] = {{"/toy/a.txt", "hello", 5, HTTP_WHOLE}, cases[i].b};
        make_dir();
        use_server(pages, 2);
        found(NULL, NULL, cases[i].words);
        CHECK_INT(files_there(), 1); /* a.txt, which is right, stays */
        http_stop(&server);
        remove_dir();
    }
    make_dir();
    setenv("LEAT_DATA_URL", "http://127.0.0.1:9", 1); /* nobody listens */
    found(NULL, NULL, "onnect");
    CHECK_INT(files_there(), 0);
    setenv("LEAT_DATA_URL", "ftp://127.0.0.1:9", 1);
    found(NULL, NULL, "rotocol");
    setenv("LEAT_DATA_URL", "http://127.0.0.1:9", 1);
    setenv("LEAT_DATA_CACHE", "/proc/leat", 1); /* no directory can be made there */
    found(NULL, NULL, "/proc");
    remove_dir();
}

static void slow(void)
{
    if (!has_curl())
        SKIP("libcurl is not installed");
    const http_page page = {"/x", "some bytes", 10, HTTP_STALLED};
    char url[64];
    leat_strbuf b = {.checked = true};
    http_start(&server, &page, 1);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/x", server.port);
    CHECK_ERROR(leat_download(url, &(leat_download_limits){100, 5, 1, "x"}, &b), DEADLINE_EXCEEDED,
                "/x came too slowly: ");
    http_stop(&server);
    leat_strbuf_release(&b);
}

/* ---- Archives ---- */

/* A file in a tar archive. */
static size_t put_file(char *to, const char *name, char type, const char *bytes)
{
    unsigned sum = 0;
    size_t n = strlen(bytes), padded = (n + 511) / 512 * 512;
    memset(to, 0, 512 + padded);
    snprintf(to, 100, "%s", name);
    snprintf(to + 124, 12, "%011o", (unsigned)n);
    to[156] = type;
    memset(to + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)to[i];
    snprintf(to + 148, 8, "%06o", sum);
    memcpy(to + 512, bytes, n);
    return 512 + padded;
}

static void archives(void)
{
    static char tar[8192];
    char name[101];
    const char *bytes;
    size_t n = 0, size;
    bool more;
    n += put_file(tar + n, "dir/", '5', "");
    n += put_file(tar + n, "dir/one", '0', "first");
    n += put_file(tar + n, "two", 0, "");
    leat_tar t = {tar, n + 1024, 0};
    CHECK_OK(leat_tar_next(&t, name, &bytes, &size, &more));
    CHECK(more && strcmp(name, "dir/one") == 0 && size == 5 && memcmp(bytes, "first", 5) == 0);
    CHECK_OK(leat_tar_next(&t, name, &bytes, &size, &more));
    CHECK(more && strcmp(name, "two") == 0 && size == 0);
    CHECK_OK(leat_tar_next(&t, name, &bytes, &size, &more));
    CHECK(!more);
    t = (leat_tar){tar, 512 + 512 + 2, 0};
    CHECK_ERROR(leat_tar_next(&t, name, &bytes, &size, &more), DATA_LOSS, "is cut off");
    t = (leat_tar){tar, 100, 0};
    CHECK_ERROR(leat_tar_next(&t, name, &bytes, &size, &more), DATA_LOSS, "cut off at byte 100");
    tar[513] ^= 1;
    t = (leat_tar){tar, n, 0};
    CHECK_ERROR(leat_tar_next(&t, name, &bytes, &size, &more), DATA_LOSS, "damaged at byte 512");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"downloads", downloads}, {"broken", broken}, {"slow", slow},
               {"archives", archives});
}
