/* Any bytes as saved_model.pb and as saved_model.pbtxt: loaded, or refused. */
#define _GNU_SOURCE
#include <leat/leat.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/buffer.h"
#include "io/file.h"

static char dir[64], file[2][128];

static void remove_all(void)
{
    for (int i = 0; i < 2; i++)
        unlink(file[i]);
    rmdir(dir);
}

static void put(const char *path, const uint8_t *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    leat_cpu_allocator()->limit = 8 << 20;
    if (!dir[0]) {
        snprintf(dir, sizeof(dir), "/tmp/saved-model-%d", (int)getpid());
        snprintf(file[0], sizeof(file[0]), "%s/saved_model.pb", dir);
        snprintf(file[1], sizeof(file[1]), "%s/saved_model.pbtxt", dir);
        if (mkdir(dir, 0700) != 0)
            abort();
        atexit(remove_all);
    }
    for (int i = 0; i < 2; i++) {
        leat_saved_model *m = NULL;
        put(file[i], data, n);
        leat_status_free(leat_saved_model_load(dir, &m));
        leat_saved_model_close(m);
        unlink(file[i]);
    }
    return 0;
}
