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
    {"kernels/dataset", "core proto io graph ops runtime kernels"},
    {"kernels/opencl", "core proto io graph ops runtime kernels"},
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

/* Only path.c and roots.c use the file system by name, so that a process that is limited to some
 * directories is. */
static void files_by_name(void)
{
    static const char *const rooms_of_files[] = {"io", "kernels", "kernels/any", "kernels/cpu",
                                                 "kernels/dataset"};
    static const char *const calls[] = {" open(\"", " open(path", "fopen(", "openat(",
                                        " rename(", "unlink(",    "mkdir(", " opendir(",
                                        "glob(",    "access(",    " stat(", "realpath("};
    int files = 0;
    for (size_t i = 0; i < sizeof(rooms_of_files) / sizeof(*rooms_of_files); i++) {
        char dir[512], path[1024], line[512];
        snprintf(dir, sizeof(dir), "%s/src/%s", LEAT_SOURCE_DIR, rooms_of_files[i]);
        DIR *d = opendir(dir);
        for (struct dirent *e; d && (e = readdir(d));) {
            if (strcmp(e->d_name, "path.c") == 0 || strcmp(e->d_name, "roots.c") == 0 ||
                e->d_name[0] == '.')
                continue;
            snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
            FILE *f = fopen(path, "r");
            for (int n = 1; f && fgets(line, sizeof(line), f); n++)
                for (size_t c = 0; c < sizeof(calls) / sizeof(*calls); c++)
                    if (strstr(line, calls[c]) && !strstr(line, "\"/proc/")) {
                        test_failures++;
                        printf("%s:%d: calls %s; use io/path.h\n", path, n, calls[c]);
                    }
            files += f != NULL;
            if (f)
                fclose(f);
        }
        if (d)
            closedir(d);
    }
    CHECK(files > 50);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"rooms", rooms}, {"files_by_name", files_by_name});
}
