/* reader_state.c -- the position of a reader as a string, for checkpoints, in the middle of a file,
 * too: the counts, the file, and how many of its records were given. ReaderSerializeState, which is
 * TensorFlow's, fails for most kinds of readers. */
#include <stdlib.h>

#include "kernels/cpu/reader.h"
#include "kernels/dataset/state.h"

static leat_reader *reader_of(const leat_reader_turn *t)
{
    return (leat_reader *)t->base.resource;
}

/* ---- Saving ---- */

static leat_status write_state(const leat_reader *r, leat_state_writer *w)
{
    leat_tensor *work;
    leat_state_put_text(w, r->kind->op);
    leat_state_put_int(w, r->started);
    leat_state_put_int(w, r->finished);
    leat_state_put_int(w, r->produced);
    leat_state_put_int(w, r->given);
    LEAT_TRY(leat_tensor_of_string(leat_strbuf_text(&r->work), r->work.n, &work));
    leat_status s = leat_state_put_tensor(w, work);
    leat_tensor_unref(work);
    return s ? s : leat_strbuf_check(&w->bytes);
}

static bool state_turn(leat_reader_turn *t)
{
    leat_tensor *y;
    leat_state_writer w = {.bytes = {.checked = true}};
    leat_status s = write_state(reader_of(t), &w);
    if (!s)
        s = leat_tensor_of_string(w.bytes.s, w.bytes.n, &y);
    leat_strbuf_release(&w.bytes);
    if (!s)
        leat_kernel_set(t->base.kernel, 0, y);
    t->base.status = s;
    return true;
}

static void state_run(leat_kernel *k)
{
    leat_reader_in_turn(k, state_turn);
}

/* ---- Restoring ---- */

/* Opens the file and goes over the records that were given. */
static leat_status go_to(leat_reader *r, int64_t given)
{
    LEAT_TRY(leat_reader_open(r));
    for (bool end = false; r->given < given; r->given++) {
        leat_strbuf_clear(&r->key);
        leat_strbuf_clear(&r->value);
        LEAT_TRY(r->kind->next(r, &end));
        LEAT_REQUIRE(!end, DATA_LOSS,
                     "File \"%s\" has changed: it has %lld records; the position that is to be "
                     "restored is after record %lld",
                     leat_strbuf_text(&r->work), (long long)r->given, (long long)given);
    }
    return NULL;
}

static leat_status check_kind(const leat_reader *r, leat_state_reader *from)
{
    char *op;
    leat_status s = NULL;
    LEAT_TRY(leat_state_get_text(from, &op));
    if (strcmp(op, r->kind->op) != 0)
        s = leat_error(INVALID_ARGUMENT, "The saved position is that of a %s; '%s' is a %s", op,
                       r->name, r->kind->op);
    free(op);
    return s;
}

static leat_status read_state(leat_reader *r, leat_state_reader *from)
{
    int64_t started, finished, produced, given;
    leat_tensor *work;
    LEAT_TRY(check_kind(r, from));
    LEAT_TRY(leat_state_get_within(from, 0, INT64_MAX, &started));
    LEAT_TRY(leat_state_get_within(from, 0, started, &finished));
    LEAT_TRY(leat_state_get_within(from, 0, INT64_MAX, &produced));
    LEAT_TRY(leat_state_get_within(from, 0, INT64_MAX, &given));
    LEAT_TRY(leat_state_get_tensor(from, &work));
    leat_status s = leat_state_end(from);
    if (!s && (work->dtype != LEAT_STRING || work->count != 1))
        s = leat_error(DATA_LOSS, "The saved position of '%s' lacks the name of a file", r->name);
    if (!s)
        leat_strbuf_add(&r->work, AT(leat_string, work)->data, AT(leat_string, work)->size);
    leat_tensor_unref(work);
    if (!s && finished < started)
        s = go_to(r, given);
    if (!s)
        leat_reader_set_counts(r, started, finished, produced);
    return s;
}

/* What cannot be restored leaves the reader as a new one. */
static bool set_state_turn(leat_reader_turn *t)
{
    leat_reader *r = reader_of(t);
    const leat_tensor *x = leat_kernel_in(t->base.kernel, 1);
    leat_status s = NULL;
    leat_reader_reset(r);
    if (x->shape.rank != 0) {
        s = leat_error(INVALID_ARGUMENT, "state must be a scalar, but has shape %s",
                       leat_shape_show(&x->shape).s);
    } else {
        leat_state_reader from = {.bytes = AT(leat_string, x)->data, .n = AT(leat_string, x)->size};
        s = read_state(r, &from);
    }
    if (s)
        leat_reader_reset(r);
    t->base.status = s;
    return true;
}

static void set_state_run(leat_kernel *k)
{
    leat_reader_in_turn(k, set_state_turn);
}

const leat_kernel_def leat_cpu_reader_state[] = {
    {.op = "_ReaderState", .run_async = state_run},
    {.op = "_ReaderSetState", .run_async = set_state_run, .flags = LEAT_KERNEL_BLOCKS},
    {0},
};
