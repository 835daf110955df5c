/* main.c -- the `leat` command: finds the subcommand and runs it. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const cli_command *const commands[] = {&cli_run,    &cli_show,  &cli_freeze, &cli_devices,
                                              &cli_launch, &cli_check, &cli_server, NULL};

static const cli_command *find(const char *name)
{
    for (const cli_command *const *c = commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

static void list(FILE *to)
{
    fprintf(to, "usage: leat COMMAND ...\n\n");
    for (const cli_command *const *c = commands; *c; c++)
        fprintf(to, "  %-10s %s\n", (*c)->name, (*c)->summary);
    fprintf(to, "  %-10s %s\n\n`leat help COMMAND` tells more.\n", "help",
            "what the commands do and take");
}

static int unknown(const char *name)
{
    enum { N = sizeof(commands) / sizeof(*commands) - 1 };
    const char *names[N];
    for (int i = 0; i < N; i++)
        names[i] = commands[i]->name;
    const char *near = leat_nearest_name(name, names, N);
    fprintf(stderr, "leat: %s: no such command%s%s%s (`leat help` lists them)\n", name,
            near ? "; did you mean `leat " : "", near ? near : "", near ? "`?" : "");
    return 2;
}

static int help(int argc, char **argv)
{
    if (argc < 2) {
        list(stdout);
        return 0;
    }
    const cli_command *c = find(argv[1]);
    if (!c)
        return unknown(argv[1]);
    printf("%s", c->usage);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        list(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        printf("leat " LEAT_VERSION "\n");
        return 0;
    }
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
        strcmp(argv[1], "-h") == 0)
        return help(argc - 1, argv + 1);
    const cli_command *c = find(argv[1]);
    if (!c)
        return unknown(argv[1]);
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            printf("%s", c->usage);
            return 0;
        }
    int code = c->run(argc - 1, argv + 1);
    if (fflush(stdout) != 0 && code == 0) {
        fprintf(stderr, "leat %s: standard output: write error\n", c->name);
        return 1;
    }
    return code;
}
