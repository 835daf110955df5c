/* cifar10_test.c -- CIFAR-10's batches: plain, compressed, damaged; drawn images; the real files.
 */
#include <leat/data.h>

#include <sys/stat.h>
#include <zlib.h>

#include "core/md5.h"
#include "data/cifar10.h"
#include "io/file.h"
#include "test.h"

enum { RECORD = 3073 };
static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void make_dir(void)
{
    strcpy(dir, "/tmp/leat-cifar-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    setenv("LEAT_DATA_CACHE", "/nonexistent", 1);
}

static void remove_dir(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    CHECK_INT(system(command), 0);
}

static unsigned char byte_at(int file, int record, int i)
{
    return (unsigned char)(file * 50 + record * 7 + i * 3);
}

static void fill_batch(int file, unsigned char *bytes)
{
    for (int r = 0; r < 2; r++) {
        bytes[r * RECORD] = (unsigned char)((file + r) % 10);
        for (int i = 0; i < RECORD - 1; i++)
            bytes[r * RECORD + 1 + i] = byte_at(file, r, i);
    }
}

/* Batches of two records; how: "" or ".gz". */
static void write_batches(const char *how)
{
    for (int f = 0; f < 6; f++) {
        char name[64];
        unsigned char bytes[2 * RECORD];
        snprintf(name, sizeof(name), f < 5 ? "data_batch_%d.bin%s" : "test_batch.bin%.0d%s",
                 f < 5 ? f + 1 : 0, how);
        fill_batch(f, bytes);
        gzFile g = gzopen(in_dir(name), *how ? "wb" : "wbT");
        CHECK(g && gzwrite(g, bytes, sizeof(bytes)) == sizeof(bytes));
        gzclose(g);
    }
}

static void check_rows(void)
{
    leat_cifar10 *c;
    leat_tensor *images, *labels;
    CHECK_OK(leat_cifar10_open(dir, &c));
    CHECK(strstr(leat_cifar10_source(c), dir) != NULL);
    CHECK_INT(leat_cifar10_count(c, LEAT_CIFAR10_TRAIN), 10);
    CHECK_INT(leat_cifar10_count(c, LEAT_CIFAR10_TEST), 2);
    CHECK_OK(leat_cifar10_rows(c, LEAT_CIFAR10_TRAIN, 3, 6, &images, &labels));
    CHECK_INT(leat_tensor_dtype(images), LEAT_UINT8);
    leat_shape want = leat_shape(3, 32, 32, 3), got = leat_tensor_shape(images);
    CHECK(leat_shape_equal(&want, &got));
    const unsigned char *p = leat_tensor_data(images);
    for (int i = 0; i < 3; i++) {
        const int file = (3 + i) / 2, record = (3 + i) % 2;
        CHECK_INT((int)leat_tensor_at(labels, i), (file + record) % 10);
        for (int k = 0; k < 1024; k += 37)
            for (int plane = 0; plane < 3; plane++)
                CHECK_INT(p[i * 3072 + 3 * k + plane], byte_at(file, record, plane * 1024 + k));
    }
    leat_tensor_unref(images);
    leat_tensor_unref(labels);
    CHECK_ERROR(leat_cifar10_rows(c, LEAT_CIFAR10_TEST, 1, 3, &images, &labels), INVALID_ARGUMENT,
                "rows [1, 3) of 2");
    leat_cifar10_close(c);
}

static void batches(void)
{
    make_dir();
    write_batches("");
    check_rows();
    remove_dir();
    make_dir();
    write_batches(".gz");
    check_rows();
    remove_dir();
    CHECK_STR(leat_cifar10_class(0), "airplane");
    CHECK_STR(leat_cifar10_class(9), "truck");
    CHECK(leat_cifar10_class(10) == NULL && leat_cifar10_class(-1) == NULL);
}

static void damaged(void)
{
    leat_cifar10 *c;
    make_dir();
    write_batches("");
    CHECK_INT(truncate(in_dir("data_batch_4.bin"), 2 * RECORD - 1), 0);
    CHECK_ERROR(leat_cifar10_open(dir, &c), DATA_LOSS, "data_batch_4.bin has 6145 bytes");
    write_batches("");
    FILE *f = fopen(in_dir("test_batch.bin"), "r+b");
    fseek(f, RECORD, SEEK_SET);
    fputc(10, f);
    fclose(f);
    CHECK_ERROR(leat_cifar10_open(dir, &c), DATA_LOSS, "test_batch.bin: label 1 is 10");
    remove_dir();
    make_dir();
    write_batches(".gz");
    CHECK_INT(truncate(in_dir("data_batch_2.bin.gz"), 100), 0);
    CHECK_ERROR(leat_cifar10_open(dir, &c), DATA_LOSS, "data_batch_2.bin.gz is damaged");
    remove_dir();
}

/* A file of a tar archive, at the end of b. */
static void add_file(leat_strbuf *b, const char *name, const unsigned char *bytes, size_t n)
{
    char head[512] = "", pad[512] = "";
    unsigned sum = 0;
    snprintf(head, 100, "cifar-10-batches-bin/%s", name);
    snprintf(head + 124, 12, "%011o", (unsigned)n);
    head[156] = '0';
    memset(head + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)head[i];
    snprintf(head + 148, 8, "%06o", sum);
    leat_strbuf_add(b, head, 512);
    leat_strbuf_add(b, bytes, n);
    leat_strbuf_add(b, pad, (512 - n % 512) % 512);
}

/* The archive that is downloaded becomes the six batches. */
static void archive(void)
{
    leat_strbuf tar = {0};
    make_dir();
    add_file(&tar, "readme.html", (const unsigned char *)"<html>", 6);
    for (int f = 0; f < 6; f++) {
        char name[32];
        unsigned char bytes[2 * RECORD];
        snprintf(name, sizeof(name), f < 5 ? "data_batch_%d.bin" : "test_batch.bin%.0d",
                 f < 5 ? f + 1 : 0);
        fill_batch(f, bytes);
        add_file(&tar, name, bytes, sizeof(bytes));
    }
    gzFile g = gzopen(in_dir("archive"), "wb");
    CHECK_INT(gzwrite(g, tar.s, (unsigned)tar.n), tar.n);
    gzclose(g);
    char *packed;
    size_t n;
    const leat_data_file f = {.remote = "archive.tar.gz"};
    CHECK_OK(leat_file_read(in_dir("archive"), &packed, &n));
    CHECK_OK(leat_cifar10_unpack(dir, &f, packed, n));
    check_rows();
    CHECK(access(in_dir("readme.html"), F_OK) != 0);
    CHECK_ERROR(leat_cifar10_unpack(dir, &f, packed, n / 2), DATA_LOSS, "archive.tar.gz: ");
    CHECK_ERROR(leat_cifar10_unpack(dir, &f, tar.s, tar.n), DATA_LOSS, "archive.tar.gz: ");
    free(packed);
    leat_strbuf_release(&tar);
    remove_dir();
}

static void drawn(void)
{
    leat_cifar10 *c;
    leat_tensor *images, *labels;
    char before[4096];
    int seen[10] = {0};
    make_dir();
    CHECK(getcwd(before, sizeof(before)) && chdir(dir) == 0);
    CHECK_OK(leat_cifar10_open(NULL, &c));
    CHECK(strstr(leat_cifar10_source(c), "no CIFAR-10 found") != NULL);
    CHECK(strstr(leat_cifar10_source(c), "images that this program draws itself") != NULL);
    CHECK_INT(leat_cifar10_count(c, LEAT_CIFAR10_TRAIN), 50000);
    CHECK_OK(leat_cifar10_rows(c, LEAT_CIFAR10_TEST, 0, 1000, &images, &labels));
    for (int i = 0; i < 1000; i++)
        seen[(int)leat_tensor_at(labels, i)]++;
    for (int i = 0; i < 10; i++)
        CHECK(seen[i] > 50);
    leat_tensor_unref(images);
    leat_tensor_unref(labels);
    leat_cifar10_close(c);
    CHECK(chdir(before) == 0);
    remove_dir();
}

/* The published files, whose first batch has the MD5 sum that is beside them. */
static void real(void)
{
    leat_cifar10 *c;
    leat_tensor *images, *labels;
    if (access(LEAT_SOURCE_DIR "/../shared/data/cifar10/test_batch.bin.xz", R_OK) != 0)
        SKIP("../shared/data/cifar10 is not there");
    leat_status s = leat_cifar10_open(LEAT_SOURCE_DIR "/../shared/data/cifar10", &c);
    if (s && strstr(leat_status_message(s), "needs liblzma")) {
        leat_status_free(s);
        SKIP("liblzma is not installed");
    }
    CHECK_OK(s);
    CHECK_INT(leat_cifar10_count(c, LEAT_CIFAR10_TRAIN), 50000);
    CHECK_INT(leat_cifar10_count(c, LEAT_CIFAR10_TEST), 10000);
    CHECK_OK(leat_cifar10_rows(c, LEAT_CIFAR10_TEST, 0, 10000, &images, &labels));
    CHECK_STR(leat_cifar10_class((int)leat_tensor_at(labels, 0)), "cat");
    unsigned char *batch = malloc(10000 * RECORD);
    const unsigned char *p = leat_tensor_data(images);
    for (int i = 0; i < 10000; i++) {
        batch[i * RECORD] = (unsigned char)leat_tensor_at(labels, i);
        for (int k = 0; k < 3072; k++)
            batch[i * RECORD + 1 + k % 3 * 1024 + k / 3] = p[i * 3072 + k];
    }
    uint8_t digest[16];
    static const uint8_t want[16] = {0x80, 0x3d, 0x5f, 0x7f, 0x4d, 0x78, 0xea, 0x53,
                                     0xde, 0x84, 0xdb, 0xe8, 0x5f, 0x74, 0xfb, 0x6d};
    leat_md5(batch, 10000 * RECORD, digest);
    CHECK(memcmp(digest, want, 16) == 0);
    free(batch);
    leat_tensor_unref(images);
    leat_tensor_unref(labels);
    leat_cifar10_close(c);
    /* A batch that is cut off */
    char command[256];
    make_dir();
    write_batches("");
    snprintf(command, sizeof(command),
             "rm %s/test_batch.bin && head -c 100000 " LEAT_SOURCE_DIR
             "/../shared/data/cifar10/test_batch.bin.xz >%s/test_batch.bin.xz",
             dir, dir);
    CHECK_INT(system(command), 0);
    CHECK_ERROR(leat_cifar10_open(dir, &c), DATA_LOSS, "test_batch.bin.xz is damaged");
    remove_dir();
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"batches", batches}, {"damaged", damaged}, {"archive", archive},
               {"drawn", drawn}, {"real", real});
}
