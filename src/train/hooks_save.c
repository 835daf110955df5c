/* hooks_save.c -- hooks that write: checkpoints of the model, summaries of it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "graph/given.h"
#include "runtime/session_int.h"
#include "train/hook_int.h"

/* ---- Checkpoints ---- */

typedef struct checkpoint_hook {
    leat_hook base;
    leat_timer timer;
    char *dir, *path;
    leat_saver *saver, *own; /* own: a saver that the hook made */
    leat_summary_writer *writer;
    leat_checkpoint_listener *listeners;
    int n_listeners;
    leat_graph *g;
    leat_loc at; /* where the hook was made */
    leat_out step;
} checkpoint_hook;

static leat_status checkpoint_begin(leat_hook *h, leat_graph *g)
{
    checkpoint_hook *p = (checkpoint_hook *)h;
    LEAT_REQUIRE(p->dir, INVALID_ARGUMENT, "leat_checkpoint_hook needs a .checkpoint_dir.");
    LEAT_TRY(leat_timer_check(&p->timer, "leat_checkpoint_hook"));
    LEAT_TRY(leat_hook_step(g, "CheckpointSaverHook", &p->step));
    p->g = g;
    p->writer = leat_writer_get(p->dir);
    return NULL;
}

void leat_checkpoint_hook_use(leat_hook *h, leat_saver *saver)
{
    checkpoint_hook *p = (checkpoint_hook *)h;
    if (!p->saver)
        p->saver = saver;
}

static leat_status save(checkpoint_hook *p, leat_session *s, int64_t step, bool *stop)
{
    LEAT_LOG(INFO, "Saving checkpoints for %" PRId64 " into %s.", step, p->path);
    for (int i = 0; i < p->n_listeners; i++)
        if (p->listeners[i].before_save)
            LEAT_TRY(p->listeners[i].before_save(p->listeners[i].arg, s, step));
    LEAT_TRY(leat_saver_save(p->saver, s, p->path, step, NULL));
    leat_writer_tell(p->writer,
                     leat_summary_write_mark(p->writer, LEAT_SESSION_CHECKPOINT, p->path, step));
    for (int i = 0; i < p->n_listeners; i++)
        if (p->listeners[i].after_save)
            LEAT_TRY(p->listeners[i].after_save(p->listeners[i].arg, s, step, stop));
    return NULL;
}

/* The initial state is saved, too. From now on tasks that are about to end wait for a save. */
static leat_status checkpoint_session(leat_hook *h, leat_session *s, leat_coordinator *coord)
{
    checkpoint_hook *p = (checkpoint_hook *)h;
    int64_t step = 0, steps;
    double secs;
    bool stop = false;
    if (!p->saver) {
        p->saver = p->own = leat_saver_new_at(p->at, p->g, &(leat_saver_options){0});
        LEAT_TRY(leat_graph_status(p->g));
    }
    LEAT_TRY(leat_read_step(s, p->step, &step));
    leat_writer_tell(p->writer, leat_summary_write_graph(p->writer, p->g, step));
    leat_writer_tell(p->writer, leat_summary_write_meta_graph(p->writer, p->g, p->saver, step));
    LEAT_TRY(save(p, s, step, &stop));
    leat_timer_mark(&p->timer, step, &secs, &steps);
    leat_session_hold(s);
    return NULL;
}

static leat_status checkpoint_before(leat_hook *h, leat_run_context *c)
{
    leat_run_fetch(c, ((checkpoint_hook *)h)->step);
    return NULL;
}

static leat_status checkpoint_after(leat_hook *h, leat_run_context *c)
{
    checkpoint_hook *p = (checkpoint_hook *)h;
    int64_t step = (int64_t)leat_tensor_at(leat_run_value(c, p->step), 0), steps;
    double secs;
    bool stop = false;
    const char *ending = leat_session_ending(c->session);
    if (!ending && !leat_timer_due(&p->timer, step + 1))
        return NULL;
    LEAT_TRY(leat_read_step(c->session, p->step, &step));
    if (!ending && !leat_timer_due(&p->timer, step))
        return NULL;
    leat_timer_mark(&p->timer, step, &secs, &steps);
    leat_log_ending(ending, p->path, step);
    LEAT_TRY(save(p, c->session, step, &stop));
    if (ending)
        leat_session_let_go(c->session);
    if (stop)
        leat_run_request_stop(c);
    return NULL;
}

static leat_status checkpoint_end(leat_hook *h, leat_session *s)
{
    checkpoint_hook *p = (checkpoint_hook *)h;
    int64_t step = 0;
    bool stop = false;
    LEAT_TRY(leat_read_step(s, p->step, &step));
    if (!p->timer.began || step != p->timer.last_step)
        LEAT_TRY(save(p, s, step, &stop));
    for (int i = 0; i < p->n_listeners; i++)
        if (p->listeners[i].end)
            LEAT_TRY(p->listeners[i].end(p->listeners[i].arg, s, step));
    return NULL;
}

static void checkpoint_free(leat_hook *h)
{
    checkpoint_hook *p = (checkpoint_hook *)h;
    leat_writer_put(p->writer);
    leat_saver_free(p->own);
    free(p->listeners);
    free(p->dir);
    free(p->path);
    free(p);
}

leat_hook *leat_checkpoint_hook_new(const leat_checkpoint_hook_options *o)
{
    static const leat_hook_ops ops = {.name = "CheckpointSaverHook",
                                      .begin = checkpoint_begin,
                                      .after_create_session = checkpoint_session,
                                      .before_run = checkpoint_before,
                                      .after_run = checkpoint_after,
                                      .end = checkpoint_end,
                                      .free = checkpoint_free};
    checkpoint_hook *p = leat_hook_new(sizeof(*p), &ops);
    leat_strbuf path = {0};
    leat_strbuf_printf(&path, "%s/%s", o->checkpoint_dir ? o->checkpoint_dir : "",
                       o->checkpoint_basename ? o->checkpoint_basename : "model.ckpt");
    p->path = leat_strbuf_take(&path);
    p->dir = o->checkpoint_dir ? leat_xstrdup(o->checkpoint_dir) : NULL;
    p->timer.every_secs = leat_given_or(&o->given, "save_secs", o->save_secs, -1);
    p->timer.every_steps = leat_given_int_or(&o->given, "save_steps", o->save_steps, -1);
    p->saver = o->saver;
    p->at = o->given.at;
    p->n_listeners = o->n_listeners;
    p->listeners = leat_new_array(leat_checkpoint_listener, o->n_listeners + 1);
    for (int i = 0; i < o->n_listeners; i++)
        p->listeners[i] = o->listeners[i];
    return &p->base;
}

/* ---- Summaries ---- */

typedef struct summary_hook {
    leat_hook base;
    leat_timer timer;
    leat_out op, step;
    const leat_scaffold *scaffold; /* if there is no op: has it once all hooks have begun */
    char *dir;
    leat_summary_writer *writer, *got; /* got: the writer, if it is from the cache */
    bool began, wanted;
    int64_t next;
} summary_hook;

static leat_status summary_begin(leat_hook *h, leat_graph *g)
{
    summary_hook *p = (summary_hook *)h;
    LEAT_TRY(leat_timer_check(&p->timer, "leat_summary_hook"));
    LEAT_TRY(leat_hook_step(g, "SummarySaverHook", &p->step));
    if (!p->op.node && !p->scaffold)
        p->op = leat_merge_all_summaries(g);
    if (p->writer || !p->dir)
        return NULL;
    p->writer = p->got = leat_writer_get(p->dir);
    return NULL;
}

void leat_summary_hook_use(leat_hook *h, const leat_scaffold *scaffold)
{
    ((summary_hook *)h)->scaffold = scaffold;
}

static leat_status summary_before(leat_hook *h, leat_run_context *c)
{
    summary_hook *p = (summary_hook *)h;
    if (!p->op.node && p->scaffold)
        p->op = p->scaffold->summary_op;
    p->wanted = !p->began || leat_timer_due(&p->timer, p->next);
    leat_run_fetch(c, p->step);
    if (p->wanted && p->op.node)
        leat_run_fetch(c, p->op);
    return NULL;
}

static leat_status summary_after(leat_hook *h, leat_run_context *c)
{
    summary_hook *p = (summary_hook *)h;
    int64_t step = (int64_t)leat_tensor_at(leat_run_value(c, p->step), 0) + 1, steps;
    double secs;
    if (!p->writer)
        return NULL;
    if (p->wanted)
        LEAT_TRY(leat_read_step(c->session, p->step, &step));
    if (!p->began)
        leat_writer_tell(p->writer,
                         leat_summary_write_mark(p->writer, LEAT_SESSION_START, NULL, step));
    if (p->wanted) {
        leat_timer_mark(&p->timer, step, &secs, &steps);
        if (p->op.node)
            leat_writer_tell(p->writer,
                             leat_summary_write(p->writer, leat_run_value(c, p->op), step));
    }
    p->began = true;
    p->next = step + 1;
    return NULL;
}

static leat_status summary_end(leat_hook *h, leat_session *s)
{
    summary_hook *p = (summary_hook *)h;
    if (p->writer)
        leat_writer_tell(p->writer, leat_summary_flush(p->writer));
    return NULL;
}

static void summary_free(leat_hook *h)
{
    summary_hook *p = (summary_hook *)h;
    leat_writer_put(p->got);
    free(p->dir);
    free(p);
}

leat_hook *leat_summary_hook_new(const leat_summary_hook_options *o)
{
    static const leat_hook_ops ops = {.name = "SummarySaverHook",
                                      .begin = summary_begin,
                                      .before_run = summary_before,
                                      .after_run = summary_after,
                                      .end = summary_end,
                                      .free = summary_free};
    summary_hook *p = leat_hook_new(sizeof(*p), &ops);
    p->timer.every_secs = leat_given_or(&o->given, "save_secs", o->save_secs, -1);
    p->timer.every_steps = leat_given_int_or(&o->given, "save_steps", o->save_steps, -1);
    p->op = o->summary_op;
    p->dir = o->output_dir ? leat_xstrdup(o->output_dir) : NULL;
    p->writer = o->writer;
    return &p->base;
}
