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

#define SCENARIOS(X)                                                                               \
    X(session)                                                                                     \
    X(partial)                                                                                     \
    X(kernels)                                                                                     \
    X(loop)                                                                                        \
    X(function)                                                                                    \
    X(queue)                                                                                       \
    X(graphdef) X(train) X(records) X(input) X(dataset) X(images) X(data) X(events) X(checkpoint)  \
        X(sharded) X(meta_graph) X(convolutions) X(sequences) X(packed)
/* A server that starts and stops, steps over several tasks by each transport, and those with TLS,
 * for which the files of scenario_begin are needed. */
#if LEAT_CLUSTER
#define CLUSTER_SCENARIOS(X) X(server) X(grpc) X(socket) X(shm) X(local)
#define TLS_SCENARIOS(X) X(tls_grpc) X(tls_socket)
#else
#define CLUSTER_SCENARIOS(X)
#define TLS_SCENARIOS(X)
#endif

#define X(name) leat_status scenario_##name(const char *dir);
SCENARIOS(X)
CLUSTER_SCENARIOS(X)
TLS_SCENARIOS(X)
#undef X

/* Makes the certificates; false if there is no openssl command. scenario_end removes them. */
bool scenario_begin(void);
void scenario_end(void);

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
