/* memory_plan.h -- which outputs may use the same memory, step after step. */
#ifndef LEAT_MEMORY_PLAN_H
#define LEAT_MEMORY_PLAN_H

typedef struct leat_executor leat_executor;

/* Gives each output of the root frame a slot; outputs with the same slot are never alive at the
 * same time. A run keeps a buffer for each slot (kernel.c, from_plan), so that in steady state
 * nothing is allocated. A buffer that still has other references is not used again: to keep a
 * tensor costs an allocation, and never gives a wrong value. */
void leat_memory_plan(leat_executor *e);

#endif
