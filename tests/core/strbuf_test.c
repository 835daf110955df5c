/* strbuf_test.c -- bytes that grow. */
#include "core/strbuf.h"

#include "test.h"

static void text(void)
{
    leat_strbuf b = {0};
    CHECK_STR(leat_strbuf_text(&b), "");
    leat_strbuf_puts(&b, "ab");
    leat_strbuf_putc(&b, 'c');
    leat_strbuf_printf(&b, "%d%s", 12, "x");
    CHECK_STR(leat_strbuf_text(&b), "abc12x");
    leat_strbuf_clear(&b);
    CHECK_STR(leat_strbuf_text(&b), "");
    leat_strbuf_add(&b, "a\0b", 3);
    CHECK_INT(b.n, 3);
    CHECK(memcmp(b.s, "a\0b", 4) == 0);
    leat_strbuf_add(&b, NULL, 0);
    CHECK_INT(b.n, 3);
    leat_strbuf_release(&b);
    CHECK_INT(b.n, 0);
}

static void grows(void)
{
    leat_strbuf b = {0};
    for (int i = 0; i < 1000; i++)
        leat_strbuf_printf(&b, "%03d", i);
    CHECK_INT(b.n, 3000);
    CHECK(memcmp(b.s + 2997, "999", 4) == 0);
    leat_strbuf_printf(&b, "%5000d", 1);
    CHECK_INT(b.n, 8000);
    CHECK_INT(strlen(b.s), 8000);
    leat_strbuf_release(&b);
    for (int i = 60; i < 68; i++) { /* around the first capacity */
        leat_strbuf_printf(&b, "%*d", i, 1);
        CHECK_INT(strlen(leat_strbuf_text(&b)), i);
        leat_strbuf_release(&b);
    }
}

static void take(void)
{
    leat_strbuf b = {0};
    char *s = leat_strbuf_take(&b);
    CHECK_STR(s, "");
    free(s);
    leat_strbuf_puts(&b, "abc");
    s = leat_strbuf_take(&b);
    CHECK_STR(s, "abc");
    free(s);
    CHECK(b.s == NULL && b.n == 0);
}

static void no_memory(void)
{
    leat_strbuf b = {.checked = true};
    leat_strbuf_puts(&b, "abc");
    CHECK_OK(leat_strbuf_check(&b));
    CHECK_ERROR(leat_strbuf_reserve(&b, SIZE_MAX - 3), RESOURCE_EXHAUSTED,
                "no memory for a string of 18446744073709551615 bytes");
    CHECK_OK(leat_strbuf_check(&b));         /* nothing was left out */
    leat_strbuf_add(&b, NULL, SIZE_MAX - 3); /* with what is there and a NUL, this is 2^64 + 1 */
    leat_strbuf_puts(&b, "def");
    CHECK_STR(leat_strbuf_text(&b), "abc");
    CHECK_ERROR(leat_strbuf_check(&b), RESOURCE_EXHAUSTED,
                "no memory for a string of 18446744073709551615 bytes");
    leat_strbuf_clear(&b);
    leat_strbuf_puts(&b, "def");
    CHECK_OK(leat_strbuf_check(&b));
    CHECK_STR(leat_strbuf_text(&b), "def");
    leat_strbuf_release(&b);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"text", text}, {"grows", grows}, {"take", take},
               {"no_memory", no_memory});
}
