/* pump.c -- see pump.h. */
#define _GNU_SOURCE
#include "cluster/grpc/pump.h"

#include <dlfcn.h>
#include <errno.h>
#include <grpc/support/log.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/spin.h"
#include "core/threadpool.h"

enum { SPIN_NS = 60 * 1000, IDLE_KEPT = 2, IDLE_SECONDS = 5 };

static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER; /* users; held at start and end */
static int users;
static grpc_completion_queue *queue; /* while there are users */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what follows; taken last */
static pthread_cond_t free_lead, ended;
static bool led;     /* a thread leads, or is about to */
static bool closing; /* the queue is empty for good */
static int threads, idle;

static void *run(void *unused);

static bool start_thread(void) /* lock is held */
{
    pthread_t t;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    bool ok = pthread_create(&t, &attr, run, NULL) == 0;
    pthread_attr_destroy(&attr);
    threads += ok;
    return ok;
}

/* Waits for its turn to lead. False: this thread is one too many, or it is all over. */
static bool take_lead(void)
{
    pthread_mutex_lock(&lock);
    idle++;
    bool surplus = false;
    while (led && !closing && !surplus) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += IDLE_SECONDS;
        bool late = pthread_cond_timedwait(&free_lead, &lock, &until) == ETIMEDOUT;
        surplus = late && led && idle > IDLE_KEPT;
    }
    idle--;
    bool mine = !closing && !surplus;
    if (mine)
        led = true;
    pthread_mutex_unlock(&lock);
    return mine;
}

static _Thread_local bool leading;

void leat_pump_let_go(void)
{
    if (!leading)
        return;
    pthread_mutex_lock(&lock);
    bool given = true;
    if (idle)
        pthread_cond_signal(&free_lead);
    else
        given = start_thread(); /* without one this thread leads again when it is done */
    led = leading = !given;
    pthread_mutex_unlock(&lock);
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

static grpc_event next_event(void)
{
    grpc_event e = {.type = GRPC_QUEUE_TIMEOUT};
    if (leat_spin_begin()) {
        int64_t end = leat_now_ns() + SPIN_NS;
        do {
            e = grpc_completion_queue_next(queue, gpr_inf_past(GPR_CLOCK_MONOTONIC), NULL);
        } while (e.type == GRPC_QUEUE_TIMEOUT && leat_spin_goes_on(end));
        leat_spin_end();
    }
    int64_t at = __atomic_load_n(&every_at, __ATOMIC_RELAXED);
    if (at && leat_now_ns() >= at)
        run_every();
    if (e.type != GRPC_QUEUE_TIMEOUT)
        return e;
    return grpc_completion_queue_next(queue, leat_pump_time(at), NULL);
}

static void *run(void *unused)
{
    pthread_setname_np(pthread_self(), "leat-rpc");
    while (take_lead()) {
        leading = true;
        while (leading) {
            grpc_event e = next_event();
            if (e.type == GRPC_QUEUE_SHUTDOWN) {
                pthread_mutex_lock(&lock);
                closing = true;
                pthread_cond_broadcast(&free_lead);
                pthread_mutex_unlock(&lock);
                break;
            }
            if (e.type != GRPC_OP_COMPLETE)
                continue;
            leat_tag *tag = e.tag;
            __atomic_load_n(&tag->handed, __ATOMIC_ACQUIRE);
            tag->fn(tag, e.success);
        }
    }
    pthread_mutex_lock(&lock);
    if (--threads == 0)
        pthread_cond_signal(&ended);
    pthread_mutex_unlock(&lock);
    return NULL;
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
    teach_malloc();
    grpc_init();
    queue = grpc_completion_queue_create_for_next(NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&free_lead, &attr);
    pthread_cond_init(&ended, NULL);
    pthread_condattr_destroy(&attr);
    pthread_mutex_lock(&lock);
    led = closing = false;
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
    pthread_cond_destroy(&free_lead);
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
