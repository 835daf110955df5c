/* lstm.cl -- the arithmetic of an LSTM cell between its products: gates, state and output of a step
 * from the sums of its products, and their gradients. A row belongs to a member of the batch and has
 * `units` elements, or four times as many for the gates; the gates' places among these are `order`:
 * input, cell, forget, output. The option PEEPHOLE: there are peepholes, `units` weights for each of
 * three gates. */
typedef struct order {
    int input, cell, forget, output;
} order;

#ifdef PEEPHOLE
#define IF_PEEPHOLE(...) __VA_ARGS__
#else
#define IF_PEEPHOLE(...)
#endif

#ifdef MORE
#define IF_MORE(...) __VA_ARGS__
#else
#define IF_MORE(...)
#endif

/* Goes through all units of all rows: `at` is the unit's place in a matrix of units. */
#ifdef LEAT_ON_CPU
#define EACH_UNIT(...)                                                                             \
    EACH_ROW(r, rows)                                                                              \
    {                                                                                              \
        VECTORS for (int u = 0; u < units; u++)                                                    \
        {                                                                                          \
            const long at = r * units + u;                                                         \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#else
#define EACH_UNIT(...)                                                                             \
    EACH(at, (long)rows *units)                                                                    \
    {                                                                                              \
        const long r = at / units;                                                                 \
        const int u = (int)(at - r * units);                                                       \
        __VA_ARGS__                                                                                \
    }
#endif

DEVICE float sigmoid(float x)
{
    return 1 / (1 + exp(-x));
}

KERNEL forward(TENSOR(gates), TENSOR(cs_prev), TENSOR(wci), TENSOR(wcf), TENSOR(wco), TENSOR(i),
               TENSOR(cs), TENSOR(f), TENSOR(o), TENSOR(ci), TENSOR(co), TENSOR(h), int rows, int units,
               const order q, float forget_bias, float clip)
{
    GLOBAL const float *gates = OF(const float, gates), *cs_prev = OF(const float, cs_prev);
    GLOBAL float *i = OF(float, i), *cs = OF(float, cs), *f = OF(float, f), *o = OF(float, o);
    GLOBAL float *ci = OF(float, ci), *co = OF(float, co), *h = OF(float, h);
    EACH_UNIT({
        GLOBAL const float *g = gates + r * 4 * units + u;
        const float was = cs_prev[at];
        float xi = g[q.input * units], xf = g[q.forget * units] + forget_bias;
        float xo = g[q.output * units];
        IF_PEEPHOLE(xi += was * OF(const float, wci)[u]; xf += was * OF(const float, wcf)[u];)
        const float in = sigmoid(xi), cell = tanh(g[q.cell * units]), keep = sigmoid(xf);
        float state = in * cell + keep * was;
        state = state > clip ? clip : state;
        state = state < -clip ? -clip : state;
        IF_PEEPHOLE(xo += state * OF(const float, wco)[u];)
        const float out = sigmoid(xo), squashed = tanh(state);
        i[at] = in;
        ci[at] = cell;
        f[at] = keep;
        cs[at] = state;
        o[at] = out;
        co[at] = squashed;
        h[at] = out * squashed;
    })
}

/* cs_more, with the option MORE, is added to cs_grad. */
KERNEL backward(TENSOR(cs_prev), TENSOR(wci), TENSOR(wcf), TENSOR(wco), TENSOR(i), TENSOR(f), TENSOR(o),
                TENSOR(ci), TENSOR(co), TENSOR(h_grad), TENSOR(cs_grad), TENSOR(cs_more),
                TENSOR(gates_grad), TENSOR(cs_prev_grad), int rows, int units, const order q)
{
    EACH_UNIT({
        GLOBAL float *g = OF(float, gates_grad) + r * 4 * units + u;
        const float dh = OF(const float, h_grad)[at], out = OF(const float, o)[at];
        const float squashed = OF(const float, co)[at], keep = OF(const float, f)[at];
        const float in = OF(const float, i)[at], cell = OF(const float, ci)[at];
        const float d_out = out * (1 - out) * dh * squashed;
        float dc = OF(const float, cs_grad)[at];
        IF_MORE(dc += OF(const float, cs_more)[at];)
        dc += (1 - squashed * squashed) * dh * out;
        IF_PEEPHOLE(dc += d_out * OF(const float, wco)[u];)
        const float d_forget = keep * (1 - keep) * dc * OF(const float, cs_prev)[at];
        const float d_in = in * (1 - in) * dc * cell;
        g[q.cell * units] = (1 - cell * cell) * dc * in;
        g[q.forget * units] = d_forget;
        g[q.input * units] = d_in;
        g[q.output * units] = d_out;
        float before = dc * keep;
        IF_PEEPHOLE(before += d_in * OF(const float, wci)[u] + d_forget * OF(const float, wcf)[u];)
        OF(float, cs_prev_grad)[at] = before;
    })
}

/* The gradients of peepholes from `rows` rows are added to what is there. */
KERNEL peepholes(TENSOR(gates_grad), TENSOR(cs_prev), TENSOR(cs), TENSOR(wci), TENSOR(wcf), TENSOR(wco),
                 int rows, int units, const order q)
{
    EACH_ROW(u, units)
    {
        float ci = OF(float, wci)[u], cf = OF(float, wcf)[u], co = OF(float, wco)[u];
        for (int r = 0; r < rows; r++) {
            GLOBAL const float *g = OF(const float, gates_grad) + (long)r * 4 * units + u;
            const float before = OF(const float, cs_prev)[(long)r * units + u];
            ci += g[q.input * units] * before;
            cf += g[q.forget * units] * before;
            co += g[q.output * units] * OF(const float, cs)[(long)r * units + u];
        }
        OF(float, wci)[u] = ci;
        OF(float, wcf)[u] = cf;
        OF(float, wco)[u] = co;
    }
}
