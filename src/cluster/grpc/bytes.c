/* bytes.c -- see bytes.h. */
#include "cluster/grpc/bytes.h"

#include <stdlib.h>

#include "core/alloc.h"

static void unref_tensor(void *tensor)
{
    leat_tensor_unref(tensor);
}

/* unref_tensor runs in a thread of gRPC. gRPC orders it behind this function, but ThreadSanitizer
 * cannot see that. Giving a reference back here, which releases, orders the two where it can:
 * unref_tensor acquires. */
grpc_slice leat_bytes_of_tensor(leat_tensor *t, const void *data, size_t n)
{
    leat_tensor_unref(leat_tensor_ref(t));
    return grpc_slice_new_with_user_data((void *)data, n, unref_tensor, t);
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
            slices[n++] = leat_bytes_of_tensor(p->tensor, leat_tensor_data(p->tensor), size);
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
