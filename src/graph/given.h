/* given.h -- tells options of a constructor that the user set to 0 from options that the user did
 * not set. leat_given (leat/graph.h) has the text of the arguments, which names the options set. */
#ifndef LEAT_GIVEN_H
#define LEAT_GIVEN_H

#include <leat/graph.h>

/* Whether the user set the option: its value is not 0, or the text of the arguments names it. */
bool leat_is_given(const leat_given *given, const char *option, double value);
/* The option's value, or fallback if the user did not set the option. */
double leat_given_or(const leat_given *given, const char *option, double value, double fallback);
int64_t leat_given_int_or(const leat_given *given, const char *option, int64_t value,
                          int64_t fallback);
/* INVALID_ARGUMENT, with a message that names the constructor and the option, if the user did not
 * set the option. */
leat_status leat_require_given(const leat_given *given, const char *constructor, const char *option,
                               double value) LEAT_MUST_CHECK;

#endif
