/* show_events.c -- leat show for event files: the tags, the number of values of each, and the last
 * value, scalars as curves and histograms as bars; or a line for each event, also while a program
 * goes on to write the file. */
#define _DEFAULT_SOURCE /* usleep */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

typedef struct tag {
    char *name;
    leat_summary_kind kind;
    long long n;
    int64_t first, last;      /* steps */
    leat_summary_value value; /* the last value; its tag is not kept, its buckets are copied */
    leat_tensor *tensor;      /* that of the last value, or NULL */
    double *x, *y;            /* n steps and values of a scalar */
    long long cap;
} tag;

typedef struct tags {
    tag *v;
    size_t n, cap;
} tags;

static const char *const kinds[] = {"none", "scalar", "histogram", "image", "audio", "tensor"};
static const char *const events[] = {"other",   "version", "graph",   "meta graph",
                                     "summary", "log",     "session", "run metadata"};

static void add_point(tag *t, double x, double y)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->x = cli_array_resize(t->x, (size_t)t->cap, sizeof(*t->x));
        t->y = cli_array_resize(t->y, (size_t)t->cap, sizeof(*t->y));
    }
    t->x[t->n] = x;
    t->y[t->n] = y;
}

static void keep_value(tag *t, const leat_summary_value *v)
{
    const size_t n = (size_t)v->n_buckets;
    double *limits = (double *)t->value.limits, *counts = (double *)t->value.counts;
    leat_tensor_unref(t->tensor);
    t->tensor = v->tensor ? leat_tensor_ref(v->tensor) : NULL;
    t->value = *v;
    t->value.tag = NULL;
    t->value.tensor = t->tensor;
    t->value.plugin = strcmp(v->plugin, "text") == 0 ? "text" : "";
    t->value.limits = limits = cli_array_resize(limits, n + 1, sizeof(*limits));
    t->value.counts = counts = cli_array_resize(counts, n + 1, sizeof(*counts));
    if (n) {
        memcpy(limits, v->limits, n * sizeof(*limits));
        memcpy(counts, v->counts, n * sizeof(*counts));
    }
}

static void count(tags *t, const leat_summary_value *v, int64_t step)
{
    size_t i = 0;
    while (i < t->n && strcmp(t->v[i].name, v->tag) != 0)
        i++;
    if (i == t->n) {
        if (t->n == t->cap) {
            t->cap = t->cap ? t->cap * 2 : 16;
            t->v = cli_array_resize(t->v, t->cap, sizeof(*t->v));
        }
        t->v[t->n++] =
            (tag){.name = cli_text(v->tag, strlen(v->tag)), .kind = v->kind, .first = step};
    }
    tag *at = &t->v[i];
    if (v->kind == LEAT_SUMMARY_SCALAR)
        add_point(at, (double)step, v->scalar);
    at->n++;
    at->last = step;
    keep_value(at, v);
}

/* The first line of a text, cut where it is long; without characters that control a terminal. */
static void print_text(const leat_tensor *t)
{
    enum { MOST = 60 };
    const leat_string *v = leat_tensor_data(t);
    size_t n = 0;
    printf("\"");
    for (; n < v->size && n < MOST && v->data[n] != '\n'; n++)
        putchar((unsigned char)v->data[n] < ' ' || v->data[n] == 0x7f ? '?' : v->data[n]);
    printf("%s\"", n < v->size ? " ..." : "");
}

static void print_value(const leat_summary_value *v)
{
    if (v->kind == LEAT_SUMMARY_SCALAR) {
        printf("%g", v->scalar);
    } else if (v->kind == LEAT_SUMMARY_HISTOGRAM) {
        printf("%.0f values from %g to %g, mean %g", v->num, v->min, v->max,
               v->num > 0 ? v->sum / v->num : 0);
    } else if (v->kind == LEAT_SUMMARY_IMAGE) {
        printf("%d x %d pixels", v->height, v->width);
        if (v->channels)
            printf(", %d channel%s", v->channels, v->channels == 1 ? "" : "s");
    } else if (v->kind == LEAT_SUMMARY_AUDIO && v->sample_rate > 0) {
        printf("%.2f s, %g Hz, %d channel%s", (double)v->frames / v->sample_rate, v->sample_rate,
               v->channels, v->channels == 1 ? "" : "s");
    } else if (v->tensor && leat_tensor_dtype(v->tensor) == LEAT_STRING &&
               leat_tensor_count(v->tensor) > 0 && strcmp(v->plugin, "text") == 0) {
        print_text(v->tensor);
    } else if (v->tensor) {
        const leat_shape s = leat_tensor_shape(v->tensor);
        printf("%s %s", leat_dtype_name(leat_tensor_dtype(v->tensor)), leat_shape_show(&s).s);
    } else {
        printf("(%s)", kinds[v->kind]);
    }
}

static void print_event(const leat_event_record *e)
{
    char when[32] = "";
    time_t seconds = (time_t)e->wall_time;
    struct tm tm;
    if (gmtime_r(&seconds, &tm))
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
    printf("%s  step %lld  %s", when, (long long)e->step, events[e->kind]);
    if (e->text && *e->text)
        printf("  %s", e->text);
    if (e->size)
        printf("  %zu bytes", e->size);
    for (int i = 0; i < e->n_values; i++) {
        printf("%s%s = ", i ? ", " : "  ", e->values[i].tag);
        print_value(&e->values[i]);
    }
    printf("\n");
}

static void print_tag(const tag *t)
{
    printf("  %s  %s, %lld times, steps %lld to %lld, last: ", t->name, kinds[t->kind], t->n,
           (long long)t->first, (long long)t->last);
    print_value(&t->value);
    printf("\n");
    if (t->value.kind == LEAT_SUMMARY_SCALAR)
        cli_plot(t->x, t->y, t->n);
    else if (t->value.kind == LEAT_SUMMARY_HISTOGRAM)
        cli_bars(&t->value);
}

/* Reads the events after the first `seen` of them, prints each if `text`, counts them. Returns what
 * ended the file: OUT_OF_RANGE, or what is wrong with it. */
static leat_status read_events(const char *path, long long *seen, bool text, tags *t,
                               long long *by_kind)
{
    leat_event_reader *r;
    const leat_event_record *e;
    leat_status s;
    LEAT_TRY(leat_event_reader_open(path, &r));
    for (long long i = 0; !(s = leat_event_next(r, &e)); i++) {
        if (i < *seen)
            continue;
        ++*seen;
        by_kind[e->kind]++;
        for (int k = 0; k < e->n_values; k++)
            count(t, &e->values[k], e->step);
        if (text)
            print_event(e);
    }
    leat_event_reader_free(r);
    return s;
}

char *cli_newest_events(const char *dir)
{
    char path[4096], *newest = NULL;
    struct timespec when = {0};
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        struct stat st;
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        if (!strstr(e->d_name, "tfevents") || stat(path, &st) != 0)
            continue;
        if (newest && (st.st_mtim.tv_sec < when.tv_sec ||
                       (st.st_mtim.tv_sec == when.tv_sec && st.st_mtim.tv_nsec < when.tv_nsec)))
            continue;
        free(newest);
        newest = cli_text(path, strlen(path));
        when = st.st_mtim;
    }
    if (d)
        closedir(d);
    return newest;
}

static void free_tags(tags *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->v[i].name);
        leat_tensor_unref(t->v[i].tensor);
        free(t->v[i].x);
        free(t->v[i].y);
        free((void *)t->v[i].value.limits);
        free((void *)t->v[i].value.counts);
    }
    free(t->v);
    *t = (tags){0};
}

/* Prints what was added to a file whose size was *size when it was last read. A record that is not
 * complete yet is read when it is. */
static leat_status print_more(const char *path, off_t *size, long long *seen)
{
    struct stat st;
    tags t = {0};
    long long by_kind[LEAT_EVENT_METADATA + 1] = {0};
    LEAT_REQUIRE(stat(path, &st) == 0, NOT_FOUND, "%s: the file is not there any more", path);
    if (st.st_size == *size)
        return NULL;
    *size = st.st_size;
    leat_status s = read_events(path, seen, true, &t, by_kind);
    free_tags(&t);
    fflush(stdout);
    const leat_code code = leat_status_code(s);
    if (code != LEAT_OUT_OF_RANGE && code != LEAT_DATA_LOSS)
        return leat_status_prefix(s, "%s: ", path);
    leat_status_free(s);
    return NULL;
}

leat_status cli_follow_events(const char *path, bool is_directory)
{
    enum { PAUSE_US = 200 * 1000 };
    char *file = is_directory ? NULL : cli_text(path, strlen(path));
    off_t size = -1;
    long long seen = 0;
    leat_status s = NULL;
    for (; !s; usleep(PAUSE_US)) {
        char *newest = is_directory ? cli_newest_events(path) : NULL;
        if (newest && (!file || strcmp(newest, file) != 0)) {
            if (file)
                s = print_more(file, &size, &seen); /* the end of the file before */
            free(file);
            file = newest;
            newest = NULL;
            size = -1;
            seen = 0;
            printf("%s\n", file);
        }
        free(newest);
        if (file && !s)
            s = print_more(file, &size, &seen);
    }
    free(file);
    return s;
}

leat_status cli_show_events(const char *path, bool text)
{
    tags t = {0};
    long long n = 0, by_kind[LEAT_EVENT_METADATA + 1] = {0};
    leat_status s = read_events(path, &n, text, &t, by_kind);
    if (!text) {
        printf("%s: event file, %lld events\n", path, n);
        for (int k = 0; k <= LEAT_EVENT_METADATA; k++)
            if (by_kind[k])
                printf("  %6lld  %s\n", by_kind[k], events[k]);
        printf(t.n ? "tags\n" : "");
        for (size_t i = 0; i < t.n; i++)
            print_tag(&t.v[i]);
    }
    free_tags(&t);
    if (leat_status_code(s) != LEAT_OUT_OF_RANGE)
        return leat_status_prefix(s, "%s: ", path);
    leat_status_free(s);
    return NULL;
}
