/* cond_test.c -- condition variables: signals, deadlines that pass, and those that never do. */
#include "core/cond.h"
#include "core/threadpool.h"
#include "test.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond;
static bool signalled;

static void *signal_later(void *arg)
{
    struct timespec t = {0, 20000000};
    nanosleep(&t, NULL);
    pthread_mutex_lock(&lock);
    signalled = true;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Waits until the signal, with this deadline; true if it came. */
static bool wait_for_signal(int64_t deadline_ns)
{
    pthread_t thread;
    bool in_time = true;
    signalled = false;
    leat_cond_init(&cond);
    pthread_create(&thread, NULL, signal_later, NULL);
    pthread_mutex_lock(&lock);
    while (!signalled && in_time)
        in_time = leat_cond_wait_until(&cond, &lock, deadline_ns);
    bool came = signalled;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&cond);
    return came;
}

static void signals(void)
{
    CHECK(wait_for_signal(INT64_MAX));
    CHECK(wait_for_signal(leat_now_ns() + INT64_C(60000000000)));
}

static void deadlines(void)
{
    enum { MS = 1000000 };
    int64_t begin = leat_now_ns(), deadline = begin + 50 * MS;
    leat_cond_init(&cond);
    pthread_mutex_lock(&lock);
    while (leat_cond_wait_until(&cond, &lock, deadline))
        ;
    CHECK(leat_now_ns() >= deadline);
    CHECK(!leat_cond_wait_until(&cond, &lock, begin)); /* passed before */
    CHECK(!leat_cond_wait_until(&cond, &lock, 0));
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&cond);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"signals", signals}, {"deadlines", deadlines});
}
