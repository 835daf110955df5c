/* sequences.h -- files such as data/sequences.txt: the values that a line has behind its name. */
#ifndef LEAT_TEST_SEQUENCES_H
#define LEAT_TEST_SEQUENCES_H

#include "test.h"

/* The values of the line of data/FILE that begins with `name`; gives how many. */
static inline int sequence_in(const char *file, const char *name, double *values, int most)
{
    char line[1 << 16];
    snprintf(line, sizeof(line), LEAT_SOURCE_DIR "/tests/train/data/%s", file);
    FILE *f = fopen(line, "r");
    int n = 0;
    size_t len = strlen(name);
    CHECK(f != NULL);
    while (f && n == 0 && fgets(line, sizeof(line), f)) {
        if (strncmp(line, name, len) != 0 || line[len] != ' ')
            continue;
        for (char *p = line + len, *end; n < most; p = end) {
            values[n] = strtod(p, &end);
            if (end == p)
                break;
            n++;
        }
    }
    if (f)
        fclose(f);
    if (n == 0)
        test_failures++, printf("no sequence \"%s\"\n", name);
    return n;
}

static inline int sequence(const char *name, double *values, int most)
{
    return sequence_in("sequences.txt", name, values, most);
}

#endif
