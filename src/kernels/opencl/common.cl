/* common.cl -- what begins every program: the words in which kernels are written, so that they can
 * be compiled as CUDA as well, where these macros would have other meanings.
 *
 * A kernel gets each tensor as TENSOR(x), a buffer and an offset in bytes, and reads it by
 * OF(type, x). It goes through n elements, or n rows, by EACH(i, n), whose rounds are independent
 * of each other. On a CPU a work item takes a run of neighbours, and the compiler makes vectors of
 * the loop; on a GPU neighbours belong to neighbouring work items.
 */
#define KERNEL __kernel void
#define GLOBAL __global
#define LOCAL __local
#define DEVICE static inline
#define TENSOR(x) GLOBAL char *x##_buffer, ulong x##_offset
#define OF(type, x) ((GLOBAL type *)(x##_buffer + x##_offset))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define ITEM(d) ((int)get_local_id(d))
#define GROUP(d) ((int)get_group_id(d))

#define UNROLL _Pragma("clang loop unroll(full)")
#ifdef LEAT_ON_CPU
#define VECTORS _Pragma("clang loop vectorize(assume_safety)")
DEVICE long run_begin(long n)
{
    long all = (long)get_global_size(0), each = (n + all - 1) / all;
    return min((long)get_global_id(0) * each, n);
}
DEVICE long run_end(long n)
{
    long all = (long)get_global_size(0), each = (n + all - 1) / all;
    return min(((long)get_global_id(0) + 1) * each, n);
}
#define EACH(i, n) VECTORS for (long i = run_begin(n), end_##i = run_end(n); i < end_##i; i++)
/* The same for rounds that are loops themselves. */
#define EACH_ROW(i, n) for (long i = run_begin(n), end_##i = run_end(n); i < end_##i; i++)
#else
#define VECTORS
#define EACH(i, n) for (long i = get_global_id(0); i < (n); i += get_global_size(0))
#define EACH_ROW(i, n) EACH(i, n)
#endif

enum { RANK = 8 };
/* How one or two operands lie under the elements of a result: sizes, outermost first, and strides
 * in elements. Dimensions in front of the last `rank` are not used. */
typedef struct walk {
    int rank;
    int dim[RANK], a[RANK], b[RANK];
} walk;

/* Where element i of all dimensions but the last `inner` ones is in both operands. */
DEVICE int2 walk_at(const walk *w, int i, int inner)
{
    int2 at = (int2)(0, 0);
    for (int d = w->rank - 1 - inner; d >= 0; d--) {
        int n = w->dim[d], q = i / n, r = i - q * n;
        at += (int2)(r * w->a[d], r * w->b[d]);
        i = q;
    }
    return at;
}
