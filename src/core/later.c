/* later.c -- see later.h. */
#include "core/later.h"

enum { MOST = 16, PATIENCE = 8 };

static __thread struct {
    void (*fn)(void *arg);
    void *arg;
    int again; /* how often the same was put off */
} put_off[MOST];
static __thread int n_put_off, holds;

void leat_later_begin(void)
{
    holds++;
}

void leat_later_end(void)
{
    if (--holds == 0)
        leat_later_now();
}

void leat_later_now(void)
{
    while (n_put_off) {
        n_put_off--;
        put_off[n_put_off].fn(put_off[n_put_off].arg);
    }
}

bool leat_later_put(void (*fn)(void *arg), void *arg, bool *again_out)
{
    *again_out = false;
    if (!holds)
        return false;
    for (int i = 0; i < n_put_off; i++)
        if (put_off[i].fn == fn && put_off[i].arg == arg) {
            *again_out = true;
            return ++put_off[i].again < PATIENCE;
        }
    if (n_put_off == MOST)
        return false;
    put_off[n_put_off].fn = fn;
    put_off[n_put_off].arg = arg;
    put_off[n_put_off++].again = 0;
    return true;
}
