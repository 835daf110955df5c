/* skipgram.c -- Skipgram: pairs of a word and one of its neighbours, from a text, in TensorFlow's
 * sequence. The text is read by the node's first run; all runs of a session go on in it.
 *
 * Words are taken in sentences of SENTENCE words, from which frequent ones are left out at random.
 * Each word gets a window of random width, whose other words are its labels, one after another. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/map.h"
#include "io/file.h"
#include "kernels/cpu/candidate.h"
#include "kernels/cpu/distributions.h"
#include "kernels/cpu/random.h"

enum { SENTENCE = 1000, AHEAD = 3000 }; /* words of a sentence; pairs that are made at a time */

typedef struct text {
    leat_tensor *word, *count; /* of the vocabulary; 0 is "UNK", all rare words */
    int32_t *corpus;           /* the numbers of all n words */
    int64_t n;
} text;

typedef struct skipgram {
    leat_resource base;
    pthread_mutex_t lock; /* guards what follows; held while pairs are made */
    text text;            /* word is NULL until the file was read */
    int64_t window;
    float subsample;
    leat_philox stream;
    leat_philox_single random;
    int32_t sentence[SENTENCE];
    int64_t at;               /* the next word of the corpus */
    int64_t position;         /* of the present word in the sentence */
    int64_t label, label_end; /* the word's next label and the end of its window */
    int64_t epoch, words;     /* that were begun */
    int32_t examples[AHEAD], labels[AHEAD];
    int64_t used; /* how many of these pairs were given out */
} skipgram;

static void text_release(text *t)
{
    leat_tensor_unref(t->word);
    leat_tensor_unref(t->count);
    free(t->corpus);
    *t = (text){0};
}

static void skipgram_free(void *resource)
{
    skipgram *s = resource;
    pthread_mutex_destroy(&s->lock);
    text_release(&s->text);
    free(s);
}
static const leat_resource_type skipgram_type = {"Skipgram", skipgram_free};

/* ---- The text ---- */

typedef struct entry {
    const char *word;
    size_t size;
    int64_t count;
    int32_t number; /* in the vocabulary */
} entry;

/* The different words, in the order in which the text has them, and a hash table of them. */
typedef struct word_table {
    entry *all;
    int64_t n, cap;
    int32_t *slot; /* 1 + the position in `all`; 0: free */
    uint64_t mask; /* number of slots - 1; there are at least two for each of `cap` words */
} word_table;

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The word that begins at or after *p; NULL at the end. */
static const char *next_word(const char **p, const char *end, size_t *size)
{
    while (*p < end && is_space(**p))
        ++*p;
    const char *word = *p;
    while (*p < end && !is_space(**p))
        ++*p;
    *size = (size_t)(*p - word);
    return *size ? word : NULL;
}

static int64_t count_words(const char *bytes, const char *end)
{
    size_t size;
    int64_t n = 0;
    while (next_word(&bytes, end, &size))
        n++;
    return n;
}

static int32_t *slot_of(const word_table *t, const char *word, size_t size)
{
    uint64_t h = leat_hash(word, size, 0);
    for (;; h++) {
        int32_t *slot = &t->slot[h & t->mask];
        const entry *e = &t->all[*slot - 1];
        if (*slot == 0 || (e->size == size && memcmp(e->word, word, size) == 0))
            return slot;
    }
}

static leat_status table_grow(word_table *t)
{
    word_table more = {.n = t->n, .cap = t->cap ? 2 * t->cap : 1024};
    more.mask = 2 * (uint64_t)more.cap - 1;
    leat_status s = leat_try_array(more.cap, &more.all);
    if (!s)
        s = leat_try_array(2 * more.cap, &more.slot);
    for (int64_t i = 0; !s && i < t->n; i++) {
        more.all[i] = t->all[i];
        *slot_of(&more, t->all[i].word, t->all[i].size) = (int32_t)(i + 1);
    }
    word_table *old = s ? &more : t;
    free(old->all);
    free(old->slot);
    if (!s)
        *t = more;
    return s;
}

/* Counts the words of a text, and numbers them by their entries. */
static leat_status find_words(word_table *t, const char *bytes, const char *end, int32_t *corpus)
{
    const char *word;
    size_t size;
    for (int64_t i = 0; (word = next_word(&bytes, end, &size)); i++) {
        if (t->n == t->cap)
            LEAT_TRY(table_grow(t));
        int32_t *slot = slot_of(t, word, size);
        if (*slot == 0) {
            t->all[t->n++] = (entry){.word = word, .size = size};
            *slot = (int32_t)t->n;
        }
        corpus[i] = *slot - 1;
        t->all[corpus[i]].count++;
    }
    return NULL;
}

/* The more frequent first; those that are equally frequent in the order of the text. */
static int by_count(const void *a, const void *b)
{
    const entry *x = *(entry *const *)a, *y = *(entry *const *)b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x < y ? -1 : 1;
}

/* The vocabulary has the n words `sorted`. */
static leat_status make_vocabulary(text *t, entry **sorted, int64_t n)
{
    int64_t counted = 0;
    LEAT_TRY(leat_tensor_new(LEAT_STRING, leat_shape(n + 1), &t->word));
    LEAT_TRY(leat_tensor_new(LEAT_INT32, leat_shape(n + 1), &t->count));
    leat_string *words = AT(leat_string, t->word);
    bool ok = leat_string_set(&words[0], "UNK", 3);
    for (int64_t i = 0; i < n; i++) {
        sorted[i]->number = (int32_t)(i + 1);
        ok = ok && leat_string_set(&words[i + 1], sorted[i]->word, sorted[i]->size);
        AT(int32_t, t->count)[i + 1] = (int32_t)sorted[i]->count;
        counted += sorted[i]->count;
    }
    LEAT_REQUIRE(ok, RESOURCE_EXHAUSTED, "no memory for a vocabulary of %lld words", (long long)n);
    AT(int32_t, t->count)[0] = (int32_t)(t->n - counted);
    return NULL;
}

/* Numbers the words of the text by their frequency; those that occur less than min_count times are
 * number 0. */
static leat_status number_words(text *t, int64_t min_count, const char *bytes, const char *end)
{
    word_table table = {0};
    entry **sorted = NULL;
    int64_t n = 0;
    leat_status s = find_words(&table, bytes, end, t->corpus);
    if (!s)
        s = leat_try_array(table.n + 1, &sorted);
    for (int64_t i = 0; !s && i < table.n; i++)
        if (table.all[i].count >= min_count)
            sorted[n++] = &table.all[i];
    if (!s) {
        qsort(sorted, (size_t)n, sizeof(*sorted), by_count);
        s = make_vocabulary(t, sorted, n);
    }
    for (int64_t i = 0; !s && i < t->n; i++)
        t->corpus[i] = table.all[t->corpus[i]].number;
    free(table.all);
    free(table.slot);
    free(sorted);
    return s;
}

static leat_status read_text(const leat_node *n, text *out)
{
    const char *path = leat_node_string(n, "filename");
    const int64_t window = leat_node_int(n, "window_size");
    char *bytes;
    size_t size;
    text t = {0};
    LEAT_TRY(leat_file_read(path, &bytes, &size));
    t.n = count_words(bytes, bytes + size);
    leat_status s = NULL;
    if (t.n < window * 10)
        s = leat_error(INVALID_ARGUMENT, "The text file %s contains too little data: %lld words",
                       path, (long long)t.n);
    else if (t.n > INT32_MAX)
        s = leat_error(INVALID_ARGUMENT, "The text file %s has %lld words, more than %d", path,
                       (long long)t.n, INT32_MAX);
    if (!s)
        s = leat_try_array(t.n, &t.corpus);
    if (!s)
        s = number_words(&t, leat_node_int(n, "min_count"), bytes, bytes + size);
    free(bytes);
    if (s)
        text_release(&t);
    else
        *out = t;
    return s;
}

/* ---- Pairs ---- */

/* Whether the word is kept: the more frequent it is, the less likely (Mikolov, 2013, equation
 * 5). */
static bool keep(skipgram *s, int32_t word)
{
    const int32_t count = AT(int32_t, s->text.count)[word];
    const float expected = s->subsample * (float)s->text.n;
    const float chance = (sqrtf((float)count / expected) + 1) * expected / (float)count;
    return !(leat_uniform_float(leat_philox_one(&s->random)) > chance);
}

/* False if the step was cancelled. */
static bool next_sentence(skipgram *s, leat_look *look)
{
    for (int i = 0; i < SENTENCE; s->at++) {
        if (leat_look_over(look, 16))
            return false;
        if (s->at >= s->text.n) {
            s->epoch++;
            s->at = 0;
        }
        const int32_t word = s->text.corpus[s->at];
        if (s->subsample > 0 && !keep(s, word))
            continue;
        s->sentence[i++] = word;
    }
    return true;
}

static bool next_pair(skipgram *s, leat_look *look, int32_t *example, int32_t *label)
{
    for (;; s->label++) {
        if (s->label >= s->label_end) {
            s->words++;
            if (++s->position >= SENTENCE) {
                s->position = 0;
                if (!next_sentence(s, look)) {
                    s->position = SENTENCE; /* the next run begins with a new sentence */
                    return false;
                }
            }
            const int64_t skip = 1 + leat_uniform_below(&s->random, (uint32_t)s->window);
            s->label = s->position > skip ? s->position - skip : 0;
            s->label_end = s->position + skip + 1 < SENTENCE ? s->position + skip + 1 : SENTENCE;
        }
        if (s->label != s->position)
            break;
    }
    *example = s->sentence[s->position];
    *label = s->sentence[s->label++];
    return true;
}

static leat_status more_pairs(leat_kernel *k, skipgram *s)
{
    leat_look look = leat_look_begin(k);
    for (int i = 0; i < AHEAD; i++)
        if (!next_pair(s, &look, &s->examples[i], &s->labels[i]))
            return leat_kernel_check(k);
    s->used = 0;
    return NULL;
}

/* ---- The kernel ---- */

static leat_status make(void *node, leat_resource **out)
{
    skipgram *s = calloc(1, sizeof(*s));
    LEAT_REQUIRE(s, RESOURCE_EXHAUSTED, "no memory for a Skipgram");
    leat_resource_init(&s->base, &skipgram_type);
    pthread_mutex_init(&s->lock, NULL);
    s->window = leat_node_int(node, "window_size");
    s->subsample = (float)leat_node_float(node, "subsample");
    s->stream = leat_philox_of(0, 0); /* as in TensorFlow: the pairs are the same each time */
    s->random = (leat_philox_single){.gen = &s->stream, .used = 4};
    s->position = SENTENCE;
    s->used = AHEAD;
    s->epoch = -1;
    *out = &s->base;
    return NULL;
}

static leat_status check_attributes(const leat_node *n)
{
    static const char *const names[] = {"batch_size", "window_size"};
    for (int i = 0; i < 2; i++) {
        const int64_t v = leat_node_int(n, names[i]);
        LEAT_REQUIRE(v >= i && v <= INT32_MAX / 16, INVALID_ARGUMENT,
                     "%s must be from %d to %d, got %lld", names[i], i, INT32_MAX / 16,
                     (long long)v);
    }
    return NULL;
}

/* Fills the outputs; s is locked. */
static leat_status give(leat_kernel *k, skipgram *s)
{
    static const leat_shape scalar = {0};
    const leat_shape batch = leat_shape(leat_node_int(leat_kernel_node(k), "batch_size"));
    leat_tensor *per_epoch, *epoch, *words, *examples, *labels;
    LEAT_TRY(leat_kernel_out(k, 2, &scalar, &per_epoch));
    LEAT_TRY(leat_kernel_out(k, 3, &scalar, &epoch));
    LEAT_TRY(leat_kernel_out(k, 4, &scalar, &words));
    LEAT_TRY(leat_kernel_out(k, 5, &batch, &examples));
    LEAT_TRY(leat_kernel_out(k, 6, &batch, &labels));
    if (!s->text.word) {
        LEAT_TRY(read_text(leat_kernel_node(k), &s->text));
        s->at = s->text.n; /* the first sentence begins the first epoch */
    }
    if (s->used == AHEAD) /* in the first run, and after one that was cancelled */
        LEAT_TRY(more_pairs(k, s));
    for (int64_t i = 0; i < batch.dim[0]; i++) {
        AT(int32_t, examples)[i] = s->examples[s->used];
        AT(int32_t, labels)[i] = s->labels[s->used];
        if (++s->used == AHEAD)
            LEAT_TRY(more_pairs(k, s));
    }
    AT(int64_t, per_epoch)[0] = s->text.n;
    AT(int32_t, epoch)[0] = (int32_t)s->epoch;
    AT(int64_t, words)[0] = s->words;
    leat_kernel_set(k, 0, leat_tensor_ref(s->text.word));
    leat_kernel_set(k, 1, leat_tensor_ref(s->text.count));
    return NULL;
}

static leat_status skipgram_run(leat_kernel *k)
{
    leat_resource *r;
    LEAT_TRY(check_attributes(leat_kernel_node(k)));
    LEAT_TRY(leat_random_resource(k, leat_kernel_state(k), "_skipgrams", &skipgram_type, make, &r));
    skipgram *s = (skipgram *)r;
    pthread_mutex_lock(&s->lock);
    leat_status status = give(k, s);
    pthread_mutex_unlock(&s->lock);
    return status;
}

const leat_kernel_def leat_cpu_skipgram[] = {
    {.op = "Skipgram",
     .run = skipgram_run,
     .state_size = LEAT_RANDOM_STATE,
     .release = leat_random_release},
    {0},
};
