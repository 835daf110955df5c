/* complex.c -- Complex, Real, Imag, Conj, ComplexAbs and Angle. */
#include "kernels/cpu/complex.h"

#include "kernels/cpu/row1.h"
#include "kernels/cpu/row2.h"

/* ---- Parts: X(name, from float, from double) ---- */
#define PART_FN(name, T, Y, fn)                                                                    \
    static void name##_##T(const void *x_, void *y_, int64_t n)                                    \
    {                                                                                              \
        const T *x = x_;                                                                           \
        Y *y = y_;                                                                                 \
        LEAT_SIMD                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = fn(x[i]);                                                                       \
    }
#define PART(name, f, d, Yf, Yd, ns)                                                               \
    PART_FN(name, leat_c64, Yf, f)                                                                 \
    PART_FN(name, leat_c128, Yd, d)                                                                \
    LEAT_ROW1_INIT(name, ns, LEAT_Y_COMPLEX(LEAT_ROW1_ENTRY, name))
PART(real, crealf, creal, float, double, 0.4)
PART(imag, cimagf, cimag, float, double, 0.4)
PART(angle, cargf, carg, float, double, 20)
PART(magnitude, cabsf, cabs, float, double, 8)
PART(conj, conjf, conj, leat_c64, leat_c128, 0.4)

/* ---- Complex: of its parts ---- */
#define OF_PARTS(name, T, Z)                                                                       \
    static bool name##_##T(const void *a_, bool a_one, const void *b_, bool b_one, void *z_,       \
                           int64_t n)                                                              \
    {                                                                                              \
        const T *a = a_, *b = b_;                                                                  \
        Z *z = z_;                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                            \
            z[i] = leat_make_##Z(a[a_one ? 0 : i], b[b_one ? 0 : i]);                              \
        return true;                                                                               \
    }
OF_PARTS(of_parts, float, leat_c64)
OF_PARTS(of_parts, double, leat_c128)
LEAT_ROW2_INIT(of_parts, 0.6, NULL, LEAT_Y_FLOAT(LEAT_ROW2_ENTRY, of_parts))

static leat_status check_types(const leat_node *n)
{
    const leat_dtype t = leat_node_type(n, "T"), out = leat_node_type(n, "Tout");
    const bool wide = t == LEAT_DOUBLE || t == LEAT_COMPLEX128;
    LEAT_REQUIRE(wide == (out == LEAT_DOUBLE || out == LEAT_COMPLEX128), INVALID_ARGUMENT,
                 "%s of %s cannot give %s", leat_node_op(n), leat_dtype_name(t),
                 leat_dtype_name(out));
    return NULL;
}

#define CHECKED(name)                                                                              \
    static leat_status checked_##name(const leat_node *n, void *state)                             \
    {                                                                                              \
        LEAT_TRY(check_types(n));                                                                  \
        return init_##name(n, state);                                                              \
    }
CHECKED(real)
CHECKED(imag)
CHECKED(angle)
CHECKED(magnitude)
CHECKED(of_parts)

#define PART_KERNEL(op_, name)                                                                     \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_ROW_COMPLEX}}, .run = leat_row1_run,                       \
        .state_size = sizeof(leat_row1), .init = name                                              \
    }

const leat_kernel_def leat_cpu_complex[] = {
    PART_KERNEL("Real", checked_real),
    PART_KERNEL("Imag", checked_imag),
    PART_KERNEL("Angle", checked_angle),
    PART_KERNEL("ComplexAbs", checked_magnitude),
    PART_KERNEL("Conj", init_conj),
    {.op = "Complex",
     .where = {{"T", LEAT_ROW_FLOAT}},
     .run = leat_row2_run,
     .state_size = sizeof(leat_row2),
     .init = checked_of_parts},
    {0},
};
