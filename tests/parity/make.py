"""Exports an MNIST net with its seeds from TensorFlow 1.15, and the losses of 100 of its steps.

    python make.py        writes mnist.pb and mnist.losses beside this file

parity_test.c runs the same GraphDef on the same batches, which both sides compute by the same formula.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH, STEPS = 100, 100


def batch(step):
    i = np.arange(BATCH * 784, dtype=np.uint64) + np.uint64(step * BATCH * 784)
    noise = ((i * np.uint64(2654435761)) % np.uint64(1 << 32)).astype(np.float64) / (1 << 32)
    row = np.arange(BATCH)
    label = (row * 7 + step) % 10
    x = (0.3 * noise).astype(np.float32).reshape(BATCH, 784)
    for r in range(BATCH):  # each class lights a band of its own
        x[r, label[r] * 78:label[r] * 78 + 40] += np.float32(0.5)
    return x, np.eye(10, dtype=np.float32)[label]


tf.set_random_seed(1234)
x = tf.placeholder(tf.float32, [None, 784], name="x")
y_ = tf.placeholder(tf.float32, [None, 10], name="y_")
hid_w = tf.Variable(tf.truncated_normal([784, 100], stddev=1.0 / 28), name="hid_w")
hid_b = tf.Variable(tf.zeros([100]), name="hid_b")
sm_w = tf.Variable(tf.truncated_normal([100, 10], stddev=0.1), name="sm_w")
sm_b = tf.Variable(tf.zeros([10]), name="sm_b")
h = tf.nn.relu(tf.nn.xw_plus_b(x, hid_w, hid_b))
y = tf.nn.softmax(tf.nn.xw_plus_b(h, sm_w, sm_b))
loss = tf.negative(tf.reduce_sum(y_ * tf.log(tf.clip_by_value(y, 1e-10, 1.0))), name="loss")
train = tf.train.AdamOptimizer(0.001).minimize(loss, global_step=tf.train.get_or_create_global_step(), name="train")
init = tf.global_variables_initializer()
with open(os.path.join(HERE, "mnist.pb"), "wb") as f:
    f.write(tf.get_default_graph().as_graph_def().SerializeToString(deterministic=True))
with tf.Session() as s, open(os.path.join(HERE, "mnist.losses"), "w") as f:
    s.run(init)
    for step in range(STEPS):
        images, labels = batch(step)
        value, _ = s.run([loss, train], {x: images, y_: labels})
        f.write("%.9g\n" % value)
