/* variable.h -- a mutable tensor, behind a reference (VariableV2) or a resource handle
 * (VarHandleOp).
 *
 * 1. value, once set, is a tensor like any other: readers share it.
 * 2. A writer holds the lock for as long as it writes, and writes in place only if it is the sole
 *    owner; otherwise it writes to a copy that becomes the value. So a reader sees the value before
 *    or after an update, never half of it, and what was fetched never changes.
 */
#ifndef LEAT_VARIABLE_H
#define LEAT_VARIABLE_H

#include <pthread.h>

#include "core/buffer.h"
#include "runtime/resource.h"

typedef struct leat_variable {
    leat_resource base;
    pthread_mutex_t lock; /* guards value; several are taken in the order of addresses,
                           * and no other lock under them */
    leat_tensor *value;   /* NULL: not initialised */
    leat_dtype dtype;
    leat_shape shape; /* as declared; may be partly known */
    char *name;
} leat_variable;

extern const leat_resource_type leat_variable_type; /* "Var": behind a handle */
extern const leat_resource_type leat_ref_type;      /* a VariableV2's */

leat_variable *leat_variable_new(const leat_resource_type *type, const char *name, leat_dtype t,
                                 const leat_shape *shape);
void leat_variable_free(void *v); /* the free function of both types; for other types to call */
static inline void leat_variable_lock(leat_variable *v)
{
    pthread_mutex_lock(&v->lock);
}
static inline void leat_variable_unlock(leat_variable *v)
{
    pthread_mutex_unlock(&v->lock);
}
/* Shares the value. FAILED_PRECONDITION if there is none: "Attempting to use uninitialized value
 * w" for references, "Error while reading resource variable w ..." for handles. Takes the lock. */
leat_status leat_variable_read(leat_variable *v, leat_tensor **out) LEAT_MUST_CHECK;
/* With the lock held: the value, made safe to write to (copied if it has more references than the
 * variable's and `own` ones of the caller's). Borrowed. */
leat_status leat_variable_writable(leat_variable *v, int own, leat_tensor **out) LEAT_MUST_CHECK;
/* With the lock held: t becomes the value; shares t (so that the next writer copies it if the
 * caller keeps its reference). */
void leat_variable_set(leat_variable *v, leat_tensor *t);

#endif
