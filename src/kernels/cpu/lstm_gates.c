/* lstm_gates.c -- see lstm_gates.h. */
#include "kernels/cpu/lstm_gates.h"

#include <stddef.h>

#include "kernels/cpu/level_rows.h"
#include "kernels/cpu/vmath.h"

#define INLINE static inline __attribute__((always_inline))

/* The same as the op Sigmoid. */
INLINE float sigmoid(float x)
{
    return 1 / (1 + leat_expf(-x));
}

/* One row; its pointers are at unit `begin`. */
INLINE void forward_row(const bool peephole, const bool two, const leat_lstm_cell *c,
                        const float *restrict gates, int64_t distance, const float *restrict more,
                        int64_t more_distance, const leat_lstm_step *s, int64_t at, int64_t begin,
                        int64_t n)
{
    const leat_lstm_order q = c->order;
    const float *gi = gates + q.input * distance, *gc = gates + q.cell * distance;
    const float *gf = gates + q.forget * distance, *go = gates + q.output * distance;
    const float *mi = more + q.input * more_distance, *mc = more + q.cell * more_distance;
    const float *mf = more + q.forget * more_distance, *mo = more + q.output * more_distance;
    const float *wci = peephole ? c->wci + begin : NULL, *wcf = peephole ? c->wcf + begin : NULL;
    const float *wco = peephole ? c->wco + begin : NULL;
    const float *cs_prev = s->cs_prev + at;
    float *restrict i = s->i + at, *restrict cs = s->cs + at, *restrict f = s->f + at;
    float *restrict o = s->o + at, *restrict ci = s->ci + at, *restrict co = s->co + at;
    float *restrict h = s->h + at;
    const float forget_bias = c->forget_bias, clip = c->clip > 0 ? c->clip : INFINITY;
    LEAT_SIMD
    for (int64_t u = 0; u < n; u++) {
        const float was = cs_prev[u];
        float xi = gi[u] + (two ? mi[u] : 0), xc = gc[u] + (two ? mc[u] : 0);
        float xf = gf[u] + (two ? mf[u] : 0), xo = go[u] + (two ? mo[u] : 0);
        xf += forget_bias;
        if (peephole) {
            xi += was * wci[u];
            xf += was * wcf[u];
        }
        const float in = sigmoid(xi), cell = leat_tanhf(xc), keep = sigmoid(xf);
        float state = in * cell + keep * was;
        state = state > clip ? clip : state;
        state = state < -clip ? -clip : state;
        if (peephole)
            xo += state * wco[u];
        const float out = sigmoid(xo), squashed = leat_tanhf(state);
        i[u] = in;
        ci[u] = cell;
        f[u] = keep;
        cs[u] = state;
        o[u] = out;
        co[u] = squashed;
        h[u] = out * squashed;
    }
}

void leat_lstm_forward(const leat_lstm_cell *c, const leat_lstm_step *s, int64_t rows,
                       int64_t begin, int64_t end)
{
    static const float none[1];
    const bool two = s->more.gates;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = r * c->units + begin, n = end - begin;
        const float *gates = s->product.gates + r * s->product.ld + begin;
        const float *more = two ? s->more.gates + r * s->more.ld + begin - s->first : none;
        const int64_t distance = s->product.distance, more_distance = two ? s->more.distance : 0;
#define ROW(peephole, two)                                                                         \
    forward_row(peephole, two, c, gates, distance, more, more_distance, s, at, begin, n)
        if (c->wci && two)
            ROW(true, true);
        else if (c->wci)
            ROW(true, false);
        else if (two)
            ROW(false, true);
        else
            ROW(false, false);
#undef ROW
    }
}

INLINE void backward_row(const bool peephole, const bool two, const leat_lstm_cell *c,
                         const leat_lstm_back *b, float *gates_grad, int64_t at, int64_t begin,
                         int64_t n)
{
    const leat_lstm_order q = c->order;
    float *restrict gi = gates_grad + q.input * c->units;
    float *restrict gc = gates_grad + q.cell * c->units;
    float *restrict gf = gates_grad + q.forget * c->units;
    float *restrict go = gates_grad + q.output * c->units;
    const float *wci = peephole ? c->wci + begin : NULL, *wcf = peephole ? c->wcf + begin : NULL;
    const float *wco = peephole ? c->wco + begin : NULL;
    const float *cs_prev = b->cs_prev + at, *i = b->i + at, *f = b->f + at, *o = b->o + at;
    const float *ci = b->ci + at, *co = b->co + at, *h_grad = b->h_grad + at;
    const float *cs_grad = b->cs_grad + at, *more = two ? b->cs_more + at : NULL;
    float *cs_prev_grad = b->cs_prev_grad + at;
    LEAT_SIMD
    for (int64_t u = 0; u < n; u++) {
        const float dh = h_grad[u], out = o[u], squashed = co[u], keep = f[u], in = i[u];
        const float cell = ci[u], d_out = out * (1 - out) * dh * squashed;
        float dc = (1 - squashed * squashed) * dh * out + (cs_grad[u] + (two ? more[u] : 0));
        if (peephole)
            dc += d_out * wco[u];
        const float d_forget = keep * (1 - keep) * dc * cs_prev[u];
        const float d_in = in * (1 - in) * dc * cell;
        gc[u] = (1 - cell * cell) * dc * in;
        gf[u] = d_forget;
        gi[u] = d_in;
        go[u] = d_out;
        float before = dc * keep;
        if (peephole)
            before += d_in * wci[u] + d_forget * wcf[u];
        cs_prev_grad[u] = before;
    }
}

void leat_lstm_backward(const leat_lstm_cell *c, const leat_lstm_back *b, int64_t rows,
                        int64_t begin, int64_t end)
{
    for (int64_t r = 0; r < rows; r++) {
        float *gates_grad = b->gates_grad + r * 4 * c->units + begin;
        const int64_t at = r * c->units + begin;
#define ROW(peephole, two) backward_row(peephole, two, c, b, gates_grad, at, begin, end - begin)
        if (c->wci && b->cs_more)
            ROW(true, true);
        else if (c->wci)
            ROW(true, false);
        else if (b->cs_more)
            ROW(false, true);
        else
            ROW(false, false);
#undef ROW
    }
}

void leat_lstm_add_peepholes(const leat_lstm_cell *c, const leat_lstm_sums *s, int64_t rows,
                             int64_t begin, int64_t end)
{
    for (int64_t r = 0; r < rows; r++) {
        const float *g = s->gates_grad + r * 4 * c->units;
        const float *gi = g + c->order.input * c->units, *gf = g + c->order.forget * c->units;
        const float *go = g + c->order.output * c->units;
        const float *cs_prev = s->cs_prev + r * c->units, *cs = s->cs + r * c->units;
        LEAT_SIMD
        for (int64_t u = begin; u < end; u++) {
            s->wci_grad[u] += gi[u] * cs_prev[u];
            s->wcf_grad[u] += gf[u] * cs_prev[u];
            s->wco_grad[u] += go[u] * cs[u];
        }
    }
}
