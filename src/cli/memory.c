/* memory.c -- memory for the subcommands, which end with a message if there is none. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static void *checked(void *p, size_t n, size_t size)
{
    if (p)
        return p;
    fprintf(stderr, "leat: there is no memory for %zu elements of %zu bytes\n", n, size);
    exit(1);
}

void *cli_array(size_t n, size_t size)
{
    return checked(calloc(n ? n : 1, size), n, size);
}

char *cli_text(const char *s, size_t n)
{
    char *copy = cli_array(n + 1, 1);
    memcpy(copy, s, n);
    return copy;
}

FILE *cli_text_stream(char **text_out, size_t *n_out)
{
    return checked(open_memstream(text_out, n_out), 1, BUFSIZ);
}

void *cli_array_resize(void *v, size_t n, size_t size)
{
    return checked(n > SIZE_MAX / size ? NULL : realloc(v, n * size), n, size);
}
