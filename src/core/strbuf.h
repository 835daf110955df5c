/* strbuf.h -- a byte string that grows. {0} is an empty one. s is NUL-terminated once something was
 * added; leat_strbuf_text never gives NULL. */
#ifndef LEAT_CORE_STRBUF_H
#define LEAT_CORE_STRBUF_H

#include <stdarg.h>
#include <stddef.h>

typedef struct leat_strbuf {
    char *s;
    size_t n, cap;
} leat_strbuf;

void leat_strbuf_release(leat_strbuf *b);
void leat_strbuf_clear(leat_strbuf *b); /* keeps the memory */
void leat_strbuf_add(leat_strbuf *b, const void *bytes, size_t n);
void leat_strbuf_puts(leat_strbuf *b, const char *s);
void leat_strbuf_putc(leat_strbuf *b, char c);
void leat_strbuf_printf(leat_strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void leat_strbuf_vprintf(leat_strbuf *b, const char *fmt, va_list ap);
const char *leat_strbuf_text(const leat_strbuf *b);
char *leat_strbuf_take(leat_strbuf *b); /* gives the bytes, to be freed by free(); b is empty */

#endif
