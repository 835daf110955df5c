/* docs_test.c -- documents name tests as evidence, `socket_test silent_crowd`, `frame_fuzz`: each
 * must exist, and have a case of that name. */
#include "test.h"

#include <glob.h>
#include <stdbool.h>

static const char *const documents[] = {"docs/security.md", "docs/failures.md"};

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    size_t room = 1 << 20;
    char *text = malloc(room);
    CHECK(f != NULL);
    const size_t n = f ? fread(text, 1, room - 1, f) : 0;
    CHECK(n > 0 && n < room - 1);
    text[n] = 0;
    if (f)
        fclose(f);
    return text;
}

static bool has_case(const char *path, const char *name)
{
    char *text = read_file(path), quoted[128];
    snprintf(quoted, sizeof(quoted), "\"%s\"", name);
    const bool found = strstr(text, quoted) != NULL;
    free(text);
    return found;
}

/* program: socket_test, frame_fuzz; name: a case of it, or "". */
static bool exists(const char *program, const char *name)
{
    static const char *const folders[] = {"tests", "tests/*"};
    bool found = false;
    for (int i = 0; i < 2 && !found; i++) {
        char pattern[512];
        glob_t files;
        snprintf(pattern, sizeof(pattern), LEAT_SOURCE_DIR "/%s/%s.c", folders[i], program);
        if (glob(pattern, 0, NULL, &files) == 0) {
            found = !*name || has_case(files.gl_pathv[0], name);
            globfree(&files);
        }
    }
    return found;
}

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

static void evidence(void)
{
    int named = 0;
    for (size_t d = 0; d < sizeof(documents) / sizeof(*documents); d++) {
        char path[512];
        snprintf(path, sizeof(path), LEAT_SOURCE_DIR "/%s", documents[d]);
        char *text = read_file(path);
        for (char *p = strchr(text, '`'), *end; p && (end = strchr(p + 1, '`'));
             p = strchr(end + 1, '`')) {
            char program[64], name[64] = "", more[2];
            *end = 0;
            const int words = sscanf(p + 1, "%63s %63s %1s", program, name, more);
            if (words < 1 || words > 2 ||
                !(ends_with(program, "_test") || ends_with(program, "_fuzz")) ||
                strspn(program, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(program))
                continue;
            named++;
            if (!exists(program, name)) {
                test_failures++;
                printf("%s: there is no `%s`\n", documents[d], p + 1);
            }
        }
        free(text);
    }
    printf("%d tests named\n", named);
    CHECK(named > 50);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"evidence", evidence});
}
