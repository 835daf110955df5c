"""How steps are asked for and what they answer: callables, partial runs, errors, time limits, traces."""
import json
import threading
import time

import numpy as np

from harness import LEAT_PS, ONE, TF_PS, TF2, TWO, case, close, raises, tf

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import timeline


@case(on=[ONE, TWO])
def make_callable(c):
    x = tf.placeholder(tf.float32, [None])
    v = tf.Variable(1.0)
    y = x * v
    with c.session() as s:
        s.run(v.initializer)
        f = s.make_callable([y, v], [x])
        assert f([1.0, 2.0])[0].tolist() == [1, 2]
        o = config_pb2.CallableOptions()
        o.feed.append(x.name)
        o.fetch.append(y.name)
        o.target.append(v.initializer.name)
        g = s._make_callable_from_options(o)
        for i in range(5):
            assert g(np.array([i, 1], np.float32))[0].tolist() == [i, 1]
        del g
        o.fetch.append("none:0")
        raises(tf.errors.NotFoundError, lambda: s._make_callable_from_options(o), "none")


@case(on=[ONE, TWO])
def partial_run(c):
    a, b, k = [tf.placeholder(tf.float32, []) for _ in range(3)]
    r1 = a + b
    r2 = r1 * k
    with c.session() as s:
        h = s.partial_run_setup([r1, r2], [a, b, k])
        assert s.partial_run(h, r1, {a: 1, b: 2}) == 3
        assert s.partial_run(h, r2, {k: 17}) == 51
        # Two at a time, interleaved; fetches of a later call that need nothing new.
        h1, h2 = s.partial_run_setup([r1, r2], [a, b, k]), s.partial_run_setup([r1], [a, b])
        assert s.partial_run(h1, r1, {a: 1, b: 1}) == 2
        assert s.partial_run(h2, r1, {a: 5, b: 1}) == 6
        assert s.partial_run(h1, r2, {k: 10}) == 20
        h = s.partial_run_setup([r1, r2], [a, b, k])
        raises(tf.errors.InvalidArgumentError, lambda: s.partial_run(h, r2, {a: 1}))


@case(on=[ONE, TWO])
def errors(c):
    x = tf.placeholder(tf.float32, [None], name="x")
    shape = tf.placeholder(tf.int32, [None], name="shape")
    bad = tf.reshape(x, shape, name="bad_reshape")
    product = tf.matmul(tf.reshape(x, [1, -1]), tf.ones([3, 2]), name="bad_product")
    gathered = tf.gather(x, tf.placeholder_with_default([9], [None]), name="bad_gather")
    check = tf.check_numerics(tf.log(x), "not a number", name="check")
    restore = tf.raw_ops.RestoreV2(prefix="/no/such/ckpt", tensor_names=["a"],
                                   shape_and_slices=[""], dtypes=[tf.float32], name="restore")
    Bad, Missing = tf.errors.InvalidArgumentError, tf.errors.NotFoundError
    with c.session() as s:
        e = raises(Bad, lambda: s.run(bad, {x: [1, 2, 3], shape: [2, 2]}), "bad_reshape",
                   "Input to reshape is a tensor with 3 values, but the requested shape has 4")
        assert e.op is bad.op and e.node_def.name == "bad_reshape", (e.op, e.node_def)
        raises(Bad, lambda: s.run(product, {x: [1.0]}), "bad_product", "Matrix size-incompatible")
        raises(Bad, lambda: s.run(gathered, {x: [1.0]}), "bad_gather",
               "indices[0] = 9 is not in [0, 1)")
        raises(Bad, lambda: s.run(check, {x: [-1.0]}), "not a number : Tensor had NaN values")
        raises(Bad, lambda: s.run(bad, {shape: [1]}),
               "You must feed a value for placeholder tensor 'x' with dtype float")
        raises(Missing, lambda: s.run(restore), "/no/such/ckpt")
        with tf.control_dependencies([tf.Assert(tf.reduce_all(x > 0), [x], name="asserted")]):
            y = tf.identity(x)
        raises(Bad, lambda: s.run(y, {x: [-4.0]}), "assertion failed: [-4]", "asserted")
        assert s.run(bad, {x: [1, 2], shape: [2, 1]}).tolist() == [[1], [2]]  # goes on


@case(on=[TWO, LEAT_PS, TF_PS])
def errors_of_other_task(c):
    x = tf.placeholder(tf.float32, [None])
    with tf.device("/job:ps/task:0"):
        v = tf.Variable([1.0, 2.0], name="v")
        bad = tf.reshape(x, [2, 2], name="bad_reshape")
    with tf.device("/job:worker/task:0"):
        y = tf.reduce_sum(bad * 2.0)
        twice = v * 2.0
    with c.session() as s:
        raises(tf.errors.FailedPreconditionError, lambda: s.run(twice),
               "Attempting to use uninitialized value v")
        e = raises(tf.errors.InvalidArgumentError, lambda: s.run(y, {x: [1, 2, 3]}), "bad_reshape",
                   "Input to reshape is a tensor with 3 values")
        assert e.op is bad.op
        assert s.run(y, {x: [1, 2, 3, 4]}) == 20


@case(on=[ONE, TWO, LEAT_PS])
def time_limits(c):
    q = tf.FIFOQueue(3, tf.float32, shapes=[[]])
    take = q.dequeue()
    Late = tf.errors.DeadlineExceededError
    with c.session(operation_timeout_in_ms=300) as s:
        begin = time.time()
        raises(Late, lambda: s.run(take))
        raises(Late, lambda: s.run(take, options=tf.RunOptions(timeout_in_ms=200)))
        assert time.time() - begin < 8
    with c.session() as s:
        begin = time.time()
        raises(Late, lambda: s.run(take, options=tf.RunOptions(timeout_in_ms=200)))
        assert time.time() - begin < 8
        s.run(q.enqueue(4.0))
        assert s.run(take, options=tf.RunOptions(timeout_in_ms=20000)) == 4


@case(on=[ONE, TWO])
def close_while_blocked(c):
    q = tf.FIFOQueue(3, tf.float32)
    take, size = q.dequeue(), q.size()
    s = c.session()
    seen = []

    def wait():
        try:
            s.run(take)
        except Exception as e:
            seen.append(e)

    t = threading.Thread(target=wait)
    s.run(size)
    t.start()
    time.sleep(0.5)
    s.close()
    t.join(20)
    assert not t.is_alive() and isinstance(seen[0], (tf.errors.CancelledError,
                                                     tf.errors.AbortedError)), seen
    with c.session() as s:
        s.run(q.enqueue(1.0))
        assert s.run(take) == 1


@case()
def many_threads(c):
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(0.0, use_resource=True)
    y, add = x * 2, v.assign_add(1.0)
    wrong = []
    with c.session() as s:
        s.run(v.initializer)

        def work(k):
            for i in range(30):
                if s.run([y, add], {x: k * 100 + i})[0] != 2 * (k * 100 + i):
                    wrong.append((k, i))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong and s.run(v) == 240


@case(on=[ONE, TWO, LEAT_PS, TF_PS])
def tracing(c):
    tasks = sorted(c.jobs)
    with tf.device("/job:%s/task:0" % tasks[0]):
        v = tf.Variable(tf.ones([20, 20]), name="v")
    with tf.device("/job:%s/task:0" % tasks[-1]):
        y = tf.matmul(v, v, name="product")
    with c.session() as s:
        s.run(v.initializer)
        m = tf.RunMetadata()
        o = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        s.run(y, options=o, run_metadata=m)
        traced = {d.device: [n.node_name for n in d.node_stats] for d in m.step_stats.dev_stats}
        for j in tasks:
            assert any("/job:%s/" % j in d for d in traced), traced
        names = [n for d in traced.values() for n in d]
        assert any(n.startswith("product") for n in names), names
        json.loads(timeline.Timeline(m.step_stats).generate_chrome_trace_format())
        starts = [n.all_start_micros for d in m.step_stats.dev_stats for n in d.node_stats]
        assert max(starts) - min(starts) < 30e6 and abs(min(starts) / 1e6 - time.time()) < 60
        assert len(m.partition_graphs) >= len(tasks), len(m.partition_graphs)
        nodes = [n.name for g in m.partition_graphs for n in g.node]
        assert any("product" in n for n in nodes), nodes


@case(on=LEAT_PS)
def transfers(c):
    """TensorFlow's master asks Leat's task by Logging what it has fetched in a traced step."""
    with tf.device("/job:worker/task:0"):
        x = tf.random_normal([300, 100], name="x")
    with tf.device("/job:ps/task:0"):
        y = tf.reduce_sum(x, name="y")
    with c.session() as s:
        m = tf.RunMetadata()
        s.run(y, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=m)
        fetched = [n for d in m.step_stats.dev_stats if "/job:ps/" in d.device
                   for n in d.node_stats if n.node_name == "RecvTensor"]
        assert len(fetched) == 1, m.step_stats
        assert fetched[0].timeline_label.startswith("[0.1MB] ["), fetched
        way = "x/RandomStandardNormal from /job:worker/replica:0/task:0/device:CPU:0 to /job:ps/"
        assert way in fetched[0].timeline_label, fetched
        assert fetched[0].output[0].tensor_description.allocation_description.requested_bytes == (
            120000), fetched


@case(on=[ONE, TWO, LEAT_PS, TF_PS])
def devices(c):
    with c.session() as s:
        names = [d.name for d in s.list_devices()]
        for job in c.jobs:
            assert "/job:%s/replica:0/task:0/device:CPU:0" % job in names, names
        with tf.device("/job:%s/device:CPU:0" % sorted(c.jobs)[0]):
            x = tf.constant(3) + tf.placeholder_with_default(1, [])
        assert s.run(x) == 4


@case(on=[ONE, TWO])
def placement(c):
    with tf.device("/gpu:0"):
        x = tf.constant([1.0], name="on_gpu") * tf.placeholder_with_default(2.0, [])
    with tf.device("/job:nobody/task:3"):
        y = tf.constant(1, name="nowhere") + tf.placeholder_with_default(2, [])
    with c.session() as s:
        raises(tf.errors.InvalidArgumentError, lambda: s.run(x),
               "Cannot assign a device for operation")
        raises(tf.errors.InvalidArgumentError, lambda: s.run(y),
               "Cannot assign a device for operation")
    with c.session(allow_soft_placement=True, log_device_placement=True) as s:
        assert s.run(x) == 2


@case(on=TWO)
def device_filters(c):
    with c.session(device_filters=["/job:worker/task:0"]) as s:
        assert all("/job:worker" in d.name for d in s.list_devices())
        with tf.device("/job:ps/task:0"):
            x = tf.constant(1) + tf.placeholder_with_default(2, [])
        raises(tf.errors.InvalidArgumentError, lambda: s.run(x),
               "Cannot assign a device for operation")
        with tf.device("/job:worker/task:0"):
            assert s.run(tf.constant(4)) == 4


@case(on=[ONE, TWO])
def isolated_state(c):
    with tf.device("/job:%s/task:0" % sorted(c.jobs)[0]):
        v = tf.Variable(1.0, name="v", use_resource=True)
        w = tf.Variable(1.0, name="w", use_resource=False)
    with c.session(isolate_session_state=True) as s:
        s.run([v.initializer, w.initializer])
        assert s.run([v, w]) == [1, 1]
        with c.session(isolate_session_state=True) as t:
            raises(tf.errors.FailedPreconditionError, lambda: t.run(v))
            raises(tf.errors.FailedPreconditionError, lambda: t.run(w))
        with c.session() as t:
            raises(tf.errors.FailedPreconditionError, lambda: t.run(w))


@case(on=[ONE, TWO], fresh=True)
def reset(c):
    with tf.device("/job:%s/task:0" % sorted(c.jobs)[0]):
        with tf.container("one"):
            v = tf.Variable(1.0, name="v")
        with tf.container("two"):
            w = tf.Variable(2.0, name="w")
    s = c.session()
    s.run(tf.global_variables_initializer())
    tf.Session.reset(c.target(), ["one"])
    raises(tf.errors.AbortedError, lambda: s.run(w), "")  # the sessions of that master are closed
    with c.session() as t:
        raises(tf.errors.FailedPreconditionError, lambda: t.run(v))
        assert t.run(w) == 2
    tf.Session.reset(c.target())


@case()
def closed_session(c):
    x = tf.constant(1)
    s = c.session()
    s.run(x)
    s.close()
    try:
        s.run(x)
        raise AssertionError("a closed session ran")
    except RuntimeError:
        pass


@case()
def bad_names(c):
    x = tf.constant(1)
    with c.session() as s:
        s.run(x)
        o = config_pb2.CallableOptions()
        o.target.append("nothing")
        raises(tf.errors.NotFoundError, lambda: s._make_callable_from_options(o), "nothing")
