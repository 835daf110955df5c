"""Writes data/rnn.txt: what TensorFlow 1.15's recurrent nets give, for rnn_test.c, which builds the same nets. Of each
net, the variables with their shapes, outputs, final states, and gradients of a weighted sum of the outputs.
Run by hand, with TensorFlow 1.15: python make_rnn.py"""
import os
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np
import tensorflow as tf
from tensorflow.contrib import rnn as contrib

tf.logging.set_verbosity(tf.logging.FATAL)
here = os.path.dirname(os.path.abspath(__file__))
out = open(os.path.join(here, 'data', 'rnn.txt'), 'w')
cells = tf.nn.rnn_cell
BATCH, TIME, DEPTH, UNITS = 2, 4, 3, 3


def values(shape, k):
    """Element i of tensor number k: what rnn_test.c computes, too."""
    n = int(np.prod(shape))
    return (0.6 * np.sin(0.7 * np.arange(n) + 1.3 * k)).reshape(shape)


def put(name, v):
    out.write(name + ' ' + ' '.join('%.7g' % x for x in np.ravel(v)) + '\n')


def flat(state):
    return tf.contrib.framework.nest.flatten(state)


def net(name, build, dtype=tf.float64):
    tf.reset_default_graph()
    x = tf.placeholder(dtype, [BATCH, TIME, DEPTH])
    outputs, states = build(x)
    variables = tf.trainable_variables()
    for v in variables:
        out.write('%s.variable %s %s\n' % (name, v.op.name, ','.join(str(d) for d in v.shape.as_list())))
    weights = values(outputs.shape.as_list(), 50)
    loss = tf.reduce_sum(outputs * weights) + sum(tf.reduce_sum(s * values(s.shape.as_list(), 60 + i))
                                                  for i, s in enumerate(flat(states)))
    grads = tf.gradients(loss, [x] + variables)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        for k, v in enumerate(variables):
            v.load(values(v.shape.as_list(), k), s)
        got = s.run([outputs, flat(states), [tf.convert_to_tensor(g) for g in grads]], {x: values([BATCH, TIME, DEPTH], 40)})
    put(name + '.outputs', got[0])
    put(name + '.states', np.concatenate([np.ravel(t) for t in got[1]]))
    put(name + '.grads', np.concatenate([np.ravel(g) for g in got[2]]))


def static(make, **more):
    def build(x):
        y, state = tf.nn.static_rnn(make(), tf.unstack(x, axis=1), dtype=tf.float64, **more)
        return tf.stack(y, axis=1), state
    return build


def dynamic(make, **more):
    return lambda x: tf.nn.dynamic_rnn(make(), x, dtype=tf.float64, **more)


LENGTHS = [3, 1]
net('basic_rnn', static(lambda: cells.BasicRNNCell(UNITS)))
net('basic_lstm', static(lambda: cells.BasicLSTMCell(UNITS)))
net('basic_lstm_options', static(lambda: cells.BasicLSTMCell(UNITS, forget_bias=0.0, activation=tf.nn.relu)))
net('lstm', static(lambda: cells.LSTMCell(UNITS)))
net('lstm_full', static(lambda: cells.LSTMCell(UNITS, use_peepholes=True, cell_clip=0.2, num_proj=2, proj_clip=0.1)))
net('lstm_peepholes', static(lambda: cells.LSTMCell(UNITS, use_peepholes=True, num_proj=2, forget_bias=0.5)))
net('lstm_slices', static(lambda: cells.LSTMCell(UNITS, num_unit_shards=2)))
net('gru', static(lambda: cells.GRUCell(UNITS)))
net('layer_norm', static(lambda: contrib.LayerNormBasicLSTMCell(UNITS, norm_gain=0.9, norm_shift=0.1)))
net('no_layer_norm', static(lambda: contrib.LayerNormBasicLSTMCell(UNITS, layer_norm=False)))
net('multi', static(lambda: cells.MultiRNNCell([cells.BasicLSTMCell(UNITS), cells.GRUCell(2)])))
net('residual', static(lambda: cells.MultiRNNCell([cells.ResidualWrapper(cells.BasicLSTMCell(UNITS))] * 1)))
net('static_lengths', static(lambda: cells.BasicLSTMCell(UNITS), sequence_length=LENGTHS))
net('dynamic', dynamic(lambda: cells.MultiRNNCell([cells.BasicLSTMCell(UNITS), cells.BasicLSTMCell(2)])))
net('dynamic_lengths', dynamic(lambda: cells.BasicLSTMCell(UNITS), sequence_length=LENGTHS))
net('dynamic_odd_lengths', dynamic(lambda: cells.GRUCell(UNITS), sequence_length=[9, -2]))
net('dynamic_swapped', dynamic(lambda: cells.GRUCell(UNITS), swap_memory=True, parallel_iterations=1))


def bidirectional(x, lengths=None):
    y, states = tf.nn.bidirectional_dynamic_rnn(cells.BasicLSTMCell(UNITS), cells.GRUCell(UNITS), x, dtype=tf.float64,
                                                sequence_length=lengths)
    return tf.concat(y, 2), states


def static_bidirectional(x, lengths=None):
    y, fw, bw = tf.nn.static_bidirectional_rnn(cells.BasicLSTMCell(UNITS), cells.GRUCell(UNITS), tf.unstack(x, axis=1),
                                               dtype=tf.float64, sequence_length=lengths)
    return tf.stack(y, axis=1), (fw, bw)


net('bidirectional', bidirectional)
net('bidirectional_lengths', lambda x: bidirectional(x, LENGTHS))
net('static_bidirectional', static_bidirectional)
net('static_bidirectional_lengths', lambda x: static_bidirectional(x, LENGTHS))


def raw(x):
    """Sequence b ends after 3 - b steps; what is emitted is the output's double, and the count of steps is passed."""
    cell, steps = cells.GRUCell(UNITS), tf.TensorArray(tf.float64, TIME).unstack(tf.transpose(x, [1, 0, 2]))

    def fn(time, output, state, count):
        finished = time >= tf.constant(LENGTHS)
        ends = tf.reduce_all(finished)
        step = tf.cond(ends, lambda: tf.zeros([BATCH, DEPTH], tf.float64), lambda: steps.read(time))
        step.set_shape([BATCH, DEPTH])
        if output is None:
            return finished, step, cell.zero_state(BATCH, tf.float64), tf.zeros([UNITS], tf.float64), tf.constant(10)
        return finished, step, state, output * 2, count + 1
    emitted, state, count = tf.nn.raw_rnn(cell, fn)
    emitted = emitted.stack()
    emitted.set_shape([max(LENGTHS), BATCH, UNITS])
    return emitted, (state, tf.cast(tf.fill([1, 1], count), tf.float64))


net('raw', raw)


# ---- Cells whose ops are of floats ----
def unrolled(make):
    def build(x):
        y, state = tf.nn.static_rnn(make(), tf.unstack(x, axis=1), dtype=tf.float32)
        return tf.stack(y, axis=1), state
    return build


def fused(lengths=None, **more):
    def build(x):
        y, state = contrib.LSTMBlockFusedCell(UNITS, **more)(tf.transpose(x, [1, 0, 2]), dtype=tf.float32, sequence_length=lengths)
        return tf.transpose(y, [1, 0, 2]), state
    return build


net('block_lstm_cell', unrolled(lambda: contrib.LSTMBlockCell(UNITS, forget_bias=0.0)), tf.float32)
net('block_lstm_cell_peepholes', unrolled(lambda: contrib.LSTMBlockCell(UNITS, use_peephole=True, cell_clip=0.2)), tf.float32)
net('block_gru_cell', unrolled(lambda: contrib.GRUBlockCellV2(UNITS)), tf.float32)
net('block_lstm', fused(), tf.float32)
net('block_lstm_lengths', fused(LENGTHS, use_peephole=True), tf.float32)


# ---- Dropout, whose values come from the seeds of wrapper and graph ----
def dropout(name, **more):
    tf.reset_default_graph()
    tf.set_random_seed(7)
    x = tf.placeholder(tf.float32, [BATCH, TIME, DEPTH])
    cell = cells.DropoutWrapper(cells.BasicLSTMCell(UNITS), seed=5, **more)
    y, state = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        for k, v in enumerate(tf.trainable_variables()):
            v.load(values(v.shape.as_list(), k), s)
        put(name + '.outputs', s.run(tf.stack(y, axis=1), {x: values([BATCH, TIME, DEPTH], 40)}))


dropout('dropout', input_keep_prob=0.7, output_keep_prob=0.5, state_keep_prob=0.6)
dropout('variational', input_keep_prob=0.7, output_keep_prob=0.5, state_keep_prob=0.6, variational_recurrent=True,
        input_size=DEPTH, dtype=tf.float32)
out.close()
