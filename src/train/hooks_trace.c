/* hooks_trace.c -- the profiler hook: traces of chosen runs as files for Chrome, and as run
 * metadata for TensorBoard. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "graph/given.h"
#include "io/file.h"
#include "train/hook_int.h"

typedef struct profiler {
    leat_hook base;
    leat_timer timer;
    int64_t *steps; /* those that are still to be traced, in ascending order */
    int n_steps;
    char *dir;
    leat_summary_writer *writer;
    leat_out step;
    bool wanted, told;
    int64_t next; /* the step that the next run reaches; 0: not known yet */
} profiler;

static leat_status profiler_begin(leat_hook *h, leat_graph *g)
{
    profiler *p = (profiler *)h;
    LEAT_REQUIRE(p->dir, INVALID_ARGUMENT, "leat_profiler_hook needs an .output_dir.");
    LEAT_REQUIRE((p->timer.every_secs >= 0) + (p->timer.every_steps >= 0) + (p->n_steps > 0) == 1,
                 INVALID_ARGUMENT,
                 "leat_profiler_hook: exactly one of .save_secs, .save_steps and .steps must be "
                 "given.");
    LEAT_TRY(leat_hook_step(g, "ProfilerHook", &p->step));
    p->writer = leat_writer_get(p->dir);
    return NULL;
}

static leat_status profiler_session(leat_hook *h, leat_session *s, leat_coordinator *coord)
{
    profiler *p = (profiler *)h;
    int64_t now = 0, steps;
    double secs;
    LEAT_TRY(leat_read_step(s, p->step, &now));
    if (!p->timer.began)
        leat_timer_mark(&p->timer, now, &secs, &steps);
    p->next = now + 1;
    return NULL;
}

static leat_status profiler_before(leat_hook *h, leat_run_context *c)
{
    profiler *p = (profiler *)h;
    leat_run_fetch(c, p->step);
    p->wanted = p->n_steps ? p->next >= p->steps[0] : leat_timer_due(&p->timer, p->next);
    if (p->wanted)
        leat_run_trace(c);
    return NULL;
}

static leat_status write_files(profiler *p, const leat_metadata *m, int64_t step)
{
    char *json = NULL, tag[40];
    leat_strbuf path = {0};
    snprintf(tag, sizeof(tag), "step_%" PRId64, step);
    leat_writer_tell(p->writer, leat_summary_write_metadata(p->writer, m, tag, step));
    LEAT_TRY(leat_metadata_to_chrome(m, &json));
    leat_strbuf_printf(&path, "%s/timeline-%" PRId64 ".json", p->dir, step);
    leat_status s = leat_file_write(path.s, json, strlen(json));
    if (!s)
        LEAT_LOG(INFO, "Saved the times of step %" PRId64 " to %s.", step, path.s);
    leat_strbuf_release(&path);
    free(json);
    return s;
}

static leat_status profiler_after(leat_hook *h, leat_run_context *c)
{
    profiler *p = (profiler *)h;
    int64_t step = (int64_t)leat_tensor_at(leat_run_value(c, p->step), 0) + 1, steps;
    double secs;
    if (p->wanted) {
        LEAT_TRY(leat_read_step(leat_run_session(c), p->step, &step));
        leat_timer_mark(&p->timer, step, &secs, &steps);
        while (p->n_steps && p->steps[0] <= step)
            memmove(p->steps, p->steps + 1, sizeof(*p->steps) * (size_t)--p->n_steps);
        leat_status s = write_files(p, leat_run_metadata(c), step);
        if (s && !p->told)
            LEAT_LOG(WARNING, "The times of a step are not saved, and training goes on: %s",
                     leat_status_message(s));
        p->told |= s != NULL;
        leat_status_free(s);
    }
    p->next = step + 1;
    return NULL;
}

static void profiler_free(leat_hook *h)
{
    profiler *p = (profiler *)h;
    leat_writer_put(p->writer);
    free(p->steps);
    free(p->dir);
    free(p);
}

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

leat_hook *leat_profiler_hook_new(const leat_profiler_options *o)
{
    static const leat_hook_ops ops = {.name = "ProfilerHook",
                                      .begin = profiler_begin,
                                      .after_create_session = profiler_session,
                                      .before_run = profiler_before,
                                      .after_run = profiler_after,
                                      .free = profiler_free};
    profiler *p = leat_hook_new(sizeof(*p), &ops);
    p->timer.every_secs = leat_given_or(&o->given, "save_secs", o->save_secs, -1);
    p->timer.every_steps = leat_given_int_or(&o->given, "save_steps", o->save_steps, -1);
    p->n_steps = o->steps ? o->n_steps : 0;
    p->steps = leat_new_array(int64_t, p->n_steps + 1);
    if (p->n_steps)
        memcpy(p->steps, o->steps, sizeof(*p->steps) * (size_t)p->n_steps);
    qsort(p->steps, (size_t)p->n_steps, sizeof(*p->steps), ascending);
    p->dir = o->output_dir ? leat_xstrdup(o->output_dir) : NULL;
    return &p->base;
}
