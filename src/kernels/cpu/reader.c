/* reader.c -- the kernels of readers: reading, counting, saving and restoring; see reader.h. */
#include "kernels/cpu/reader.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "proto/reader.pb-c.h"
#include "proto/wire.h"

static leat_status reader_run(leat_kernel *k)
{
    return leat_resource_op_run(k, &leat_reader_maker);
}

/* The reader behind input 0; shared. */
static leat_status find_reader(leat_kernel *k, leat_reader **out)
{
    leat_resource *r;
    LEAT_TRY(leat_kernel_resource(k, 0, &leat_reader_type, &r));
    *out = (leat_reader *)r;
    return NULL;
}

static leat_reader *reader_of(const leat_reader_turn *t)
{
    return (leat_reader *)t->base.resource;
}

/* ---- Reading ---- */

static void count(leat_reader *r, int64_t *what)
{
    pthread_mutex_lock(&r->lock);
    ++*what;
    pthread_mutex_unlock(&r->lock);
}

static void finish_unit(leat_reader *r)
{
    leat_reader_close(r);
    pthread_mutex_lock(&r->lock);
    r->finished = r->started;
    pthread_mutex_unlock(&r->lock);
}

leat_status leat_reader_open(leat_reader *r)
{
    leat_reader_close(r);
    r->number = r->given = 0;
    leat_strbuf_clear(&r->ahead);
    return r->kind->start ? r->kind->start(r) : NULL;
}

/* Starts the unit whose name came. Takes the name. */
static leat_status start_unit(leat_reader *r, leat_tensor *name)
{
    const leat_string *s = name->data;
    leat_strbuf_clear(&r->work);
    leat_status bad = leat_strbuf_reserve(&r->work, s->size);
    if (!bad)
        leat_strbuf_add(&r->work, s->data, s->size);
    leat_tensor_unref(name);
    LEAT_TRY(bad);
    LEAT_TRY(leat_reader_open(r));
    count(r, &r->started);
    return NULL;
}

static leat_status keep(leat_string *to, const leat_strbuf *b)
{
    *to = (leat_string){0};
    LEAT_REQUIRE(leat_string_set(to, b->s, b->n), RESOURCE_EXHAUSTED,
                 "No memory for a record of %zu bytes", b->n);
    return NULL;
}

/* Makes room for cap strings. */
static leat_status grow(leat_string **list, int64_t cap)
{
    leat_string *v = realloc(*list, sizeof(*v) * (size_t)cap);
    LEAT_REQUIRE(v, RESOURCE_EXHAUSTED, "No memory for %lld records", (long long)cap);
    *list = v;
    return NULL;
}

static leat_status keep_record(leat_reader_turn *t, leat_reader *r)
{
    if (t->n == t->cap) {
        const int64_t cap = t->cap ? t->cap * 2 : 1;
        LEAT_TRY(grow(&t->keys, cap));
        LEAT_TRY(grow(&t->values, cap));
        t->cap = cap;
    }
    LEAT_TRY(keep(t->keys + t->n, &r->key));
    if (r->kind->once && r->value.n) { /* maybe a large file: its bytes are not copied */
        const size_t size = r->value.n;
        t->values[t->n++] = (leat_string){leat_strbuf_take(&r->value), size};
        return NULL;
    }
    leat_status s = keep(t->values + t->n, &r->value);
    if (s)
        free(t->keys[t->n].data);
    else
        t->n++;
    return s;
}

/* Reads records of the unit until there are enough, or the unit ends. */
static leat_status read_unit(leat_reader_turn *t)
{
    leat_reader *r = reader_of(t);
    while (t->n < t->wanted) {
        bool end = false;
        LEAT_TRY(leat_kernel_check(t->base.kernel));
        leat_strbuf_clear(&r->key);
        leat_strbuf_clear(&r->value);
        LEAT_TRY(r->kind->next(r, &end));
        if (!end) {
            LEAT_TRY(keep_record(t, r));
            r->given++;
            count(r, &r->produced);
        }
        if (end || r->kind->once) {
            finish_unit(r);
            return NULL;
        }
    }
    return NULL;
}

/* Only the kernel that has the turn changes the counts. */
static bool in_progress(const leat_reader *r)
{
    return r->finished < r->started;
}

/* Reads until there are enough records, or a unit has ended and there are some. Records that were
 * read before an error are given; the error comes again with the next read. */
static bool read_run(leat_reader_turn *t)
{
    leat_reader *r = reader_of(t);
    leat_status s = NULL;
    while (!s && t->n < t->wanted) {
        if (!in_progress(r)) {
            if (t->n)
                break;
            if (!t->answered && !leat_reader_ask(t))
                return false;
            t->answered = false;
            s = t->answer ? t->answer : start_unit(r, t->name);
            t->answer = NULL;
        }
        if (!s)
            s = read_unit(t);
    }
    if (s && t->n && leat_status_code(s) == LEAT_DATA_LOSS) {
        leat_status_free(s);
        s = NULL;
    }
    t->base.status = s;
    return true;
}

static leat_status find_both(leat_kernel *k, leat_reader **r, leat_queue **q)
{
    leat_resource *queue;
    LEAT_TRY(find_reader(k, r));
    leat_status s = leat_kernel_resource(k, 1, &leat_queue_type, &queue);
    if (s)
        leat_resource_unref(&(*r)->base);
    else
        *q = (leat_queue *)queue;
    return s;
}

static leat_status how_many(leat_kernel *k, int64_t *n)
{
    const leat_tensor *t = leat_kernel_in(k, 2);
    LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT, "num_records must be scalar, but had shape: %s",
                 leat_shape_show(&t->shape).s);
    *n = AT(int64_t, t)[0];
    LEAT_REQUIRE(*n >= 0, INVALID_ARGUMENT, "num_records must be >= 0 not %lld", (long long)*n);
    return NULL;
}

static void reader_read(leat_kernel *k)
{
    leat_reader *r;
    leat_queue *q;
    int64_t wanted = 1;
    leat_status s = leat_kernel_inputs(k) > 2 ? how_many(k, &wanted) : NULL;
    if (!s)
        s = find_both(k, &r, &q);
    if (s)
        leat_kernel_done(k, s);
    else
        leat_reader_take_turn(r, k, q, wanted, read_run);
}

/* ---- Counting ---- */

static leat_status give_count(leat_kernel *k, bool records)
{
    leat_reader *r;
    leat_tensor *y;
    const leat_shape scalar = {0};
    LEAT_TRY(leat_kernel_out(k, 0, &scalar, &y));
    LEAT_TRY(find_reader(k, &r));
    pthread_mutex_lock(&r->lock);
    AT(int64_t, y)[0] = records ? r->produced : r->finished;
    pthread_mutex_unlock(&r->lock);
    leat_resource_unref(&r->base);
    return NULL;
}

static leat_status num_records(leat_kernel *k)
{
    return give_count(k, true);
}

static leat_status num_units(leat_kernel *k)
{
    return give_count(k, false);
}

/* ---- Saving, restoring, resetting ---- */

void leat_reader_set_counts(leat_reader *r, int64_t started, int64_t finished, int64_t produced)
{
    pthread_mutex_lock(&r->lock);
    r->started = started;
    r->finished = finished;
    r->produced = produced;
    pthread_mutex_unlock(&r->lock);
}

void leat_reader_reset(leat_reader *r)
{
    leat_reader_close(r);
    leat_strbuf_clear(&r->work);
    leat_reader_set_counts(r, 0, 0, 0);
}

static bool reset_run(leat_reader_turn *t)
{
    leat_reader_reset(reader_of(t));
    return true;
}

static leat_status save(leat_kernel *k, const leat_reader *r)
{
    LEAT_REQUIRE(r->kind->saves_state, UNIMPLEMENTED, "Reader SerializeState");
    Leat__ReaderBaseState m = LEAT__READER_BASE_STATE__INIT;
    m.work_started = r->started;
    m.work_finished = r->finished;
    m.num_records_produced = r->produced;
    m.current_work.data = (uint8_t *)r->work.s;
    m.current_work.len = r->work.n;
    leat_strbuf b = {.checked = true};
    leat_tensor *y;
    leat_status s = leat_proto_pack(&m, &b);
    if (!s)
        s = leat_tensor_of_string(b.s, b.n, &y);
    if (!s)
        leat_kernel_set(k, 0, y);
    leat_strbuf_release(&b);
    return s;
}

static bool save_run(leat_reader_turn *t)
{
    t->base.status = save(t->base.kernel, reader_of(t));
    return true;
}

static leat_status bad_state(const leat_reader *r, const leat_string *state)
{
    leat_strbuf b = {0};
    leat_strbuf_add_shown(&b, state->data, state->size);
    leat_status s = leat_error(INVALID_ARGUMENT, "Could not parse state for %s '%s': %s",
                               r->kind->op, r->name, leat_strbuf_text(&b));
    leat_strbuf_release(&b);
    return s;
}

static leat_status use_state(leat_reader *r, const Leat__ReaderBaseState *m)
{
    const long long started = m->work_started, finished = m->work_finished;
    LEAT_REQUIRE(started >= 0 && finished >= 0 && m->num_records_produced >= 0, INVALID_ARGUMENT,
                 "Unexpected negative value when restoring in %s '%s': work_started: %lld "
                 "work_finished: %lld num_records_produced: %lld",
                 r->kind->op, r->name, started, finished, (long long)m->num_records_produced);
    LEAT_REQUIRE(started <= finished, INVALID_ARGUMENT,
                 "Inconsistent work started vs. finished when restoring in %s '%s': work_started: "
                 "%lld work_finished: %lld",
                 r->kind->op, r->name, started, finished);
    leat_reader_set_counts(r, started, finished, m->num_records_produced);
    leat_strbuf_add(&r->work, m->current_work.data, m->current_work.len);
    return NULL;
}

static leat_status restore(leat_kernel *k, leat_reader *r)
{
    const leat_tensor *t = leat_kernel_in(k, 1);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT,
                 "Reader state must be scalar, but had shape: %s", leat_shape_show(&t->shape).s);
    LEAT_REQUIRE(r->kind->saves_state, UNIMPLEMENTED, "Reader RestoreState");
    const leat_string *state = t->data;
    Leat__ReaderBaseState *m = NULL;
    leat_status s = LEAT_UNPACK(reader_base_state, state->data, state->size, &m);
    if (s) {
        leat_status_free(s);
        return bad_state(r, state);
    }
    s = use_state(r, m);
    leat_proto_free(m);
    return s;
}

static bool restore_run(leat_reader_turn *t)
{
    reset_run(t); /* what cannot be restored leaves the reader as a new one */
    t->base.status = restore(t->base.kernel, reader_of(t));
    return true;
}

void leat_reader_in_turn(leat_kernel *k, bool (*run)(leat_reader_turn *t))
{
    leat_reader *r;
    leat_status s = find_reader(k, &r);
    if (s)
        leat_kernel_done(k, s);
    else
        leat_reader_take_turn(r, k, NULL, 0, run);
}

static void reader_reset(leat_kernel *k)
{
    leat_reader_in_turn(k, reset_run);
}

static void reader_save(leat_kernel *k)
{
    leat_reader_in_turn(k, save_run);
}

static void reader_restore(leat_kernel *k)
{
    leat_reader_in_turn(k, restore_run);
}

#define BOTH(name, ...)                                                                            \
    {.op = name, __VA_ARGS__},                                                                     \
    {                                                                                              \
        .op = name "V2", __VA_ARGS__                                                               \
    }
#define MAKES(name)                                                                                \
    BOTH(name, .run = reader_run, .state_size = sizeof(leat_resource_op),                          \
         .release = leat_resource_op_release)

const leat_kernel_def leat_cpu_reader[] = {
    MAKES("WholeFileReader"),
    MAKES("TextLineReader"),
    MAKES("FixedLengthRecordReader"),
    MAKES("TFRecordReader"),
    MAKES("IdentityReader"),
    BOTH("ReaderRead", .run_async = reader_read, .flags = LEAT_KERNEL_BLOCKS),
    BOTH("ReaderReadUpTo", .run_async = reader_read, .flags = LEAT_KERNEL_BLOCKS),
    BOTH("ReaderNumRecordsProduced", .run = num_records),
    BOTH("ReaderNumWorkUnitsCompleted", .run = num_units),
    BOTH("ReaderSerializeState", .run_async = reader_save),
    BOTH("ReaderRestoreState", .run_async = reader_restore),
    BOTH("ReaderReset", .run_async = reader_reset),
    {0},
};
