/* jpeg_int.h -- libjpeg's errors, for reading and writing.
 *
 * libjpeg reports an error by calling error_exit, which must not return. It jumps to the function
 * that set `jump`; all that changes in between is in a struct that the function's caller has, so no
 * local variable is lost by the jump.
 */
#ifndef LEAT_IO_JPEG_INT_H
#define LEAT_IO_JPEG_INT_H

#include <setjmp.h>
#include <stdio.h>

#include <jerror.h>
#include <jpeglib.h>

typedef struct leat_jpeg_errors {
    struct jpeg_error_mgr mgr; /* first: libjpeg knows its address */
    jmp_buf jump;
    char why[JMSG_LENGTH_MAX]; /* libjpeg's words */
    bool no_memory;
} leat_jpeg_errors;

static inline void leat_jpeg_failed(j_common_ptr c)
{
    leat_jpeg_errors *e = (leat_jpeg_errors *)c->err;
    e->mgr.format_message(c, e->why);
    e->no_memory = e->mgr.msg_code == JERR_OUT_OF_MEMORY;
    longjmp(e->jump, 1);
}

/* Warnings are counted by libjpeg's own function; nothing is printed. */
static inline void leat_jpeg_silent(j_common_ptr c)
{
    (void)c;
}

static inline struct jpeg_error_mgr *leat_jpeg_errors_init(leat_jpeg_errors *e)
{
    jpeg_std_error(&e->mgr);
    e->mgr.error_exit = leat_jpeg_failed;
    e->mgr.output_message = leat_jpeg_silent;
    return &e->mgr;
}

#endif
