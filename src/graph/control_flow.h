/* control_flow.h -- what gradients of the flow ops need to know of conds and loops. */
#ifndef LEAT_CONTROL_FLOW_H
#define LEAT_CONTROL_FLOW_H

#include <leat/extend.h>

leat_status leat_switch_grad(leat_grad *g);
leat_status leat_merge_grad(leat_grad *g);
leat_status leat_enter_grad(leat_grad *g);
leat_status leat_exit_grad(leat_grad *g);
leat_status leat_next_iteration_grad(leat_grad *g);

#endif
