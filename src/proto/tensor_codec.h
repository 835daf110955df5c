/* tensor_codec.h -- TensorProto and TensorShapeProto to leat_tensor and leat_shape, and back. */
#ifndef LEAT_PROTO_TENSOR_CODEC_H
#define LEAT_PROTO_TENSOR_CODEC_H

#include <leat/tensor.h>
#include "proto/tensor.pb-c.h"

/* Shapes may be partial: unknown_rank, and dimensions of -1. A NULL message is a scalar's shape, as
 * in TensorFlow. */
leat_status leat_shape_from_proto(const Leat__TensorShapeProto *p, leat_shape *out) LEAT_MUST_CHECK;
/* Gives a message; free with leat_proto_free. */
Leat__TensorShapeProto *leat_shape_to_proto(const leat_shape *s);

/* Reads every dtype, from tensor_content or else from the dtype's own field. As in TensorFlow,
 * missing values repeat the last one, or are zero if there is none, and values beyond the shape are
 * ignored; so a short message may encode a large tensor. INVALID_ARGUMENT (DATA_LOSS for handles
 * that cannot be parsed) says what is wrong; RESOURCE_EXHAUSTED means that there is no memory for
 * the tensor. */
leat_status leat_tensor_from_proto(const Leat__TensorProto *p, leat_tensor **out) LEAT_MUST_CHECK;

typedef enum leat_tensor_form {
    /* Numbers are written to tensor_content: smallest and fastest for all but a few elements. */
    LEAT_TENSOR_CONTENT,
    /* The form that tf.constant writes: the dtype's own field if there are fewer than two elements,
     * and for the dtypes half, bfloat16, uint16, bool and complex; else tensor_content. */
    LEAT_TENSOR_CONSTANT,
} leat_tensor_form;
/* Writes numbers or strings to the dtype's own field of p; changes no other field of p. */
leat_status leat_tensor_to_field(const leat_tensor *t, Leat__TensorProto *p) LEAT_MUST_CHECK;
/* Gives a message; free with leat_proto_free. Strings, handles and variants always use the dtype's
 * own field. */
leat_status leat_tensor_to_proto(const leat_tensor *t, leat_tensor_form form,
                                 Leat__TensorProto **out) LEAT_MUST_CHECK;

#endif
