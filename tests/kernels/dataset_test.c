/* dataset_test.c -- datasets: elements of each kind, positions saved and restored in the middle of
 * each, errors, hostile inputs. */
#include "dataset_functions.h"

#include <unistd.h>

#include "core/variant.h"

/* ---- Kinds: what each gives, here and after its position was saved and restored ---- */

static leat_out make_range(leat_graph *g)
{
    return range(g, 4);
}
/* Range, whose elements are known to be scalars. */
static leat_out make_scalars(leat_graph *g)
{
    return leat_op(g, "AssertCardinalityDataset", leat_in(range(g, 4)), N(4),
                   leat_attr_types("output_types", int64_type, 1),
                   leat_attr_shapes("output_shapes", (leat_shape[]){leat_shape()}, 1));
}
static leat_out make_floats(leat_graph *g)
{
    const leat_dtype type = LEAT_FLOAT;
    return leat_op(g, "MapDataset", leat_in(range(g, 4)), NONE, F("f", "ToFloat"),
                   leat_attr_types("output_types", &type, 1),
                   leat_attr_shapes("output_shapes", (leat_shape[]){leat_shape()}, 1));
}
static leat_out make_repeat(leat_graph *g)
{
    return counted(g, "RepeatDataset", range(g, 2), 2);
}
static leat_out make_take(leat_graph *g)
{
    return counted(g, "TakeDataset", range(g, 9), 3);
}
static leat_out make_skip(leat_graph *g)
{
    return counted(g, "SkipDataset", range(g, 5), 2);
}
static leat_out make_shard(leat_graph *g)
{
    return DATASET("ShardDataset", leat_in(range(g, 7)), N(3), N(1));
}
static leat_out make_concatenate(leat_graph *g)
{
    return DATASET("ConcatenateDataset", leat_in(range(g, 2)), leat_in(range(g, 3)));
}
static leat_out make_directed(leat_graph *g)
{
    leat_out data[2] = {range(g, 2), map(g, range(g, 5), "Twice")};
    leat_out choice = counted(g, "RepeatDataset", range(g, 2), -1);
    return DATASET("DirectedInterleaveDataset", leat_in(choice), leat_ins(data, 2));
}
static leat_out make_batch(leat_graph *g)
{
    return counted(g, "BatchDataset", range(g, 5), 2);
}
static leat_out make_unbatch(leat_graph *g)
{
    return DATASET("UnbatchDataset", leat_in(make_batch(g)));
}
static leat_out make_padded(leat_graph *g)
{
    int64_t any = -1;
    leat_tensor *t;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT64, leat_shape(1), &any, &t));
    leat_out shape = leat_const(g, t), value = number(g, 7);
    leat_tensor_unref(t);
    return leat_op(g, "PaddedBatchDataset", leat_in(make_batch(g)), N(3), leat_ins(&shape, 1),
                   leat_ins(&value, 1),
                   leat_attr_shapes("output_shapes", (leat_shape[]){leat_shape_unknown()}, 1));
}
static leat_out make_map(leat_graph *g)
{
    return map(g, range(g, 4), "Twice");
}
static leat_out make_parallel_map(leat_graph *g)
{
    return parallel_map(g, range(g, 6), "Twice", 3);
}
static leat_out make_filter(leat_graph *g)
{
    return DATASET("FilterDataset", leat_in(range(g, 7)), NONE, F("predicate", "Even"));
}
static leat_out make_while(leat_graph *g)
{
    return DATASET("TakeWhileDataset", leat_in(range(g, 9)), NONE, F("predicate", "Below5"));
}
static leat_out make_scan(leat_graph *g)
{
    leat_out state = number(g, 1);
    return DATASET("ScanDataset", leat_in(range(g, 4)), leat_ins(&state, 1), NONE, F("f", "SumOf"));
}
static leat_out make_flat_map(leat_graph *g)
{
    return DATASET("FlatMapDataset", leat_in(range(g, 4)), NONE, F("f", "UpTo"));
}
/* The constructors have no lists of functions, texts have. */
static leat_out choose_branch(leat_graph *g, int denominator, int captured)
{
    static const char with_number[] =
        "node { name: 'c%d' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } } attr { key: "
        "'value' value { tensor { dtype: DT_INT64 tensor_shape { } int64_val: %d } } } }\n";
    static const char elements[] = "attr { key: 'output_types' value { list { type: DT_INT64 } } } "
                                   "attr { key: 'output_shapes' value { list { shape { "
                                   "unknown_rank: true } } } }";
    const int numbers[] = {0, 4, 1, 1, denominator};
    char text[4000];
    size_t n = 0;
    for (int i = 0; i < 5; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, with_number, i, numbers[i]);
    snprintf(text + n, sizeof(text) - n,
             "node { name: 'r' op: 'RangeDataset' input: 'c0' input: 'c1' input: 'c2' %s }\n"
             "node { name: 'chosen' op: 'ChooseFastestBranchDataset' input: 'r' input: 'c3' input: "
             "'c4' %s attr { key: 'Targuments' value { list { } } } attr { key: "
             "'num_elements_per_branch' value { i: 2 } } attr { key: 'other_arguments_lengths' "
             "value { list { i: 0 i: %d } } } attr { key: 'branches' value { list { func { name: "
             "'MapTwice' } func { name: 'MapTwice' } } } } }\n",
             elements, elements, captured);
    CHECK_OK(leat_graph_from_text(g, text, ""));
    leat_out chosen = {0};
    CHECK_OK(leat_graph_find_out(g, "chosen:0", &chosen));
    return chosen;
}
static leat_out make_choose_branch(leat_graph *g)
{
    return choose_branch(g, 1, 0);
}
static leat_out make_shuffle(leat_graph *g)
{
    leat_out d = DATASET("ShuffleDataset", leat_in(range(g, 6)), N(4), N(11), N(22));
    return counted(g, "RepeatDataset", d, 2);
}
static leat_out make_shuffle_and_repeat(leat_graph *g)
{
    return DATASET("ShuffleAndRepeatDataset", leat_in(range(g, 4)), N(3), N(11), N(22), N(2));
}
static leat_out make_random(leat_graph *g)
{
    return counted(g, "TakeDataset", DATASET("RandomDataset", N(5), N(6)), 3);
}
static leat_out make_prefetch(leat_graph *g)
{
    return counted(g, "PrefetchDataset", make_map(g), 2);
}
static leat_out make_cache(leat_graph *g)
{
    leat_tensor *t = leat_scalar_string("", 0);
    leat_out path = leat_const(g, t);
    leat_tensor_unref(t);
    leat_out d = DATASET("CacheDataset", leat_in(range(g, 3)), leat_in(path));
    return counted(g, "RepeatDataset", d, 2);
}
static leat_out make_sliding(leat_graph *g)
{
    return DATASET("SlidingWindowDataset", leat_in(range(g, 6)), N(2), N(2), N(2));
}
/* Windows that have the element which fails do so; others that came by it do not. */
static leat_out windows(leat_graph *g, int64_t shift, int64_t stride)
{
    static const leat_dtype variant[] = {LEAT_VARIANT};
    leat_out w =
        leat_op(g, "WindowDataset", leat_in(map(g, range(g, 6), "FailsAt3")), N(2), N(shift),
                N(stride), leat_in(yes(g, false)), leat_attr_types("output_types", variant, 1),
                leat_attr_shapes("output_shapes", (leat_shape[]){leat_shape()}, 1));
    return map(g, w, "WindowBatch");
}
static leat_out make_window(leat_graph *g)
{
    return windows(g, 1, 2);
}
static leat_out make_far_windows(leat_graph *g)
{
    return windows(g, 4, 1);
}
static leat_out make_ignore(leat_graph *g)
{
    return DATASET("IgnoreErrorsDataset", leat_in(map(g, range(g, 6), "FailsAt3")));
}
static leat_out make_map_and_batch(leat_graph *g)
{
    return DATASET("MapAndBatchDataset", leat_in(range(g, 5)), NONE, N(2), N(2),
                   leat_in(yes(g, false)), F("f", "Twice"));
}
static leat_out make_map_and_batch_of_errors(leat_graph *g)
{
    return DATASET("MapAndBatchDataset", leat_in(range(g, 6)), NONE, N(2), N(2),
                   leat_in(yes(g, false)), F("f", "FailsAt3"));
}

/* The last batch would be dropped; its error is not. */
static leat_out make_map_and_batch_dropped(leat_graph *g)
{
    return DATASET("MapAndBatchDataset", leat_in(range(g, 4)), NONE, N(3), N(2),
                   leat_in(yes(g, true)), F("f", "FailsAt3"));
}

static leat_out make_unique(leat_graph *g)
{
    return DATASET("UniqueDataset", leat_in(map(g, range(g, 7), "RestOf3")));
}
static leat_out make_rebatch(leat_graph *g)
{
    return DATASET("RebatchDataset", leat_in(counted(g, "BatchDataset", range(g, 5), 3)), N(2));
}
static leat_out make_resize(leat_graph *g)
{
    const int64_t sizes[] = {2, 1};
    leat_tensor *t;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT64, leat_shape(2), sizes, &t));
    leat_out two = leat_const(g, t);
    leat_tensor_unref(t);
    return DATASET("RebatchDatasetV2", leat_in(counted(g, "BatchDataset", range(g, 7), 3)),
                   leat_in(two), leat_in(yes(g, false)));
}
static leat_out make_auto_shard(leat_graph *g)
{
    return DATASET("AutoShardDataset", leat_in(make_map(g)), N(2), N(1));
}
static leat_out make_parallel_map_2(leat_graph *g)
{
    return DATASET("ParallelMapDatasetV2", leat_in(range(g, 6)), NONE, N(3), F("f", "Twice"));
}
static leat_out make_parallel_interleave_4(leat_graph *g)
{
    return DATASET("ParallelInterleaveDatasetV4", leat_in(range(g, 5)), NONE, N(2), N(2), N(-1),
                   N(-1), N(2), F("f", "UpTo"));
}
static leat_out make_parallel_batch(leat_graph *g)
{
    return DATASET("ParallelBatchDataset", leat_in(range(g, 5)), N(2), N(2),
                   leat_in(yes(g, false)));
}
static leat_out make_counted(leat_graph *g)
{
    return DATASET("AssertCardinalityDataset", leat_in(range(g, 4)), N(4));
}

/* A string constant. */
static leat_out words(leat_graph *g, const char *s)
{
    leat_tensor *t = leat_scalar_string(s, strlen(s));
    leat_out c = leat_const(g, t);
    leat_tensor_unref(t);
    return c;
}
static leat_out make_csv(leat_graph *g)
{
    const char *path = LEAT_BINARY_DIR "/dataset_test.csv";
    FILE *f = fopen(path, "w");
    CHECK(f && fputs("x,y\n1,\"2\"\r\n3,\n5,6", f) > 0 && fclose(f) == 0);
    const int64_t column = 1;
    leat_tensor *t;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT64, leat_shape(1), &column, &t));
    leat_out select = leat_const(g, t), missing = number(g, -1);
    leat_tensor_unref(t);
    return DATASET("CSVDataset", leat_in(words(g, path)), leat_in(words(g, "")), N(100),
                   leat_in(yes(g, true)), leat_in(words(g, ",")), leat_in(yes(g, true)),
                   leat_in(words(g, "")), leat_in(select), leat_ins(&missing, 1));
}

/* The random orders and numbers are those that TensorFlow 1.15 gives without its optimisations. */
static const struct kind {
    const char *name;
    leat_out (*make)(leat_graph *g);
    const char *want;
} kinds[] = {
    {"Range", make_range, "0 1 2 3 END"},
    {"Repeat", make_repeat, "0 1 0 1 END"},
    {"Take", make_take, "0 1 2 END"},
    {"Skip", make_skip, "2 3 4 END"},
    {"Shard", make_shard, "1 4 END"},
    {"Concatenate", make_concatenate, "0 1 0 1 2 END"},
    {"DirectedInterleave", make_directed, "0 0 1 2 4 6 8 END"},
    {"Batch", make_batch, "[0 1] [2 3] [4] END"},
    {"Unbatch", make_unbatch, "0 1 2 3 4 END"},
    {"PaddedBatch", make_padded, "[[0 1][2 3][4 7]] END"},
    {"Map", make_map, "0 2 4 6 END"},
    {"ParallelMap", make_parallel_map, "0 2 4 6 8 10 END"},
    {"ChooseFastestBranch", make_choose_branch, "0 2 4 6 END"},
    {"Filter", make_filter, "0 2 4 6 END"},
    {"TakeWhile", make_while, "0 1 2 3 4 END"},
    {"Scan", make_scan, "101 101 102 104 END"},
    {"FlatMap", make_flat_map, "0 0 1 0 1 2 END"},
    {"Interleave", make_interleave, "0 0 1 0 1 2 0 1 2 3 END"},
    {"ParallelInterleave", make_parallel_interleave, "0 0 1 0 1 2 0 1 2 3 END"},
    {"GroupByWindow", make_group, "[0 3] [1 4] [2 5] [6] [7] END"},
    {"GroupByReducer", make_reducer, "9 12 7 END"},
    {"Prefetch", make_prefetch, "0 2 4 6 END"},
    {"Cache", make_cache, "0 1 2 0 1 2 END"},
    {"SlidingWindow", make_sliding, "[0 2] [2 4] END"},
    {"Window", make_window, "[-4 -12] INVALID_ARGUMENT [-12 12] INVALID_ARGUMENT [12] [6] END"},
    {"Window, far apart", make_far_windows, "[-4 -6] [12 6] END"},
    {"IgnoreErrors", make_ignore, "-4 -6 -12 12 6 END"},
    {"MapAndBatch", make_map_and_batch, "[0 2] [4 6] [8] END"},
    /* The second batch has an element that fails. */
    {"MapAndBatch of errors", make_map_and_batch_of_errors, "[-4 -6] INVALID_ARGUMENT [12 6] END"},
    {"MapAndBatch, dropped", make_map_and_batch_dropped, "[-4 -6 -12] INVALID_ARGUMENT END"},
    {"Random", make_random, "64677483 3635105107 3931607701 END"},
    {"Shuffle", make_shuffle, "3 0 5 2 1 4 2 1 5 0 3 4 END"},
    {"ShuffleAndRepeat", make_shuffle_and_repeat, "2 3 0 1 1 2 3 0 END"},
    {"Unique", make_unique, "0 1 2 END"},
    {"Rebatch", make_rebatch, "[0 1] [2] [3] [4] END"},
    {"RebatchV2", make_resize, "[0 1] [2] [3 4] [5] [6] END"},
    {"AutoShard", make_auto_shard, "2 6 END"},
    {"ParallelMapV2", make_parallel_map_2, "0 2 4 6 8 10 END"},
    {"ParallelInterleaveV4", make_parallel_interleave_4, "0 0 1 0 1 2 0 1 2 3 END"},
    {"ParallelBatch", make_parallel_batch, "[0 1] [2 3] [4] END"},
    {"AssertCardinality", make_counted, "0 1 2 3 END"},
    {"CSV", make_csv, "2 -1 6 END"},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static void values(void)
{
    for (int i = 0; i < KINDS; i++) {
        leat_graph *g = graph();
        elements e = elements_of(g, kinds[i].make(g));
        char text[1024] = "", again[1024] = "";
        CHECK_OK(begin(&e));
        read_some(&e, 50, text, sizeof(text));
        if (strcmp(text, kinds[i].want) != 0)
            printf("%s:\n", kinds[i].name);
        CHECK_STR(text, kinds[i].want);
        CHECK_OK(begin(&e)); /* from the beginning */
        read_some(&e, 50, again, sizeof(again));
        CHECK_STR(again, text);
        close_elements(&e);
    }
}

/* A dataset that was written as a graph, and made of that graph again, has the same elements. */
static void through_graphs(void)
{
    for (int i = 0; i < KINDS; i++) {
        leat_graph *g = graph();
        const char *listed = "DatasetToSingleElement"; /* which WindowBatch calls */
        leat_out bytes = leat_op(g, "DatasetToGraph", leat_in(kinds[i].make(g)),
                                 leat_attr_strings("stateful_whitelist", &listed, 1));
        elements e = elements_of(g, leat_op(g, "DatasetFromGraph", leat_in(bytes)));
        char text[1024] = "";
        CHECK_OK(begin(&e));
        read_some(&e, 50, text, sizeof(text));
        if (strcmp(text, kinds[i].want) != 0)
            printf("%s:\n", kinds[i].name);
        CHECK_STR(text, kinds[i].want);
        close_elements(&e);
    }
}

/* Reads n elements, saves, reads the rest, restores in another session, and reads the rest. */
static void check_position(const struct kind *k, int n, bool *end)
{
    leat_graph *g = graph();
    elements e = elements_of(g, k->make(g)), other = e;
    leat_tensor *position = NULL;
    char before[1024] = "", rest[1024] = "", again[1024] = "";
    CHECK_OK(begin(&e));
    read_some(&e, n, before, sizeof(before));
    *end = strstr(before, "END") != NULL;
    CHECK_OK(
        leat_session_run(e.s, LEAT_NO_FEED, LEAT_FETCH({e.position, &position}), LEAT_NO_TARGET));
    read_some(&e, 50, rest, sizeof(rest));
    CHECK_OK(leat_session_open(g, &other.s));
    CHECK_OK(begin(&other));
    CHECK_OK(leat_session_run(other.s, LEAT_FEED({e.saved, position}), LEAT_NO_FETCH,
                              LEAT_TARGET(e.restore)));
    read_some(&other, 50, again, sizeof(again));
    if (strcmp(again, rest) != 0)
        printf("%s after %d elements:\n", k->name, n);
    CHECK_STR(again, rest);
    leat_tensor_unref(position);
    leat_session_close(other.s);
    close_elements(&e);
}

static void positions(void)
{
    for (int i = 0; i < KINDS; i++) {
        bool end = false;
        for (int n = 0; !end && n < 12; n++)
            check_position(&kinds[i], n, &end);
    }
}

/* A position whose bytes are changed is an error, or a position; nothing else happens. */
static void damaged_positions(void)
{
    leat_graph *g = graph();
    elements e = elements_of(g, make_parallel_interleave(g));
    leat_tensor *position = NULL;
    char text[256] = "";
    CHECK_OK(begin(&e));
    read_some(&e, 4, text, sizeof(text));
    CHECK_OK(
        leat_session_run(e.s, LEAT_NO_FEED, LEAT_FETCH({e.position, &position}), LEAT_NO_TARGET));
    size_t n = 0;
    const leat_variant *v = leat_tensor_data(position);
    const char *bytes = leat_position_variant_bytes(v, &n);
    CHECK(bytes && n > 100);
    for (size_t i = 0; bytes && i < n; i += 3) {
        char *copy = malloc(n);
        leat_tensor *bad;
        memcpy(copy, bytes, n);
        copy[i] ^= 0x41;
        CHECK_OK(leat_tensor_new(LEAT_VARIANT, leat_shape(), &bad));
        CHECK(leat_position_variant(copy, i % 2 ? n : i, leat_tensor_mutable(bad)));
        leat_status_free(leat_session_run(e.s, LEAT_FEED({e.saved, bad}), LEAT_NO_FETCH,
                                          LEAT_TARGET(e.restore)));
        text[0] = 0;
        read_some(&e, 3, text, sizeof(text));
        leat_tensor_unref(bad);
        free(copy);
    }
    leat_tensor_unref(position);
    CHECK_OK(leat_tensor_new(LEAT_VARIANT, leat_shape(), &position));
    CHECK_ERROR(leat_session_run(e.s, LEAT_FEED({e.saved, position}), LEAT_NO_FETCH,
                                 LEAT_TARGET(e.restore)),
                INVALID_ARGUMENT, "Unable to parse variant tensor.");
    leat_tensor_unref(position);
    close_elements(&e);
}

static void position_of_another(void)
{
    leat_graph *g = graph();
    elements e = elements_of(g, make_take(g)), f = elements_of(g, make_batch(g));
    leat_tensor *position = NULL;
    CHECK_OK(begin(&e));
    CHECK_OK(begin(&f));
    CHECK_OK(
        leat_session_run(e.s, LEAT_NO_FEED, LEAT_FETCH({e.position, &position}), LEAT_NO_TARGET));
    CHECK_ERROR(leat_session_run(f.s, LEAT_FEED({f.saved, position}), LEAT_NO_FETCH,
                                 LEAT_TARGET(f.restore)),
                INVALID_ARGUMENT,
                "is that of another dataset: it has a TakeDataset where the iterator has "
                "BatchDataset (BatchDataset)");
    leat_tensor_unref(position);
    leat_session_close(e.s);
    close_elements(&f);
}

static leat_out text(leat_graph *g, const char *s, bool vector)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_STRING, vector ? leat_shape(1) : leat_shape(), &t));
    CHECK(leat_string_set(leat_tensor_mutable(t), s, strlen(s)));
    leat_out c = leat_const(g, t);
    leat_tensor_unref(t);
    return c;
}

/* The position of an iterator in a checkpoint. */
static void checkpoint(void)
{
    char path[64], file[128], before[256] = "", rest[256] = "", again[256] = "";
    snprintf(path, sizeof(path), "/tmp/leat_position_%d", (int)getpid());
    leat_graph *g = graph();
    elements e = elements_of(g, make_shuffle(g));
    const leat_dtype variant[] = {LEAT_VARIANT};
    leat_out name = text(g, "iterator", true), whole = text(g, "", true),
             prefix = text(g, path, false);
    leat_out save = leat_op(g, "SaveV2", leat_in(prefix), leat_in(name), leat_in(whole),
                            leat_ins(&e.position, 1));
    leat_out saved = leat_op(g, "RestoreV2", leat_in(prefix), leat_in(name), leat_in(whole),
                             leat_attr_types("dtypes", variant, 1));
    leat_out restore = leat_op(g, "DeserializeIterator", leat_in(e.handle), leat_in(saved));
    CHECK_OK(begin(&e));
    read_some(&e, 5, before, sizeof(before));
    CHECK_OK(leat_session_run(e.s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(save)));
    read_some(&e, 50, rest, sizeof(rest));
    CHECK_OK(leat_session_run(e.s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(restore)));
    read_some(&e, 50, again, sizeof(again));
    CHECK_STR(again, rest);
    snprintf(file, sizeof(file), "%s.data-00000-of-00001", path);
    FILE *f = fopen(file, "r+b");
    fseek(f, 40, SEEK_SET);
    fputc('X', f);
    fclose(f);
    CHECK_ERROR(leat_session_run(e.s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(restore)), DATA_LOSS,
                "The checksum after Variant 0 does not match.");
    close_elements(&e);
    unlink(file);
    snprintf(file, sizeof(file), "%s.index", path);
    unlink(file);
}

/* ---- Errors ---- */

static void check_bad(leat_graph *g, leat_out dataset, const char *words)
{
    elements e = elements_of(g, dataset);
    CHECK_ERROR(begin(&e), INVALID_ARGUMENT, words);
    close_elements(&e);
}

static void bad_sizes(void)
{
    leat_graph *g;
#define BAD(dataset, words) g = graph(), check_bad(g, dataset, words)
    BAD(counted(g, "BatchDataset", range(g, 3), 0), "Batch size must be greater than zero.");
    BAD(counted(g, "BatchDataset", range(g, 3), -5), "Batch size must be greater than zero.");
    BAD(counted(g, "PrefetchDataset", range(g, 3), -2), "buffer_size must be >= 0 or set");
    BAD(DATASET("ShardDataset", leat_in(range(g, 3)), N(0), N(0)),
        "Number of shards must be greater than zero");
    BAD(DATASET("ShardDataset", leat_in(range(g, 3)), N(2), N(2)), "Index must be between 0 and 1");
    BAD(DATASET("ShuffleDataset", leat_in(range(g, 3)), N(0), N(1), N(1)),
        "buffer_size must be greater than zero.");
    BAD(DATASET("RangeDataset", N(0), N(3), N(0)), "step must be a non-zero integer.");
    BAD(parallel_map(g, range(g, 3), "Twice", 0), "num_parallel_calls must be greater than zero.");
    BAD(DATASET("InterleaveDataset", leat_in(range(g, 3)), NONE, N(0), N(1), F("f", "UpTo")),
        "`cycle_length` must be > 0");
    BAD(DATASET("InterleaveDataset", leat_in(range(g, 3)), NONE, N(INT64_MAX), N(1),
                F("f", "UpTo")),
        "`cycle_length` is 9223372036854775807; it may be 1048576");
    BAD(map(g, range(g, 3), "SumOf"),
        "takes 2 arguments; it would be given an element's 1 tensors");
    BAD(map(g, range(g, 3), "ToFloat"), "Result 0 of the function in `f` is float, not int64");
    BAD(map(g, map(g, range(g, 3), "ToFloat"), "Twice"), "Result 0 of the function in `f`");
    BAD(DATASET("SlidingWindowDataset", leat_in(range(g, 3)), N(0), N(1), N(1)),
        "Window size must be greater than zero.");
}

static void bad_elements(void)
{
    leat_graph *g = graph();
    elements e = elements_of(g, map(g, range(g, 6), "FailsAt3"));
    char text[256] = "";
    leat_tensor *t = NULL;
    CHECK_ERROR(get(&e, &t), FAILED_PRECONDITION,
                "GetNext() failed because the iterator has not been initialized.");
    CHECK_OK(begin(&e));
    read_some(&e, 3, text, sizeof(text));
    CHECK_STR(text, "-4 -6 -12");
    CHECK_ERROR(get(&e, &t), INVALID_ARGUMENT, "Integer division by zero");
    CHECK_OK(begin(&e));
    text[0] = 0;
    read_some(&e, 3, text, sizeof(text));
    CHECK_ERROR(get(&e, &t), INVALID_ARGUMENT, "[[dataset MapDataset (MapDataset), element 3]]");
    text[0] = 0;
    read_some(&e, 9, text, sizeof(text));
    CHECK_STR(text, "12 6 END");
    close_elements(&e);

    g = graph(); /* shapes that do not fit in one batch */
    e = elements_of(g, counted(g, "BatchDataset", counted(g, "BatchDataset", range(g, 3), 2), 2));
    CHECK_OK(begin(&e));
    CHECK_ERROR(get(&e, &t), INVALID_ARGUMENT,
                "Cannot batch tensors with different shapes in component 0. First element had "
                "shape [2] and element 1 had shape [1].");
    close_elements(&e);
}

/* A variant that is no dataset, and an iterator of other types. */
static void no_dataset(void)
{
    leat_graph *g = graph();
    check_bad(g, leat_op(g, "OptionalNone", leat_name("none")), "Tensor must be a Dataset object.");
    g = graph();
    leat_dtype types[] = {LEAT_FLOAT};
    check_bad(g,
              leat_op(g, "MapDataset", leat_in(range(g, 3)), NONE, F("f", "ToFloat"),
                      leat_attr_types("output_types", types, 1),
                      leat_attr_shapes("output_shapes", (leat_shape[]){leat_shape()}, 1)),
              "Data type mismatch at component 0: expected int64 but got float.");
}

/* ---- Deep chains ---- */

static void deep(void)
{
    static const char *const ops[] = {"TakeDataset", "PrefetchDataset", "RepeatDataset"};
    for (int i = 0; i < 3; i++) {
        leat_graph *g = graph();
        leat_out d = range(g, 3);
        for (int n = 0; n < 1000; n++)
            d = counted(g, ops[i], d, i == 2 ? 1 : 5);
        elements e = elements_of(g, d);
        char text[256] = "";
        leat_tensor *position = NULL;
        CHECK_OK(begin(&e));
        read_some(&e, 2, text, sizeof(text));
        CHECK_OK(leat_session_run(e.s, LEAT_NO_FEED, LEAT_FETCH({e.position, &position}),
                                  LEAT_NO_TARGET));
        CHECK_OK(leat_session_run(e.s, LEAT_FEED({e.saved, position}), LEAT_NO_FETCH,
                                  LEAT_TARGET(e.restore)));
        read_some(&e, 5, text, sizeof(text));
        CHECK_STR(text, "0 1 2 END");
        leat_tensor_unref(position);
        close_elements(&e);
    }
}

static void endless_dataset(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = DATASET("FlatMapDataset", leat_in(range(g, 1)), NONE, F("f", "Endless"));
}

/* A function that returns a dataset of itself; and an input without elements, repeated for ever. */
static void without_end(void)
{
    leat_graph *g = graph();
    leat_function_define(g, "Endless", endless_dataset, NULL, 1, LEAT_INT64);
    elements e =
        elements_of(g, DATASET("FlatMapDataset", leat_in(range(g, 1)), NONE, F("f", "Endless")));
    leat_tensor *t = NULL;
    CHECK_OK(begin(&e));
    CHECK_ERROR(get(&e, &t), RESOURCE_EXHAUSTED, "4096 iterators are inside each other");
    close_elements(&e);

    g = graph();
    e = elements_of(g, counted(g, "RepeatDataset", range(g, 0), -1));
    CHECK_OK(begin(&e));
    CHECK_ERROR(get(&e, &t), OUT_OF_RANGE, "End of sequence");
    close_elements(&e);
}

/* ---- Whole datasets ---- */

static void whole(void)
{
    leat_graph *g = graph();
    leat_session *s;
    leat_out state = number(g, 1000);
    leat_out reduced = leat_op(g, "ReduceDataset", leat_in(range(g, 5)), leat_ins(&state, 1), NONE,
                               F("f", "Plus"), ELEMENTS);
    leat_out one = leat_op(g, "DatasetToSingleElement", leat_in(range(g, 1)), ELEMENTS);
    leat_out two = leat_op(g, "DatasetToSingleElement", leat_in(range(g, 2)), ELEMENTS);
    leat_out none = leat_op(g, "DatasetToSingleElement", leat_in(range(g, 0)), ELEMENTS);
    leat_out count = leat_op(g, "DatasetCardinality", leat_in(make_shard(g)));
    leat_tensor *a = NULL, *b = NULL, *c = NULL;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({reduced, &a}, {one, &b}, {count, &c}),
                              LEAT_NO_TARGET));
    CHECK_INT((int)leat_tensor_at(a, 0), 1010);
    CHECK_INT((int)leat_tensor_at(b, 0), 0);
    CHECK_INT((int)leat_tensor_at(c, 0), 2);
    leat_tensor_unref(a);
    leat_tensor_unref(b);
    leat_tensor_unref(c);
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({two, &a}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "Dataset had more than one element.");
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({none, &a}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "Dataset was empty.");
    leat_session_close(s);
    leat_graph_free(g);
}

static void bad_choices(void)
{
    const struct {
        leat_out (*make)(leat_graph *g);
        const char *words;
    } cases[] = {
        {make_range, NULL},
        {make_filter, NULL}, /* how many there are is not known */
        {make_batch, "must have compatible output shapes. Component 0 of input 1 has shape: "},
        {make_repeat, NULL}, /* 4, as of Range */
        {make_take, "Input 1 has cardinality: 3, while all prior inputs have cardinality: 4."},
        {make_floats, "must have the same output types. Input 1 has output types: float. "
                      "Expected: int64."},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        leat_graph *g = graph();
        leat_out in[] = {make_scalars(g), cases[i].make(g)};
        elements e = elements_of(g, DATASET("ChooseFastestDataset", leat_ins(in, 2),
                                            leat_attr_int("num_experiments", 1)));
        if (cases[i].words)
            CHECK_ERROR(begin(&e), INVALID_ARGUMENT, cases[i].words);
        else
            CHECK_OK(begin(&e));
        close_elements(&e);
    }
}

static void bad_branches(void)
{
    static const struct {
        int denominator, captured;
        const char *words;
    } cases[] = {
        {4, 0, "`num_elements_per_branch` must be divisible by `ratio_denominator`."},
        {0, 0, "`ratio_denominator` must be greater than zero."},
        {1, 1, "other_arguments_lengths[1] is 1, and 0 other_arguments are left"},
        {1, -1, "other_arguments_lengths[1] is -1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        leat_graph *g = graph();
        elements e = elements_of(g, choose_branch(g, cases[i].denominator, cases[i].captured));
        CHECK_ERROR(begin(&e), INVALID_ARGUMENT, cases[i].words);
        close_elements(&e);
    }
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"bad_choices", bad_choices}, {"bad_branches", bad_branches},
               {"values", values}, {"through_graphs", through_graphs}, {"positions", positions},
               {"damaged_positions", damaged_positions},
               {"position_of_another", position_of_another}, {"checkpoint", checkpoint},
               {"bad_sizes", bad_sizes}, {"bad_elements", bad_elements}, {"no_dataset", no_dataset},
               {"deep", deep}, {"without_end", without_end}, {"whole", whole});
}
