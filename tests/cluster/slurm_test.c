/* Slurm: lists of hosts and counts, and the cluster that a step's variables make. */
#include "cluster/cluster_spec.h"
#include "test.h"

static void check_hosts(const char *text, const char *want)
{
    char **v = NULL, joined[1024] = "";
    int n = 0;
    CHECK_OK(leat_slurm_hosts(text, &v, &n));
    for (int i = 0; i < n; i++) {
        snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s", i ? " " : "",
                 v[i]);
        free(v[i]);
    }
    free(v);
    CHECK_STR(joined, want);
}

static void hosts(void)
{
    check_hosts("m2", "m2");
    check_hosts("a,b-1,c.example.org", "a b-1 c.example.org");
    check_hosts("n[1-3]", "n1 n2 n3");
    check_hosts("n[1-3,07-09]-x,m2", "n1-x n2-x n3-x n07-x n08-x n09-x m2");
    check_hosts("n[008-010],n[99-101]", "n008 n009 n010 n99 n100 n101");
    check_hosts("r[1-2]c[1,3]", "r1c1 r1c3 r2c1 r2c3");
    check_hosts("t[0-1]", "t0 t1");
    static const char *const bad[] = {
        "",        "a,",      ",a",    "n[1-3",           "n]", "n[]", "n[3-1]", "n[x]", "n[1-]",
        "n[1,,2]", "n[1-2]]", "n[1-2", "n[1-99999999999]"};
    char **v;
    int n;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK_ERROR(leat_slurm_hosts(bad[i], &v, &n), INVALID_ARGUMENT, "is no list of hosts");
    CHECK_ERROR(leat_slurm_hosts("n[1-999999999]", &v, &n), INVALID_ARGUMENT, "more than 65536");
    char deep[3000] = "";
    for (int i = 0; i < 900; i++)
        strcat(deep, "[1]");
    CHECK_ERROR(leat_slurm_hosts(deep, &v, &n), INVALID_ARGUMENT, "is no list of hosts");
}

static void counts(void)
{
    int *v = NULL, n = 0;
    CHECK_OK(leat_slurm_counts("2(x3),1", &v, &n));
    CHECK_INT(n, 4);
    CHECK(n == 4 && v[0] == 2 && v[2] == 2 && v[3] == 1);
    free(v);
    static const char *const bad[] = {"",     "x",     "2(x3",         "2(x),1",
                                      "2,,1", "2(x0)", "1(x99999999)", "1,"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK_ERROR(leat_slurm_counts(bad[i], &v, &n), INVALID_ARGUMENT, "tasks per node");
}

static void set(const char *rank, const char *tasks, const char *nodes, const char *per)
{
    setenv("SLURM_PROCID", rank, 1);
    setenv("SLURM_STEP_NUM_TASKS", tasks, 1);
    setenv("SLURM_STEP_NODELIST", nodes, 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", per, 1);
}

static void clusters(void)
{
    leat_cluster *c = NULL;
    char job[64];
    int task;
    set("2", "5", "n[1-3]", "2(x2),1");
    CHECK_OK(leat_cluster_from_slurm("worker=4,ps=1", 0, &c, job, &task));
    CHECK_STR(leat_cluster_job(c, 0), "ps"); /* by name: ps has the first task */
    CHECK_STR(leat_cluster_address(c, "ps", 0), "n1:8888");
    CHECK_STR(leat_cluster_address(c, "worker", 0), "n1:8889");
    CHECK_STR(leat_cluster_address(c, "worker", 1), "n2:8888");
    CHECK_STR(leat_cluster_address(c, "worker", 3), "n3:8888");
    CHECK_STR(job, "worker");
    CHECK_INT(task, 1);
    leat_cluster_free(c);
    CHECK_OK(leat_cluster_from_slurm(NULL, 5000, &c, job, &task));
    CHECK_INT(leat_cluster_tasks(c, "worker"), 5);
    CHECK_STR(leat_cluster_address(c, "worker", 1), "n1:5001");
    CHECK_INT(task, 2);
    leat_cluster_free(c);
    setenv("SLURM_DISTRIBUTION", "cyclic", 1);
    CHECK_OK(leat_cluster_from_slurm(NULL, 0, &c, job, &task));
    CHECK_STR(leat_cluster_address(c, "worker", 1), "n2:8888");
    CHECK_STR(leat_cluster_address(c, "worker", 3), "n1:8889");
    leat_cluster_free(c);
    unsetenv("SLURM_DISTRIBUTION");
    setenv("LEAT_JOBS", "ps=2,worker=3", 1);
    setenv("LEAT_PORT_BASE", "6000", 1);
    CHECK_OK(leat_cluster_from_env(&c, job, &task));
    CHECK_STR(leat_cluster_address(c, "ps", 1), "n1:6001");
    CHECK_STR(job, "worker");
    CHECK_INT(task, 0);
    leat_cluster_free(c);
}

static void bad(void)
{
    leat_cluster *c;
    char job[64];
    int task;
    set("0", "3", "n[1-2]", "2,1");
    CHECK_ERROR(leat_cluster_from_slurm("ps=1,worker=3", 0, &c, job, &task), INVALID_ARGUMENT,
                "have 4 tasks, the Slurm step has 3");
    CHECK_ERROR(leat_cluster_from_slurm("ps", 0, &c, job, &task), INVALID_ARGUMENT,
                "look at \"ps\"");
    CHECK_ERROR(leat_cluster_from_slurm("ps=1,worker=2x", 0, &c, job, &task), INVALID_ARGUMENT,
                "\"worker=2x\"");
    set("0", "3", "n[1-3]", "2,1");
    CHECK_ERROR(leat_cluster_from_slurm(NULL, 0, &c, job, &task), INVALID_ARGUMENT, "3 hosts");
    set("0", "4", "n[1-2]", "2,1");
    CHECK_ERROR(leat_cluster_from_slurm(NULL, 0, &c, job, &task), INVALID_ARGUMENT,
                "SLURM_STEP_NUM_TASKS is 4");
    set("3", "3", "n[1-2]", "2,1");
    CHECK_ERROR(leat_cluster_from_slurm(NULL, 0, &c, job, &task), INVALID_ARGUMENT,
                "SLURM_PROCID is 3");
    set("x", "3", "n[1-2]", "2,1");
    CHECK_ERROR(leat_cluster_from_slurm(NULL, 0, &c, job, &task), INVALID_ARGUMENT, "\"x\"");
    set("0", "3", "n[1-2", "2,1");
    CHECK_ERROR(leat_cluster_from_slurm(NULL, 0, &c, job, &task), INVALID_ARGUMENT,
                "SLURM_STEP_NODELIST: \"n[1-2\"");
    unsetenv("SLURM_STEP_NODELIST");
    CHECK_ERROR(leat_cluster_from_slurm(NULL, 0, &c, job, &task), NOT_FOUND, "srun");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"hosts", hosts}, {"counts", counts}, {"clusters", clusters},
               {"bad", bad});
}
