/* launch.h -- what the files of `leat launch` share.
 *
 * 1. Every task is the leader of a process group of its own, so that what it starts ends with it.
 * 2. Whoever learns that a task has ended ends the rest of its group before the task is reaped:
 *    until then its id cannot be somebody else's.
 * 3. A guard process outlives a launch that is killed, and kills the groups that it left.
 */
#ifndef LEAT_CLI_LAUNCH_H
#define LEAT_CLI_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cli.h"

enum { LAUNCH_TAIL = 10, LAUNCH_LINE_MAX = 1 << 16 };

typedef struct launch_line { /* of one stream, as far as it has come */
    int fd;                  /* -1: at its end */
    char *text;
    size_t n;
} launch_line;

typedef struct launch_task {
    char job[64];
    int index, port;
    char label[80]; /* "worker/0" */
    bool passive;   /* a ps: the run does not wait for it */
    pid_t pid;      /* 0: has not begun, or was reaped */
    bool ended;
    int status; /* as waitpid gives it */
    bool told;  /* to end, by us */
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
    double grace, ps_grace; /* seconds */
    double began;
    int guard; /* pipe to the guard process; -1: none */
    pid_t guard_pid;
    /* the terminal */
    bool colour, live, drawn;
    double redrawn;
    bool broken; /* nobody reads what is printed */
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
void launch_signal(launch_task *t, int signal); /* to the task and what it started */
/* Looks which tasks have ended. */
void launch_reap(launch *l);
/* Whatever left its group, and is an orphan of ours now, is killed. */
void launch_kill_orphans(void);

/* ---- launch_output.c ---- */
/* Reads what there is and prints whole lines; at the end of the stream also the rest. False if
 * nothing more can be had now. */
bool launch_read(launch *l, launch_task *t, int stream);
void launch_drain(launch *l, launch_task *t); /* what is left when it has ended */
void launch_progress(launch *l);              /* draws the live line, if it is time */
void launch_progress_clear(launch *l);
/* A line of our own, on standard error. */
void launch_say(launch *l, const char *fmt, ...) LEAT_PRINTF(2, 3);
void launch_print_tail(launch *l, const launch_task *t);

/* ---- launch_watch.c ---- */
/* Runs until every task has ended; gives the exit code. */
int launch_watch(launch *l);

#endif
