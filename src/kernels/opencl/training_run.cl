/* training_run.cl -- the training ops, by the rules of training_rules.inc: RULE_NAME is the rule, VARS
 * the number of its variables, SCALARS that of its scalars, FLAG its flag. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* Tensors 0 to n-1 as parameters; n is VARS or SCALARS. */
#define LIST_0(x)
#define LIST_1(x) TENSOR(x##0),
#define LIST_2(x) LIST_1(x) TENSOR(x##1),
#define LIST_3(x) LIST_2(x) TENSOR(x##2),
#define LIST_4(x) LIST_3(x) TENSOR(x##3),
#define LIST_5(x) LIST_4(x) TENSOR(x##4),
#define LIST_6(x) LIST_5(x) TENSOR(x##5),
#define LIST(n, x) JOIN(LIST_, n)(x)

/* Reads the scalars: T scalars[]. */
#define READ_0
#define READ_1 *OF(const T, h0),
#define READ_2 READ_1 *OF(const T, h1),
#define READ_3 READ_2 *OF(const T, h2),
#define READ_4 READ_3 *OF(const T, h3),
#define READ_5 READ_4 *OF(const T, h4),
#define READ_6 READ_5 *OF(const T, h5),
#define READ_SCALARS const T h[SCALARS + 1] = {JOIN(READ_, SCALARS) 0}

/* Updates element `at` of the variables by element `from` of the gradient. */
#define UPDATE(at, from)                                                                           \
    {                                                                                              \
        T x0 = OF(T, v0)[at], x1 = 0, x2 = 0, x3 = 0, d = OF(const T, g)[from];                    \
        SECOND(x1 = OF(T, v1)[at]);                                                                \
        THIRD(x2 = OF(T, v2)[at]);                                                                 \
        FOURTH(x3 = OF(T, v3)[at]);                                                                \
        T *const v[4] = {&x0, &x1, &x2, &x3};                                                      \
        JOIN(RULE_NAME, _rule)(v, &d, 1, h, FLAG);                                                 \
        OF(T, v0)[at] = x0;                                                                        \
        SECOND(OF(T, v1)[at] = x1);                                                                \
        THIRD(OF(T, v2)[at] = x2);                                                                 \
        FOURTH(OF(T, v3)[at] = x3);                                                                \
    }
#if VARS > 1
#define SECOND(x) x
#else
#define SECOND(x)
#endif
#if VARS > 2
#define THIRD(x) x
#else
#define THIRD(x)
#endif
#if VARS > 3
#define FOURTH(x) x
#else
#define FOURTH(x)
#endif

KERNEL dense(LIST(VARS, v) LIST(SCALARS, h) TENSOR(g), int n)
{
    READ_SCALARS;
    EACH(i, n) UPDATE(i, i)
}

/* Rows of the variables, in the order of the indices, of which one may occur twice. A row that does
 * not exist is left out, as on all GPUs. */
KERNEL sparse(LIST(VARS, v) LIST(SCALARS, h) TENSOR(g), TENSOR(indices), int n, int rows, int row)
{
    READ_SCALARS;
#ifdef LEAT_ON_CPU
    for (int i = 0; i < n; i++) {
        const long to = OF(const INDEX, indices)[i];
        if (to >= 0 && to < rows)
            EACH(c, row) UPDATE(to * row + c, (long)i * row + c)
    }
#else
    EACH(c, row)
    {
        for (int i = 0; i < n; i++) {
            const long to = OF(const INDEX, indices)[i];
            if (to >= 0 && to < rows)
                UPDATE(to * row + c, (long)i * row + c)
        }
    }
#endif
}
