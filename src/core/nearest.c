/* nearest.c -- names by the number of characters that differ, where upper and lower case are the
 * same. */
#include "core/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 128, MOST_EDITS = 3 };

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* The number of characters to change, add or leave out (Levenshtein); above limit: limit + 1. */
static int distance(const char *a, const char *b, int limit)
{
    int na = (int)strlen(a), nb = (int)strlen(b), row[LONGEST + 1];
    if (nb > LONGEST || abs(na - nb) > limit)
        return limit + 1;
    for (int j = 0; j <= nb; j++)
        row[j] = j;
    for (int i = 1; i <= na; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= nb; j++) {
            int up = row[j], best = diagonal + !same(a[i - 1], b[j - 1]);
            best = up + 1 < best ? up + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = up;
            row[j] = best;
        }
    }
    return row[nb];
}

leat_nearest leat_nearest_to(const char *name)
{
    int half = (int)strnlen(name, LONGEST) / 2;
    return (leat_nearest){.name = name, .least = (half < MOST_EDITS ? half : MOST_EDITS) + 1};
}

void leat_nearest_see(leat_nearest *n, const char *name)
{
    int d = distance(n->name, name, n->least - 1);
    if (d < n->least) {
        n->least = d;
        n->best = name;
    }
}

leat_text leat_nearest_show(const leat_nearest *n)
{
    leat_text t = {""};
    if (n->best)
        snprintf(t.s, sizeof(t.s), "; did you mean \"%s\"?", n->best);
    return t;
}

const char *leat_nearest_name(const char *name, const char *const *names, int n)
{
    leat_nearest near = leat_nearest_to(name);
    for (int i = 0; i < n; i++)
        leat_nearest_see(&near, names[i]);
    return near.best;
}
