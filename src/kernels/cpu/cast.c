/* cast.c -- Cast between all pairs of real types, bools and complex numbers; Bitcast.
 *
 * Floats beyond an integer's range are converted as x86 does, to the least int32 or int64, which is
 * then narrowed. half and bfloat16 are converted to float first, a tile at a time; complex numbers
 * to their real parts.
 */
#include "core/half.h"
#include "kernels/cpu/arith.h"

/* ---- One value ---- */
static inline int32_t int32_of(double x)
{
    return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}

static inline int32_t int32_of_float(float x)
{
    return x >= -0x1p31f && x < 0x1p31f ? (int32_t)x : INT32_MIN;
}

static inline int64_t int64_of(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

static inline uint64_t uint64_of(double x)
{
    return x >= 0x1p63 ? (uint64_t)int64_of(x - 0x1p63) ^ UINT64_C(1) << 63 : (uint64_t)int64_of(x);
}

#define OF_INT(D, x)                                                                               \
    _Generic((x), float : (D)int32_of_float(x), double : (D)int32_of(x), default : (D)(x))
#define OF_LONG(D, x, f) _Generic((x), float : (D)f(x), double : (D)f(x), default : (D)(x))
#define TO_float(x) (float)(x)
#define TO_double(x) (double)(x)
#define TO_int8_t(x) OF_INT(int8_t, x)
#define TO_int16_t(x) OF_INT(int16_t, x)
#define TO_int32_t(x) OF_INT(int32_t, x)
#define TO_uint8_t(x) OF_INT(uint8_t, x)
#define TO_uint16_t(x) OF_INT(uint16_t, x)
#define TO_uint32_t(x) OF_LONG(uint32_t, x, int64_of)
#define TO_int64_t(x) OF_LONG(int64_t, x, int64_of)
#define TO_uint64_t(x) OF_LONG(uint64_t, x, uint64_of)
#define TO__Bool(x) ((x) != 0)

/* ---- All pairs of types that are converted directly, and bool ---- */
typedef void (*cast_fn)(const void *x, void *y, int64_t n);

#define PAIR(S, dtype, D)                                                                          \
    static void S##_to_##D(const void *x_, void *y_, int64_t n)                                    \
    {                                                                                              \
        const S *x = x_;                                                                           \
        D *y = y_;                                                                                 \
        LEAT_SIMD                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = TO_##D(x[i]);                                                                   \
    }
#define PAIRS(dtype, S) LEAT_Y_REAL(PAIR, S) PAIR(S, BOOL, _Bool)
LEAT_X_REAL(PAIRS)
PAIRS(BOOL, _Bool)

#define PAIR_ENTRY(S, dtype, D) [LEAT_##dtype] = S##_to_##D,
#define PAIR_ENTRIES(dtype, S)                                                                     \
    [LEAT_##dtype] = {LEAT_Y_REAL(PAIR_ENTRY, S) PAIR_ENTRY(S, BOOL, _Bool)},
static const cast_fn casts[LEAT_UINT64 + 1][LEAT_UINT64 + 1] = {LEAT_X_REAL(PAIR_ENTRIES)
                                                                    PAIR_ENTRIES(BOOL, _Bool)};

/* ---- Other types: to and from the type in between ---- */
static leat_dtype plain(leat_dtype t)
{
    switch (t) {
    case LEAT_HALF:
    case LEAT_BFLOAT16:
    case LEAT_COMPLEX64:
        return LEAT_FLOAT;
    case LEAT_COMPLEX128:
        return LEAT_DOUBLE;
    default:
        return t;
    }
}

static void to_plain(leat_dtype t, const void *x, void *y, int64_t n)
{
    if (t == LEAT_HALF)
        leat_halves_to_floats(x, y, n);
    else if (t == LEAT_BFLOAT16)
        leat_bfloat16s_to_floats(x, y, n);
    else if (t == LEAT_COMPLEX64)
        for (int64_t i = 0; i < n; i++)
            ((float *)y)[i] = ((const leat_complex64 *)x)[i].re;
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)y)[i] = ((const leat_complex128 *)x)[i].re;
}

static void from_plain(leat_dtype t, const void *x, void *y, int64_t n)
{
    if (t == LEAT_HALF)
        leat_halves_from_floats(x, y, n);
    else if (t == LEAT_BFLOAT16)
        leat_bfloat16s_from_floats(x, y, n);
    else if (t == LEAT_COMPLEX64)
        for (int64_t i = 0; i < n; i++)
            ((leat_complex64 *)y)[i] = (leat_complex64){((const float *)x)[i], 0};
    else
        for (int64_t i = 0; i < n; i++)
            ((leat_complex128 *)y)[i] = (leat_complex128){((const double *)x)[i], 0};
}

/* Clears the low bits of each mantissa that do not fit into the smaller type. */
static void truncate_bits(leat_dtype t, leat_dtype to, void *x, int64_t n)
{
    const int keep = to == LEAT_HALF ? 10 : to == LEAT_BFLOAT16 ? 7 : 23;
    for (int64_t i = 0; i < n; i++)
        if (t == LEAT_DOUBLE)
            ((uint64_t *)x)[i] &= ~UINT64_C(0) << (52 - keep);
        else
            ((uint32_t *)x)[i] &= ~UINT32_C(0) << (23 - keep);
}

/* ---- The kernel ---- */
typedef struct cast_state {
    leat_dtype from, to;
    cast_fn fn;    /* between the types in between */
    bool truncate; /* truncate mantissas instead of rounding */
    bool from_plain, to_plain;
} cast_state;

static bool is_complex(leat_dtype t)
{
    return t == LEAT_COMPLEX64 || t == LEAT_COMPLEX128;
}

/* Quantized numbers are cast as the integers that they are. */
static leat_dtype integer_of(leat_dtype t)
{
    static const leat_dtype integers[LEAT_UINT64 + 1] = {[LEAT_QINT8] = LEAT_INT8,
                                                         [LEAT_QUINT8] = LEAT_UINT8,
                                                         [LEAT_QINT16] = LEAT_INT16,
                                                         [LEAT_QUINT16] = LEAT_UINT16,
                                                         [LEAT_QINT32] = LEAT_INT32};
    return (unsigned)t <= LEAT_UINT64 && integers[t] ? integers[t] : t;
}

static leat_status init(const leat_node *n, void *state)
{
    cast_state *s = state;
    s->from = integer_of(leat_node_type(n, "SrcT"));
    s->to = integer_of(leat_node_type(n, "DstT"));
    const leat_dtype a = plain(s->from), b = plain(s->to);
    const bool known = (unsigned)a <= LEAT_UINT64 && (unsigned)b <= LEAT_UINT64;
    if (leat_node_type(n, "SrcT") == leat_node_type(n, "DstT"))
        return NULL;
    s->fn = known ? casts[a][b] : NULL;
    LEAT_REQUIRE(s->fn, UNIMPLEMENTED, "Cast %s to %s is not supported", leat_dtype_name(s->from),
                 leat_dtype_name(s->to));
    s->from_plain = a == s->from;
    s->to_plain = b == s->to;
    s->truncate = leat_node_bool(n, "Truncate") &&
                  ((s->from == LEAT_DOUBLE && (s->to == LEAT_FLOAT || s->to == LEAT_HALF)) ||
                   (s->from == LEAT_FLOAT && (s->to == LEAT_HALF || s->to == LEAT_BFLOAT16)));
    return NULL;
}

typedef struct cast_args {
    const cast_state *s;
    const char *x;
    char *y;
    size_t x_size, y_size; /* bytes of an element */
} cast_args;

enum { TILE = 512 };

static void cast_part(void *arg, int64_t begin, int64_t end)
{
    const cast_args *c = arg;
    const cast_state *s = c->s;
    if (s->from_plain && s->to_plain && !s->truncate) {
        s->fn(c->x + (size_t)begin * c->x_size, c->y + (size_t)begin * c->y_size, end - begin);
        return;
    }
    _Alignas(LEAT_ALIGN) char a[TILE * 8], b[TILE * 8];
    for (int64_t at = begin; at < end; at += TILE) {
        const int64_t n = end - at < TILE ? end - at : TILE;
        const void *x = c->x + (size_t)at * c->x_size;
        void *y = c->y + (size_t)at * c->y_size;
        if (!s->from_plain)
            to_plain(s->from, x, a, n);
        else
            memcpy(a, x, (size_t)n * c->x_size);
        if (s->truncate)
            truncate_bits(s->from, s->to, a, n);
        s->fn(a, s->to_plain ? y : b, n);
        if (!s->to_plain)
            from_plain(s->to, b, y, n);
    }
}

/* Both parts are kept between complex types. */
static void complex_part(void *arg, int64_t begin, int64_t end)
{
    const cast_args *c = arg;
    for (int64_t i = begin; i < end; i++)
        if (c->s->to == LEAT_COMPLEX128) {
            const leat_complex64 v = ((const leat_complex64 *)c->x)[i];
            ((leat_complex128 *)c->y)[i] = (leat_complex128){v.re, v.im};
        } else {
            const leat_complex128 v = ((const leat_complex128 *)c->x)[i];
            ((leat_complex64 *)c->y)[i] = (leat_complex64){(float)v.re, (float)v.im};
        }
}

static leat_status cast(leat_kernel *k)
{
    const cast_state *s = leat_kernel_state(k);
    const leat_tensor *x = leat_kernel_in(k, 0);
    if (!s->fn) { /* the same type */
        leat_kernel_forward(k, 0, 0);
        return NULL;
    }
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    cast_args c = {.s = s, .x = x->data, .y = y->data};
    c.x_size = leat_dtype_size(x->dtype);
    c.y_size = leat_dtype_size(y->dtype);
    const bool both_complex = is_complex(s->from) && is_complex(s->to);
    if (x->count == 1 && !both_complex)
        cast_part(&c, 0, 1);
    else
        leat_kernel_for(k, x->count, 0.4, both_complex ? complex_part : cast_part, &c);
    return NULL;
}

static leat_status bitcast(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const leat_dtype t = leat_kernel_out_dtype(k, 0);
    const int64_t from = (int64_t)leat_dtype_size(x->dtype), to = (int64_t)leat_dtype_size(t);
    leat_shape s = x->shape;
    if (from > to && s.rank < LEAT_MAX_RANK)
        s.dim[s.rank++] = from / to;
    else if (from < to && s.rank > 0 && s.dim[s.rank - 1] == to / from)
        s.rank--;
    else
        LEAT_REQUIRE(from == to, INVALID_ARGUMENT, "Cannot bitcast from %s to %s",
                     leat_dtype_name(x->dtype), leat_dtype_name(t));
    if (!x->buffer) { /* no elements */
        leat_tensor *y;
        return leat_kernel_out(k, 0, &s, &y);
    }
    leat_buffer_ref(x->buffer);
    leat_kernel_set(k, 0, leat_tensor_over(x->buffer, x->data, t, &s));
    return NULL;
}

const leat_kernel_def leat_cpu_cast[] = {
    {.op = "Cast", .run = cast, .state_size = sizeof(cast_state), .init = init},
    {.op = "Bitcast", .run = bitcast},
    {0},
};
