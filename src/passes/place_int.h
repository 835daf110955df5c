/* place_int.h -- placement from the inside: place.c makes groups of nodes, place_choose.c finds a
 * device for each. */
#ifndef LEAT_PLACE_INT_H
#define LEAT_PLACE_INT_H

#include "passes/pass.h"

typedef struct group {
    int parent;             /* union-find, by node id */
    leat_device_name asked; /* of the whole group, at its root */
    const char *asked_by;   /* a node that asked, for messages */
    bool joined;            /* the root has joined another group to its own */
    unsigned classes;       /* set of classes that have kernels for all members */
    const leat_target *chosen;
} group;

enum { MAX_CLASSES = 31 };

/* Devices of one type that have the same kernels. */
typedef struct kernel_class {
    const char *type; /* "CPU" */
    bool foreign;     /* of a task of TensorFlow */
} kernel_class;

typedef struct placer {
    leat_compile *c;
    group *groups;
    kernel_class classes[MAX_CLASSES];
    int n_classes;
    int *class_of; /* of each device */
} placer;

static inline int root_of(placer *p, int i)
{
    while (p->groups[i].parent != i)
        i = p->groups[i].parent = p->groups[p->groups[i].parent].parent;
    return i;
}

/* place_choose.c */
void leat_place_init(placer *p); /* c is set; groups are zeroed */
void leat_place_release(placer *p);
/* The set of classes that can run n. A node that none can run does not hold its group back: there
 * is an error of its own for it when it gets a kernel. */
unsigned leat_place_classes(const placer *p, const leat_node *n);
/* Runs of different parts of a graph must find a variable on the same device: its group's classes
 * are those that have kernels for all its users in the source graph. */
void leat_place_state(placer *p);
/* The device of a group, of which n is a member; sets `chosen`. */
leat_status leat_place_choose(placer *p, int root, const leat_node *n) LEAT_MUST_CHECK;

#endif
