/* show_events.c -- leat show for event files: the tags, the number of values of each, and the last
 * value; or a line for each event. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"

typedef struct tag {
    char *name;
    leat_summary_kind kind;
    long long n;
    int64_t first, last;      /* steps */
    leat_summary_value value; /* the last value; its tag is not kept */
} tag;

typedef struct tags {
    tag *v;
    size_t n, cap;
} tags;

static const char *const kinds[] = {"none", "scalar", "histogram", "image", "audio", "tensor"};
static const char *const events[] = {"other",   "version", "graph",   "meta graph",
                                     "summary", "log",     "session", "run metadata"};

static void count(tags *t, const leat_summary_value *v, int64_t step)
{
    size_t i = 0;
    while (i < t->n && strcmp(t->v[i].name, v->tag) != 0)
        i++;
    if (i == t->n) {
        if (t->n == t->cap) {
            t->cap = t->cap ? t->cap * 2 : 16;
            t->v = realloc(t->v, sizeof(*t->v) * t->cap);
            if (!t->v)
                abort();
        }
        t->v[t->n++] = (tag){.name = strdup(v->tag), .kind = v->kind, .first = step};
    }
    tag *at = &t->v[i];
    at->n++;
    at->last = step;
    at->value = *v;
}

static void print_value(const leat_summary_value *v)
{
    if (v->kind == LEAT_SUMMARY_SCALAR)
        printf("%g", v->scalar);
    else if (v->kind == LEAT_SUMMARY_HISTOGRAM)
        printf("%.0f values from %g to %g, mean %g", v->num, v->min, v->max,
               v->num > 0 ? v->sum / v->num : 0);
    else
        printf("(%s)", kinds[v->kind]);
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

leat_status cli_show_events(const char *path, bool text)
{
    leat_event_reader *r;
    const leat_event_record *e;
    tags t = {0};
    long long n = 0, by_kind[LEAT_EVENT_METADATA + 1] = {0};
    leat_status s;
    LEAT_TRY(leat_event_reader_open(path, &r));
    while (!(s = leat_event_next(r, &e))) {
        n++;
        by_kind[e->kind]++;
        for (int i = 0; i < e->n_values; i++)
            count(&t, &e->values[i], e->step);
        if (text)
            print_event(e);
    }
    leat_event_reader_free(r);
    if (!text) {
        printf("%s: event file, %lld events\n", path, n);
        for (int k = 0; k <= LEAT_EVENT_METADATA; k++)
            if (by_kind[k])
                printf("  %6lld  %s\n", by_kind[k], events[k]);
        printf(t.n ? "tags\n" : "");
    }
    for (size_t i = 0; i < t.n; i++) {
        tag *v = &t.v[i];
        if (!text) {
            printf("  %s  %s, %lld times, steps %lld to %lld, last: ", v->name, kinds[v->kind],
                   v->n, (long long)v->first, (long long)v->last);
            print_value(&v->value);
            printf("\n");
        }
        free(v->name);
    }
    free(t.v);
    if (leat_status_code(s) != LEAT_OUT_OF_RANGE)
        return leat_status_prefix(s, "%s: ", path);
    leat_status_free(s);
    return NULL;
}
