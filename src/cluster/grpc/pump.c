/* pump.c -- see pump.h. */
#define _GNU_SOURCE
#include "cluster/grpc/pump.h"

#include <dlfcn.h>
#include <errno.h>
#include <grpc/support/log.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "core/alloc.h"
#include "core/bind.h"
#include "core/log.h"
#include "core/spin.h"
#include "core/threadpool.h"

enum {
    SPIN_NS = 60 * 1000,
    PATIENCE_NS = 1000 * 1000, /* for which the lead waits for who holds it */
    SLOW_NS = 150 * 1000, /* callers' code that takes longer, on average: the lead does not wait */
    CODE_NS_MAX = 4 * SLOW_NS, /* as much as one that was slow counts */
    QUIET_TURNS = 8,           /* of PATIENCE_NS without an event, before the watcher sleeps */
    HELP_NS = 20 * 1000 * 1000,
    IDLE_KEPT = 2,
};
#define IDLE_NS INT64_C(5000000000)

static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER; /* users; held at start and end */
static int users;
static grpc_completion_queue *queue; /* while there are users */
static atomic_int listeners;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what follows; taken last */
static pthread_cond_t watch, spare, ended; /* the watcher, other idle threads, the last one */
static atomic_int lead;                    /* written under the lock */
enum { FREE, POLLING, AWAY };              /* nobody polls; who leads does; he runs callers' code */
static uint64_t term;                      /* which holder of the lead this is */
static int64_t since_ns;                   /* when it became FREE or AWAY */
static bool summoned;                      /* another one is to lead at once */
static bool watched, drowsy; /* an idle thread looks at the lead; it sleeps until it is told */
static bool closing;         /* the queue is empty for good */
static int threads, idle;
static int64_t code_ns; /* how long callers' code takes, a moving average */
static unsigned events;
static int followers;        /* threads that wait for replies while others lead, */
static leat_event *follower; /* the last one of them, for this */

static void *run(void *unused);

static bool start_thread(void) /* lock is held */
{
    pthread_t t;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    leat_unbind();
    bool ok = pthread_create(&t, &attr, run, NULL) == 0;
    pthread_attr_destroy(&attr);
    threads += ok;
    return ok;
}

static _Thread_local bool leading;
static _Thread_local uint64_t my_term;
static _Thread_local int64_t went_ns; /* when this thread went AWAY */
static _Thread_local bool may_block;  /* the callers' code that runs in this thread */

static void take_lead(void) /* lock is held */
{
    atomic_store(&lead, POLLING);
    my_term = ++term;
    leading = true;
    summoned = false;
}

/* Lead is FREE or AWAY from now on: somebody has to look after it. The lock is held. */
static void leave_lead(int as)
{
    leading = false;
    atomic_store(&lead, as);
    since_ns = leat_now_ns();
    events++;
    if (watched && drowsy)
        pthread_cond_signal(&watch);
    else if (!watched && idle)
        pthread_cond_signal(&spare);
    else if (!watched)
        start_thread(); /* without one this thread leads again when it is done */
}

static void summon(void) /* lock is held */
{
    summoned = true;
    if (watched)
        pthread_cond_signal(&watch);
}

static bool wait_until(pthread_cond_t *c, int64_t ns)
{
    struct timespec until = {ns / 1000000000, ns % 1000000000};
    return pthread_cond_timedwait(c, &lock, &until) != ETIMEDOUT;
}

/* The one idle thread that looks at the lead, every PATIENCE_NS while something is going on. True:
 * it is to lead. The lock is held. */
static bool watch_lead(void)
{
    bool mine = false;
    unsigned seen = events;
    watched = true;
    for (int quiet = 0; !mine && !closing;) {
        int64_t now = leat_now_ns();
        if (lead != POLLING && (summoned || now >= since_ns + PATIENCE_NS)) {
            mine = true;
            break;
        }
        drowsy = lead == POLLING && quiet > QUIET_TURNS;
        wait_until(&watch, drowsy            ? now + IDLE_NS
                           : lead == POLLING ? now + PATIENCE_NS
                                             : since_ns + PATIENCE_NS);
        quiet = events == seen ? quiet + 1 : 0;
        seen = events;
    }
    watched = drowsy = false;
    return mine;
}

/* Waits for its turn to lead. False: this thread is one too many, or it is all over. */
static bool await_turn(void)
{
    pthread_mutex_lock(&lock);
    idle++;
    bool surplus = false, mine = false;
    while (!closing && !surplus && !mine) {
        if (!watched)
            mine = watch_lead();
        else
            surplus = !wait_until(&spare, leat_now_ns() + IDLE_NS) && watched && idle > IDLE_KEPT;
    }
    idle--;
    if (mine)
        take_lead();
    pthread_mutex_unlock(&lock);
    return mine;
}

void leat_pump_let_go(void)
{
    if (!leading)
        return;
    pthread_mutex_lock(&lock);
    leave_lead(AWAY);
    went_ns = since_ns;
    if (code_ns > SLOW_NS)
        summon();
    pthread_mutex_unlock(&lock);
}

/* After callers' code: leads again, if nobody has taken over. */
static void come_back(void)
{
    may_block = false;
    if (leading)
        return;
    int64_t took = leat_now_ns() - went_ns;
    pthread_mutex_lock(&lock);
    code_ns += ((took < CODE_NS_MAX ? took : CODE_NS_MAX) - code_ns) / 8;
    if (lead == AWAY && term == my_term) {
        atomic_store(&lead, POLLING);
        leading = true;
        summoned = false;
    }
    pthread_mutex_unlock(&lock);
}

void leat_pump_need(bool waits)
{
    int now = atomic_load_explicit(&lead, memory_order_relaxed);
    if (now == POLLING || (now == FREE && waits && !atomic_load(&listeners)))
        return;
    pthread_mutex_lock(&lock);
    bool mine = lead == AWAY && term == my_term; /* it comes back, unless it waits */
    if (lead != POLLING && !(mine && !waits && !may_block))
        summon();
    pthread_mutex_unlock(&lock);
}

void leat_pump_may_block(void)
{
    may_block = true;
}

void leat_pump_listener(int by)
{
    atomic_fetch_add(&listeners, by);
}

static pthread_mutex_t every_lock = PTHREAD_MUTEX_INITIALIZER; /* held while the function runs */
static void (*every_fn)(void);
static int64_t every_ns, every_at;

void leat_pump_every(int64_t period_ns, void (*fn)(void))
{
    pthread_mutex_lock(&every_lock);
    every_fn = fn;
    every_ns = period_ns;
    __atomic_store_n(&every_at, leat_now_ns() + period_ns, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&every_lock);
}

static void run_every(void)
{
    pthread_mutex_lock(&every_lock);
    if (every_fn && leat_now_ns() >= every_at) {
        every_fn();
        __atomic_store_n(&every_at, leat_now_ns() + every_ns, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&every_lock);
}

gpr_timespec leat_pump_time(int64_t deadline_ns)
{
    if (!deadline_ns)
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    return (gpr_timespec){deadline_ns / 1000000000, (int32_t)(deadline_ns % 1000000000),
                          GPR_CLOCK_MONOTONIC};
}

static grpc_event next_event(int64_t most_ns)
{
    grpc_event e = {.type = GRPC_QUEUE_TIMEOUT};
    if (leat_spin_begin()) {
        int64_t end = leat_now_ns() + SPIN_NS;
        do {
            e = grpc_completion_queue_next(queue, gpr_inf_past(GPR_CLOCK_MONOTONIC), NULL);
        } while (e.type == GRPC_QUEUE_TIMEOUT && leat_spin_goes_on(end));
        leat_spin_end();
    }
    int64_t at = __atomic_load_n(&every_at, __ATOMIC_RELAXED), now = leat_now_ns();
    if (at && now >= at)
        run_every();
    if (e.type != GRPC_QUEUE_TIMEOUT)
        return e;
    if (most_ns && (!at || now + most_ns < at))
        at = now + most_ns;
    return grpc_completion_queue_next(queue, leat_pump_time(at), NULL);
}

/* The only thread that waited has its reply: it may want to lead for the next one. */
static void cede(void)
{
    if (atomic_load(&listeners))
        return;
    pthread_mutex_lock(&lock);
    if (followers == 1 && leat_event_is_set(follower))
        leave_lead(FREE);
    pthread_mutex_unlock(&lock);
}

/* Takes events while this thread leads, and until done is set (NULL: never). */
static void work(leat_event *done)
{
    while (leading && !(done && leat_event_is_set(done))) {
        grpc_event e = next_event(done ? HELP_NS : 0);
        if (e.type == GRPC_QUEUE_SHUTDOWN) {
            pthread_mutex_lock(&lock);
            closing = true;
            leading = false;
            pthread_cond_broadcast(&watch);
            pthread_cond_broadcast(&spare);
            pthread_mutex_unlock(&lock);
            return;
        }
        if (e.type != GRPC_OP_COMPLETE)
            continue;
        leat_tag *tag = e.tag;
        __atomic_load_n(&tag->handed, __ATOMIC_ACQUIRE);
        tag->fn(tag, e.success);
        come_back();
        if (!done && leading)
            cede();
    }
}

static void *run(void *unused)
{
    pthread_setname_np(pthread_self(), "leat-rpc");
    while (await_turn())
        work(NULL);
    pthread_mutex_lock(&lock);
    if (--threads == 0)
        pthread_cond_signal(&ended);
    pthread_mutex_unlock(&lock);
    return NULL;
}

void leat_pump_wait(leat_event *done)
{
    while (!leat_event_is_set(done)) {
        pthread_mutex_lock(&lock);
        if (!atomic_load(&listeners) && lead == FREE && !leading)
            take_lead();
        bool helps = leading;
        followers += !helps;
        if (!helps)
            follower = done;
        pthread_mutex_unlock(&lock);
        if (helps)
            work(done);
        else
            leat_event_wait(done, 0);
        pthread_mutex_lock(&lock);
        followers -= !helps;
        if (helps && leading)
            leave_lead(FREE);
        if (helps && lead == FREE && followers)
            summon();
        pthread_mutex_unlock(&lock);
    }
}

static void write_log(gpr_log_func_args *args)
{
    if (leat_log_wanted(LEAT_LOG_INFO))
        leat_log_write(LEAT_LOG_INFO, args->file, args->line, "gRPC: %s", args->message);
}

/* Debian builds Abseil, whose mutexes gRPC uses, with its detector of deadlocks switched on: a
 * graph of all mutexes, looked at under a global lock with each one that is taken, a fifth of a
 * call's time. This is the function by which programs switch it off. */
static void quicken_mutexes(void)
{
    enum { IGNORE_CYCLES = 0 };
    void (*set)(int);
    *(void **)&set = dlsym(
        RTLD_DEFAULT, "_ZN4absl7debian329SetMutexDeadlockDetectionModeENS0_15OnDeadlockCycleE");
    if (set)
        set(IGNORE_CYCLES);
}

/* At exit OpenSSL frees what it has, while threads of gRPC's may be connecting to a peer, and the
 * program would die of it. Whoever uses OpenSSL first decides; what is not freed ends with the
 * process. */
static void keep_openssl(void)
{
    enum { NO_ATEXIT = 0x80000 }; /* OPENSSL_INIT_NO_ATEXIT */
    int (*init)(uint64_t, const void *);
    *(void **)&init = dlsym(RTLD_DEFAULT, "OPENSSL_init_crypto");
    if (init)
        init(NO_ATEXIT, NULL);
}

/* What gRPC reads lies in pieces of 64 KB, which are freed as soon as they were copied. malloc
 * would give their pages back to the system each time, and take others for the next ones: half as
 * much time again. It learns from the largest piece that was freed how much to keep. */
static void teach_malloc(void)
{
    enum { LARGE = 16 << 20 };
    free(leat_xmalloc(LARGE));
}

static void start(void)
{
    const char *strategy = getenv("GRPC_POLL_STRATEGY");
    if (strategy && !*strategy)
        unsetenv("GRPC_POLL_STRATEGY"); /* gRPC aborts on an empty one */
    /* Names resolve as everywhere else in the process: hosts file, search domains and all. */
    setenv("GRPC_DNS_RESOLVER", "native", 0);
    gpr_set_log_function(write_log);
    quicken_mutexes();
    keep_openssl();
    teach_malloc();
    grpc_init();
    queue = grpc_completion_queue_create_for_next(NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&watch, &attr);
    pthread_cond_init(&spare, &attr);
    pthread_cond_init(&ended, NULL);
    pthread_condattr_destroy(&attr);
    pthread_mutex_lock(&lock);
    closing = false;
    atomic_store(&lead, FREE);
    summoned = true;
    while (!start_thread()) { /* without one nothing would ever come: wait until there is room */
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
}

static void stop(void)
{
    grpc_completion_queue_shutdown(queue);
    pthread_mutex_lock(&lock);
    while (threads)
        pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
    grpc_completion_queue_destroy(queue);
    pthread_cond_destroy(&watch);
    pthread_cond_destroy(&spare);
    pthread_cond_destroy(&ended);
    grpc_shutdown_blocking();
}

grpc_completion_queue *leat_pump_join(void)
{
    pthread_mutex_lock(&users_lock);
    if (!users++)
        start();
    pthread_mutex_unlock(&users_lock);
    return queue;
}

void leat_pump_leave(void)
{
    pthread_mutex_lock(&users_lock);
    if (!--users)
        stop();
    pthread_mutex_unlock(&users_lock);
}
