"""The documents' programs for several GPUs, as they stand, on a Leat server with four GPUs; and the graph
of models/model_parallel, a pipeline, run by TensorFlow."""
import os
import subprocess

import numpy as np

from harness import LEAT, case, close, raises, tf

FOUR = {"worker": ["leat-gpus"]}
TASK = "/job:worker/replica:0/task:0/device:"


def log_of(c):
    with open(c.log("worker", 0), errors="replace") as f:
        return f.read()


@case(on=FOUR)
def lists_gpus(c):
    with c.session() as s:
        names = [d.name for d in s.list_devices()]
        assert names == [TASK + "CPU:0"] + [TASK + "GPU:%d" % i for i in range(4)], names
    with c.session(device_count={"GPU": 2}) as s:
        assert len(s.list_devices()) == 3, s.list_devices()


@case(on=FOUR)
def products_on_two(c):
    parts = []
    for d in ["/gpu:2", "/gpu:3"]:
        with tf.device(d):
            a = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[2, 3])
            b = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=[3, 2])
            parts.append(tf.matmul(a, b))
    with tf.device("/cpu:0"):
        total = tf.add_n(parts)
    with c.session(log_device_placement=True) as s:
        assert np.array_equal(s.run(total), [[44, 56], [98, 128]])
    log = log_of(c)
    assert "Device mapping:\n%sGPU:0 -> device: 0, name: " % TASK in log, log
    for line in ["MatMul: (MatMul): %sGPU:2", "MatMul_1: (MatMul): %sGPU:3", "AddN: (AddN): %sCPU:0",
                 "Const: (Const): %sGPU:2", "Const_3: (Const): %sGPU:3"]:
        assert line % TASK + "\n" in log, (line, log)


@case(on=FOUR)
def placement(c):
    with tf.device("/cpu:0"):
        a = tf.constant([1.0, 2.0, 3.0], shape=[3], name="a")
    with tf.device("/gpu:0"):
        b = tf.constant([1.0, 2.0, 3.0], shape=[3], name="b")
    with tf.device("/gpu:1"):
        y = tf.add(a, b, name="c")
    with c.session() as s:
        assert np.array_equal(s.run(y), [2, 4, 6])


@case(on=FOUR)
def no_kernel(c):
    with tf.device("/cpu:0"):
        a_cpu = tf.Variable(0, name="a_cpu")
    with tf.device("/gpu:0"):
        a_gpu = tf.Variable(0, name="a_gpu")
        b_gpu = tf.Variable(0.0, name="b_gpu")
    with c.session() as s:
        raises(tf.errors.InvalidArgumentError, lambda: s.run(tf.global_variables_initializer()),
               "Could not satisfy explicit device specification")
        raises(tf.errors.InvalidArgumentError, lambda: s.run(a_gpu.initializer),
               "Cannot assign a device for operation a_gpu")
    with c.session(allow_soft_placement=True, log_device_placement=True) as s:
        s.run(tf.global_variables_initializer())
        assert s.run([a_cpu, a_gpu, b_gpu]) == [0, 0, 0]
    log = log_of(c)
    assert "a_gpu: (VariableV2): %sCPU:0\n" % TASK in log, log
    assert "b_gpu: (VariableV2): %sGPU:0\n" % TASK in log, log


@case(on=FOUR)
def no_such_gpu(c):
    with tf.device("/gpu:4"):
        x = tf.constant(1.0, name="x") + tf.placeholder_with_default(2.0, [])
    with c.session() as s:
        raises(tf.errors.InvalidArgumentError, lambda: s.run(x), "GPU:3 ]. Make sure the device")
    with c.session(allow_soft_placement=True) as s:
        assert s.run(x) == 3


@case(on=FOUR)
def options_of_gpus(c):
    """What a server decides when it starts, it tells those who ask for it later."""
    gpu = tf.GPUOptions(visible_device_list="1,0", per_process_gpu_memory_fraction=0.25)
    with c.session(gpu_options=gpu) as s:
        assert len(s.list_devices()) == 5, s.list_devices()
    assert 'a session asks for visible_device_list "1,0"' in log_of(c), log_of(c)


@case(on={"worker": ["leat --devices cpu:2"]})
def pipeline_graph(c):
    """TensorFlow and Leat's server compute the same from the GraphDef of a pipeline."""
    path = os.path.join(c.dir, "pipeline.pb")
    program = os.path.join(os.path.dirname(LEAT), "models", "model_parallel")
    subprocess.check_call([program, "--graph_out", path, "--micro_batches", "4", "--hidden_units", "16",
                           "--batch_size", "32"])
    with open(path, "rb") as f:
        graph = tf.GraphDef.FromString(f.read())
    rng = np.random.RandomState(1)
    feed = {"x:0": rng.rand(32, 784).astype(np.float32), "y:0": np.eye(10)[rng.randint(0, 10, 32)]}
    losses = []
    for session in (c.session, lambda: tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}))):
        with tf.Graph().as_default():
            tf.import_graph_def(graph, name="")
            with session() as s:
                s.run("init")
                losses.append([s.run(["loss:0", "train"], feed)[0] for _ in range(10)])
    close(losses[0], losses[1], 1e-4)
    assert losses[0][9] < losses[0][0], losses
