"""Functions that are called while a graph runs, over several tasks."""
from tensorflow.python.framework import function
from tensorflow.python.ops import functional_ops

from harness import LEAT_PS, TF_PS, TWO, case, raises, tf

PS = "/job:ps/replica:0/task:0/device:CPU:0"
WORKER = "/job:worker/replica:0/task:0/device:CPU:0"


def remote(f, x, target):
    return functional_ops.remote_call(args=[x], Tout=[tf.float32], f=f, target=target)


@case(on=[TWO, LEAT_PS, TF_PS])
def remote_call(c):
    """Each task calls a function on the other one; one that calls back; one with a variable."""

    @function.Defun(tf.float32)
    def twice(x):
        return x * 2.0

    @function.Defun(tf.float32)
    def back(x):
        return remote(twice, x + 1.0, WORKER)

    @function.Defun(tf.resource)
    def read(handle):
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32) * 2.0

    with tf.device(PS):
        v = tf.get_variable("v", initializer=5.0, use_resource=True)
        from_ps = remote(twice, tf.constant(3.0), WORKER)
    with tf.device(WORKER):
        from_worker = remote(twice, tf.constant(4.0), "/job:ps/task:0")
        there_and_back = remote(back, tf.constant(3.0), PS)
        variable = remote(read, v.handle, PS)
    for job in ("ps", "worker"):
        with c.session(job) as s:
            s.run(v.initializer)
            for _ in range(3):
                got = s.run([from_ps, from_worker, there_and_back, variable])
                assert got == [[6], [8], [8], [10]], got


@case(on=[TWO, LEAT_PS, TF_PS])
def noinline(c):
    """A function, a loop and a condition that are called, and whose nodes name both tasks."""

    def both(x):
        with tf.device("/job:ps/task:0"):
            a = x + 1.0
        with tf.device("/job:worker/task:0"):
            return a * x

    @function.Defun(tf.float32, noinline=True)
    def called(x):
        return both(x)

    @function.Defun(tf.int32, tf.float32)
    def body(i, x):
        return both(x)

    @function.Defun(tf.float32)
    def branch(x):
        return both(x)

    results = []
    for job in ("ps", "worker"):
        with tf.device("/job:%s/task:0" % job):
            x = tf.constant(2.0)
            y = called(x)
            results += [y, tf.gradients(y, x)[0], functional_ops.For(0, 3, 1, [x], body)[0],
                        functional_ops.If(tf.constant(True), [x], branch, branch)[0]]
    for job in ("ps", "worker"):
        with c.session(job) as s:
            for _ in range(3):
                got = s.run(results)
                assert got == [6, 5, 1806, 6] * 2, got


@case(on=TWO)
def partitioned_call(c):
    """TensorFlow's servers do not know the devices of other tasks here."""

    @function.Defun(tf.resource, tf.float32, noinline=True)
    def update(handle, x):
        with tf.device("/job:worker/task:0"):
            more = x * 2.0
        add = tf.raw_ops.AssignAddVariableOp(resource=handle, value=more)
        with tf.control_dependencies([add]):
            return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)

    @function.Defun(tf.float32, noinline=True)
    def fails(x):
        with tf.device("/job:ps/task:0"):
            return tf.check_numerics(x / 0.0, "on the ps")

    def call(f, *args):
        return tf.raw_ops.StatefulPartitionedCall(args=list(args), Tout=[tf.float32], f=f, config="",
                                                  config_proto=b"", executor_type="")

    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", initializer=1.0, use_resource=True)
        from_ps = call(update, v.handle, tf.constant(1.0))
    with tf.device("/job:worker/task:0"):
        from_worker = call(update, v.handle, tf.constant(2.0))
        wrong = call(fails, tf.constant(1.0))
    for job in ("ps", "worker"):
        with c.session(job) as s:
            s.run(v.initializer)
            assert s.run(from_ps) == [3] and s.run(from_worker) == [7] and s.run(v) == 7
            raises(tf.errors.InvalidArgumentError, lambda: s.run(wrong), "on the ps : Tensor had Inf")
