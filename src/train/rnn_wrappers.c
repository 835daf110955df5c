/* rnn_wrappers.c -- cells made of other cells: layers, dropout, residual connections, devices. */
#include <stdio.h>
#include <string.h>

#include "core/md5.h"
#include "core/object.h"
#include "graph/given.h"
#include "train/rnn_cell.h"

/* A wrapper has the states of the cell inside, and no variable scope of its own. */
static leat_cell *wrap(leat_loc at, const leat_cell *inside, leat_cell_def def)
{
    def.n_states = inside->def.n_states;
    def.state_sizes = inside->def.state_sizes;
    def.keep_state = inside->def.keep_state;
    def.output_size = inside->def.output_size;
    return leat_cell_make(at, inside->g, &def, inside->wrapped + 1);
}

/* ---- Layers ---- */

typedef struct layers {
    leat_cell **cells;
    int n;
} layers;

static void build_layers(leat_graph *g, void *arg, int64_t in, leat_dtype t)
{
    const layers *l = arg;
    for (int i = 0; i < l->n; i++) {
        char scope[32];
        snprintf(scope, sizeof(scope), "cell_%d", i);
        leat_with_variable_scope(g, scope) leat_cell_build(l->cells[i], in, t);
        in = l->cells[i]->def.output_size;
    }
}

static leat_out step_layers(leat_graph *g, void *arg, leat_out x, const leat_out *state,
                            leat_out *next)
{
    const layers *l = arg;
    for (int i = 0; i < l->n; i++) {
        x = leat_cell_step(l->cells[i], x, state, next);
        state += l->cells[i]->def.n_states;
        next += l->cells[i]->def.n_states;
    }
    return x;
}

leat_cell *leat_multi_cell_at(leat_loc at, leat_graph *g, leat_cell *const *cells, int n)
{
    int64_t sizes[LEAT_MOST_STATES];
    bool keep[LEAT_MOST_STATES];
    int n_states = 0, wrapped = 0;
    if (!LEAT_USABLE(GRAPH, g))
        return NULL;
    leat_status bad =
        n > 0 && cells
            ? NULL
            : leat_error(INVALID_ARGUMENT, "Must specify at least one cell for leat_multi_cell");
    for (int i = 0; i < n && !bad; i++) {
        if (!cells[i] || cells[i]->g != g)
            bad = leat_error(INVALID_ARGUMENT, "leat_multi_cell: cell %d is no cell of this graph", i);
        else if (n_states + cells[i]->def.n_states > LEAT_MOST_STATES)
            bad = leat_error(INVALID_ARGUMENT, "leat_multi_cell: more than %d states",
                             LEAT_MOST_STATES);
        for (int k = 0; !bad && k < cells[i]->def.n_states; k++) {
            keep[n_states] = cells[i]->def.keep_state && cells[i]->def.keep_state[k];
            sizes[n_states++] = leat_cell_state_size(cells[i], k);
        }
        wrapped = !bad && cells[i]->wrapped > wrapped ? cells[i]->wrapped : wrapped;
    }
    if (bad)
        return leat_cell_broken(at, g, n_states, bad);
    layers *l = leat_arena_new(&g->arena, layers);
    *l = (layers){.cells = leat_arena_array(&g->arena, leat_cell *, n), .n = n};
    memcpy(l->cells, cells, sizeof(*cells) * (size_t)n);
    const leat_cell_def def = {.name = "multi_rnn_cell",
                               .n_states = n_states,
                               .state_sizes = sizes,
                               .keep_state = keep,
                               .output_size = cells[n - 1]->def.output_size,
                               .build = build_layers,
                               .step = step_layers,
                               .arg = l};
    return leat_cell_make(at, g, &def, wrapped + 1);
}

/* ---- Dropout ---- */

typedef struct dropout {
    leat_cell *inside;
    double input, output, state; /* probabilities of being kept */
    bool variational, seeded;
    int64_t seed;
    leat_out input_noise, output_noise, *state_noise; /* variational: (1, size), from 0 to 1 */
} dropout;

/* The seed of the dropout of a tensor, which TensorFlow's client derives from the wrapper's. */
static int64_t seed_of(const dropout *d, const char *what, int i)
{
    char text[64];
    uint8_t digest[16];
    const int n = snprintf(text, sizeof(text), "%lld%s_%d", (long long)d->seed, what, i);
    leat_md5(text, (size_t)n, digest);
    return (int64_t)(((uint32_t)digest[0] << 24 | (uint32_t)digest[1] << 16 |
                      (uint32_t)digest[2] << 8 | digest[3]) &
                     0x7fffffff);
}

static leat_out noise(leat_graph *g, const dropout *d, const char *what, int i, int64_t size,
                      leat_dtype t)
{
    if (d->seeded)
        return leat_random_uniform(g, leat_shape(1, size), .dtype = t,
                                   .seed = seed_of(d, what, i));
    return leat_random_uniform(g, leat_shape(1, size), .dtype = t);
}

static leat_out dropped(const dropout *d, leat_out x, double keep, const char *what, int i,
                        leat_out drawn)
{
    if (keep >= 1)
        return x;
    if (d->variational) {
        leat_out kept = LEAT_OP1("Floor", leat_add(leat_scalar_like(x, keep), drawn));
        return leat_mul(leat_div(x, leat_scalar_like(x, keep)), kept);
    }
    return d->seeded ? leat_dropout(x, 1 - keep, .seed = seed_of(d, what, i))
                     : leat_dropout(x, 1 - keep);
}

static void build_inside(leat_graph *g, void *arg, int64_t in, leat_dtype t)
{
    leat_cell_build(*(leat_cell **)arg, in, t); /* the first member of each wrapper's struct */
}

static leat_out step_dropout(leat_graph *g, void *arg, leat_out x, const leat_out *state,
                             leat_out *next)
{
    const dropout *d = arg;
    const leat_cell_def *inside = &d->inside->def;
    x = dropped(d, x, d->input, "input", 0, d->input_noise);
    leat_out y = leat_cell_step(d->inside, x, state, next);
    for (int i = 0; i < inside->n_states; i++)
        if (!inside->keep_state || !inside->keep_state[i])
            next[i] = dropped(d, next[i], d->state, "state", i,
                              d->state_noise ? d->state_noise[i] : (leat_out){0});
    return dropped(d, y, d->output, "output", 0, d->output_noise);
}

static leat_status check_keep(const char *name, double p)
{
    LEAT_REQUIRE(p >= 0 && p <= 1, INVALID_ARGUMENT, "Parameter %s must be between 0 and 1: %g",
                 name, p);
    return NULL;
}

static leat_status check_dropout(const dropout *d, const leat_dropout_cell_options *o)
{
    LEAT_TRY(check_keep("input_keep_prob", d->input));
    LEAT_TRY(check_keep("output_keep_prob", d->output));
    LEAT_TRY(check_keep("state_keep_prob", d->state));
    LEAT_REQUIRE(!d->variational || d->input == 1 || o->input_size > 0, INVALID_ARGUMENT,
                 "When .variational = true and input_keep_prob < 1, input_size must be provided");
    return NULL;
}

static void draw_noise(leat_graph *g, dropout *d, const leat_dropout_cell_options *o)
{
    const leat_cell_def *inside = &d->inside->def;
    const leat_dtype t = o->dtype ? o->dtype : LEAT_FLOAT;
    if (d->input < 1)
        d->input_noise = noise(g, d, "input", 0, o->input_size, t);
    d->state_noise = leat_arena_array(&g->arena, leat_out, inside->n_states);
    for (int i = 0; i < inside->n_states; i++)
        d->state_noise[i] = noise(g, d, "state", i, inside->state_sizes[i], t);
    d->output_noise = noise(g, d, "output", 0, inside->output_size, t);
}

leat_cell *leat_dropout_cell_at(leat_loc at, leat_cell *cell, const leat_dropout_cell_options *o)
{
    if (!leat_cell_usable(cell))
        return cell;
    leat_graph *g = cell->g;
    dropout *d = leat_arena_new(&g->arena, dropout);
    *d = (dropout){.inside = cell,
                   .input = leat_given_or(&o->given, "input_keep_prob", o->input_keep_prob, 1),
                   .output = leat_given_or(&o->given, "output_keep_prob", o->output_keep_prob, 1),
                   .state = leat_given_or(&o->given, "state_keep_prob", o->state_keep_prob, 1),
                   .variational = o->variational,
                   .seeded = leat_is_given(&o->given, "seed", (double)o->seed),
                   .seed = o->seed};
    leat_status s = check_dropout(d, o);
    if (s) {
        leat_graph_fail(g, at, s);
        return cell;
    }
    leat_loc outer = leat_at_enter(g, at);
    if (d->variational)
        leat_with_name(g, "DropoutWrapperInit") draw_noise(g, d, o);
    leat_at_leave(g, outer);
    return wrap(at, cell, (leat_cell_def){.build = build_inside, .step = step_dropout, .arg = d});
}

/* ---- Residual connections ---- */

typedef struct residual {
    leat_cell *inside;
} residual;

static leat_out step_residual(leat_graph *g, void *arg, leat_out x, const leat_out *state,
                              leat_out *next)
{
    const residual *r = arg;
    const leat_shape in = leat_out_shape(x);
    if (in.dim[1] != r->inside->def.output_size)
        return leat_graph_fail(
            g, (leat_loc){0},
            leat_error(INVALID_ARGUMENT,
                       "A residual cell wants an input of as many columns as its output has: %lld "
                       "and %lld",
                       (long long)in.dim[1], (long long)r->inside->def.output_size));
    return leat_add(x, leat_cell_step(r->inside, x, state, next));
}

leat_cell *leat_residual_cell(leat_cell *cell)
{
    if (!leat_cell_usable(cell))
        return cell;
    residual *r = leat_arena_new(&cell->g->arena, residual);
    r->inside = cell;
    return wrap((leat_loc){0}, cell,
                (leat_cell_def){.build = build_inside, .step = step_residual, .arg = r});
}

/* ---- Devices ---- */

typedef struct placed {
    leat_cell *inside;
    const char *device;
} placed;

static void build_placed(leat_graph *g, void *arg, int64_t in, leat_dtype t)
{
    const placed *p = arg;
    leat_with_device(g, p->device) leat_cell_build(p->inside, in, t);
}

static leat_out step_placed(leat_graph *g, void *arg, leat_out x, const leat_out *state,
                            leat_out *next)
{
    const placed *p = arg;
    leat_out y = {0};
    leat_with_device(g, p->device) y = leat_cell_step(p->inside, x, state, next);
    return y;
}

leat_cell *leat_device_cell(leat_cell *cell, const char *device)
{
    if (!leat_cell_usable(cell))
        return cell;
    placed *p = leat_arena_new(&cell->g->arena, placed);
    *p = (placed){cell, leat_arena_strdup(&cell->g->arena, device ? device : "")};
    return wrap((leat_loc){0}, cell,
                (leat_cell_def){.build = build_placed, .step = step_placed, .arg = p});
}
