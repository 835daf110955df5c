/* shakespeare_test.c -- Tiny Shakespeare: found, drawn, and files that are no text. */
#include <leat/data.h>

#include "test.h"

static char dir[64];

static void make_dir(void)
{
    strcpy(dir, "/tmp/leat-shakespeare-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    setenv("LEAT_DATA_CACHE", dir, 1);
    setenv("LEAT_DATA_URL", "none", 1);
}

static void remove_dir(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    CHECK_INT(system(command), 0);
}

static void write_text(const char *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/input.txt", dir);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n);
    fclose(f);
}

static void found(void)
{
    char *text, *source, want[128];
    size_t n;
    make_dir();
    write_text("To be\n", 6);
    CHECK_OK(leat_shakespeare_read(dir, &text, &n, &source));
    CHECK_INT(n, 6);
    CHECK(memcmp(text, "To be\n", 6) == 0);
    snprintf(want, sizeof(want), "Tiny Shakespeare from %s", dir);
    CHECK_STR(source, want);
    free(text);
    free(source);
    write_text("", 0);
    CHECK_ERROR(leat_shakespeare_read(dir, &text, &n, &source), DATA_LOSS, "input.txt is no text");
    write_text("a\0b", 3);
    CHECK_ERROR(leat_shakespeare_read(dir, &text, &n, &source), DATA_LOSS, "input.txt is no text");
    remove_dir();
}

static void drawn(void)
{
    char *text, *source, before[4096];
    size_t n;
    make_dir();
    CHECK(getcwd(before, sizeof(before)) && chdir(dir) == 0);
    CHECK_OK(leat_shakespeare_read(NULL, &text, &n, &source));
    CHECK(strstr(source, "no Tiny Shakespeare found; training on verses") == source);
    CHECK(n >= 300000 && n == strlen(text));
    CHECK(strstr(text, "ROMEO:\n") && strstr(text, " my lord "));
    free(text);
    free(source);
    CHECK(chdir(before) == 0);
    remove_dir();
}

static void real(void)
{
    char *text, *source;
    size_t n;
    if (access(LEAT_SOURCE_DIR "/../shared/data/tinyshakespeare/input.txt.gz", R_OK) != 0)
        SKIP("../shared/data/tinyshakespeare is not there");
    CHECK_OK(leat_shakespeare_read(LEAT_SOURCE_DIR "/../shared/data/tinyshakespeare", &text, &n,
                                   &source));
    CHECK_INT(n, 1115394);
    CHECK(strncmp(text, "First Citizen:\n", 15) == 0);
    free(text);
    free(source);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"found", found}, {"drawn", drawn}, {"real", real});
}
