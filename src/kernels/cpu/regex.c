/* regex.c -- StaticRegexFullMatch, for patterns of characters and dots, each of which may be
 * followed by '*', '+' or '?'. All else that RE2 accepts is UNIMPLEMENTED. The time is proportional
 * to the product of both lengths. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "kernels/cpu/cpu.h"

typedef struct piece {
    unsigned char c;
    bool any;            /* '.' */
    bool may_miss, more; /* may_miss: it is optional; more: it may be repeated */
} piece;

typedef struct regex_state {
    piece *v;
    int n;
} regex_state;

static leat_status regex_init(const leat_node *node, void *state)
{
    regex_state *r = state;
    const leat_attr *a = leat_node_attr(node, "pattern");
    const char *p = a->s, *end = a->s + a->n;
    r->v = leat_new_array(piece, a->n + 1);
    p += p < end && *p == '^';
    end -= p < end && end[-1] == '$' && !(end - p > 1 && end[-2] == '\\');
    while (p < end) {
        piece *x = &r->v[r->n++];
        bool quoted = *p == '\\' && p + 1 < end && !isalnum((unsigned char)p[1]);
        p += quoted;
        LEAT_REQUIRE(quoted || !strchr("\\^$|()[]{}*+?", *p) || !*p, UNIMPLEMENTED,
                     "The pattern '%s' has a '%c', which this op does not know", a->s, *p);
        x->any = *p == '.' && !quoted;
        x->c = (unsigned char)*p++;
        if (p < end && strchr("*+?", *p) && *p) {
            x->may_miss = *p != '+';
            x->more = *p++ != '?';
        }
    }
    return NULL;
}

static void regex_release(void *state)
{
    free(((regex_state *)state)->v);
}

/* at[i]: the pieces before i can have matched what was read so far. */
static bool matches(const regex_state *r, const leat_string *s, bool *at, leat_look *look)
{
    memset(at, 0, (size_t)r->n + 1);
    at[0] = true;
    for (size_t k = 0;; k++) {
        for (int i = 0; i < r->n; i++)
            at[i + 1] |= at[i] && r->v[i].may_miss;
        if (k == s->size || leat_look_over(look, 4 * (r->n + 1)))
            return at[r->n];
        unsigned char c = (unsigned char)s->data[k];
        for (int i = r->n; i > 0; i--) {
            const piece *x = &r->v[i - 1];
            bool fits = x->any ? c != '\n' : x->c == c;
            at[i] = fits && (at[i - 1] || (x->more && at[i]));
        }
        at[0] = false;
    }
}

static leat_status regex_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const regex_state *r = leat_kernel_state(k);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    bool *at = leat_new_array(bool, r->n + 1);
    leat_look look = leat_look_begin(k);
    for (int64_t i = 0; i < x->count && !leat_look_over(&look, 1); i++)
        AT(bool, y)[i] = matches(r, AT(leat_string, x) + i, at, &look);
    free(at);
    return NULL;
}

const leat_kernel_def leat_cpu_regex[] = {
    {.op = "StaticRegexFullMatch",
     .run = regex_run,
     .init = regex_init,
     .release = regex_release,
     .state_size = sizeof(regex_state)},
    {0},
};
