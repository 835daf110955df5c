/* launch_watch.c -- the run: waits for tasks, reads their output, and ends them.
 *
 * It goes through stages, forward only. RUN: tasks are running. DONE: the workers have ended, the
 * ps tasks have some seconds to end without a signal. END: tasks were sent SIGTERM, ps tasks only
 * after the other tasks have ended, which may need the ps tasks to save their state. KILL: tasks
 * that did not end were sent SIGKILL.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

typedef enum stage { RUN, DONE, END, KILL } stage;

typedef struct watch {
    launch *l;
    stage stage;
    double deadline; /* of the stage; 0: none */
    int code;
    int signals; /* a signalfd */
} watch;

double launch_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int left(const launch *l, bool passive_too)
{
    int n = 0;
    for (int i = 0; i < l->n; i++)
        n += !l->tasks[i].ended && (passive_too || !l->tasks[i].passive);
    return n;
}

static void terminate(launch_task *t, int signal)
{
    t->term_sent = true;
    launch_signal(t, signal);
    launch_signal(t, SIGCONT); /* a stopped process handles SIGTERM only when it continues */
}

/* Sends SIGTERM to tasks that have not had it and need not wait for other tasks. */
static void terminate_next(launch *l)
{
    bool others = left(l, false) > 0;
    for (int i = 0; i < l->n; i++) {
        launch_task *t = &l->tasks[i];
        if (!t->ended && !t->term_sent && !(t->passive && others))
            terminate(t, SIGTERM);
    }
}

static void end_all(watch *w)
{
    if (w->stage >= END)
        return;
    w->stage = END;
    w->deadline = launch_now() + w->l->grace;
    terminate_next(w->l);
}

static void kill_all(watch *w)
{
    int n = left(w->l, true);
    if (n)
        launch_say(w->l, "%d tasks did not end within %g s: killed", n, w->l->grace);
    w->stage = KILL;
    w->deadline = 0;
    for (int i = 0; i < w->l->n; i++)
        if (!w->l->tasks[i].ended)
            terminate(&w->l->tasks[i], SIGKILL);
}

static void report_failure(launch *l, const launch_task *t)
{
    double after = t->finished - t->began;
    if (WIFSIGNALED(t->status))
        launch_say(l, "%s was ended by signal %d (%s) after %.1f s%s", t->label,
                   WTERMSIG(t->status), strsignal(WTERMSIG(t->status)), after,
                   t->n_tail ? "; its last lines:" : "");
    else
        launch_say(l, "%s ended with exit code %d after %.1f s%s", t->label, WEXITSTATUS(t->status),
                   after, t->n_tail ? "; its last lines:" : "");
    launch_print_tail(l, t);
}

/* A task failed that we have not sent SIGTERM: the first such task decides the exit code; later
 * failures are consequences. */
static void look_for_failures(watch *w)
{
    for (int i = 0; i < w->l->n && w->stage < END; i++) {
        launch_task *t = &w->l->tasks[i];
        if (!t->ended || t->status == 0 || t->term_sent)
            continue;
        report_failure(w->l, t);
        if (left(w->l, true))
            launch_say(w->l, "ending the other %d tasks", left(w->l, true));
        w->code = 1;
        end_all(w);
    }
}

static void on_signal(watch *w)
{
    struct signalfd_siginfo info;
    while (read(w->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        int signal = (int)info.ssi_signo;
        if (signal == SIGCHLD)
            continue;
        /* The user has sent the signal a second time. */
        if (w->stage >= END && w->code == 128 + signal) {
            kill_all(w);
            continue;
        }
        launch_say(w->l, "%s: ending %d tasks%s", strsignal(signal), left(w->l, true),
                   signal == SIGINT ? " (once more kills them)" : "");
        w->code = 128 + signal;
        end_all(w);
    }
}

static void advance(watch *w)
{
    launch *l = w->l;
    double now = launch_now();
    look_for_failures(w);
    if (l->broken && w->stage < END) {
        w->code = 1;
        end_all(w);
    }
    if (w->stage == RUN && left(l, true) && !left(l, false)) {
        w->stage = DONE;
        w->deadline = now + l->ps_grace;
    }
    if (w->stage == DONE && now >= w->deadline)
        end_all(w);
    else if (w->stage == END && now >= w->deadline)
        kill_all(w);
    else if (w->stage == END)
        terminate_next(l);
}

/* Milliseconds until the next timeout. */
static int patience(const watch *w)
{
    double until = w->deadline ? w->deadline - launch_now() : 60;
    if (w->l->live && until > 0.2)
        until = 0.2;
    return until > 0 ? (int)(until * 1000) + 1 : 0;
}

static void listen_once(watch *w, struct pollfd *p)
{
    launch *l = w->l;
    int n = 0;
    p[n++] = (struct pollfd){.fd = w->signals, .events = POLLIN};
    for (int i = 0; i < l->n; i++)
        for (int s = 0; s < 2; s++)
            p[n++] = (struct pollfd){.fd = l->tasks[i].streams[s].fd, .events = POLLIN};
    if (poll(p, (nfds_t)n, patience(w)) < 0 && errno != EINTR)
        l->broken = true;
    for (int i = 1; i < n; i++)
        if (p[i].fd >= 0 && p[i].revents)
            launch_read(l, &l->tasks[(i - 1) / 2], (i - 1) % 2);
    if (p[0].revents)
        on_signal(w);
    launch_reap(l);
}

int launch_watch(launch *l)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL); /* before the first child, whose end must not be missed */
    watch w = {.l = l, .signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
    struct pollfd *p = cli_array((size_t)l->n * 2 + 1, sizeof(*p));
    for (int i = 0; i < l->n && !w.code; i++) {
        leat_status s = launch_spawn(l, &l->tasks[i]);
        if (!s)
            continue;
        launch_say(l, "%s", leat_status_message(s));
        w.code = leat_status_code(s) == LEAT_NOT_FOUND ? 2 : 1;
        leat_status_free(s);
    }
    for (int i = 0; i < l->n; i++)
        l->tasks[i].ended |= !l->tasks[i].pid; /* tasks that were not started count as ended */
    if (w.code)
        end_all(&w);
    while (left(l, true)) {
        listen_once(&w, p);
        advance(&w);
        launch_progress(l);
    }
    look_for_failures(&w);
    launch_progress_clear(l);
    launch_guard_stop(l);
    launch_kill_orphans();
    close(w.signals);
    free(p);
    return w.code;
}
