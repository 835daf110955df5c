/* strbuf.h -- a byte string that grows. {0} is an empty one. s is NUL-terminated once something was
 * added; leat_strbuf_text never gives NULL.
 *
 * Names, keys, paths and messages are small: if there is no memory for one, the process ends. A
 * string whose size a user, file or peer decides is {.checked = true}: if there is no memory for
 * more, what does not fit is left out, and so is all that comes later; its owner must call
 * leat_strbuf_check before the string is used. Where the size is known, leat_strbuf_reserve does.
 */
#ifndef LEAT_CORE_STRBUF_H
#define LEAT_CORE_STRBUF_H

#include <leat/status.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct leat_strbuf {
    char *s;
    size_t n, cap;
    bool checked;   /* the owner calls leat_strbuf_check */
    size_t lacking; /* bytes that would have been needed when there was no memory; else 0 */
} leat_strbuf;

void leat_strbuf_release(leat_strbuf *b);
void leat_strbuf_clear(leat_strbuf *b); /* keeps the memory */
/* RESOURCE_EXHAUSTED if there is no memory for `more` bytes, which can be added afterwards. */
leat_status leat_strbuf_reserve(leat_strbuf *b, size_t more) LEAT_MUST_CHECK;
void leat_strbuf_add(leat_strbuf *b, const void *bytes, size_t n);
void leat_strbuf_puts(leat_strbuf *b, const char *s);
void leat_strbuf_putc(leat_strbuf *b, char c);
void leat_strbuf_printf(leat_strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void leat_strbuf_vprintf(leat_strbuf *b, const char *fmt, va_list ap);
const char *leat_strbuf_text(const leat_strbuf *b);
/* RESOURCE_EXHAUSTED, with the size, if something was left out since the last clear. */
leat_status leat_strbuf_check(const leat_strbuf *b) LEAT_MUST_CHECK;
char *leat_strbuf_take(leat_strbuf *b); /* gives the bytes, to be freed by free(); b is empty */
/* Adds the first 200 bytes for a message: \ooo for those that cannot be printed, "..." if there are
 * more. */
void leat_strbuf_add_shown(leat_strbuf *b, const void *bytes, size_t n);

#endif
