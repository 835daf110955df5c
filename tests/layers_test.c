/* layers_test.c -- includes point one way: a folder may include itself and those below it. */
#include "test.h"

#include <dirent.h>

static const struct {
    const char *room, *may;
} rules[] = {
    {"core", "core"},
    {"proto", "core proto"},
    {"graph", "core proto graph"},
    {"ops", "core proto io graph ops"},
    {"passes", "core proto graph passes"},
    {"runtime", "core proto graph passes runtime"},
    {"kernels", "core proto io graph ops runtime kernels"},
    {"kernels/any", "core proto io graph ops runtime kernels"},
    {"kernels/cpu", "core proto io graph ops runtime kernels"},
    {"data", "core proto data io"},
    {"io", "core proto io"},
    {"train", "core proto graph runtime io train"},
    {"cluster", "core proto graph passes runtime cluster"},
    {"cluster/grpc", "core cluster"},
    {"cluster/stream", "core cluster"},
    {"cluster/shm", "core cluster"},
    {"cluster/socket", "core cluster"},
    {"cli", "cli"},
    {"../models", ""}, /* users' programs: public headers only */
};

static int allowed(const char *may, const char *file)
{
    if (!strchr(file, '/'))
        return 1; /* a file beside it */
    char list[200];
    snprintf(list, sizeof(list), "%s", may);
    for (char *w = strtok(list, " "); w; w = strtok(NULL, " ")) {
        size_t n = strlen(w);
        if (strncmp(file, w, n) == 0 && (file[n] == '/' || file[n] == 0))
            return 1;
    }
    return 0;
}

static void check_file(const char *path, const char *may)
{
    char line[512], included[256];
    FILE *f = fopen(path, "r");
    for (int n = 1; f && fgets(line, sizeof(line), f); n++)
        if (sscanf(line, "#include \"%255[^\"]\"", included) == 1 && !allowed(may, included)) {
            test_failures++;
            printf("%s:%d: includes %s\n", path, n, included);
        }
    if (f)
        fclose(f);
}

static void rooms(void)
{
    int files = 0;
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
        char dir[512], path[1024];
        snprintf(dir, sizeof(dir), "%s/src/%s", LEAT_SOURCE_DIR, rules[i].room);
        DIR *d = opendir(dir);
        for (struct dirent *e; d && (e = readdir(d));) {
            size_t n = strlen(e->d_name);
            if (n < 3 ||
                (strcmp(e->d_name + n - 2, ".c") != 0 && strcmp(e->d_name + n - 2, ".h") != 0))
                continue;
            snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
            check_file(path, rules[i].may);
            files++;
        }
        if (d)
            closedir(d);
    }
    CHECK(files > 50);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"rooms", rooms});
}
