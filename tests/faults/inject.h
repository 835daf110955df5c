/* inject.h -- calls of the C library that fail on purpose.
 *
 * A program that is linked with inject.c and with the linker's --wrap for each function that
 * inject.c replaces can make the n-th call of these functions fail: allocations, threads, files,
 * sockets, descriptors. Only calls from the objects of the program itself are counted, Leat's
 * static library among them; those that gRPC, OpenSSL or the C library make are not.
 *
 * Allocations by leat_x..., which end the process by design (core/alloc.h), are not counted, but
 * for those of 1 MB and more: such a size was decided by a user, a file or a peer. */
#ifndef LEAT_TESTS_FAULTS_INJECT_H
#define LEAT_TESTS_FAULTS_INJECT_H

#include <stdatomic.h>
#include <stdbool.h>

enum { INJECT_FRAMES = 24, INJECT_SITES = 4096 };

/* How a call failed that was made to fail. */
typedef struct inject_fault {
    const char *function; /* NULL: no call failed */
    int error;            /* errno */
    bool named;           /* a status about this call has the words of its error */
    int n_frames;
    void *frames[INJECT_FRAMES]; /* the stack of the call */
} inject_fault;

/* In memory that processes share which were forked later, or in a file that LEAT_INJECT names: a
 * program that is started with it in the environment counts its calls from its start on. */
typedef struct inject_state {
    atomic_bool armed;
    atomic_long calls;  /* calls since the last inject_arm */
    atomic_long fail;   /* the number of the call that fails, from 1 on; 0: none */
    atomic_bool stays;  /* all later calls fail, too */
    atomic_bool failed; /* the call was made */
    atomic_bool recording;
    atomic_int lock;    /* 1 while a thread uses what follows */
    inject_fault fault; /* the first one that failed */
    /* For inject_record: the number of the first call from each stack. */
    int n_sites;
    struct inject_site {
        unsigned long hash;
        long call;
    } sites[INJECT_SITES];
} inject_state;

/* The first call of any of these functions makes the memory; a process that forks calls
 * inject_init before. */
inject_state *inject_init(void);
/* From now on calls are counted, and the n-th fails; with `stays` all later ones fail, too. */
void inject_arm(long n, bool stays);
/* From now on calls are counted, and the first from each stack is noted. */
void inject_record(void);
void inject_disarm(void);
/* The call that failed since the last inject_arm; its function is NULL if none did. */
inject_fault inject_failed(void);
/* While true, tasks of this process do not know that they are on one machine. */
extern bool inject_machine_unknown;

#endif
