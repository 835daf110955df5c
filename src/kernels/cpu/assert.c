/* assert.c -- Assert, Print and PrintV2. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "io/file.h"
#include "io/path.h"
#include "kernels/cpu/cpu.h"

/* "[1 2 3...]" */
static void summarize(leat_strbuf *b, const leat_tensor *t, int64_t most)
{
    char *text = leat_tensor_text(t, most < 0 ? t->count : most);
    bool bare = t->shape.rank == 0;
    leat_strbuf_printf(b, bare ? "[%s]" : "%s", text);
    free(text);
}

static leat_status assert_run(leat_kernel *k)
{
    const leat_tensor *cond = leat_kernel_in(k, 0);
    LEAT_REQUIRE(cond->shape.rank == 0, INVALID_ARGUMENT, "In[0] should be a scalar: %s",
                 leat_shape_show(&cond->shape).s);
    if (AT(bool, cond)[0])
        return NULL;
    leat_strbuf text = {0};
    int64_t most = leat_node_int(leat_kernel_node(k), "summarize");
    for (int i = 1; i < leat_kernel_inputs(k); i++) {
        leat_strbuf_puts(&text, i > 1 ? " " : "");
        summarize(&text, leat_kernel_in(k, i), most);
    }
    leat_status s = leat_error(INVALID_ARGUMENT, "assertion failed: %s", leat_strbuf_text(&text));
    leat_strbuf_release(&text);
    return s;
}

/* How often a node has printed: a resource of the device, so that the count is kept when other
 * fetches are run. */
typedef struct count {
    leat_resource base;
    atomic_llong printed;
} count;

static const leat_resource_type count_type = {"Count", free};

static leat_status count_make(void *arg, leat_resource **out)
{
    count *c = leat_new(count);
    leat_resource_init(&c->base, &count_type);
    *out = &c->base;
    return NULL;
}

static leat_status may_print(leat_kernel *k, int64_t first, bool *out)
{
    leat_resource *r;
    LEAT_TRY(leat_resources_find_or_make(leat_kernel_resources(k), "_prints",
                                         leat_node_name(leat_kernel_node(k)), &count_type,
                                         count_make, NULL, &r));
    count *c = (count *)r;
    *out = atomic_load(&c->printed) < first && atomic_fetch_add(&c->printed, 1) < first;
    leat_resource_unref(r);
    return NULL;
}

static leat_status print_run(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    int64_t first = leat_node_int(n, "first_n"), most = leat_node_int(n, "summarize");
    bool print = true;
    if (first >= 0)
        LEAT_TRY(may_print(k, first, &print));
    leat_kernel_forward(k, 0, 0);
    if (!print)
        return NULL;
    leat_strbuf text = {0};
    leat_strbuf_puts(&text, leat_node_string(n, "message"));
    for (int i = 1; i < leat_kernel_inputs(k); i++)
        summarize(&text, leat_kernel_in(k, i), most);
    leat_strbuf_putc(&text, '\n');
    leat_log_print(leat_strbuf_text(&text), __FILE__, __LINE__);
    leat_strbuf_release(&text);
    return NULL;
}

/* ---- PrintV2 ---- */

static const char *const streams[] = {"stdout", "stderr", "log(info)", "log(warning)",
                                      "log(error)"};
enum { N_STREAMS = sizeof(streams) / sizeof(*streams) };

typedef struct print_v2_state {
    int stream;
} print_v2_state;

static leat_status print_v2_init(const leat_node *n, void *state)
{
    const char *name = leat_node_string(n, "output_stream");
    int i = 0;
    while (i < N_STREAMS && strcmp(name, streams[i]) != 0)
        i++;
    LEAT_REQUIRE(i < N_STREAMS || strncmp(name, "file://", 7) == 0, INVALID_ARGUMENT,
                 "Unknown output stream: %s, Valid streams are: stdout stderr log(info) "
                 "log(warning) log(error), or file://<filename>",
                 name);
    ((print_v2_state *)state)->stream = i;
    return NULL;
}

static leat_status append(const char *path, const char *text)
{
    /* Texts of several threads do not mix. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    int fd;
    leat_status s = leat_path_open(path, O_WRONLY | O_CREAT | O_APPEND, &fd);
    if (!s) {
        FILE *f = fdopen(fd, "a");
        bool ok = f && fputs(text, f) >= 0;
        if (f)
            ok = fclose(f) == 0 && ok;
        else
            close(fd);
        if (!ok)
            s = leat_file_error(path, errno);
    }
    pthread_mutex_unlock(&lock);
    return s;
}

static leat_status print_v2_run(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_tensor *t = leat_kernel_in(k, 0);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "input must be a scalar, but has rank: %d",
                 t->shape.rank);
    leat_strbuf text = {0};
    leat_strbuf_add(&text, AT(leat_string, t)->data, AT(leat_string, t)->size);
    leat_strbuf_puts(&text, leat_node_string(n, "end"));
    const char *all = leat_strbuf_text(&text);
    leat_status s = NULL;
    switch (((print_v2_state *)leat_kernel_state(k))->stream) {
    case 0:
        fputs(all, stdout);
        fflush(stdout);
        break;
    case 1:
        leat_log_print(all, __FILE__, __LINE__);
        break;
    case 2:
        LEAT_LOG(INFO, "%s", all);
        break;
    case 3:
        LEAT_LOG(WARNING, "%s", all);
        break;
    case 4:
        LEAT_LOG(ERROR, "%s", all);
        break;
    default:
        s = append(leat_node_string(n, "output_stream") + strlen("file://"), all);
    }
    leat_strbuf_release(&text);
    return s;
}

const leat_kernel_def leat_cpu_assert[] = {
    {.op = "Assert", .run = assert_run},
    {.op = "Print", .run = print_run},
    {.op = "PrintV2",
     .run = print_v2_run,
     .init = print_v2_init,
     .state_size = sizeof(print_v2_state)},
    {0},
};
