/* pipeline.h -- what the constructors of datasets share: what the elements of a dataset are. */
#ifndef LEAT_TRAIN_PIPELINE_H
#define LEAT_TRAIN_PIPELINE_H

#include <leat/pipeline.h>

#include "graph/graph_int.h"

/* Types and shapes of the n tensors of an element; {0} has none. */
typedef struct leat_elements_of {
    int n;
    leat_dtype *types;
    leat_shape *shapes;
} leat_elements_of;
/* Of the dataset or iterator d, as its node's attributes say. Release with
 * leat_elements_of_release. */
leat_elements_of leat_elements_of_new(leat_out d);
leat_elements_of leat_elements_of_make(int n, const leat_dtype *types, const leat_shape *shapes);
void leat_elements_of_release(leat_elements_of *e);

/* The attributes of a dataset's node that say what its elements are. */
#define LEAT_ELEMENT_ATTRS(e)                                                                      \
    leat_attr_types("output_types", (e)->types, (e)->n),                                           \
        leat_attr_shapes("output_shapes", (e)->shapes, (e)->n)

#define LEAT_INT64_SCALAR(g, v) leat_in(leat_int64_at(at, g, v))
leat_out leat_int64_at(leat_loc at, leat_graph *g, int64_t v);
leat_out leat_true_at(leat_loc at, leat_graph *g, bool v);

#endif
