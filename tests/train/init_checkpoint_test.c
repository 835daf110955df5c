/* init_checkpoint_test.c -- variables that begin with values of a checkpoint: maps of names and
 * scopes, slices, resource variables, warm starts; names, shapes and dtypes that do not fit. */
#include <dirent.h>
#include <leat/leat.h>
#include <unistd.h>

#include "test.h"

static char dir[100];

static leat_out ramp(leat_graph *g, int rows, int columns, double first)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(rows, columns), &t));
    for (int i = 0; i < rows * columns; i++)
        ((float *)leat_tensor_mutable(t))[i] = (float)(first + i);
    leat_out x = leat_const(g, t);
    leat_tensor_unref(t);
    return x;
}

/* A checkpoint with old/a (2, 3) from 10 on, old/b (6, 2) from 100 on, top (2, 3) from 1000 on. */
static void save(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    char path[200];
    snprintf(dir, sizeof(dir), "/tmp/leat_init_checkpoint_test_XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    leat_variable(g, "old/a", ramp(g, 2, 3, 10));
    leat_variable(g, "old/b", ramp(g, 6, 2, 100));
    leat_variable(g, "top", ramp(g, 2, 3, 1000));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    leat_saver *saver = leat_saver_new(g);
    snprintf(path, sizeof(path), "%s/model.ckpt", dir);
    CHECK_OK(leat_saver_save(saver, s, path, 3, NULL));
    leat_saver_free(saver);
    leat_session_close(s);
    leat_graph_free(g);
}

static void clean(void)
{
    char path[600];
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

/* Initialises all variables of g; gives the first element of x. */
static double first_of(leat_graph *g, leat_out x)
{
    leat_session *s = NULL;
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    double v = leat_tensor_at(t, 0);
    leat_tensor_unref(t);
    leat_session_close(s);
    return v;
}

static void lists(void)
{
    save();
    leat_checkpoint *c = NULL;
    leat_tensor *t = NULL;
    CHECK_OK(leat_checkpoint_open(dir, &c)); /* the newest one of the directory */
    CHECK(strstr(leat_checkpoint_path(c), "/model.ckpt-3"));
    CHECK_INT(leat_checkpoint_count(c), 3);
    CHECK_STR(leat_checkpoint_at(c, 1)->name, "old/b");
    CHECK_OK(leat_checkpoint_read(c, "old/b", &t));
    CHECK(leat_tensor_at(t, 11) == 111);
    leat_tensor_unref(t);
    leat_checkpoint_free(c);
    clean();
}

static void maps(void)
{
    save();
    leat_graph *g = leat_graph_new();
    leat_out a = leat_variable(g, "new/a", ramp(g, 2, 3, 0));
    leat_out b = leat_variable(g, "new/b", ramp(g, 6, 2, 0), .use_resource = true);
    leat_out own = leat_variable(g, "own", ramp(g, 2, 3, 7));
    leat_out other = leat_variable(g, "other", ramp(g, 2, 3, 0));
    CHECK_OK(leat_init_from_checkpoint(g, dir, LEAT_MAP({"old/", "new/"}, {"top", "other"})));
    CHECK(first_of(g, a) == 10);
    CHECK(first_of(g, b) == 100);
    CHECK(first_of(g, own) == 7);
    CHECK(first_of(g, other) == 1000);
    /* The last call decides. */
    CHECK_OK(leat_init_from_checkpoint(g, dir, LEAT_MAP({"old/a", "other"})));
    CHECK(first_of(g, other) == 10);
    CHECK_OK(leat_init_from_checkpoint(g, dir, LEAT_MAP({"top", "other"})));
    CHECK(first_of(g, other) == 1000);
    leat_graph_free(g);
    clean();
}

/* By their own names, and from all names to a scope. */
static void roots(void)
{
    save();
    leat_graph *g = leat_graph_new();
    leat_out top = leat_variable(g, "top", ramp(g, 2, 3, 0));
    CHECK_OK(leat_init_from_checkpoint(g, dir, NULL, 0));
    CHECK(first_of(g, top) == 1000);
    leat_graph_free(g);
    g = leat_graph_new();
    top = leat_variable(g, "x/top", ramp(g, 2, 3, 0));
    CHECK_OK(leat_init_from_checkpoint(g, dir, LEAT_MAP({"/", "x/"})));
    CHECK(first_of(g, top) == 1000);
    leat_graph_free(g);
    clean();
}

static void slices(void)
{
    save();
    leat_graph *g = leat_graph_new();
    leat_out whole =
        leat_get_variable(g, "b", leat_shape(6, 2), .partitioner = leat_fixed_size_partitioner(3));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_init_from_checkpoint(g, dir, LEAT_MAP({"old/b", "b"})));
    int n = 0;
    leat_out *parts = leat_variable_parts(whole, &n);
    CHECK_INT(n, 3);
    for (int i = 0; i < n; i++)
        CHECK(first_of(g, leat_variable_value(parts[i])) == 100 + 4 * i);
    free(parts);
    leat_graph_free(g);
    clean();
}

static void warm_start(void)
{
    save();
    leat_graph *g = leat_graph_new();
    leat_out a = leat_variable(g, "old/a", ramp(g, 2, 3, 0));
    leat_out head = leat_variable(g, "head", ramp(g, 2, 3, 5));
    leat_out b = leat_variable(g, "old/b", ramp(g, 6, 2, 6), .not_trainable = true);
    CHECK_OK(leat_warm_start(g, dir, .vars = "old/|hea.x"));
    CHECK(first_of(g, a) == 10);
    CHECK(first_of(g, head) == 5);
    CHECK(first_of(g, b) == 6);
    CHECK_OK(leat_warm_start(g, dir, .renames = LEAT_ARRAY(leat_checkpoint_map, {"top", "head"}),
                             .n_renames = 1));
    CHECK(first_of(g, head) == 1000);
    CHECK_ERROR(leat_warm_start(g, dir, .vars = "("), INVALID_ARGUMENT, "no regular expression");
    CHECK_ERROR(leat_warm_start(g, dir, .vars = "zzz"), NOT_FOUND,
                "No trainable variable matches \"zzz\"");
    leat_graph_free(g);
    clean();
}

static void misfits(void)
{
    save();
    leat_graph *g = leat_graph_new();
    leat_variable(g, "x/a", ramp(g, 3, 2, 0));
    leat_variable(g, "x/n", leat_zeros(g, LEAT_INT32, leat_shape(2, 3)));
    CHECK_ERROR(leat_init_from_checkpoint(g, dir, LEAT_MAP({"old/a", "x/a"})), INVALID_ARGUMENT,
                "Shape of variable x/a ([3,2]) doesn't match with shape of tensor old/a ([2,3])");
    CHECK_ERROR(leat_init_from_checkpoint(g, dir, LEAT_MAP({"top", "x/n"})), INVALID_ARGUMENT,
                "Variable x/n is int32, but tensor top in checkpoint ");
    CHECK_ERROR(leat_init_from_checkpoint(g, dir, LEAT_MAP({"none", "x/a"})), NOT_FOUND,
                "Tensor none, for the variable x/a, is not found in checkpoint ");
    CHECK_ERROR(leat_init_from_checkpoint(g, dir, LEAT_MAP({"old/a", "x/b"})), NOT_FOUND,
                "The graph has no variable x/b; did you mean x/a?");
    CHECK_ERROR(leat_init_from_checkpoint(g, dir, LEAT_MAP({"old/", "y/"})), NOT_FOUND,
                "The graph has no variable in the scope y/");
    CHECK_ERROR(leat_init_from_checkpoint(g, dir, LEAT_MAP({"old/", "x"})), INVALID_ARGUMENT,
                "A scope is mapped to a scope, a variable to a variable: not old/ to x");
    CHECK_ERROR(leat_init_from_checkpoint(g, "/nowhere/model", LEAT_MAP({"a", "b"})), NOT_FOUND,
                "/nowhere/model");
    CHECK_OK(leat_graph_status(g));
    leat_graph_free(g);
    clean();
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"lists", lists}, {"maps", maps}, {"roots", roots}, {"slices", slices},
               {"warm_start", warm_start}, {"misfits", misfits});
}
