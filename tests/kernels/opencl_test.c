/* opencl_test.c -- GPUs by OpenCL, on the devices that PoCL makes of the CPU. */
#include <leat/leat.h>
#include <stdlib.h>

#include "opencl_devices.h"
#include "test.h"

static void product(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, 0, 0, 3};
    leat_tensor *ta, *tb, *out = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(2, 3), a, &ta));
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(3, 2), b, &tb));
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2, 3));
    leat_out y = leat_placeholder(g, LEAT_FLOAT, leat_shape(3, 2));
    leat_out z = leat_add(leat_matmul(x, y), leat_scalar(g, LEAT_FLOAT, 10));
    CHECK_OK(leat_session_open(g, &s, .devices = "gpu:2"));
    CHECK_OK(
        leat_session_run(s, LEAT_FEED({x, ta}, {y, tb}), LEAT_FETCH({z, &out}), LEAT_NO_TARGET));
    const float want[] = {15, 19, 24, 28};
    for (int i = 0; i < 4 && out; i++)
        CHECK_NEAR(((const float *)leat_tensor_data(out))[i], want[i], 1e-5);
    leat_tensor_unref(ta);
    leat_tensor_unref(tb);
    leat_tensor_unref(out);
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    setenv("POCL_DEVICES", "basic basic", 0);
    if (!test_has_gpus(2)) {
        printf("skipped: there are no two OpenCL devices; pocl-opencl-icd makes them\n");
        return 0;
    }
    return RUN(argc, argv, {"product", product});
}
