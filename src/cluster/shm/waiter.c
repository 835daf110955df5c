/* waiter.c -- a thread that waits for an event, such as the end of a step, reads the connections
 * meanwhile and works on their frames. So a message wakes the thread that waits for it, and no
 * other thread in between. This thread is called the waiter below.
 *
 * 1. Only one thread of the process reads while it waits. When a second thread waits as well, the
 *    connections' own readers read for some time: a frame for one of the two threads should not
 *    wait until the other one has done its work.
 * 2. While the waiter works on a frame, no thread has the reader role of its other connections. The
 *    waiter reads their frames afterwards, or the watch starts a reader after some milliseconds.
 * 3. After SINGLE_WAITS waits in a row that no other wait overlapped, the connections' own readers
 *    give the reader role up when they have nothing to read. They take it again after REST_TICKS
 *    ticks of the watch in which no thread waited.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "cluster/shm/shm.h"
#include "cluster/shm/rings.h"
#include "core/futex_waitv.h"
#include "core/later.h"
#include "core/spin.h"
#include "core/threadpool.h"

enum { CONNS_MAX = 64, SINGLE_WAITS = 8, REST_TICKS = 7 };

static atomic_int waiting; /* Threads that wait now. */
static atomic_int single;  /* Waits in a row that no other wait overlapped. */
static atomic_uint waits;  /* All waits since the process began. */
static atomic_bool wants;  /* See leat_waiter_reads. */

bool leat_waiter_reads(void)
{
    return atomic_load_explicit(&wants, memory_order_relaxed);
}

/* Gives the previous value. */
static bool set_wants(bool on)
{
    leat_watch_leave_free(on);
    return atomic_exchange(&wants, on);
}

/* The watch calls this every few milliseconds: see rule 3. */
static void tick(void)
{
    static unsigned seen;
    static int ticks;
    unsigned now = atomic_load(&waits);
    ticks = now == seen && !atomic_load(&waiting) ? ticks + 1 : 0;
    seen = now;
    if (ticks >= REST_TICKS) {
        set_wants(false);
        atomic_store(&single, 0);
    }
}

static void start_own_reader(leat_conn *c, void *unused)
{
    leat_conn_start_reader(c);
}

static void call_reader(leat_conn *c, void *unused)
{
    leat_conn_call_reader(c);
}

/* Whether the operating system has futex_waitv, as Linux has since 5.16. */
static bool can_sleep_at_many(void)
{
    static atomic_int known; /* 1: yes; 2: no; 0: not asked yet. */
    int k = atomic_load(&known);
    if (!k) {
        syscall(SYS_futex_waitv, NULL, 0, 0, NULL, CLOCK_MONOTONIC);
        k = errno == ENOSYS ? 2 : 1;
        atomic_store(&known, k);
    }
    return k == 1;
}

/* ---- The thread that reads while it waits ---- */
typedef struct held_conn {
    leat_conn *conn; /* Held by leat_conn_hold. */
    uint64_t number; /* The number of the reader role. */
} held_conn;
typedef struct waiter {
    leat_event *event;
    held_conn held[CONNS_MAX];
    int n, next; /* The number of entries of held; the entry that find_news looks at first. */
    int news;    /* The entry of held that has news (leat_rings_has_news); -1: none. */
} waiter;

/* Takes the reader role of c, if no thread has it. The watch's lock is held. */
static void take_over(leat_conn *c, void *arg)
{
    waiter *s = arg;
    if (s->n == CONNS_MAX || !leat_rings_of(c) || !leat_conn_take_reader(c, &s->held[s->n].number))
        return;
    leat_conn_hold(c);
    s->held[s->n++].conn = c;
}

static void give_back(waiter *s)
{
    for (int i = 0; i < s->n; i++) {
        leat_conn_free_reader(s->held[i].conn, s->held[i].number);
        if (!leat_waiter_reads())
            leat_conn_start_reader(s->held[i].conn);
        leat_conn_let_go(s->held[i].conn);
    }
    s->n = 0;
}

static void drop(waiter *s, int i)
{
    leat_conn_let_go(s->held[i].conn);
    s->held[i] = s->held[--s->n];
}

/* Reads one frame of a connection and works on it, while the reader roles of the other held
 * connections are free. Drops connections whose role another thread took meanwhile. */
static void read_from(waiter *s, int at)
{
    leat_conn *c = s->held[at].conn;
    for (int i = 0; i < s->n; i++)
        if (i != at)
            leat_conn_free_reader(s->held[i].conn, s->held[i].number);
    bool mine = true;
    if (__atomic_load_n(&c->alarm, __ATOMIC_SEQ_CST))
        leat_conn_look_up(c);
    if (leat_ring_ready(&leat_rings_of(c)->rings.in) || leat_conn_ended(c))
        mine = leat_conn_read_one(c, s->held[at].number);
    for (int i = s->n - 1; i >= 0; i--)
        if (s->held[i].conn == c ? !mine
                                 : !leat_conn_take_reader(s->held[i].conn, &s->held[i].number))
            drop(s, i);
}

/* Gives the next entry of held whose connection has news, in turn, or -1. */
static int find_news(waiter *s)
{
    for (int i = 0; i < s->n; i++) {
        int at = (s->next + i) % s->n;
        if (leat_rings_has_news(s->held[at].conn)) {
            s->next = at + 1;
            return at;
        }
    }
    return -1;
}

static bool over(void *arg)
{
    waiter *s = arg;
    s->news = find_news(s);
    return s->news >= 0 || leat_event_is_set(s->event);
}

/* Parks until the event is set, a held connection has news, or deadline_ns has passed. */
static void sleep_at_all(waiter *s, int64_t deadline_ns)
{
    struct futex_waitv v[CONNS_MAX + 1];
    struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    int32_t asleep = leat_event_sleep(s->event);
    if (asleep < 0)
        return;
    v[0] = (struct futex_waitv){.val = (uint32_t)asleep,
                                .uaddr = (uintptr_t)&s->event->state,
                                .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG};
    for (int i = 0; i < s->n; i++)
        v[i + 1] = (struct futex_waitv){
            .val = 1,
            .uaddr = (uintptr_t)leat_ring_nap(&leat_rings_of(s->held[i].conn)->rings.in),
            .flags = FUTEX_32};
    if (find_news(s) < 0)
        syscall(SYS_futex_waitv, v, s->n + 1, 0, deadline_ns ? &until : NULL, CLOCK_MONOTONIC);
    for (int i = 0; i < s->n; i++)
        leat_ring_awake(&leat_rings_of(s->held[i].conn)->rings.in);
    leat_event_awake(s->event);
}

static void read_while_waiting(waiter *s, int64_t deadline_ns)
{
    leat_watch_each(take_over, s);
    leat_later_begin();
    while (s->n && !leat_event_is_set(s->event) && atomic_load(&waiting) == 1 &&
           !(deadline_ns && leat_now_ns() > deadline_ns)) {
        if (!over(s))
            leat_later_now();
        if (!leat_spin(LEAT_SPIN_WORK_NS, over, s))
            sleep_at_all(s, deadline_ns);
        else if (s->news >= 0)
            read_from(s, s->news);
    }
    leat_later_end();
    give_back(s);
}

/* others: the number of other threads that wait now. */
static void begin(leat_event *e, int64_t deadline_ns, int others)
{
    if (others) {
        atomic_store(&single, 0);
        if (set_wants(false))
            leat_watch_each(start_own_reader, NULL);
    } else if (leat_waiter_reads()) {
        waiter s = {.event = e};
        read_while_waiting(&s, deadline_ns);
    } else if (atomic_fetch_add(&single, 1) == SINGLE_WAITS && can_sleep_at_many()) {
        leat_watch_on_tick(tick);
        set_wants(true);
        leat_watch_each(call_reader, NULL);
    }
}

/* If p is NULL, the step has no nodes on this task, and the thread would run nothing that it reads.
 * It does not count as a thread that waits, so that a thread which has nodes to run can read. */
int leat_shm_wait(leat_pool *p, leat_event *e, int64_t deadline_ns)
{
    if (!p || !leat_rings_any())
        return -1;
    atomic_fetch_add(&waits, 1);
    begin(e, deadline_ns, atomic_fetch_add(&waiting, 1));
    int set = leat_pool_wait(p, e, deadline_ns);
    atomic_fetch_sub(&waiting, 1);
    return set;
}
