/* example.h -- tensorflow.Example and tensorflow.SequenceExample, read where they lie: features are
 * found by one pass over the bytes, and their values are copied straight to where they belong.
 * No message is built.
 *
 * An Example is {1: Features}, a SequenceExample {1: Features context, 2: FeatureLists}. Features
 * and FeatureLists are maps {1: {1: key, 2: value}}; a value is a Feature, or a FeatureList {1:
 * Feature ...}. A Feature is one of {1: BytesList, 2: FloatList, 3: Int64List}, each {1: values},
 * numbers packed or not.
 */
#ifndef LEAT_PROTO_EXAMPLE_H
#define LEAT_PROTO_EXAMPLE_H

#include <leat/tensor.h>
#include "core/strbuf.h"

/* Some bytes of a message, borrowed. */
typedef struct leat_span {
    const unsigned char *p, *end;
} leat_span;
static inline leat_span leat_span_of(const void *p, size_t n)
{
    return (leat_span){p, n ? (const unsigned char *)p + n : (const unsigned char *)p};
}
static inline size_t leat_span_size(leat_span s)
{
    return (size_t)(s.end - s.p);
}

/* The entries of the maps in fields 1 and 2 of a message, in their order. Of several entries with
 * one key the last one counts. */
enum { LEAT_EXAMPLE_FEATURES = 1, LEAT_EXAMPLE_LISTS = 2 };
typedef void (*leat_example_fn)(void *arg, int field, leat_span key, leat_span value);
/* Calls fn for each entry. lists: the message is a SequenceExample, else field 2 is unknown.
 * False: the bytes are no such message; fn may have been called before that was found. */
bool leat_example_walk(leat_span message, bool lists, leat_example_fn fn, void *arg);

/* The values of a feature: a list of strings, floats or int64s; LEAT_INVALID: the feature is empty.
 * False: the bytes are no feature. */
bool leat_feature_open(leat_span feature, leat_dtype *kind_out, leat_span *list_out);
/* The number of values in a list of this kind; -1: the bytes are no such list. */
int64_t leat_feature_count(leat_dtype kind, leat_span list);
/* Writes all values, as many as leat_feature_count gives, to `to`, whose strings must be valid.
 * INVALID_ARGUMENT: a number is malformed. RESOURCE_EXHAUSTED: no memory for a string. */
leat_status leat_feature_copy(leat_dtype kind, leat_span list, void *to) LEAT_MUST_CHECK;
/* For a list of strings that leat_feature_count has found good. room: bytes of all strings, each
 * that is not empty with a NUL; *longest_out grows to the size of the longest. put: makes the
 * strings at `to`, which are empty, those of the list, with their bytes at `at`. */
size_t leat_feature_room(leat_span list, size_t *longest_out);
void leat_feature_put(leat_span list, leat_string *to, char *at);
/* The next feature of a FeatureList, which *rest_out begins after. False: there is none, or, if
 * *bad_out, the bytes are no FeatureList. */
bool leat_feature_next(leat_span *rest, leat_span *feature_out, bool *bad_out);

#endif
