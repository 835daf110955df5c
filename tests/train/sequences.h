/* sequences.h -- data/sequences.txt: the values that a line has behind its name. */
#ifndef LEAT_TEST_SEQUENCES_H
#define LEAT_TEST_SEQUENCES_H

#include "test.h"

/* The values of the line that begins with `name`; gives how many. */
static inline int sequence(const char *name, double *values, int most)
{
    char line[4096];
    FILE *f = fopen(LEAT_SOURCE_DIR "/tests/train/data/sequences.txt", "r");
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

#endif
