/* later_test.c -- jobs that a thread runs later, and threads that are bound to a CPU. */
#define _GNU_SOURCE
#include "core/later.h"

#include <pthread.h>
#include <sched.h>

#include "core/bind.h"
#include "core/pool_int.h"
#include "core/thread.h"
#include "core/threadpool.h"
#include "test.h"

static void add_one(void *n)
{
    ++*(int *)n;
}

static bool put(int *n)
{
    bool again;
    return leat_later_put(add_one, n, &again);
}

static void held_back(void)
{
    int a = 0, b = 0;
    CHECK(!put(&a)); /* it does not hold back */
    leat_later_begin();
    CHECK(put(&a));
    CHECK(put(&b));
    leat_later_begin();
    bool again;
    CHECK(leat_later_put(add_one, &a, &again) && again);
    leat_later_end();
    CHECK(!a && !b);
    leat_later_end();
    CHECK_INT(a, 1);
    CHECK_INT(b, 1);
    CHECK(!put(&a));
}

static void not_for_ever(void)
{
    int many[100] = {0}, n = 0, times = 0;
    leat_later_begin();
    while (n < 100 && put(&many[n]))
        n++;
    CHECK(n > 1 && n < 100);
    while (times < 100 && put(&many[0]))
        times++;
    CHECK(times > 1 && times < 100);
    leat_later_now();
    for (int i = 0; i < 100; i++)
        CHECK_INT(many[i], i < n);
    CHECK(put(&many[0]));
    leat_later_end();
    CHECK_INT(many[0], 2);
}

static void before_waiting(void)
{
    int n = 0;
    leat_event e;
    leat_event_init(&e);
    leat_later_begin();
    CHECK(put(&n));
    CHECK(!leat_event_wait(&e, leat_now_ns() + 1000000));
    CHECK_INT(n, 1);
    CHECK(put(&n));
    CHECK(!leat_pool_wait(NULL, &e, leat_now_ns() + 1000000));
    CHECK_INT(n, 2);
    leat_later_end();
}

/* ---- Jobs ---- */

typedef struct counted_job {
    leat_later_job base;
    int ran, submitted;
    leat_later_job *adds; /* while it runs; or NULL */
} counted_job;

static void count_runs(leat_later_job *list)
{
    for (leat_later_job *j = list, *next; j; j = next) {
        next = j->next;
        counted_job *c = (counted_job *)j;
        c->ran++;
        if (c->adds)
            leat_later_job_add(c->adds);
    }
}

static void count_submits(leat_later_job *j)
{
    ((counted_job *)j)->submitted++;
}

static void jobs(void)
{
    counted_job a = {.base = {.run = count_runs, .submit = count_submits}}, b = a, c = a, d = a;
    leat_later_job_add(&a.base); /* jobs are not put off here */
    CHECK(a.submitted == 1 && !a.ran);
    leat_later_jobs_begin();
    c.adds = &d.base;
    leat_later_job_add(&b.base);
    leat_later_jobs_begin();
    leat_later_job_add(&c.base);
    leat_later_jobs_end();
    CHECK(!b.ran && !c.ran);
    leat_later_jobs_end();
    CHECK(b.ran == 1 && c.ran == 1 && d.ran == 1);
    leat_later_jobs_begin();
    leat_later_job_add(&b.base);
    leat_event e; /* a thread that waits leaves its jobs to others */
    leat_event_init(&e);
    CHECK(!leat_event_wait(&e, leat_now_ns() + 1000000));
    CHECK(b.submitted == 1 && b.ran == 1);
    leat_later_jobs_end();
    CHECK(b.submitted == 1 && b.ran == 1);
}

static void only_one_step(void)
{
    int mine = 0, other = 0;
    CHECK(leat_later_may_run(&mine) && leat_later_may_run(&other));
    leat_later_only(&mine);
    CHECK(leat_later_may_run(&mine) && !leat_later_may_run(&other));
    leat_later_only(NULL);
    CHECK(leat_later_may_run(&other));
}

static int cpus(void)
{
    cpu_set_t s;
    CHECK(sched_getaffinity(0, sizeof s, &s) == 0);
    return CPU_COUNT(&s);
}

static void *count_cpus(void *n)
{
    *(int *)n = cpus();
    return NULL;
}

static void bound(void)
{
    int all = cpus(), here = sched_getcpu(), there = 0;
    leat_bind(here);
    CHECK_INT(cpus(), 1);
    CHECK_INT(sched_getcpu(), here);
    leat_bind(-1); /* nonsense changes nothing */
    leat_bind(1 << 20);
    CHECK_INT(cpus(), 1);
    pthread_t t; /* the pool's threads are not bound */
    CHECK(leat_thread_start(&t, count_cpus, &there) == 0);
    pthread_join(t, NULL);
    CHECK_INT(there, all);
    CHECK_INT(cpus(), all);
    leat_unbind();
    CHECK_INT(cpus(), all);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"held_back", held_back}, {"not_for_ever", not_for_ever}, {"jobs", jobs},
               {"only_one_step", only_one_step}, {"before_waiting", before_waiting},
               {"bound", bound});
}
