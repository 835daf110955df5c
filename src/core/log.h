/* log.h -- LEAT_LOG(WARNING, "ps %d is silent", i): nothing is formatted when nobody listens. */
#ifndef LEAT_CORE_LOG_H
#define LEAT_CORE_LOG_H

#include <leat/status.h>

/* __FILE__ from its tree's root on ("src/core/log.c"), wherever that tree was built. */
const char *leat_source_path(const char *file);

bool leat_log_wanted(leat_log_level level);
void leat_log_write(leat_log_level level, const char *file, int line, const char *fmt, ...)
    LEAT_PRINTF(4, 5);

/* What a graph was asked to print: goes to the sink if the program has set one for level info, else
 * to standard error as it is. */
void leat_log_print(const char *text, const char *file, int line);

#define LEAT_LOG(level, ...)                                                                       \
    do {                                                                                           \
        if (leat_log_wanted(LEAT_LOG_##level))                                                     \
            leat_log_write(LEAT_LOG_##level, __FILE__, __LINE__, __VA_ARGS__);                     \
    } while (0)

#endif
