/* train_test.c -- training over real processes on loopback: a ps, a chief and a worker, each this
 * program again. Tasks are killed, stopped and started again, and training goes on.
 * docs/failures.md names these cases. */
#include "cluster/train_task.h"

static void trains_async(void)
{
    static cluster k;
    make(&k, "async", 100, 40);
    start_all(&k);
    all_end(&k);
}

static void trains_sync(void)
{
    static cluster k;
    make(&k, "sync", 50, 40);
    start_all(&k);
    all_end(&k);
}

/* A worker is killed: the chief goes on. */
static void worker_killed_async(void)
{
    static cluster k;
    make(&k, "async", 400, 40);
    start_all(&k);
    CHECK(beyond(&k.chief, 10, 10));
    task_end(&k.worker.task);
    ends(&k.chief, 30);
    task_end(&k.ps.task);
    clean(&k);
}

/* The same in sync mode: rounds need one gradient less once its lease is over. It comes back. */
static void worker_killed_sync(void)
{
    static cluster k;
    make(&k, "sync", 400, 40);
    start_all(&k);
    CHECK(beyond(&k.chief, 10, 10));
    task_end(&k.worker.task);
    CHECK(until(&k.chief, "Replica 1 is silent: rounds go on without it", 15));
    CHECK(beyond(&k.chief, 30, 10));
    begin(&k.worker, "worker", k.arg);
    CHECK(until(&k.chief, "Replica 1 is back", 15));
    CHECK(beyond(&k.worker, 30, 15));
    all_end(&k);
}

/* A worker is dead when the ps is killed, too: the chief, which knows that, does not wait for it
 * when the ps is back. */
static void both_killed_sync(void)
{
    static cluster k;
    make(&k, "sync", 400, 40);
    start_all(&k);
    CHECK(beyond(&k.chief, 10, 10));
    task_end(&k.worker.task);
    CHECK(until(&k.chief, "Replica 1 is silent: rounds go on without it", 15));
    CHECK(beyond(&k.chief, 50, 10));
    task_end(&k.ps.task);
    CHECK(until(&k.chief, "A task went away, or was replaced", 10));
    begin(&k.ps, "ps", k.arg);
    CHECK(until(&k.chief, "Restoring parameters from", 20));
    CHECK(beyond(&k.chief, 80, 10));
    begin(&k.worker, "worker", k.arg);
    CHECK(until(&k.chief, "Replica 1 is back", 15));
    CHECK(beyond(&k.worker, 80, 15));
    all_end(&k);
}

/* The ps is killed and comes back empty: the others wait, and go on from the checkpoint. */
static void ps_killed(const char *mode)
{
    static cluster k;
    make(&k, mode, 400, 40);
    start_all(&k);
    CHECK(beyond(&k.chief, 50, 10));
    task_end(&k.ps.task);
    CHECK(until(&k.chief, "A task went away, or was replaced", 10));
    CHECK(until(&k.worker, "A task went away, or was replaced", 10));
    CHECK(until(&k.chief, "still waiting for response from worker: /job:ps", 20));
    begin(&k.ps, "ps", k.arg);
    CHECK(until(&k.chief, "Restoring parameters from", 20));
    CHECK(beyond(&k.chief, 60, 20));
    CHECK(beyond(&k.worker, 60, 20));
    all_end(&k);
}

static void ps_killed_async(void)
{
    ps_killed("async");
}

static void ps_killed_sync(void)
{
    ps_killed("sync");
}

/* The ps does not come back: what is waited for is named, and the wait ends. */
static void ps_gone(void)
{
    static cluster k;
    int status = 0;
    make(&k, "async", 100000, 3);
    start_all(&k);
    CHECK(beyond(&k.chief, 10, 10));
    task_end(&k.ps.task);
    CHECK(until(&k.worker, "A task went away, or was replaced", 10));
    child *both[] = {&k.chief, &k.worker};
    for (int i = 0; i < 2; i++) {
        CHECK(until(both[i], "was waiting for this: /job:ps/replica:0/task:0 (", 30));
        double end = now() + 30;
        while (waitpid(both[i]->task.pid, &status, WNOHANG) == 0 && now() < end)
            usleep(10000);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        fclose(both[i]->task.says);
    }
    clean(&k);
}

/* The chief is killed: async workers go on without it; it comes back, and nothing is undone. */
static void chief_killed_async(void)
{
    static cluster k;
    make(&k, "async", 600, 40);
    start_all(&k);
    CHECK(beyond(&k.chief, 50, 10));
    task_end(&k.chief.task);
    CHECK(beyond(&k.worker, 100, 10));
    begin(&k.chief, "chief", k.arg);
    CHECK(until(&k.chief, "it is kept, not restored", 20));
    CHECK(until(&k.chief, "ready", 20));
    CHECK(beyond(&k.chief, 100, 20));
    all_end(&k);
}

/* In sync mode the chief ends the rounds: workers wait for it, and go on when it is back. */
static void chief_killed_sync(void)
{
    static cluster k;
    make(&k, "sync", 400, 40);
    start_all(&k);
    CHECK(beyond(&k.worker, 50, 10));
    task_end(&k.chief.task);
    CHECK(until(&k.worker, "of all replicas for", 20)); /* names the silent replica */
    begin(&k.chief, "chief", k.arg);
    CHECK(until(&k.chief, "ready", 20));
    CHECK(beyond(&k.worker, 100, 20));
    all_end(&k);
}

/* A worker is stopped for longer than its lease, and goes on. */
static void worker_paused_sync(void)
{
    static cluster k;
    make(&k, "sync", 600, 40);
    start_all(&k);
    CHECK(beyond(&k.chief, 10, 10));
    kill(k.worker.task.pid, SIGSTOP);
    CHECK(until(&k.chief, "Replica 1 is silent: rounds go on without it", 15));
    CHECK(beyond(&k.chief, 40, 10));
    kill(k.worker.task.pid, SIGCONT);
    CHECK(until(&k.chief, "Replica 1 is back", 15));
    CHECK(beyond(&k.worker, 60, 15));
    all_end(&k);
}

/* Tasks may start in any order. */
static void any_order(void)
{
    static cluster k;
    make(&k, "sync", 30, 40);
    begin(&k.worker, "worker", k.arg);
    usleep(300000);
    begin(&k.chief, "chief", k.arg);
    usleep(300000);
    begin(&k.ps, "ps", k.arg);
    CHECK(until(&k.worker, "ready", 30));
    all_end(&k);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--role") == 0)
        return be(argv[2], argv[3]);
    return RUN(argc, argv, {"trains_async", trains_async}, {"trains_sync", trains_sync},
               {"worker_killed_async", worker_killed_async},
               {"worker_killed_sync", worker_killed_sync}, {"ps_killed_async", ps_killed_async},
               {"ps_killed_sync", ps_killed_sync}, {"both_killed_sync", both_killed_sync},
               {"ps_gone", ps_gone}, {"chief_killed_async", chief_killed_async},
               {"chief_killed_sync", chief_killed_sync}, {"worker_paused_sync", worker_paused_sync},
               {"any_order", any_order});
}
