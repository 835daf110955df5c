"""Models over several tasks: in-graph replicas, model parallelism, partitioned variables, masters of
each kind."""
import numpy as np

from harness import LEAT_PS, TF_PS, TWO, case, close, raises, tf

WIDE = {"ps": ["leat", "tf"], "worker": ["leat", "tf"]}
ALL_LEAT = {"ps": ["leat", "leat"], "worker": ["leat", "leat"]}


@case(on=[ALL_LEAT, WIDE], limit=90)
def in_graph(c):
    """One client, two workers: gradients of both averaged, by the master of either kind."""
    rng = np.random.RandomState(0)
    data = rng.randn(8, 5).astype(np.float32)

    def build(device):
        with device("/job:ps/task:0"):
            w = tf.get_variable("w", initializer=np.ones([5, 3], np.float32))
        with device("/job:ps/task:1"):
            u = tf.get_variable("u", initializer=np.full([3, 1], 0.5, np.float32))
        losses = []
        for i in range(2):
            with device("/job:worker/task:%d" % i):
                h = tf.nn.tanh(tf.matmul(tf.constant(data[4 * i:4 * i + 4]), w))
                losses.append(tf.reduce_mean(tf.square(tf.matmul(h, u) - 1.0)))
        loss = tf.add_n(losses) / 2.0
        return loss, tf.train.AdamOptimizer(0.1).minimize(loss, colocate_gradients_with_ops=True)

    def run(s, loss, train):
        s.run(tf.global_variables_initializer())
        return [s.run([loss, train])[0] for _ in range(5)]

    with tf.Graph().as_default(), tf.Session() as s:
        want = run(s, *build(lambda name: tf.device(None)))
    loss, train = build(tf.device)
    for i in range(2):
        with c.session("worker", i) as s:
            close(run(s, loss, train), want)
    with c.session("ps", 0) as s:
        close(run(s, loss, train), want)


@case(on=[ALL_LEAT, WIDE], limit=90)
def pipeline(c):
    """A value that visits every task."""
    x = tf.placeholder(tf.float32, [None])
    y = x
    for i in range(8):
        with tf.device("/job:%s/task:%d" % (("ps", "worker")[i % 2], i // 2 % 2)):
            y = y * 2.0 + float(i)
    grad = tf.gradients(y, x)[0]
    want = 1.0
    for i in range(8):
        want = want * 2 + i
    for job in ("ps", "worker"):
        for i in range(2):
            with c.session(job, i) as s:
                got = s.run([y, grad], {x: [1.0]})
                assert got[0] == want and got[1] == 256, got


@case(on=[ALL_LEAT, WIDE], limit=90)
def partitioned(c):
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")):
        table = tf.get_variable("table", [10, 3], partitioner=tf.fixed_size_partitioner(2),
                                initializer=tf.random_normal_initializer(seed=1))
        ids = tf.placeholder(tf.int64, [None])
        rows = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
        loss = tf.reduce_sum(tf.square(rows))
        train = tf.train.AdagradOptimizer(0.5).minimize(loss)
    with c.session() as s:
        s.run(tf.global_variables_initializer())
        whole = s.run(tf.convert_to_tensor(table))
        close(s.run(rows, {ids: [1, 9, 4]}), whole[[1, 9, 4]])
        first = s.run(loss, {ids: [1, 9, 4]})
        for _ in range(5):
            s.run(train, {ids: [1, 9, 4]})
        assert s.run(loss, {ids: [1, 9, 4]}) < first
        after = s.run(tf.convert_to_tensor(table))
        assert (after[0] == whole[0]).all() and (after[4] != whole[4]).any()


@case(on=[TWO, LEAT_PS, TF_PS])
def two_masters(c):
    """Sessions on both tasks at the same time see the same variables."""
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(0.0, name="v")
        w = tf.Variable(0.0, name="w", use_resource=True)
    with tf.device("/job:worker/task:0"):
        add = tf.group(v.assign_add(tf.constant(1.0)), w.assign_add(tf.constant(2.0)))
    with c.session("ps") as a, c.session("worker") as b:
        a.run(tf.global_variables_initializer())
        for _ in range(5):
            a.run(add)
            b.run(add)
        assert a.run([v, w]) == [10, 20] and b.run([v, w]) == [10, 20]


@case(on=[TWO, LEAT_PS, TF_PS])
def many_edges(c):
    """Hundreds of tensors each way in one step."""
    with tf.device("/job:ps/task:0"):
        a = [tf.constant(float(i)) + tf.placeholder_with_default(1.0, []) for i in range(200)]
    with tf.device("/job:worker/task:0"):
        b = [x * 2.0 for x in a]
    with tf.device("/job:ps/task:0"):
        d = tf.add_n(b)
    with c.session() as s:
        for _ in range(5):
            assert s.run(d) == sum(2 * (i + 1) for i in range(200))
