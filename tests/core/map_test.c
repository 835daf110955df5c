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

/* Keys with one hash for the seed 0 have different ones for the secret, which a table keeps when it
 * grows and when it is emptied. */
static void seeded(void)
{
    enum { N = 1000 };
    __extension__ typedef unsigned __int128 wide;
    const uint64_t k0 = 0x9e3779b97f4a7c15u, k1 = 0xd1b54a32d192ed03u;
    const uint64_t secret = leat_hash_secret();
    const wide begin = (wide)(k0 ^ 16) * k1;
    static uint64_t keys[N][2];
    static bool used[1 << 16];
    leat_map m = {.borrows_keys = true, .seed = secret};
    int places = 0;
    CHECK(secret && leat_hash_secret() == secret);
    for (uint64_t i = 0; i < N; i++) {
        const wide p = (wide)(((uint64_t)begin ^ (uint64_t)(begin >> 64)) ^ i) * k0;
        keys[i][0] = i;
        keys[i][1] = ((uint64_t)p ^ (uint64_t)(p >> 64)) + k1;
        CHECK(leat_hash(keys[i], 16, 0) == leat_hash(keys[0], 16, 0));
        bool *place = &used[leat_hash(keys[i], 16, secret) & 0xffff];
        places += !*place;
        *place = true;
        CHECK(!leat_map_put_n(&m, keys[i], 16, &values[i % 512]));
    }
    CHECK(places > N * 9 / 10);
    for (int i = 0; i < N; i++)
        CHECK(leat_map_get_n(&m, keys[i], 16) == &values[i % 512]);
    leat_map_release(&m);
    CHECK(m.seed == secret);
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
    return RUN(argc, argv, {"basics", basics}, {"borrowed_keys", borrowed_keys}, {"seeded", seeded},
               {"churn", churn}, {"hash", hash});
}
