/* reader.h -- readers, which give the records of files whose names they dequeue.
 *
 * 1. A file is a unit of work. A reader works on one unit at a time, and dequeues the next name
 * when a read finds no unit in progress.
 * 2. Kernels that change a reader, or need its state at rest, take turns in the order of arrival
 *    (reader_turn.c). The kernel that has the turn uses the reader without its lock, from one
 * thread after another: it may wait for a name without a thread. Kernels that wait, for their turn
 * or for a name, end when their step is cancelled.
 * 3. Files are read in the thread that the executor gives to a blocking kernel, or in one of the
 *    pool's threads for blocking jobs, never in the thread that happens to enqueue a name.
 */
#ifndef LEAT_CPU_READER_H
#define LEAT_CPU_READER_H

#include "core/strbuf.h"
#include "io/record.h"
#include "io/stream.h"
#include "kernels/cpu/queue.h"

typedef struct leat_reader leat_reader;

typedef struct leat_reader_kind {
    const char *op; /* op name, which may be followed by V2 */
    /* Reads and checks the attributes; NULL: there are none. */
    leat_status (*configure)(leat_reader *r, const leat_node *n);
    leat_status (*start)(leat_reader *r); /* opens the unit r->work; NULL: nothing to open */
    /* Sets r->key and r->value to the next record, or *end_out to true if the unit has no more. */
    leat_status (*next)(leat_reader *r, bool *end_out);
    bool once;        /* the unit is one record, so it is complete after next */
    bool saves_state; /* ReaderSerializeState and ReaderRestoreState are there */
} leat_reader_kind;

struct leat_reader {
    leat_resource base;
    const leat_reader_kind *kind;
    char *name;
    /* Attributes: */
    leat_record_form form;
    int64_t header_bytes, record_bytes, footer_bytes, hop_bytes, skip_header_lines;

    pthread_mutex_t lock; /* guards the counts and the turn; a step's lock is taken under it */
    int64_t started, finished, produced; /* units started and finished, records given */
    bool busy;                           /* a kernel has the turn */
    leat_waiters line;                   /* kernels that wait for their turn */

    /* For the kernel that has the turn: */
    leat_strbuf work; /* the unit: the name of a file */
    leat_strbuf key, value;
    leat_stream *stream;
    leat_record_reader *records;
    int64_t number;    /* records, or lines, of the unit so far */
    int64_t given;     /* records of the unit that were given */
    leat_strbuf ahead; /* bytes after the last hop, of FixedLengthRecordReader */
};

extern const leat_resource_type leat_reader_type;
extern const leat_resource_maker leat_reader_maker; /* reader_kinds.c */

/* Opens the unit r->work at its beginning. */
leat_status leat_reader_open(leat_reader *r) LEAT_MUST_CHECK;
/* Closes the unit's file. */
void leat_reader_close(leat_reader *r);
/* Makes r as a new one. */
void leat_reader_reset(leat_reader *r);
void leat_reader_set_counts(leat_reader *r, int64_t started, int64_t finished, int64_t produced);

/* ---- reader_turn.c ---- */
typedef struct leat_reader_turn leat_reader_turn;
struct leat_reader_turn {
    leat_waiter base; /* its resource is the reader */
    /* Does the kernel's work. False: it waits for a name, and is called again when the name is
     * there. Sets base.status if it fails. */
    bool (*run)(leat_reader_turn *t);
    leat_queue *queue;          /* shared; or NULL */
    int64_t wanted;             /* records */
    bool one;                   /* ReaderRead, whose outputs are scalars */
    leat_string *keys, *values; /* records read so far */
    int64_t n, cap;
    atomic_bool met;    /* set by the first of the two: the asking thread has left, the name came */
    bool answered;      /* answer and name are set */
    leat_status answer; /* why there is no name */
    leat_tensor *name;
};
/* Calls run when it is the kernel's turn, then leat_kernel_done. Takes the references to r and q,
 * which may be NULL. */
void leat_reader_take_turn(leat_reader *r, leat_kernel *k, leat_queue *q, int64_t wanted,
                           bool (*run)(leat_reader_turn *t));
/* The same for a kernel whose input 0 is a reader. */
void leat_reader_in_turn(leat_kernel *k, bool (*run)(leat_reader_turn *t));
/* Dequeues a name into t->name, or sets t->answer. False: it will come later. */
bool leat_reader_ask(leat_reader_turn *t);

#endif
