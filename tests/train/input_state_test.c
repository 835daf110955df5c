/* input_state_test.c -- the position of the input in checkpoints: what is saved, queue runners that
 * rest meanwhile, states that are damaged or another's. */
#include <leat/extend.h>
#include <leat/leat.h>

#include "io/files.h"
#include "kernels/dataset_graph.h"
#include "train/input_state.h"

static leat_out text(leat_graph *g, const char *s)
{
    return leat_string_const(g, s);
}

static leat_status run(leat_session *s, leat_out op)
{
    return leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(op));
}

static void expect(leat_session *s, leat_out x, const char *want)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    char *got = t ? leat_tensor_text(t, -1) : NULL;
    CHECK_STR(got, want);
    free(got);
    leat_tensor_unref(t);
}

/* ---- Queues ---- */

static leat_out queue(leat_graph *g, const char *op, leat_dtype t, const char *name)
{
    return leat_queue_at(LEAT_AT, g, op, 10, 0,
                         (leat_components){&(leat_component){t, leat_shape()}, 1},
                         &(leat_queue_options){.name = name});
}

/* The elements of one queue go to another of the same kind, in their order. */
static void moved(const char *op, const char *want)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_out a = queue(g, op, LEAT_INT64, "a"), b = queue(g, op, LEAT_INT64, "b");
    leat_out x[] = {number(g, 7), number(g, 5), number(g, 6)}, first = number(g, 0);
    const bool sorted = strcmp(op, "PriorityQueueV2") == 0;
    leat_out fill[3];
    for (int i = 0; i < 3; i++)
        fill[i] =
            sorted ? leat_op(g, "QueueEnqueueV2", leat_in(a), leat_ins((leat_out[]){x[i], x[i]}, 2))
                   : leat_op(g, "QueueEnqueueV2", leat_in(a), leat_ins(&x[i], 1));
    leat_out extra =
        sorted ? leat_op(g, "QueueEnqueueV2", leat_in(b), leat_ins((leat_out[]){first, first}, 2))
               : leat_op(g, "QueueEnqueueV2", leat_in(b), leat_ins(&first, 1));
    leat_out state = leat_op(g, "_QueueState", leat_in(a));
    leat_out set = leat_op(g, "_QueueSetState", leat_in(b), leat_in(state));
    const leat_dtype two[] = {LEAT_INT64, LEAT_INT64};
    leat_out next = leat_output(leat_op(g, "QueueDequeueV2", leat_in(b),
                                        leat_attr_types("component_types", two, 1 + sorted)),
                                sorted);
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    for (int i = 0; i < 3; i++)
        CHECK_OK(run(s, fill[i]));
    CHECK_OK(run(s, extra)); /* is replaced */
    CHECK_OK(run(s, set));
    expect(s, leat_queue_size(a), "3");
    char got[100] = "";
    for (int i = 0; i < 3; i++) {
        leat_tensor *t = NULL;
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({next, &t}), LEAT_NO_TARGET));
        snprintf(got + strlen(got), 20, "%g ", t ? leat_tensor_at(t, 0) : -1);
        leat_tensor_unref(t);
    }
    CHECK_STR(got, want);
    leat_session_close(s);
    leat_graph_free(g);
}

static void queues(void)
{
    moved("FIFOQueueV2", "7 5 6 ");
    moved("PaddingFIFOQueueV2", "7 5 6 ");
    moved("PriorityQueueV2", "5 6 7 ");
}

static void bad_queue_states(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_out a = queue(g, "FIFOQueueV2", LEAT_INT64, "a"),
             b = queue(g, "FIFOQueueV2", LEAT_FLOAT, "b");
    leat_out x = number(g, 1);
    leat_out fill = leat_op(g, "QueueEnqueueV2", leat_in(a), leat_ins(&x, 1));
    leat_out state = leat_op(g, "_QueueState", leat_in(a));
    leat_out other = leat_op(g, "_QueueSetState", leat_in(b), leat_in(state));
    leat_out cut = leat_op(g, "Substr", leat_in(state), leat_in(leat_scalar(g, LEAT_INT32, 0)),
                           leat_in(leat_scalar(g, LEAT_INT32, 120)));
    leat_out damaged = leat_op(g, "_QueueSetState", leat_in(a), leat_in(cut));
    leat_out none = leat_op(g, "_QueueSetState", leat_in(a), leat_in(text(g, "")));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(run(s, fill));
    CHECK_ERROR(run(s, other), INVALID_ARGUMENT, "component 0 of 'b' is float");
    CHECK_ERROR(run(s, damaged), DATA_LOSS, "The saved position is damaged");
    CHECK_ERROR(run(s, none), DATA_LOSS, "The saved position is damaged");
    expect(s, leat_queue_size(a), "1"); /* as it was */
    leat_session_close(s);
    leat_graph_free(g);
}

/* ---- Readers ---- */

static void readers(void)
{
    FILE *f = fopen(here("three_lines"), "w");
    CHECK(f && fputs("one\ntwo\nthree\n", f) > 0 && fclose(f) == 0);
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_out names = queue(g, "FIFOQueueV2", LEAT_STRING, "names"),
             path = text(g, here("three_lines"));
    leat_out fill = leat_op(g, "QueueEnqueueV2", leat_in(names), leat_ins(&path, 1));
    leat_out a = leat_op(g, "TextLineReaderV2", leat_name("a"));
    leat_out b = leat_op(g, "TextLineReaderV2", leat_name("b"));
    leat_out c = leat_op(g, "TFRecordReaderV2", leat_name("c"));
    leat_out state = leat_op(g, "_ReaderState", leat_in(a));
    leat_out set = leat_op(g, "_ReaderSetState", leat_in(b), leat_in(state));
    leat_out other = leat_op(g, "_ReaderSetState", leat_in(c), leat_in(state));
    leat_out bad = leat_op(g, "_ReaderSetState", leat_in(b), leat_in(text(g, "i")));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(run(s, fill));
    expect(s, leat_output(leat_reader_read(a, names), 1), "one");
    expect(s, leat_output(leat_reader_read(a, names), 1), "two");
    CHECK_OK(run(s, set));
    expect(s, leat_output(leat_reader_read(b, names), 1), "three");
    expect(s, leat_output(leat_reader_read(a, names), 1), "three");
    expect(s, leat_op(g, "ReaderNumRecordsProducedV2", leat_in(b)), "3");
    CHECK_ERROR(run(s, other), INVALID_ARGUMENT,
                "is that of a TextLineReader; 'c' is a TFRecordReader");
    CHECK_ERROR(run(s, bad), DATA_LOSS, "The saved position is damaged");
    f = fopen(here("three_lines"), "w"); /* has no lines any more */
    CHECK(f && fclose(f) == 0);
    CHECK_ERROR(run(s, set), DATA_LOSS, "has changed: it has 0 records");
    leat_session_close(s);
    leat_graph_free(g);
}

/* ---- Savers ---- */

typedef struct program {
    leat_graph *g;
    leat_out batch;
    leat_saver *saver;
    leat_session *s;
    leat_coordinator *c;
} program;

static program build(void)
{
    program p = {.g = leat_graph_new()};
    leat_variable(p.g, "w", leat_scalar(p.g, LEAT_FLOAT, 1));
    leat_out rows = leat_range_input_producer(leat_scalar(p.g, LEAT_INT32, 100), .shuffle = false,
                                              .num_epochs = 1, .capacity = 5);
    leat_out x = leat_dequeue_at(LEAT_AT, rows);
    leat_batch(LEAT_OUTS(x), 4, &p.batch, .capacity = 6);
    leat_save_input(p.g);
    p.saver = leat_saver_new(p.g);
    CHECK_OK(leat_graph_status(p.g));
    CHECK_OK(leat_session_open(p.g, &p.s));
    CHECK_OK(run(p.s, leat_global_variables_initializer(p.g)));
    CHECK_OK(run(p.s, leat_local_variables_initializer(p.g)));
    return p;
}

static void start(program *p)
{
    p->c = leat_coordinator_new();
    CHECK_OK(leat_start_queue_runners(p->g, p->s, p->c));
}

static void stop(program *p)
{
    if (p->c) {
        leat_coordinator_request_stop(p->c, NULL);
        CHECK_OK(leat_coordinator_join(p->c));
    }
    leat_coordinator_free(p->c);
    leat_session_close(p->s);
    leat_saver_free(p->saver);
    leat_graph_free(p->g);
}

/* Full queues, with threads that wait to enqueue: all that was dequeued is in the checkpoint, the
 * program goes on, and so does another one that restores it. */
static void goes_on(void)
{
    char *path = NULL;
    program p = build();
    start(&p);
    expect(p.s, p.batch, "[0 1 2 3]");
    CHECK_OK(leat_saver_save(p.saver, p.s, here("input.ckpt"), 1, &path));
    expect(p.s, p.batch, "[4 5 6 7]");
    CHECK_OK(leat_saver_save(p.saver, p.s, here("input.ckpt"), 2, NULL));
    expect(p.s, p.batch, "[8 9 10 11]");
    stop(&p);
    program q = build();
    CHECK_OK(leat_saver_restore(q.saver, q.s, path));
    start(&q);
    for (int i = 4; i < 100; i += 4) {
        char want[40];
        snprintf(want, sizeof(want), "[%d %d %d %d]", i, i + 1, i + 2, i + 3);
        expect(q.s, q.batch, want);
    }
    CHECK_ERROR(run(q.s, q.batch), OUT_OF_RANGE, "is closed and has insufficient elements");
    stop(&q);
    free(path);
}

/* After a stop, too, nothing is lost: a last checkpoint has all that was not given. */
static void after_stop(void)
{
    char *path = NULL;
    program p = build();
    start(&p);
    expect(p.s, p.batch, "[0 1 2 3]");
    leat_coordinator_request_stop(p.c, NULL);
    CHECK_OK(leat_saver_save(p.saver, p.s, here("stopped.ckpt"), 1, &path));
    stop(&p);
    program q = build();
    CHECK_OK(leat_saver_restore(q.saver, q.s, path));
    start(&q);
    expect(q.s, q.batch, "[4 5 6 7]");
    for (int i = 0; i < 22; i++)
        CHECK_OK(run(q.s, q.batch));
    expect(q.s, q.batch, "[96 97 98 99]");
    stop(&q);
    free(path);
}

/* A checkpoint without the input's position names what it lacks. */
static void without_input(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    char *path = NULL;
    leat_variable(g, "w", leat_scalar(g, LEAT_FLOAT, 1));
    leat_saver *saver = leat_saver_new(g);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(run(s, leat_global_variables_initializer(g)));
    CHECK_OK(leat_saver_save(saver, s, here("plain.ckpt"), 1, &path));
    leat_session_close(s);
    leat_saver_free(saver);
    leat_graph_free(g);
    program p = build();
    CHECK_ERROR(leat_saver_restore(p.saver, p.s, path), NOT_FOUND, "not found in checkpoint");
    stop(&p);
    free(path);
}

/* A .meta file tells that the position of the input is part of the checkpoint. */
static void from_meta(void)
{
    char *path = NULL, meta[600], batch[100];
    program p = build();
    snprintf(batch, sizeof(batch), "%s:0", leat_node_name(p.batch.node));
    start(&p);
    expect(p.s, p.batch, "[0 1 2 3]");
    CHECK_OK(leat_saver_save(p.saver, p.s, here("meta.ckpt"), 1, &path));
    stop(&p);
    program q = {.g = leat_graph_new()};
    snprintf(meta, sizeof(meta), "%s.meta", path);
    CHECK_OK(leat_meta_graph_read(q.g, meta, &q.saver));
    CHECK_OK(leat_graph_find_out(q.g, batch, &q.batch));
    CHECK_OK(leat_session_open(q.g, &q.s));
    CHECK_OK(run(q.s, leat_local_variables_initializer(q.g)));
    CHECK_OK(leat_saver_restore(q.saver, q.s, path));
    start(&q);
    expect(q.s, q.batch, "[4 5 6 7]");
    stop(&q);
    free(path);
}

/* A program's own op is known by its definition: no list of ops says what has a position. */
static void own_op(void)
{
    static const leat_op_def ops[] = {
        {.name = "TapeState",
         .inputs = "handle: resource",
         .outputs = "state: int64",
         .shape = leat_shape_any,
         .grad = leat_grad_none},
        {.name = "TapeSetState",
         .inputs = "handle: resource, state: int64",
         .shape = leat_shape_any,
         .grad = leat_grad_none},
        {.name = "Tape",
         .outputs = "handle: resource",
         .shape = leat_shape_any,
         .grad = leat_grad_none,
         .flags = LEAT_OP_STATEFUL,
         .save_position = "TapeState",
         .restore_position = "TapeSetState"},
    };
    for (int i = 0; i < 3; i++)
        CHECK_OK(leat_register_op(&ops[i]));
    leat_graph *g = leat_graph_new();
    leat_out tape = leat_op(g, "Tape", leat_name("tape"));
    queue(g, "FIFOQueueV2", LEAT_INT64, "not_filled");
    CHECK_OK(leat_graph_status(g));
    leat_input_part *parts = NULL;
    int n = 0;
    CHECK_OK(leat_input_parts(g, &parts, &n));
    CHECK(n == 1);
    if (n == 1) {
        CHECK(parts[0].of.node == tape.node && parts[0].state == LEAT_INT64);
        CHECK_STR(parts[0].save, "TapeState");
        CHECK_STR(parts[0].restore, "TapeSetState");
    }
    free(parts);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"own_op", own_op}, {"queues", queues},
               {"bad_queue_states", bad_queue_states}, {"readers", readers}, {"goes_on", goes_on},
               {"after_stop", after_stop}, {"without_input", without_input},
               {"from_meta", from_meta});
}
