/* advisories_test.c -- what TensorFlow's security advisories publish, given to Leat's ops: each row
 * of advisories.txt ends with a status or a result, in a process of its own, within a time and a
 * memory. A row runs twice, with its inputs as constants, which shape functions and passes see, and
 * as feeds of unknown shape, which only kernels see. Rows of ops that Leat does not have are
 * counted, and run as soon as it has them. LEAT_SHOW=1 prints what every row gave; words on the
 * command line choose rows by their id or op. */
#include "test.h"

#include <leat/leat.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "core/threadpool.h"
#include "graph/op_info.h"
#include "ops/row_run.h"
#include "sanitizers.h"

/* A row may use 1.5 GiB, or wait for 5 s, and a process that takes 60 s hangs. */
enum { RUN_MS = 5000, HANG_SECONDS = 60 };
/* Rows whose id begins with this are of what takes long: they may wait for 1 s. They are late if a
 * run goes on for 4 s more than that, or all takes 20 s more, in which their inputs are made. */
#define LONG_ID "class/time"
enum { LONG_RUN_MS = 1000, LATE_RUN_MS = 4000, LATE_MS = 20000 };
static const int64_t memory_bound = INT64_C(1536) << 20;

static bool is_long(const advisory_row *r)
{
    return strncmp(r->id, LONG_ID, strlen(LONG_ID)) == 0;
}

/* Gives the exit code: 0, or 1 where a result came that ought to be an error. */
static int run_row(const advisory_row *r)
{
    bool good = true, late = false;
    for (int constant = r->n_nodes > 0; constant >= 0; constant--) {
        int64_t ms;
        leat_status s = row_run(r, constant, is_long(r) ? LONG_RUN_MS : RUN_MS, &ms);
        if (is_long(r) && ms > LONG_RUN_MS + LATE_RUN_MS) {
            late = true;
            printf("%s %s: a run took %lld ms\n", r->id, r->ops[r->n_nodes - 1], (long long)ms);
        }
        if (getenv("LEAT_SHOW"))
            printf("%s %s%s: %s %s\n", r->id, r->n_nodes ? r->ops[r->n_nodes - 1] : "GraphDef",
                   constant ? "" : " fed", leat_code_name(leat_status_code(s)),
                   leat_status_message(s));
        if (!s && r->must_fail) {
            printf("%s %s: a result, want an error\n", r->id, r->ops[r->n_nodes - 1]);
            good = false;
        }
        if (s && !leat_status_message(s)[0]) {
            printf("%s: an error without a message\n", r->id);
            good = false;
        }
        leat_status_free(s);
    }
    return !good || late;
}

/* Runs the row in a child. */
static void try_row(const char *text, const advisory_row *head)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        advisory_row r;
        row_limit_memory(2 * memory_bound);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        alarm(HANG_SECONDS);
        row_read(&r, text);
        const int code = run_row(&r);
        row_release(&r);
        exit(code);
    }
    int status = 0;
    struct rusage used = {0};
    const int64_t begin = leat_now_ns();
    const char *op = head->n_nodes ? head->ops[head->n_nodes - 1] : "GraphDef";
    CHECK(wait4(child, &status, 0, &used) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        test_failures++;
        printf("%s %s: %s %d\n", head->id, op,
               !WIFSIGNALED(status)          ? "exit code"
               : WTERMSIG(status) == SIGALRM ? "no end, signal"
                                             : "crashed by signal",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    const int64_t took_ms = (leat_now_ns() - begin) / 1000000;
    if (getenv("LEAT_SHOW"))
        printf("%s %s: %lld ms\n", head->id, op, (long long)took_ms);
    if (is_long(head) && took_ms > 2 * LONG_RUN_MS + LATE_MS) {
        test_failures++;
        printf("%s %s: took %lld ms\n", head->id, op, (long long)took_ms);
    }
    if (used.ru_maxrss * INT64_C(1024) > memory_bound) {
        test_failures++;
        printf("%s %s: %ld MB of memory\n", head->id, op, used.ru_maxrss / 1024);
    }
}

static const char *missing_op(const advisory_row *r)
{
    for (int i = 0; i < r->n_nodes; i++)
        if (!leat_op_find(r->ops[i]))
            return r->ops[i];
    return NULL;
}

static char **words;
static int n_words;

static bool chosen(const char *row)
{
    for (int i = 0; i < n_words; i++)
        if (strstr(row, words[i]))
            return true;
    return n_words == 0;
}

static char *read_table(void)
{
    FILE *f = fopen(LEAT_SOURCE_DIR "/tests/ops/advisories.txt", "r");
    leat_strbuf b = {0};
    char piece[4096];
    CHECK(f != NULL);
    for (size_t n; f && (n = fread(piece, 1, sizeof(piece), f)) > 0;)
        leat_strbuf_add(&b, piece, n);
    if (f)
        fclose(f);
    leat_strbuf_puts(&b, "\n");
    return leat_strbuf_take(&b);
}

static void rows(void)
{
    char *table = read_table();
    int ran = 0, absent = 0;
    leat_strbuf names = {0};
    for (char *row = table, *next; *row; row = next) {
        next = strchr(row, '\n');
        while (next[1] == ' ')
            next = strchr(next + 1, '\n');
        *next++ = 0;
        if (!*row || *row == '#' || !chosen(row))
            continue;
        advisory_row r;
        row_read(&r, row);
        const char *op = missing_op(&r);
        if (r.broken) {
            test_failures++;
            printf("advisories.txt: %s cannot be read from here on: %.40s\n", r.id, r.broken);
        } else if (op) {
            absent++;
            char word[80];
            snprintf(word, sizeof(word), " %s ", op);
            if (!strstr(leat_strbuf_text(&names), word))
                leat_strbuf_printf(&names, "%s%s ", names.n ? "" : " ", op);
        } else {
            ran++;
            try_row(row, &r);
        }
        row_release(&r);
    }
    printf("%d rows ran. %d are not there yet:%s\n", ran, absent, leat_strbuf_text(&names));
    CHECK(n_words || ran > 0);
    leat_strbuf_release(&names);
    free(table);
}

int main(int argc, char **argv)
{
    words = argv + 1;
    n_words = argc - 1;
    return RUN(1, argv, {"rows", rows});
}
