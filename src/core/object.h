/* object.h -- checks of the objects that users hold and free: graphs, sessions, optimizers ...
 *
 * The first member of such a struct is a leat_object, which says what it is and whether it lives.
 * The memory of an object that was freed is kept until some hundred others have been freed, so that
 * a use after that is reported instead of undefined. Tensors are checked only if Leat was built
 * with LEAT_CHECK_HANDLES, because kernels share and drop them all the time. */
#ifndef LEAT_CORE_OBJECT_H
#define LEAT_CORE_OBJECT_H

#include <leat/status.h>

/* X(KIND, what messages call it, what is done to it at its end) */
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
    X(COORDINATOR, "coordinator", "freed")                                                         \
    X(MONITORED, "monitored session", "closed")                                                    \
    X(SUPERVISOR, "supervisor", "closed")                                                          \
    X(SUMMARY_WRITER, "summary writer", "closed")                                                  \
    X(RECORD_READER, "record reader", "freed")                                                     \
    X(RECORD_WRITER, "record writer", "closed")                                                    \
    X(CHECKPOINT, "checkpoint", "freed")                                                           \
    X(EVENT_READER, "event reader", "freed")                                                       \
    X(MNIST, "MNIST data", "closed")                                                               \
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
    uint32_t magic; /* of its kind; another one once it was freed */
} leat_object;

enum { LEAT_OBJECT_ALIVE = 0x1ea70000, LEAT_OBJECT_FREED = 0x1eaf0000 }; /* plus the kind */

void leat_object_init(leat_object *o, leat_object_kind kind);
/* Marks the object as freed; its memory, which is from malloc, is freed later. */
void leat_object_free(leat_object *o);
static inline bool leat_object_alive(const void *p, leat_object_kind kind)
{
    return p && ((const leat_object *)p)->magic == LEAT_OBJECT_ALIVE + (uint32_t)kind;
}
/* OK if p is a living object of this kind; else an error that names the function of the API. */
leat_status leat_object_check(const void *p, leat_object_kind kind,
                              const char *function) LEAT_MUST_CHECK;
/* Writes that error to standard error, for functions that return no status. Gives false. */
bool leat_object_report(const void *p, leat_object_kind kind, const char *function);

/* LEAT_CHECK(SESSION, s), in a function of the API that returns a status. */
#define LEAT_CHECK(kind, p) LEAT_TRY(leat_object_check(p, LEAT_OBJECT_##kind, __func__))
/* In a function that returns none: if (!LEAT_USABLE(SESSION, s)) return; */
#define LEAT_USABLE(kind, p)                                                                       \
    (leat_object_alive(p, LEAT_OBJECT_##kind) ||                                                   \
     leat_object_report(p, LEAT_OBJECT_##kind, __func__))
/* A zeroed struct of this type, whose first member is a leat_object. */
#define leat_new_object(type, kind) ((type *)leat_object_new(sizeof(type), LEAT_OBJECT_##kind))
void *leat_object_new(size_t size, leat_object_kind kind);

#endif
