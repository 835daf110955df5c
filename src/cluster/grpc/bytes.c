/* bytes.c -- see bytes.h. */
#include "cluster/grpc/bytes.h"

#include <grpc/byte_buffer_reader.h>
#include <stdlib.h>

#include "core/alloc.h"

static void let_go(void *tensor)
{
    leat_tensor_unref(tensor);
}

grpc_byte_buffer *leat_bytes_to_send(leat_outgoing *o)
{
    enum { HERE = 8 };
    grpc_slice here[HERE], *slices = here;
    if (2 * o->n_pieces + 1 > HERE)
        slices = leat_new_array(grpc_slice, 2 * o->n_pieces + 1);
    grpc_slice text = o->text.s
                          ? grpc_slice_new_with_user_data(o->text.s, o->text.n, free, o->text.s)
                          : grpc_empty_slice();
    size_t n = 0, at = 0;
    for (int i = 0; i < o->n_pieces; i++) {
        const leat_piece *p = &o->pieces[i];
        if (p->end > at)
            slices[n++] = grpc_slice_sub(text, at, p->end);
        at = p->end;
        size_t size = leat_tensor_bytes(p->tensor);
        if (size)
            slices[n++] = grpc_slice_new_with_user_data((void *)leat_tensor_data(p->tensor), size,
                                                        let_go, p->tensor);
        else
            leat_tensor_unref(p->tensor);
    }
    if (o->text.n > at)
        slices[n++] = grpc_slice_sub(text, at, o->text.n);
    grpc_slice_unref(text);
    grpc_byte_buffer *b = grpc_raw_byte_buffer_create(slices, n);
    for (size_t i = 0; i < n; i++)
        grpc_slice_unref(slices[i]);
    if (slices != here)
        free(slices);
    free(o->pieces);
    *o = (leat_outgoing){0};
    return b;
}

leat_incoming leat_bytes_received(grpc_byte_buffer *b)
{
    leat_slice *v = NULL;
    int n = 0, cap = 0;
    size_t size = 0;
    grpc_byte_buffer_reader r;
    if (b && grpc_byte_buffer_reader_init(&r, b)) {
        for (grpc_slice *s; grpc_byte_buffer_reader_peek(&r, &s);) {
            if (!GRPC_SLICE_LENGTH(*s))
                continue;
            leat_grow(v, n, cap);
            v[n++] = (leat_slice){GRPC_SLICE_START_PTR(*s), GRPC_SLICE_LENGTH(*s)};
            size += GRPC_SLICE_LENGTH(*s);
        }
        grpc_byte_buffer_reader_destroy(&r);
    }
    return (leat_incoming){v, n, size, NULL};
}
