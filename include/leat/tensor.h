/* tensor.h -- dtypes, shapes, tensors.
 *
 * A tensor is a counted, immutable view (dtype, shape, place) of a counted, aligned buffer. A
 * tensor may be shared between threads. It may be written to only by its sole owner, before it is
 * shared (leat_tensor_mutable).
 */
#ifndef LEAT_TENSOR_H
#define LEAT_TENSOR_H

#include <leat/status.h>

/* X(NAME, number on the wire, "name", C type of an element). Numbers and names are TensorFlow's. */
#define LEAT_DTYPES(X)                                                                             \
    X(FLOAT, 1, "float", float)                                                                    \
    X(DOUBLE, 2, "double", double)                                                                 \
    X(INT32, 3, "int32", int32_t)                                                                  \
    X(UINT8, 4, "uint8", uint8_t)                                                                  \
    X(INT16, 5, "int16", int16_t)                                                                  \
    X(INT8, 6, "int8", int8_t)                                                                     \
    X(STRING, 7, "string", leat_string)                                                            \
    X(COMPLEX64, 8, "complex64", leat_complex64)                                                   \
    X(INT64, 9, "int64", int64_t)                                                                  \
    X(BOOL, 10, "bool", bool)                                                                      \
    X(QINT8, 11, "qint8", int8_t)                                                                  \
    X(QUINT8, 12, "quint8", uint8_t)                                                               \
    X(QINT32, 13, "qint32", int32_t)                                                               \
    X(BFLOAT16, 14, "bfloat16", leat_bfloat16)                                                     \
    X(QINT16, 15, "qint16", int16_t)                                                               \
    X(QUINT16, 16, "quint16", uint16_t)                                                            \
    X(UINT16, 17, "uint16", uint16_t)                                                              \
    X(COMPLEX128, 18, "complex128", leat_complex128)                                               \
    X(HALF, 19, "half", leat_half)                                                                 \
    X(RESOURCE, 20, "resource", leat_handle *)                                                     \
    X(VARIANT, 21, "variant", leat_variant)                                                        \
    X(UINT32, 22, "uint32", uint32_t)                                                              \
    X(UINT64, 23, "uint64", uint64_t)

typedef enum leat_dtype {
    LEAT_INVALID = 0,
#define X(name, number, text, ctype) LEAT_##name = number,
    LEAT_DTYPES(X)
#undef X
        LEAT_REF = 100, /* added to a dtype, it means: a reference to a variable of that dtype */
} leat_dtype;

typedef struct leat_half {
    uint16_t bits;
} leat_half; /* IEEE binary16 */
typedef struct leat_bfloat16 {
    uint16_t bits;
} leat_bfloat16; /* the upper half of a float */
typedef struct leat_complex64 {
    float re, im;
} leat_complex64;
typedef struct leat_complex128 {
    double re, im;
} leat_complex128;
/* An element of a string tensor. Its bytes belong to the tensor's buffer; they may hold NULs and
 * are followed by one. Write with leat_string_set only. */
typedef struct leat_string {
    char *data; /* NULL for the empty string */
    size_t size;
} leat_string;
typedef struct leat_handle leat_handle; /* an element of a resource tensor, counted */
/* An element of a variant tensor: a counted object of some type. type NULL: empty. */
typedef struct leat_variant_type {
    const char *name;
    void (*ref)(void *object);
    void (*unref)(void *object);
} leat_variant_type;
typedef struct leat_variant {
    const leat_variant_type *type;
    void *object;
} leat_variant;

LEAT_API const char *leat_dtype_name(leat_dtype t); /* "float", "float_ref"; "invalid" */
LEAT_API size_t leat_dtype_size(leat_dtype t);      /* bytes of an element; 0 for unknown numbers */
/* Takes "float", "float32", "DT_FLOAT", "float_ref" ...; LEAT_INVALID if the name is unknown. */
LEAT_API leat_dtype leat_dtype_parse(const char *name);
static inline bool leat_dtype_is_ref(leat_dtype t) { return t > LEAT_REF; }
static inline leat_dtype leat_dtype_base(leat_dtype t)
{
    return t > LEAT_REF ? (leat_dtype)(t - LEAT_REF) : t;
}

/* ---- Shapes. rank -1: unknown rank; a dimension of -1: unknown size. ---- */
enum { LEAT_MAX_RANK = 16 };
typedef struct leat_shape {
    int rank;
    int64_t dim[LEAT_MAX_RANK];
} leat_shape;

/* For example leat_shape(784, hidden); leat_shape() is a scalar's shape; -1 is a size that is not
 * known yet. */
#define leat_shape(...)                                                                            \
    leat_shape_make(LEAT_COUNT(int64_t, __VA_ARGS__), LEAT_ARRAY(int64_t, __VA_ARGS__))
/* A rank above LEAT_MAX_RANK, or a dim below -1, gives an unknown shape. */
LEAT_API leat_shape leat_shape_make(int rank, const int64_t *dims);
LEAT_API leat_shape leat_shape_unknown(void);
LEAT_API leat_shape leat_shape_unknown_dims(int rank);
LEAT_API bool leat_shape_known(const leat_shape *s); /* true if rank and all dimensions are known */
LEAT_API bool leat_shape_equal(const leat_shape *a, const leat_shape *b);
LEAT_API bool leat_shape_compatible(const leat_shape *a, const leat_shape *b);
/* The number of elements, -1 if the shape is not fully known or the product of the dimensions that
 * are not 0 overflows int64: no tensor has such a shape. */
LEAT_API int64_t leat_shape_count(const leat_shape *s);
/* "[2,?,3]", "<unknown>"; writes at most n bytes with the NUL, gives buf. */
LEAT_API char *leat_shape_text(const leat_shape *s, char *buf, size_t n);
typedef struct leat_text {
    char s[256];
} leat_text;
/* For messages: leat_shape_show(&s).s */
LEAT_API leat_text leat_shape_show(const leat_shape *s);

/* ---- Tensors ---- */
typedef struct leat_tensor leat_tensor;

/* Gives a tensor of zeros (empty strings, null handles). Free with leat_tensor_unref. */
LEAT_API leat_status leat_tensor_new(leat_dtype t, leat_shape shape, leat_tensor **tensor_out)
    LEAT_MUST_CHECK;
/* The same, holding a copy of count*size bytes at data (not for strings, handles, variants). */
LEAT_API leat_status leat_tensor_copy_of(leat_dtype t, leat_shape shape, const void *data,
                                         leat_tensor **tensor_out) LEAT_MUST_CHECK;
/* A tensor that uses the caller's memory, which must stay unchanged until free_fn(data, arg) is
 * called; free_fn may be NULL. data must be aligned for its element type. */
LEAT_API leat_status leat_tensor_wrap(leat_dtype t, leat_shape shape, void *data,
                                      void (*free_fn)(void *data, void *arg), void *arg,
                                      leat_tensor **tensor_out) LEAT_MUST_CHECK;
/* Another view of t's buffer: same dtype, another shape of as many elements. */
LEAT_API leat_status leat_tensor_reshape(const leat_tensor *t, leat_shape shape,
                                         leat_tensor **tensor_out) LEAT_MUST_CHECK;
/* Rows [begin, end) of dimension 0, sharing t's buffer. */
LEAT_API leat_status leat_tensor_rows(const leat_tensor *t, int64_t begin, int64_t end,
                                      leat_tensor **tensor_out) LEAT_MUST_CHECK;
LEAT_API leat_tensor *leat_tensor_ref(const leat_tensor *t); /* shares t; NULL gives NULL */
LEAT_API void leat_tensor_unref(leat_tensor *t);             /* of NULL does nothing */

LEAT_API leat_dtype leat_tensor_dtype(const leat_tensor *t);
LEAT_API leat_shape leat_tensor_shape(const leat_tensor *t);
LEAT_API int leat_tensor_rank(const leat_tensor *t);
LEAT_API int64_t leat_tensor_dim(const leat_tensor *t, int i);
LEAT_API int64_t leat_tensor_count(const leat_tensor *t); /* elements */
LEAT_API size_t leat_tensor_bytes(const leat_tensor *t);
LEAT_API const void *leat_tensor_data(const leat_tensor *t);
LEAT_API void *leat_tensor_mutable(leat_tensor *t); /* NULL if t or its buffer is shared */

/* Scalars and short vectors, for tests and small programs. NULL: out of memory. Reading converts any
 * number type. */
LEAT_API leat_tensor *leat_scalar_float(float v);
LEAT_API leat_tensor *leat_scalar_int32(int32_t v);
LEAT_API leat_tensor *leat_scalar_int64(int64_t v);
LEAT_API leat_tensor *leat_scalar_string(const char *data, size_t size);
LEAT_API double leat_tensor_at(const leat_tensor *t, int64_t i); /* element i as a double; NaN if none */
/* Sets element i; v must be within the dtype's range. For number tensors that are not shared. */
LEAT_API void leat_tensor_set_at(leat_tensor *t, int64_t i, double v);

/* False: out of memory. */
LEAT_API bool leat_string_set(leat_string *dst, const char *data, size_t size);

/* The values as TensorFlow prints them, [[1 2][3 4]], at most max elements (below 0: all), then
 * "..."; a scalar without brackets. Free with free(). */
LEAT_API char *leat_tensor_text(const leat_tensor *t, int64_t max);
/* The same in tf.print's form: a line for each row, strings in quotes, `ends` items at both ends of
 * each dimension and "..." between them (below 0: all). Free with free(). */
LEAT_API char *leat_tensor_summary(const leat_tensor *t, int64_t ends);

/* Conversion of half and bfloat16, given as their bits; rounding is to nearest even. */
LEAT_API float leat_half_to_float(leat_half h);
LEAT_API leat_half leat_half_from_float(float f);
LEAT_API float leat_bfloat16_to_float(leat_bfloat16 h);
LEAT_API leat_bfloat16 leat_bfloat16_from_float(float f);

#endif
