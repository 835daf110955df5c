"""Writes data/sequences.txt: what variables are after each of 4 updates by TensorFlow 1.15, and
what schedules and moving averages give. optimizer_test.c and schedule_test.c compute the same.
Run by hand, with TensorFlow 1.15: python make_sequences.py"""
import os
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.FATAL)
here = os.path.dirname(os.path.abspath(__file__))
out = open(os.path.join(here, 'data', 'sequences.txt'), 'w')


def put(name, values):
    out.write(name + ' ' + ' '.join('%.9g' % v for v in np.ravel(values)) + '\n')


def optimizers():
    t = tf.train
    yield 'sgd', t.GradientDescentOptimizer(0.1)
    yield 'momentum', t.MomentumOptimizer(0.1, 0.9)
    yield 'nesterov', t.MomentumOptimizer(0.1, 0.9, use_nesterov=True)
    yield 'adam', t.AdamOptimizer(0.1, beta1=0.8, beta2=0.99, epsilon=1e-7)
    yield 'adagrad', t.AdagradOptimizer(0.1)
    yield 'rmsprop', t.RMSPropOptimizer(0.1, decay=0.8, momentum=0.5, epsilon=1e-3)
    yield 'centered', t.RMSPropOptimizer(0.1, decay=0.8, momentum=0.5, epsilon=1e-3, centered=True)


for name, opt in optimizers():
    tf.reset_default_graph()
    w = tf.Variable([1.0, 2.0, -3.0])
    e = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    c = tf.constant([0.1, 0.2, 0.3])
    rows = tf.gather(e, [0, 2, 2])
    train = opt.minimize(tf.reduce_sum(w * w * c) + tf.reduce_sum(rows * rows * 0.1))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        for i in range(4):
            s.run(train)
            put('%s_dense %d' % (name, i), s.run(w))
            put('%s_sparse %d' % (name, i), s.run(e))

steps = [0, 1, 5, 9, 10, 11, 25, 100]
tf.reset_default_graph()
step = tf.placeholder(tf.int64, [])
t = tf.train
schedules = {
    'exponential': t.exponential_decay(0.5, step, 10, 0.9),
    'staircase': t.exponential_decay(0.5, step, 10, 0.9, staircase=True),
    'natural': t.natural_exp_decay(0.5, step, 10, 0.9),
    'inverse': t.inverse_time_decay(0.5, step, 10, 0.9, staircase=True),
    'polynomial': t.polynomial_decay(0.5, step, 10, 0.01, power=0.5),
    'cycle': t.polynomial_decay(0.5, step, 10, 0.01, power=2.0, cycle=True),
    'piecewise': t.piecewise_constant(step, [5, 10, 25], [1.0, 0.5, 0.25, 0.125]),
}
with tf.Session() as s:
    for name in sorted(schedules):
        put(name, [s.run(schedules[name], {step: i}) for i in steps])

for debias in (False, True):
    tf.reset_default_graph()
    v = tf.Variable([1.0, 2.0])
    n = tf.Variable(0)
    bump = tf.group(v.assign_add([1.0, -2.0]), n.assign_add(1))
    ema = t.ExponentialMovingAverage(0.9, n, zero_debias=debias)
    x = v * 3.0
    with tf.control_dependencies([bump]):
        x = tf.identity(v.read_value() * 3.0)
        apply = ema.apply([v, x])
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        for i in range(4):
            s.run(apply)
            put('ema%d %d' % (debias, i), [s.run(ema.average(v)), s.run(ema.average(x))])
out.close()
