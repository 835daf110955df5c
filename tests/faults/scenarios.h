/* scenarios.h -- the small cases that injection_test runs with failing calls.
 *
 * A scenario is a function of the name scenario_NAME. It does what a program would do, by Leat's
 * public interface, releases everything that it got, and returns the first error. `dir` is an empty
 * directory for files. It checks what it reads or computes by EXPECT: a wrong value is never a
 * consequence of a failed call. It has no effect that a second call in the same process would
 * notice. */
#ifndef LEAT_TESTS_FAULTS_SCENARIOS_H
#define LEAT_TESTS_FAULTS_SCENARIOS_H

#include <leat/leat.h>
#include <stdbool.h>

#if LEAT_CLUSTER
#define SERVER_SCENARIOS(X) X(server)
#else
#define SERVER_SCENARIOS(X)
#endif
#define SCENARIOS(X)                                                                               \
    X(session)                                                                                     \
    X(kernels) X(loop) X(function) X(queue) X(graphdef) X(train) X(records) X(events)              \
        X(checkpoint) X(sharded) X(meta_graph) SERVER_SCENARIOS(X)
/* Steps over several tasks, run only where the command line names them: grpc and local are known to
 * fail. With all calls failing from some n on, the process aborts, and the cause was not found. */
#define NAMED_SCENARIOS(X) X(grpc) X(socket) X(shm) X(local)

#define X(name) leat_status scenario_##name(const char *dir);
SCENARIOS(X)
NAMED_SCENARIOS(X)
#undef X

/* Fails the test, unless `right`. */
void scenario_expect(bool right, const char *file, int line, const char *words);
#define EXPECT(condition) scenario_expect((condition), __FILE__, __LINE__, #condition)

/* THEN(s, leat_session_run(...)): evaluates the expression unless there was an error before. */
#define THEN(s, expression)                                                                        \
    do {                                                                                           \
        if (!(s))                                                                                  \
            (s) = (expression);                                                                    \
    } while (0)

/* One of two ports that nobody listens on; the same in all calls of a process. */
int scenario_port(int i);
/* dir/name, in a buffer that the next call of the same thread overwrites for the 4th time. */
const char *scenario_path(const char *dir, const char *name);

#endif
