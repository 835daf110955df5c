/* Clusters by the API, from text, and as TensorFlow's ClusterDef. */
#include "cluster/cluster_spec.h"
#include "proto/wire.h"
#include "test.h"

static void api(void)
{
    leat_cluster *c = leat_cluster_new();
    CHECK_OK(leat_cluster_add(c, "ps", " 10.0.0.1:2222 ,\t10.0.0.2:2222"));
    CHECK_OK(leat_cluster_add(c, "worker", "[::1]:2222"));
    CHECK_OK(leat_cluster_add(c, "ps", "h:0"));
    CHECK_INT(leat_cluster_jobs(c), 2);
    CHECK_STR(leat_cluster_job(c, 1), "worker");
    CHECK(leat_cluster_job(c, 2) == NULL);
    CHECK_INT(leat_cluster_tasks(c, "ps"), 3);
    CHECK_INT(leat_cluster_tasks(c, "master"), 0);
    CHECK_STR(leat_cluster_address(c, "ps", 1), "10.0.0.2:2222");
    CHECK_STR(leat_cluster_address(c, "worker", 0), "[::1]:2222");
    CHECK(!leat_cluster_address(c, "worker", 1) && !leat_cluster_address(c, "worker", -1));
    leat_cluster *copy = leat_cluster_copy(c);
    CHECK_OK(leat_cluster_set(c, "ps", 1, "other:1"));
    CHECK_STR(leat_cluster_address(c, "ps", 1), "other:1");
    CHECK_STR(leat_cluster_address(copy, "ps", 1), "10.0.0.2:2222");
    CHECK_OK(leat_cluster_add(copy, "ps", "x:1"));
    CHECK_INT(leat_cluster_tasks(copy, "ps"), 4);
    leat_cluster_free(copy);
    leat_cluster_free(c);
    leat_cluster_free(NULL);
}

static void sparse(void)
{
    leat_cluster *c = leat_cluster_new();
    CHECK_OK(leat_cluster_set(c, "worker", 7, "seven:1"));
    CHECK_OK(leat_cluster_set(c, "worker", 2, "two:1"));
    CHECK_OK(leat_cluster_set(c, "worker", 2147483646, "last:1"));
    CHECK_STR(leat_cluster_address(c, "worker", 2), "two:1");
    CHECK_STR(leat_cluster_address(c, "worker", 7), "seven:1");
    CHECK(!leat_cluster_address(c, "worker", 3));
    CHECK_INT(leat_cluster_tasks(c, "worker"), 2147483647);
    leat_cluster_free(c);
}

static void bad(void)
{
    static const char *const addresses[] = {"host",
                                            "host:",
                                            "host:x",
                                            ":2222",
                                            "host:65536",
                                            "a:b:2222",
                                            "::1:22",
                                            "host:-1",
                                            "ho st:1",
                                            "",
                                            "a:1,,b:1",
                                            "http://h:1",
                                            "host:99999999999999999999"};
    leat_cluster *c = leat_cluster_new();
    for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++)
        CHECK_ERROR(leat_cluster_add(c, "ps", addresses[i]), INVALID_ARGUMENT, "host-port pair");
    CHECK_ERROR(leat_cluster_add(c, "ps", "host"), INVALID_ARGUMENT, "\"host\"");
    CHECK_ERROR(leat_cluster_add(c, "p-s", "h:1"), INVALID_ARGUMENT, "\"p-s\" is no job name");
    CHECK_ERROR(leat_cluster_add(c, "", "h:1"), INVALID_ARGUMENT, "\"\" is no job name");
    CHECK_ERROR(leat_cluster_add(c, "1a", "h:1"), INVALID_ARGUMENT, "is no job name");
    CHECK_ERROR(leat_cluster_set(c, "ps", -1, "h:1"), INVALID_ARGUMENT, "-1");
    char longest[66];
    memset(longest, 'a', 65);
    longest[65] = 0;
    CHECK_ERROR(leat_cluster_add(c, longest, "h:1"), INVALID_ARGUMENT, "is no job name");
    CHECK_OK(leat_cluster_add(c, longest + 2, "h:1"));
    leat_cluster_free(c);
}

static void text(void)
{
    static const char *const good[] = {
        "ps=a:1;worker=b:2,c:3",
        " ps = a:1 ; worker = b:2 , c:3 ;",
        "ps|a:1,worker|b:2;c:3",
        "worker|b:2; c:3, ps|a:1",
    };
    leat_cluster *c;
    for (int i = 0; i < 4; i++) {
        c = NULL;
        CHECK_OK(leat_cluster_parse(good[i], &c));
        CHECK_INT(leat_cluster_jobs(c), 2);
        CHECK_STR(leat_cluster_address(c, "ps", 0), "a:1");
        CHECK_STR(leat_cluster_address(c, "worker", 1), "c:3");
        leat_cluster_free(c);
    }
    CHECK_ERROR(leat_cluster_parse("", &c), INVALID_ARGUMENT, "names no job");
    CHECK_ERROR(leat_cluster_parse("ps", &c), INVALID_ARGUMENT, "\"ps\" is no job with its tasks");
    CHECK_ERROR(leat_cluster_parse("ps=", &c), INVALID_ARGUMENT, "empty address for task 0");
    CHECK_ERROR(leat_cluster_parse("ps=a:1;ps=b:1", &c), INVALID_ARGUMENT, "is there twice");
    CHECK_ERROR(leat_cluster_parse("ps=a:1,worker=b:1", &c), INVALID_ARGUMENT, "\"worker=b:1\"");
}

static void definition(void)
{
    leat_cluster *c = NULL, *again = NULL;
    CHECK_OK(leat_cluster_parse("worker=w0:1,w1:1;ps=p:1", &c));
    CHECK_OK(leat_cluster_set(c, "worker", 5, "w5:1"));
    Leat__ClusterDef *def = leat_cluster_to_def(c), *read = NULL;
    CHECK_STR(def->job[0]->name, "ps"); /* by name, as TensorFlow writes them */
    leat_strbuf bytes = {0};
    CHECK_OK(leat_proto_pack(def, &bytes));
    CHECK_OK(LEAT_UNPACK(cluster_def, bytes.s, bytes.n, &read));
    CHECK_OK(leat_cluster_from_def(read, &again));
    CHECK_INT(leat_cluster_jobs(again), 2);
    CHECK_STR(leat_cluster_address(again, "worker", 5), "w5:1");
    CHECK_STR(leat_cluster_address(again, "worker", 1), "w1:1");
    CHECK(!leat_cluster_address(again, "worker", 4));
    free(read->job[0]->tasks[0]->value);
    read->job[0]->tasks[0]->value = strdup("nowhere");
    leat_cluster *none;
    CHECK_ERROR(leat_cluster_from_def(read, &none), INVALID_ARGUMENT, "\"nowhere\"");
    leat_proto_free(read);
    leat__cluster_def__free_unpacked(def, NULL);
    leat_strbuf_release(&bytes);
    leat_cluster_free(again);
    leat_cluster_free(c);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"api", api}, {"sparse", sparse}, {"bad", bad}, {"text", text},
               {"definition", definition});
}
