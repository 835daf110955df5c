/* dataset.h -- datasets, and what a kind of datasets consists of.
 *
 * 1. A dataset never changes after it was made, and is counted.
 * 2. An iterator belongs to one iteration, and is used by one pull at a time.
 */
#ifndef LEAT_DATASET_H
#define LEAT_DATASET_H

#include <leat/data.h>

#include "core/object.h"
#include "kernels/cpu/cpu.h"

typedef struct leat_iterator leat_iterator;
typedef struct leat_iteration leat_iteration;
typedef struct leat_pull leat_pull;
typedef struct leat_stats leat_stats;
typedef struct leat_state_writer leat_state_writer;
typedef struct leat_state_reader leat_state_reader;

enum {
    LEAT_MOST_DATASETS = 4096,      /* datasets, and iterators, inside each other */
    LEAT_CARDINALITY_INFINITE = -1, /* cardinalities, as in TensorFlow */
    LEAT_CARDINALITY_UNKNOWN = -2,
    LEAT_AUTOTUNE = -1,
};

/* ---- Elements: n tensors, which belong to the element ---- */
typedef struct leat_element {
    int n;
    leat_tensor **v;
} leat_element;
leat_element leat_element_new(int n);
void leat_element_clear(leat_element *e); /* drops the tensors; e is empty afterwards */
leat_element leat_element_copy(const leat_element *e);
static inline leat_element leat_element_take(leat_element *e)
{
    leat_element x = *e;
    *e = (leat_element){0};
    return x;
}

/* A list of elements. */
typedef struct leat_elements {
    leat_element *v;
    int64_t n, cap;
} leat_elements;
void leat_elements_add(leat_elements *l, leat_element *e); /* takes *e */
void leat_elements_empty(leat_elements *l);                /* keeps the memory of the list */
void leat_elements_clear(leat_elements *l);

/* ---- Functions with what they capture ---- */
/* A function of the program. One of map, test and of is not NULL. */
typedef struct leat_program_fn {
    leat_dataset_fn map;
    leat_dataset_test_fn test; /* its result is a bool scalar */
    leat_dataset_of_fn of;     /* its result is a dataset, in a variant scalar */
    void *arg;
    void (*release)(void *arg); /* called when the dataset is freed; NULL: nothing */
    int n;                      /* tensors of a result, or of an element of the dataset */
    leat_dtype *types;          /* of these; owned */
} leat_program_fn;
typedef struct leat_data_fn {
    leat_callable *f;         /* a reference; NULL: the function is `program` */
    leat_program_fn *program; /* owned */
    char *name;               /* in the graph; NULL for `program` */
    leat_tensor **captured;
    int n_captured;
} leat_data_fn;

/* ---- Datasets ---- */
typedef enum leat_next {
    LEAT_NEXT_ELEMENT, /* the pull's element is the next one */
    LEAT_NEXT_END,
    LEAT_NEXT_FAILED, /* the pull's status says why */
    LEAT_NEXT_PULL,   /* pull another iterator first (leat_pull_from) */
    LEAT_NEXT_CALL,   /* call a function first (leat_pull_call) */
    LEAT_NEXT_WAIT,   /* somebody will call leat_pull_resume */
    LEAT_NEXT_BLOCK   /* continue on a thread that may block */
} leat_next;

typedef struct leat_dataset_kind {
    size_t size;          /* of the struct that begins with a leat_dataset */
    size_t iterator_size; /* of the struct that begins with a leat_iterator */
    /* Number of datasets among the node's first inputs; -1: all inputs. */
    int inputs;
    bool own_types; /* elements are described by the node's attributes, not by input 0 */
    bool no_input;  /* open makes the iterators of inputs itself */
    bool catches;   /* next is called also when the iterator that it pulled has failed */
    /* Reads what the node gives; may be NULL. */
    leat_status (*make)(leat_kernel *k, leat_dataset *d);
    void (*release)(leat_dataset *d);
    int64_t (*cardinality)(const leat_dataset *d); /* NULL: unknown */
    /* The iterator is zeroed, and has an iterator of input 0 unless no_input. May be NULL. */
    leat_status (*open)(leat_iterator *it);
    leat_next (*next)(leat_iterator *it, leat_pull *p);
    void (*close)(leat_iterator *it);
    /* What the kind adds to a position; the iterator of `input` is saved and restored by the
     * caller. Both may wait. NULL: nothing. */
    leat_status (*save)(leat_iterator *it, leat_state_writer *w);
    leat_status (*restore)(leat_iterator *it, leat_state_reader *r);
} leat_dataset_kind;

struct leat_dataset {
    leat_object object;
    atomic_int refs;
    const leat_dataset_kind *kind;
    const char *op;
    char *name;     /* the node's */
    int depth;      /* 1 more than that of its deepest input */
    uint64_t nodes; /* of a graph of the dataset, in which it comes last and nothing is shared */
    leat_dataset **in;
    int n_in;
    leat_data_fn fn[4];
    int n; /* tensors of an element */
    leat_dtype *types;
    leat_shape *shapes;
    struct leat_origin *origin; /* the node that made the dataset; NULL: none (origin.h) */
};

struct leat_iterator {
    leat_dataset *d;
    leat_iteration *iteration;
    leat_iterator *above; /* the iterator that pulls this one */
    leat_iterator *input; /* of input `which` of the dataset, or NULL; owned */
    int which;
    int depth;
    const leat_dataset *auto_shard; /* the AutoShard above, or NULL; borrowed */
    leat_stats *stats;              /* where statistics are reported, or NULL; a reference */
    uint64_t path; /* where the iterator is below others: the same for each that takes its place */
    int64_t count; /* elements given */
    bool ended;    /* next is not called any more */
    bool packs;    /* the iterator may give its element packed (pull.h) */
};

/* The kernel of a dataset op: makes a dataset of this kind and gives it as output 0. */
leat_status leat_dataset_run(leat_kernel *k, const leat_dataset_kind *kind) LEAT_MUST_CHECK;
/* The two halves of leat_dataset_run. make gives a dataset; give takes it. */
leat_status leat_dataset_make(leat_kernel *k, const leat_dataset_kind *kind,
                              leat_dataset **out) LEAT_MUST_CHECK;
leat_status leat_dataset_give(leat_kernel *k, int i, leat_dataset *d) LEAT_MUST_CHECK;
#define LEAT_DATASET_RUN(kind)                                                                     \
    static leat_status kind##_run(leat_kernel *k)                                                  \
    {                                                                                              \
        return leat_dataset_run(k, &kind);                                                         \
    }

/* Rows of a table of kernels. HANDLE: the op gives a handle of a resource
 * (kernels/any/resource_op.h). BOTH: TensorFlow also has the op under the name that it had before.
 */
#define LEAT_DATASET_HANDLE(name, fn)                                                              \
    {                                                                                              \
        .op = name, .run = fn, .state_size = sizeof(leat_resource_op),                             \
        .release = leat_resource_op_release                                                        \
    }
#define LEAT_DATASET_BOTH(name, fn)                                                                \
    {.op = name, .run = fn},                                                                       \
    {                                                                                              \
        .op = "Experimental" name, .run = fn                                                       \
    }

/* A dataset over `inputs` datasets, with the types and shapes of input 0; shares them. */
leat_status leat_dataset_over(const leat_dataset_kind *kind, const char *op, const char *name,
                              leat_dataset *const *inputs, int n,
                              leat_dataset **out) LEAT_MUST_CHECK;
void leat_dataset_types(leat_dataset *d, int n, const leat_dtype *types, const leat_shape *shapes);
leat_dataset *leat_dataset_ref(leat_dataset *d);
void leat_dataset_unref(leat_dataset *d); /* of NULL does nothing */
int64_t leat_dataset_cardinality(const leat_dataset *d);
/* The dataset in a tensor; borrowed. INVALID_ARGUMENT if there is none. */
leat_status leat_dataset_in(const leat_tensor *t, leat_dataset **out) LEAT_MUST_CHECK;
leat_status leat_dataset_tensor(leat_dataset *d, leat_tensor **out) LEAT_MUST_CHECK; /* takes d */

/* Input i of the kernel, a scalar; errors name it. */
leat_status leat_data_int(leat_kernel *k, int i, const char *name, int64_t *out) LEAT_MUST_CHECK;
leat_status leat_data_bool(leat_kernel *k, int i, const char *name, bool *out) LEAT_MUST_CHECK;
leat_status leat_data_string(leat_kernel *k, int i, const char *name, char **out) LEAT_MUST_CHECK;

/* Sets *fn to the function in attribute `attr`, whose captured tensors are the n inputs from
 * `first` on. */
leat_status leat_data_fn_get(leat_kernel *k, const char *attr, int first, int n,
                             leat_data_fn *fn) LEAT_MUST_CHECK;
/* Checks that fn can be called with n_args tensors of these types before those it captured, and
 * that it has these results; n_results < 0: any. */
leat_status leat_data_fn_check(const leat_data_fn *fn, const char *what, const leat_dtype *args,
                               int n_args, const leat_dtype *results,
                               int n_results) LEAT_MUST_CHECK;
/* Number of types in an attribute that is a list of types. */
int leat_data_count(leat_kernel *k, const char *attr);

/* ---- Iterators ---- */
/* An iterator that `parent` pulls, as its number i; parent is NULL for the first one. */
leat_status leat_iterator_new(leat_iteration *in, leat_dataset *d, const leat_iterator *parent,
                              int64_t i, leat_iterator **out) LEAT_MUST_CHECK;
void leat_iterator_free(leat_iterator *it); /* of NULL does nothing */
/* Replaces the iterator's input by a new iterator of input `which` of its dataset. */
leat_status leat_iterator_reopen(leat_iterator *it, int which) LEAT_MUST_CHECK;

#endif
