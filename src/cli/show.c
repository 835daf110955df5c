/* show.c -- leat show: prints the contents of a file. Detects the kind of file; prints checkpoints,
 * records and images. show_graph.c and show_events.c print the other kinds. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

/* ---- Checkpoints ---- */
static leat_status show_tensor(leat_checkpoint *c, const char *name)
{
    leat_tensor *t;
    LEAT_TRY(leat_checkpoint_read(c, name, &t));
    leat_shape s = leat_tensor_shape(t);
    char *text = leat_tensor_text(t, -1);
    printf("%s  %s %s\n%s\n", name, leat_dtype_name(leat_tensor_dtype(t)), leat_shape_show(&s).s,
           text);
    free(text);
    leat_tensor_unref(t);
    return NULL;
}

static leat_status show_checkpoint(const char *prefix, const char *tensor)
{
    leat_checkpoint *c;
    LEAT_TRY(leat_checkpoint_open(prefix, &c));
    leat_status s = NULL;
    double elements = 0, bytes = 0;
    int n = leat_checkpoint_count(c);
    for (int i = 0; i < n; i++) {
        const leat_checkpoint_entry *e = leat_checkpoint_at(c, i);
        double count = (double)leat_shape_count(&e->shape);
        elements += count;
        bytes += count * (double)leat_dtype_size(e->dtype);
    }
    if (tensor) {
        s = show_tensor(c, tensor);
    } else {
        printf("%s: checkpoint, %d tensors, %.0f elements, %.0f bytes\n", prefix, n, elements,
               bytes);
        for (int i = 0; i < n; i++) {
            const leat_checkpoint_entry *e = leat_checkpoint_at(c, i);
            printf("  %s  %s %s", e->name, leat_dtype_name(e->dtype), leat_shape_show(&e->shape).s);
            printf(e->slices ? ", %d slices\n" : "\n", e->slices);
        }
    }
    leat_checkpoint_free(c);
    return s;
}

/* ---- Records ---- */
static leat_status show_records(const char *path, leat_record_reader *r)
{
    const void *bytes;
    size_t n, least = SIZE_MAX, most = 0;
    long long count = 0;
    double total = 0;
    leat_status s;
    while (!(s = leat_record_next(r, &bytes, &n))) {
        count++;
        total += (double)n;
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    printf("%s: TFRecord, %lld records", path, count);
    if (count)
        printf(" of %zu to %zu bytes, %.0f bytes in all", least, most, total);
    printf("\n");
    if (leat_status_code(s) != LEAT_OUT_OF_RANGE)
        return leat_status_prefix(s, "%s: ", path);
    leat_status_free(s);
    return NULL;
}

/* If the path is a file of records with at least one record, prints it and returns true. */
static bool is_records(const char *path, leat_status *s)
{
    leat_record_reader *r;
    const void *bytes;
    size_t n;
    leat_status bad = leat_record_reader_open(path, LEAT_RECORD_AUTO, &r);
    if (!bad) {
        bad = leat_record_next(r, &bytes, &n);
        leat_record_reader_free(r);
    }
    bool yes = !bad;
    leat_status_free(bad);
    if (!yes)
        return false;
    *s = leat_record_reader_open(path, LEAT_RECORD_AUTO, &r);
    if (!*s) {
        *s = show_records(path, r);
        leat_record_reader_free(r);
    }
    return true;
}

/* ---- Images ---- */
/* If the file begins as an image does, prints what its header says and returns true. */
static bool is_image(const char *path, leat_status *s)
{
    char *bytes, begin[8];
    size_t n;
    FILE *f = fopen(path, "rb");
    const size_t got = f ? fread(begin, 1, sizeof(begin), f) : 0;
    if (f)
        fclose(f);
    if (leat_image_format_of(begin, got) == LEAT_IMAGE_UNKNOWN)
        return false;
    leat_image_info i;
    *s = cli_read_file(path, &bytes, &n);
    if (*s)
        return true;
    *s = leat_image_inspect(bytes, n, &i);
    free(bytes);
    if (*s) {
        *s = leat_status_prefix(*s, "%s: ", path);
        return true;
    }
    printf("%s: %s, %lld x %lld pixels (height x width), %d channel%s of %d bits", path,
           leat_image_format_name(i.format), (long long)i.height, (long long)i.width, i.channels,
           i.channels == 1 ? "" : "s", i.bits);
    printf(i.frames == 1 ? "\n" : ", %lld frames\n", (long long)i.frames);
    return true;
}

/* ---- The kind of a file ---- */
static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Whether there is a directory or a file of this name; neither: it may be a checkpoint's prefix. */
static leat_status look_at(const char *path, bool *is_directory, bool *is_file)
{
    struct stat st;
    const bool there = stat(path, &st) == 0;
    LEAT_REQUIRE(there || errno == ENOENT || errno == ENOTDIR, UNAVAILABLE, "%s: %s", path,
                 strerror(errno));
    *is_directory = there && S_ISDIR(st.st_mode);
    *is_file = there && !S_ISDIR(st.st_mode);
    return NULL;
}

static leat_status show_directory(const char *path, bool text, bool follow, const char *tensor)
{
    char model[4096];
    for (int k = 0; k < 2 && !tensor; k++) {
        bool is_directory, is_file;
        snprintf(model, sizeof(model), "%s/saved_model.pb%s", path, k ? "txt" : "");
        LEAT_TRY(look_at(model, &is_directory, &is_file));
        if (is_file)
            return cli_show_model(path);
    }
    if (follow)
        return cli_follow_events(path, true);
    char *newest = text ? NULL : leat_latest_checkpoint(path);
    char *events = tensor ? NULL : cli_newest_events(path);
    leat_status s = NULL;
    if (newest)
        s = show_checkpoint(newest, tensor);
    if (!s && events)
        s = cli_show_events(events, text);
    if (!newest && !events)
        s = leat_error(
            NOT_FOUND,
            "%s: a directory with neither a checkpoint, nor a SavedModel, nor an event file", path);
    free(newest);
    free(events);
    return s;
}

/* model.ckpt-7 of model.ckpt-7.index and model.ckpt-7.data-00000-of-00001; NULL if it is neither.
 */
static char *prefix_of(const char *path)
{
    const char *data = strstr(path, ".data-");
    size_t n = ends_with(path, ".index") ? strlen(path) - 6 : data ? (size_t)(data - path) : 0;
    return n ? cli_text(path, n) : NULL;
}

static leat_status show(const char *path, bool text, bool follow, const char *tensor)
{
    leat_status s = NULL;
    char *prefix = prefix_of(path);
    if (prefix) {
        s = show_checkpoint(prefix, tensor);
        free(prefix);
        return s;
    }
    bool is_directory = false, is_file = false;
    LEAT_TRY(look_at(path, &is_directory, &is_file));
    if (is_directory)
        return show_directory(path, text, follow, tensor);
    if (tensor || (!is_file && leat_checkpoint_exists(path)))
        return show_checkpoint(path, tensor);
    if (ends_with(path, ".pb") || ends_with(path, ".pbtxt"))
        return cli_show_graph(path, text);
    if (strstr(path, "tfevents"))
        return follow ? cli_follow_events(path, false) : cli_show_events(path, text);
    if (is_file && (is_records(path, &s) || is_image(path, &s)))
        return s;
    leat_checkpoint *c;
    s = is_file ? leat_checkpoint_open(path, &c) : leat_error(NOT_FOUND, "none");
    if (!s) {
        leat_checkpoint_free(c);
        return show_checkpoint(path, NULL);
    }
    leat_status_free(s);
    return cli_show_graph(path, text);
}

static int run(int argc, char **argv)
{
    bool text = false, follow = false;
    const char *tensor = NULL;
    cli_values rest = {0};
    const cli_option options[] = {{.name = "text", .given = &text},
                                  {.name = "follow", .given = &follow},
                                  {.name = "tensor", .value = &tensor},
                                  {0}};
    int code = 2;
    if (!cli_parse(argc, argv, options, &rest))
        code = 2;
    else if (rest.n != 1)
        code = cli_bad_use("show", "wants one file");
    else
        code = cli_finish("show", show(rest.v[0], text, follow, tensor));
    cli_values_free(&rest);
    return code;
}

const cli_command cli_show = {
    .name = "show",
    .summary = "show what is in a file (graph, checkpoint, events, records, image)",
    .usage =
        "usage: leat show FILE [--text] [--follow] [--tensor NAME]\n\n"
        "A GraphDef (.pb, .pbtxt): inputs, outputs, variables, ops, devices. A checkpoint (its\n"
        "prefix, its .index, or a directory, whose newest is taken): tensors. The directory of a\n"
        "SavedModel: its signatures. An event file, or a directory, whose newest is taken: what\n"
        "was summarized, how often, the last values, scalars as curves, histograms as bars. A\n"
        "TFRecord file: how many records. A PNG, JPEG, GIF or BMP image: its size.\n\n"
        "  --text         all of a graph as text; each event of an event file\n"
        "  --follow       each event of an event file, also those that are still to be written;\n"
        "                 of a directory: of its newest file, and of those that are made later\n"
        "  --tensor NAME  the values of one tensor of a checkpoint\n",
    .run = run,
};
