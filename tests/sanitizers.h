/* sanitizers.h -- for tests of what there is no memory for: sanitizers give NULL then, as the C
 * library does, instead of ending the process. */
#ifndef LEAT_TESTS_SANITIZERS_H
#define LEAT_TESTS_SANITIZERS_H

#define SANITIZER_OPTIONS(name)                                                                    \
    __attribute__((visibility("default"))) const char *name(void);                                 \
    const char *name(void)                                                                         \
    {                                                                                              \
        return "allocator_may_return_null=1";                                                      \
    }
SANITIZER_OPTIONS(__asan_default_options)
SANITIZER_OPTIONS(__tsan_default_options)

#endif
