/* disk_fault_test.c -- files that cannot be written: a disk that is full, a limit of file sizes, a
 * directory that may not be written to. Whatever writes ends with an error that names the file and
 * the reason, leaves no files of its own behind, and what was there before stays whole. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "cluster/namespace.h"
#include "io/files.h"

#include <leat/leat.h>

/* ---- A model of 40 KB ---- */

typedef struct model {
    leat_graph *g;
    leat_session *s;
    leat_saver *saver;
    leat_out x, y, write, name;
} model;

static model begin(void)
{
    model m = {.g = leat_graph_new()};
    m.x = leat_placeholder(m.g, LEAT_FLOAT, leat_shape(-1, 100));
    leat_out w = leat_variable(m.g, "w", leat_ones(m.g, LEAT_FLOAT, leat_shape(100, 100)));
    m.y = leat_matmul(m.x, w);
    m.saver = leat_saver_new(m.g);
    m.name = leat_placeholder(m.g, LEAT_STRING, leat_shape());
    char text[40001];
    memset(text, 't', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    m.write = leat_op(m.g, "WriteFile", leat_in(m.name), leat_in(leat_string_const(m.g, text)));
    CHECK_OK(leat_graph_status(m.g));
    CHECK_OK(leat_session_open(m.g, &m.s));
    CHECK_OK(leat_session_run(m.s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(m.g))));
    return m;
}

static void end(model *m)
{
    leat_session_close(m->s);
    leat_saver_free(m->saver);
    leat_graph_free(m->g);
}

/* ---- What writes ---- */

static leat_status records(model *m, const char *path, leat_record_form form)
{
    static unsigned char bytes[40000];
    leat_record_writer *w;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)((i * 2654435761u) >> 13); /* does not compress well */
    LEAT_TRY(leat_record_writer_open(path, form, &w));
    leat_status s = leat_record_write(w, bytes, sizeof(bytes));
    leat_status t = leat_record_writer_close(w);
    if (s)
        leat_status_free(t);
    return s ? s : t;
}

static leat_status plain(model *m, const char *path)
{
    return records(m, path, LEAT_RECORD_PLAIN);
}

static leat_status gzip(model *m, const char *path)
{
    return records(m, path, LEAT_RECORD_GZIP);
}

static leat_status zlib(model *m, const char *path)
{
    return records(m, path, LEAT_RECORD_ZLIB);
}

static leat_status checkpoint(model *m, const char *path)
{
    return leat_saver_save(m->saver, m->s, path, -1, NULL);
}

static leat_status meta_graph(model *m, const char *path)
{
    return leat_meta_graph_write(m->g, m->saver, path);
}

static leat_status saved_model(model *m, const char *path)
{
    const leat_signature_tensor in = {"x", m->x, {0}, {0}}, out = {"y", m->y, {0}, {0}};
    const leat_signature sig = {"serving_default", NULL, &in, 1, &out, 1};
    return leat_saved_model_write(m->g, m->s, path, .signatures = &sig, .n_signatures = 1,
                                  .saver = m->saver);
}

static leat_status write_file(model *m, const char *path)
{
    leat_tensor *t;
    LEAT_TRY(leat_tensor_new(LEAT_STRING, leat_shape(), &t));
    leat_string_set((leat_string *)leat_tensor_data(t), path, strlen(path));
    leat_status s =
        leat_session_run(m->s, LEAT_FEED({m->name, t}), LEAT_NO_FETCH, LEAT_TARGET(m->write));
    leat_tensor_unref(t);
    return s;
}

static const struct writer {
    const char *name;
    leat_status (*write)(model *m, const char *path);
    bool keeps; /* writes in place: a file with what was written before the error stays */
} writers[] = {
    {"plain", plain, true},
    {"gzip", gzip, true},
    {"zlib", zlib, true},
    {"variables", checkpoint, false},
    {"meta_graph", meta_graph, false},
    {"saved_model", saved_model, true},
    {"write_file", write_file, true},
};
enum { WRITERS = sizeof(writers) / sizeof(*writers) };

/* The names of the files in a directory whose names begin with `with`. */
static int count(const char *dir, const char *with, char *text, size_t size)
{
    DIR *d = opendir(dir);
    int n = 0;
    text[0] = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, with, strlen(with)) == 0) {
            snprintf(text + strlen(text), size - strlen(text), " %s", e->d_name);
            n++;
        }
    if (d)
        closedir(d);
    return n;
}

/* Each writer in dir: an error with this code and these words that names the file. */
static void try_all(const char *dir, leat_code code, const char *words)
{
    model m = begin();
    for (int i = 0; i < WRITERS; i++) {
        char path[512], left[2000];
        snprintf(path, sizeof(path), "%s/%s", dir, writers[i].name);
        leat_status s = writers[i].write(&m, path);
        const char *says = leat_status_message(s);
        if (leat_status_code(s) != code || !strstr(says, path) || !strstr(says, words)) {
            test_failures++;
            printf("%s: %s: %s\n", writers[i].name, leat_code_name(leat_status_code(s)), says);
        }
        leat_status_free(s);
        if (!writers[i].keeps && count(dir, writers[i].name, left, sizeof(left)) > 0) {
            test_failures++;
            printf("%s: what is left:%s\n", writers[i].name, left);
        }
    }
    end(&m);
}

/* ---- A full disk ---- */

static const char *make_disk(void)
{
    if (!leave_for(CLONE_NEWNS))
        return "this user may not make namespaces of mounts (root may)";
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", "/mnt", "tmpfs", 0, "size=512k"))
        return "no file system can be mounted here";
    return NULL;
}

static void fill(void)
{
    static const char bytes[4096];
    int f = open("/mnt/filler", O_CREAT | O_WRONLY, 0600);
    CHECK(f >= 0);
    while (write(f, bytes, sizeof(bytes)) > 0)
        ;
    CHECK_INT(errno, ENOSPC);
    close(f);
}

/* A checkpoint that is there stays the newest one, and is whole; with room again, saving works. */
static void full_inside(void)
{
    model m = begin();
    CHECK_OK(leat_saver_save(m.saver, m.s, "/mnt/model", 1, NULL));
    fill();
    CHECK_ERROR(leat_saver_save(m.saver, m.s, "/mnt/model", 2, NULL), RESOURCE_EXHAUSTED,
                "No space left on device");
    CHECK_ERROR(leat_saver_save(m.saver, m.s, "/mnt/model", 1, NULL), RESOURCE_EXHAUSTED,
                "/mnt/model-1");
    char *newest = leat_latest_checkpoint("/mnt");
    CHECK_STR(newest, "/mnt/model-1");
    if (newest)
        CHECK_OK(leat_saver_restore(m.saver, m.s, newest));
    free(newest);
    unlink("/mnt/filler");
    CHECK_OK(leat_saver_save(m.saver, m.s, "/mnt/model", 2, NULL));
    end(&m);
    fill();
    try_all("/mnt", LEAT_RESOURCE_EXHAUSTED, "No space left on device");
}

static void full(void)
{
    apart(make_disk, full_inside);
}

/* ---- A limit of file sizes ---- */

static const char *limit_sizes(void)
{
    signal(SIGXFSZ, SIG_IGN);
    return NULL;
}

static void limited_inside(void)
{
    char dir[512];
    snprintf(dir, sizeof(dir), "%s", here("limited"));
    mkdir(dir, 0777);
    model m = begin(); /* loads what it needs before there is a limit */
    end(&m);
    fflush(stdout);
    const struct rlimit size = {2000, 2000};
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &size), 0);
    try_all(dir, LEAT_OUT_OF_RANGE, "File too large");
}

static void limited(void)
{
    apart(limit_sizes, limited_inside);
}

/* ---- A directory that may not be written to ---- */

static const char *become_nobody(void)
{
    const char *dir = here("read_only");
    mkdir(dir, 0777);
    chmod(dir, 0555);
    if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0))
        return "this user may not become another one";
    return access(dir, X_OK) == 0 ? NULL : "the build's directory cannot be read by other users";
}

static void read_only_inside(void)
{
    try_all(here("read_only"), LEAT_PERMISSION_DENIED, "Permission denied");
}

static void read_only(void)
{
    apart(become_nobody, read_only_inside);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"full", full}, {"limited", limited}, {"read_only", read_only});
}
