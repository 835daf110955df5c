/* example.h -- what the kernels that parse Examples and SequenceExamples share: the features that a
 * node wants, found by their keys, and where their values go.
 *
 * Values are copied once, from the serialized message to the output. Where the size of an output
 * depends on the messages, a first pass finds and counts the values of all messages, and a second
 * one copies them.
 */
#ifndef LEAT_CPU_EXAMPLE_H
#define LEAT_CPU_EXAMPLE_H

#include <pthread.h>

#include "core/map.h"
#include "kernels/cpu/cpu.h"
#include "proto/example.h"

typedef enum leat_feature_role {
    LEAT_FEATURE_SPARSE,
    LEAT_FEATURE_DENSE,
    LEAT_FEATURE_VARIABLE, /* dense, with a first dimension that is padded */
    LEAT_FEATURE_RAGGED
} leat_feature_role;

/* A feature that the node wants. */
typedef struct leat_feature {
    leat_span key;
    leat_feature_role role;
    leat_dtype dtype;
    leat_shape shape; /* of a dense one */
    /* Values of a dense feature, or of one row of a variable one. */
    int64_t stride;
    const leat_tensor *missing; /* the default of a dense one; without elements: there is none */
    int index;                  /* among those of its role: of its outputs */
} leat_feature;

/* What a message has for a feature. */
typedef struct leat_found {
    leat_span value;
    bool there;
} leat_found;

typedef struct leat_wanted {
    leat_feature *v;
    int n, cap;
    leat_map by_key; /* to leat_feature */
} leat_wanted;

/* Adds a feature, whose key is borrowed. */
leat_feature *leat_wanted_add(leat_wanted *w, const char *key, size_t n, leat_feature_role role,
                              leat_dtype t, int index);
/* Builds by_key. INVALID_ARGUMENT if two features have the same key. */
leat_status leat_wanted_index(leat_wanted *w) LEAT_MUST_CHECK;
void leat_wanted_release(leat_wanted *w);
static inline int leat_wanted_find(const leat_wanted *w, leat_span key)
{
    const leat_feature *f = leat_map_get_n(&w->by_key, key.p, leat_span_size(key));
    return f ? (int)(f - w->v) : -1;
}

/* Checks dense_shapes[i], and sets role, shape and stride of a dense feature. */
leat_status leat_feature_set_shape(leat_feature *f, int i, const leat_shape *s) LEAT_MUST_CHECK;
/* Checks and sets the default of dense feature i. */
leat_status leat_feature_set_default(leat_feature *f, int i, const leat_tensor *t) LEAT_MUST_CHECK;
leat_status leat_feature_check_default(const leat_feature *f, int i,
                                       const leat_tensor *t) LEAT_MUST_CHECK;

/* Parses n messages in the calling thread, for features that are indexed and not ragged. Gives the
 * outputs of ParseExample: indices, values and shapes of sparse features, then dense ones. The
 * 3 * n_sparse + n_dense outputs are NULL before. */
leat_status leat_wanted_parse(const leat_wanted *w, int n_sparse, int n_dense,
                              const leat_string *serialized, int64_t n,
                              leat_tensor **outputs) LEAT_MUST_CHECK;

/* INVALID_ARGUMENT: "what: 'the first bytes'". */
leat_status leat_example_malformed(const char *what, const void *bytes, size_t n) LEAT_MUST_CHECK;

/* Element `at` of a tensor of strings or numbers. */
static inline void *leat_element_at(const leat_tensor *t, int64_t at)
{
    const size_t size = t->dtype == LEAT_STRING  ? sizeof(leat_string)
                        : t->dtype == LEAT_FLOAT ? sizeof(float)
                                                 : sizeof(int64_t);
    return (char *)t->data + size * (size_t)at;
}

#endif
