/* tf_config_test.c -- TF_CONFIG: correct and wrong JSON, complete and sparse clusters. */
#include "cluster/cluster_spec.h"
#include "core/json.h"
#include "test.h"

static leat_cluster *c;
static char job[64];
static int task;

static void read_ok(const char *text)
{
    c = NULL;
    CHECK_OK(leat_cluster_from_tf_config(text, &c, job, &task));
    if (!c)
        c = leat_cluster_new();
}

static void dense(void)
{
    read_ok("{\"cluster\": {\"chief\": [\"c:1\"], \"worker\": [\"w0:1\", \"w1:1\"],\n"
            "  \"ps\": [\"p:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 1},\n"
            "  \"environment\": \"cloud\", \"x\": [1.5e-3, true, null, {}]}");
    CHECK_INT(leat_cluster_jobs(c), 3);
    CHECK_STR(leat_cluster_address(c, "worker", 1), "w1:1");
    CHECK_STR(job, "worker");
    CHECK_INT(task, 1);
    leat_cluster_free(c);
    read_ok("{\"cluster\":{\"master\":[\"m:1\"],\"w\\u006frker\":{\"2\":\"w2:1\"}},"
            "\"task\":{\"type\":\"master\",\"index\":\"0\"}}");
    CHECK_STR(leat_cluster_address(c, "worker", 2), "w2:1");
    CHECK_STR(job, "master");
    CHECK_INT(task, 0);
    leat_cluster_free(c);
    read_ok("{}");
    CHECK_INT(leat_cluster_jobs(c), 0);
    CHECK_STR(job, "");
    CHECK_INT(task, -1);
    leat_cluster_free(c);
}

/* An evaluator may be the task, but is never one of the cluster's tasks. */
static void evaluator(void)
{
    read_ok("{\"cluster\": {\"worker\": [\"w:1\"], \"evaluator\": [\"e:1\"]},"
            "\"task\": {\"type\": \"evaluator\", \"index\": 0}}");
    CHECK_INT(leat_cluster_jobs(c), 1);
    CHECK_STR(job, "evaluator");
    leat_cluster_free(c);
}

static void sparse(void)
{
    read_ok("{\"sparseCluster\": {\"worker\": {\"3\": \"w3:1\"}, \"ps\": [\"p0:1\", \"p1:1\"]},"
            "\"task\": {\"type\": \"worker\", \"index\": 3}}");
    CHECK_STR(leat_cluster_address(c, "worker", 3), "w3:1");
    CHECK_STR(leat_cluster_address(c, "ps", 1), "p1:1");
    leat_cluster_free(c);
    /* The sparse cluster of a ps task of index 1 has that task alone. */
    read_ok("{\"sparseCluster\": {\"worker\": {}, \"ps\": [\"p1:1\"]},"
            "\"task\": {\"type\": \"ps\", \"index\": 1}}");
    CHECK_STR(leat_cluster_address(c, "ps", 1), "p1:1");
    CHECK(!leat_cluster_address(c, "ps", 0));
    leat_cluster_free(c);
}

static void bad_config(void)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"[]", "wants an object, got a list"},
        {"{\"cluster\": 3}",
         "line 1, column 13: \"cluster\" wants an object of jobs, got a number"},
        {"{\"cluster\": {\"ps\": \"h:1\"}}", "must be a list or a dictionary"},
        {"{\"cluster\": {\"ps\": [7]}}", "task 0 of job \"ps\" wants an address, got a number"},
        {"{\"cluster\":\n {\"ps\": [\"nope\"]}}", "line 2, column 10: Job \"ps\": Could not "
                                                  "interpret \"nope\""},
        {"{\"cluster\": {\"ps\": {\"x\": \"h:1\"}}}", "\"x\" is no task index"},
        {"{\"cluster\": {\"p s\": [\"h:1\"]}}", "\"p s\" is no job name"},
        {"{\"cluster\": {\"ps\": [\"h:1\"]}, \"task\": []}", "\"task\" wants an object"},
        {"{\"cluster\": {\"ps\": [\"h:1\"]}, \"task\": {\"type\": 3, \"index\": 0}}",
         "wants the name of a job"},
        {"{\"cluster\": {\"ps\": [\"h:1\"]}, \"task\": {\"type\": \"ps\", \"index\": -1}}", "-1"},
        {"{\"cluster\": {\"ps\": [\"h:1\"]}, \"task\": {\"type\": \"ps\"}}", "got nothing"},
        {"{\"cluster\": {\"ps\": [\"h:1\"]}, \"task\": {\"type\": \"ps\", \"index\": 1}}",
         "job \"ps\" has no such task (1 in all)"},
        {"{\"cluster\": {\"ps\": [\"h:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}}",
         "\"worker\", which is no job"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        CHECK_ERROR(leat_cluster_from_tf_config(rows[i].text, &c, job, &task), INVALID_ARGUMENT,
                    rows[i].words);
        CHECK_ERROR(leat_cluster_from_tf_config(rows[i].text, &c, job, &task), INVALID_ARGUMENT,
                    "TF_CONFIG: ");
    }
}

static void bad_json(void)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "line 1, column 1: wants a value, but the text ends"},
        {"{\"a\": 1", "wants a comma or }, but the text ends"},
        {"{\"a\": 1,}", "line 1, column 9: wants a key in quotes, at \"}\""},
        {"[1,]", "wants a value, at \"]\""},
        {"{'a': 1}", "wants a key in quotes"},
        {"{\"a\" 1}", "wants a colon"},
        {"{\"a\": 1, \"a\": 2}", "line 1, column 10: the same key a second time"},
        {"{} {}", "more than one value"},
        {"[01]", "no number"},
        {"[1.]", "no number"},
        {"[-]", "no number"},
        {"[1e]", "no number"},
        {"[NaN]", "wants a value"},
        {"[\"a", "a string without an end"},
        {"[\"a\nb\"]", "control character"},
        {"[\"\\x\"]", "no such escape"},
        {"[\"\\u12\"]", "no such escape"},
        {"[\"\\ud800\"]", "half of a character"},
        {"[\"\\udc00\"]", "half of a character"},
        {"[\"\\u0000\"]", "NUL"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "nested too deep"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        CHECK_ERROR(leat_cluster_from_tf_config(rows[i].text, &c, job, &task), INVALID_ARGUMENT,
                    rows[i].words);
    size_t n = LEAT_JSON_MAX_SIZE + 2;
    char *big = malloc(n);
    memset(big, ' ', n);
    big[n - 1] = 0;
    CHECK_ERROR(leat_cluster_from_tf_config(big, &c, job, &task), INVALID_ARGUMENT, "more than");
    free(big);
}

static void json(void)
{
    leat_arena a;
    leat_arena_init(&a);
    const leat_json *v = NULL;
    CHECK_OK(leat_json_read(&a, " {\"s\": \"\\u00e9\\ud83d\\ude00\\n/\\/\", \"n\": -1.5E+2} ", &v));
    CHECK_STR(leat_json_get(v, "s")->text, "\xc3\xa9\xf0\x9f\x98\x80\n//");
    CHECK_STR(leat_json_get(v, "n")->text, "-1.5E+2");
    CHECK_INT(v->n, 2);
    CHECK(!leat_json_get(v, "x") && !leat_json_get(NULL, "x"));
    leat_arena_release(&a);
}

static void environment(void)
{
    setenv("TF_CONFIG",
           "{\"cluster\": {\"ps\": [\"h:1\"]}, \"task\": {\"type\": \"ps\", \"index\": 0}}", 1);
    c = NULL;
    CHECK_OK(leat_cluster_from_env(&c, job, &task));
    CHECK_STR(job, "ps");
    leat_cluster_free(c);
    unsetenv("TF_CONFIG");
    unsetenv("SLURM_PROCID");
    CHECK_ERROR(leat_cluster_from_env(&c, job, &task), NOT_FOUND, "TF_CONFIG");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"dense", dense}, {"evaluator", evaluator}, {"sparse", sparse},
               {"bad_config", bad_config}, {"bad_json", bad_json}, {"json", json},
               {"environment", environment});
}
