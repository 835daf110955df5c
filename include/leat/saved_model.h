/* saved_model.h -- models on disk as TensorFlow keeps them: a directory with graphs, their
 * variables, the files that they need, and signatures, which say by which names others use them.
 *
 *     leat_saved_model *m;
 *     LEAT_DIE_ON_ERROR(leat_saved_model_load("export/1", &m));
 *     const leat_signature *sig;
 *     LEAT_DIE_ON_ERROR(leat_saved_model_signature(m, "serving_default", &sig));
 *     leat_out x, y;
 *     LEAT_DIE_ON_ERROR(leat_signature_input(sig, "x", &x));
 *     LEAT_DIE_ON_ERROR(leat_signature_output(sig, "y", &y));
 *     LEAT_DIE_ON_ERROR(leat_session_run(leat_saved_model_session(m), LEAT_FEED({x, images}),
 *                                        LEAT_FETCH({y, &scores}), LEAT_NO_TARGET));
 *     leat_saved_model_close(m);
 */
#ifndef LEAT_SAVED_MODEL_H
#define LEAT_SAVED_MODEL_H

#include <leat/saver.h>

typedef struct leat_signature_tensor {
    const char *name; /* "x" */
    leat_out x;       /* the tensor; of a sparse tensor its values */
    leat_out indices; /* of a sparse tensor; node NULL: x is dense */
    leat_out dense_shape;
} leat_signature_tensor;
typedef struct leat_signature {
    const char *name; /* "serving_default" */
    /* What kind of signature it is. To be written: NULL means "tensorflow/serving/predict". */
    const char *method;
    const leat_signature_tensor *inputs;
    int n_inputs;
    const leat_signature_tensor *outputs;
    int n_outputs;
} leat_signature;

/* ---- Reading ---- */
typedef struct leat_saved_model leat_saved_model;

typedef struct leat_saved_model_options {
    /* Which of the directory's graphs: the one with exactly these tags, separated by commas.
     * Default: "serve", or the only graph that there is. */
    const char *tags;
    const leat_session_options *session; /* default: in this process, with soft placement */
} leat_saved_model_options;
/* Reads the graph, opens a session on it, restores the variables and runs the op that initializes
 * tables. Close with leat_saved_model_close. */
#define leat_saved_model_load(dir, model_out, ...)                                                 \
    leat_saved_model_load_with(dir, LEAT_OPTIONS(leat_saved_model_options, __VA_ARGS__), model_out)
LEAT_API leat_status leat_saved_model_load_with(const char *dir,
                                                const leat_saved_model_options *options,
                                                leat_saved_model **model_out) LEAT_MUST_CHECK;
LEAT_API void leat_saved_model_close(leat_saved_model *m); /* of NULL does nothing */
LEAT_API leat_graph *leat_saved_model_graph(const leat_saved_model *m);
LEAT_API leat_session *leat_saved_model_session(const leat_saved_model *m);
/* All signatures, sorted by name; *count_out of them. They live as long as the model. */
LEAT_API const leat_signature *leat_saved_model_signatures(const leat_saved_model *m,
                                                           int *count_out);
/* One signature. NOT_FOUND names those that there are. */
LEAT_API leat_status leat_saved_model_signature(const leat_saved_model *m, const char *name,
                                                const leat_signature **out) LEAT_MUST_CHECK;
/* The tensor of an input or an output. NOT_FOUND names those that there are. */
LEAT_API leat_status leat_signature_input(const leat_signature *s, const char *name,
                                          leat_out *out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_signature_output(const leat_signature *s, const char *name,
                                           leat_out *out) LEAT_MUST_CHECK;

/* ---- Writing ---- */
/* A file that the graph reads: its path is the value of a constant, x. */
typedef struct leat_asset {
    leat_out x;
    const char *path;
} leat_asset;
typedef struct leat_saved_model_write_options {
    const char *tags; /* separated by commas; default "serve" */
    const leat_signature *signatures;
    int n_signatures;
    /* An op to be run once after loading, which initializes tables, for example. */
    leat_out main_op;
    const leat_asset *assets; /* are copied to the model; whoever loads it feeds the new paths */
    int n_assets;
    bool clear_devices; /* nodes are written without their devices */
    leat_saver *saver;  /* default: a new one, of all global variables */
} leat_saved_model_write_options;
/* Writes the graph with its functions, and the variables as they are in the session, to a directory
 * that has no model yet. The model is complete as soon as DIR/saved_model.pb is there. TensorFlow
 * 1.x and 2.x load it. */
#define leat_saved_model_write(g, s, dir, ...)                                                     \
    leat_saved_model_write_with(g, s, dir,                                                         \
                                LEAT_OPTIONS(leat_saved_model_write_options, __VA_ARGS__))
LEAT_API leat_status leat_saved_model_write_with(leat_graph *g, leat_session *s, const char *dir,
                                                 const leat_saved_model_write_options *options)
    LEAT_MUST_CHECK;

/* ---- Freezing ---- */
/* Gives a new graph with what n outputs need, in which each variable is a constant that has its
 * value in the session. The names of nodes stay. Free with leat_graph_free. */
LEAT_API leat_status leat_freeze(leat_graph *g, leat_session *s, const leat_out *outputs, int n,
                                 leat_graph **frozen_out) LEAT_MUST_CHECK;

#endif
