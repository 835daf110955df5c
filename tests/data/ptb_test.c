/* ptb_test.c -- PTB's vocabulary, ids and batches, as TensorFlow's tutorial makes them. */
#include <leat/data.h>

#include <sys/stat.h>

#include "test.h"

static char dir[64];

static void write_text(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fputs(text, f) >= 0);
    fclose(f);
}

static void make_dir(void)
{
    strcpy(dir, "/tmp/leat-ptb-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    setenv("LEAT_DATA_CACHE", "/nonexistent", 1);
}

static void remove_dir(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    CHECK_INT(system(command), 0);
}

static void check_ids(const leat_ptb *p, leat_ptb_set set, const char *want)
{
    leat_tensor *ids;
    CHECK_OK(leat_ptb_ids(p, set, &ids));
    char *text = leat_tensor_text(ids, -1);
    CHECK_STR(text, want);
    free(text);
    leat_tensor_unref(ids);
}

static void vocabulary(void)
{
    leat_ptb *p;
    leat_tensor *x, *y;
    make_dir();
    write_text("ptb.train.txt", " the cat saw the dog \n the dog saw a cat \n a b \n");
    write_text("ptb.valid.txt", " a unicorn saw the cat \n");
    write_text("ptb.test.txt", " b\nc \n"); /* "b<eos>c" is one word, which is unknown */
    CHECK_OK(leat_ptb_open(dir, &p));
    /* the 3, <eos> 3, a 2, cat 2, dog 2, saw 2, b 1; "<eos>" is before "the". */
    CHECK_INT(leat_ptb_vocabulary(p), 7);
    static const char *const words[] = {"<eos>", "the", "a", "cat", "dog", "saw", "b"};
    for (int i = 0; i < 7; i++) {
        CHECK_STR(leat_ptb_word(p, i), words[i]);
        CHECK_INT(leat_ptb_id(p, words[i]), i);
    }
    CHECK(leat_ptb_word(p, 7) == NULL && leat_ptb_word(p, -1) == NULL);
    CHECK_INT(leat_ptb_id(p, "unicorn"), -1);
    check_ids(p, LEAT_PTB_TRAIN, "[1 3 5 1 4 0 1 4 5 2 3 0 2 6 0]");
    check_ids(p, LEAT_PTB_VALID, "[2 5 1 3 0]");
    check_ids(p, LEAT_PTB_TEST, "[0]");
    CHECK_INT(leat_ptb_epoch_size(p, LEAT_PTB_TRAIN, 2, 3), 2); /* pieces of 7 words */
    CHECK_OK(leat_ptb_batch(p, LEAT_PTB_TRAIN, 2, 3, 1, &x, &y));
    char *a = leat_tensor_text(x, -1), *b = leat_tensor_text(y, -1);
    CHECK_STR(a, "[[1 4 0][3 0 2]]");
    CHECK_STR(b, "[[4 0 1][0 2 6]]");
    free(a);
    free(b);
    leat_tensor_unref(x);
    leat_tensor_unref(y);
    CHECK_ERROR(leat_ptb_batch(p, LEAT_PTB_TRAIN, 2, 3, 2, &x, &y), OUT_OF_RANGE,
                "batch 2 of an epoch of 2 batches");
    CHECK_ERROR(leat_ptb_batch(p, LEAT_PTB_TEST, 2, 3, 0, &x, &y), INVALID_ARGUMENT,
                "epoch_size == 0, decrease batch_size or num_steps");
    leat_ptb_close(p);
    write_text("ptb.valid.txt", "");
    CHECK_ERROR(leat_ptb_open(dir, &p), DATA_LOSS, "ptb.valid.txt is no text");
    remove_dir();
}

static void drawn(void)
{
    leat_ptb *p;
    char before[4096];
    make_dir();
    CHECK(getcwd(before, sizeof(before)) && chdir(dir) == 0);
    CHECK_OK(leat_ptb_open(NULL, &p));
    CHECK(strstr(leat_ptb_source(p), "words that this program draws itself") != NULL);
    CHECK(leat_ptb_vocabulary(p) > 100);
    CHECK(leat_ptb_epoch_size(p, LEAT_PTB_TRAIN, 20, 20) > 1000);
    leat_ptb_close(p);
    CHECK(chdir(before) == 0);
    remove_dir();
}

/* The published text: 10,000 words, of which "the", "<unk>" and "<eos>" are the most frequent. */
static void real(void)
{
    leat_ptb *p;
    leat_tensor *ids;
    if (access(LEAT_SOURCE_DIR "/../shared/data/ptb/ptb.train.txt.gz", R_OK) != 0)
        SKIP("../shared/data/ptb is not there");
    CHECK_OK(leat_ptb_open(LEAT_SOURCE_DIR "/../shared/data/ptb", &p));
    CHECK_INT(leat_ptb_vocabulary(p), 10000);
    CHECK_STR(leat_ptb_word(p, 0), "the");
    CHECK_STR(leat_ptb_word(p, 1), "<unk>");
    CHECK_STR(leat_ptb_word(p, 2), "<eos>");
    static const int64_t counts[] = {929589, 73760, 82430};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(leat_ptb_ids(p, i, &ids));
        CHECK_INT(leat_tensor_count(ids), counts[i]);
        leat_tensor_unref(ids);
    }
    CHECK_INT(leat_ptb_epoch_size(p, LEAT_PTB_TRAIN, 20, 20), 2323);
    leat_ptb_close(p);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"vocabulary", vocabulary}, {"drawn", drawn}, {"real", real});
}
