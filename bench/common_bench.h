/* common_bench.h -- what benchmarks of training share: time, random numbers, traces of steps, and
 * the roof, which is what the machine can do. */
#ifndef LEAT_BENCH_COMMON_H
#define LEAT_BENCH_COMMON_H

#include <leat/leat.h>

double bench_now(void);     /* seconds */
double bench_cpu(void);     /* seconds of processor time of all threads */
double bench_uniform(void); /* in [0, 1), the same numbers in each run */

/* Prints "product_gflops N": the GFLOP/s of a product of matrices that stay in cache, by all
 * threads. */
void bench_product_roof(double seconds);
/* Prints "memory_gb_per_s N": the GB/s, read and written, of a sum of two tensors of `count`
 * floats, by all threads. */
void bench_memory_roof(double seconds, int64_t count);
/* Writes a Chrome trace of each of the steps that fit into the time, a line each, to the file. */
void bench_trace_steps(leat_session *s, leat_feeds feeds, leat_out target, double seconds,
                       const char *path);
/* Prints "peak_mb N": the most memory that the process has had. */
void bench_print_peak(void);

#endif
