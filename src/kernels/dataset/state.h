/* state.h -- the position of an iterator as bytes: integers, texts, tensors and the positions of
 * other iterators, in the order in which they were put; each begins with a letter that says what
 * follows. A reader does not trust the bytes: DATA_LOSS says where they are damaged. */
#ifndef LEAT_DATASET_STATE_H
#define LEAT_DATASET_STATE_H

#include "core/strbuf.h"
#include "kernels/dataset/dataset.h"

struct leat_state_writer {
    leat_strbuf bytes;   /* checked */
    leat_kernel *kernel; /* whose cancellation ends waits; may be NULL */
    int nested;          /* variants around the tensor that is put */
};
void leat_state_put_int(leat_state_writer *w, int64_t x);
void leat_state_put_text(leat_state_writer *w, const char *text);
leat_status leat_state_put_tensor(leat_state_writer *w, const leat_tensor *t) LEAT_MUST_CHECK;
leat_status leat_state_put_element(leat_state_writer *w, const leat_element *e) LEAT_MUST_CHECK;
leat_status leat_state_put_elements(leat_state_writer *w, const leat_elements *l) LEAT_MUST_CHECK;
/* The position of it, which may be NULL. */
leat_status leat_state_put_iterator(leat_state_writer *w, leat_iterator *it) LEAT_MUST_CHECK;

struct leat_state_reader {
    const char *bytes;
    size_t n, at;
};
leat_status leat_state_get_int(leat_state_reader *r, int64_t *out) LEAT_MUST_CHECK;
/* The same, from least to most. */
leat_status leat_state_get_within(leat_state_reader *r, int64_t least, int64_t most,
                                  int64_t *out) LEAT_MUST_CHECK;
leat_status leat_state_get_bool(leat_state_reader *r, bool *out) LEAT_MUST_CHECK;
/* Gives a text; free with free(). */
leat_status leat_state_get_text(leat_state_reader *r, char **out) LEAT_MUST_CHECK;
leat_status leat_state_get_tensor(leat_state_reader *r, leat_tensor **out) LEAT_MUST_CHECK;
/* Replaces *out. */
leat_status leat_state_get_element(leat_state_reader *r, leat_element *out) LEAT_MUST_CHECK;
/* The same, but DATA_LOSS if an element does not have n components of these types: functions and
 * datasets that get the elements rely on them. */
leat_status leat_state_get_element_of(leat_state_reader *r, int n, const leat_dtype *types,
                                      leat_element *out) LEAT_MUST_CHECK;
leat_status leat_state_get_element_or_none(leat_state_reader *r, int n, const leat_dtype *types,
                                           leat_element *out) LEAT_MUST_CHECK;
leat_status leat_state_get_elements_of(leat_state_reader *r, int n, const leat_dtype *types,
                                       leat_elements *out) LEAT_MUST_CHECK;
/* Sets *at to an iterator of d at the position that was saved, or to NULL. *at is NULL before, or
 * an iterator that was just opened. */
leat_status leat_state_get_iterator(leat_state_reader *r, leat_iteration *in, leat_dataset *d,
                                    const leat_iterator *parent, int64_t i,
                                    leat_iterator **at) LEAT_MUST_CHECK;
leat_status leat_state_end(const leat_state_reader *r) LEAT_MUST_CHECK; /* all bytes were read */

#endif
