/* cli.h -- what the subcommands of `leat` share. One file a subcommand; main.c has the table. */
#ifndef LEAT_CLI_H
#define LEAT_CLI_H

#include <leat/leat.h>

/* A subcommand: argv[0] is its name. Gives the exit code: 0, 1 for a failure, 2 for bad use. */
typedef struct cli_command {
    const char *name, *summary, *usage; /* usage: all lines that help prints */
    int (*run)(int argc, char **argv);
} cli_command;

extern const cli_command cli_run, cli_show, cli_devices, cli_launch, cli_check, cli_server;

/* ---- Arguments: --name value, --name=value, --switch ---- */
typedef struct cli_values {
    const char **v;
    int n;
} cli_values;
typedef struct cli_option {
    const char *name;
    const char **value; /* one value; or */
    cli_values *values; /* any number of them; or */
    bool *given;        /* none */
} cli_option;
/* Sorts argv[1...] into options and the rest, which replaces rest_out->v. The list ends with a NULL
 * name. False after a mistake, which was reported. Free what was collected with cli_values_free. */
bool cli_parse(int argc, char **argv, const cli_option *options, cli_values *rest_out);
void cli_values_free(cli_values *v);
/* A whole number of at least `least`; false and a report if it is not. */
bool cli_number(const char *command, const char *option, const char *text, long long least,
                long long *out);
int cli_bad_use(const char *command, const char *fmt, ...) LEAT_PRINTF(2, 3); /* gives 2 */
/* Reports an error and gives 1; of OK gives 0. Takes s. */
int cli_finish(const char *command, leat_status s);

/* ---- Files ---- */
/* A whole file, with a NUL behind it; free with free(). */
leat_status cli_read_file(const char *path, char **bytes_out, size_t *size_out) LEAT_MUST_CHECK;
/* A GraphDef, binary or text, by the file's name or its contents. */
leat_status cli_read_graph(const char *path, leat_graph *g, size_t *size_out) LEAT_MUST_CHECK;
/* What is in a file, to standard output. text: all of it, as text. */
leat_status cli_show_graph(const char *path, bool text) LEAT_MUST_CHECK;
leat_status cli_show_events(const char *path, bool text) LEAT_MUST_CHECK;
/* NumPy's .npy files. */
leat_status cli_npy_read(const char *path, leat_tensor **tensor_out) LEAT_MUST_CHECK;
leat_status cli_npy_write(const char *path, const leat_tensor *t) LEAT_MUST_CHECK;

#endif
