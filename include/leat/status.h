/* status.h -- errors as values.
 *
 * A leat_status is NULL on success. Otherwise it carries one of gRPC's canonical codes and a
 * message. If the error is about a node, the message names the node, and the file and line of the
 * user's program that made it. A status may be passed between threads, and is sent between tasks.
 * Its owner frees it once, with leat_status_free, or returns it to the caller.
 */
#ifndef LEAT_STATUS_H
#define LEAT_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define LEAT_VISIBLE __attribute__((visibility("default")))
#define LEAT_MUST_CHECK __attribute__((warn_unused_result))
#define LEAT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define LEAT_VISIBLE
#define LEAT_MUST_CHECK
#define LEAT_PRINTF(fmt, args)
#endif

/* Values that macros of these headers pass on: an array and how many elements it has, the address
 * of a struct, a struct. They live to the end of the block in C, of the statement in C++, where
 * macros with ".member = value" arguments want C++20. */
#ifdef __cplusplus
#include <initializer_list>
template <class T> const T *leat_address_of(const T &x)
{
    return &x;
}
#define LEAT_ARRAY(type, ...) (std::initializer_list<type>{__VA_ARGS__}.begin())
#define LEAT_COUNT(type, ...) ((int)std::initializer_list<type>{__VA_ARGS__}.size())
#define LEAT_OPTIONS(type, ...) leat_address_of(type{__VA_ARGS__})
#define LEAT_STRUCT(type, ...) (type{__VA_ARGS__})
#define LEAT_API extern "C" LEAT_VISIBLE
#else
#define LEAT_ARRAY(type, ...) ((const type[]){__VA_ARGS__})
#define LEAT_COUNT(type, ...) ((int)(sizeof((const type[]){__VA_ARGS__}) / sizeof(type)))
#define LEAT_OPTIONS(type, ...) (&(type){__VA_ARGS__})
#define LEAT_STRUCT(type, ...) ((type){__VA_ARGS__})
#define LEAT_API LEAT_VISIBLE
#endif

/* X(NAME, number on the wire): the enum and the names are made from this list. */
#define LEAT_CODES(X)                                                                              \
    X(OK, 0)                                                                                       \
    X(CANCELLED, 1)                                                                                \
    X(UNKNOWN, 2)                                                                                  \
    X(INVALID_ARGUMENT, 3)                                                                         \
    X(DEADLINE_EXCEEDED, 4)                                                                        \
    X(NOT_FOUND, 5)                                                                                \
    X(ALREADY_EXISTS, 6)                                                                           \
    X(PERMISSION_DENIED, 7)                                                                        \
    X(RESOURCE_EXHAUSTED, 8)                                                                       \
    X(FAILED_PRECONDITION, 9)                                                                      \
    X(ABORTED, 10)                                                                                 \
    X(OUT_OF_RANGE, 11)                                                                            \
    X(UNIMPLEMENTED, 12)                                                                           \
    X(INTERNAL, 13)                                                                                \
    X(UNAVAILABLE, 14)                                                                             \
    X(DATA_LOSS, 15)                                                                               \
    X(UNAUTHENTICATED, 16)

typedef enum leat_code {
#define X(name, number) LEAT_##name = number,
    LEAT_CODES(X)
#undef X
} leat_code;

typedef struct leat_status_s *leat_status; /* NULL is OK */

LEAT_API leat_code leat_status_code(leat_status s);
LEAT_API const char *leat_status_message(leat_status s); /* "" for OK; lives as long as s */
/* Where the error was made: the file and line of leat_error, in Leat's own sources for Leat's
 * errors. For reports of bugs in Leat. */
LEAT_API const char *leat_status_file(leat_status s);
LEAT_API int leat_status_line(leat_status s);
LEAT_API const char *leat_code_name(leat_code code); /* "INVALID_ARGUMENT" */
LEAT_API void leat_status_free(leat_status s);       /* of NULL does nothing */
LEAT_API leat_status leat_status_copy(leat_status s) LEAT_MUST_CHECK;

/* Gives a new error; use the macro leat_error. A message is cut at 64 KB. */
LEAT_API leat_status leat_status_new(leat_code code, const char *file, int line, const char *fmt,
                                     ...) LEAT_PRINTF(4, 5) LEAT_MUST_CHECK;
/* Each takes s and gives it back with text in front of, or behind, its message. OK stays OK. */
LEAT_API leat_status leat_status_prefix(leat_status s, const char *fmt, ...) LEAT_PRINTF(2, 3)
    LEAT_MUST_CHECK;
LEAT_API leat_status leat_status_suffix(leat_status s, const char *fmt, ...) LEAT_PRINTF(2, 3)
    LEAT_MUST_CHECK;
/* Keeps the first of two errors: takes both, gives one. */
LEAT_API leat_status leat_status_first(leat_status a, leat_status b) LEAT_MUST_CHECK;
/* If s is an error, prints "file:line: CODE: message" to standard error, logs at level info where
 * in Leat the error was made, and exits with 1. For users' programs; nothing inside the library
 * calls this function. */
LEAT_API void leat_status_die(leat_status s, const char *file, int line);

/* For messages: the one of n names that is most like `name`, if they differ in a few characters
 * only; else NULL. */
LEAT_API const char *leat_nearest_name(const char *name, const char *const *names, int n);

#define leat_error(code, ...) leat_status_new(LEAT_##code, __FILE__, __LINE__, __VA_ARGS__)

#define LEAT_TRY(expr)                                                                             \
    do {                                                                                           \
        leat_status leat_try_s = (expr);                                                           \
        if (leat_try_s)                                                                            \
            return leat_try_s;                                                                     \
    } while (0)

/* LEAT_REQUIRE(rank == 2, INVALID_ARGUMENT, "MatMul wants rank 2, got %d", rank) */
#define LEAT_REQUIRE(cond, code, ...)                                                              \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return leat_error(code, __VA_ARGS__);                                                  \
    } while (0)

#define LEAT_DIE_ON_ERROR(expr) leat_status_die((expr), __FILE__, __LINE__)

/* ---- Log: levels 0 info, 1 warning, 2 error. Silent until a sink is set, or until the
 * environment variable TF_CPP_MIN_LOG_LEVEL is set, which sends levels at and above it to
 * standard error. ---- */
typedef enum leat_log_level { LEAT_LOG_INFO, LEAT_LOG_WARNING, LEAT_LOG_ERROR } leat_log_level;
typedef void (*leat_log_fn)(void *arg, leat_log_level level, const char *file, int line,
                            const char *message);
/* Every message at or above `least` goes to fn; NULL restores the default. */
LEAT_API void leat_log_set_sink(leat_log_fn fn, void *arg, leat_log_level least);

#endif
