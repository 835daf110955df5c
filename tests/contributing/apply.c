/* apply.c -- does what CONTRIBUTING.md says: apply TEXT SOURCE_DIR OUT_DIR FILE...
 *
 * A line "A new file `PATH`:" or "In `PATH`, after the line that begins `START`:" is followed by a
 * block of code. The files are made in OUT_DIR, those that are edited from SOURCE_DIR's. The FILEs
 * are what the build expects: the text must make all of them, and no others. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_FILES = 32, MOST_PATH = 1024 };

typedef struct file {
    char path[MOST_PATH];
    char *text;
} file;

static file files[MOST_FILES];
static int n_files;

static void give_up(const char *what, const char *which)
{
    fprintf(stderr, "CONTRIBUTING.md: %s: %s\n", what, which);
    exit(1);
}

/* Gives NULL if there is no such file; the caller frees. */
static char *read_all(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    char *text = calloc((size_t)n + 1, 1);
    if (!text || fread(text, 1, (size_t)n, f) != (size_t)n)
        give_up("cannot read", path);
    fclose(f);
    return text;
}

static file *file_of(const char *source, const char *path, bool is_new)
{
    char full[2 * MOST_PATH];
    for (int i = 0; i < n_files; i++)
        if (strcmp(files[i].path, path) == 0)
            return &files[i];
    if (n_files == MOST_FILES)
        give_up("too many files", path);
    file *f = &files[n_files++];
    snprintf(f->path, sizeof(f->path), "%s", path);
    snprintf(full, sizeof(full), "%s/%s", source, path);
    f->text = read_all(full);
    if (is_new && f->text)
        give_up("the file that is to be new is there", path);
    if (!is_new && !f->text)
        give_up("there is no such file", path);
    if (is_new)
        f->text = calloc(1, 1);
    return f;
}

/* The end of the only line that begins so, blanks aside. */
static char *after_line(file *f, const char *start)
{
    char *found = NULL;
    for (char *line = f->text; *line;) {
        char *end = strchr(line, '\n');
        end = end ? end + 1 : line + strlen(line);
        const char *words = line + strspn(line, " ");
        if (strncmp(words, start, strlen(start)) == 0) {
            if (found)
                give_up("several lines begin so", start);
            found = end;
        }
        line = end;
    }
    if (!found)
        give_up("no line begins so", start);
    return found;
}

static void insert(file *f, size_t at, const char *code, size_t n)
{
    size_t old = strlen(f->text);
    char *text = calloc(old + n + 1, 1);
    if (!text)
        give_up("no memory for", f->path);
    memcpy(text, f->text, at);
    memcpy(text + at, code, n);
    memcpy(text + at + n, f->text + at, old - at);
    free(f->text);
    f->text = text;
}

/* The block of code that begins on the next line; gives what is after it. */
static const char *block_of(const char *p, const char **code, size_t *n)
{
    if (strncmp(p, "```c\n", 5) != 0)
        give_up("no code follows", p);
    *code = p + 5;
    const char *end = strstr(*code, "\n```");
    if (!end)
        give_up("code without an end", *code);
    *n = (size_t)(end + 1 - *code);
    return end + 4;
}

static void apply(const char *text, const char *source)
{
    for (const char *p = text; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        char path[MOST_PATH] = "", start[MOST_PATH] = "";
        int n = 0;
        bool is_new = sscanf(p, "A new file `%1023[^`]`:%n", path, &n) == 1 && n;
        if (!is_new && (sscanf(p, "In `%1023[^`]`, after the line that begins `%1023[^`]`:%n", path,
                               start, &n) != 2 ||
                        !n))
            continue;
        const char *code;
        size_t size;
        if (p[n] != '\n')
            give_up("the line goes on", path);
        p = block_of(p + n + 1, &code, &size);
        file *f = file_of(source, path, is_new);
        size_t at = is_new ? strlen(f->text) : (size_t)(after_line(f, start) - f->text);
        insert(f, at, code, size);
    }
}

static void write_file(const char *out, const file *f)
{
    char full[2 * MOST_PATH];
    snprintf(full, sizeof(full), "%s/%s", out, f->path);
    for (char *slash = strchr(full + strlen(out), '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(full, 0777); /* it may be there */
        *slash = '/';
    }
    FILE *to = fopen(full, "wb");
    if (!to || fputs(f->text, to) == EOF || fclose(to) != 0)
        give_up("cannot write", full);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: apply TEXT SOURCE_DIR OUT_DIR FILE...\n");
        return 2;
    }
    char *text = read_all(argv[1]);
    if (!text)
        give_up("cannot read", argv[1]);
    apply(text, argv[2]);
    free(text);
    mkdir(argv[3], 0777);
    if (n_files != argc - 4)
        give_up("the build expects other files than the text makes", argv[1]);
    for (int i = 0; i < n_files; i++) {
        bool expected = false;
        for (int k = 4; k < argc; k++)
            expected |= strcmp(argv[k], files[i].path) == 0;
        if (!expected)
            give_up("the build does not expect this file", files[i].path);
        write_file(argv[3], &files[i]);
        free(files[i].text);
    }
    return 0;
}
