/* strbuf.h -- a byte string that grows. {0} is an empty one. s is NUL-terminated once something was
 * added; leat_strbuf_text never gives NULL. If there is no memory for more, what does not fit is
 * left out, and so is all that comes later: who needs all of it calls leat_strbuf_check. */
#ifndef LEAT_CORE_STRBUF_H
#define LEAT_CORE_STRBUF_H

#include <leat/status.h>

#include <stdarg.h>
#include <stddef.h>

typedef struct leat_strbuf {
    char *s;
    size_t n, cap;
    size_t lacking; /* bytes that would have been needed when there was no memory; else 0 */
} leat_strbuf;

void leat_strbuf_release(leat_strbuf *b);
void leat_strbuf_clear(leat_strbuf *b); /* keeps the memory */
void leat_strbuf_add(leat_strbuf *b, const void *bytes, size_t n);
void leat_strbuf_puts(leat_strbuf *b, const char *s);
void leat_strbuf_putc(leat_strbuf *b, char c);
void leat_strbuf_printf(leat_strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void leat_strbuf_vprintf(leat_strbuf *b, const char *fmt, va_list ap);
const char *leat_strbuf_text(const leat_strbuf *b);
/* RESOURCE_EXHAUSTED, with the size, if something was left out since the last clear. */
leat_status leat_strbuf_check(const leat_strbuf *b) LEAT_MUST_CHECK;
char *leat_strbuf_take(leat_strbuf *b); /* gives the bytes, to be freed by free(); b is empty */

#endif
