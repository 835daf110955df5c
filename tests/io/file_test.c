/* file_test.c -- what is no regular file is refused, without waiting for it. */
#include "test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file.h"

static void only_regular_files(void)
{
    char dir[] = "/tmp/leat_file_XXXXXX", pipe[64];
    leat_file *f;
    CHECK(mkdtemp(dir));
    snprintf(pipe, sizeof(pipe), "%s/pipe", dir);
    CHECK_INT(mkfifo(pipe, 0600), 0);
    CHECK_ERROR(leat_file_open(pipe, &f), INVALID_ARGUMENT,
                "/pipe is a pipe: only regular files can be read");
    CHECK_ERROR(leat_file_open("/dev/zero", &f), INVALID_ARGUMENT, "/dev/zero is a device");
    CHECK_ERROR(leat_file_open(dir, &f), FAILED_PRECONDITION, "Is a directory");
    CHECK_ERROR(leat_file_open("/none", &f), NOT_FOUND, "/none; No such file");
    unlink(pipe);
    rmdir(dir);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"only_regular_files", only_regular_files});
}
