/* dataset.h -- what the definitions of datasets share. */
#ifndef LEAT_OPS_DATASET_H
#define LEAT_OPS_DATASET_H

#include <leat/extend.h>

/* The attributes that say what elements are. */
#define ELEMENTS "output_types: list(type) >= 1; output_shapes: list(shape) >= 1"

leat_status leat_data_handle_shape(leat_infer *c);   /* all outputs are scalars */
leat_status leat_data_scalars_shape(leat_infer *c);  /* all inputs are, too */
leat_status leat_data_files_shape(leat_infer *c);    /* input 0 is a scalar or a vector */
leat_status leat_data_padded_shape(leat_infer *c);   /* input 1 is a scalar */
leat_status leat_data_elements_shape(leat_infer *c); /* outputs have the shapes in output_shapes */

#endif
