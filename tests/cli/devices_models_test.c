/* devices_models_test.c -- the programs of models/ that show several devices, and `leat devices`.
 */
#include "command.h"
#include "opencl_devices.h"

#include <leat/leat.h>

static char dir[64];

/* Runs a command line of the shell, in which $M is the directory of the models. */
static void runs(int code, const char *words, const char *line)
{
    command c =
        command_start("M=%s/models; cd %s && export LEAT_DATA_CACHE=%s LEAT_DATA_URL=none; %s",
                      LEAT_BINARY_DIR, dir, dir, line);
    command_read(c, NULL);
    int got = command_end(c);
    if (got != code || !strstr(output, words)) {
        test_failures++;
        printf("%s gives %d, want %d with \"%s\"; it printed:\n%s", line, got, code, words, output);
    }
}

#define CPU "/job:localhost/replica:0/task:0/device:CPU:"

static void products(void)
{
    runs(0, "[[44 56]\n [98 128]]\n",
         "$M/devices_matmul --devices cpu:4,gpu:0 --first /cpu:2 --second /cpu:3");
    CHECK(strstr(output, "Device mapping: no known devices.\n"));
    CHECK(strstr(output, "MatMul: (MatMul): " CPU "2\n"));
    CHECK(strstr(output, "MatMul_1: (MatMul): " CPU "3\n"));
    CHECK(strstr(output, "AddN: (AddN): " CPU "0\n"));
    CHECK(strstr(output, "a: (Const): " CPU "2\n") && strstr(output, "b_1: (Const): " CPU "3\n"));
    runs(0, "[98 128]]",
         "$M/devices_matmul --devices cpu:1,gpu:0 --allow_soft_placement "
         "--nolog_device_placement");
    CHECK(!strstr(output, "Device mapping"));
    runs(1,
         "/device:GPU:2 but available devices are [ " CPU "0 ]. Make sure the device "
         "specification refers to a valid device.",
         "$M/devices_matmul --devices gpu:0");
}

/* Devices that do not exist, and words that are no device. */
static void nothing_there(void)
{
    runs(1, "Cannot assign a device for operation ",
         "$M/devices_matmul --devices cpu:2,gpu:0 --first /cpu:7");
    CHECK(strstr(output, "was explicitly assigned to /device:CPU:7 but available devices are "
                         "[ " CPU "0, " CPU "1 ]"));
    runs(1, "/job:worker/device:CPU:0 but available devices are [",
         "$M/devices_matmul --devices gpu:0 --sum /job:worker/cpu:0");
    runs(1, "/device:TPU:0 but available devices are [",
         "$M/devices_matmul --devices gpu:0 --sum /device:TPU:0");
    runs(1, "available devices are [ " CPU "0 ]", "$M/devices_matmul --devices gpu:0 --first gpu2");
}

static void soft(void)
{
    runs(0, "c = [2 4 6], a_gpu = 0\n",
         "$M/devices_soft --devices cpu:2,gpu:0 --first /cpu:0 --second /cpu:1");
    CHECK(strstr(output, "c: (Add): " CPU "1\n"));
    CHECK(strstr(output, "a_gpu: (VariableV2): " CPU "0\n"));
    runs(0, "c = [2 4 6], a_gpu = 0\n", "$M/devices_soft --devices gpu:0 --allow_soft_placement");
    runs(1, "was explicitly assigned to /device:GPU:0", "$M/devices_soft --devices gpu:0");
}

static double loss_at_end(void)
{
    const char *at = strstr(output, "step 30, loss = ");
    return at ? atof(at + 16) : NAN;
}

#define TRAIN "$M/model_parallel --train_steps 30 --batch_size 48 --hidden_units 20 --layers 3 "

/* However a net is spread over devices, it learns the same. */
static void model_parallel(void)
{
    static const char *const ways[] = {
        "--device_list /cpu:0,/cpu:1",
        "--device_list /cpu:0,/cpu:1,/cpu:2 --micro_batches 4",
        "--device_list /cpu:0,/cpu:1 --micro_batches 6 --in_flight 1",
        "--device_list /cpu:0,/cpu:1 --towers 2",
        "--device_list /cpu:0,/cpu:1,/cpu:2,/cpu:3,/cpu:4,/cpu:5 --towers 2 --micro_batches 3",
    };
    char line[512];
    runs(0, "test accuracy", TRAIN "--device_list /cpu:0");
    const double want = loss_at_end();
    CHECK(want > 0 && want < 2.5);
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        snprintf(line, sizeof(line), TRAIN "%s", ways[i]);
        runs(0, "test accuracy", line);
        CHECK_NEAR(loss_at_end(), want, 2e-3);
    }
    runs(0, "layer3/weights: (VariableV2): " CPU "1\n",
         TRAIN "--train_steps 1 --device_list /cpu:0,/cpu:1 --log_device_placement");
    CHECK(strstr(output, "layer0/weights: (VariableV2): " CPU "0\n"));
    runs(1, "--batch_size 48: 1 towers of 5 micro-batches do not divide it",
         TRAIN "--micro_batches 5");
    runs(1, "--device_list names no device", TRAIN "--device_list ''");
    runs(1, "/device:CPU:9 but available devices",
         TRAIN "--device_list /cpu:0,/cpu:9 "
               "--devices cpu:2 --noallow_soft_placement");
}

/* What a user may say of GPUs, on the command line and by the environment. */
static void options(void)
{
    const char *leat = LEAT_BINARY_DIR "/leat";
    char line[512];
    static const struct {
        int code;
        const char *words, *args;
    } rows[] = {
        {0, CPU "0", "devices --devices cpu:1,gpu:0"},
        {2, "--gpu_memory_fraction 2: wants a number above 0, and at most 1",
         "server --job_name ps --cluster 'ps=localhost:0' --gpu_memory_fraction 2"},
        {2, "--gpu_memory_limit: \"lots\" is no number of bytes",
         "server --job_name ps --cluster 'ps=localhost:0' --gpu_memory_limit lots"},
        {2, "--gpu_memory_limit: \"-1\" is no number", "launch --gpu_memory_limit=-1 -- true"},
        {0, "[1,0|0.5|64m]",
         "launch --ps 0 --workers 1 --no_flags --visible_device_list 1,0 --gpu_memory_fraction 0.5 "
         "--gpu_memory_limit 64m -- sh -c 'echo [$LEAT_VISIBLE_DEVICES\\|$LEAT_GPU_MEMORY_FRACTION"
         "\\|$LEAT_GPU_MEMORY_LIMIT]'"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        snprintf(line, sizeof(line), "%s %s", leat, rows[i].args);
        runs(rows[i].code, rows[i].words, line);
    }
}

/* ---- On the GPUs that PoCL makes of the CPU ---- */

#define GPUS "export POCL_DEVICES='basic basic basic basic'; "
#define GPU "/job:localhost/replica:0/task:0/device:GPU:"

static bool has_pocl(void)
{
    if (!TEST_OPENCL)
        return false;
    command c = command_start(GPUS LEAT_BINARY_DIR "/leat devices");
    command_read(c, NULL);
    const bool has = command_end(c) == 0 && strstr(output, GPU "3");
    if (!has)
        printf("no PoCL: skipped\n");
    return has;
}

/* Each of TensorFlow's five forms, and what is ours. */
static void visible_gpus(void)
{
    static const struct {
        const char *set, *words, *not_words;
        int code;
    } rows[] = {
        {"CUDA_VISIBLE_DEVICES=1", GPU "0 ", GPU "1 ", 0},
        {"CUDA_VISIBLE_DEVICES=0,1", GPU "1 ", GPU "2 ", 0},
        {"CUDA_VISIBLE_DEVICES='\"0,1\"'", GPU "1 ", GPU "2 ", 0},
        {"CUDA_VISIBLE_DEVICES=0,2", "(number 2 of this machine's)", GPU "2 ", 0},
        {"CUDA_VISIBLE_DEVICES=", CPU "0", GPU, 0},
        {"CUDA_VISIBLE_DEVICES=-1", CPU "0", GPU, 0},
        {"CUDA_VISIBLE_DEVICES=3,9,1", "(number 3 of this machine's)", GPU "1 ", 0},
        {"CUDA_VISIBLE_DEVICES=0 LEAT_VISIBLE_DEVICES=2,1,0", GPU "2 ", GPU "3 ", 0},
        {"LEAT_VISIBLE_DEVICES=0,4", "\"4\" is not the number of a GPU device", CPU, 2},
    };
    if (!has_pocl())
        return;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char line[512];
        snprintf(line, sizeof(line), GPUS "%s %s/leat devices", rows[i].set, LEAT_BINARY_DIR);
        runs(rows[i].code, rows[i].words, line);
        if (strstr(output, rows[i].not_words)) {
            test_failures++;
            printf("%s shows %s:\n%s", rows[i].set, rows[i].not_words, output);
        }
    }
}

static void programs_on_gpus(void)
{
    if (!has_pocl())
        return;
    runs(0, "[[44 56]\n [98 128]]\n", GPUS "$M/devices_matmul");
    CHECK(strstr(output, "Device mapping:\n" GPU "0 -> device: 0, name: "));
    CHECK(strstr(output, GPU "3 -> device: 3, name: "));
    CHECK(strstr(output, "MatMul: (MatMul): " GPU "2\n"));
    CHECK(strstr(output, "MatMul_1: (MatMul): " GPU "3\n"));
    CHECK(strstr(output, "AddN: (AddN): " CPU "0\n"));
    runs(0, "c = [2 4 6], a_gpu = 0\n", GPUS "$M/devices_soft --allow_soft_placement");
    CHECK(strstr(output, "a_gpu: (VariableV2): " CPU "0\n"));
    CHECK(strstr(output, "c: (Add): " GPU "1\n") && strstr(output, "b: (Const): " GPU "0\n"));
    runs(1, "Cannot assign a device for operation ", GPUS "$M/devices_soft");
    CHECK(strstr(output, "Could not satisfy explicit device specification '/device:GPU:0' because "
                         "no supported kernel for GPU devices is available."));
    CHECK(strstr(output, "Registered kernels:\n  device='CPU'\n"));
    runs(1, GPU "1 ]. Make sure the device", GPUS "LEAT_VISIBLE_DEVICES=3,0 $M/devices_matmul");
}

static void nets_on_gpus(void)
{
    if (!has_pocl())
        return;
    runs(0, "test accuracy", TRAIN "--device_list /cpu:0");
    const double want = loss_at_end();
    runs(0, "test accuracy", GPUS TRAIN "--device_list /gpu:0,/gpu:1 --micro_batches 4");
    CHECK_NEAR(loss_at_end(), want, 2e-3);
    runs(0, "test accuracy",
         GPUS TRAIN "--device_list /gpu:0,/gpu:1,/gpu:2,/gpu:3 --towers 2 --micro_batches 2");
    CHECK_NEAR(loss_at_end(), want, 2e-3);
}

int main(int argc, char **argv)
{
    strcpy(dir, "/tmp/leat-devices-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    int failed = RUN(argc, argv, {"products", products}, {"nothing_there", nothing_there},
                     {"soft", soft}, {"model_parallel", model_parallel}, {"options", options},
                     {"visible_gpus", visible_gpus}, {"programs_on_gpus", programs_on_gpus},
                     {"nets_on_gpus", nets_on_gpus});
    char line[128];
    snprintf(line, sizeof(line), "rm -rf %s", dir);
    return system(line) != 0 || failed;
}
