/* args.c -- parsing the arguments of subcommands, and reporting mistakes in them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

int cli_bad_use(const char *command, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "leat %s: ", command);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, " (`leat help %s` tells how)\n", command);
    va_end(ap);
    return 2;
}

int cli_finish(const char *command, leat_status s)
{
    if (!s)
        return 0;
    fprintf(stderr, "leat %s: %s: %s\n", command, leat_code_name(leat_status_code(s)),
            leat_status_message(s));
    leat_status_free(s);
    return 1;
}

void cli_values_add(cli_values *v, const char *text)
{
    v->v = cli_array_resize(v->v, (size_t)v->n + 1, sizeof(*v->v));
    v->v[v->n++] = text;
}

void cli_values_free(cli_values *v)
{
    free(v->v);
    *v = (cli_values){0};
}

static const cli_option *find(const cli_option *options, const char *name, size_t n)
{
    for (const cli_option *o = options; o->name; o++)
        if (strlen(o->name) == n && strncmp(o->name, name, n) == 0)
            return o;
    return NULL;
}

static void no_such_option(const char *command, const char *arg, const char *name, size_t n,
                           const cli_option *options)
{
    enum { MOST = 64 };
    char typed[MOST];
    const char *names[MOST], *near;
    int count = 0;
    for (const cli_option *o = options; o->name && count < MOST; o++)
        names[count++] = o->name;
    snprintf(typed, sizeof(typed), "%.*s", (int)n, name);
    if ((near = leat_nearest_name(typed, names, count)) != NULL)
        cli_bad_use(command, "%s: no such option; did you mean --%s?", arg, near);
    else
        cli_bad_use(command, "%s: no such option", arg);
}

bool cli_parse(int argc, char **argv, const cli_option *options, cli_values *rest_out)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (arg[0] != '-' || !arg[1]) {
            cli_values_add(rest_out, arg);
            continue;
        }
        const char *name = arg + strspn(arg, "-");
        size_t n = strcspn(name, "=");
        const cli_option *o = find(options, name, n);
        if (!o) {
            no_such_option(argv[0], arg, name, n, options);
            return false;
        }
        if (o->given) {
            if (name[n]) {
                cli_bad_use(argv[0], "%s: takes no value", arg);
                return false;
            }
            *o->given = true;
            continue;
        }
        if (!name[n] && i + 1 == argc) {
            cli_bad_use(argv[0], "%s: wants a value", arg);
            return false;
        }
        const char *value = name[n] ? name + n + 1 : argv[++i];
        if (o->values)
            cli_values_add(o->values, value);
        else
            *o->value = value;
    }
    return true;
}

bool cli_number(const char *command, const char *option, const char *text, long long least,
                long long *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || v < least) {
        cli_bad_use(command, "--%s %s: wants a whole number from %lld", option, text, least);
        return false;
    }
    *out = v;
    return true;
}
