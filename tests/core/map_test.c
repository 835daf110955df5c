/* map_test.c -- puts, removals and walks against a plain array. */
#include "core/map.h"

#include "test.h"

static int values[512];

static void basics(void)
{
    leat_map m = {0};
    CHECK(leat_map_get(&m, "a") == NULL);
    CHECK(leat_map_remove(&m, "a") == NULL);
    char key[] = "a";
    CHECK(leat_map_put(&m, key, &values[1]) == NULL);
    key[0] = 'b'; /* the map has its own copy */
    CHECK(leat_map_get(&m, "a") == &values[1]);
    CHECK(leat_map_put(&m, "a", &values[2]) == &values[1]);
    CHECK_INT(m.n, 1);
    CHECK(leat_map_put(&m, "", &values[3]) == NULL);
    CHECK(leat_map_get(&m, "") == &values[3]);
    leat_map_put_n(&m, "x\0y", 3, &values[4]);
    CHECK(leat_map_get(&m, "x") == NULL);
    CHECK(leat_map_get_n(&m, "x\0y", 3) == &values[4]);
    CHECK(leat_map_remove(&m, "a") == &values[2]);
    CHECK(leat_map_get(&m, "a") == NULL);
    leat_map_release(&m);
    CHECK_INT(m.n, 0);
    CHECK(leat_map_get(&m, "") == NULL);
}

static void borrowed_keys(void)
{
    leat_map m = {.borrows_keys = true};
    char keys[100][4];
    for (int i = 0; i < 100; i++) {
        snprintf(keys[i], sizeof(keys[i]), "%d", i);
        CHECK(leat_map_put(&m, keys[i], &values[i]) == NULL);
    }
    size_t at = 0;
    const char *key;
    CHECK(leat_map_next(&m, &at, &key, NULL) && key >= keys[0] && key <= keys[99]);
    CHECK(leat_map_put(&m, "7", &values[8]) == &values[7]); /* the key is in the table already */
    CHECK(leat_map_remove(&m, "3") == &values[3]);
    CHECK(leat_map_get(&m, "7") == &values[8] && !leat_map_get(&m, "3"));
    leat_map_release(&m);
    CHECK(m.n == 0 && m.borrows_keys);
}

static void churn(void)
{
    leat_map m = {0};
    bool in[512] = {0};
    unsigned random = 1;
    size_t n = 0;
    int bad = 0;
    for (int step = 0; step < 20000; step++) {
        random = random * 1664525u + 1013904223u;
        unsigned k = random >> 16 & 511;
        char key[16];
        snprintf(key, sizeof key, "key%u", k);
        void *old = random >> 30 ? leat_map_put(&m, key, &values[k]) : leat_map_remove(&m, key);
        bad += (old != NULL) != in[k];
        n += (random >> 30 != 0) - (size_t)in[k];
        in[k] = random >> 30 != 0;
        bad += m.n != n;
    }
    for (unsigned k = 0; k < 512; k++) {
        char key[16];
        snprintf(key, sizeof key, "key%u", k);
        bad += leat_map_get(&m, key) != (in[k] ? &values[k] : NULL);
    }
    CHECK_INT(bad, 0);
    size_t i = 0, walked = 0;
    const char *key;
    void *value;
    while (leat_map_next(&m, &i, &key, &value)) {
        walked++;
        CHECK(leat_map_get(&m, key) == value);
    }
    CHECK_INT(walked, n);
    leat_map_release(&m);
}

static void hash(void)
{
    CHECK(leat_hash("a", 1, 0) != leat_hash("a\0", 2, 0));
    CHECK(leat_hash("", 0, 0) != leat_hash("", 0, 1));
    CHECK(leat_hash("abcdefgh", 8, 0) != leat_hash("abcdefgi", 8, 0));
    unsigned low[64] = {0}; /* keys that differ in one digit spread over the low bits */
    for (int i = 0; i < 6400; i++) {
        char key[16];
        int n = snprintf(key, sizeof key, "w%d", i);
        low[leat_hash(key, (size_t)n, 0) & 63]++;
    }
    for (int i = 0; i < 64; i++)
        CHECK(low[i] > 50 && low[i] < 150);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"basics", basics}, {"borrowed_keys", borrowed_keys}, {"churn", churn},
               {"hash", hash});
}
