/* callable.h -- functions of a graph, made ready to be run by kernels; extend.h has what kernels
 * may do with them.
 *
 * 1. A plan whose nodes name functions has a set of callables (leat_callables): a library with
 *    copies of these functions, the devices, and one callable for each function, choice of
 *    attributes and device that was asked for. The plans of the callables share that set, so that a
 *    recursive function finds itself.
 * 2. The set is counted, not the single callable: the plan holds one reference, and whoever keeps a
 *    callable longer holds another. The plans of callables hold none.
 * 3. A call is a step of its own, a child of the step of the kernel that made it: it has the
 *    parent's deadline and trace, and is cancelled with it.
 */
#ifndef LEAT_CALLABLE_H
#define LEAT_CALLABLE_H

#include "runtime/plan.h"

typedef struct leat_callables leat_callables;

enum {
    LEAT_MOST_CALL_DEPTH = 1000,        /* calls inside each other */
    LEAT_MOST_CALLS_UNDER_WAY = 1 << 16 /* of one set */
};

/* A set for a plan with these options, whose graphs (n of them, some may be NULL) have the
 * functions that their nodes name. */
leat_status leat_callables_new(leat_graph *const *graphs, int n, const leat_plan_options *o,
                               leat_callables **out) LEAT_MUST_CHECK;
void leat_callables_ref(leat_callables *s);
void leat_callables_unref(leat_callables *s); /* of NULL does nothing */
/* The nodes of the plan that the set was made for are about to be freed, and their addresses will
 * not be those of the same functions any more. Of NULL does nothing. */
void leat_callables_forget_nodes(leat_callables *s);

/* The callable of f, or of its gradient; its nodes run on this device unless they ask for another
 * one. Borrowed from the set. */
leat_status leat_callables_get(leat_callables *s, const leat_func *f, bool gradient,
                               leat_device *device, leat_callable **out) LEAT_MUST_CHECK;
/* The set of the plan that the kernel is part of; NULL if the node names no function. */
leat_callables *leat_kernel_callables(leat_kernel *k);
/* The first device of the set that fits a name, which may be a part of one. NOT_FOUND names those
 * there are. Borrowed. */
leat_status leat_callables_find_device(const leat_callables *s, const char *name,
                                       leat_device **out) LEAT_MUST_CHECK;

#endif
