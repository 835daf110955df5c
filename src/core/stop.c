/* stop.c -- see stop.h. */
#include "core/stop.h"

#include "core/threadpool.h"

leat_status leat_stop_check(const leat_stop *s)
{
    if (!s)
        return NULL;
    LEAT_REQUIRE(!s->cancelled || !s->cancelled(s->arg), CANCELLED, "The run was cancelled");
    LEAT_REQUIRE(!s->deadline_ns || leat_now_ns() <= s->deadline_ns, DEADLINE_EXCEEDED,
                 "Timed out");
    return NULL;
}
