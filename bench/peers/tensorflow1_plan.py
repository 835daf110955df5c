"""tensorflow1_plan.py KIND NODES...: what plan_bench.c measures, by TensorFlow 1: a session's first run of a graph."""
import os
import resource
import sys
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import tensorflow as tf

tf = getattr(tf, 'compat', tf).v1 if hasattr(tf, 'compat') else tf


def chain(n):
    x = y = tf.placeholder(tf.float32, (2, 2))
    for _ in range(n):
        y = tf.negative(y)
    return y.op, {x: [[1, 2], [3, 4]]}


def variables(n):
    zeros = tf.zeros((2, 2))
    for _ in range(n // 3):
        tf.Variable(zeros)
    return tf.global_variables_initializer(), {}


def grid(n):
    side = int(n ** 0.5)
    x = tf.placeholder(tf.float32, (2, 2))
    row = [x] * side
    for _ in range(side):
        for j in range(side):
            row[j] = tf.add(row[j], row[j - 1] if j else x)
    return row[-1].op, {x: [[1, 2], [3, 4]]}


kinds = {'chain': chain, 'variables': variables, 'grid': grid}
print('%-12s %8s %9s %9s %8s' % ('graph', 'nodes', 'build ms', 'run ms', 'MB'))
for n in map(int, sys.argv[2:]):
    with tf.Graph().as_default() as g, tf.Session() as s:
        begin = time.time()
        target, feeds = kinds[sys.argv[1]](n)
        built = time.time()
        s.run(target, feeds)
        print('%-12s %8d %9.0f %9.0f %8d' % (sys.argv[1], len(g.get_operations()), (built - begin) * 1e3,
                                             (time.time() - built) * 1e3,
                                             resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024), flush=True)
