/* path_test.c -- paths with schemes, patterns, and processes that are limited to some directories.
 */
#include "io/path.h"

#include <leat/io.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "io/files.h"

/* ---- Schemes ---- */
static void schemes(void)
{
    const char *name;
    int fd;
    CHECK_OK(leat_path_name("file:///tmp/x", &name));
    CHECK_STR(name, "/tmp/x");
    CHECK_OK(leat_path_name("file://localhost/tmp/x", &name));
    CHECK_STR(name, "/tmp/x");
    CHECK_OK(leat_path_name("a:b//c", &name));
    CHECK_STR(name, "a:b//c");
    CHECK_ERROR(leat_path_name("file://host/tmp/x", &name), INVALID_ARGUMENT,
                "file://host/tmp/x; a file of host \"host\" cannot be used here");
    CHECK_ERROR(leat_path_open("gs://bucket/x", O_RDONLY, &fd), UNIMPLEMENTED,
                "File system scheme 'gs' not implemented (file: 'gs://bucket/x')");
    static const char *const dirs[][2] = {{"file:///x", "file:///"},
                                          {"file:///a/x", "file:///a"},
                                          {"/x", "/"},
                                          {"a//x", "a"},
                                          {"x", "."}};
    for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
        char *dir = leat_path_dir(dirs[i][0]);
        CHECK_STR(dir, dirs[i][1]);
        free(dir);
    }
}

static void file_scheme_is_no_directory(void)
{
    char path[600];
    snprintf(path, sizeof(path), "file://%s", here("scheme/a/text"));
    CHECK_OK(leat_file_write(path, "abc", 3));
    char *bytes = NULL;
    size_t n = 0;
    CHECK_OK(leat_file_read(here("scheme/a/text"), &bytes, &n));
    CHECK_STR(bytes, "abc");
    free(bytes);
    CHECK(!leat_path_exists("file:"));
    CHECK_ERROR(leat_file_write("s3://b/x", "abc", 3), UNIMPLEMENTED, "scheme 's3'");
}

/* ---- Patterns ---- */
static void patterns(void)
{
    static const char *const names[] = {"m/a-1", "m/a-2", "m/b[1]", "m/n/a-1", "m/n/c"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        CHECK_OK(leat_file_write(here(names[i]), "x", 1));
    static const struct {
        const char *pattern;
        int n;
    } cases[] = {{"m/a-*", 2},      {"m/a-?", 2},   {"m/a-[2-9]", 1}, {"m/b[1]", 0},
                 {"m/b\\[1\\]", 1}, {"m/*/a-1", 1}, {"m/*", 4},       {"m/a-1", 1},
                 {"m/none", 0},     {"none/*", 0},  {"*/n/*", 2},     {"m//a-*", 2}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char **found = NULL;
        size_t n = 0;
        CHECK_OK(leat_path_match(here(cases[i].pattern), &found, &n));
        CHECK_INT(n, cases[i].n);
        for (size_t k = 0; k < n; k++)
            CHECK(leat_path_exists(found[k]));
        leat_paths_free(found, n);
    }
    char **found;
    size_t n;
    CHECK_ERROR(leat_path_match("gs://b/*", &found, &n), UNIMPLEMENTED, "scheme 'gs'");
}

/* ---- Roots: set once a process, so each case has one of its own ---- */
static void make_tree(void)
{
    static const char *const names[] = {"out/secret", "both/x", "both/d/y", "both2/z", "in/data"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        CHECK_OK(leat_file_write(here(names[i]), names[i], strlen(names[i])));
    static const char *const links[][2] = {
        {"../out", "both/link_dir"}, {"../out/secret", "both/link_file"}, {"d/y", "both/link_in"}};
    for (int i = 0; i < 3; i++) {
        unlink(here(links[i][1]));
        CHECK_INT(symlink(links[i][0], here(links[i][1])), 0);
    }
    unlink(here("both/link_abs"));
    CHECK_INT(symlink(here("out/secret"), here("both/link_abs")), 0);
}

/* Runs fn in a process that may write below both/, and read below in/, too. */
static void limited(void (*fn)(void))
{
    make_tree();
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        CHECK_OK(leat_file_roots_set(here("both"), here("in")));
        fn();
        fflush(stdout);
        _exit(test_failures ? 1 : 0);
    }
    int code = 0;
    CHECK(waitpid(pid, &code, 0) == pid);
    CHECK_INT(code, 0);
}

static void read_one(const char *name, bool ok)
{
    char *bytes = NULL;
    size_t n;
    leat_status s = leat_file_read(here(name), &bytes, &n);
    if (ok)
        CHECK_OK(s);
    else
        CHECK_ERROR(s, PERMISSION_DENIED, "; this process may read files only below ");
    free(bytes);
}

static void reads(void)
{
    read_one("both/x", true);
    read_one("both/d/../x", true);
    read_one("both/link_in", true);
    read_one("in/data", true);
    read_one("out/secret", false);
    read_one("both/../out/secret", false);
    read_one("both/link_dir/secret", false);
    read_one("both/link_file", false);
    read_one("both/link_abs", false);
    read_one("both2/z", false); /* a name that begins like a root's */
    CHECK(leat_path_exists(here("both/x")));
    CHECK(!leat_path_exists(here("out/secret")));
    char **found = NULL;
    size_t n = 0;
    CHECK_OK(leat_path_match(here("*/*"), &found, &n)); /* lists what is above the roots */
    CHECK_INT(n, 0);
    leat_paths_free(found, n);
    CHECK_INT(chdir(here("both")), 0);
    char *bytes = NULL;
    CHECK_OK(leat_file_read("d/y", &bytes, &n));
    free(bytes);
    CHECK_ERROR(leat_file_read("../out/secret", &bytes, &n), PERMISSION_DENIED, "../out/secret; ");
}

static void write_one(const char *name, bool ok)
{
    leat_status s = leat_file_write(here(name), "new", 3);
    if (ok)
        CHECK_OK(s);
    else
        CHECK_ERROR(s, PERMISSION_DENIED, "; this process may write files only below ");
}

static void writes(void)
{
    write_one("both/new/deep/file", true);
    write_one("both/x", true);
    write_one("in/data", false);
    write_one("in/new", false);
    write_one("out/new", false);
    write_one("none/new", false);
    write_one("both/link_dir/new", false);
    write_one("both/../out/new", false);
    /* A link is replaced, not written through. */
    write_one("both/link_file", true);
    CHECK_ERROR(leat_path_remove(here("out/secret")), PERMISSION_DENIED, "out/secret; ");
    CHECK_ERROR(leat_path_remove(here("both/link_dir/secret")), PERMISSION_DENIED, "secret; ");
    CHECK_ERROR(leat_path_rename(here("both/x"), here("out/x")), PERMISSION_DENIED, "out/x; ");
    CHECK_ERROR(leat_path_rename(here("out/secret"), here("both/s")), PERMISSION_DENIED,
                "secret; ");
    CHECK_ERROR(leat_path_link(here("out/secret"), here("both/s")), PERMISSION_DENIED, "secret; ");
    CHECK_ERROR(leat_path_remove(here("both")), PERMISSION_DENIED, "both; ");
    CHECK_OK(leat_path_rename(here("both/x"), here("both/d/x")));
    CHECK_OK(leat_path_remove(here("both/d/x")));
}

static void set_once(void)
{
    CHECK_OK(leat_file_roots_set(here("both"), here("in")));
    CHECK_ERROR(leat_file_roots_set("/", NULL), FAILED_PRECONDITION, "are set already");
    CHECK_OK(leat_file_roots_set(NULL, NULL));
    read_one("out/secret", false);
}

/* As an older kernel, or a container's filter of system calls, has it. */
static bool without_openat2(void)
{
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog p = {sizeof(f) / sizeof(*f), f};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) == 0;
}

static void old_kernel(void)
{
    if (!without_openat2())
        return;
    read_one("both/x", true);
    read_one("both/d/y", true);
    read_one("both//d/./y", true);
    read_one("both/link_in", false); /* no link at all is followed */
    read_one("both/d/../x", false);
    read_one("both/link_dir/secret", false);
    read_one("both/link_file", false);
    write_one("both/new2/deep/file", true);
    write_one("both/link_dir/new", false);
    write_one("in/new", false);
}

static void root_reads(void)
{
    limited(reads);
}

static void root_without_openat2(void)
{
    limited(old_kernel);
    CHECK(!leat_path_exists(here("out/new")));
}

static void root_writes(void)
{
    limited(writes);
    CHECK(leat_path_exists(here("out/secret")));
    CHECK(!leat_path_exists(here("out/new")));
}

static void root_set_once(void)
{
    limited(set_once);
    CHECK_ERROR(leat_file_roots_set(here("no_such"), NULL), NOT_FOUND, "no_such; No such file");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"schemes", schemes},
               {"file_scheme_is_no_directory", file_scheme_is_no_directory}, {"patterns", patterns},
               {"root_reads", root_reads}, {"root_writes", root_writes},
               {"root_without_openat2", root_without_openat2}, {"root_set_once", root_set_once});
}
