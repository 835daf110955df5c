/* arg.h -- arguments of the API that must not be NULL: paths, names. Objects have object.h. */
#ifndef LEAT_CORE_ARG_H
#define LEAT_CORE_ARG_H

#include <leat/status.h>

/* LEAT_CHECK_ARG(path), in a function of the API that returns a status. */
#define LEAT_CHECK_ARG(x) LEAT_REQUIRE((x), INVALID_ARGUMENT, "%s: %s is NULL", __func__, #x)

#endif
