/* shakespeare.c -- Tiny Shakespeare, a text to learn characters from, or a text of the same form
 * that is drawn instead. */
#include <leat/data.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "data/files.h"
#include "data/random.h"

enum { MOST_BYTES = 256 << 20, DRAWN_BYTES = 300000 };

static const leat_data_file file = {"input.txt", "input.txt", 1115394,
                                    "6fb458f1232090904fb40fe944165e91"};

static const leat_data_set shakespeare = {
    .name = "tinyshakespeare",
    .title = "Tiny Shakespeare",
    .url = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare",
    .files = &file,
    .n = 1,
};

/* ---- A drawn text: names, and under each a few lines of simple sentences ---- */

enum { PARTS = 5, CHOICES = 5 };

static void draw_line(leat_strbuf *b, leat_rng *r)
{
    static const char *const parts[PARTS][CHOICES] = {
        {"And", "But", "For", "Then", "Yet"},
        {" the king", " my lord", " our queen", " this noble duke", " the gentle moon"},
        {" shall see", " did love", " must fear", " may praise", " hath forgot"},
        {" the morning light", " his father's sword", " her silent grave", " a thousand stars",
         " all that was promised"},
        {",\n", ";\n", ".\n", "!\n", "?\n"},
    };
    for (int i = 0; i < PARTS; i++)
        leat_strbuf_puts(b, parts[i][leat_rng_below(r, CHOICES)]);
}

static void draw_text(leat_strbuf *b)
{
    static const char *const names[CHOICES] = {"GLOUCESTER", "First Citizen", "ROMEO", "QUEEN ANNE",
                                               "Messenger"};
    leat_rng r;
    leat_rng_init(&r, 1);
    while (b->n < DRAWN_BYTES) {
        leat_strbuf_printf(b, "%s:\n", names[leat_rng_below(&r, CHOICES)]);
        for (int64_t n = leat_rng_below(&r, 4); n >= 0; n--)
            draw_line(b, &r);
        leat_strbuf_putc(b, '\n');
    }
}

/* ---- The interface ---- */

static leat_status read_text(const char *dir, leat_strbuf *b)
{
    LEAT_TRY(leat_data_read(dir, file.name, MOST_BYTES, b));
    LEAT_REQUIRE(b->n > 0 && !memchr(b->s, 0, b->n), DATA_LOSS, "%s/%s is no text", dir, file.name);
    return NULL;
}

leat_status leat_shakespeare_read(const char *data_dir, char **text_out, size_t *size_out,
                                  char **source_out)
{
    leat_strbuf text = {.checked = true}, source = {0};
    char *dir, *why;
    LEAT_TRY(leat_data_find(&shakespeare, data_dir && *data_dir ? data_dir : NULL, &dir, &why));
    if (!dir)
        draw_text(&text);
    leat_status s = dir ? read_text(dir, &text) : leat_strbuf_check(&text);
    if (dir)
        leat_strbuf_printf(&source, "Tiny Shakespeare from %s", dir);
    else
        leat_strbuf_printf(&source, "%s; training on verses that this program draws itself", why);
    free(dir);
    free(why);
    if (s) {
        leat_strbuf_release(&text);
        leat_strbuf_release(&source);
        return s;
    }
    *size_out = text.n;
    *text_out = leat_strbuf_take(&text);
    *source_out = leat_strbuf_take(&source);
    return NULL;
}
