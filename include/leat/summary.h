/* summary.h -- what TensorBoard shows: summaries in the graph, and event files.
 *
 *     leat_scalar_summary("loss", loss);
 *     leat_out all = leat_merge_all_summaries(g);
 *     leat_summary_writer *w;
 *     LEAT_DIE_ON_ERROR(leat_summary_writer_open("train/events", &w));
 *     ... fetch all ...
 *     LEAT_DIE_ON_ERROR(leat_summary_write(w, value, step));
 */
#ifndef LEAT_SUMMARY_H
#define LEAT_SUMMARY_H

#include <leat/ops.h>
#include <leat/session.h>

struct leat_saver; /* saver.h */

/* The collection that summaries are in. */
#define LEAT_SUMMARIES "summaries"

/* ---- Nodes whose value is a Summary message, a string ---- */
#define leat_scalar_summary(name, x) leat_summary_at(LEAT_AT, "ScalarSummary", "tags", name, x)
#define leat_histogram_summary(name, x) leat_summary_at(LEAT_AT, "HistogramSummary", "tag", name, x)
LEAT_API leat_out leat_summary_at(leat_loc at, const char *op, const char *tag_input,
                                  const char *name, leat_out x);
/* The first `most` images of a batch, (batch, height, width, channels) with 1, 3 or 4 channels.
 * Numbers that are not uint8 are scaled to bytes, image by image. */
#define leat_image_summary(name, x, most) leat_image_summary_at(LEAT_AT, name, x, most)
LEAT_API leat_out leat_image_summary_at(leat_loc at, const char *name, leat_out x, int most);
/* The first `most` sounds of a batch, (batch, frames) or (batch, frames, channels), from -1 to 1.
 */
#define leat_audio_summary(name, x, rate, most) leat_audio_summary_at(LEAT_AT, name, x, rate, most)
LEAT_API leat_out leat_audio_summary_at(leat_loc at, const char *name, leat_out x, double rate,
                                        int most);
/* Strings, which TensorBoard shows as Markdown. */
#define leat_text_summary(name, x) leat_text_summary_at(LEAT_AT, name, x)
LEAT_API leat_out leat_text_summary_at(leat_loc at, const char *name, leat_out x);
#define leat_merge_summaries(g, xs, n) leat_merge_summaries_at(LEAT_AT, g, xs, n)
LEAT_API leat_out leat_merge_summaries_at(leat_loc at, leat_graph *g, const leat_out *xs, int n);
/* Merges all summaries of the collection; a NULL node if there are none. _in: those whose names
 * begin with scope. */
#define leat_merge_all_summaries(g) leat_merge_all_summaries_at(LEAT_AT, g, NULL)
#define leat_merge_all_summaries_in(g, scope) leat_merge_all_summaries_at(LEAT_AT, g, scope)
LEAT_API leat_out leat_merge_all_summaries_at(leat_loc at, leat_graph *g, const char *scope);

/* ---- Event files. Use one writer for a directory: TensorBoard reads the newest file only; tasks
 * of a cluster write to a directory each ("run/worker0"), which TensorBoard shows as runs. Any
 * thread may write. ---- */
typedef struct leat_summary_writer leat_summary_writer;
typedef struct leat_writer_options {
    leat_given given; /* set by the macro */
    /* Default 2: seconds after which an event is in the file at the latest; 0: at once. */
    double flush_secs;
    /* When more events than this wait in memory, they are written; default: when they have 256
     * kB. */
    int max_queue;
    const char *filename_suffix; /* behind the file's name */
} leat_writer_options;
/* A new file events.out.tfevents.<seconds>.<host> in dir, which is made if need be. If there is a
 * file of that name, another task's for example, the name gets a number. */
#define leat_summary_writer_open(dir, writer_out, ...)                                             \
    leat_summary_writer_open_with(dir, LEAT_GIVEN_OPTIONS(leat_writer_options, __VA_ARGS__),       \
                                  writer_out)
LEAT_API leat_status leat_summary_writer_open_with(const char *dir,
                                                   const leat_writer_options *options,
                                                   leat_summary_writer **writer_out)
    LEAT_MUST_CHECK;
/* Closes the file and goes on in a new one. */
LEAT_API leat_status leat_summary_writer_reopen(leat_summary_writer *w) LEAT_MUST_CHECK;
/* The file's path; valid until the writer is reopened or closed. */
LEAT_API const char *leat_summary_writer_path(const leat_summary_writer *w);
/* The functions that write give an error if an event could not be written, this one or an earlier
 * one. What could not be written is kept, and tried again with the next events. */
/* The value of a summary op: a string tensor, one or several messages. */
LEAT_API leat_status leat_summary_write(leat_summary_writer *w, const leat_tensor *summaries,
                                        int64_t step) LEAT_MUST_CHECK;
LEAT_API leat_status leat_summary_write_bytes(leat_summary_writer *w, const void *summary,
                                              size_t size, int64_t step) LEAT_MUST_CHECK;
LEAT_API leat_status leat_summary_write_scalar(leat_summary_writer *w, const char *tag, float value,
                                               int64_t step) LEAT_MUST_CHECK;
LEAT_API leat_status leat_summary_write_graph(leat_summary_writer *w, const leat_graph *g,
                                              int64_t step) LEAT_MUST_CHECK;
/* Writes the graph, its collections and the nodes of the saver, which may be NULL. */
LEAT_API leat_status leat_summary_write_meta_graph(leat_summary_writer *w, const leat_graph *g,
                                                   const struct leat_saver *saver,
                                                   int64_t step) LEAT_MUST_CHECK;
/* Writes the metadata of a traced run (times and memory of the nodes), for TensorBoard's graph
 * tab. */
LEAT_API leat_status leat_summary_write_metadata(leat_summary_writer *w, const leat_metadata *m,
                                                 const char *tag, int64_t step) LEAT_MUST_CHECK;
typedef enum leat_session_mark {
    LEAT_SESSION_START = 1,
    LEAT_SESSION_STOP,
    LEAT_SESSION_CHECKPOINT,
} leat_session_mark;
/* Writes that training has started, stopped, or saved a checkpoint (at path; else NULL). */
LEAT_API leat_status leat_summary_write_mark(leat_summary_writer *w, leat_session_mark mark,
                                             const char *path, int64_t step) LEAT_MUST_CHECK;
LEAT_API leat_status leat_summary_flush(leat_summary_writer *w) LEAT_MUST_CHECK;
/* Flushes and frees. Of NULL does nothing. */
LEAT_API leat_status leat_summary_writer_close(leat_summary_writer *w) LEAT_MUST_CHECK;

#endif
