/* bind.h -- a thread that stays on one CPU for some time, as those that read shared memory do
 * (cluster/shm/rings.c). Threads that it starts would stay there, too, for ever: what such a thread
 * may come to that starts one, or lets gRPC start one, calls leat_unbind first. */
#ifndef LEAT_CORE_BIND_H
#define LEAT_CORE_BIND_H

#include <stdbool.h>

/* Moves this thread to the CPU, if it may run there. */
void leat_bind(int cpu);
void leat_unbind(void); /* lets it run where it was free to run before */

#endif
