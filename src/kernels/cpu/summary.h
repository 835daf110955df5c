/* summary.h -- what kernels of summaries share: a summary is made of a kernel's inputs, and either
 * becomes the kernel's output, a string, or is written to a summary writer. */
#ifndef LEAT_KERNELS_CPU_SUMMARY_H
#define LEAT_KERNELS_CPU_SUMMARY_H

#include "kernels/cpu/cpu.h"
#include "proto/event.pb-c.h"

/* Sets output 0 to the message, as a string. A kernel without outputs writes the message to the
 * summary writer that its input 0 is a handle of, for the step that is input 1. */
leat_status leat_summary_put(leat_kernel *k, Leat__Summary *m) LEAT_MUST_CHECK;
/* The same for a message of one value. */
leat_status leat_summary_put_value(leat_kernel *k, Leat__Summary__Value *v) LEAT_MUST_CHECK;
/* The second half of leat_summary_put, in summary_writer.c. */
leat_status leat_summary_write_to(leat_kernel *k, Leat__Summary *m) LEAT_MUST_CHECK;

/* Element i of a tensor of tags; borrowed. */
char *leat_summary_tag(const leat_tensor *t, int64_t i);

/* Summaries of one value, or of several whose tags begin with `tag`. */
leat_status leat_summary_histogram(leat_kernel *k, char *tag, const char *name_in_errors,
                                   const leat_tensor *values) LEAT_MUST_CHECK;
leat_status leat_summary_tensor(leat_kernel *k, const leat_tensor *t,
                                Leat__Summary__Value *v) LEAT_MUST_CHECK;
leat_status leat_summary_images(leat_kernel *k, const char *tag, const leat_tensor *x, int64_t most,
                                const leat_tensor *bad_color) LEAT_MUST_CHECK;
leat_status leat_summary_sounds(leat_kernel *k, const char *tag, const leat_tensor *x, int64_t most,
                                float rate) LEAT_MUST_CHECK;

#endif
