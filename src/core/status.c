/* status.c -- an error is one allocation: the header, the message, the file name. If it cannot be
 * allocated, a static status that is never freed is used, so that an error is not lost when memory
 * is exhausted. */
#include "core/log.h"
#include "core/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MESSAGE = 64 * 1024 };

struct leat_status_s {
#ifdef LEAT_CHECK_HANDLES
    leat_object object;
#endif
    leat_code code;
    int line;
    const char *message; /* message and file point into text, or to static strings */
    const char *file;
    char text[];
};

static struct leat_status_s no_memory = {.code = LEAT_RESOURCE_EXHAUSTED,
                                         .line = __LINE__,
                                         .message = "out of memory while reporting an error",
                                         .file = "src/core/status.c"};

/* The message is the concatenation of a and b. */
static leat_status make(leat_code code, const char *file, int line, const char *a, size_t a_n,
                        const char *b, size_t b_n)
{
    if (a_n > MAX_MESSAGE)
        a_n = MAX_MESSAGE;
    if (b_n > MAX_MESSAGE - a_n)
        b_n = MAX_MESSAGE - a_n;
    size_t file_n = strlen(file) + 1;
    leat_status s = malloc(sizeof(*s) + a_n + b_n + 1 + file_n);
    if (!s)
        return &no_memory;
#ifdef LEAT_CHECK_HANDLES
    leat_object_init(&s->object, LEAT_OBJECT_STATUS);
#endif
    s->code = code;
    s->line = line;
    memcpy(s->text, a, a_n);
    memcpy(s->text + a_n, b, b_n);
    s->text[a_n + b_n] = '\0';
    memcpy(s->text + a_n + b_n + 1, file, file_n);
    s->message = s->text;
    s->file = s->text + a_n + b_n + 1;
    return s;
}

/* Formats into small, or, if that is too short, into memory that is given in *big. */
static const char *format(char *small, size_t small_n, char **big, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(small, small_n, fmt, ap);
    *big = NULL;
    if (n < 0)
        small[0] = '\0';
    if (n >= (int)small_n) {
        size_t size = n < MAX_MESSAGE ? (size_t)n + 1 : MAX_MESSAGE + 1;
        *big = malloc(size);
        if (*big)
            vsnprintf(*big, size, fmt, again);
    }
    va_end(again);
    return *big ? *big : small;
}

leat_code leat_status_code(leat_status s)
{
    return s ? s->code : LEAT_OK;
}

const char *leat_status_message(leat_status s)
{
    return s ? s->message : "";
}

const char *leat_status_file(leat_status s)
{
    return s ? s->file : "";
}

int leat_status_line(leat_status s)
{
    return s ? s->line : 0;
}

const char *leat_code_name(leat_code code)
{
    switch (code) {
#define X(name, number)                                                                            \
    case LEAT_##name:                                                                              \
        return #name;
        LEAT_CODES(X)
#undef X
    }
    return "UNKNOWN";
}

void leat_status_free(leat_status s)
{
#ifdef LEAT_CHECK_HANDLES
    if (s && s != &no_memory && LEAT_USABLE(STATUS, s))
        leat_object_free(&s->object);
#else
    if (s != &no_memory)
        free(s);
#endif
}

leat_status leat_status_copy(leat_status s)
{
    if (!s || s == &no_memory)
        return s;
    return make(s->code, s->file, s->line, s->message, strlen(s->message), "", 0);
}

leat_status leat_status_new(leat_code code, const char *file, int line, const char *fmt, ...)
{
    if (code == LEAT_OK)
        return NULL;
    char small[512], *big;
    va_list ap;
    va_start(ap, fmt);
    const char *message = format(small, sizeof small, &big, fmt, ap);
    va_end(ap);
    leat_status s = make(code, file ? file : "", line, message, strlen(message), "", 0);
    free(big);
    return s;
}

/* s with text added before or behind its message. */
static leat_status extend(leat_status s, bool front, const char *fmt, va_list ap)
{
    char small[512], *big;
    const char *text = format(small, sizeof small, &big, fmt, ap);
    const char *a = front ? text : s->message, *b = front ? s->message : text;
    leat_status longer = make(s->code, s->file, s->line, a, strlen(a), b, strlen(b));
    free(big);
    if (longer == &no_memory) /* keep the shorter message, which says more */
        return s;
    leat_status_free(s);
    return longer;
}

leat_status leat_status_prefix(leat_status s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    s = s ? extend(s, true, fmt, ap) : NULL;
    va_end(ap);
    return s;
}

leat_status leat_status_suffix(leat_status s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    s = s ? extend(s, false, fmt, ap) : NULL;
    va_end(ap);
    return s;
}

leat_status leat_status_first(leat_status a, leat_status b)
{
    if (!a)
        return b;
    leat_status_free(b);
    return a;
}

void leat_status_die(leat_status s, const char *file, int line)
{
    if (!s)
        return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, leat_code_name(s->code), s->message);
    if (leat_log_wanted(LEAT_LOG_INFO))
        leat_log_write(LEAT_LOG_INFO, s->file, s->line, "the error was made here");
    exit(1);
}
