/* summary.h -- what kernels of summaries share. */
#ifndef LEAT_KERNELS_CPU_SUMMARY_H
#define LEAT_KERNELS_CPU_SUMMARY_H

#include "kernels/cpu/cpu.h"
#include "proto/event.pb-c.h"

/* Sets output 0 to the message, as a string. */
leat_status leat_summary_put(leat_kernel *k, const Leat__Summary *m) LEAT_MUST_CHECK;
/* Element i of a tensor of tags; borrowed. */
char *leat_summary_tag(const leat_tensor *t, int64_t i);

#endif
