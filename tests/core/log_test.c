/* log_test.c -- sinks, levels, and a sink that logs itself. */
#include "core/log.h"

#include "test.h"

typedef struct seen {
    int n;
    leat_log_level level;
    char text[64];
} seen;

static void note(void *arg, leat_log_level level, const char *file, int line, const char *message)
{
    seen *s = arg;
    s->n++;
    s->level = level;
    snprintf(s->text, sizeof s->text, "%s", message);
    CHECK(strstr(file, "log_test.c") != NULL);
    if (s->n == 100)
        LEAT_LOG(ERROR, "from the sink");
}

static int evaluated;
static int count(void)
{
    return ++evaluated;
}

static void silent(void)
{
    evaluated = 0;
    LEAT_LOG(ERROR, "%d", count());
    CHECK_INT(evaluated, 0);
}

static void sink(void)
{
    seen s = {0};
    leat_log_set_sink(note, &s, LEAT_LOG_WARNING);
    CHECK(!leat_log_wanted(LEAT_LOG_INFO));
    LEAT_LOG(INFO, "no");
    CHECK_INT(s.n, 0);
    LEAT_LOG(WARNING, "ps %d is silent", 3);
    CHECK_INT(s.n, 1);
    CHECK_INT(s.level, LEAT_LOG_WARNING);
    CHECK_STR(s.text, "ps 3 is silent");
    s.n = 99;
    LEAT_LOG(ERROR, "again");
    CHECK_INT(s.n, 101);
    CHECK_STR(s.text, "from the sink");
    leat_log_set_sink(NULL, NULL, LEAT_LOG_INFO);
    silent();
}

int main(int argc, char **argv)
{
    unsetenv("TF_CPP_MIN_LOG_LEVEL");
    return RUN(argc, argv, {"silent", silent}, {"sink", sink});
}
