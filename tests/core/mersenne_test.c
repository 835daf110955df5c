/* mersenne_test.c -- MT19937-64: the number that the C++ standard names, and orders of
 * std::shuffle. */
#include "core/mersenne.h"

#include "test.h"

static void standard(void)
{
    leat_mersenne m;
    uint64_t x = 0;
    leat_mersenne_init(&m, 5489);
    for (int i = 0; i < 10000; i++)
        x = leat_mersenne_next(&m);
    CHECK(x == UINT64_C(9981545732273789042));
}

/* Nothing is lost, whatever the number; orders are compared by record_input_test.c. */
static void shuffle(void)
{
    int v[9];
    leat_mersenne m;
    leat_mersenne_init(&m, 1);
    for (size_t n = 0; n <= 9; n++) {
        void *p[9];
        int seen = 0;
        for (size_t i = 0; i < n; i++)
            p[i] = &v[i];
        leat_mersenne_shuffle(&m, p, n);
        for (size_t i = 0; i < n; i++)
            seen |= 1 << ((int *)p[i] - v);
        CHECK_INT(seen, (1 << n) - 1);
    }
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"standard", standard}, {"shuffle", shuffle});
}
