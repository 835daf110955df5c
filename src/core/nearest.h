/* nearest.h -- the name that somebody who made a typing mistake probably meant. */
#ifndef LEAT_CORE_NEAREST_H
#define LEAT_CORE_NEAREST_H

#include <leat/tensor.h>

/* leat_nearest n = leat_nearest_to("Rleu"); for all names: leat_nearest_see(&n, name);
 * "... not found%s", leat_nearest_show(&n).s */
typedef struct leat_nearest {
    const char *name;
    const char *best; /* of the names seen; borrowed; NULL: none is near */
    int least;        /* how many characters it differs in */
} leat_nearest;
leat_nearest leat_nearest_to(const char *name);
void leat_nearest_see(leat_nearest *n, const char *name);
/* "; did you mean \"Relu\"?", or "" if no name is near. */
leat_text leat_nearest_show(const leat_nearest *n);

#endif
