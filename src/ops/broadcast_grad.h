/* broadcast_grad.h -- the gradients of ops that broadcast their two inputs. */
#ifndef LEAT_OPS_BROADCAST_GRAD_H
#define LEAT_OPS_BROADCAST_GRAD_H

#include <leat/extend.h>
#include <leat/ops.h>

/* Sets the gradients of inputs 0 and 1 to dx and dy, which have the output's shape: each is summed
 * over the dimensions along which its input was repeated. A NULL node: no gradient. */
leat_status leat_grad_broadcast(leat_grad *g, leat_out dx, leat_out dy) LEAT_MUST_CHECK;

#endif
