/* disk_test.c -- a disk that is full when a checkpoint is written, in mid training: a ps, a chief
 * and a worker, and a small file system of their own. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "cluster/namespace.h"
#include "cluster/train_task.h"

static const char *make_disk(void)
{
    if (!leave_for(CLONE_NEWNS))
        return "this user may not make namespaces of mounts (root may)";
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", "/mnt", "tmpfs", 0, "size=1m"))
        return "no file system can be mounted here";
    return NULL;
}

/* Fills the disk. */
static void fill(const char *path)
{
    static const char bytes[4096];
    int f = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK(f >= 0);
    while (write(f, bytes, sizeof(bytes)) > 0)
        ;
    CHECK_INT(errno, ENOSPC);
    close(f);
}

/* The chief's run ends with the file's name; the worker goes on. When there is room again, a new
 * chief finds the last checkpoint whole. */
static void full(void)
{
    static cluster k;
    make(&k, "async", 100000, 40);
    rmdir(k.dir);
    char *rest = strstr(k.arg, k.dir), arg[600];
    CHECK(rest != NULL);
    snprintf(arg, sizeof(arg), "async /mnt %s", rest + strlen(k.dir) + 1);
    snprintf(k.arg, sizeof(k.arg), "%s", arg);
    start_all(&k);
    CHECK(beyond(&k.chief, 50, 20));
    fill("/mnt/filler");
    char line[2000] = "";
    double end = now() + 30;
    while (next_line(&k.chief, line, sizeof(line), end) && !strstr(line, "RESOURCE_EXHAUSTED"))
        ;
    printf("%s\n", line);
    CHECK(strstr(line, "RESOURCE_EXHAUSTED: ") && strstr(line, "/mnt/model.ckpt-") &&
          strstr(line, "No space left on device"));
    int status = -1;
    waitpid(k.chief.task.pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    fclose(k.chief.task.says);
    CHECK(until(&k.worker, "step ", 10));
    task_end(&k.worker.task);
    task_end(&k.ps.task); /* so that only the checkpoint is left */
    unlink("/mnt/filler");
    start_all(&k);
    CHECK(beyond(&k.chief, 51, 20));
    task_end(&k.worker.task);
    task_end(&k.chief.task);
    task_end(&k.ps.task);
}

static void full_apart(void)
{
    apart(make_disk, full);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--role") == 0)
        return be(argv[2], argv[3]);
    return RUN(argc, argv, {"full", full_apart});
}
