/* loop_grad.c -- gradients of loops. */
#include "graph/loop_grad.h"

leat_status leat_loops_find(leat_backprop *b)
{
    return NULL;
}

leat_status leat_loops_begin(leat_backprop *b)
{
    return NULL;
}

void leat_loops_enter(leat_backprop *b, leat_node *n, bool before) {}

void leat_loops_leave(leat_backprop *b, leat_node *n, bool before) {}

leat_status leat_loops_check(leat_backprop *b, leat_node *n)
{
    return NULL;
}

void leat_loops_ready(leat_backprop *b, leat_out x)
{
    leat_backprop_enqueue(b, x.node);
}

leat_status leat_loops_end(leat_backprop *b)
{
    return NULL;
}

bool leat_is_loop_switch(const leat_node *n)
{
    return false;
}
