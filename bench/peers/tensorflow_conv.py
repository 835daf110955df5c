"""GFLOP/s of the convolutions of the CIFAR-10 net, as bench/conv_bench.c prints them, for
TensorFlow 1.15 or 2.x.

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


def main(seconds, threads, batch=128):
    config = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
    for size, channels, out, window in LAYERS:
        with tf.Graph().as_default(), tf1.Session(config=config) as s:
            shapes = [(batch, size, size, channels), (window, window, channels, out), (batch, size, size, out)]
            x, w, dy = [tf1.get_variable("v%d" % i, initializer=np.random.rand(*n).astype(np.float32) - 0.5)
                        for i, n in enumerate(shapes)]
            kw = dict(strides=[1, 1, 1, 1], padding="SAME")
            ops = [("forward", tf1.raw_ops.Conv2D(input=x, filter=w, **kw)),
                   ("by_input", tf1.raw_ops.Conv2DBackpropInput(input_sizes=shapes[0], filter=w, out_backprop=dy, **kw)),
                   ("by_filter", tf1.raw_ops.Conv2DBackpropFilter(input=x, filter_sizes=shapes[1], out_backprop=dy, **kw))]
            s.run(tf1.global_variables_initializer())
            for name, op in ops:
                best, start = None, time.perf_counter()
                while time.perf_counter() - start < seconds:
                    begin = time.perf_counter()
                    s.run(op.op)
                    took = time.perf_counter() - begin
                    best = took if best is None else min(best, took)
                flops = 2.0 * batch * size * size * window * window * channels * out
                print("%dx%d_to_%d_%s_gflops %.1f" % (size, channels, out, name, flops / best * 1e-9))
                sys.stdout.flush()


main(float(sys.argv[1]), int(sys.argv[2]), *[int(a) for a in sys.argv[3:]])
