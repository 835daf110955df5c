/* callable.h -- a callable is a function of a graph, compiled for a device, that kernels call.
 * leat/extend.h has the functions by which kernels use callables.
 *
 * 1. A plan whose nodes name functions has a set of callables (leat_callables): a library with
 *    copies of these functions, the devices, and one callable for each combination of function,
 *    attributes and device that a kernel has requested. The plans of the callables share the set,
 *    so that a recursive function finds itself. If the session has other tasks, all its plans on
 *    this task share one set, so that a function that another task calls back is found in it.
 * 2. The set is reference-counted, not the single callable: the plan holds one reference, and code
 *    that uses a callable after the plan is freed holds another. The plans of callables hold none.
 * 3. A call is a step of its own. Its parent is the step of the kernel that made the call: the call
 *    has the parent's deadline and trace, and is cancelled with the parent.
 * 4. The nodes of a body may use all devices of the session. A body with nodes on other tasks is
 *    partitioned by process like any graph. This task drives the parts (far.h), even if another
 *    task drives the step that the call belongs to.
 */
#ifndef LEAT_CALLABLE_H
#define LEAT_CALLABLE_H

#include "runtime/plan.h"

typedef struct leat_callables leat_callables;

enum {
    LEAT_MOST_CALL_DEPTH = 1000,        /* Nested calls. */
    LEAT_MOST_CALLS_UNDER_WAY = 1 << 16 /* Calls of one set that have not ended. */
};

/* Gives a reference to the set for a plan with options o: a new one, or that of the session (rule
 * 1). graphs: the n graphs of the plan, some of which may be NULL. The library of each graph has
 * the functions that its nodes name; they are copied to the set. */
leat_status leat_callables_of(leat_graph *const *graphs, int n, const leat_plan_options *o,
                              leat_callables **out) LEAT_MUST_CHECK;
void leat_callables_ref(leat_callables *s);
void leat_callables_unref(leat_callables *s); /* s may be NULL. */
/* To be called before the nodes of a plan that uses the set are freed: the set finds callables by
 * addresses in nodes, and freed addresses may be used again by other nodes. s may be NULL. */
void leat_callables_forget_nodes(leat_callables *s);

/* *out: the callable of f, or of the gradient of f; borrowed from the set. Nodes of the function
 * that name no device run on `device`, a full name that must outlive the set. */
leat_status leat_callables_get(leat_callables *s, const leat_func *f, bool gradient,
                               const char *device, leat_callable **out) LEAT_MUST_CHECK;
/* Whether some function of c's set has an op with a seed: what the op gives depends on how often
 * its kernel has run. */
bool leat_callable_seeded(const leat_callable *c);
/* Gives a set with the functions and devices of s, but with kernels of its own. */
leat_callables *leat_callables_again(leat_callables *s);
/* Whether the kernel is part of such a set. */
bool leat_kernel_again(const leat_kernel *k);
/* Returns the set of the plan that the kernel is part of; NULL if the kernel's node names no
 * function. */
leat_callables *leat_kernel_callables(leat_kernel *k);
/* *out: the full name of the first device of the session that fits `name`, which may be partial as
 * in "/job:ps"; borrowed from the set. NOT_FOUND, with a list of the session's devices, if none
 * fits. */
leat_status leat_callables_find_device(const leat_callables *s, const char *name,
                                       const char **out) LEAT_MUST_CHECK;

#endif
