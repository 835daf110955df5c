/* queue_store.c -- the elements of a queue, in a ring: the oldest at its head (FIFO), a heap with
 * the least at the top (priority), or unordered (shuffle). */
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/cpu/queue.h"

leat_tensor **leat_queue_element(const leat_queue *q, int64_t i)
{
    return q->items + ((q->head + i) & (q->cap - 1)) * q->n;
}

static void move(const leat_queue *q, leat_tensor **to, leat_tensor *const *from)
{
    memcpy(to, from, sizeof(*to) * (size_t)q->n);
}

static void make_room(leat_queue *q)
{
    if (q->count < q->cap)
        return;
    int64_t cap = q->cap ? q->cap * 2 : 8;
    leat_tensor **items = leat_new_array(leat_tensor *, cap * q->n);
    for (int64_t i = 0; i < q->count; i++)
        move(q, items + i * q->n, leat_queue_element(q, i));
    free(q->items);
    q->items = items;
    q->head = 0;
    q->cap = cap;
}

/* ---- A heap as std::priority_queue keeps it, so that elements of the same priority come out in
 * the order in which they do in TensorFlow ---- */

static int64_t priority(leat_tensor *const *tuple)
{
    return AT(int64_t, tuple[0])[0];
}

static void sift_up(leat_queue *q, int64_t hole, leat_tensor *const *tuple)
{
    while (hole > 0) {
        int64_t parent = (hole - 1) / 2;
        if (priority(leat_queue_element(q, parent)) <= priority(tuple))
            break;
        move(q, leat_queue_element(q, hole), leat_queue_element(q, parent));
        hole = parent;
    }
    move(q, leat_queue_element(q, hole), tuple);
}

/* Removes the top: the last element replaces it, sifted from the bottom. */
static void heap_pop(leat_queue *q)
{
    int64_t n = --q->count, hole = 0;
    if (n == 0)
        return;
    for (int64_t child = 2; child <= n; child = 2 * hole + 2) {
        if (child == n ||
            priority(leat_queue_element(q, child)) > priority(leat_queue_element(q, child - 1)))
            child--;
        move(q, leat_queue_element(q, hole), leat_queue_element(q, child));
        hole = child;
    }
    sift_up(q, hole, leat_queue_element(q, n));
}

/* ---- */

void leat_queue_push(leat_queue *q, leat_tensor *const *tuple)
{
    make_room(q);
    q->count++;
    if (q->kind == LEAT_QUEUE_PRIORITY)
        sift_up(q, q->count - 1, tuple);
    else
        move(q, leat_queue_element(q, q->count - 1), tuple);
}

void leat_queue_pop(leat_queue *q, leat_tensor **tuple_out)
{
    int64_t at = 0;
    if (q->kind == LEAT_QUEUE_SHUFFLE)
        at = (int64_t)(leat_philox_one(&q->random) % (uint64_t)q->count);
    move(q, tuple_out, leat_queue_element(q, at));
    if (q->kind == LEAT_QUEUE_PRIORITY) {
        heap_pop(q);
        return;
    }
    q->count--;
    if (q->kind == LEAT_QUEUE_SHUFFLE)
        move(q, leat_queue_element(q, at), leat_queue_element(q, q->count));
    else
        q->head = (q->head + 1) & (q->cap - 1);
}

void leat_queue_unpop(leat_queue *q, leat_tensor *const *tuples, int64_t n)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        if (q->kind == LEAT_QUEUE_SHUFFLE || q->kind == LEAT_QUEUE_PRIORITY) {
            leat_queue_push(q, tuples + i * q->n);
            continue;
        }
        make_room(q);
        q->head = (q->head - 1) & (q->cap - 1);
        q->count++;
        move(q, leat_queue_element(q, 0), tuples + i * q->n);
    }
}

void leat_queue_clear(leat_queue *q)
{
    for (int64_t i = 0; i < q->count; i++)
        for (int c = 0; c < q->n; c++)
            leat_tensor_unref(leat_queue_element(q, i)[c]);
    free(q->items);
    q->items = NULL;
    q->head = q->count = q->cap = 0;
}
