/* given.h -- which options of a constructor were written, so that an option of 0 differs from one
 * that is not there. */
#ifndef LEAT_GIVEN_H
#define LEAT_GIVEN_H

#include <leat/graph.h>

/* Whether the option was written: it is not 0, or its name is in the text of the arguments. */
bool leat_is_given(const leat_given *given, const char *option, double value);
/* The option's value, or its default if it was not written. */
double leat_given_or(const leat_given *given, const char *option, double value, double fallback);
int64_t leat_given_int_or(const leat_given *given, const char *option, int64_t value,
                          int64_t fallback);
/* INVALID_ARGUMENT that names the constructor and the option, if the option was not written. */
leat_status leat_require_given(const leat_given *given, const char *constructor, const char *option,
                               double value) LEAT_MUST_CHECK;

#endif
