/* executor_flow.c -- frames and iterations: loops, and values that are dead because the branch
 * they belong to was not taken.
 *
 * 1. Enter brings a value into a child frame, which is made for each (static frame, iteration of
 *    the parent). NextIteration brings one to the next iteration of its own frame, Exit to the
 *    iteration of the parent that the frame belongs to.
 * 2. A loop invariant (Enter with is_constant) is delivered to every iteration.
 * 3. At most parallel_iterations iterations are alive; values for a further one wait in `later`.
 * 4. An iteration is over when no task or child frame of it is alive and the one before it is over
 *    (the first: when every Enter has come). A frame is over when its last iteration is; exits of
 * it that stayed dead are then delivered to the parent as dead values.
 * 5. A Merge counts in pending: bit 0 is set until a live value comes, the rest is twice the
 *    control inputs to come. dead_inputs counts dead values.
 * All of this happens under the run's flow lock.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fingerprint.h"
#include "core/map.h"
#include "core/strbuf.h"
#include "runtime/executor_int.h"

/* A value held for iterations to come. */
typedef struct held {
    exec_node *node; /* NextIteration, or Enter of an invariant */
    leat_entry value;
} held;

typedef struct live_frame {
    const exec_frame *info;
    int index; /* in leat_executor.frames */
    struct live_frame *parent;
    iteration *parent_it; /* where its Exits lead */
    uint64_t id;          /* hash of its path */
    char *path;           /* "parent's path;parent's iteration;name", as TensorFlow has it */
    iteration **its;      /* alive: numbers first .. first + n - 1 */
    int n, cap;
    int64_t first;
    int enters_to_come;
    int parallel;
    held *later, *invariants;
    int n_later, cap_later, n_invariants, cap_invariants;
    exec_node **dead_exits;
    int n_dead_exits, cap_dead_exits;
    struct live_frame *next, *prev;
} live_frame;

static void activate(leat_run *r, exec_node *n, iteration *it, const leat_entry *out, bool dead,
                     task_list *ready);

/* ---- Static frames ---- */

/* by_name: "number of the parent's frame;name" -> exec_frame, of the frames found so far. */
static leat_status frame_of_enter(leat_executor *e, exec_node *x, leat_map *by_name)
{
    const char *name = leat_node_string(x->bound.node, "frame_name");
    leat_strbuf key = {0};
    leat_strbuf_printf(&key, "%d;%s", x->frame, name);
    exec_frame *f = leat_map_get(by_name, leat_strbuf_text(&key));
    leat_status s = NULL;
    if (!f && e->n_frames > e->n_nodes) {
        s = leat_error(INTERNAL, "More frames than nodes");
    } else if (!f) {
        f = &e->frames[e->n_frames++];
        *f = (exec_frame){.name = name, .parent = x->frame};
        leat_map_put(by_name, leat_strbuf_text(&key), f);
    }
    leat_strbuf_release(&key);
    if (s)
        return s;
    x->child_frame = (int)(f - e->frames);
    f->n_enters++;
    return NULL;
}

static leat_status set_frame(exec_node *dst, bool *seen, int index, int frame, int **queue, int *n)
{
    if (seen[index]) {
        LEAT_REQUIRE(dst->frame == frame, INVALID_ARGUMENT,
                     "{{node %s}} has inputs from different frames", dst->bound.node->name);
        return NULL;
    }
    seen[index] = true;
    dst->frame = frame;
    (*queue)[(*n)++] = index;
    return NULL;
}

static leat_status spread(leat_executor *e, bool *seen, int *queue, int n, leat_map *by_name)
{
    for (int at = 0; at < n; at++) {
        exec_node *x = &e->nodes[queue[at]];
        int frame = x->frame;
        if (x->kind == EXEC_ENTER) {
            LEAT_TRY(frame_of_enter(e, x, by_name));
            frame = x->child_frame;
        } else if (x->kind == EXEC_EXIT) {
            LEAT_REQUIRE(frame != 0, INVALID_ARGUMENT, "{{node %s}} leaves no frame",
                         x->bound.node->name);
            frame = e->frames[frame].parent;
        } else if (x->kind == EXEC_NEXT) {
            LEAT_REQUIRE(frame != 0, INVALID_ARGUMENT, "{{node %s}} is in no loop",
                         x->bound.node->name);
        }
        for (int i = 0; i < x->n_edges; i++) {
            int to = x->edges[i].node;
            LEAT_TRY(set_frame(&e->nodes[to], seen, to, frame, &queue, &n));
        }
    }
    LEAT_REQUIRE(n == e->n_nodes, INVALID_ARGUMENT,
                 "The graph has a cycle: %d of its %d nodes can never run", e->n_nodes - n,
                 e->n_nodes);
    return NULL;
}

/* A cycle without Merge can never run. Counts inputs down as the executor would. */
static leat_status check_cycles(const leat_executor *e)
{
    int *pending = leat_new_array(int, e->n_nodes + 1),
        *queue = leat_new_array(int, e->n_nodes + 1);
    int n = 0;
    for (int i = 0; i < e->n_nodes; i++) {
        const exec_node *x = &e->nodes[i];
        pending[i] = x->pending;
        if (x->kind == EXEC_MERGE) /* values from NextIteration come later */
            for (int j = 0; j < x->n_in; j++) {
                const leat_node *from = x->bound.node->in[j].node;
                pending[i] -= leat_is_next_iteration(from);
            }
        if (pending[i] == 0)
            queue[n++] = i;
    }
    for (int at = 0; at < n; at++) {
        const exec_node *x = &e->nodes[queue[at]];
        for (int i = 0; i < x->n_edges; i++) {
            const exec_node *dst = &e->nodes[x->edges[i].node];
            if (x->kind == EXEC_NEXT && dst->kind == EXEC_MERGE && x->edges[i].slot >= 0)
                continue;
            if (--pending[x->edges[i].node] == 0)
                queue[n++] = x->edges[i].node;
        }
    }
    const char *name = "";
    for (int i = 0; i < e->n_nodes && n < e->n_nodes && !*name; i++)
        if (pending[i] > 0)
            name = e->nodes[i].bound.node->name;
    free(pending);
    free(queue);
    LEAT_REQUIRE(n == e->n_nodes, INVALID_ARGUMENT,
                 "Graph is invalid, contains a cycle with %d nodes, one of them {{node %s}}",
                 e->n_nodes - n, name);
    return NULL;
}

leat_status leat_flow_frames(leat_executor *e)
{
    e->frames = leat_arena_array(&e->arena, exec_frame, e->n_nodes + 2);
    e->frames[0] = (exec_frame){.name = "", .parent = -1};
    e->n_frames = 1;
    LEAT_TRY(check_cycles(e));
    if (!e->has_flow)
        return NULL;
    bool *seen = leat_new_array(bool, e->n_nodes + 1);
    int *queue = leat_new_array(int, e->n_nodes + 1), n = 0;
    for (int i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].pending == 0) {
            seen[i] = true;
            queue[n++] = i;
        }
    leat_map by_name = {0};
    leat_status s = spread(e, seen, queue, n, &by_name);
    leat_map_release(&by_name);
    free(seen);
    free(queue);
    return s;
}

/* ---- Live frames ---- */

static iteration *iteration_new(leat_run *r, live_frame *f)
{
    iteration *it = leat_new(iteration);
    leat_iteration_init(r->executor, f->index, it);
    it->number = f->first + f->n;
    it->frame = f;
    it->frame_id = f->id;
    leat_grow(f->its, f->n, f->cap);
    f->its[f->n++] = it;
    return it;
}

static live_frame *frame_get(leat_run *r, exec_node *enter, iteration *it)
{
    if (!r->frames)
        r->frames = leat_new_array(live_frame *, r->executor->n_frames);
    live_frame **first = &r->frames[enter->child_frame];
    for (live_frame *f = *first; f; f = f->next)
        if (f->parent_it == it)
            return f;
    live_frame *f = leat_new(live_frame);
    f->index = enter->child_frame;
    f->info = &r->executor->frames[f->index];
    f->parent = it->frame;
    f->parent_it = it;
    leat_strbuf path = {0};
    leat_strbuf_printf(&path, "%s;%" PRId64 ";%s", it->frame ? it->frame->path : "", it->number,
                       f->info->name);
    f->path = leat_strbuf_take(&path);
    f->id = leat_hash64(f->path, strlen(f->path));
    f->enters_to_come = f->info->n_enters;
    f->parallel = enter->parallel > 0 ? enter->parallel : 1;
    f->next = *first;
    if (f->next)
        f->next->prev = f;
    *first = f;
    it->busy++; /* a child frame lives in it */
    iteration_new(r, f);
    return f;
}

static void frame_free(leat_run *r, live_frame *f)
{
    if (f->prev)
        f->prev->next = f->next;
    else
        r->frames[f->index] = f->next;
    if (f->next)
        f->next->prev = f->prev;
    for (int i = 0; i < f->n; i++) {
        leat_iteration_release(r->executor, f->index, f->its[i]);
        free(f->its[i]);
    }
    for (int i = 0; i < f->n_later; i++)
        leat_entry_clear(&f->later[i].value);
    for (int i = 0; i < f->n_invariants; i++)
        leat_entry_clear(&f->invariants[i].value);
    free(f->its);
    free(f->later);
    free(f->invariants);
    free(f->dead_exits);
    free(f->path);
    free(f);
}

void leat_flow_clear(leat_run *r)
{
    for (int i = 0; r->frames && i < r->executor->n_frames; i++)
        while (r->frames[i])
            frame_free(r, r->frames[i]);
}

static void start_iteration(leat_run *r, live_frame *f, task_list *ready)
{
    iteration *it = iteration_new(r, f);
    f->n_dead_exits = 0;
    held *later = f->later;
    int n = f->n_later;
    f->later = NULL;
    f->n_later = f->cap_later = 0;
    for (int i = 0; i < n; i++) {
        activate(r, later[i].node, it, &later[i].value, false, ready);
        leat_entry_clear(&later[i].value);
    }
    free(later);
    for (int i = 0; i < f->n_invariants; i++)
        activate(r, f->invariants[i].node, it, &f->invariants[i].value, f->invariants[i].value.dead,
                 ready);
}

static void frame_over(leat_run *r, live_frame *f, task_list *ready);

/* Ends the iterations that are over, oldest first. */
static void settle(leat_run *r, live_frame *f, task_list *ready)
{
    while (f->n && f->its[0]->busy == 0 && f->enters_to_come == 0) {
        iteration *it = f->its[0];
        /* Values that wait for room start the next iteration before the last one ends. */
        if (f->n == 1 && f->n_later) {
            start_iteration(r, f, ready);
            continue;
        }
        leat_iteration_release(r->executor, f->index, it);
        free(it);
        f->n--;
        f->first++;
        memmove(f->its, f->its + 1, sizeof(*f->its) * (size_t)f->n);
        if (f->n_later && f->n > 0)
            start_iteration(r, f, ready);
    }
    if (f->n == 0)
        frame_over(r, f, ready);
}

static void frame_over(leat_run *r, live_frame *f, task_list *ready)
{
    iteration *it = f->parent_it;
    for (int i = 0; i < f->n_dead_exits; i++)
        activate(r, f->dead_exits[i], it, NULL, true, ready);
    frame_free(r, f);
    it->busy--;
    if (it->frame)
        settle(r, it->frame, ready);
}

void leat_flow_task_done(leat_run *r, iteration *it, task_list *ready)
{
    if (!it->frame)
        return; /* the root ends with the run */
    pthread_mutex_lock(&r->flow);
    it->busy--;
    settle(r, it->frame, ready);
    pthread_mutex_unlock(&r->flow);
}

/* ---- Delivering ---- */

static void make_ready(exec_node *n, iteration *it, task_list *ready)
{
    it->busy++;
    leat_task_push(ready, n, it);
}

/* One value, or one control signal, comes to a Merge. A dead Enter means that the loop is not
 * entered: nothing will come from its NextIteration. */
static void arrive_merge(exec_node *dst, iteration *it, bool data, bool dead, bool from_enter,
                         task_list *ready)
{
    atomic_int *pending = &it->pending[dst->local];
    int p = atomic_load_explicit(pending, memory_order_relaxed);
    bool run = false;
    if (!data) {
        p -= 2;
        run = p == 0 || (p == 1 && it->dead_inputs[dst->local] == dst->n_in);
    } else if (!dead) {
        run = p == 1; /* the first live one, controls have come */
        p &= ~1;
    } else {
        it->dead_inputs[dst->local] += from_enter ? dst->n_in : 1;
        run = p == 1 && it->dead_inputs[dst->local] == dst->n_in;
    }
    atomic_store_explicit(pending, p, memory_order_relaxed);
    if (run)
        make_ready(dst, it, ready);
}

static void arrive(exec_node *dst, iteration *it, bool data, bool dead, bool from_enter,
                   task_list *ready)
{
    if (dst->kind == EXEC_MERGE) {
        arrive_merge(dst, it, data, dead, from_enter, ready);
        return;
    }
    if (dead && !data)
        atomic_store_explicit(&it->dead[dst->local], 1, memory_order_relaxed);
    if (atomic_fetch_sub_explicit(&it->pending[dst->local], 1, memory_order_relaxed) == 1)
        make_ready(dst, it, ready);
}

/* Delivers n's outputs to its successors in iteration it. out NULL: all are dead. */
static void activate(leat_run *r, exec_node *n, iteration *it, const leat_entry *out, bool dead,
                     task_list *ready)
{
    for (int i = 0; i < n->n_edges; i++) {
        const exec_edge *e = &n->edges[i];
        exec_node *dst = &r->executor->nodes[e->node];
        bool data = e->out >= 0;
        bool edge_dead = dead;
        if (data) {
            const leat_entry *value = out ? &out[e->out] : NULL;
            edge_dead |= !value || (!value->tensor && !value->var);
            leat_entry *to = &it->entries[dst->in_at + e->slot];
            if (!edge_dead)
                *to = leat_entry_copy(value);
            else if (dst->kind != EXEC_MERGE) /* which counts them, and may be running by now */
                to->dead = true;
        }
        arrive(dst, it, data, edge_dead, n->kind == EXEC_ENTER, ready);
    }
}

static void to_next_iteration(leat_run *r, task t, const leat_entry *out, task_list *ready)
{
    live_frame *f = t.it->frame;
    int64_t next = t.it->number + 1;
    if (next - f->first < f->n) {
        activate(r, t.node, f->its[next - f->first], out, false, ready);
        return;
    }
    leat_grow(f->later, f->n_later, f->cap_later);
    f->later[f->n_later++] = (held){t.node, leat_entry_copy(out)};
    if (f->n < f->parallel)
        start_iteration(r, f, ready);
}

static void to_child(leat_run *r, task t, const leat_entry *out, bool dead, task_list *ready)
{
    live_frame *f = frame_get(r, t.node, t.it);
    f->enters_to_come--;
    if (t.node->constant) {
        leat_entry value = out ? leat_entry_copy(out) : (leat_entry){0};
        value.dead = dead;
        leat_grow(f->invariants, f->n_invariants, f->cap_invariants);
        f->invariants[f->n_invariants++] = (held){t.node, value};
        for (int i = 0; i < f->n; i++)
            activate(r, t.node, f->its[i], out, dead, ready);
    } else {
        activate(r, t.node, f->its[0], out, dead, ready);
    }
    settle(r, f, ready);
}

leat_status leat_flow_propagate(leat_run *r, task t, leat_entry *out, bool dead, task_list *ready)
{
    exec_node *n = t.node;
    if (!dead && n->kind == EXEC_PLAIN)
        for (int i = 0; i < n->n_edges; i++)
            if (n->edges[i].out >= 0 && !out[n->edges[i].out].tensor && !out[n->edges[i].out].var)
                return leat_error(INTERNAL, "Missing %d-th output from {{node %s}}",
                                  n->edges[i].out, n->bound.node->name);
    pthread_mutex_lock(&r->flow);
    switch (n->kind) {
    case EXEC_ENTER:
        to_child(r, t, dead ? NULL : out, dead, ready);
        break;
    case EXEC_EXIT:
        if (!dead) {
            activate(r, n, t.it->frame->parent_it, out, false, ready);
        } else if (t.it->number == t.it->frame->first + t.it->frame->n - 1) {
            live_frame *f = t.it->frame;
            leat_grow(f->dead_exits, f->n_dead_exits, f->cap_dead_exits);
            f->dead_exits[f->n_dead_exits++] = n;
        }
        break;
    case EXEC_NEXT:
        if (!dead)
            to_next_iteration(r, t, out, ready);
        break;
    default:
        activate(r, n, t.it, dead ? NULL : out, dead, ready);
    }
    pthread_mutex_unlock(&r->flow);
    return NULL;
}
