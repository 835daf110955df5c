/* log.h -- LEAT_LOG(WARNING, "ps %d does not reply", i): nothing is formatted if no sink wants the
 * level. */
#ifndef LEAT_CORE_LOG_H
#define LEAT_CORE_LOG_H

#include <leat/status.h>

bool leat_log_wanted(leat_log_level level);
void leat_log_write(leat_log_level level, const char *file, int line, const char *fmt, ...)
    LEAT_PRINTF(4, 5);

/* Output of printing ops: sent to the sink if the program has set one for level info, else written
 * to standard error without a prefix. */
void leat_log_print(const char *text, const char *file, int line);

#define LEAT_LOG(level, ...)                                                                       \
    do {                                                                                           \
        if (leat_log_wanted(LEAT_LOG_##level))                                                     \
            leat_log_write(LEAT_LOG_##level, __FILE__, __LINE__, __VA_ARGS__);                     \
    } while (0)

#endif
