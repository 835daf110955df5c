/* command.h -- runs programs by a shell, as users do, and checks their output and exit code. */
#ifndef LEAT_TEST_COMMAND_H
#define LEAT_TEST_COMMAND_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port.h"
#include "test.h"

static char output[1 << 16]; /* output of the last command, including standard error */

typedef struct command {
    pid_t pid;
    int from;
} command;

__attribute__((format(printf, 1, 2), unused)) static command command_start(const char *format, ...)
{
    int ends[2];
    char line[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    output[0] = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    return (command){pid, ends[0]};
}

/* Reads until the output contains the words, or to the end if words is NULL; false if it ends
 * without them. */
__attribute__((unused)) static bool command_read(command c, const char *words)
{
    size_t n = strlen(output);
    while (!words || !strstr(output, words)) {
        ssize_t got = read(c.from, output + n, sizeof(output) - 1 - n);
        if (got <= 0)
            return false;
        n += (size_t)got;
        output[n] = 0;
    }
    return true;
}

/* Reads to the end; gives the exit code, or the negative number of the signal that ended the
 * program. */
__attribute__((unused)) static int command_end(command c)
{
    int status;
    command_read(c, NULL);
    close(c.from);
    waitpid(c.pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

__attribute__((unused)) static int command_signal(command c, int signal)
{
    kill(c.pid, signal);
    return command_end(c);
}

__attribute__((unused)) static void saw(const char *words)
{
    if (!strstr(output, words)) {
        test_failures++;
        printf("not there: \"%s\"; but:\n%s", words, output);
    }
}

/* Whether a command ended with this code and printed these words; after a bad use, in one line. */
__attribute__((unused)) static void expect(const char *what, int got, int code, const char *words)
{
    if (got != code || !strstr(output, words)) {
        test_failures++;
        printf("%s: exit code %d, want %d with \"%s\"; it printed:\n%s", what, got, code, words,
               output);
    }
    if (code == 2 && *what && strchr(output, '\n') && strchr(output, '\n')[1]) {
        test_failures++;
        printf("%s: more than one line:\n%s", what, output);
    }
}

#endif
