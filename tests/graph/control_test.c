/* Conds and loops: what they compute, their gradients (as built, and in a graph that was exported
 * and imported, which knows nothing of contexts), their names, and what is refused. */
#include <leat/leat.h>

#include "graph/graph_int.h"
#include "test.h"

static leat_out number(leat_graph *g, double v)
{
    return leat_scalar(g, LEAT_DOUBLE, v);
}

static leat_out integer(leat_graph *g, int v)
{
    return leat_scalar(g, LEAT_INT32, v);
}

/* ---- Branches. The argument is a pair. ---- */

typedef struct pair {
    leat_out v, x;
} pair;

static void square(leat_graph *g, void *arg, leat_out *outs)
{
    pair *p = arg;
    outs[0] = leat_mul(p->v, p->v);
}

static void triple(leat_graph *g, void *arg, leat_out *outs)
{
    pair *p = arg;
    outs[0] = leat_mul(p->v, number(g, 3));
}

static void same(leat_graph *g, void *arg, leat_out *outs)
{
    pair *p = arg;
    outs[0] = p->v;
}

static void ones(leat_graph *g, void *arg, leat_out *outs)
{
    pair *p = arg;
    outs[0] = leat_ones_like(leat_stop_gradient(p->x));
}

static void times_x(leat_graph *g, void *arg, leat_out *outs)
{
    pair *p = arg;
    outs[0] = leat_mul(leat_mul(p->v, p->v), p->x);
}

static void plus_half(leat_graph *g, void *arg, leat_out *outs)
{
    pair *p = arg;
    outs[0] = leat_add(p->v, number(g, 0.5));
}

static leat_out small(leat_out x, double limit)
{
    return leat_less(leat_reduce_sum(x), number(leat_node_graph(x.node), limit));
}

static leat_out choose(leat_out x, leat_branch_fn yes, leat_branch_fn no)
{
    leat_out y;
    pair p = {x, x};
    leat_cond(small(x, 1.5), yes, no, &p, &y, 1);
    return y;
}

static void inner_cond(leat_graph *g, void *arg, leat_out *outs)
{
    pair *p = arg;
    leat_cond(small(p->v, 0.7), times_x, plus_half, p, outs, 1);
    outs[0] = leat_mul(outs[0], p->x);
}

/* ---- Loops over (i, v); the argument is x. ---- */

static leat_out four_times(leat_graph *g, void *arg, const leat_out *vars)
{
    return leat_less(vars[0], integer(g, 4));
}

static leat_out next_i(leat_graph *g, const leat_out *vars)
{
    return leat_add(vars[0], integer(g, 1));
}

static void grow(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    pair *p = arg;
    next[0] = next_i(g, vars);
    next[1] = leat_add(leat_mul(vars[1], p->x), vars[1]);
}

static void squares(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    next[0] = next_i(g, vars);
    next[1] = leat_mul(vars[1], vars[1]);
}

/* v1 needs v2, v2 needs v3, v3 does not need what it was. */
static void chained(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    pair *p = arg;
    next[0] = next_i(g, vars);
    next[1] = leat_mul(vars[1], vars[2]);
    next[2] = leat_add(vars[2], vars[3]);
    next[3] = leat_mul(p->x, number(g, 0.5));
}

static leat_out even(leat_out i)
{
    leat_graph *g = leat_node_graph(i.node);
    return leat_equal(leat_floor_mod(i, integer(g, 2)), integer(g, 0));
}

static void with_cond(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    pair p = {vars[1], ((pair *)arg)->x};
    next[0] = next_i(g, vars);
    leat_cond(even(vars[0]), times_x, plus_half, &p, next + 1, 1);
}

static void with_conds(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    pair p = {vars[1], ((pair *)arg)->x};
    next[0] = next_i(g, vars);
    leat_cond(even(vars[0]), inner_cond, plus_half, &p, next + 1, 1);
}

static void with_case(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    static const leat_branch_fn cases[] = {times_x, plus_half, square};
    pair p = {vars[1], ((pair *)arg)->x};
    next[0] = next_i(g, vars);
    leat_switch_case(vars[0], cases, 3, &p, next + 1, 1);
}

static leat_out to_three(leat_graph *g, void *arg, const leat_out *vars)
{
    return leat_less(vars[0], integer(g, 3));
}

static void multiply_add(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    pair *p = arg;
    next[0] = next_i(g, vars);
    next[1] = leat_add(leat_mul(vars[1], p->v), leat_mul(p->x, p->x));
}

/* From i: an inner loop that runs more or less often. */
static void with_loop(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    pair p = {vars[1], ((pair *)arg)->x};
    leat_out inner[2] = {vars[0], vars[1]};
    leat_while_loop(to_three, multiply_add, &p, inner, 2, inner);
    next[0] = next_i(g, vars);
    next[1] = leat_mul(inner[1], number(g, 0.3));
}

static void loop_branch(leat_graph *g, void *arg, leat_out *outs)
{
    leat_out inner[2] = {integer(g, 0), ((pair *)arg)->v};
    leat_while_loop(to_three, multiply_add, arg, inner, 2, inner);
    outs[0] = leat_mul(inner[1], number(g, 0.2));
}

static void with_loop_in_cond(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    pair p = {vars[1], ((pair *)arg)->x};
    next[0] = next_i(g, vars);
    leat_cond(even(vars[0]), loop_branch, plus_half, &p, next + 1, 1);
}

/* Rows of x, taken inside: the gradient comes as rows. */
static void gathers(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    pair *p = arg;
    leat_out row = leat_gather(p->x, leat_floor_mod(vars[0], integer(g, 3)), integer(g, 0));
    next[0] = next_i(g, vars);
    next[1] = leat_add(leat_mul(vars[1], row), row);
}

static leat_out loop(leat_out x, leat_loop_body_fn body)
{
    leat_graph *g = leat_node_graph(x.node);
    pair p = {x, x};
    leat_out vars[2] = {integer(g, 0), x};
    leat_while_loop(four_times, body, &p, vars, 2, vars);
    return vars[1];
}

/* ---- Gradients, by finite differences ---- */

static leat_out a_cond(leat_out x)
{
    return choose(x, square, triple);
}
static leat_out a_cond_of_x(leat_out x)
{
    return leat_mul(choose(x, same, triple), x);
}
static leat_out a_cond_on_one_side(leat_out x)
{
    return choose(x, square, ones);
}
static leat_out conds(leat_out x)
{
    return choose(x, inner_cond, triple);
}
static leat_out a_loop(leat_out x)
{
    return loop(x, grow);
}
static leat_out a_loop_of_squares(leat_out x)
{
    return loop(x, squares);
}
static leat_out a_cond_in_a_loop(leat_out x)
{
    return loop(x, with_cond);
}
static leat_out conds_in_a_loop(leat_out x)
{
    return loop(x, with_conds);
}
static leat_out cases_in_a_loop(leat_out x)
{
    return loop(x, with_case);
}
static leat_out loops(leat_out x)
{
    return loop(x, with_loop);
}
static leat_out a_loop_in_a_cond(leat_out x)
{
    return choose(x, loop_branch, triple);
}
static leat_out a_loop_in_a_cond_in_a_loop(leat_out x)
{
    return loop(x, with_loop_in_cond);
}
static leat_out rows_in_a_loop(leat_out x)
{
    return loop(x, gathers);
}
static leat_out one_loop_after_another(leat_out x)
{
    return loop(loop(x, grow), with_cond);
}

static leat_out a_loop_with_a_limit(leat_out x)
{
    leat_graph *g = leat_node_graph(x.node);
    pair p = {x, x};
    leat_out vars[2] = {integer(g, 0), x};
    leat_while_loop(four_times, grow, &p, vars, 2, vars, .maximum_iterations = integer(g, 2));
    return vars[1];
}

static leat_out a_loop_of_no_iterations(leat_out x)
{
    leat_graph *g = leat_node_graph(x.node);
    pair p = {x, x};
    leat_out vars[2] = {integer(g, 9), x};
    leat_while_loop(four_times, grow, &p, vars, 2, vars, .parallel_iterations = 1);
    return vars[1];
}

static leat_out a_loop_with_unused_results(leat_out x)
{
    leat_graph *g = leat_node_graph(x.node);
    pair p = {x, x};
    leat_out vars[4] = {integer(g, 0), x, leat_mul(x, x), x};
    leat_while_loop(four_times, chained, &p, vars, 4, vars);
    return vars[1];
}

/* The graph again, as it is after export and import. */
static leat_graph *imported(leat_graph *g, leat_out *x, leat_out *y)
{
    void *bytes;
    size_t size;
    leat_graph *h = leat_graph_new();
    LEAT_DIE_ON_ERROR(leat_graph_to_binary(g, &bytes, &size));
    LEAT_DIE_ON_ERROR(leat_graph_from_binary(h, bytes, size, ""));
    LEAT_DIE_ON_ERROR(leat_graph_find_out(h, "x", x));
    LEAT_DIE_ON_ERROR(leat_graph_find_out(h, "y", y));
    free(bytes);
    leat_graph_free(g);
    return h;
}

static void check(leat_out (*build)(leat_out x), const char *name, bool known_shape, bool import)
{
    static const double at[][3] = {{0.3, 0.5, 0.6}, {1.1, 1.2, 0.9}, {0.1, -0.2, 0.3}};
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_DOUBLE, known_shape ? leat_shape(3) : leat_shape(-1),
                                  leat_name("x"));
    leat_out y = leat_identity(build(x), leat_name("y"));
    CHECK_OK(leat_graph_status(g));
    if (import)
        g = imported(g, &x, &y);
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        leat_tensor *v;
        double worst = 1;
        CHECK_OK(leat_tensor_copy_of(LEAT_DOUBLE, leat_shape(3), at[i], &v));
        CHECK_OK(leat_check_gradients(s, y, &x, 1, LEAT_FEED({x, v}), &worst));
        if (!(worst < 1e-6))
            printf("%s (known shape: %d, imported: %d) at %g, %g, %g: %g\n", name, known_shape,
                   import, at[i][0], at[i][1], at[i][2], worst);
        CHECK(worst < 1e-6);
        leat_tensor_unref(v);
    }
    leat_session_close(s);
    leat_graph_free(g);
}

static void gradients(void)
{
#define CASE(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
    static const struct {
        const char *name;
        leat_out (*build)(leat_out x);
    } cases[] = {
        CASE(a_cond),
        CASE(a_cond_of_x),
        CASE(a_cond_on_one_side),
        CASE(conds),
        CASE(a_loop),
        CASE(a_loop_of_squares),
        CASE(a_cond_in_a_loop),
        CASE(conds_in_a_loop),
        CASE(cases_in_a_loop),
        CASE(loops),
        CASE(a_loop_in_a_cond),
        CASE(a_loop_in_a_cond_in_a_loop),
        CASE(rows_in_a_loop),
        CASE(one_loop_after_another),
        CASE(a_loop_with_a_limit),
        CASE(a_loop_of_no_iterations),
        CASE(a_loop_with_unused_results),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (int how = 0; how < 4; how++)
            check(cases[i].build, cases[i].name, how & 1, how & 2);
}

/* ---- Values ---- */

static void run_all(leat_graph *g, leat_out fetch, double want)
{
    leat_session *s;
    leat_tensor *v = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({fetch, &v}), LEAT_NO_TARGET));
    CHECK_NEAR(v ? leat_tensor_at(v, 0) : -1, want, 1e-9);
    leat_tensor_unref(v);
    leat_session_close(s);
    leat_graph_free(g);
}

/* Only the branch that is taken has its effects; the completion of a node is a result, too. */
static void count_up(leat_graph *g, void *arg, leat_out *outs)
{
    leat_out *v = arg;
    outs[0] = leat_done(leat_assign_add(leat_variable_ref(*v), number(g, 1)));
}

static void count_by_ten(leat_graph *g, void *arg, leat_out *outs)
{
    leat_out *v = arg;
    leat_with_control(g, leat_assign_add(leat_variable_ref(*v), number(g, 10))) outs[0] =
        leat_done(leat_no_op(g));
}

static void effects(void)
{
    for (int way = 0; way < 2; way++) {
        leat_graph *g = leat_graph_new();
        leat_out v = leat_variable(g, "v", number(g, 0)), done;
        leat_cond(leat_less(integer(g, way), integer(g, 1)), count_up, count_by_ten, &v, &done, 1);
        CHECK_OK(leat_graph_status(g));
        leat_session *s;
        leat_tensor *value = NULL;
        CHECK_OK(leat_session_open(g, &s));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                                  LEAT_TARGET(leat_variable_initializer(v))));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(done)));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({v, &value}), LEAT_NO_TARGET));
        CHECK_NEAR(leat_tensor_at(value, 0), way ? 10 : 1, 0);
        leat_tensor_unref(value);
        leat_session_close(s);
        leat_graph_free(g);
    }
}

/* Control dependencies on nodes outside and inside of the loop. */
static void with_controls(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    pair *p = arg;
    leat_with_control(g, p->x, p->v) next[0] = next_i(g, vars);
    leat_with_control(g, next[0]) next[1] = leat_add(vars[1], number(g, 2));
    leat_with_control(g, leat_done(p->v)) leat_no_op(g);
}

static void controls(void)
{
    leat_graph *g = leat_graph_new();
    pair p = {number(g, 1), number(g, 2)};
    leat_out vars[2] = {integer(g, 0), number(g, 5)};
    leat_with_control(g, p.x) leat_while_loop(four_times, with_controls, &p, vars, 2, vars);
    run_all(g, vars[1], 13);
}

/* A fetch of what grows, with a looser shape. */
static void doubles(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    const leat_out both[2] = {vars[1], vars[1]};
    next[0] = next_i(g, vars);
    next[1] = leat_concat(both, 2, integer(g, 0));
}

static void grows(void)
{
    leat_graph *g = leat_graph_new();
    leat_shape shapes[2] = {leat_shape(), leat_shape(-1)};
    leat_out vars[2] = {integer(g, 0), leat_ones(g, LEAT_DOUBLE, leat_shape(1))};
    leat_while_loop(four_times, doubles, NULL, vars, 2, vars, .shapes = shapes);
    run_all(g, leat_reduce_sum(vars[1]), 16);
}

/* A gradient that is taken inside the body. */
static void descends(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    leat_out y = leat_mul(vars[1], vars[1]), x = vars[1];
    leat_grad_value d;
    leat_status_free(leat_gradients(&y, 1, &x, 1, &d));
    next[0] = next_i(g, vars);
    next[1] = leat_sub(x, leat_mul(d.value, number(g, 0.25)));
}

static void gradient_inside(void)
{
    leat_graph *g = leat_graph_new();
    leat_out vars[2] = {integer(g, 0), number(g, 16)};
    leat_while_loop(four_times, descends, NULL, vars, 2, vars);
    run_all(g, vars[1], 1);
}

/* The gradient of the gradient of a cond. */
static void cube(leat_graph *g, void *arg, leat_out *outs)
{
    pair *p = arg;
    outs[0] = leat_mul(leat_mul(p->v, p->v), p->v);
}

static void second_order(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = number(g, 2), y;
    pair p = {x, x};
    leat_grad_value d, dd;
    leat_cond(small(x, 3), cube, square, &p, &y, 1);
    CHECK_OK(leat_gradients(&y, 1, &x, 1, &d));
    CHECK_OK(leat_gradients(&d.value, 1, &x, 1, &dd));
    run_all(g, dd.value, 12);
}

/* ---- Names ---- */

static void is(leat_graph *g, const char *name, const char *op, const char *in0, int index)
{
    leat_node *n = leat_graph_find(g, name);
    if (!n)
        printf("no node %s\n", name);
    CHECK(n != NULL);
    if (!n)
        return;
    CHECK_STR(leat_node_op(n), op);
    CHECK_STR(leat_node_name(leat_node_input(n, 0).node), in0);
    CHECK_INT(leat_node_input(n, 0).index, index);
}

static void names(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_DOUBLE, leat_shape(3), leat_name("x"));
    leat_out y = leat_mul(choose(x, triple, same), loop(x, grow));
    is(g, "cond/Switch", "Switch", "Less", 0);
    is(g, "cond/switch_t", "Identity", "cond/Switch", 1);
    is(g, "cond/switch_f", "Identity", "cond/Switch", 0);
    is(g, "cond/pred_id", "Identity", "Less", 0);
    is(g, "cond/Mul/Switch", "Switch", "x", 0);
    is(g, "cond/Mul", "Mul", "cond/Mul/Switch", 1);
    is(g, "cond/Merge", "Merge", "cond/Switch_1", 0);
    is(g, "while/Enter_1", "Enter", "x", 0);
    is(g, "while/Merge_1", "Merge", "while/Enter_1", 0);
    is(g, "while/LoopCond", "LoopCond", "while/Less", 0);
    is(g, "while/Switch_1", "Switch", "while/Merge_1", 0);
    is(g, "while/Identity_1", "Identity", "while/Switch_1", 1);
    is(g, "while/Mul/Enter", "Enter", "x", 0);
    is(g, "while/NextIteration_1", "NextIteration", "while/Add_1", 0);
    is(g, "while/Exit_1", "Exit", "while/Switch_1", 0);
    leat_node *enter = leat_graph_find(g, "while/Enter");
    CHECK_STR(leat_node_string(enter, "frame_name"), "while/while_context");
    leat_grad_value d;
    CHECK_OK(leat_gradients(&y, 1, &x, 1, &d));
    is(g, "gradients/while/Switch_1_grad/b_switch", "Merge", "gradients/while/Exit_1_grad/b_exit",
       0);
    is(g, "gradients/while/Merge_1_grad/Switch", "Switch", "gradients/while/Switch_1_grad/b_switch",
       0);
    is(g, "gradients/while/Enter_1_grad/Exit", "Exit", "gradients/while/Merge_1_grad/Switch", 0);
    leat_graph_free(g);
}

/* ---- Mistakes ---- */

static leat_out leaked;

static void leaks(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    grow(g, arg, vars, next);
    leaked = next[1];
}

static void forgets(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    next[0] = next_i(g, vars);
}

static void changes_dtype(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    next[0] = next_i(g, vars);
    next[1] = leat_cast(vars[1], LEAT_FLOAT);
}

static void an_integer(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = integer(g, 1);
}

static void nothing(leat_graph *g, void *arg, leat_out *outs) {}

static leat_out no_branches(leat_out x)
{
    leat_out y;
    leat_switch_case(integer(leat_node_graph(x.node), 0), NULL, 0, NULL, &y, 1);
    return y;
}

static leat_out uses_leaked(leat_out x)
{
    loop(x, leaks);
    return leat_neg(leaked);
}

static leat_out uses_leaked_in_another(leat_out x)
{
    loop(x, leaks);
    pair p = {leaked, leaked};
    leat_out vars[2] = {integer(leat_node_graph(x.node), 0), x};
    leat_while_loop(four_times, grow, &p, vars, 2, vars);
    return vars[1];
}

static leat_out of_a_gradient_of_a_loop(leat_out x)
{
    leat_out y = loop(x, grow);
    leat_grad_value d;
    leat_status_free(leat_gradients(&y, 1, &x, 1, &d));
    leat_status_free(leat_gradients(&d.value, 1, &x, 1, &d));
    return d.value;
}

/* d(v * v)/dx inside of the body, where v began as x. */
static void asks_too_much(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    pair *p = arg;
    leat_grad_value d;
    grow(g, arg, vars, next);
    leat_out y = leat_mul(vars[1], vars[1]);
    leat_status_free(leat_gradients(&y, 1, &p->x, 1, &d));
}

static leat_out through_the_first_value(leat_out x)
{
    return loop(x, asks_too_much);
}

static leat_out bad_limit(leat_out x)
{
    leat_out vars[2] = {integer(leat_node_graph(x.node), 0), x};
    leat_while_loop(four_times, grow, NULL, vars, 2, vars,
                    .maximum_iterations = leat_ints(leat_node_graph(x.node), 1, 2));
    return vars[1];
}

static leat_out bad_invariant(leat_out x)
{
    leat_shape shapes[2] = {leat_shape(), leat_shape(7)};
    leat_out vars[2] = {integer(leat_node_graph(x.node), 0), x};
    leat_while_loop(four_times, grow, NULL, vars, 2, vars, .shapes = shapes);
    return vars[1];
}

static leat_out grows_unsaid(leat_out x)
{
    return loop(x, doubles);
}
static leat_out forgets_a_result(leat_out x)
{
    return loop(x, forgets);
}
static leat_out another_dtype(leat_out x)
{
    return loop(x, changes_dtype);
}
static leat_out two_dtypes(leat_out x)
{
    return choose(x, same, an_integer);
}
static leat_out no_result(leat_out x)
{
    return choose(x, same, nothing);
}

static void mistakes(void)
{
    static const struct {
        leat_out (*build)(leat_out x);
        const char *words;
    } cases[] = {
        {uses_leaked, "because 'while/Add_1' is in a while loop."},
        {uses_leaked_in_another, "because they are in different while loops."},
        {of_a_gradient_of_a_loop, "Second-order gradient for while loops not supported."},
        {through_the_first_value, "Cannot compute gradient inside while loop with respect to"},
        {bad_limit, "maximum_iterations must be a scalar, saw shape: [2]"},
        {bad_invariant, "The shape invariant specified for x is not compatible"},
        {grows_unsaid, "enters the loop with shape [3], but has shape [6] after one iteration"},
        {forgets_a_result, "Number of inputs and outputs of body must match loop_vars"},
        {another_dtype, "is double, but float after one iteration"},
        {two_dtypes, "must have the same type: double, int32"},
        {no_result, "false_fn must have a return value"},
        {no_branches, "Must provide at least one branch"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        leat_graph *g = leat_graph_new();
        leat_out y =
            cases[i].build(leat_placeholder(g, LEAT_DOUBLE, leat_shape(3), leat_name("x")));
        CHECK(y.node == g->poison);
        CHECK(g->control_ctx == NULL && leat_name_scope(g)[0] == 0);
        leat_status s = leat_graph_status(g);
        CHECK(s && strstr(leat_status_message(s), cases[i].words));
        if (!s || !strstr(leat_status_message(s), cases[i].words))
            printf("%s\n  want %s\n", leat_status_message(s), cases[i].words);
        CHECK(s && strstr(leat_status_message(s), "control_test.c:"));
        leat_status_free(s);
        leat_graph_free(g);
    }
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"gradients", gradients}, {"effects", effects}, {"controls", controls},
               {"grows", grows}, {"gradient_inside", gradient_inside},
               {"second_order", second_order}, {"names", names}, {"mistakes", mistakes});
}
