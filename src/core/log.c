/* log.c -- one sink for the process. It is called under a recursive lock, so that messages do not
 * mix, a sink may log, and a sink that was replaced is no longer running when leat_log_set
 * returns. */
#include "core/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/strbuf.h"

enum { SILENT = LEAT_LOG_ERROR + 1 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock; /* guards sink and sink_arg; the sink is called under it */
static leat_log_fn sink;
static void *sink_arg;
static atomic_int least = SILENT; /* read without the lock */
static int environment_least = SILENT;

static void to_stderr(void *arg, leat_log_level level, const char *file, int line,
                      const char *message)
{
    struct timespec now;
    struct tm local;
    char when[32] = "";
    clock_gettime(CLOCK_REALTIME, &now);
    if (localtime_r(&now.tv_sec, &local))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    fprintf(stderr, "%s.%06ld: %c %s:%d] %s\n", when, now.tv_nsec / 1000, "IWE"[level], file, line,
            message);
}

static void start(void)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attr);
    pthread_mutexattr_destroy(&attr);
    const char *text = getenv("TF_CPP_MIN_LOG_LEVEL");
    if (text && *text) {
        int level = atoi(text);
        environment_least = level < 0 ? 0 : level > SILENT ? SILENT : level;
    }
    sink = to_stderr;
    atomic_store(&least, environment_least);
}

void leat_log_set_sink(leat_log_fn fn, void *arg, leat_log_level level)
{
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    sink = fn ? fn : to_stderr;
    sink_arg = arg;
    atomic_store(&least, fn ? (int)level : environment_least);
    pthread_mutex_unlock(&lock);
}

bool leat_log_wanted(leat_log_level level)
{
    pthread_once(&once, start);
    return (int)level >= atomic_load_explicit(&least, memory_order_relaxed);
}

void leat_log_write(leat_log_level level, const char *file, int line, const char *fmt, ...)
{
    pthread_once(&once, start);
    if (level > LEAT_LOG_ERROR)
        level = LEAT_LOG_ERROR;
    leat_strbuf text = {0};
    va_list ap;
    va_start(ap, fmt);
    leat_strbuf_vprintf(&text, fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&lock);
    if ((int)level >= atomic_load(&least))
        sink(sink_arg, level, file, line, leat_strbuf_text(&text));
    pthread_mutex_unlock(&lock);
    leat_strbuf_release(&text);
}

void leat_log_print(const char *text, const char *file, int line)
{
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    if (sink != to_stderr && LEAT_LOG_INFO >= atomic_load(&least))
        sink(sink_arg, LEAT_LOG_INFO, file, line, text);
    else
        fputs(text, stderr);
    pthread_mutex_unlock(&lock);
}
