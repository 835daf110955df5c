/* launch.h -- what the files of `leat launch` share.
 *
 * 1. Every task is the leader of a process group of its own, so that the processes that it starts
 * are ended with it. 2. When a task has ended, the rest of its group is killed before the task is
 * reaped:
 *    until then no other process can get its id.
 * 3. If launch itself is killed, a guard process kills the remaining groups.
 */
#ifndef LEAT_CLI_LAUNCH_H
#define LEAT_CLI_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cli.h"

enum { LAUNCH_TAIL = 10, LAUNCH_LINE_MAX = 1 << 16 };

typedef struct launch_line { /* one output stream of a task, with its unfinished line */
    int fd;                  /* -1: the end was reached */
    char *text;
    size_t n;
} launch_line;

typedef struct launch_task {
    char job[64];
    int index, port;
    char label[80]; /* "worker/0" */
    bool passive;   /* a ps task: the run does not wait for it to end */
    pid_t pid;      /* 0: not started, or reaped */
    bool ended;
    int status;     /* as waitpid gives it */
    bool term_sent; /* we have sent SIGTERM */
    double began, finished;
    launch_line streams[2];  /* its standard output and error */
    char *tail[LAUNCH_TAIL]; /* its last lines, the newest at (n_tail - 1) % LAUNCH_TAIL */
    int n_tail;
} launch_task;

typedef struct launch {
    launch_task *tasks;
    int n;
    char **program; /* ends with NULL */
    int n_program;
    bool no_flags;
    const char *visible_gpus, *gpu_fraction, *gpu_limit; /* NULL: not given */
    double grace, ps_grace; /* seconds from SIGTERM to SIGKILL */
    double began;
    char token[64]; /* LEAT_TOKEN=..., for tasks that no other token was given to */
    int guard;      /* pipe to the guard process; -1: none */
    pid_t guard_pid;
    /* the terminal */
    bool colour, live, drawn;
    double redrawn;
    bool broken; /* standard output is closed by its reader */
} launch;

double launch_now(void); /* seconds */

/* ---- launch_ports.c ---- */
/* A free port of 127.0.0.1 for each task. */
leat_status launch_find_ports(launch *l) LEAT_MUST_CHECK;

/* ---- launch_spawn.c ---- */
leat_status launch_guard_start(launch *l) LEAT_MUST_CHECK;
void launch_guard_stop(launch *l);
/* NOT_FOUND if there is no such program. */
leat_status launch_spawn(launch *l, launch_task *t) LEAT_MUST_CHECK;
void launch_signal(launch_task *t, int signal); /* signals the task's process group */
/* Checks which tasks have ended. */
void launch_reap(launch *l);
/* Kills processes that have left their task's group and are now our children. */
void launch_kill_orphans(void);

/* ---- launch_output.c ---- */
/* Reads available output and prints whole lines; at the end of the stream also the unfinished one.
 * Returns false if nothing more can be read now. */
bool launch_read(launch *l, launch_task *t, int stream);
/* Reads the rest of the output after the task has ended. */
void launch_drain(launch *l, launch_task *t);
void launch_progress(launch *l); /* draws the status line, if it is due */
void launch_progress_clear(launch *l);
/* Prints a line of launch's own on standard error. */
void launch_say(launch *l, const char *fmt, ...) LEAT_PRINTF(2, 3);
void launch_print_tail(launch *l, const launch_task *t);

/* ---- launch_watch.c ---- */
/* Runs until every task has ended; gives the exit code. */
int launch_watch(launch *l);

#endif
