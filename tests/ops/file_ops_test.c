/* file_ops_test.c -- ReadFile, WriteFile, MatchingFiles: values, errors, and roots. */
#include "io/files.h"
#include "ops/queue_fixture.h"

#include <leat/io.h>

static leat_out text(const fixture *f, const char *s)
{
    return leat_string_const(f->g, s);
}

static void read_and_write(void)
{
    fixture f = begin();
    open_session(&f);
    unlink(here("deep/er/w.txt"));
    const char *path = here("deep/er/w.txt"); /* missing directories are made */
    CHECK_OK(run(f.s, LEAT_OP2("WriteFile", text(&f, path), text(&f, "some text"))));
    check_values(f.s, LEAT_OP1("ReadFile", text(&f, path)), "some text");
    CHECK_OK(run(f.s, LEAT_OP2("WriteFile", text(&f, path), text(&f, ""))));
    check_values(f.s, LEAT_OP1("ReadFile", text(&f, path)), "");
    CHECK_ERROR(run(f.s, LEAT_OP1("ReadFile", text(&f, "/no/file"))), NOT_FOUND,
                "/no/file; No such file or directory");
    CHECK_ERROR(run(f.s, LEAT_OP2("WriteFile", text(&f, "/proc/no/file"), text(&f, "a"))),
                NOT_FOUND, "/proc/no");
    leat_out two = leat_placeholder(f.g, LEAT_STRING, leat_shape_unknown());
    leat_tensor *t, *y = NULL;
    CHECK_OK(leat_tensor_new(LEAT_STRING, leat_shape(2), &t));
    CHECK_ERROR(leat_session_run(f.s, LEAT_FEED({two, t}),
                                 LEAT_FETCH({LEAT_OP1("ReadFile", two), &y}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "Input filename tensor must be scalar, but had shape: [2]");
    CHECK_ERROR(leat_session_run(f.s, LEAT_FEED({two, t}), LEAT_NO_FETCH,
                                 LEAT_TARGET(LEAT_OP2("WriteFile", text(&f, path), two))),
                INVALID_ARGUMENT, "Contents tensor must be scalar, but had shape: [2]");
    leat_tensor_unref(t);
    t = leat_scalar_string("a\0b", 3);
    CHECK_ERROR(leat_session_run(f.s, LEAT_FEED({two, t}),
                                 LEAT_FETCH({LEAT_OP1("ReadFile", two), &y}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "The file name \"a...\" has a NUL in it");
    leat_tensor_unref(t);
    end(&f);
}

/* The paths that a pattern matches, below the test's directory, as text. */
static void check_matches(fixture *f, leat_out pattern, const char *want)
{
    leat_tensor *t = NULL;
    char got[512] = "";
    CHECK_OK(leat_session_run(
        f->s, LEAT_NO_FEED, LEAT_FETCH({LEAT_OP1("MatchingFiles", pattern), &t}), LEAT_NO_TARGET));
    size_t below = strlen(here("match/"));
    const leat_string *s = t ? leat_tensor_data(t) : NULL;
    for (int64_t i = 0; t && i < leat_tensor_count(t); i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", i ? " " : "",
                 s[i].data + below);
    CHECK_STR(got, want);
    leat_tensor_unref(t);
}

static void matches(void)
{
    static const char *const names[] = {"ABcDEF.GH", "ABzDEF.GH",    "ABasdfjklDEF.GH",
                                        "AB3DEF.GH", "AB4DEF.GH",    "ABDEF.GH",
                                        "XYZ",       "sub/ABxDEF.GH"};
    static const struct {
        const char *pattern, *want;
    } rows[] = {{"match/AB?DEF.GH*", "AB3DEF.GH AB4DEF.GH ABcDEF.GH ABzDEF.GH"},
                {"match/ABcDEF.GH", "ABcDEF.GH"},
                {"match/AB[cz]DEF.GH", "ABcDEF.GH ABzDEF.GH"},
                {"match/*/AB*", "sub/ABxDEF.GH"},
                {"match/nothing*", ""},
                {"match/no/*", ""}};
    fixture f = begin();
    open_session(&f);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char path[64];
        snprintf(path, sizeof(path), "match/%s", names[i]);
        CHECK_OK(leat_file_write(here(path), "x", 1));
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        check_matches(&f, text(&f, here(rows[i].pattern)), rows[i].want);
    leat_out two[] = {text(&f, here("match/X*")), text(&f, here("match/AB[3]*"))};
    check_matches(&f, leat_pack(two, 2, 0), "AB3DEF.GH XYZ"); /* sorted as a whole */
    CHECK_ERROR(run(f.s, LEAT_OP1("MatchingFiles", text(&f, "gs://bucket/*"))), UNIMPLEMENTED,
                "File system scheme 'gs' not implemented");
    end(&f);
}

/* Limits the process, so this is the last case. */
static void roots(void)
{
    char inside[512], outside[512], read_only[512];
    snprintf(inside, sizeof(inside), "%s", here("roots/in/a.txt"));
    snprintf(outside, sizeof(outside), "%s", here("roots/out/a.txt"));
    snprintf(read_only, sizeof(read_only), "%s", here("roots/read/a.txt"));
    CHECK_OK(leat_file_write(inside, "in", 2));
    CHECK_OK(leat_file_write(outside, "out", 3));
    CHECK_OK(leat_file_write(read_only, "read", 4));
    CHECK_OK(leat_file_roots_set(here("roots/in"), here("roots/read")));
    fixture f = begin();
    leat_out q = leat_fifo_queue(f.g, 2, LEAT_COMPONENTS({LEAT_STRING, leat_shape()}));
    leat_out reader = LEAT_OP0(f.g, "WholeFileReaderV2");
    leat_out read = LEAT_OP2("ReaderReadV2", reader, q);
    open_session(&f);
    check_values(f.s, LEAT_OP1("ReadFile", text(&f, inside)), "in");
    check_values(f.s, LEAT_OP1("ReadFile", text(&f, read_only)), "read");
    CHECK_ERROR(run(f.s, LEAT_OP1("ReadFile", text(&f, outside))), PERMISSION_DENIED, outside);
    CHECK_ERROR(run(f.s, LEAT_OP2("WriteFile", text(&f, read_only), text(&f, "x"))),
                PERMISSION_DENIED, read_only);
    CHECK_ERROR(run(f.s, LEAT_OP2("WriteFile", text(&f, outside), text(&f, "x"))),
                PERMISSION_DENIED, "roots/out");
    CHECK_ERROR(run(f.s, LEAT_OP1("MatchingFiles", text(&f, here("roots/out/*")))),
                PERMISSION_DENIED, "roots/out");
    CHECK_OK(run(f.s, LEAT_OP1("MatchingFiles", text(&f, here("roots/in/*")))));
    CHECK_OK(run(f.s, leat_enqueue(q, text(&f, outside))));
    CHECK_ERROR(run(f.s, read), PERMISSION_DENIED, outside);
    end(&f);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"read_and_write", read_and_write}, {"matches", matches},
               {"roots", roots});
}
