/* callable.h -- functions of a graph, made ready to be run by kernels; extend.h has what kernels
 * may do with them.
 *
 * 1. A plan whose nodes name functions has a set of callables (leat_callables): a library with
 *    copies of these functions, the devices, and one callable for each combination of function,
 *    attributes and device that a kernel has requested. The plans of the callables share the set,
 *    so that a recursive function finds itself. Where the session has other tasks, all its plans on
 *    this task share one set, so that a function that is called back by another task finds itself.
 * 2. The set is reference-counted, not the single callable: the plan holds one reference, and code
 *    that uses a callable after the plan is freed holds another. The plans of callables hold none.
 * 3. A call is a step of its own, a child of the step of the kernel that made it: it has the
 *    parent's deadline and trace, and is cancelled with it.
 * 4. The nodes of a body may use all devices of the session. A body with nodes on other tasks is
 *    cut by process like any graph; this task drives the parts (far.h), whichever task's step the
 *    call belongs to.
 */
#ifndef LEAT_CALLABLE_H
#define LEAT_CALLABLE_H

#include "runtime/plan.h"

typedef struct leat_callables leat_callables;

enum {
    LEAT_MOST_CALL_DEPTH = 1000,        /* nested calls */
    LEAT_MOST_CALLS_UNDER_WAY = 1 << 16 /* calls of one set that have not ended */
};

/* The set of a plan with options o, made if it is new. graphs: the n graphs of the plan, some of
 * which may be NULL; each one's library has the functions that its nodes name. Gives a reference.
 */
leat_status leat_callables_of(leat_graph *const *graphs, int n, const leat_plan_options *o,
                              leat_callables **out) LEAT_MUST_CHECK;
void leat_callables_ref(leat_callables *s);
void leat_callables_unref(leat_callables *s); /* NULL does nothing */
/* To be called before the nodes of the set's plan are freed: the set finds callables by addresses
 * that belong to these nodes and may be used again for others. NULL does nothing. */
void leat_callables_forget_nodes(leat_callables *s);

/* The callable of f, or of its gradient; its nodes run on this device, a full name that outlives
 * the set, unless they name another one. Borrowed from the set. */
leat_status leat_callables_get(leat_callables *s, const leat_func *f, bool gradient,
                               const char *device, leat_callable **out) LEAT_MUST_CHECK;
/* The set of the plan that the kernel is part of; NULL if the node names no function. */
leat_callables *leat_kernel_callables(leat_kernel *k);
/* The first device of the session that fits a name, which may be a part of one. The error,
 * NOT_FOUND, lists the devices of the session. Borrowed from the set. */
leat_status leat_callables_find_device(const leat_callables *s, const char *name,
                                       const char **out) LEAT_MUST_CHECK;

#endif
