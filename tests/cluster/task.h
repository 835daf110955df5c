/* task.h -- starts other processes for tests. They run the test program itself, with a role. */
#ifndef LEAT_TEST_TASK_H
#define LEAT_TEST_TASK_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct task {
    pid_t pid;
    FILE *says; /* The standard output of the process. */
} task;

/* Runs this program in a new process, with the arguments "--role role arg". The new process calls
 * `first`, which may be NULL, before exec. A fork without exec is not enough, because the threads
 * of gRPC do not exist in the child. */
static inline task task_start_after(void (*first)(void), const char *role, const char *arg)
{
    int p[2];
    if (pipe(p))
        abort();
    pid_t pid = fork();
    if (!pid) {
        dup2(p[1], 1);
        close(p[0]);
        close(p[1]);
        if (first)
            first();
        execl("/proc/self/exe", "task", "--role", role, arg, (char *)NULL);
        _exit(127);
    }
    close(p[1]);
    return (task){pid, fdopen(p[0], "r")};
}

static inline task task_start(const char *role, const char *arg)
{
    return task_start_after(NULL, role, arg);
}

/* Returns when the process has stopped. */
static inline void task_pause(task *t)
{
    int status;
    kill(t->pid, SIGSTOP);
    waitpid(t->pid, &status, WUNTRACED);
}

static inline void task_end(task *t)
{
    kill(t->pid, SIGKILL);
    waitpid(t->pid, NULL, 0);
    fclose(t->says);
}

#endif
