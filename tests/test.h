/* test.h -- what a test program needs: a table of cases, checks that report and go on.
 *
 *     static void empty(void) { CHECK_INT(leat_map_get(&m, "a") == NULL, 1); }
 *     int main(int argc, char **argv) { return RUN(argc, argv, {"empty", empty}); }
 *
 * A program runs all its cases, or those named on its command line; its last line is
 * "N passed, N failed, N skipped"; its exit code is 0 only if none failed.
 */
#ifndef LEAT_TEST_H
#define LEAT_TEST_H

#include <leat/status.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int test_failures; /* failed checks of the running case */
static const char *test_skipped;

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            test_failures++;                                                                       \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);                              \
        }                                                                                          \
    } while (0)
/* Waits until it is so, for a minute at most: what other threads and processes do takes long on a
 * busy machine. */
#define CHECK_SOON(cond)                                                                           \
    do {                                                                                           \
        int tries_ = 0;                                                                            \
        while (!(cond) && ++tries_ < 60000)                                                        \
            usleep(1000);                                                                          \
        if (tries_ == 60000) {                                                                     \
            test_failures++;                                                                       \
            printf("%s:%d: not so after a minute: %s\n", __FILE__, __LINE__, #cond);               \
        }                                                                                          \
    } while (0)
#define CHECK_INT(a, b)                                                                            \
    do {                                                                                           \
        long long a_ = (long long)(a), b_ = (long long)(b);                                        \
        if (a_ != b_) {                                                                            \
            test_failures++;                                                                       \
            printf("%s:%d: %s is %lld, want %lld\n", __FILE__, __LINE__, #a, a_, b_);              \
        }                                                                                          \
    } while (0)
#define CHECK_STR(a, b)                                                                            \
    do {                                                                                           \
        const char *a_ = (a), *b_ = (b);                                                           \
        if (!a_ || !b_ || strcmp(a_, b_) != 0) {                                                   \
            test_failures++;                                                                       \
            printf("%s:%d: %s is \"%s\", want \"%s\"\n", __FILE__, __LINE__, #a, a_ ? a_ : "NULL", \
                   b_ ? b_ : "NULL");                                                              \
        }                                                                                          \
    } while (0)
#define CHECK_NEAR(a, b, tolerance)                                                                \
    do {                                                                                           \
        double a_ = (a), b_ = (b);                                                                 \
        if (!(fabs(a_ - b_) <= (tolerance))) {                                                     \
            test_failures++;                                                                       \
            printf("%s:%d: %s is %.9g, want %.9g\n", __FILE__, __LINE__, #a, a_, b_);              \
        }                                                                                          \
    } while (0)
#define CHECK_OK(expr)                                                                             \
    do {                                                                                           \
        leat_status s_ = (expr);                                                                   \
        if (s_) {                                                                                  \
            test_failures++;                                                                       \
            printf("%s:%d: %s: %s: %s (%s:%d)\n", __FILE__, __LINE__, #expr,                       \
                   leat_code_name(leat_status_code(s_)), leat_status_message(s_),                  \
                   leat_status_file(s_), leat_status_line(s_));                                    \
            leat_status_free(s_);                                                                  \
        }                                                                                          \
    } while (0)
/* The call fails with this code, and its message contains these words. */
#define CHECK_ERROR(expr, want_code, words)                                                        \
    do {                                                                                           \
        leat_status s_ = (expr);                                                                   \
        if (leat_status_code(s_) != LEAT_##want_code ||                                            \
            !strstr(leat_status_message(s_), (words))) {                                           \
            test_failures++;                                                                       \
            printf("%s:%d: %s gives %s: %s; want %s: ...%s...\n", __FILE__, __LINE__, #expr,       \
                   leat_code_name(leat_status_code(s_)), leat_status_message(s_), #want_code,      \
                   (words));                                                                       \
        }                                                                                          \
        leat_status_free(s_);                                                                      \
    } while (0)
#define SKIP(why)                                                                                  \
    do {                                                                                           \
        test_skipped = (why);                                                                      \
        return;                                                                                    \
    } while (0)

typedef struct test_case {
    const char *name;
    void (*run)(void);
} test_case;

/* 0: passed; 1: some case failed; 2: there is no case of that name. */
static inline int test_run(int argc, char **argv, const test_case *cases, int n)
{
    int passed = 0, failed = 0, skipped = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    setenv("LEAT_DATA_URL", "none", 0); /* no test downloads data */
    for (int i = 0; i < n; i++) {
        int wanted = argc < 2;
        for (int a = 1; a < argc; a++)
            wanted |= strcmp(argv[a], cases[i].name) == 0;
        if (!wanted)
            continue;
        test_failures = 0;
        test_skipped = NULL;
        cases[i].run();
        if (test_failures)
            failed++, printf("FAILED %s\n", cases[i].name);
        else if (test_skipped)
            skipped++, printf("skipped %s: %s\n", cases[i].name, test_skipped);
        else
            passed++;
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : passed + skipped ? 0 : 2;
}

#define RUN(argc, argv, ...)                                                                       \
    test_run((argc), (argv), (const test_case[]){__VA_ARGS__},                                     \
             (int)(sizeof((test_case[]){__VA_ARGS__}) / sizeof(test_case)))

#endif
