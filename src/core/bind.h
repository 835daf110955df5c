/* bind.h -- binds a thread to one CPU for some time, as is done with threads that read
 * connections (cluster/shm/rings.c, cluster/socket/stream.c). A new thread inherits the CPUs of the
 * thread that starts it, so code that starts a thread, or that lets gRPC start one, calls
 * leat_unbind first. */
#ifndef LEAT_CORE_BIND_H
#define LEAT_CORE_BIND_H

#include <stdbool.h>

/* Binds the calling thread to the CPU, if the thread may run on it; otherwise does nothing. */
void leat_bind(int cpu);
void leat_unbind(void); /* Lets the calling thread run on the CPUs that it had before. */

#endif
