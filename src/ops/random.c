/* random.c -- random numbers of a given shape. Stateful ops continue their sequence from run to
 * run; the results of stateless ops depend only on their seed. */
#include <leat/extend.h>

static leat_status random_shape(leat_infer *c)
{
    leat_shape vector, s;
    LEAT_TRY(leat_infer_rank(c, 0, 1, &vector));
    LEAT_TRY(leat_infer_value_shape(c, 0, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status random_int_shape(leat_infer *c)
{
    leat_shape scalar;
    LEAT_TRY(leat_infer_rank(c, 1, 0, &scalar));
    LEAT_TRY(leat_infer_rank(c, 2, 0, &scalar));
    return random_shape(c);
}

static leat_status stateless_shape(leat_infer *c)
{
    leat_shape seed;
    LEAT_TRY(leat_infer_rank(c, 1, 1, &seed));
    LEAT_REQUIRE(seed.dim[0] < 0 || seed.dim[0] == 2, INVALID_ARGUMENT,
                 "Dimension must be 2 but is %lld", (long long)seed.dim[0]);
    return random_shape(c);
}

static leat_status stateless_int_shape(leat_infer *c)
{
    leat_shape scalar;
    LEAT_TRY(leat_infer_rank(c, 2, 0, &scalar));
    LEAT_TRY(leat_infer_rank(c, 3, 0, &scalar));
    return stateless_shape(c);
}

#define SEEDS "seed: int = 0; seed2: int = 0; "
#define FLOATS "{half, bfloat16, float, double}"
#define INDEX "{int32, int64}"
#define STATEFUL(op)                                                                               \
    {                                                                                              \
        .name = op, .inputs = "shape: T", .outputs = "output: dtype",                              \
        .attrs = SEEDS "dtype: " FLOATS "; T: " INDEX, .shape = random_shape,                      \
        .grad = leat_grad_none, .flags = LEAT_OP_STATEFUL                                          \
    }
#define STATELESS(op)                                                                              \
    {                                                                                              \
        .name = op, .inputs = "shape: T, seed: Tseed", .outputs = "output: dtype",                 \
        .attrs =                                                                                   \
            "dtype: " FLOATS " = DT_FLOAT; T: " INDEX " = DT_INT32; Tseed: " INDEX " = DT_INT64",  \
        .shape = stateless_shape, .grad = leat_grad_none                                           \
    }

const leat_op_def leat_ops_random[] = {
    STATEFUL("RandomUniform"),
    STATEFUL("RandomStandardNormal"),
    STATEFUL("TruncatedNormal"),
    {.name = "RandomUniformInt",
     .inputs = "shape: T, minval: Tout, maxval: Tout",
     .outputs = "output: Tout",
     .attrs = SEEDS "Tout: " INDEX "; T: " INDEX,
     .shape = random_int_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "RandomShuffle",
     .inputs = "value: T",
     .outputs = "output: T",
     .attrs = SEEDS "T: type",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    STATELESS("StatelessRandomUniform"),
    STATELESS("StatelessRandomNormal"),
    STATELESS("StatelessTruncatedNormal"),
    {.name = "StatelessRandomUniformInt",
     .inputs = "shape: T, seed: Tseed, minval: dtype, maxval: dtype",
     .outputs = "output: dtype",
     .attrs = "dtype: " INDEX "; T: " INDEX "; Tseed: " INDEX " = DT_INT64",
     .shape = stateless_int_shape,
     .grad = leat_grad_none},
    {0},
};
