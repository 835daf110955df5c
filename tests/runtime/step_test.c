/* step_test.c -- the callbacks of a step's cancellation: which are called, and when they have
 * returned. */
#include "runtime/step.h"

#include <pthread.h>
#include <time.h>

#include "test.h"

typedef struct waiter {
    leat_cancel cancel;
    leat_step *step;
    atomic_bool entered, left;
    atomic_bool held; /* the callback does not return while this is true */
    bool frees;       /* itself, in its callback */
    leat_code code;
    char words[64];
} waiter;

static void a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

static void slow(void *arg, leat_status why)
{
    waiter *w = arg;
    atomic_store(&w->entered, true);
    do
        a_moment();
    while (atomic_load(&w->held));
    w->code = leat_status_code(why);
    snprintf(w->words, sizeof(w->words), "%s", leat_status_message(why));
    atomic_store(&w->left, true);
    if (w->frees) {
        leat_step_off_cancel(w->step, &w->cancel);
        free(w);
    }
}

static void *fail_now(void *step)
{
    leat_step_fail(step, leat_error(ABORTED, "the first"));
    return NULL;
}

static pthread_t fail_with(waiter *w, leat_step *s)
{
    pthread_t t;
    leat_step_init(s);
    *w = (waiter){.cancel = {.fn = slow, .arg = w}, .step = s};
    CHECK(leat_step_on_cancel(s, &w->cancel));
    pthread_create(&t, NULL, fail_now, s);
    while (!atomic_load(&w->entered))
        a_moment();
    return t;
}

static void off_waits(void)
{
    leat_step s;
    waiter w;
    pthread_t t = fail_with(&w, &s);
    leat_step_off_cancel(&s, &w.cancel);
    CHECK(atomic_load(&w.left));
    CHECK(w.code == LEAT_ABORTED);
    CHECK_STR(w.words, "the first");
    pthread_join(t, NULL);
    CHECK_ERROR(leat_step_settle(&s), ABORTED, "the first");
    leat_step_release(&s);
}

static void settle_waits(void)
{
    leat_step s;
    waiter w;
    pthread_t t = fail_with(&w, &s);
    leat_step_fail(&s,
                   leat_error(INTERNAL, "the second")); /* calls no callback, and does not wait */
    CHECK_ERROR(leat_step_settle(&s), ABORTED, "the first");
    CHECK(atomic_load(&w.left));
    pthread_join(t, NULL);
    leat_step_release(&s);
}

/* Removing a callback that is not running does not wait for another one that is. */
static void others_do_not_wait(void)
{
    leat_step s;
    waiter w, other = {.cancel = {.fn = slow, .arg = &other}};
    leat_step_init(&s);
    CHECK(leat_step_on_cancel(&s, &other.cancel)); /* called last */
    w = (waiter){.cancel = {.fn = slow, .arg = &w}, .step = &s, .held = true};
    CHECK(leat_step_on_cancel(&s, &w.cancel));
    pthread_t t;
    pthread_create(&t, NULL, fail_now, &s);
    while (!atomic_load(&w.entered))
        ;
    leat_step_off_cancel(&s, &other.cancel);
    CHECK(!atomic_load(&w.left));
    CHECK(!leat_step_on_cancel(&s, &other.cancel)); /* cancelled already */
    atomic_store(&w.held, false);
    leat_step_off_cancel(&s, &w.cancel);
    pthread_join(t, NULL);
    CHECK(!atomic_load(&other.entered));
    leat_status_free(leat_step_settle(&s));
    leat_step_release(&s);
}

static void frees_itself(void)
{
    leat_step s;
    leat_step_init(&s);
    waiter *w = calloc(1, sizeof(*w));
    *w = (waiter){.cancel = {.fn = slow, .arg = w}, .step = &s, .frees = true};
    CHECK(leat_step_on_cancel(&s, &w->cancel));
    fail_now(&s);
    CHECK_ERROR(leat_step_settle(&s), ABORTED, "the first");
    leat_step_release(&s);
}

static void over(void)
{
    leat_step s;
    waiter w = {.cancel = {.fn = slow, .arg = &w}};
    leat_step_init(&s);
    CHECK(leat_step_on_cancel(&s, &w.cancel));
    CHECK_OK(leat_step_settle(&s));
    fail_now(&s); /* too late */
    CHECK(!atomic_load(&w.entered));
    CHECK_OK(leat_step_settle(&s));
    leat_step_release(&s);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"off_waits", off_waits}, {"settle_waits", settle_waits},
               {"others_do_not_wait", others_do_not_wait}, {"frees_itself", frees_itself},
               {"over", over});
}
