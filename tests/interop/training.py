"""Training: every optimizer against TensorFlow in one process; monitored sessions; supervisors."""
import glob
import os
import shutil
import tempfile

import numpy as np

from harness import LEAT_PS, ONE, TF_PS, TF2, TWO, case, client, close, finish, raises, tf

RATE = 0.05
OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(RATE),
    "momentum": lambda: tf.train.MomentumOptimizer(RATE, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(RATE, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(RATE),
    "adagrad": lambda: tf.train.AdagradOptimizer(RATE),
    "adagrad_da": lambda: tf.train.AdagradDAOptimizer(RATE, tf.train.get_global_step()),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(RATE),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(RATE, momentum=0.5),
    "rmsprop_centered": lambda: tf.train.RMSPropOptimizer(RATE, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(RATE, l1_regularization_strength=0.001),
    "ftrl_shrinkage": lambda: tf.train.FtrlOptimizer(
        RATE, l2_shrinkage_regularization_strength=0.01),
    "proximal_sgd": lambda: tf.train.ProximalGradientDescentOptimizer(
        RATE, l1_regularization_strength=0.001),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(
        RATE, l2_regularization_strength=0.001),
}


def place(c, i=0):
    if "ps" not in c.jobs:
        return tf.device(None)
    return tf.device(tf.train.replica_device_setter(
        ps_tasks=len(c.jobs["ps"]), worker_device="/job:worker/task:%d" % i))


def model(c, make, resource, sparse=True):
    """A net on an embedding: dense gradients, and those of rows."""
    rng = np.random.RandomState(1)
    with place(c), tf.variable_scope("model", use_resource=resource):
        step = tf.train.get_or_create_global_step()
        ids = tf.placeholder(tf.int32, [None, 2], name="ids")
        y = tf.placeholder(tf.float32, [None, 1], name="y")
        table = tf.get_variable("table", initializer=rng.randn(10, 4).astype(np.float32))
        w = tf.get_variable("w", initializer=0.3 * rng.randn(8, 6).astype(np.float32))
        b = tf.get_variable("b", initializer=np.zeros(6, np.float32))
        u = tf.get_variable("u", initializer=0.3 * rng.randn(6, 1).astype(np.float32))
        rows = tf.nn.embedding_lookup(table, ids)
        hidden = tf.nn.relu(tf.matmul(tf.reshape(rows, [-1, 8]), w) + b)
        loss = tf.reduce_mean(tf.square(tf.matmul(hidden, u) - y))
        train = make().minimize(loss, global_step=step)
    feed = {ids: rng.randint(0, 10, [16, 2]), y: rng.randn(16, 1)}
    return loss, train, step, feed


def losses(s, loss, train, step, feed):
    s.run(tf.global_variables_initializer())
    seen = [s.run([loss, train], feed)[0] for _ in range(6)]
    assert s.run(step) == 6
    return seen


def optimizers(c, resource):
    for name in sorted(OPTIMIZERS):
        with tf.Graph().as_default():
            built = model(c, OPTIMIZERS[name], resource)
            with c.session() as s:
                got = losses(s, *built)
        with tf.Graph().as_default():  # the same without devices
            c_local = type("local", (), {"jobs": {}})
            built = model(c_local, OPTIMIZERS[name], resource)
            with tf.Session() as s:
                want = losses(s, *built)
        try:
            close(got, want)
        except AssertionError as e:
            raise AssertionError("%s: %s" % (name, e))
        if name not in ("adagrad_da",):
            assert got[-1] < got[0], (name, got)
        tf.Session.reset(c.target())


@case(on=[ONE, TWO, LEAT_PS, TF_PS], limit=150)
def optimizers_ref(c):
    optimizers(c, False)


@case(on=[ONE, TWO, LEAT_PS, TF_PS], limit=150)
def optimizers_resource(c):
    optimizers(c, True)


@case(on=[ONE, TWO])
def schedules_and_averages(c):
    def build(jobs):
        with place(jobs):
            step = tf.train.get_or_create_global_step()
            v = tf.get_variable("v", initializer=[1.0, -2.0])
            rate = tf.train.exponential_decay(0.1, step, 2, 0.5, staircase=True)
            loss = tf.reduce_sum(v * v)
            opt = tf.train.GradientDescentOptimizer(rate)
            grads = opt.compute_gradients(loss)
            clipped, _ = tf.clip_by_global_norm([g for g, _ in grads], 1.0)
            apply = opt.apply_gradients(zip(clipped, [v]), step)
            ema = tf.train.ExponentialMovingAverage(0.9, step)
            with tf.control_dependencies([apply]):
                train = ema.apply([v])
        return loss, train, ema.average(v), rate

    def run(s, loss, train, average, rate):
        s.run(tf.global_variables_initializer())
        for _ in range(5):
            s.run(train)
        return s.run([loss, rate]), s.run(average)

    with c.session() as s:
        got = run(s, *build(c))
    with tf.Graph().as_default(), tf.Session() as s:
        want = run(s, *build(type("local", (), {"jobs": {}})))
    close(got[0], want[0])
    close(got[1], want[1])


@case(on=[ONE, TWO, LEAT_PS, TF_PS])
def monitored(c):
    """Hooks are called, checkpoints are written by the server and found again."""
    folder = tempfile.mkdtemp(prefix="interop-ckpt-")
    seen = []

    class Note(tf.train.SessionRunHook):
        def begin(self):
            seen.append("begin")

        def after_create_session(self, session, coord):
            seen.append("created")

        def before_run(self, context):
            return tf.train.SessionRunArgs(tf.train.get_global_step())

        def after_run(self, context, values):
            seen.append(int(values.results))

        def end(self, session):
            seen.append("end")

    loss, train, step, feed = model(c, OPTIMIZERS["adam"], False)
    tf.summary.scalar("loss", loss)
    config = tf.ConfigProto(operation_timeout_in_ms=25000)

    def run(last):
        hooks = [Note(), tf.train.StopAtStepHook(last_step=last), tf.train.NanTensorHook(loss),
                 tf.train.LoggingTensorHook([loss], every_n_iter=2),
                 tf.train.StepCounterHook(every_n_steps=2), tf.train.FinalOpsHook(step)]
        values = []
        with tf.train.MonitoredTrainingSession(
                c.target(), checkpoint_dir=folder, hooks=hooks, save_checkpoint_steps=3,
                save_summaries_steps=2, save_summaries_secs=None, config=config,
                log_step_count_steps=2) as s:
            while not s.should_stop():
                values.append(s.run([loss, train], feed)[0])
        return values

    first = run(5)
    assert seen[:2] == ["begin", "created"] and seen[-1] == "end", seen
    assert tf.train.latest_checkpoint(folder).endswith("model.ckpt-5")
    second = run(8)  # from the checkpoint on
    assert len(first) == 5 and len(second) == 3 and second[0] < first[-1] + 1e-6
    names = dict(tf.train.list_variables(tf.train.latest_checkpoint(folder)))
    assert names["model/w"] == [8, 6] and any("w/Adam" in n for n in names), names
    assert glob.glob(os.path.join(folder, "events.out.tfevents.*"))
    shutil.rmtree(folder)


@case(on=[ONE, TWO])
def supervisor(c):
    folder = tempfile.mkdtemp(prefix="interop-sv-")
    with place(c):
        step = tf.train.get_or_create_global_step()
        v = tf.get_variable("v", initializer=3.0)
        train = tf.group(v.assign_sub(0.5), step.assign_add(1))
    tf.summary.scalar("v", v)
    config = tf.ConfigProto(operation_timeout_in_ms=25000)
    for last in (3, 6):
        sv = tf.train.Supervisor(logdir=folder, global_step=step, save_model_secs=0,
                                 recovery_wait_secs=1)
        s = sv.prepare_or_wait_for_session(c.target(), config=config)
        sv.start_queue_runners(s)
        while not sv.should_stop() and s.run(step) < last:
            s.run(train)
        sv.saver.save(s, sv.save_path, global_step=step)
        assert s.run(v) == 3.0 - 0.5 * last
        sv.stop()
        tf.Session.reset(c.target())
    shutil.rmtree(folder)


@case(on=[ONE, TWO, TF_PS, LEAT_PS])
def saver(c):
    """What the server saves TensorFlow reads, and the other way round; sharded, too."""
    folder = tempfile.mkdtemp(prefix="interop-saver-")
    with place(c):
        v = tf.get_variable("v", initializer=np.arange(12, dtype=np.float32).reshape(3, 4))
        n = tf.get_variable("n", initializer=np.int64(7), use_resource=True)
        t = tf.get_variable("t", initializer=["a", "bb"])
        p = tf.get_variable("p", [6, 2], partitioner=tf.fixed_size_partitioner(2))
    plain, sharded = tf.train.Saver(), tf.train.Saver(sharded=True)
    with c.session() as s:
        s.run(tf.global_variables_initializer())
        was = s.run([v, n, t, tf.convert_to_tensor(p)])
        one = plain.save(s, os.path.join(folder, "one"), global_step=1)
        two = sharded.save(s, os.path.join(folder, "two"))
        for path in (one, two):
            reader = tf.train.load_checkpoint(path)
            assert (reader.get_tensor("v") == was[0]).all() and reader.get_tensor("n") == 7
            assert (reader.get_tensor("p") == was[3]).all()
            s.run([v.assign(v * 0), n.assign(0), t.assign(["", ""])])
            plain.restore(s, path)
            now = s.run([v, n, t, tf.convert_to_tensor(p)])
            for a, b in zip(was, now):
                assert (a == b).all(), (a, b)
    meta = one + ".meta"
    with tf.Graph().as_default(), c.session() as s:
        tf.train.import_meta_graph(meta).restore(s, one)
        assert s.run(tf.global_variables()[0]).shape == (3, 4)
    shutil.rmtree(folder)


def replicas(c, n, mode):
    p = [client("replica.py", c.target("worker", i), i, n, mode) for i in range(n)]
    return [finish(x, 100) for x in p]


@case(on=[{"ps": ["leat"], "worker": ["leat", "leat"]}, {"ps": ["leat"], "worker": ["tf", "tf"]},
          {"ps": ["tf"], "worker": ["leat", "tf"]}], limit=120)
def sync_replicas(c):
    """Two clients, one chief: rounds in lock step, as many as the step counts."""
    lines = replicas(c, 2, "sync")
    steps = [int(l[-1].split()[1]) for l in lines]
    assert min(steps) >= 20, lines
    assert all(float(l[-1].split()[3]) < float(l[0].split()[3]) for l in lines), lines


@case(on=[{"ps": ["leat"], "worker": ["leat", "leat"]}, {"ps": ["leat"], "worker": ["tf", "leat"]}],
      limit=120)
def async_replicas(c):
    lines = replicas(c, 2, "async")
    assert all(int(l[-1].split()[1]) >= 20 for l in lines), lines


@case()
def summary_writers(c):
    """The writers of tf.contrib.summary and tf.compat.v2.summary: the server writes the files, TensorFlow reads them."""
    d = tempfile.mkdtemp()
    try:
        ops = tf.contrib.summary if hasattr(tf, "contrib") else None
        if ops is None:
            from tensorflow.python.ops import summary_ops_v2 as ops
        step = tf.train.get_or_create_global_step()
        writer = (ops.create_file_writer(d, max_queue=100, flush_millis=1000000)
                  if hasattr(ops, "create_file_writer") else ops.create_file_writer_v2(d))
        image = np.arange(2 * 3 * 4 * 3, dtype=np.uint8).reshape(2, 3, 4, 3)
        if hasattr(ops, "scalar") and hasattr(ops, "always_record_summaries"):
            with writer.as_default(), ops.always_record_summaries():
                writes = [ops.scalar("s", tf.constant(2.5), step=step), ops.histogram("h", tf.range(10.0), step=step),
                          ops.image("i", tf.constant(image), step=step, max_images=2),
                          ops.audio("a", tf.zeros([1, 20, 1]), 8000.0, 1, step=step),
                          ops.generic("g", tf.constant([b"x", b"y"]), step=step)]
        else:
            with writer.as_default(step=step):
                writes = [ops.write("s", 2.5), ops.write("g", tf.constant([b"x", b"y"]))]
        init = ops.summary_writer_initializer_op() if hasattr(ops, "summary_writer_initializer_op") else writer.init()
        flush, close_it = writer.flush(), writer.close()
        with c.session() as s:
            s.run(tf.global_variables_initializer())
            s.run(init)
            s.run(writes)
            path, = glob.glob(d + "/events*")
            s.run(flush)
            seen = [v for e in tf.train.summary_iterator(path) for v in e.summary.value]
            tags = sorted(v.tag for v in seen)
            assert tags == (["a/audio", "g", "h", "i/image/0", "i/image/1", "s"] if len(writes) > 2 else ["g", "s"]), tags
            for v in seen:
                if v.tag == "g":
                    assert tf.make_ndarray(v.tensor).tolist() == [b"x", b"y"]
                if v.tag == "h":
                    assert v.histo.num == 10 and v.histo.max == 9 and v.histo.sum == 45
                if v.tag == "i/image/1":
                    with tf.Graph().as_default(), tf.Session() as mine:
                        assert (mine.run(tf.image.decode_png(v.image.encoded_image_string)) == image[1]).all()
            s.run(close_it)
            raises(tf.errors.NotFoundError, lambda: s.run(writes[0]), "does not exist")
    finally:
        shutil.rmtree(d)
