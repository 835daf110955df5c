/* levels.c -- which of the CPU's kernels this process uses.
 *
 * The folder cpu/ is compiled once for each level of LEAT_CPU_LEVELS in CMake: on x86-64 for any
 * processor, for those with AVX2 and FMA (x86-64-v3), and for those with AVX-512 (x86-64-v4). In
 * the library the symbols of a level are local to it but for its leat_cpu_kernels, so that no
 * function of one level calls one of another. The process takes the highest level that its
 * processor has, or the one that the environment's LEAT_CPU names.
 *
 * The whole folder is compiled several times, not only the files with products and element-wise
 * loops: those are 80 % of the machine code, and the other files would have to be kept from calling
 * them directly.
 */
#include "kernels/levels.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/strbuf.h"

#if defined(__x86_64__)
static bool __attribute__((unused)) has_x86_64(void)
{
    return true;
}

/* These features distinguish the levels on all existing processors. The builtins also check that
 * the operating system saves the registers. */
static bool __attribute__((unused)) has_x86_64_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}

static bool __attribute__((unused)) has_x86_64_v4(void)
{
    return has_x86_64_v3() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#define HAS(id) has_##id
#else
static bool has_only(void)
{
    return true;
}
#define HAS(id) has_only
#endif

#define X(id, name) extern const leat_cpu_kernels LEAT_CPU_KERNELS(id);
LEAT_CPU_LEVELS
#undef X

typedef struct level {
    const char *name;
    bool (*has)(void);
    const leat_cpu_kernels *kernels;
} level;

static const level levels[] = {/* from the lowest to the highest */
#define X(id, name) {name, HAS(id), &LEAT_CPU_KERNELS(id)},
                               LEAT_CPU_LEVELS
#undef X
};
enum { LEVELS = sizeof levels / sizeof *levels };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const level *chosen; /* NULL: `failure` says why. */
static leat_strbuf failure;

static void add_names(leat_strbuf *b)
{
    for (int i = 0; i < LEVELS; i++)
        leat_strbuf_printf(b, "%s%s",
                           i == 0            ? ""
                           : i == LEVELS - 1 ? " and "
                                             : ", ",
                           levels[i].name);
}

static void choose(void)
{
    const char *want = getenv("LEAT_CPU");
    const bool any = !want || !*want;
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
    for (int i = 0; i < LEVELS; i++)
        if (any ? levels[i].has() : strcmp(levels[i].name, want) == 0)
            chosen = &levels[i];
    if (chosen && chosen->has())
        return;
    if (any)
        leat_strbuf_puts(&failure, "This CPU lacks what this libleat was built for");
    else
        leat_strbuf_printf(&failure, "LEAT_CPU is %s, which this %s", want,
                           chosen ? "CPU lacks" : "libleat was not built for");
    chosen = NULL;
    leat_strbuf_puts(&failure, "; it was built for ");
    add_names(&failure);
}

leat_status leat_cpu_level_check(void)
{
    pthread_once(&once, choose);
    LEAT_REQUIRE(chosen, FAILED_PRECONDITION, "%s", failure.s);
    return NULL;
}

static const leat_cpu_kernels *in_use(void)
{
    pthread_once(&once, choose);
    return chosen ? chosen->kernels : levels[0].kernels;
}

const leat_kernel_def *const *leat_cpu_kernel_lists(void)
{
    return in_use()->lists;
}

const char *leat_cpu_level(void)
{
    pthread_once(&once, choose);
    return chosen ? chosen->name : "none";
}

/* ---- leat/rows.h, for kernels of programs ---- */

leat_status leat_row1_run(leat_kernel *k)
{
    return in_use()->row1_run(k);
}

void leat_row1_bind(const leat_node *n, const leat_row1_fn *fns, double unit_ns, void *state)
{
    in_use()->row1_bind(n, fns, unit_ns, state);
}

leat_status leat_row2_run(leat_kernel *k)
{
    return in_use()->row2_run(k);
}

leat_status leat_row2_run_same(leat_kernel *k)
{
    return in_use()->row2_run_same(k);
}

void leat_row2_bind(const leat_node *n, const leat_row2_fn *fns, double unit_ns, const char *error,
                    void *state)
{
    in_use()->row2_bind(n, fns, unit_ns, error, state);
}

leat_status leat_apply_init(const leat_node *n, void *state)
{
    return in_use()->apply_init(n, state);
}

leat_status leat_apply_run(leat_kernel *k)
{
    return in_use()->apply_run(k);
}
