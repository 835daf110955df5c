/* hooks_value.c -- hooks that depend on values: logging them, stopping at NaN, fetching at the end,
 * feeding. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "graph/given.h"
#include "train/hook_int.h"

/* ---- Logging values ---- */

typedef struct logging {
    leat_hook base;
    leat_timer timer;
    leat_out *x;
    char **tags; /* NULL: the tensors' names */
    int n;
    int64_t runs;
    bool due, at_end;
} logging;

static leat_status logging_begin(leat_hook *h, leat_graph *g)
{
    logging *p = (logging *)h;
    const leat_timer *t = &p->timer;
    LEAT_REQUIRE(p->at_end || t->every_steps >= 0 || t->every_secs >= 0, INVALID_ARGUMENT,
                 "leat_logging_hook: .at_end, .every_n_iter or .every_n_secs must be given.");
    LEAT_REQUIRE(t->every_steps < 0 || t->every_secs < 0, INVALID_ARGUMENT,
                 "leat_logging_hook: only one of .every_n_iter and .every_n_secs can be given.");
    LEAT_REQUIRE(t->every_steps != 0, INVALID_ARGUMENT,
                 "leat_logging_hook: .every_n_iter must be positive.");
    p->timer.began = false;
    p->runs = 0;
    return NULL;
}

static leat_status logging_before(leat_hook *h, leat_run_context *c)
{
    logging *p = (logging *)h;
    bool never = p->timer.every_steps < 0 && p->timer.every_secs < 0;
    p->due = !never && leat_timer_due(&p->timer, p->runs);
    for (int i = 0; p->due && i < p->n; i++)
        leat_run_fetch(c, p->x[i]);
    return NULL;
}

static void log_values(logging *p, const leat_tensor *const *values)
{
    leat_strbuf b = {0};
    double secs = 0;
    int64_t runs = 0;
    for (int i = 0; i < p->n; i++) {
        char *text = values[i] ? leat_tensor_text(values[i], 1000) : NULL;
        leat_strbuf_printf(&b, "%s%s = %s", i ? ", " : "",
                           p->tags ? p->tags[i] : leat_node_name(p->x[i].node), text ? text : "?");
        free(text);
    }
    if (leat_timer_mark(&p->timer, p->runs, &secs, &runs))
        leat_strbuf_printf(&b, " (%.3f sec)", secs);
    LEAT_LOG(INFO, "%s", leat_strbuf_text(&b));
    leat_strbuf_release(&b);
}

static leat_status logging_after(leat_hook *h, leat_run_context *c)
{
    logging *p = (logging *)h;
    if (p->due) {
        const leat_tensor **values = leat_new_array(const leat_tensor *, p->n + 1);
        for (int i = 0; i < p->n; i++)
            values[i] = leat_run_value(c, p->x[i]);
        log_values(p, values);
        free(values);
    }
    p->runs++;
    return NULL;
}

static leat_status logging_end(leat_hook *h, leat_session *s)
{
    logging *p = (logging *)h;
    if (!p->at_end)
        return NULL;
    leat_tensor **values = leat_new_array(leat_tensor *, p->n + 1);
    leat_fetch *fetches = leat_new_array(leat_fetch, p->n + 1);
    for (int i = 0; i < p->n; i++)
        fetches[i] = (leat_fetch){p->x[i], &values[i]};
    leat_status e =
        leat_session_run(s, LEAT_NO_FEED, (leat_fetches){fetches, p->n}, LEAT_NO_TARGET);
    if (!e)
        log_values(p, (const leat_tensor *const *)values);
    for (int i = 0; i < p->n; i++)
        leat_tensor_unref(values[i]);
    free(values);
    free(fetches);
    return e;
}

static void logging_free(leat_hook *h)
{
    logging *p = (logging *)h;
    for (int i = 0; p->tags && i < p->n; i++)
        free(p->tags[i]);
    free(p->tags);
    free(p->x);
    free(p);
}

leat_hook *leat_logging_hook_new(const leat_logging_options *o)
{
    static const leat_hook_ops ops = {.name = "LoggingTensorHook",
                                      .begin = logging_begin,
                                      .before_run = logging_before,
                                      .after_run = logging_after,
                                      .end = logging_end,
                                      .free = logging_free};
    logging *p = leat_hook_new(sizeof(*p), &ops);
    p->timer.every_steps = leat_given_int_or(&o->given, "every_n_iter", o->every_n_iter, -1);
    p->timer.every_secs = leat_given_or(&o->given, "every_n_secs", o->every_n_secs, -1);
    p->at_end = o->at_end;
    p->n = o->n;
    p->x = leat_new_array(leat_out, o->n + 1);
    p->tags = o->tags ? leat_new_array(char *, o->n + 1) : NULL;
    for (int i = 0; i < o->n; i++) {
        p->x[i] = o->tensors[i];
        if (p->tags)
            p->tags[i] = leat_xstrdup(o->tags[i]);
    }
    return &p->base;
}

/* ---- Stopping at NaN ---- */

typedef struct nan_hook {
    leat_hook base;
    leat_nan_options o;
} nan_hook;

static leat_status nan_before(leat_hook *h, leat_run_context *c)
{
    leat_run_fetch(c, ((nan_hook *)h)->o.loss);
    return NULL;
}

static leat_status nan_after(leat_hook *h, leat_run_context *c)
{
    nan_hook *p = (nan_hook *)h;
    const leat_tensor *loss = leat_run_value(c, p->o.loss);
    if (!loss || !isnan(leat_tensor_at(loss, 0)))
        return NULL;
    if (!p->o.stop_only) {
        LEAT_LOG(ERROR, "Model diverged with loss = NaN.");
        return leat_error(INVALID_ARGUMENT, "NaN loss during training.");
    }
    LEAT_LOG(WARNING, "Model diverged with loss = NaN.");
    leat_run_request_stop(c);
    return NULL;
}

static void free_plain(leat_hook *h)
{
    free(h);
}

leat_hook *leat_nan_hook_new(const leat_nan_options *o)
{
    static const leat_hook_ops ops = {.name = "NanTensorHook",
                                      .before_run = nan_before,
                                      .after_run = nan_after,
                                      .free = free_plain};
    nan_hook *p = leat_hook_new(sizeof(*p), &ops);
    p->o = *o;
    return &p->base;
}

/* ---- Fetching at the end ---- */

typedef struct final_ops {
    leat_hook base;
    leat_feeds feeds;
    leat_fetches fetches;
    leat_targets targets;
} final_ops;

static leat_status final_end(leat_hook *h, leat_session *s)
{
    final_ops *p = (final_ops *)h;
    leat_status e = leat_session_run(s, p->feeds, p->fetches, p->targets);
    if (leat_status_code(e) == LEAT_OUT_OF_RANGE)
        LEAT_LOG(WARNING, "An OutOfRangeError is raised by what FinalOpsHook runs. That typically "
                          "means that it depends on an input source, which should not happen.");
    return e;
}

static void final_free(leat_hook *h)
{
    final_ops *p = (final_ops *)h;
    free((void *)p->feeds.v);
    free((void *)p->fetches.v);
    free((void *)p->targets.v);
    free(p);
}

static void *copy_of(const void *v, int n, size_t size)
{
    void *copy = leat_xcalloc((size_t)n + 1, size);
    if (n)
        memcpy(copy, v, (size_t)n * size);
    return copy;
}

leat_hook *leat_final_ops_hook_new(const leat_final_ops_options *o)
{
    static const leat_hook_ops ops = {.name = "FinalOpsHook", .end = final_end, .free = final_free};
    final_ops *p = leat_hook_new(sizeof(*p), &ops);
    p->feeds = (leat_feeds){copy_of(o->feeds.v, o->feeds.n, sizeof(leat_feed)), o->feeds.n};
    p->fetches =
        (leat_fetches){copy_of(o->fetches.v, o->fetches.n, sizeof(leat_fetch)), o->fetches.n};
    p->targets =
        (leat_targets){copy_of(o->targets.v, o->targets.n, sizeof(leat_out)), o->targets.n};
    return &p->base;
}

/* ---- Feeding ---- */

typedef struct feed_fn {
    leat_hook base;
    leat_status (*fn)(void *arg, leat_run_context *c);
    void *arg;
} feed_fn;

static leat_status feed_before(leat_hook *h, leat_run_context *c)
{
    feed_fn *p = (feed_fn *)h;
    return p->fn(p->arg, c);
}

leat_hook *leat_feed_fn_hook(leat_status (*fn)(void *arg, leat_run_context *c), void *arg)
{
    static const leat_hook_ops ops = {
        .name = "FeedFnHook", .before_run = feed_before, .free = free_plain};
    feed_fn *p = leat_hook_new(sizeof(*p), &ops);
    p->fn = fn;
    p->arg = arg;
    return &p->base;
}
