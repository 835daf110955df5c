/* device_copy_test.c -- tensors between memories: values, order, and what runs beside a copy. */
#include "test.h"

#include <leat/leat.h>
#include <time.h>

#include "guarded_device.h"

/* Opened once; a job that waits for it says when it has begun. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool begun, open;
} gate;
#define GATE                                                                                       \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false                          \
    }

static void pass_gate(void *arg)
{
    gate *g = arg;
    pthread_mutex_lock(&g->lock);
    g->begun = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void open_gate(gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static void await_begin(gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (!g->begun)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

/* Where a move ends. */
typedef struct arrival {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool came;
    leat_tensor *t;
    leat_status s;
} arrival;
#define ARRIVAL                                                                                    \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, NULL, NULL                     \
    }

static void arrive(void *arg, leat_status s, leat_tensor *t)
{
    arrival *a = arg;
    pthread_mutex_lock(&a->lock);
    a->came = true;
    a->t = t;
    a->s = s;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

/* False if it has not come after so many milliseconds. */
static bool came(arrival *a, int ms)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += ms / 1000;
    end.tv_nsec += ms % 1000 * 1000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    pthread_mutex_lock(&a->lock);
    while (!a->came && pthread_cond_timedwait(&a->changed, &a->lock, &end) == 0)
        ;
    bool yes = a->came;
    pthread_mutex_unlock(&a->lock);
    return yes;
}

static leat_tensor *moved(leat_tensor *t, leat_device *to)
{
    arrival a = ARRIVAL;
    leat_tensor_move(t, to, arrive, &a);
    CHECK(came(&a, 30000));
    CHECK_OK(a.s);
    return a.t;
}

static leat_tensor *count_up(int n)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_INT32, leat_shape(n), &t));
    for (int i = 0; i < n; i++)
        ((int32_t *)t->data)[i] = i;
    return t;
}

static leat_devices open_devices(void)
{
    leat_devices d;
    leat_devices_options o = {.spec = "cpu:1,guarded:2", .job = "localhost"};
    CHECK_OK(leat_devices_open(&o, &d));
    CHECK_INT(d.n, 3);
    return d;
}

/* In, to the other device, out again; directly and over the host's memory. */
static void round_trip(void)
{
    leat_devices d = open_devices();
    leat_device_kind no_peer = guarded_kind;
    no_peer.copy_peer = NULL;
    for (int direct = 1; direct >= 0; direct--) {
        for (int n = 0; n < 3000; n = n * 4 + 1) {
            leat_tensor *t = count_up(n), *a = moved(t, d.v[1]), *b = moved(a, d.v[2]);
            CHECK(n == 0 || (leat_tensor_memory(a) == d.v[1]->allocator &&
                             leat_tensor_memory(b) == d.v[2]->allocator));
            leat_tensor *back = moved(b, NULL), *cpu = moved(b, d.v[0]), *same = moved(a, d.v[1]);
            CHECK(!leat_tensor_memory(back) && !leat_tensor_memory(cpu) && same == a);
            CHECK(memcmp(back->data, t->data, leat_tensor_bytes(t)) == 0);
            CHECK(memcmp(cpu->data, t->data, leat_tensor_bytes(t)) == 0);
            leat_tensor *all[] = {t, a, b, back, cpu, same};
            for (int i = 0; i < 6; i++)
                leat_tensor_unref(all[i]);
        }
        d.v[1]->kind = d.v[2]->kind = &no_peer;
    }
    d.v[1]->kind = d.v[2]->kind = &guarded_kind;
    leat_devices_close(&d);
}

/* While a tensor is copied out, the device computes what was enqueued later. */
static void out_beside_work(void)
{
    leat_devices d = open_devices();
    gate copies = GATE, work = GATE;
    arrival a = ARRIVAL;
    leat_tensor *t = count_up(100), *there = moved(t, d.v[1]);
    guarded_enqueue(d.v[1]->state, LEAT_QUEUE_COPY, pass_gate, &copies);
    leat_tensor_move(there, NULL, arrive, &a);
    guarded_enqueue(d.v[1]->state, LEAT_QUEUE_COMPUTE, pass_gate, &work);
    await_begin(&work);
    CHECK(!came(&a, 20));
    open_gate(&copies);
    CHECK(came(&a, 30000)); /* the work has not ended */
    open_gate(&work);
    CHECK(a.t && memcmp(a.t->data, t->data, leat_tensor_bytes(t)) == 0);
    leat_tensor_unref(a.t);
    leat_tensor_unref(there);
    leat_tensor_unref(t);
    leat_devices_close(&d);
}

/* A copy waits for the work that was enqueued before it: that may make the tensor which is copied
 * out, or be the last on memory that is copied to. */
static void after_work(void)
{
    leat_devices d = open_devices();
    leat_tensor *t = count_up(100), *there = moved(t, d.v[1]);
    for (int in = 0; in < 2; in++) {
        gate work = GATE;
        arrival a = ARRIVAL;
        guarded_enqueue(d.v[1]->state, LEAT_QUEUE_COMPUTE, pass_gate, &work);
        leat_tensor_move(in ? t : there, in ? d.v[1] : NULL, arrive, &a);
        CHECK(!came(&a, 50));
        open_gate(&work);
        CHECK(came(&a, 30000));
        leat_tensor_unref(a.t);
    }
    leat_tensor_unref(there);
    leat_tensor_unref(t);
    leat_devices_close(&d);
}

static void refusals(void)
{
    leat_devices d = open_devices();
    leat_tensor *s, *clone, *t = count_up(10), *there = moved(t, d.v[1]);
    arrival a = ARRIVAL;
    CHECK_OK(leat_tensor_new(LEAT_STRING, leat_shape(2), &s));
    leat_tensor_move(s, d.v[1], arrive, &a);
    CHECK(came(&a, 0) && !a.t);
    CHECK_ERROR(a.s, INTERNAL, "of type string cannot leave the host's memory");
    CHECK_ERROR(leat_tensor_clone(leat_cpu_allocator(), there, &clone), INTERNAL,
                "cannot be cloned in that of CPU");
    CHECK_ERROR(leat_tensor_clone(d.v[2]->allocator, there, &clone), INTERNAL, "device:GUARDED:1");
    CHECK_OK(leat_tensor_clone(NULL, there, &clone));
    CHECK(leat_tensor_memory(clone) == d.v[1]->allocator);
    leat_tensor *back = moved(clone, NULL);
    CHECK(memcmp(back->data, t->data, leat_tensor_bytes(t)) == 0);
    leat_tensor *all[] = {s, t, there, clone, back};
    for (int i = 0; i < 5; i++)
        leat_tensor_unref(all[i]);
    leat_devices_close(&d);
}

/* No memory left there: an error, and the next move works. */
static void exhausted(void)
{
    leat_devices d = open_devices();
    leat_tensor *t = count_up(1000);
    d.v[1]->allocator->limit = 2000;
    arrival a = ARRIVAL;
    leat_tensor_move(t, d.v[1], arrive, &a);
    CHECK(came(&a, 0) && !a.t);
    CHECK_ERROR(a.s, RESOURCE_EXHAUSTED, "device:GUARDED:0");
    d.v[1]->allocator->limit = 1 << 20;
    leat_tensor *there = moved(t, d.v[1]);
    CHECK_INT(atomic_load(&d.v[1]->allocator->in_use), 4000);
    leat_tensor_unref(there);
    CHECK_INT(atomic_load(&d.v[1]->allocator->in_use), 0);
    CHECK_INT(atomic_load(&d.v[1]->allocator->peak), 4000);
    leat_tensor_unref(t);
    leat_devices_close(&d);
}

int main(int argc, char **argv)
{
    LEAT_DIE_ON_ERROR(leat_device_kind_register(&guarded_kind));
    return RUN(argc, argv, {"round_trip", round_trip}, {"out_beside_work", out_beside_work},
               {"after_work", after_work}, {"refusals", refusals}, {"exhausted", exhausted});
}
