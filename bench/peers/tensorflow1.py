"""TensorFlow 1.15's side of the benchmarks; the same figures as bench/leat_bench.c prints."""
import os
import resource
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import warnings
warnings.filterwarnings("ignore")
import setting
import tensorflow as tf
tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)

BATCH, BATCHES = 100, 100


def mnist(seconds):
    x = tf.placeholder(tf.float32, [None, 784])
    y_ = tf.placeholder(tf.float32, [None, 10])
    hid_w = tf.Variable(tf.truncated_normal([784, 100], stddev=1.0 / 28), name="hid_w")
    hid_b = tf.Variable(tf.zeros([100]), name="hid_b")
    sm_w = tf.Variable(tf.truncated_normal([100, 10], stddev=0.1), name="sm_w")
    sm_b = tf.Variable(tf.zeros([10]), name="sm_b")
    h = tf.nn.relu(tf.nn.xw_plus_b(x, hid_w, hid_b))
    y = tf.nn.softmax(tf.nn.xw_plus_b(h, sm_w, sm_b))
    loss = -tf.reduce_sum(y_ * tf.log(tf.clip_by_value(y, 1e-10, 1.0)))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    s = tf.Session(config=setting.tensorflow_config())
    s.run(tf.global_variables_initializer())
    n = BATCHES if seconds else 1
    images, labels = setting.batches(n, BATCH)
    warm, steps = (200 if seconds else 1), 0
    while True:
        if steps == warm:
            start = time.perf_counter()
        if steps >= warm and (steps - warm) % 20 == 0 and time.perf_counter() - start >= seconds:
            if seconds:
                print("steps_per_s %.1f" % ((steps - warm) / (time.perf_counter() - start)))
            return
        s.run([loss, train], {x: images[steps % n], y_: labels[steps % n]})
        steps += 1


def scalars(ops, seconds):
    x, one = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    y = x
    for _ in range(ops):
        y = tf.add(y, one)
    s = tf.Session(config=setting.tensorflow_config())

    def timed(seconds):
        start, runs = time.perf_counter(), 0
        while runs % 16 or time.perf_counter() - start < seconds:
            s.run(y, {x: 0.0, one: 1.0})
            runs += 1
        return (time.perf_counter() - start) / runs

    timed(0.3)
    empty = 0.0
    if ops > 1:  # the time of a run without the ops
        z, w = x + one, s
        def base(seconds):
            start, runs = time.perf_counter(), 0
            while runs % 16 or time.perf_counter() - start < seconds:
                w.run(z, {x: 0.0, one: 1.0})
                runs += 1
            return (time.perf_counter() - start) / runs
        base(0.2)
        empty = base(min(seconds, 1))
    took = timed(seconds)
    if ops == 1:
        print("run_us %.3f" % (took * 1e6))
    else:
        print("op_ns %.2f" % ((took - empty) / ops * 1e9))


what, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 2
if what == "mnist":
    mnist(seconds)
elif what == "first":
    mnist(0)
elif what == "scalar":
    scalars(1, seconds)
elif what == "chain":
    scalars(1000, seconds)
print("peak_mb %.1f" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0))
