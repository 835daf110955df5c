"""Control: queues, accumulators, cond and while with gradients, functions, inside a task and across."""
import numpy as np

from harness import LEAT_PS, ONE, TF_PS, TF2, TWO, case, close, raises, tf

from tensorflow.python.framework import function


def near(c):
    return tf.device("/job:worker/task:0")


def far(c):
    return tf.device("/job:%s/task:0" % sorted(c.jobs)[0])


@case(on=[ONE, TWO, LEAT_PS, TF_PS])
def queues(c):
    with far(c):
        fifo = tf.FIFOQueue(10, [tf.int32, tf.string], shapes=[[], []], shared_name="fifo")
        shuffle = tf.RandomShuffleQueue(50, 0, tf.float32, shapes=[[]], seed=3)
        padding = tf.PaddingFIFOQueue(10, tf.int32, shapes=[[None]])
        priority = tf.PriorityQueue(10, tf.string, shapes=[[]])
    with near(c):
        v = tf.placeholder(tf.int32, [None])
        put = fifo.enqueue_many([v, tf.as_string(v)])
    with c.session() as s:
        s.run(put, {v: [1, 2, 3, 4, 5]})
        assert s.run(fifo.size()) == 5
        assert s.run(fifo.dequeue()) == [1, b"1"]
        assert [x.tolist() for x in s.run(fifo.dequeue_many(2))] == [[2, 3], [b"2", b"3"]]
        s.run(fifo.close())
        assert s.run(fifo.is_closed())
        assert s.run(fifo.dequeue_up_to(9))[0].tolist() == [4, 5]
        raises(tf.errors.OutOfRangeError, lambda: s.run(fifo.dequeue()),
               "is closed and has insufficient elements (requested 1, current size 0)")
        raises(tf.errors.CancelledError, lambda: s.run(put, {v: [1]}), "is closed")
        s.run(shuffle.enqueue_many([np.arange(20.0)]))
        got = s.run(shuffle.dequeue_many(20))
        assert sorted(got) == list(range(20)) and list(got) != list(range(20))
        for row in ([1], [2, 3], []):
            s.run(padding.enqueue([np.array(row, np.int32)]))
        assert s.run(padding.dequeue_many(3)).tolist() == [[1, 0], [2, 3], [0, 0]]
        for k, t in ((3, "c"), (1, "a"), (2, "b")):
            s.run(priority.enqueue([np.int64(k), t]))
        assert s.run(priority.dequeue_many(3))[1].tolist() == [b"a", b"b", b"c"]


@case(on=[ONE, TWO, LEAT_PS, TF_PS])
def references_in_loops(c):
    """A reference that is read outside, and updated in a loop or a branch, is seen as it is there."""
    with far(c):
        v = tf.get_variable("v", [], initializer=tf.constant_initializer(2), use_resource=False)

        def grow():
            with tf.control_dependencies([tf.assign(v, v * v)]):
                return v + 0.0

        def turn(i, total):
            return i + 1, total + tf.cond(i > 0, grow, lambda: v + 100.0)

        _, total = tf.while_loop(lambda i, total: i < 4, turn, [0, 0.0], parallel_iterations=1)
        with tf.control_dependencies([total]):
            after = v + 1.0
    with c.session() as s:
        s.run(v.initializer)
        assert s.run([total, after]) == [102 + 4 + 16 + 256, 257]


@case(on=[ONE, TWO, LEAT_PS, TF_PS])
def queue_runners(c):
    with far(c):
        source = tf.FIFOQueue(4, tf.int32, shapes=[[]])
        count = tf.Variable(0)
    with near(c):
        put = source.enqueue(count.assign_add(1))
        take = source.dequeue()
    tf.train.add_queue_runner(tf.train.QueueRunner(source, [put] * 2))
    with c.session() as s:
        s.run(count.initializer)
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(s, coord)
        got = [s.run(take) for _ in range(10)]
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=20)
    assert len(got) == 10 and max(got) >= 8, got  # two threads count with one variable


@case(on=[ONE, TWO, LEAT_PS, TF_PS])
def accumulators(c):
    with far(c):
        a = tf.ConditionalAccumulator(tf.float32, shape=[2])
        sparse = tf.SparseConditionalAccumulator(tf.float32, shape=[4, 1])
    with near(c):
        g = tf.placeholder(tf.float32, [2])
        give = a.apply_grad(g, local_step=0)
        rows = sparse.apply_indexed_slices_grad(
            tf.IndexedSlices(tf.constant([[1.0], [3.0]]), tf.constant([0, 2], tf.int64)))
    with c.session() as s:
        s.run(give, {g: [1, 2]})
        s.run(give, {g: [3, 6]})
        assert s.run(a.num_accumulated()) == 2
        assert s.run(a.take_grad(2)).tolist() == [2, 4]
        s.run([rows])
        s.run([rows])
        got = s.run(sparse.take_indexed_slices_grad(2))
        assert got.indices.tolist() == [0, 2] and got.values.tolist() == [[1], [3]]


@case(on=[ONE, TWO, LEAT_PS, TF_PS])
def conds(c):
    """Both branches, on another task than the predicate: dead tensors cross."""
    p = tf.placeholder(tf.bool, [])
    with near(c):
        v = tf.Variable(3.0)
        x = tf.placeholder(tf.float32, [])

        def yes():
            with far(c):
                return tf.square(x) * v

        def no():
            with far(c):
                a = x * 2.0
            with near(c):
                return a + 1.0

        y = tf.cond(p, yes, no)
        dx, dv = tf.gradients(y, [x, v])
        nested = tf.cond(p, lambda: tf.cond(x > 1.0, yes, no), lambda: tf.constant(-1.0))
        written = tf.cond(p, lambda: v.assign_add(1.0), lambda: tf.identity(v))
    with c.session() as s:
        s.run(v.initializer)
        for _ in range(3):
            assert s.run([y, dx, dv], {p: True, x: 2.0}) == [12, 12, 4]
            assert s.run([y, dx, dv], {p: False, x: 2.0}) == [5, 2, 0]
        assert s.run(nested, {p: True, x: 2.0}) == 12 and s.run(nested, {p: True, x: 0.5}) == 2
        assert s.run(nested, {p: False, x: 2.0}) == -1
        assert s.run(written, {p: False}) == 3 and s.run(written, {p: True}) == 4


@case(on=[ONE, TWO, LEAT_PS, TF_PS])
def merges_across(c):
    """A dead value of one task meets the living one on the other."""
    p = tf.placeholder(tf.bool, [])
    with far(c):
        x = tf.placeholder_with_default(5.0, [])
        off, on = tf.raw_ops.Switch(data=x, pred=p)
    with near(c):
        a = on * 2.0
        b = off + 100.0
    with far(c):
        y = tf.raw_ops.Merge(inputs=[a, b])
        side = tf.raw_ops.Merge(inputs=[tf.identity(off), tf.identity(on)])
    with c.session() as s:
        for _ in range(3):
            assert s.run([y.output, y.value_index], {p: True}) == [10, 0]
            assert s.run([y.output, side.value_index], {p: False}) == [105, 0]


@case(on=[ONE, TWO, LEAT_PS, TF_PS])
def whiles(c):
    with far(c):
        v = tf.Variable(2.0)
    with near(c):
        n = tf.placeholder(tf.int32, [])
        _, total = tf.while_loop(lambda i, t: i < n, lambda i, t: [i + 1, t * v],
                                 [tf.constant(0), tf.constant(1.0)])
        grad = tf.gradients(total, v)[0]
        ta = tf.TensorArray(tf.float32, size=n)
        _, ta = tf.while_loop(lambda i, t: i < n,
                              lambda i, t: [i + 1, t.write(i, tf.cast(i, tf.float32))], [0, ta])
        mapped = tf.map_fn(lambda e: e * e, tf.range(4.0))
        scanned = tf.scan(lambda a, e: a + e, tf.range(5.0))
        nested = tf.while_loop(
            lambda i, t: i < 3,
            lambda i, t: [i + 1, tf.while_loop(lambda j, u: j < i, lambda j, u: [j + 1, u + 1],
                                               [0, t])[1]], [0, 0])[1]
    with c.session() as s:
        s.run(v.initializer)
        for k in (3, 0, 5):
            assert s.run([total, grad], {n: k}) == [2.0**k, k * 2.0**max(k - 1, 0)]
        assert s.run(ta.stack(), {n: 4}).tolist() == [0, 1, 2, 3]
        assert s.run(mapped).tolist() == [0, 1, 4, 9]
        assert s.run(scanned).tolist() == [0, 1, 3, 6, 10] and s.run(nested) == 3


@case(on=[TWO, LEAT_PS, TF_PS])
def whiles_across(c):
    """Nodes of a loop on another task than its condition: keys name the iteration."""
    n = tf.placeholder(tf.int32, [])
    with near(c):
        def body(i, t):
            with far(c):
                u = t * 2.0
            with near(c):
                return [i + 1, u + 1.0]

        i, total = tf.while_loop(lambda i, t: i < n, body, [tf.constant(0), tf.constant(1.0)])
    with c.session() as s:
        for k in (0, 1, 5, 30):
            t = 1.0
            for _ in range(k):
                t = t * 2 + 1
            assert s.run([i, total], {n: k}) == [k, np.float32(t)]


@case(on=[TWO, LEAT_PS, TF_PS])
def whiles_across_nested(c):
    n = tf.placeholder(tf.int32, [])
    with far(c):
        v = tf.Variable(1.5)
    with near(c):
        def inner(j, t):
            with far(c):
                u = t + v
            return [j + 1, u]

        def outer(i, t):
            with near(c):
                _, t = tf.while_loop(lambda j, u: j < i, inner, [tf.constant(0), t])
            with far(c):
                return [i + 1, tf.cond(t > 4.0, lambda: t - 1.0, lambda: t + 0.5)]

        total = tf.while_loop(lambda i, t: i < n, outer, [tf.constant(0), tf.constant(0.0)])[1]
        grad = tf.gradients(total, v)[0]
    with c.session() as s:
        s.run(v.initializer)
        for k in (1, 4):
            want, count = 0.0, 0
            for i in range(k):
                want, count = want + 1.5 * i, count + i
                want += -1.0 if want > 4 else 0.5
            assert s.run([total, grad], {n: k}) == [want, count]


@case(on=[ONE, TWO, LEAT_PS, TF_PS])
def functions(c):
    @function.Defun(tf.float32, tf.float32)
    def scaled(x, y):
        return x * 2.0 + y, x - y

    @function.Defun(tf.float32, tf.float32)
    def slope(x, dy):
        return dy * 7.0

    @function.Defun(tf.float32, grad_func=slope)
    def cube(x):
        return x * x * x

    with far(c):
        x = tf.placeholder(tf.float32, [])
        a, b = scaled(x, 10.0)
        d = tf.gradients(a + 3.0 * b, x)[0]
        q = cube(x)
        dq = tf.gradients(q, x)[0]
    with c.session() as s:
        assert s.run([a, b, d, q, dq], {x: 2.0}) == [14, -8, 5, 8, 7]


@case(on=[ONE, TWO])
def functions_with_flow(c):
    """Side effects in conditions and loops of a function's body, some of which are not had."""
    @function.Defun(tf.float32)
    def checked(x):
        with tf.control_dependencies([tf.Assert(x < 10.0, ["too large:", x])]):
            return tf.cond(x > 0.0, lambda: x + tf.round(tf.random_uniform([], 0.9, 1.1)),
                           lambda: -x)

    @function.Defun(tf.float32)
    def doubled(x):
        def turn(i, x):
            with tf.control_dependencies([tf.Assert(x < 100.0, [x])]):
                return i + 1, x * 2.0

        return tf.while_loop(lambda i, x: i < 3, turn, [0, x])[1]

    with far(c):
        x = tf.placeholder(tf.float32, [])
        y, z = checked(x), doubled(x)
    with c.session() as s:
        assert s.run([y, z], {x: 2.0}) == [3, 16]
        assert s.run([y, z], {x: -2.0}) == [2, -16]
        raises(tf.errors.InvalidArgumentError, lambda: s.run(y, {x: 20.0}), "too large:")
        raises(tf.errors.InvalidArgumentError, lambda: s.run(z, {x: 50.0}), "assertion failed")


@case(on=[ONE, TWO])
def functions_with_state(c):
    with far(c):
        v = tf.get_variable("v", initializer=2.0, use_resource=True)

    def bump(x):
        v.assign_add(x)
        return v * x

    y = (tf.function if TF2 else tf.contrib.eager.defun)(bump)(tf.constant(3.0))
    grad = tf.gradients(y, v)[0]
    with c.session() as s:
        s.run(v.initializer)
        assert s.run(y) == 15 and s.run(v) == 5
        assert s.run(grad) == 3


@case(on=[ONE, TWO])
def flow_v2(c):
    """If and While as functions, as TensorFlow 2 writes them."""
    tf.enable_control_flow_v2()
    try:
        with near(c):
            x = tf.placeholder(tf.float32, [])
            y = tf.cond(x > 0.0, lambda: x * 2.0, lambda: -x)
            i, t = tf.while_loop(lambda i, t: i < 4, lambda i, t: [i + 1, t * x],
                                 [tf.constant(0), tf.constant(1.0)])
            dy, dt = tf.gradients(y, x)[0], tf.gradients(t, x)[0]
        with c.session() as s:
            assert s.run([y, dy, t, dt], {x: 3.0}) == [6, 2, 81, 108]
            assert s.run([y, dy, t, dt], {x: -1.0}) == [1, -1, 1, -4]
    finally:
        tf.disable_control_flow_v2()


@case(on=[ONE, TWO])
def py_free_ops(c):
    """A mixed bag of what programs use besides."""
    x = tf.placeholder(tf.float32, [None, 4])
    outs = [tf.nn.softmax(x), tf.nn.top_k(x, 2)[1], tf.one_hot([1, 3], 4), tf.concat([x, x], 1),
            tf.reduce_mean(x, 0), tf.argmax(x, 1), tf.boolean_mask(x, [True, False]),
            tf.strided_slice(x, [0, 1], [2, 4]), tf.nn.l2_loss(x), tf.where(x > 1.0, x, -x),
            tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones_like(x), logits=x),
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 2], logits=x),
            tf.split(x, 2, 1), tf.unstack(x, axis=1), tf.transpose(x), tf.pad(x, [[1, 0], [0, 1]]),
            tf.dynamic_partition(x, [0, 1], 2), tf.unique([3, 1, 3])[1], tf.cumsum(x, 1),
            tf.segment_sum(x, [0, 0]), tf.tensordot(x, x, [[1], [1]])]
    feed = {x: np.array([[1, 5, 2, 4], [0.5, 2, 0, 8]])}
    with tf.Session() as s:
        want = s.run(outs, feed)
    with c.session() as s:
        got = s.run(outs, feed)
    for o, w, g in zip(outs, want, got):
        for a, b in zip(w if isinstance(w, list) else [w], g if isinstance(g, list) else [g]):
            close(a, b)
