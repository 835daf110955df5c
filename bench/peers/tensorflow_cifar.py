"""Towers of the CIFAR-10 net, trained as bench/cifar_bench.c trains them, by TensorFlow 1.15 or 2.x.

    tensorflow_cifar.py towers N SECONDS
"""
import os
import resource
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import warnings
warnings.filterwarnings("ignore")
import setting
import numpy as np
import tensorflow
tf = tensorflow.compat.v1
tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)

BATCH, SIDE = 128, 24


def variable(name, shape, deviation=None, value=0.0):
    init = tf.truncated_normal_initializer(stddev=deviation) if deviation else tf.constant_initializer(value)
    with tf.device("/cpu:0"):
        return tf.get_variable(name, shape, initializer=init)


def weights(shape, deviation, decay):
    w = variable("weights", shape, deviation)
    if decay:
        tf.add_to_collection("losses", tf.nn.l2_loss(w) * decay)
    return w


def convolution(scope, x, depth, bias):
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        y = tf.nn.conv2d(x, weights([5, 5, depth, 64], 0.05, 0), [1, 1, 1, 1], "SAME")
        return tf.nn.relu(tf.nn.bias_add(y, variable("biases", [64], value=bias)))


def connected(scope, x, inputs, outputs):
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        return tf.nn.relu(tf.matmul(x, weights([inputs, outputs], 0.04, 0.004)) + variable("biases", [outputs], value=0.1))


def pooled(x):
    return tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME")


def normalised(x):
    return tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)


def loss_of(images, labels, scope):
    x = normalised(pooled(convolution("conv1", images, 3, 0.0)))
    x = pooled(normalised(convolution("conv2", x, 64, 0.1)))
    x = connected("local3", tf.reshape(x, [BATCH, -1]), 6 * 6 * 64, 384)
    x = connected("local4", x, 384, 192)
    with tf.variable_scope("softmax_linear", reuse=tf.AUTO_REUSE):
        logits = tf.matmul(x, weights([192, 10], 1 / 192.0, 0)) + variable("biases", [10])
    tf.add_to_collection("losses", tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)))
    return tf.add_n(tf.get_collection("losses", scope))


def build(towers):
    """The training op, the last tower's loss, and feeds."""
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.01, step, 50000 // BATCH * 350, 0.1, staircase=True)
    opt, grads, feeds = tf.train.GradientDescentOptimizer(rate), [], {}
    for i in range(towers):
        with tf.device("/cpu:%d" % i), tf.name_scope("tower_%d" % i) as scope:
            images = tf.placeholder(tf.float32, [BATCH, SIDE, SIDE, 3])
            labels = tf.placeholder(tf.int64, [BATCH])
            feeds[images] = np.random.rand(BATCH, SIDE, SIDE, 3).astype("f") * 2 - 1
            feeds[labels] = np.random.randint(0, 10, BATCH)
            loss = loss_of(images, labels, scope)
            grads.append(opt.compute_gradients(loss))
    mean = [(tf.add_n([g for g, _ in each]) / towers if towers > 1 else each[0][0], each[0][1]) for each in zip(*grads)]
    applied = opt.apply_gradients(mean, step)
    average = tf.train.ExponentialMovingAverage(0.9999, step)
    with tf.control_dependencies([applied]):
        return average.apply(tf.trainable_variables()), loss, feeds


def main(towers, seconds):
    with tf.device("/cpu:0"):
        train, loss, feeds = build(towers)
    config = tf.ConfigProto(device_count={"CPU": towers}, intra_op_parallelism_threads=setting.THREADS,
                            inter_op_parallelism_threads=setting.THREADS)
    with tf.Session(config=config) as s:
        s.run(tf.global_variables_initializer())
        step = s.make_callable([loss, train.op if hasattr(train, "op") else train], feed_list=list(feeds))
        values = list(feeds.values())
        for _ in range(3):
            step(*values)
        start, steps, took = time.perf_counter(), 0, 0.0
        while took < seconds:
            value = step(*values)[0]
            steps += 1
            took = time.perf_counter() - start
    print("examples_per_s %.1f\nloss %.4f" % (steps * towers * BATCH / took, value))
    print("peak_mb %.1f" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0))


main(int(sys.argv[2]), float(sys.argv[3]))
