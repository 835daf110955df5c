/* writer_cache.c -- one event writer for a directory, shared by all hooks of the process, because
 * TensorBoard reads only the newest file of a directory. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "train/hook_int.h"

typedef struct entry {
    char *dir;
    leat_summary_writer *writer;
    int users;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards entries */
static entry *entries;
static int n_entries, cap_entries;

leat_summary_writer *leat_writer_get(const char *dir)
{
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < n_entries && strcmp(entries[i].dir, dir) != 0)
        i++;
    if (i == n_entries) {
        leat_grow(entries, n_entries, cap_entries);
        entries[n_entries++] =
            (entry){.dir = leat_xstrdup(dir),
                    .writer = leat_summary_writer_try(dir, &(leat_writer_options){.max_queue = 0})};
    }
    entries[i].users++;
    leat_summary_writer *w = entries[i].writer;
    pthread_mutex_unlock(&lock);
    return w;
}

void leat_writer_put(leat_summary_writer *w)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; w && i < n_entries; i++) {
        if (entries[i].writer != w || --entries[i].users > 0)
            continue;
        free(entries[i].dir);
        entries[i] = entries[--n_entries];
        leat_writer_tell(w, leat_summary_flush(w));
        leat_status_free(leat_summary_writer_close(w));
        break;
    }
    if (n_entries == 0) {
        free(entries);
        entries = NULL;
        cap_entries = 0;
    }
    pthread_mutex_unlock(&lock);
}
