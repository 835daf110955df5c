/* cli.h -- what the subcommands of `leat` share. One file a subcommand; main.c has the table. */
#ifndef LEAT_CLI_H
#define LEAT_CLI_H

#include <leat/leat.h>
#include <stdio.h>

/* A subcommand: argv[0] is its name. Gives the exit code: 0, 1 for a failure, 2 for bad use. */
typedef struct cli_command {
    const char *name, *summary, *usage; /* usage: all lines that help prints */
    int (*run)(int argc, char **argv);
} cli_command;

extern const cli_command cli_run, cli_show, cli_freeze, cli_devices, cli_launch, cli_check,
    cli_server;

/* ---- Arguments: --name value, --name=value, --switch ---- */
typedef struct cli_values {
    const char **v;
    int n;
} cli_values;
typedef struct cli_option {
    const char *name;
    const char **value; /* for an option with one value */
    cli_values *values; /* for an option that may be repeated */
    bool *given;        /* for a switch, which has no value */
} cli_option;
/* Sorts argv[1...] into options and other arguments, which replace rest_out->v. The list of options
 * ends with a NULL name. Returns false after a mistake, which it has reported. Free the collected
 * values with cli_values_free. */
bool cli_parse(int argc, char **argv, const cli_option *options, cli_values *rest_out);
void cli_values_add(cli_values *v, const char *text); /* borrows the text */
void cli_values_free(cli_values *v);
/* Parses an integer of at least `least`; if it is not one, reports that and returns false. */
bool cli_number(const char *command, const char *option, const char *text, long long least,
                long long *out);
/* Whether the devices of --devices exist here; spec may be NULL. If not, reports that and returns
 * false. */
bool cli_devices_ok(const char *command, const char *spec);
/* Reads --gpu_memory_fraction and --gpu_memory_limit, which may be NULL; after a mistake, reports
 * that and returns false. */
bool cli_gpu_memory(const char *command, const char *fraction, const char *limit,
                    leat_gpu_options *out);
/* Reports a mistake; returns 2. */
int cli_bad_use(const char *command, const char *fmt, ...) LEAT_PRINTF(2, 3);
/* Reports an error and returns 1; for OK returns 0. Takes s. */
int cli_finish(const char *command, leat_status s);

/* ---- Memory: if there is none, reports that and ends the process with exit code 1 ---- */
void *cli_array(size_t n, size_t size); /* zeroed; free with free() */
void *cli_array_resize(void *v, size_t n, size_t size);
FILE *cli_text_stream(char **text_out, size_t *n_out); /* as open_memstream */
char *cli_text(const char *s, size_t n); /* the first n bytes of s; free with free() */

/* ---- Files ---- */
/* Reads a whole file and appends a NUL; free with free(). */
leat_status cli_read_file(const char *path, char **bytes_out, size_t *size_out) LEAT_MUST_CHECK;
/* Reads a GraphDef, binary or text, which is detected by the file's name or contents. */
leat_status cli_read_graph(const char *path, leat_graph *g, size_t *size_out) LEAT_MUST_CHECK;
/* Prints a file's contents to standard output; with `text`, all of it in text format. */
leat_status cli_show_graph(const char *path, bool text) LEAT_MUST_CHECK;
leat_status cli_show_model(const char *dir) LEAT_MUST_CHECK;
leat_status cli_show_events(const char *path, bool text) LEAT_MUST_CHECK;
/* Prints the events of a file, and goes on with what is written to it, until the command is
 * interrupted; of a directory, those of its newest event file, also of one that is made later. */
leat_status cli_follow_events(const char *path, bool is_directory) LEAT_MUST_CHECK;
/* The event file of a directory that was written last; NULL: there is none. Free with free(). */
char *cli_newest_events(const char *dir);
/* Prints n points, which are sorted by x, as a curve; and a histogram as bars. */
void cli_plot(const double *x, const double *y, long long n);
void cli_bars(const leat_summary_value *v);
/* NumPy's .npy files. */
leat_status cli_npy_read(const char *path, leat_tensor **tensor_out) LEAT_MUST_CHECK;
leat_status cli_npy_write(const char *path, const leat_tensor *t) LEAT_MUST_CHECK;

#endif
