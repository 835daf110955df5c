"""Writes data/embedding.txt: what TensorFlow 1.15 gives for lookups, sampled losses, losses of sequences and
updates of rows, for embedding_test.c and sequence_test.c, which build the same graphs: outputs, and the gradients
of a weighted sum of them. Run by hand, with TensorFlow 1.15: python make_embedding.py"""
import os
import tempfile
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import versions_pb2

tf.logging.set_verbosity(tf.logging.FATAL)
here = os.path.dirname(os.path.abspath(__file__))
out = open(os.path.join(here, 'data', 'embedding.txt'), 'w')
nn = tf.nn
ROWS, SIZE = 11, 3


def values(shape, k):
    """Element i of tensor number k: what the tests compute, too."""
    n = int(np.prod(shape))
    return (0.6 * np.sin(0.7 * np.arange(n) + 1.3 * k)).reshape(shape)


def put(name, v):
    out.write(name + ' ' + ' '.join('%.7g' % x for x in np.concatenate([np.ravel(x) for x in v])) + '\n')


def case(name, build, t=tf.float32):
    """build(t) gives tensors, and those that they depend on."""
    tf.reset_default_graph()
    tf.set_random_seed(7)
    ys, xs = build(t)
    with tf.Session() as s:
        shapes = [y.shape for y in s.run(ys)]
    loss = sum(tf.reduce_sum(tf.cast(y, tf.float32) * values(shape, 50 + i)) for i, (y, shape) in enumerate(zip(ys, shapes)))
    grads = tf.gradients(loss, xs) if xs else []
    with tf.Session() as s:
        got = s.run([ys, [tf.convert_to_tensor(g) for g in grads]])
    put(name + '.values', got[0])
    if grads:
        put(name + '.grads', got[1])


def constant(t, shape, k):
    return tf.constant(values(shape, k), t)


def parts(t, n, row=(SIZE,), k=0, rows=ROWS):
    """n parts of a table; both strategies have the longer ones first."""
    return [constant(t, (rows // n + (i < rows % n),) + tuple(row), k + i) for i in range(n)]


# ---- Lookups ----
IDS = [[0, 10, 3], [7, 3, 5]]
for n in (1, 3):
    for strategy in ('mod', 'div'):
        for norm in (None, 0.7):
            def lookup(t):
                p = parts(t, n)
                return [nn.embedding_lookup(p, tf.constant(IDS), strategy, max_norm=norm)], p
            case('lookup_%d_%s%s' % (n, strategy, '_norm' if norm else ''), lookup)


def sparse(indices, v, shape):
    return tf.SparseTensor(np.array(indices, np.int64), v, np.array(shape, np.int64))


PLACES, WHICH, WEIGHTS = [[0, 0], [0, 2], [1, 0], [2, 0], [2, 1], [2, 3]], [3, 10, 0, 3, 3, 7], [1, .5, 2, -1, 3, .25]
for combiner in ('mean', 'sum', 'sqrtn'):
    for weighted in (False, True):
        for n, strategy, norm in ((1, 'mod', None), (3, 'mod', None), (3, 'div', 0.6)):
            def combine(t):
                p = parts(t, n)
                ids = sparse(PLACES, np.array(WHICH, np.int64), [3, 4])
                w = sparse(PLACES, np.array(WEIGHTS, np.float32), [3, 4]) if weighted else None
                return [nn.embedding_lookup_sparse(p, ids, w, strategy, combiner=combiner, max_norm=norm)], p
            case('sparse_%s_%s_%d_%s' % (combiner, 'weighted' if weighted else 'plain', n, strategy), combine)
case('sparse_half', lambda t: [[nn.embedding_lookup_sparse(parts(tf.float16, 1), sparse(
    PLACES, np.array(WHICH, np.int64), [3, 4]), None, combiner='mean')], []])

HOLES, FOUND = [[0, 0], [0, 2], [2, 0], [3, 0], [3, 1], [3, 3]], [3, -1, -4, 3, 9, 7]
for combiner in ('mean', 'sum', 'sqrtn'):
    for weighted in (False, True):
        for default in (None, 2):
            def safe(t):
                p = parts(t, 2)
                ids = sparse(HOLES, np.array(FOUND, np.int64), [5, 4])
                w = sparse(HOLES, np.array(WEIGHTS, np.float32), [5, 4]) if weighted else None
                return [nn.safe_embedding_lookup_sparse(p, ids, w, combiner, default)], p
            case('safe_%s_%s%s' % (combiner, 'weighted' if weighted else 'plain', '_default' if default else ''), safe)


def safe_cube(t):
    p = parts(t, 1)
    ids = sparse([[0, 0, 0], [0, 2, 1], [1, 1, 0], [1, 1, 1]], np.array([3, 10, 0, 2], np.int64), [2, 3, 2])
    return [nn.safe_embedding_lookup_sparse(p, ids)], p


case('safe_cube', safe_cube)

# ---- Samplers and sampled losses ----
LABELS, SAMPLES = [[0, 9], [4, 1], [2, 2], [10, 3]], 6
UNIGRAMS = [5, 1, 0.5, 9, 3, 3, 2, 8, 1, 1, 6]


def fixed(distortion=1.0):
    def sampler(true_classes, num_true, num_sampled, unique, range_max, seed):
        return nn.fixed_unigram_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max,
                                                  unigrams=UNIGRAMS, distortion=distortion, seed=seed)
    return sampler


def every(true_classes, num_true, num_sampled, unique, range_max, seed):
    return nn.all_candidate_sampler(true_classes, num_true, num_sampled, unique, seed=seed)


def thread_unsafe(**args):
    return tf.raw_ops.ThreadUnsafeUnigramCandidateSampler(seed=7, seed2=args.pop('seed'), **args)


SAMPLERS = [('log_uniform', nn.log_uniform_candidate_sampler), ('uniform', nn.uniform_candidate_sampler),
            ('learned', nn.learned_unigram_candidate_sampler), ('thread_unsafe', thread_unsafe), ('fixed', fixed()),
            ('distorted', fixed(0.5)), ('all', every)]


def losses(t, sampler, n, strategy, remove, unique=True):
    w, b = parts(t, n, k=0), parts(t, n, (), 10)
    x = constant(t, (4, SIZE), 20)
    labels = tf.constant(LABELS, tf.int64)
    samples = ROWS if sampler is every else SAMPLES
    c = sampler and sampler(true_classes=labels, num_true=2, num_sampled=samples, unique=unique, range_max=ROWS, seed=5)
    args = dict(weights=w, biases=b, labels=labels, inputs=x, num_sampled=samples, num_classes=ROWS, num_true=2,
                sampled_values=c, partition_strategy=strategy)
    if remove is not None:
        args['remove_accidental_hits'] = remove
    ys = [nn.nce_loss(**args)] if sampler else []
    if not sampler:
        args['seed'] = 5
    ys.append(nn.sampled_softmax_loss(**args))
    return ys, w + b + [x]


for name, sampler in SAMPLERS:
    for n, strategy in ((1, 'mod'), (3, 'mod'), (3, 'div')):
        case('loss_%s_%d_%s' % (name, n, strategy), lambda t: losses(t, sampler, n, strategy, True))
case('loss_repeated', lambda t: losses(t, nn.uniform_candidate_sampler, 1, 'mod', False, unique=False))
case('loss_kept', lambda t: losses(t, nn.log_uniform_candidate_sampler, 3, 'div', False))
case('loss_hits', lambda t: losses(t, nn.log_uniform_candidate_sampler, 1, 'mod', None))
case('loss_default', lambda t: losses(t, None, 1, 'mod', None))

# ---- Sequences ----
for name, args in [
        ('both', {}), ('time', dict(average_across_batch=False)), ('batch', dict(average_across_timesteps=False)),
        ('none', dict(average_across_batch=False, average_across_timesteps=False)),
        ('sum', dict(average_across_batch=False, average_across_timesteps=False, sum_over_batch=True,
                     sum_over_timesteps=True)),
        ('sum_time', dict(average_across_batch=False, average_across_timesteps=False, sum_over_timesteps=True)),
        ('sum_batch', dict(average_across_batch=False, average_across_timesteps=False, sum_over_batch=True)),
        ('mixed', dict(average_across_batch=False, sum_over_batch=True))]:
    def sequence(t):
        x = constant(t, (2, 4, 5), 0)
        w = tf.constant([[1, 1, 1, 0], [.5, 2, 0, 0]], t)
        return [tf.contrib.seq2seq.sequence_loss(x, tf.constant([[0, 4, 2, 2], [1, 1, 3, 0]]), w, **args)], [x]
    case('sequence_' + name, sequence)

LABEL_PLACES, LABEL_VALUES = [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]], [0, 2, 1, 1, 0]
for name, args in [('plain', {}), ('collapsed', dict(preprocess_collapse_repeated=True, ctc_merge_repeated=False)),
                   ('batch_major', dict(time_major=False)),
                   ('longer', dict(ignore_longer_outputs_than_inputs=True))]:
    def ctc(t):
        x = constant(t, (2, 6, 4) if name == 'batch_major' else (6, 2, 4), 0)
        labels = sparse(LABEL_PLACES, np.array(LABEL_VALUES, np.int32), [2, 3])
        return [nn.ctc_loss(labels, x, [6, 2 if name == 'longer' else 5], **args)], [x]
    case('ctc_' + name, ctc)


def decode(decoder):
    x = tf.constant(4 * values((6, 2, 4), 3), tf.float32)
    decoded, scores = decoder(x, [6, 4])
    return [v for d in decoded for v in (d.indices, d.values, d.dense_shape)] + [scores]


def run(name, ys):
    with tf.Session() as s:
        put(name, s.run(ys))


run('greedy', decode(nn.ctc_greedy_decoder))
run('greedy_kept', decode(lambda *a: nn.ctc_greedy_decoder(*a, merge_repeated=False)))
run('beam', decode(nn.ctc_beam_search_decoder))
run('beam_many', decode(lambda *a: nn.ctc_beam_search_decoder(*a, beam_width=20, top_paths=3, merge_repeated=False)))
words = [sparse([[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]], np.array([1, 2, 1, 2, 3], np.int64), [3, 3]),
         sparse([[0, 0], [1, 0], [1, 1], [2, 0]], np.array([1, 3, 2, 5], np.int64), [3, 2])]
run('edit', [tf.edit_distance(*words)])
run('edit_counted', [tf.edit_distance(*words, normalize=False)])


# ---- Pairs of words from a text ----
def word(j):
    """Word j of the text, in which word w occurs 2 w + 1 times."""
    return int(np.sqrt(j * 7919 % 961))


def attribute(v):
    a = tf.AttrValue()
    if isinstance(v, int):
        a.i = v
    elif isinstance(v, float):
        a.f = v
    else:
        a.s = v.encode()
    return a


def old_graph():
    """The op was removed in version 19 of graphs."""
    tf.reset_default_graph()
    tf.import_graph_def(tf.GraphDef(versions=versions_pb2.VersionDef(producer=18)), name='')
    return tf.get_default_graph()


TEXT = [word(j) for j in range(961)]
path = tempfile.mktemp()
with open(path, 'w') as f:
    f.write(''.join('w%d%s' % (w, '\n' if i % 9 == 0 else ' ') for i, w in enumerate(TEXT)))
for name, window, subsample in (('all', 3, 0.0), ('few', 5, 0.01)):
    y = old_graph().create_op(
        'Skipgram', [], [tf.string, tf.int32, tf.int64, tf.int32, tf.int64, tf.int32, tf.int32], attrs={
            k: attribute(v) for k, v in dict(filename=path, batch_size=700, window_size=window, min_count=30,
                                             subsample=subsample).items()}).outputs
    with tf.Session() as s:
        for i in range(6):
            got = s.run(y)
            put('skipgram_%s %d' % (name, i), got[2:])
    put('skipgram_%s.words' % name, [[int(w[1:]) for w in got[0][1:]], got[1]])
os.remove(path)


# ---- Rows that optimizers update ----
def optimizers():
    t = tf.train
    yield 'sgd', t.GradientDescentOptimizer(0.1)
    yield 'momentum', t.MomentumOptimizer(0.1, 0.9)
    yield 'nesterov', t.MomentumOptimizer(0.1, 0.9, use_nesterov=True)
    yield 'adam', t.AdamOptimizer(0.1, beta1=0.8, beta2=0.99, epsilon=1e-7)
    yield 'adagrad', t.AdagradOptimizer(0.1)
    yield 'rmsprop', t.RMSPropOptimizer(0.1, decay=0.8, momentum=0.5, epsilon=1e-3)
    yield 'centered', t.RMSPropOptimizer(0.1, decay=0.8, momentum=0.5, epsilon=1e-3, centered=True)


def average(grads):
    """The gradients of one variable in all towers."""
    if all(isinstance(g, tf.IndexedSlices) for g in grads):
        return tf.IndexedSlices(tf.concat([g.values for g in grads], 0) / len(grads),
                                tf.concat([g.indices for g in grads], 0))
    return tf.add_n([tf.convert_to_tensor(g) for g in grads]) / len(grads)


for name, opt in optimizers():
    tf.reset_default_graph()
    e = [tf.Variable(values((rows, SIZE), i), dtype=tf.float32) for i, rows in enumerate((4, 3))]
    w = tf.Variable(values((SIZE,), 30), dtype=tf.float32)
    towers = []
    for i, ids in enumerate(([0, 6, 0, 3], [5, 5, 0, 1])):
        rows = nn.embedding_lookup(e, tf.constant(ids), 'div')
        combined = nn.embedding_lookup_sparse(e, sparse([[0, 0], [0, 1], [1, 0], [2, 0]], np.array(ids, np.int64),
                                                        [3, 2]), None, 'div', combiner='sum')
        loss = tf.reduce_sum(rows * rows * w) * (i + 1) + tf.reduce_sum(combined * w)
        towers.append(opt.compute_gradients(loss, e + [w]))
    grads = [average([t[i][0] for t in towers]) for i in range(3)]
    clipped, norm = tf.clip_by_global_norm(grads, 2.0)
    train = opt.apply_gradients(zip(clipped, e + [w]))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        for i in range(3):
            put('rows_%s %d' % (name, i), [s.run([norm, train])[0]] + s.run(e + [w]))
out.close()
