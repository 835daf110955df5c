/* saved_model_int.h -- names of the parts of a SavedModel; for saved_model.c and
 * saved_model_write.c. */
#ifndef LEAT_TRAIN_SAVED_MODEL_INT_H
#define LEAT_TRAIN_SAVED_MODEL_INT_H

#include <leat/saved_model.h>

#include "train/saver.h"

#define LEAT_SAVED_MODEL_FILE "saved_model.pb"
#define LEAT_SAVED_MODEL_ASSETS_DIR "assets"
#define LEAT_SAVED_MODEL_VARIABLES "variables/variables" /* the prefix of a checkpoint */
#define LEAT_SAVED_MODEL_TAG "serve" /* the tag of a graph that makes predictions */
/* Collections, and the signature of TensorFlow 2 that names the main op. */
#define LEAT_SAVED_MODEL_ASSETS "saved_model_assets"
#define LEAT_SAVED_MODEL_MAIN_OP "saved_model_main_op"
#define LEAT_SAVED_MODEL_INIT_OP "__saved_model_init_op"

#endif
