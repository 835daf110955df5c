"""The PTB tutorial's language model, trained as bench/ptb_bench.c trains it, by TensorFlow 1.15 or 2.x. The graph is
the one that ptb_word_lm.py builds: an embedding, layers of LSTM unrolled over the steps of a batch, a softmax over the
vocabulary, gradients clipped by their global norm.

    tensorflow_ptb.py train MODEL CELL SECONDS [TARGET]    words/s; MODEL small, medium or large; CELL basic, block,
                                                           fused or dynamic; TARGET: the session of a server
    tensorflow_ptb.py trace MODEL CELL SECONDS TARGET FILE writes the run metadata of a step
    tensorflow_ptb.py export MODEL CELL STEPS PREFIX       writes the graph to PREFIX.pb, its initial values to
                                                           PREFIX.ckpt and the losses of so many batches to PREFIX.txt
"""
import collections
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

if tensorflow.__version__ < "2":
    cells = tf.nn.rnn_cell
else:  # tf.nn.rnn_cell needs a package of its own since Keras 3; TensorFlow has kept its cells here
    from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl as cells

Config = collections.namedtuple("Config", "units layers steps scale norm keep batch vocabulary")
CONFIGS = {
    "small": Config(200, 2, 20, 0.1, 5, 1.0, 20, 10000),
    "medium": Config(650, 2, 35, 0.05, 5, 0.5, 20, 10000),
    "large": Config(1500, 2, 35, 0.04, 10, 0.35, 20, 10000),
}


def one_cell(c, kind):
    if kind == "block":
        from tensorflow.contrib.rnn import LSTMBlockCell
        cell = LSTMBlockCell(c.units, forget_bias=0.0)
    else:
        cell = cells.BasicLSTMCell(c.units, forget_bias=0.0)
    return cells.DropoutWrapper(cell, output_keep_prob=c.keep) if c.keep < 1 else cell


def rows_of(x, c):
    return tf.reshape(x, [-1, c.units])


def unrolled(c, x, kind):
    """The outputs of all steps as rows, batch by batch; the initial and the final state."""
    cell = cells.MultiRNNCell([one_cell(c, kind) for _ in range(c.layers)])
    first = state = cell.zero_state(c.batch, tf.float32)
    if kind == "dynamic":
        outputs, state = tf.nn.dynamic_rnn(cell, x, initial_state=first, scope="RNN")
        return rows_of(outputs, c), first, state
    outputs = []
    with tf.variable_scope("RNN"):
        for t in range(c.steps):
            if t > 0:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(x[:, t, :], state)
            outputs.append(output)
    return rows_of(tf.concat(outputs, 1), c), first, state


def fused(c, x):
    """LSTMBlockFusedCell: one op for all steps of a layer."""
    from tensorflow.contrib.rnn import LSTMBlockFusedCell, LSTMStateTuple
    x, first, last = tf.transpose(x, [1, 0, 2]), [], []
    for i in range(c.layers):
        zeros = tf.zeros([c.batch, c.units])
        first.append(LSTMStateTuple(zeros, tf.identity(zeros)))
        with tf.variable_scope("RNN/multi_rnn_cell/cell_%d" % i):
            x, state = LSTMBlockFusedCell(c.units, forget_bias=0.0, name="lstm_cell")(x, initial_state=first[-1])
        last.append(state)
        if c.keep < 1:
            x = tf.nn.dropout(x, rate=1 - c.keep)
    return rows_of(tf.transpose(x, [1, 0, 2]), c), tuple(first), tuple(last)


Model = collections.namedtuple("Model", "x y first last loss train lr")


def build(c, kind):
    x = tf.placeholder(tf.int32, [c.batch, c.steps], "x")
    y = tf.placeholder(tf.int32, [c.batch, c.steps], "y")
    with tf.variable_scope("Model", initializer=tf.random_uniform_initializer(-c.scale, c.scale)):
        with tf.device("/cpu:0"):
            words = tf.nn.embedding_lookup(tf.get_variable("embedding", [c.vocabulary, c.units]), x)
        if c.keep < 1:
            words = tf.nn.dropout(words, rate=1 - c.keep)
        output, first, last = fused(c, words) if kind == "fused" else unrolled(c, words, kind)
        w = tf.get_variable("softmax_w", [c.units, c.vocabulary])
        logits = tf.nn.xw_plus_b(output, w, tf.get_variable("softmax_b", [c.vocabulary]))
        # What tf.contrib.seq2seq.sequence_loss computes when all weights are ones.
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(y, [-1]), logits=logits)
        weights = tf.ones([c.batch, c.steps])
        each = tf.reshape(each * tf.reshape(weights, [-1]), [c.batch, c.steps])
        loss = tf.reduce_sum(tf.reduce_sum(each, 0) / (tf.reduce_sum(weights, 0) + 1e-12))
        lr = tf.Variable(1.0, trainable=False, name="lr")
        variables = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), c.norm)
        train = tf.train.GradientDescentOptimizer(lr).apply_gradients(
            zip(grads, variables), global_step=tf.train.get_or_create_global_step())
    return Model(x, y, first, last, loss, train, lr)


def flat(states):
    return [t for s in states for t in s]


def batches(c):
    """Words that follow each other as in bench/ptb_bench.c: drawn from a skewed distribution."""
    r = np.random.RandomState(1)
    while True:
        words = (c.vocabulary * r.rand(c.batch, c.steps + 1) ** 3).astype(np.int32)
        yield words[:, :-1], words[:, 1:]


def session(target=""):
    config = tf.ConfigProto(intra_op_parallelism_threads=setting.THREADS, inter_op_parallelism_threads=setting.THREADS)
    return tf.Session(target, config=config)


def train(name, kind, seconds, target=""):
    c = CONFIGS[name]
    m = build(c, kind)
    first, last = flat(m.first), flat(m.last)
    with session(target) as s:
        s.run(tf.global_variables_initializer())
        state = s.run(first)
        step = s.make_callable([m.loss] + last + [m.train.name], feed_list=[m.x, m.y] + first) if not target else None
        if target:
            step = lambda x, y, *state: s.run([m.loss] + last + [m.train], dict(zip([m.x, m.y] + first, (x, y) + state)))
        source, steps, start, took = batches(c), -3, 0.0, 0.0
        while took < seconds:
            if steps == 0:
                start, cpu = time.perf_counter(), time.process_time()
            out = step(*next(source), *state)
            state, steps = out[1:-1], steps + 1
            took = time.perf_counter() - start if steps > 0 else 0.0
        cpu = time.process_time() - cpu
    words = steps * c.batch * c.steps
    print("words_per_s %.1f\ncpu_us_per_word %.2f\nloss %.4f" % (words / took, 1e6 * cpu / words, out[0]))
    print("peak_mb %.1f" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0))


def trace(name, kind, target, path):
    c = CONFIGS[name]
    m = build(c, kind)
    first = flat(m.first)
    with session(target) as s:
        s.run(tf.global_variables_initializer())
        state, source, meta = s.run(first), batches(c), tf.RunMetadata()
        for i in range(6):
            x, y = next(source)
            s.run([m.loss, m.train], dict(zip([m.x, m.y] + first, [x, y] + state)),
                  options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE) if i == 5 else None, run_metadata=meta)
    open(path, "wb").write(meta.SerializeToString())


def export(name, kind, steps, prefix):
    c = CONFIGS[name]
    tf.set_random_seed(7)
    m = build(c, kind)
    saver, first, source, losses = tf.train.Saver(), flat(m.first), batches(c), []
    with session() as s:
        s.run(tf.global_variables_initializer())
        saver.save(s, prefix + ".ckpt", write_meta_graph=False)
        with open(prefix + ".pb", "wb") as f:
            f.write(tf.get_default_graph().as_graph_def().SerializeToString())
        state, words = s.run(first), []
        for _ in range(steps):
            x, y = next(source)
            words.append(np.concatenate([x, y], 1))
            out = s.run([m.loss, m.train] + flat(m.last), dict(zip([m.x, m.y] + first, [x, y] + state)))
            losses.append(out[0])
            state = out[2:]
    np.save(prefix + ".npy", np.array(words))
    with open(prefix + ".txt", "w") as f:
        f.write("".join("%.9g\n" % v for v in losses))


if __name__ == "__main__":
    what, args = sys.argv[1], sys.argv[2:]
    if what == "train":
        train(args[0], args[1], float(args[2]), *args[3:])
    elif what == "trace":
        trace(args[0], args[1], args[3], args[4])
    else:
        export(args[0], args[1], int(args[2]), args[3])
