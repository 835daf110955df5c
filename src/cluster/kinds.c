/* kinds.c -- the kinds of sessions that are opened by target. */
#include "runtime/session_int.h"

const leat_session_kind *const leat_session_kinds[] = {NULL};
