/* shm_standin.c -- a thread that waits for an event reads the connections meanwhile, and works on
 * what comes: who waits for a step runs it, and no other thread is woken in between.
 *
 * 1. Only one thread of the process stands in. A second one that waits to work ends it for a while:
 *    what comes for one should not wait until the other's work is done.
 * 2. While it works on a frame, the seats of its other connections are free; what comes there is
 *    read when it is back, or after some milliseconds by a thread that the watch seats.
 * 3. After some lone waits in a row the connections' own threads get up when they have nothing to
 *    read; they sit down again when nobody has stood in for a while.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cluster/shm.h"
#include "cluster/shm_conn.h"
#include "core/later.h"
#include "core/spin.h"
#include "core/threadpool.h"

enum { SEATS = 64, SPIN_NS = 300 * 1000, LONE_WAITS = 8, REST_TICKS = 7 };

static atomic_int waiting; /* threads that wait now */
static atomic_int lone;    /* waits in a row that nobody else's overlapped */
static atomic_uint waits;  /* ever */
static atomic_bool wants;

bool leat_standin_wants(void)
{
    return atomic_load_explicit(&wants, memory_order_relaxed);
}

void leat_standin_tick(void)
{
    static unsigned seen;
    static int ticks;
    unsigned now = atomic_load(&waits);
    ticks = now == seen && !atomic_load(&waiting) ? ticks + 1 : 0;
    seen = now;
    if (ticks >= REST_TICKS) {
        atomic_store(&wants, false);
        atomic_store(&lone, 0);
    }
}

static void seat_reader(leat_conn *c, void *unused)
{
    leat_conn_seat_reader(c);
}

static void call_reader(leat_conn *c, void *unused)
{
    leat_conn_call_reader(c);
}

/* The kernel can wait at several futexes since Linux 5.16. */
static bool can_sleep_at_many(void)
{
    static atomic_int known; /* 1: yes, 2: no */
    int k = atomic_load(&known);
    if (!k) {
        syscall(SYS_futex_waitv, NULL, 0, 0, NULL, CLOCK_MONOTONIC);
        k = errno == ENOSYS ? 2 : 1;
        atomic_store(&known, k);
    }
    return k == 1;
}

/* ---- The one that stands in ---- */
typedef struct seat {
    leat_conn *conn; /* held */
    uint64_t number;
} seat;
typedef struct standin {
    leat_event *event;
    seat seats[SEATS];
    int n, next; /* next: whose turn it is */
} standin;

static void sit_down(leat_conn *c, void *arg)
{
    standin *s = arg;
    if (s->n == SEATS || !leat_conn_take_seat(c, &s->seats[s->n].number))
        return;
    leat_conn_hold(c);
    s->seats[s->n++].conn = c;
}

static void get_up(standin *s)
{
    for (int i = 0; i < s->n; i++) {
        leat_conn_free_seat(s->seats[i].conn, s->seats[i].number);
        if (!leat_standin_wants())
            leat_conn_seat_reader(s->seats[i].conn);
        leat_conn_let_go(s->seats[i].conn);
    }
    s->n = 0;
}

static void drop(standin *s, int i)
{
    leat_conn_let_go(s->seats[i].conn);
    s->seats[i] = s->seats[--s->n];
}

static void read_from(standin *s, int at)
{
    leat_conn *c = s->seats[at].conn;
    for (int i = 0; i < s->n; i++)
        if (i != at)
            leat_conn_free_seat(s->seats[i].conn, s->seats[i].number);
    bool mine = leat_conn_read_one(c, s->seats[at].number);
    for (int i = s->n - 1; i >= 0; i--)
        if (s->seats[i].conn == c ? !mine
                                  : !leat_conn_take_seat(s->seats[i].conn, &s->seats[i].number))
            drop(s, i);
}

/* The next connection that has news, or -1. */
static int find_news(standin *s)
{
    for (int i = 0; i < s->n; i++) {
        int at = (s->next + i) % s->n;
        if (leat_conn_has_news(s->seats[at].conn)) {
            s->next = at + 1;
            return at;
        }
    }
    return -1;
}

static bool over(standin *s, int *news)
{
    *news = find_news(s);
    return *news >= 0 || leat_event_is_set(s->event);
}

static bool spin(standin *s, int *news)
{
    bool now = over(s, news);
    if (!now)
        leat_later_now();
    if (now || !leat_spin_begin())
        return now;
    int64_t end = leat_now_ns() + SPIN_NS;
    do {
        for (int i = 0; i < 32 && !(now = over(s, news)); i++)
            leat_spin_pause();
    } while (!now && leat_spin_goes_on(end));
    leat_spin_end();
    return now;
}

static void sleep_at_all(standin *s, int64_t deadline_ns)
{
    struct futex_waitv v[SEATS + 1];
    struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    int32_t asleep = leat_event_sleep(s->event);
    if (asleep < 0)
        return;
    v[0] = (struct futex_waitv){.val = (uint32_t)asleep,
                                .uaddr = (uintptr_t)&s->event->state,
                                .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG};
    for (int i = 0; i < s->n; i++)
        v[i + 1] =
            (struct futex_waitv){.val = 1,
                                 .uaddr = (uintptr_t)leat_ring_nap(&s->seats[i].conn->rings.in),
                                 .flags = FUTEX_32};
    if (find_news(s) < 0)
        syscall(SYS_futex_waitv, v, s->n + 1, 0, deadline_ns ? &until : NULL, CLOCK_MONOTONIC);
    for (int i = 0; i < s->n; i++)
        leat_ring_awake(&s->seats[i].conn->rings.in);
    leat_event_awake(s->event);
}

static void stand_in(standin *s, int64_t deadline_ns)
{
    leat_watch_each(sit_down, s);
    leat_later_begin();
    while (s->n && !leat_event_is_set(s->event) && atomic_load(&waiting) == 1 &&
           !(deadline_ns && leat_now_ns() > deadline_ns)) {
        int news;
        if (!spin(s, &news))
            sleep_at_all(s, deadline_ns);
        else if (news >= 0)
            read_from(s, news);
    }
    leat_later_end();
    get_up(s);
}

static void begin(leat_event *e, int64_t deadline_ns, int others)
{
    if (others) {
        atomic_store(&lone, 0);
        if (atomic_exchange(&wants, false))
            leat_watch_each(seat_reader, NULL);
    } else if (leat_standin_wants()) {
        standin s = {.event = e};
        stand_in(&s, deadline_ns);
    } else if (atomic_fetch_add(&lone, 1) == LONE_WAITS && can_sleep_at_many()) {
        atomic_store(&wants, true);
        leat_watch_each(call_reader, NULL);
    }
}

int leat_shm_wait(leat_pool *p, leat_event *e, int64_t deadline_ns)
{
    if (!p)
        return leat_event_wait(e, deadline_ns);
    atomic_fetch_add(&waits, 1);
    begin(e, deadline_ns, atomic_fetch_add(&waiting, 1));
    int set = leat_pool_wait(p, e, deadline_ns);
    atomic_fetch_sub(&waiting, 1);
    return set;
}
