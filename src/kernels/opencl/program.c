/* program.c -- programs of OpenCL C: compiled when a kernel of theirs is first launched, or taken
 * from the cache on disk; and kernel objects, of which a thread needs one for itself while it sets
 * arguments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/opencl/opencl.h"

extern const leat_cl_text leat_cl_text_common;

struct leat_cl_function {
    leat_cl_function *next; /* of the same program */
    leat_cl_program *of;
    char *name;
    cl_kernel *idle; /* kernel objects that no thread uses; guarded by the device's `idle` */
    int n_idle, cap;
};

struct leat_cl_program {
    cl_program program;
    leat_cl_function *functions;
    char *title; /* texts and options, for messages */
};

enum { MOST_TEXTS = 4 };

/* ---- Building ---- */

typedef struct source {
    const char *v[MOST_TEXTS + 2];
    size_t size[MOST_TEXTS + 2];
    uint32_t n;
    char options[512];
} source;

static void source_of(const leat_opencl *d, const leat_cl_text *const *texts, const char *options,
                      source *out)
{
    const char *more = getenv("LEAT_OPENCL_OPTIONS");
    source s = {.n = 1, .v = {leat_cl_text_common.text}, .size = {leat_cl_text_common.size}};
    for (int i = 0; texts[i] && i < MOST_TEXTS; i++, s.n++) {
        s.v[s.n] = texts[i]->text;
        s.size[s.n] = texts[i]->size;
    }
    snprintf(s.options, sizeof s.options, "-cl-std=CL1.2 -w %s%s%s%s",
             d->listed->on_cpu ? "-DLEAT_ON_CPU " : "", options, more && *more ? " " : "",
             more ? more : "");
    *out = s;
}

static uint64_t key_of(const source *s)
{
    uint64_t h = leat_hash(s->options, strlen(s->options), 2);
    for (uint32_t i = 0; i < s->n; i++)
        h = leat_hash(s->v[i], s->size[i], h);
    return h;
}

static bool from_cache(const leat_opencl *d, uint64_t key, cl_program *out)
{
    char *bytes;
    size_t n;
    int32_t status = -1, error = -1;
    if (!leat_cl_cache_read(d, "program", key, &bytes, &n))
        return false;
    const unsigned char *binary = (const unsigned char *)bytes;
    cl_program p = leat_cl.CreateProgramWithBinary(d->context, 1, &d->listed->id, &n, &binary,
                                                   &status, &error);
    free(bytes);
    if (p && !error && !status && !leat_cl.BuildProgram(p, 1, &d->listed->id, "", NULL, NULL)) {
        *out = p;
        return true;
    }
    if (p)
        leat_cl.ReleaseProgram(p);
    return false;
}

static void to_cache(const leat_opencl *d, uint64_t key, cl_program p)
{
    size_t size = 0;
    if (leat_cl.GetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) || !size)
        return;
    unsigned char *bytes = malloc(size);
    if (bytes && !leat_cl.GetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL))
        leat_cl_cache_write(d, "program", key, bytes, size);
    free(bytes);
}

/* The error with what the compiler wrote. */
static leat_status build_error(const leat_opencl *d, const char *title, cl_program p, int32_t error)
{
    size_t n = 0;
    char *log = NULL;
    if (!leat_cl.GetProgramBuildInfo(p, d->listed->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &n) && n)
        log = calloc(n + 1, 1);
    if (log && leat_cl.GetProgramBuildInfo(p, d->listed->id, CL_PROGRAM_BUILD_LOG, n, log, NULL))
        log[0] = 0;
    leat_status s = leat_error(INTERNAL, "%s cannot be compiled for %s (%s), %s (%d):\n%.4000s",
                               title, d->device->name, d->listed->name, leat_cl_error_name(error),
                               (int)error, log && *log ? log : "the compiler has written nothing");
    free(log);
    return s;
}

static leat_status build(const leat_opencl *d, const source *s, const char *title, cl_program *out)
{
    const uint64_t key = key_of(s);
    int32_t error;
    if (from_cache(d, key, out))
        return NULL;
    cl_program p =
        leat_cl.CreateProgramWithSource(d->context, s->n, (const char **)s->v, s->size, &error);
    if (!p)
        return leat_cl_status("clCreateProgramWithSource", error);
    error = leat_cl.BuildProgram(p, 1, &d->listed->id, s->options, NULL, NULL);
    if (error) {
        leat_status failed = build_error(d, title, p, error);
        leat_cl.ReleaseProgram(p);
        return failed;
    }
    to_cache(d, key, p);
    *out = p;
    return NULL;
}

/* ---- Programs of a device ---- */

/* A program's key: the address of each text and the options. */
static size_t write_key(const leat_cl_text *const *texts, const char *options, char *out,
                        size_t size)
{
    size_t n = 0, more = strlen(options);
    for (int i = 0; texts[i] && i < MOST_TEXTS; i++, n += sizeof texts[i])
        memcpy(out + n, &texts[i], sizeof texts[i]);
    if (more > size - n)
        more = size - n;
    memcpy(out + n, options, more);
    return n + more;
}

static leat_status program_find(leat_opencl *d, const leat_cl_text *const *texts,
                                const char *options, leat_cl_program **out)
{
    char key[512];
    source text;
    const size_t n = write_key(texts, options, key, sizeof key);
    leat_cl_program *p = leat_map_get_n(&d->programs, key, n);
    if (!p) {
        leat_strbuf title = {0};
        cl_program built = NULL;
        source_of(d, texts, options, &text);
        for (int i = 0; texts[i]; i++)
            leat_strbuf_printf(&title, "%s%s", i ? ", " : "", texts[i]->name);
        leat_strbuf_printf(&title, " with the options '%s'", text.options);
        leat_status s = build(d, &text, leat_strbuf_text(&title), &built);
        if (s) {
            leat_strbuf_release(&title);
            return s;
        }
        p = leat_new(leat_cl_program);
        p->program = built;
        p->title = leat_strbuf_take(&title);
        leat_map_put_n(&d->programs, key, n, p);
    }
    *out = p;
    return NULL;
}

leat_status leat_cl_function_find(leat_opencl *d, const leat_cl_text *const *texts,
                                  const char *options, const char *name, leat_cl_function **out)
{
    leat_cl_program *p;
    pthread_mutex_lock(&d->building);
    leat_status s = program_find(d, texts, options, &p);
    leat_cl_function *f = s ? NULL : p->functions;
    while (f && strcmp(f->name, name) != 0)
        f = f->next;
    if (!s && !f) {
        f = leat_new(leat_cl_function);
        f->of = p;
        f->name = leat_xstrdup(name);
        f->next = p->functions;
        p->functions = f;
    }
    pthread_mutex_unlock(&d->building);
    if (!s)
        *out = f;
    return s;
}

leat_status leat_cl_function_take(leat_opencl *d, leat_cl_function *f, cl_kernel *out)
{
    cl_kernel k = NULL;
    int32_t error;
    pthread_mutex_lock(&d->idle);
    if (f->n_idle)
        k = f->idle[--f->n_idle];
    pthread_mutex_unlock(&d->idle);
    if (!k) {
        k = leat_cl.CreateKernel(f->of->program, f->name, &error);
        LEAT_REQUIRE(k, INTERNAL, "%s: function %s: clCreateKernel failed with %s (%d)",
                     f->of->title, f->name, leat_cl_error_name(error), (int)error);
    }
    *out = k;
    return NULL;
}

void leat_cl_function_give(leat_opencl *d, leat_cl_function *f, cl_kernel k)
{
    pthread_mutex_lock(&d->idle);
    leat_grow(f->idle, f->n_idle, f->cap);
    f->idle[f->n_idle++] = k;
    pthread_mutex_unlock(&d->idle);
}

static void program_free(leat_cl_program *p)
{
    while (p->functions) {
        leat_cl_function *f = p->functions;
        p->functions = f->next;
        for (int i = 0; i < f->n_idle; i++)
            leat_cl.ReleaseKernel(f->idle[i]);
        free(f->idle);
        free(f->name);
        free(f);
    }
    leat_cl.ReleaseProgram(p->program);
    free(p->title);
    free(p);
}

void leat_cl_programs_close(leat_opencl *d)
{
    size_t i = 0;
    const char *key;
    void *value;
    while (leat_map_next(&d->programs, &i, &key, &value))
        program_free(value);
    leat_map_release(&d->programs);
}
