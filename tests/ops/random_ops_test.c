/* random_ops_test.c -- every registered op, many times, with random attributes and inputs: there is
 * a result or a status, never a crash (run it under the sanitizers). random_ops_test OP [SEED]
 * repeats one op. */
#define _GNU_SOURCE /* nftw */
#include "test.h"

#include <ftw.h>
#include <unistd.h>

#include "core/block.h"
#include "fuzz/random_op.h"

static uint64_t state = 88172645463325252u;

static uint8_t next_byte(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint8_t)(state >> 24);
}

static void tries(int op, int n)
{
    uint8_t data[512];
    for (int t = 0; t < n; t++) {
        for (size_t i = 0; i < sizeof(data); i++)
            data[i] = next_byte();
        random_op(data, sizeof(data), op);
    }
}

#if LEAT_ASAN
int __lsan_do_recoverable_leak_check(void);
#define LEAKS() __lsan_do_recoverable_leak_check()
#else
#define LEAKS() 0
#endif

static void every_op(void)
{
    leat_cpu_allocator()->limit = 8 << 20;
    for (int i = 0; i < leat_op_count(); i++) {
        tries(i, 20);
        if (LEAKS() && !test_failures) {
            test_failures++;
            printf("%s leaks\n", leat_op_at_index(i)->def->name);
        }
    }
    printf("%d ops, 20 tries each\n", leat_op_count());
}

static int remove_path(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    return remove(path);
}

/* Ops that write files do so in a directory that is removed at the end. */
int main(int argc, char **argv)
{
    char dir[] = "/tmp/leat_random_ops_test_XXXXXX";
    int code = -1;
    if (!mkdtemp(dir) || chdir(dir) != 0)
        return 1;
    for (int i = 0; argc > 1 && code < 0 && i < leat_op_count(); i++)
        if (strcmp(leat_op_at_index(i)->def->name, argv[1]) == 0) {
            state = argc > 2 ? strtoull(argv[2], NULL, 0) : state;
            tries(i, 2000);
            code = 0;
        }
    if (code < 0)
        code = RUN(argc, argv, {"every_op", every_op});
    nftw(dir, remove_path, 16, FTW_DEPTH | FTW_PHYS);
    return code;
}
