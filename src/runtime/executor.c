/* executor.c -- runs the nodes of a graph as their inputs come; see executor_int.h for the rules.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/block.h"
#include "core/denormals.h"
#include "core/later.h"
#include "core/threadpool.h"
#include "runtime/executor_int.h"
#include "runtime/send_recv.h"

enum {
    LOCAL_OUTPUTS = 8, /* outputs that fit on the stack */
    CHECK_EVERY = 64,  /* tasks between two looks at the clock */
};

/* An async kernel under way. */
typedef struct leat_async_run {
    leat_kernel k; /* first: done gets this address */
    leat_run *run;
    task t;
    int64_t started;
    size_t size;
    struct leat_async_run *next, *prev; /* in run->waiting */
    leat_later_job later;               /* runs the successors after the kernel has called done */
    /* start_async and done each add one; the second of them runs the successors. */
    atomic_int turns;
    leat_status status;
    leat_entry out[];
} async_run;

static void work(leat_run *r, task_list *ready);
static void share(leat_run *r, task_list *ready);

static void list_init(task_list *l)
{
    l->v = l->few;
    l->n = l->kept = 0;
    l->expensive = -1;
    l->cap = sizeof(l->few) / sizeof(*l->few);
}

static void list_release(task_list *l)
{
    if (l->v != l->few)
        free(l->v);
}

void leat_task_push(task_list *l, exec_node *n, iteration *it)
{
    if (l->n == l->cap) {
        bool few = l->v == l->few;
        l->cap *= 2;
        l->v = leat_xrealloc(few ? NULL : l->v, sizeof(task) * (size_t)l->cap);
        if (few)
            memcpy(l->v, l->few, sizeof(l->few));
    }
    l->v[l->n++] = (task){n, it};
}

static task list_pop(task_list *l)
{
    task t = l->v[--l->n];
    if (l->kept > l->n)
        l->kept = l->n;
    if (l->expensive >= l->n)
        l->expensive = -1;
    return t;
}

static void clear_entries(leat_entry *e, int n)
{
    for (int i = 0; i < n; i++)
        if (e[i].tensor || e[i].var)
            leat_entry_clear(&e[i]);
        else
            e[i].dead = false;
}

/* The device has done all that the kernels of the step enqueued. */
static void drained(void *arg, leat_status s)
{
    leat_run *r = arg;
    leat_step *step = r->step;
    leat_step_fail(step, leat_device_error(r->executor->device, s));
    leat_step_part_ended(step);
}

static void end_active(leat_run *r)
{
    leat_step *step = r->step;
    if (atomic_fetch_sub_explicit(&r->active, 1, memory_order_acq_rel) != 1)
        return;
    if (r->executor->has_flow)
        leat_flow_clear(r);
    if (leat_step_cancelled(step)) /* entries hold values of nodes that never ran */
        clear_entries(r->root.entries, r->executor->frames[0].n_entries);
    if (r->executor->device->kind->host_memory)
        leat_step_part_ended(step);
    else
        leat_device_drain(r->executor->device, drained, r);
}

static void fail(leat_run *r, const exec_node *n, leat_status s)
{
    const char *name = n->bound.node->name;
    const leat_device *d = r->executor->device;
    const leat_code code = leat_status_code(s);
    if (!d->kind->host_memory && (code == LEAT_UNAVAILABLE || code == LEAT_INTERNAL))
        s = leat_device_error(d, s); /* the device may have been lost: which one? */
    if (!strstr(leat_status_message(s), "[[{{node "))
        s = leat_status_suffix(s, "\n\t [[{{node %s}}]]", name);
    leat_step_fail(r->step, s);
}

/* ---- Delivering outputs ---- */

/* One input of dst has come. alone: no other thread and no async kernel is at work on the run. */
static void arrive(iteration *root, exec_node *dst, bool alone, task_list *ready)
{
    atomic_int *pending = &root->pending[dst->local];
    if (dst->pending > 1 && alone) {
        int left = atomic_load_explicit(pending, memory_order_relaxed) - 1;
        atomic_store_explicit(pending, left, memory_order_relaxed);
        if (left)
            return;
    } else if (dst->pending > 1 &&
               atomic_fetch_sub_explicit(pending, 1, memory_order_acq_rel) != 1) {
        return;
    }
    leat_task_push(ready, dst, root);
}

static leat_status missing(const exec_node *n, int out)
{
    return leat_error(INTERNAL, "Missing %d-th output from {{node %s}}", out, n->bound.node->name);
}

/* In graphs without flow ops. */
static leat_status propagate(leat_run *r, exec_node *n, leat_entry *out, task_list *ready)
{
    exec_node *nodes = r->executor->nodes;
    bool alone = atomic_load_explicit(&r->active, memory_order_acquire) == 1;
    for (int i = 0; i < n->n_edges; i++) {
        const exec_edge *e = &n->edges[i];
        exec_node *dst = &nodes[e->node];
        if (e->out >= 0) {
            leat_entry *to = &r->root.entries[dst->in_at + e->slot];
            if (!out[e->out].tensor && !out[e->out].var)
                return missing(n, e->out);
            *to = e->last ? out[e->out] : leat_entry_copy(&out[e->out]);
            if (e->last)
                out[e->out] = (leat_entry){0};
        }
        arrive(&r->root, dst, alone, ready);
    }
    return NULL;
}

static void deliver(leat_run *r, task t, leat_entry *out, bool dead, task_list *ready)
{
    exec_node *n = t.node;
    leat_status s = r->executor->has_flow ? leat_flow_propagate(r, t, out, dead, ready)
                                          : propagate(r, n, out, ready);
    clear_entries(out, n->n_out);
    if (s)
        fail(r, n, s);
}

/* ---- Running one node ---- */

/* Replaces references by values where the op wants values. */
static leat_status read_refs(exec_node *n, leat_entry *in)
{
    const leat_node *node = n->bound.node;
    int at = 0;
    for (int a = 0; a < node->op->n_in; a++) {
        const leat_arg_info *arg = &node->op->in[a];
        int count = arg->number_attr >= 0 ? (int)node->attrs[arg->number_attr].i
                    : arg->list_attr >= 0 ? node->attrs[arg->list_attr].n
                                          : 1;
        for (int i = 0; i < count; i++, at++) {
            leat_variable *v = in[at].var;
            if (!v || arg->is_ref)
                continue;
            LEAT_TRY(leat_variable_read(v, &in[at].tensor));
            leat_resource_unref(&v->base);
            in[at].var = NULL;
        }
    }
    return NULL;
}

static int64_t output_bytes(const leat_entry *out, int n)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        if (out[i].tensor)
            bytes += (int64_t)leat_tensor_bytes(out[i].tensor);
    return bytes;
}

static void trace(leat_run *r, const exec_node *n, const leat_entry *out, int64_t started)
{
    leat_trace_node(r->step->trace, n->bound.node, r->executor->device->name, started,
                    leat_now_ns(), output_bytes(out, n->n_out));
}

static void unlink_waiting(async_run *a)
{
    leat_run *r = a->run;
    pthread_mutex_lock(&r->wait_lock);
    if (a->prev)
        a->prev->next = a->next;
    else
        r->waiting = a->next;
    if (a->next)
        a->next->prev = a->prev;
    pthread_mutex_unlock(&r->wait_lock);
}

/* The kernel has called done, and start_async has returned. */
static void finish_async(async_run *a, task_list *ready)
{
    leat_run *r = a->run;
    exec_node *n = a->t.node;
    leat_kernel_free_temps(&a->k);
    if (r->step->trace)
        trace(r, n, a->out, a->started);
    if (a->status) {
        fail(r, n, a->status);
        clear_entries(a->out, n->n_out);
    } else {
        bool dead = a->out[0].dead && n->n_out > 0;
        deliver(r, a->t, a->out, dead, ready);
    }
    clear_entries(a->k.in, n->n_in);
    if (r->executor->has_flow)
        leat_flow_task_done(r, a->t.it, ready);
    if (a->size <= LEAT_BLOCK_MAX)
        leat_block_free(a, a->size);
    else
        free(a);
}

static void async_job(void *arg)
{
    async_run *a = arg;
    leat_run *r = a->run;
    task_list ready;
    list_init(&ready);
    finish_async(a, &ready);
    work(r, &ready);
    list_release(&ready);
    end_active(r);
}

static async_run *async_of(leat_later_job *j)
{
    return (async_run *)((char *)j - offsetof(async_run, later));
}

static void async_submit(leat_later_job *j)
{
    async_run *a = async_of(j);
    leat_pool_submit(a->run->executor->device->inter, async_job, a);
}

/* Runs the successors of async kernels that have called done: those of one run in this thread,
 * those of other runs in the pools of their devices. A job whose pool has no thread is queued for
 * this thread again, if the thread may run it. */
static void async_run_all(leat_later_job *list)
{
    leat_run *r = NULL;
    int n = 0;
    task_list ready;
    list_init(&ready);
    for (leat_later_job *j = list, *next; j; j = next) {
        next = j->next;
        async_run *a = async_of(j);
        bool may = leat_later_may_run(a->run->step);
        if (may && (!r || a->run == r)) {
            r = a->run;
            finish_async(a, &ready);
            n++;
        } else if (!may || leat_pool_size(a->run->executor->device->inter) > 0) {
            async_submit(j);
        } else {
            leat_later_job_add(j);
        }
    }
    if (ready.n > 1)
        share(r, &ready);
    work(r, &ready);
    list_release(&ready);
    while (n-- > 0)
        end_active(r);
}

static void async_done(leat_kernel *k, leat_status s)
{
    async_run *a = (async_run *)k;
    a->status = s;
    unlink_waiting(a);
    if (atomic_fetch_add(&a->turns, 1) != 1)
        return;
    a->later = (leat_later_job){.run = async_run_all, .submit = async_submit};
    leat_later_job_add(&a->later);
}

static void start_async(leat_run *r, task t, leat_entry *in, task_list *ready)
{
    exec_node *n = t.node;
    size_t size = sizeof(async_run) + sizeof(leat_entry) * (size_t)(n->n_out + 1);
    async_run *a = size <= LEAT_BLOCK_MAX ? leat_block_xalloc(size) : leat_xmalloc(size);
    memset(a, 0, size);
    a->k = (leat_kernel){.bound = &n->bound,
                         .step = r->step,
                         .device = r->executor->device,
                         .in = in,
                         .out = a->out,
                         .n_in = n->n_in,
                         .n_out = n->n_out,
                         .done = async_done,
                         .frame = t.it->frame_id,
                         .iteration = t.it->number};
    a->run = r;
    a->t = t;
    a->size = size;
    a->started = r->step->trace ? leat_now_ns() : 0;
    atomic_fetch_add_explicit(&r->active, 1, memory_order_relaxed);
    pthread_mutex_lock(&r->wait_lock);
    a->next = r->waiting;
    if (a->next)
        a->next->prev = a;
    r->waiting = a;
    pthread_mutex_unlock(&r->wait_lock);
    leat_buffer_for = n->bound.node->name; /* copies to a device allocate memory there */
    n->bound.def->run_async(&a->k);
    leat_buffer_for = NULL;
    if (atomic_fetch_add(&a->turns, 1) == 1) { /* done was called already */
        finish_async(a, ready);
        end_active(r); /* never the last: this thread is at work */
    }
}

static bool comes_dead(const exec_node *n, const iteration *it, const leat_entry *in)
{
    if (n->kind == EXEC_TRIGGER)
        return false;
    if (n->kind == EXEC_MERGE) {
        for (int i = 0; i < n->n_in; i++)
            if (in[i].tensor || in[i].var)
                return false;
        return true;
    }
    bool dead = atomic_load_explicit(&it->dead[n->local], memory_order_relaxed);
    for (int i = 0; i < n->n_in; i++)
        dead |= in[i].dead;
    return dead;
}

static void run_sync(leat_run *r, task t, leat_entry *in, task_list *ready)
{
    exec_node *n = t.node;
    leat_entry few[LOCAL_OUTPUTS], *out = few;
    if (n->n_out > LOCAL_OUTPUTS)
        out = leat_new_array(leat_entry, n->n_out);
    else
        memset(few, 0, sizeof(*few) * (size_t)n->n_out);
    leat_kernel k = {.bound = &n->bound,
                     .step = r->step,
                     .device = r->executor->device,
                     .in = in,
                     .out = out,
                     .n_in = n->n_in,
                     .n_out = n->n_out,
                     .slots = n->slots,
                     .kept = r->kept,
                     .frame = t.it->frame_id,
                     .iteration = t.it->number};
    int64_t started = r->step->trace ? leat_now_ns() : 0;
    if (n->expensive)
        atomic_store_explicit(&r->expensive, n, memory_order_relaxed);
    leat_status s = leat_kernel_run(&k);
    if (n->expensive)
        atomic_store_explicit(&r->expensive, NULL, memory_order_relaxed);
    if (r->step->trace)
        trace(r, n, out, started);
    /* Inputs are cleared first, so that the successors can use their memory again. */
    clear_entries(in, n->n_in);
    if (s) {
        fail(r, n, s);
        clear_entries(out, n->n_out);
    } else {
        deliver(r, t, out, false, ready);
    }
    if (out != few)
        free(out);
}

/* A node that gets a dead value does not run, and neither do its successors. A _Send sends a dead
 * value; a fetch is an error. */
static void run_dead(leat_run *r, task t, leat_entry *in, task_list *ready)
{
    exec_node *n = t.node;
    const leat_node *node = n->bound.node;
    leat_entry none[LOCAL_OUTPUTS] = {{0}}, *out = none;
    clear_entries(in, n->n_in);
    if (leat_node_role(node) == LEAT_ROLE_SEND)
        leat_send_dead(&n->bound, r->step, t.it->frame_id, t.it->number);
    if (leat_node_role(node) == LEAT_ROLE_RETVAL)
        fail(r, n,
             leat_error(INVALID_ARGUMENT,
                        "Retval[%lld] does not have value: what is fetched is on a branch that was "
                        "not taken",
                        (long long)leat_node_int(node, "index")));
    if (n->n_out > LOCAL_OUTPUTS)
        out = leat_new_array(leat_entry, n->n_out);
    deliver(r, t, out, true, ready);
    if (out != none)
        free(out);
}

static void run_task(leat_run *r, task t, task_list *ready)
{
    exec_node *n = t.node;
    leat_entry *in = t.it->entries + n->in_at;
    bool flow = r->executor->has_flow;
    leat_status s = NULL;
    if (leat_step_cancelled(r->step)) {
        clear_entries(in, n->n_in);
    } else if (flow && comes_dead(n, t.it, in)) {
        run_dead(r, t, in, ready);
    } else if (n->in_refs && (s = read_refs(n, in))) {
        clear_entries(in, n->n_in);
        fail(r, n, s);
    } else if (n->async) {
        start_async(r, t, in, ready);
        return;
    } else {
        run_sync(r, t, in, ready);
    }
    if (flow)
        leat_flow_task_done(r, t.it, ready);
}

/* ---- Threads ---- */

static void job_run(void *arg)
{
    struct job *j = arg;
    leat_run *r = j->run;
    task_list ready;
    list_init(&ready);
    leat_task_push(&ready, j->t.node, j->t.it);
    if (j->t.it != &r->root)
        free(j);
    work(r, &ready);
    list_release(&ready);
    end_active(r);
}

/* False if no thread can be started for a task that blocks: the caller keeps the task. */
static bool hand_over(leat_run *r, task t)
{
    struct job *j =
        t.it == &r->root ? &r->jobs[t.node - r->executor->nodes] : leat_xmalloc(sizeof(struct job));
    *j = (struct job){r, t};
    atomic_fetch_add_explicit(&r->active, 1, memory_order_relaxed);
    leat_pool *pool = r->executor->device->inter;
    if (!t.node->blocks) {
        leat_pool_submit(pool, job_run, j);
        return true;
    }
    if (leat_pool_submit_blocking(pool, job_run, j) == 0)
        return true;
    atomic_fetch_sub_explicit(&r->active, 1, memory_order_relaxed); /* This thread is active. */
    if (t.it != &r->root)
        free(j);
    return false;
}

/* Keeps one expensive task for this thread, the one that it would run first, and hands the others
 * to the pool; tasks that block run in this thread only if no other can be started. Looks at new
 * tasks alone: a thread may have very many. A task is moved once at most, when the expensive one
 * below it is handed over. */
static void share(leat_run *r, task_list *l)
{
    bool helpers = leat_pool_size(r->executor->device->inter) > 0;
    int begin = l->kept, expensive = -1;
    for (int i = l->n - 1; i >= begin; i--) {
        const exec_node *n = l->v[i].node;
        if (n->blocks || (n->expensive && expensive >= 0 && helpers)) {
            if (hand_over(r, l->v[i]))
                l->v[i].node = NULL;
        } else if (n->expensive && expensive < 0) {
            expensive = i;
        }
    }
    if (expensive >= 0 && l->expensive >= 0 && helpers) {
        begin = l->expensive;
        if (hand_over(r, l->v[begin]))
            l->v[begin].node = NULL;
    }
    int n = begin;
    for (int i = begin; i < l->n; i++)
        if (l->v[i].node) {
            if (i == expensive)
                l->expensive = n;
            l->v[n++] = l->v[i];
        }
    l->n = l->kept = n;
}

static void look_at_clock(leat_run *r)
{
    leat_step *s = r->step;
    if (s->deadline_ns && leat_now_ns() > s->deadline_ns && !leat_step_cancelled(s))
        leat_step_fail(
            s, leat_error(DEADLINE_EXCEEDED, "Timed out: the step ran longer than its time"));
}

static void work(leat_run *r, task_list *ready)
{
    const unsigned denormals = leat_denormals_off();
    int count = 0;
    while (ready->n) {
        task t = list_pop(ready);
        if (t.node->blocks && ready->n && hand_over(r, t)) /* Other tasks need not wait for it. */
            continue;
        if (t.node->expensive || t.node->blocks)
            leat_later_now();
        int before = ready->n;
        run_task(r, t, ready);
        if (ready->n > before + 1 || (ready->n > 1 && ready->n > before))
            share(r, ready);
        if (++count % CHECK_EVERY == 0)
            look_at_clock(r);
    }
    leat_denormals_restore(denormals);
}

void leat_run_start(leat_run *r, leat_step *step)
{
    leat_executor *e = r->executor;
    r->step = step;
    atomic_store_explicit(&r->active, 1, memory_order_relaxed);
    const exec_frame *root = &e->frames[0];
    memcpy(r->root.pending, root->pending, sizeof(int) * (size_t)root->n_nodes);
    if (e->has_flow) {
        memset((void *)r->root.dead, 0, (size_t)root->n_nodes);
        memset(r->root.dead_inputs, 0, sizeof(int) * (size_t)root->n_nodes);
    }
    /* This thread counts in run->active: the run does not end while it uses this list. */
    task_list *ready = &r->spare;
    if (!ready->v)
        list_init(ready);
    for (int i = e->n_roots - 1; i >= 0; i--)
        leat_task_push(ready, &e->nodes[e->roots[i]], &r->root);
    if (ready->n > 1)
        share(r, ready);
    work(r, ready);
    end_active(r);
}

void leat_run_waiting(leat_run *r, char *buf, size_t n)
{
    size_t at = 0;
    buf[0] = 0;
    const exec_node *runs = atomic_load_explicit(&r->expensive, memory_order_relaxed);
    if (runs) {
        const leat_node *node = runs->bound.node;
        int w = snprintf(buf, n, "%s (%s, which is running)", node->name, node->op->def->name);
        at += w > 0 ? (size_t)w : 0;
    }
    pthread_mutex_lock(&r->wait_lock);
    for (async_run *a = r->waiting; a && at + 4 < n; a = a->next) {
        const leat_node *node = a->t.node->bound.node;
        const leat_attr *f = leat_node_attr(node, "f"); /* the function that it calls */
        bool calls = f && f->kind == LEAT_ARG_FUNC;
        int w = snprintf(buf + at, n - at, "%s%s (%s%s%s)", at ? ", " : "", node->name,
                         node->op->def->name, calls ? " of " : "", calls ? f->func->name : "");
        at += w > 0 ? (size_t)w : 0;
    }
    pthread_mutex_unlock(&r->wait_lock);
}
