/* common_flags.h -- command-line flags of the models: --name value, --name=value, and for switches
 * --name, --noname, --name=false. */
#ifndef COMMON_FLAGS_H
#define COMMON_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

enum flag_kind { FLAG_INT, FLAG_FLOAT, FLAG_STRING, FLAG_BOOL };

typedef struct flag {
    const char *name;
    enum flag_kind kind;
    void *value;  /* points to an int64_t, double, const char * or bool, which holds the default */
    double least; /* least value of a number */
    const char *help;
} flag;

/* Reads the flags; the list ends with a NULL name. Returns -1 if the program should continue, else
 * its exit code: 0 after --help, 2 after a mistake, which it has reported on standard error. */
int flags_parse(int argc, char **argv, const char *what, const flag *flags);

#endif
