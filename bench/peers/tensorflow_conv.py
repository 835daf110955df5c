"""GFLOP/s of the convolutions of the CIFAR-10 net, and milliseconds of its pooling and normalisation, as
bench/conv_bench.c prints them, for TensorFlow 1.15 or 2.x.

    tensorflow_conv.py SECONDS THREADS [BATCH]
"""
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
LAYERS = [(24, 3, 64, 5), (12, 64, 64, 5)]


def fastest(s, op, seconds):
    best, start = None, time.perf_counter()
    while time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        s.run(op.op)
        took = time.perf_counter() - begin
        best = took if best is None else min(best, took)
    return best


def variables(shapes):
    return [tf1.get_variable("v%d" % i, initializer=np.random.rand(*n).astype(np.float32) - 0.5) for i, n in enumerate(shapes)]


def others(s, size, batch, seconds):
    """Max-pooling of images of size x size x 64, and of smaller ones LRN."""
    x, y = variables([(batch, size, size, 64), (batch, size // 2, size // 2, 64)])
    pool = dict(ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")
    lrn = dict(depth_radius=4, bias=1.0, alpha=0.001 / 9, beta=0.75)
    ops = [("pool", tf1.raw_ops.MaxPool(input=x, **pool)),
           ("pool_grad", tf1.raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=y, **pool))]
    if size < 24:
        ops += [("lrn", tf1.raw_ops.LRN(input=x, **lrn)),
                ("lrn_grad", tf1.raw_ops.LRNGrad(input_grads=x, input_image=x, output_image=x, **lrn))]
    s.run(tf1.global_variables_initializer())
    for name, op in ops:
        print("%dx64_%s_ms %.3f" % (size, name, 1e3 * fastest(s, op, seconds)))
        sys.stdout.flush()


def main(seconds, threads, batch=128):
    config = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
    for size, channels, out, window in LAYERS:
        with tf.Graph().as_default(), tf1.Session(config=config) as s:
            shapes = [(batch, size, size, channels), (window, window, channels, out), (batch, size, size, out)]
            x, w, dy = variables(shapes)
            kw = dict(strides=[1, 1, 1, 1], padding="SAME")
            ops = [("forward", tf1.raw_ops.Conv2D(input=x, filter=w, **kw)),
                   ("by_input", tf1.raw_ops.Conv2DBackpropInput(input_sizes=shapes[0], filter=w, out_backprop=dy, **kw)),
                   ("by_filter", tf1.raw_ops.Conv2DBackpropFilter(input=x, filter_sizes=shapes[1], out_backprop=dy, **kw))]
            s.run(tf1.global_variables_initializer())
            for name, op in ops:
                flops = 2.0 * batch * size * size * window * window * channels * out
                print("%dx%d_to_%d_%s_gflops %.1f" % (size, channels, out, name, flops / fastest(s, op, seconds) * 1e-9))
                sys.stdout.flush()
        with tf.Graph().as_default(), tf1.Session(config=config) as s:
            others(s, size, batch, seconds)


main(float(sys.argv[1]), int(sys.argv[2]), *[int(a) for a in sys.argv[3:]])
