/* messages_fuzz.c -- any bytes as each of the messages that carry tensors.
 *
 * The first byte chooses the message. Its decoder must say the same, and fill the struct alike,
 * whether the bytes come in one slice or in many. */
#include "cluster/message_codecs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    leat_cpu_allocator()->limit = 1 << 20;
    if (!n)
        return 0;
    const codec *k = &codecs[data[0] % CODECS];
    leat_strbuf whole = {0}, pieces = {0};
    leat_status a = show(k, (const char *)data + 1, n - 1, n, &whole);
    leat_status b = show(k, (const char *)data + 1, n - 1, 3, &pieces);
    if (leat_status_code(a) != leat_status_code(b) ||
        strcmp(leat_status_message(a), leat_status_message(b)) != 0 ||
        strcmp(leat_strbuf_text(&whole), leat_strbuf_text(&pieces)) != 0 || test_failures)
        abort();
    leat_status_free(a);
    leat_status_free(b);
    leat_strbuf_release(&whole);
    leat_strbuf_release(&pieces);
    return 0;
}
