/* object.h -- checks of the objects that users of the API hold and free: graphs, sessions ...
 *
 * The first member of such a struct is a leat_object, which holds the kind of the object and
 * whether it was freed. The memory of a freed object is kept until some hundred other objects have
 * been freed, so that a use of the freed object is reported instead of being undefined behaviour.
 * Tensors and statuses are checked only if Leat was built with LEAT_CHECK_HANDLES, because kernels
 * share and drop tensors all the time. */
#ifndef LEAT_CORE_OBJECT_H
#define LEAT_CORE_OBJECT_H

#include <leat/status.h>

/* X(KIND, the name in error messages, the word for its end) */
#define LEAT_OBJECTS(X)                                                                            \
    X(GRAPH, "graph", "freed")                                                                     \
    X(SESSION, "session", "closed")                                                                \
    X(PARTIAL, "partial run", "freed")                                                             \
    X(CANCELLATION, "cancellation", "freed")                                                       \
    X(METADATA, "metadata", "freed")                                                               \
    X(TENSOR, "tensor", "released")                                                                \
    X(OPTIMIZER, "optimizer", "freed")                                                             \
    X(MOVING_AVERAGE, "moving average", "freed")                                                   \
    X(DEVICE_SETTER, "device setter", "freed")                                                     \
    X(SAVER, "saver", "freed")                                                                     \
    X(SAVED_MODEL, "saved model", "closed")                                                        \
    X(COORDINATOR, "coordinator", "freed")                                                         \
    X(MONITORED, "monitored session", "closed")                                                    \
    X(SUPERVISOR, "supervisor", "closed")                                                          \
    X(SUMMARY_WRITER, "summary writer", "closed")                                                  \
    X(RECORD_READER, "record reader", "freed")                                                     \
    X(RECORD_WRITER, "record writer", "closed")                                                    \
    X(CHECKPOINT, "checkpoint", "freed")                                                           \
    X(EXAMPLE, "example", "freed")                                                                 \
    X(EVENT_READER, "event reader", "freed")                                                       \
    X(DATASET, "dataset", "freed")                                                                 \
    X(DATA_ITERATOR, "data iterator", "closed")                                                    \
    X(MNIST, "MNIST data", "closed")                                                               \
    X(CIFAR10, "CIFAR-10 data", "closed")                                                          \
    X(PTB, "PTB data", "closed")                                                                   \
    X(CLUSTER, "cluster", "freed")                                                                 \
    X(SERVER, "server", "freed")                                                                   \
    X(STATUS, "status", "freed")

typedef enum leat_object_kind {
#define X(kind, name, end) LEAT_OBJECT_##kind,
    LEAT_OBJECTS(X)
#undef X
        LEAT_N_OBJECTS
} leat_object_kind;

typedef struct leat_object {
    uint32_t magic; /* Atomic. LEAT_OBJECT_ALIVE or LEAT_OBJECT_FREED, plus the kind. */
} leat_object;

enum { LEAT_OBJECT_ALIVE = 0x1ea70000, LEAT_OBJECT_FREED = 0x1eaf0000 };

void leat_object_init(leat_object *o, leat_object_kind kind);
/* Marks the object as freed. Its memory, which must be from malloc, is freed later. */
void leat_object_free(leat_object *o);
/* Acquires what leat_object_init released: a thread that got the object by a way that
 * ThreadSanitizer does not see, such as gRPC, may check it. */
static inline uint32_t leat_object_magic(const void *p)
{
    return __atomic_load_n(&((const leat_object *)p)->magic, __ATOMIC_ACQUIRE);
}
static inline bool leat_object_alive(const void *p, leat_object_kind kind)
{
    return p && leat_object_magic(p) == LEAT_OBJECT_ALIVE + (uint32_t)kind;
}
/* OK if p is an object of this kind that was not freed; else an error. function is the function of
 * the API that the error names. */
leat_status leat_object_check(const void *p, leat_object_kind kind,
                              const char *function) LEAT_MUST_CHECK;
/* Writes the error of leat_object_check to standard error, for functions that return no status.
 * Returns false. */
bool leat_object_report(const void *p, leat_object_kind kind, const char *function);

/* For functions of the API that return a status: LEAT_CHECK(SESSION, s); */
#define LEAT_CHECK(kind, p) LEAT_TRY(leat_object_check(p, LEAT_OBJECT_##kind, __func__))
/* For functions of the API that return no status: if (!LEAT_USABLE(SESSION, s)) return; */
#define LEAT_USABLE(kind, p)                                                                       \
    (leat_object_alive(p, LEAT_OBJECT_##kind) ||                                                   \
     leat_object_report(p, LEAT_OBJECT_##kind, __func__))
/* Allocates a zeroed struct of this type, whose first member must be a leat_object. */
#define leat_new_object(type, kind) ((type *)leat_object_new(sizeof(type), LEAT_OBJECT_##kind))
void *leat_object_new(size_t size, leat_object_kind kind);

#endif
