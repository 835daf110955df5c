/* The digests of RFC 1321. */
#include "core/md5.h"

#include "test.h"

static void digests(void)
{
    static const struct {
        const char *text, *digest;
    } rows[] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        uint8_t d[16];
        char text[33];
        leat_md5(rows[i].text, strlen(rows[i].text), d);
        for (int k = 0; k < 16; k++)
            snprintf(text + 2 * k, 3, "%02x", d[k]);
        CHECK_STR(text, rows[i].digest);
    }
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"digests", digests});
}
