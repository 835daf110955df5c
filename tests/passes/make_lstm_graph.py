"""Writes lstm_graph.pb, which fuse_lstm_test.c reads: a graph that TensorFlow's client makes of basic LSTM cells.

    python make_lstm_graph.py        (with TensorFlow 1.15)

Two layers of 6 units over 3 steps of a batch of 4; x, (4, 3, 5), is fed. Fetched: y, the outputs of all steps; dw0, dw1,
db0, db1 and dx, the gradients of the sum of y * y by the layers' weights and by x.
"""
import os

import tensorflow as tf

BATCH, STEPS, INPUTS, UNITS = 4, 3, 5, 6


def constant_getter(getter, name, shape, **options):
    """Weights are constants, so that the graph needs no initialisation."""
    count = 1
    for d in shape.as_list() if hasattr(shape, "as_list") else shape:
        count *= d
    values = [((7 * i + len(name)) % 13 - 6) / 12.0 for i in range(count)]
    kept = WEIGHTS.get(name)
    if kept is None:
        kept = WEIGHTS[name] = tf.constant(values, tf.float32, shape, name=name.replace("/", "_"))
    return kept


WEIGHTS = {}
x = tf.placeholder(tf.float32, [BATCH, STEPS, INPUTS], "x")
with tf.variable_scope("rnn", custom_getter=constant_getter):
    cells = [tf.nn.rnn_cell.BasicLSTMCell(UNITS, forget_bias=bias) for bias in (0.0, 1.0)]
    cell = tf.nn.rnn_cell.MultiRNNCell(cells)
    state, outputs = cell.zero_state(BATCH, tf.float32), []
    for t in range(STEPS):
        out, state = cell(x[:, t, :], state)
        outputs.append(out)
y = tf.stack(outputs, name="y")
loss = tf.reduce_sum(y * y)
names = sorted(WEIGHTS)
grads = tf.gradients(loss, [x] + [WEIGHTS[n] for n in names])
tf.identity(grads[0], "dx")
for n, g in zip(names, grads[1:]):
    layer = 0 if "cell_0" in n else 1
    tf.identity(g, ("dw%d" if n.endswith("kernel") else "db%d") % layer)
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lstm_graph.pb")
with open(path, "wb") as f:
    f.write(tf.get_default_graph().as_graph_def().SerializeToString())
