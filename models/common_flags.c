/* common_flags.c -- see common_flags.h. */
#include "common_flags.h"

#include <leat/status.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_default(const flag *f)
{
    if (f->kind == FLAG_INT)
        printf(" (%lld)", (long long)*(int64_t *)f->value);
    else if (f->kind == FLAG_FLOAT)
        printf(" (%g)", *(double *)f->value);
    else if (f->kind == FLAG_STRING && *(const char **)f->value)
        printf(" (%s)", *(const char **)f->value);
}

static int help(const char *program, const char *what, const flag *flags)
{
    static const char *const kinds[] = {" N", " X", " S", ""};
    printf("%s: %s\n\n", program, what);
    for (const flag *f = flags; f->name; f++) {
        char left[64];
        snprintf(left, sizeof(left), "--%s%s", f->name, kinds[f->kind]);
        printf("  %-24s %s", left, f->help);
        print_default(f);
        printf("\n");
    }
    return 0;
}

static int wrong(const char *program, const char *problem, const char *arg)
{
    fprintf(stderr, "%s: %s: %s (--help lists the flags)\n", program, arg, problem);
    return 2;
}

static int unknown(const char *program, const char *arg, const char *name, size_t n,
                   const flag *flags)
{
    enum { MOST = 64 };
    char typed[MOST], problem[2 * MOST + 32] = "unknown flag";
    const char *names[MOST], *near;
    int count = 0;
    for (const flag *f = flags; f->name && count < MOST; f++)
        names[count++] = f->name;
    snprintf(typed, sizeof(typed), "%.*s", (int)n, name);
    if ((near = leat_nearest_name(typed, names, count)) != NULL)
        snprintf(problem, sizeof(problem), "unknown flag; did you mean --%s?", near);
    return wrong(program, problem, arg);
}

/* The flag that arg names, up to n characters; *off if it is a switch with "no" before it. */
static const flag *find(const flag *flags, const char *arg, size_t n, bool *off)
{
    *off = false;
    for (const flag *f = flags; f->name; f++) {
        if (strlen(f->name) == n && strncmp(f->name, arg, n) == 0)
            return f;
        if (f->kind == FLAG_BOOL && n > 2 && strncmp(arg, "no", 2) == 0 &&
            strlen(f->name) == n - 2 && strncmp(f->name, arg + 2, n - 2) == 0) {
            *off = true;
            return f;
        }
    }
    return NULL;
}

static bool same(const char *a, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(a, *list) == 0)
            return true;
    return false;
}

/* An error message if the value is not valid, or NULL. */
static const char *set(const flag *f, const char *text)
{
    static const char *const yes[] = {"true", "True", "1", "yes", NULL}, *const no[] = {
                                                                             "false", "False", "0",
                                                                             "no", NULL};
    char *end = NULL;
    errno = 0;
    switch (f->kind) {
    case FLAG_STRING:
        *(const char **)f->value = text;
        return NULL;
    case FLAG_BOOL:
        if (!same(text, yes) && !same(text, no))
            return "wants true or false";
        *(bool *)f->value = same(text, yes);
        return NULL;
    case FLAG_INT: {
        long long v = strtoll(text, &end, 10);
        if (end == text || *end || errno)
            return "wants a whole number";
        *(int64_t *)f->value = v;
        return (double)v < f->least ? "is too small" : NULL;
    }
    default: {
        double v = strtod(text, &end);
        if (end == text || *end || errno || v != v)
            return "wants a number";
        *(double *)f->value = v;
        return v < f->least ? "is too small" : NULL;
    }
    }
}

int flags_parse(int argc, char **argv, const char *what, const flag *flags)
{
    const char *program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i], *name = arg + strspn(arg, "-");
        size_t n = strcspn(name, "=");
        bool off;
        if (arg[0] != '-' || name - arg > 2)
            return wrong(program, "not a flag", arg);
        if (strcmp(name, "help") == 0 || strcmp(name, "h") == 0)
            return help(program, what, flags);
        const flag *f = find(flags, name, n, &off);
        if (!f)
            return unknown(program, arg, name, n, flags);
        const char *text = name[n] ? name + n + 1 : NULL;
        if (f->kind == FLAG_BOOL && !text)
            text = off ? "false" : "true";
        else if (off)
            return wrong(program, "takes no value", arg);
        if (!text && i + 1 == argc)
            return wrong(program, "wants a value", arg);
        const char *problem = set(f, text ? text : argv[++i]);
        if (problem)
            return wrong(program, problem, text ? arg : argv[i - 1]);
    }
    return -1;
}
