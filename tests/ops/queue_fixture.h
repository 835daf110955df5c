/* queue_fixture.h -- what the tests of queues share. */
#ifndef LEAT_TESTS_QUEUE_FIXTURE_H
#define LEAT_TESTS_QUEUE_FIXTURE_H

#include <leat/leat.h>

#include "test.h"

typedef struct fixture {
    leat_graph *g;
    leat_session *s;
} fixture;

static inline fixture begin(void)
{
    return (fixture){.g = leat_graph_new()};
}

static inline void open_session(fixture *f)
{
    CHECK_OK(leat_graph_status(f->g));
    CHECK_OK(leat_session_open(f->g, &f->s));
}

static inline void end(fixture *f)
{
    leat_session_close(f->s);
    leat_graph_free(f->g);
}

static inline leat_status run(leat_session *s, leat_out target)
{
    return leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(target));
}

/* A run that must not wait. */
static inline leat_status try_run(leat_session *s, leat_out target)
{
    leat_run_options o = {.timeout_ms = 30};
    return leat_session_run_with(s, &o, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(target));
}

static inline void check_values(leat_session *s, leat_out x, const char *want)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    char *text = t ? leat_tensor_text(t, -1) : NULL;
    CHECK_STR(text, want);
    free(text);
    leat_tensor_unref(t);
}

static inline leat_status fetch(leat_session *s, leat_out x)
{
    leat_tensor *t = NULL;
    leat_status st = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET);
    leat_tensor_unref(t);
    return st;
}

static inline leat_out ints(leat_graph *g, int n, const int *v)
{
    int64_t wide[32];
    for (int i = 0; i < n; i++)
        wide[i] = v[i];
    return leat_int_vector_at(LEAT_AT, g, LEAT_INT32, wide, n);
}
#define INTS(g, ...)                                                                               \
    ints(g, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__})
#define SCALARS LEAT_COMPONENTS({LEAT_INT32, leat_shape()})

#endif
