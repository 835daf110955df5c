/* Reads of variables that are used after an update, in straight lines, conditions and loops: they
 * give what TensorFlow gives, whose reads are names for the variable's memory. */
#include "passes.h"

typedef struct world {
    leat_graph *g;
    leat_out v, w; /* 2 and 1 at first */
} world;

static world make(const char *device)
{
    world x = {.g = leat_graph_new()};
    leat_with_device(x.g, device)
    {
        x.v = leat_variable(x.g, "v", leat_scalar(x.g, LEAT_FLOAT, 2));
        x.w = leat_variable(x.g, "w", leat_scalar(x.g, LEAT_FLOAT, 1));
    }
    return x;
}

static leat_out number(leat_graph *g, double v)
{
    return leat_scalar(g, LEAT_FLOAT, v);
}

/* Runs y and checks it, and v after that. With all passes, and with those alone that must be. */
static void check(world x, leat_out y, double want, double want_v)
{
    leat_out init = leat_global_variables_initializer(x.g);
    for (int plain = 0; plain < 2; plain++) {
        leat_session *s;
        leat_tensor *t = NULL, *v = NULL;
        CHECK_OK(leat_session_open(x.g, &s, .no_optimization = plain, .cpu_devices = 2));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x.v, &v}), LEAT_NO_TARGET));
        CHECK_NEAR(leat_tensor_at(t, 0), want, 1e-5);
        CHECK_NEAR(leat_tensor_at(v, 0), want_v, 1e-6);
        leat_tensor_unref(t);
        leat_tensor_unref(v);
        leat_session_close(s);
    }
    leat_graph_free(x.g);
}

/* vars: how many turns are done, and a number. */
static leat_out three_turns(leat_graph *g, void *arg, const leat_out *vars)
{
    return leat_less(vars[0], number(g, 3));
}

static leat_out loop(world *x, leat_loop_body_fn body)
{
    leat_out vars[2] = {number(x->g, 0), number(x->g, 0)};
    leat_while_loop(three_turns, body, x, vars, 2, vars, .parallel_iterations = 1);
    return vars[1];
}

static void add_then_use(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    world *x = arg;
    leat_out update = leat_variable_assign_add(x->v, number(g, 1));
    leat_with_control(g, update)
    {
        next[0] = leat_add(vars[0], number(g, 1));
        next[1] = leat_add(vars[1], x->v);
    }
}

static void square_it(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    world *x = arg;
    leat_out update = leat_variable_assign(x->v, leat_mul(x->v, x->v));
    leat_with_control(g, update)
    {
        next[0] = leat_add(vars[0], number(g, 1));
        next[1] = leat_identity(vars[1]);
    }
}

static void fibonacci(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    world *x = arg;
    leat_out first = leat_variable_assign(x->w, leat_add(x->w, x->v)), second = {0};
    leat_with_control(g, first) second = leat_variable_assign(x->v, leat_add(x->v, x->w));
    leat_with_control(g, second)
    {
        next[0] = leat_add(vars[0], number(g, 1));
        next[1] = leat_identity(x->w);
    }
}

static void loop_in_loop(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    world *x = arg;
    leat_out done = loop(x, square_it);
    leat_with_control(g, done)
    {
        next[0] = leat_add(vars[0], number(g, 2));
        next[1] = leat_add(vars[1], leat_log(x->v));
    }
}

static void loops(void)
{
    world x = make("");
    check(x, loop(&x, add_then_use), 3 + 4 + 5, 5);
    x = make("");
    check(x, loop(&x, square_it), 0, 256);
    x = make("");
    check(x, loop(&x, fibonacci), 21, 34);
    x = make("");
    check(x, loop(&x, loop_in_loop), (8 + 64) * 0.69314718056, 18446744073709551616.0);
}

/* A use of the read that was made before the loop, and comes after it. */
static void after_a_loop(void)
{
    world x = make("");
    leat_out done = loop(&x, add_then_use), y = {0};
    leat_with_control(x.g, done) y = leat_add(x.v, number(x.g, 10));
    check(x, y, 15, 5);
}

static void update_and_use(leat_graph *g, void *arg, leat_out *outs)
{
    world *x = arg;
    leat_out update = leat_variable_assign_add(x->v, number(g, 1));
    leat_with_control(g, update) outs[0] = leat_mul(x->v, x->v);
}

static void use(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = leat_add(((world *)arg)->v, number(g, 20));
}

static void branch_in_loop(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    leat_out y = {0};
    leat_cond(leat_greater(vars[0], number(g, 0)), update_and_use, use, arg, &y, 1);
    next[0] = leat_add(vars[0], number(g, 1));
    next[1] = leat_add(vars[1], y);
}

static void conditions(void)
{
    world x = make("");
    leat_out y = {0}, z = {0};
    leat_cond(leat_less(x.v, number(x.g, 3)), update_and_use, use, &x, &y, 1);
    check(x, y, 9, 3);
    x = make("");
    leat_cond(leat_less(x.v, number(x.g, 3)), update_and_use, use, &x, &y, 1);
    leat_with_control(x.g, y) z = leat_add(x.v, number(x.g, 10));
    check(x, z, 13, 3);
    x = make("");
    check(x, loop(&x, branch_in_loop), 22 + 9 + 16, 4);
}

typedef struct updated {
    world x;
    leat_out update; /* outside of the branch */
} updated;

static void use_after_update(leat_graph *g, void *arg, leat_out *outs)
{
    updated *u = arg;
    leat_with_control(g, u->update) outs[0] = leat_add(u->x.v, number(g, 20));
}

static leat_out after_update(leat_graph *g, void *arg, const leat_out *vars)
{
    return leat_less(vars[0], number(g, 3));
}

static void use_in_turn(leat_graph *g, void *arg, const leat_out *vars, leat_out *next)
{
    updated *u = arg;
    next[0] = leat_add(vars[0], number(g, 1));
    leat_with_control(g, u->update) next[1] = leat_add(vars[1], u->x.v);
}

/* The update is made outside; what the branch does waits for it, the condition does not. */
static void after_an_update_outside(void)
{
    updated u = {make("")};
    leat_out y = {0}, z[2] = {{0}};
    u.update = leat_variable_assign_add(u.x.v, number(u.x.g, 5));
    leat_cond(leat_less(number(u.x.g, 2), number(u.x.g, 3)), use_after_update, use, &u, &y, 1);
    check(u.x, y, 27, 7);
    u.x = make("");
    u.update = leat_variable_assign_add(u.x.v, number(u.x.g, 5));
    leat_out start[2] = {number(u.x.g, 0), number(u.x.g, 0)};
    leat_while_loop(after_update, use_in_turn, &u, start, 2, z);
    check(u.x, z[1], 21, 7);
}

/* Another device has a copy of the read, made before the loop, as in TensorFlow. */
static void elsewhere(void)
{
    world x = make("/cpu:1");
    leat_out y = {0};
    leat_with_device(x.g, "/cpu:0") y = loop(&x, add_then_use);
    check(x, y, 2 + 2 + 2, 5);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"loops", loops}, {"after_a_loop", after_a_loop},
               {"conditions", conditions}, {"after_an_update_outside", after_an_update_outside},
               {"elsewhere", elsewhere});
}
