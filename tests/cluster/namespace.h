/* namespace.h -- test cases in Linux namespaces of their own, where links can be cut and disks can
 * be small. They need root, or a kernel that lets users make namespaces, and are skipped otherwise.
 * Include this header first, with _GNU_SOURCE defined.
 */
#ifndef LEAT_TEST_NAMESPACE_H
#define LEAT_TEST_NAMESPACE_H

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static inline bool write_text(const char *path, const char *text)
{
    int f = open(path, O_WRONLY);
    bool ok = f >= 0 && write(f, text, strlen(text)) == (ssize_t)strlen(text);
    if (f >= 0)
        close(f);
    return ok;
}

/* Moves this process to new namespaces of these kinds (CLONE_NEWNET, ...); if the process is not
 * root, to a new user namespace in which it is root. */
static inline bool leave_for(int kinds)
{
    char map[32];
    if (geteuid() == 0)
        return unshare(kinds) == 0;
    snprintf(map, sizeof(map), "0 %d 1", (int)geteuid());
    return unshare(kinds | CLONE_NEWUSER) == 0 && write_text("/proc/self/uid_map", map);
}

/* Runs a case in a child process. setup changes the child's namespaces, and returns NULL, or the
 * reason why it cannot; then the case is skipped. */
static inline void apart(const char *(*setup)(void), void (*test)(void))
{
    enum { SKIPPED = 77 };
    static char why[200];
    int status = -1, p[2];
    fflush(stdout);
    CHECK(pipe(p) == 0);
    pid_t pid = fork();
    if (!pid) {
        const char *not = setup();
        if (not )
            _exit(write(p[1], not, strlen(not )) > 0 ? SKIPPED : 1);
        test();
        fflush(stdout);
        _exit(test_failures ? 1 : 0);
    }
    close(p[1]);
    ssize_t n = read(p[0], why, sizeof(why) - 1);
    close(p[0]);
    waitpid(pid, &status, 0);
    if (n > 0 && WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        why[n] = 0;
        SKIP(why);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
