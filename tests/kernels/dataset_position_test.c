/* dataset_position_test.c -- positions of iterators that are damaged in a way that bytes changed at
 * random seldom are: a part is left out, is there twice, or is of another type. Each is refused,
 * and the iterator stays where it was. */
#include "dataset_functions.h"

#include "core/variant.h"
#include "kernels/dataset/state.h"
#include "kernels/dataset/tensor_variant.h"

/* ---- Positions by hand ---- */

static leat_state_writer writer(void)
{
    return (leat_state_writer){.bytes = {.checked = true}};
}

/* What every iterator's position begins with, before that of its input. */
static void put_head(leat_state_writer *w, const char *op)
{
    leat_state_put_int(w, 1);
    leat_state_put_text(w, op);
    leat_state_put_int(w, 0); /* elements given */
    leat_state_put_int(w, 0); /* not ended */
    leat_state_put_int(w, 0); /* goes through input 0 */
}

static void put_nothing(leat_state_writer *w)
{
    leat_state_put_int(w, 0);
}

/* A RangeDataset at its beginning. */
static void put_range(leat_state_writer *w)
{
    put_head(w, "RangeDataset");
    put_nothing(w); /* no input */
    leat_state_put_int(w, 0);
    leat_state_put_int(w, 0);
}

/* An element of one scalar. */
static void put_number(leat_state_writer *w, leat_dtype type)
{
    const int64_t x = 1;
    leat_element e = leat_element_new(1);
    CHECK_OK(leat_tensor_copy_of(type, leat_shape(), &x, &e.v[0]));
    CHECK_OK(leat_state_put_element(w, &e));
    leat_element_clear(&e);
}

/* Gives the bytes to the iterator, and releases them. */
static leat_status restore(const elements *e, leat_state_writer *w)
{
    leat_tensor *t;
    leat_state_put_int(w, 0); /* The iteration holds no element. */
    CHECK_OK(leat_tensor_new(LEAT_VARIANT, leat_shape(), &t));
    char *bytes = malloc(w->bytes.n);
    memcpy(bytes, w->bytes.s, w->bytes.n);
    CHECK(leat_position_variant(bytes, w->bytes.n, leat_tensor_mutable(t)));
    free(bytes);
    leat_status s =
        leat_session_run(e->s, LEAT_FEED({e->saved, t}), LEAT_NO_FETCH, LEAT_TARGET(e->restore));
    leat_tensor_unref(t);
    leat_strbuf_release(&w->bytes);
    return s;
}

/* A dataset, an iterator of it that has given its first element, and what it gives afterwards. */
static elements started(leat_out (*make)(leat_graph *g))
{
    leat_graph *g = graph();
    elements e = elements_of(g, make(g));
    char text[64] = "";
    CHECK_OK(begin(&e));
    read_some(&e, 1, text, sizeof(text));
    return e;
}

static void ends_with(elements *e, const char *want)
{
    char text[256] = "";
    read_some(e, 50, text, sizeof(text));
    CHECK_STR(text, want);
    close_elements(e);
}

/* ---- Cases ---- */

static leat_out make_take(leat_graph *g)
{
    return counted(g, "TakeDataset", range(g, 9), 3);
}

static void no_iterator(void)
{
    elements e = started(make_take);
    leat_state_writer w = writer();
    put_nothing(&w);
    CHECK_ERROR(restore(&e, &w), DATA_LOSS, "The saved position is damaged: it has no iterator");
    ends_with(&e, "1 2 END");
}

static void no_input(void)
{
    elements e = started(make_take);
    leat_state_writer w = writer();
    leat_tensor *t = NULL;
    put_head(&w, "TakeDataset");
    put_nothing(&w);
    leat_state_put_int(&w, 0); /* elements taken */
    leat_state_put_int(&w, 0); /* whether there was one */
    CHECK_OK(restore(&e, &w)); /* An iterator that has ended needs no input. */
    CHECK_ERROR(get(&e, &t), DATA_LOSS,
                "The position that was restored is damaged: TakeDataset has no input");
    close_elements(&e);
}

/* A stage that works ahead, with an element beside an error: the error is given. */
static leat_out make_prefetch(leat_graph *g)
{
    return counted(g, "PrefetchDataset", range(g, 3), 2);
}

static void put_slot(leat_state_writer *w, leat_code code, leat_dtype type)
{
    put_head(w, "PrefetchDataset");
    leat_state_put_int(w, 2); /* limit */
    leat_state_put_int(w, 0); /* not ended */
    leat_state_put_int(w, 1); /* slots */
    leat_state_put_int(w, 0); /* not the end */
    leat_state_put_int(w, code);
    if (code)
        leat_state_put_text(w, "the third");
    put_number(w, type);
    put_range(w);
}

static void beside_an_error(void)
{
    elements e = started(make_prefetch);
    leat_state_writer w = writer();
    leat_tensor *t = NULL;
    put_slot(&w, LEAT_ABORTED, LEAT_INT64);
    CHECK_OK(restore(&e, &w));
    CHECK_ERROR(get(&e, &t), ABORTED, "the third");
    ends_with(&e, "0 1 2 END");
}

static void ahead_of_another_type(void)
{
    elements e = started(make_prefetch);
    leat_state_writer w = writer();
    put_slot(&w, 0, LEAT_DOUBLE);
    CHECK_ERROR(restore(&e, &w), DATA_LOSS, "has other components than the dataset");
    ends_with(&e, "1 2 END");
}

static void put_interleave(leat_state_writer *w, int branches)
{
    put_head(w, "InterleaveDataset");
    put_range(w);
    leat_state_put_int(w, 0); /* whose turn it is */
    leat_state_put_int(w, 0); /* elements of this turn */
    leat_state_put_int(w, 1); /* branches so far */
    leat_state_put_int(w, 1); /* the input is over */
    leat_state_put_int(w, branches);
    leat_state_put_int(w, 0); /* branch 0 */
}

static void interleave(void)
{
    elements e = started(make_interleave);
    leat_state_writer w = writer();
    put_interleave(&w, 1);
    put_number(&w, LEAT_INT64);
    put_nothing(&w);
    CHECK_ERROR(restore(&e, &w), DATA_LOSS,
                "The position lacks the iterator of a dataset of InterleaveDataset");
    w = writer();
    put_interleave(&w, 2);
    put_number(&w, LEAT_INT64);
    put_range(&w);
    leat_state_put_int(&w, 0); /* the same branch */
    put_number(&w, LEAT_INT64);
    put_range(&w);
    CHECK_ERROR(restore(&e, &w), DATA_LOSS,
                "The position has a dataset of InterleaveDataset twice");
    w = writer();
    put_interleave(&w, 1);
    put_number(&w, LEAT_DOUBLE);
    put_range(&w);
    CHECK_ERROR(restore(&e, &w), DATA_LOSS, "has other components than the dataset");
    ends_with(&e, "0 1 0 1 2 0 1 2 3 END");
}

static void put_group(leat_state_writer *w, const char *op, int size, int n, leat_dtype type)
{
    put_head(w, op);
    put_range(w);
    leat_state_put_int(w, 1); /* the input is over */
    leat_state_put_int(w, 0); /* the next group to give */
    leat_state_put_int(w, 1); /* groups */
    leat_state_put_int(w, 0); /* key */
    leat_state_put_int(w, size);
    leat_state_put_int(w, n); /* elements */
    for (int i = 0; i < n; i++)
        put_number(w, type);
}

static void group(void)
{
    const char *op = "GroupByWindowDataset";
    elements e = started(make_group);
    leat_state_writer w = writer();
    put_group(&w, op, 2, 1, LEAT_INT64);
    leat_state_put_int(&w, 1); /* a group is given */
    leat_state_put_int(&w, 0); /* its key */
    leat_state_put_int(&w, 1); /* its members */
    put_number(&w, LEAT_INT64);
    put_nothing(&w);
    CHECK_ERROR(restore(&e, &w), DATA_LOSS,
                "The position lacks the iterator of a group of GroupByWindowDataset");
    w = writer();
    put_group(&w, op, 0, 1, LEAT_INT64);
    leat_state_put_int(&w, 0);
    CHECK_ERROR(restore(&e, &w), DATA_LOSS, "The saved position is damaged");
    w = writer();
    put_group(&w, op, 2, 1, LEAT_DOUBLE);
    leat_state_put_int(&w, 0);
    CHECK_ERROR(restore(&e, &w), DATA_LOSS, "has other components than the dataset");
    ends_with(&e, "[1 4] [2 5] [6] [7] END");
}

static void reducer(void)
{
    const char *op = "GroupByReducerDataset";
    elements e = started(make_reducer);
    leat_state_writer w = writer();
    put_group(&w, op, 5, 0, LEAT_INT64);
    leat_state_put_int(&w, 0);
    CHECK_ERROR(restore(&e, &w), DATA_LOSS, "The position has a group without a state");
    w = writer();
    put_group(&w, op, 0, 1, LEAT_DOUBLE);
    leat_state_put_int(&w, 0);
    CHECK_ERROR(restore(&e, &w), DATA_LOSS, "has other components than the dataset");
    w = writer();
    put_group(&w, op, 0, 1, LEAT_INT64);
    leat_state_put_int(&w, 1); /* a window, which this kind does not have */
    CHECK_ERROR(restore(&e, &w), DATA_LOSS, "The saved position is damaged");
    ends_with(&e, "12 7 END");
}

static leat_out make_windows(leat_graph *g)
{
    const leat_dtype type = LEAT_VARIANT;
    leat_out d = leat_op(g, "WindowDataset", leat_in(range(g, 4)), N(2), N(2), N(1),
                         leat_in(yes(g, false)), leat_attr_types("output_types", &type, 1),
                         leat_attr_shapes("output_shapes", (leat_shape[]){leat_shape()}, 1));
    return DATASET("FlatMapDataset", leat_in(d), NONE, F("f", "WindowOf"));
}

static void window_of(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = in[0];
}

/* An element of a window that is empty, as those that failed are, but has no error. */
static void window(void)
{
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "WindowOf", window_of, NULL, 1, LEAT_VARIANT);
    elements e = elements_of(g, make_windows(g));
    char text[64] = "";
    leat_element none = {0};
    leat_state_writer w = writer();
    CHECK_OK(begin(&e));
    read_some(&e, 1, text, sizeof(text));
    put_head(&w, "FlatMapDataset");
    put_head(&w, "WindowDataset");
    put_range(&w);
    leat_state_put_int(&w, 0);  /* to skip */
    leat_state_put_int(&w, 0);  /* the input is not over */
    leat_state_put_int(&w, -1); /* no failures */
    leat_state_put_int(&w, 1);  /* elements */
    CHECK_OK(leat_state_put_element(&w, &none));
    CHECK_ERROR(restore(&e, &w), DATA_LOSS, "has other components than the dataset");
    ends_with(&e, "1 2 3 END");
}

/* Variants that a loop has nested, so deep that no stack would hold the recursion. */
static void deep(void)
{
    leat_state_writer w = writer();
    leat_tensor *t = leat_scalar_int64(7);
    for (int i = 0; i < 200000 && t; i++) {
        leat_tensor *outer = NULL;
        CHECK_OK(leat_tensor_new(LEAT_VARIANT, leat_shape(), &outer));
        *(leat_variant *)leat_tensor_mutable(outer) = leat_tensor_variant(t);
        t = outer;
    }
    CHECK_ERROR(leat_state_put_tensor(&w, t), UNIMPLEMENTED,
                "keeps variants inside each other 9 deep cannot be saved");
    leat_tensor_unref(t);
    leat_strbuf_release(&w.bytes);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"deep", deep}, {"no_iterator", no_iterator}, {"no_input", no_input},
               {"beside_an_error", beside_an_error},
               {"ahead_of_another_type", ahead_of_another_type}, {"interleave", interleave},
               {"group", group}, {"reducer", reducer}, {"window", window});
}
