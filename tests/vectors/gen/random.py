"""Random ops with fixed seeds, run again and again: the counters must advance as TensorFlow's do.
Also seeds.txt: how a graph's seed and an op's seed make the attributes seed and seed2."""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import random_seed

from gen.array import text
from gen.case import DOUBLE, EXACT, FLOAT, dtypes, name_of, tf1

raw = tf.raw_ops
SEEDS = [(1, 2), (87654321, 0), (0, 5), (-3, 2 ** 40 + 7)]
SIZES = [(), (1,), (3,), (4,), (5,), (2, 3), (7,), (10,), (64,), (3, 0), (131,)]


def distributions(f):
    for op in ('RandomUniform', 'RandomStandardNormal', 'TruncatedNormal'):
        tol = EXACT if op == 'RandomUniform' else 4
        for t in dtypes(op, 'dtype'):
            def build(b, shape, seeds, it, runs=3):
                y = getattr(raw, op)(shape=b.index(list(shape), it), dtype=t, seed=seeds[0],
                                     seed2=seeds[1])
                for _ in range(runs):
                    b.run([y])
            for shape in SIZES:
                f.case('%s/%s' % (name_of(t), text(shape)), op,
                       lambda b: build(b, shape, (1, 2), tf.int32), tol)
            for seeds in SEEDS[1:]:
                f.case('%s/seeds_%d_%d' % ((name_of(t),) + seeds), op,
                       lambda b: build(b, (6,), seeds, tf.int64), tol)
            if t in (FLOAT, DOUBLE):
                f.case('%s/long' % name_of(t), op, lambda b: build(b, (2500,), (4, 4), tf.int32, 2),
                       tol)

        def many(b):  # beyond what one thread takes: a few of them, and their number
            y = getattr(raw, op)(shape=b.index([40000]), dtype=FLOAT, seed=9, seed2=10)
            for _ in range(2):
                b.run([raw.StridedSlice(input=y, begin=[3], end=[0], strides=[997], end_mask=1)])
        f.case('float/many', op, many, tol)

        def changing(b):
            shape = b.feed([3], tf.int32, [None])
            y = getattr(raw, op)(shape=shape, dtype=FLOAT, seed=7, seed2=8)
            for s in ([3], [0], [5], [2, 2], [], [9]):
                b.run([y], feeds={shape: np.array(s, np.int32)})
        f.case('float/changing', op, changing, tol)

        def two(b):  # the same seeds: the same numbers, each op with its own counter
            ys = [getattr(raw, op)(shape=[5], dtype=FLOAT, seed=7, seed2=8) for _ in range(2)]
            b.run(ys)
            b.run(ys[:1])
            b.run(ys)
        f.case('float/two', op, two, tol)
        f.case('bad/negative', op, lambda b: getattr(raw, op)(
            shape=b.feed([2, -1], tf.int32, [None]), dtype=FLOAT, seed=1), error='must be >= 0')
        f.case('bad/rank', op, lambda b: getattr(raw, op)(
            shape=b.feed([[2]], tf.int32, 'nothing'), dtype=FLOAT, seed=1),
            error='shape must be a vector of {int32,int64}')


def integers(f):
    op = 'RandomUniformInt'
    for t in (tf.int32, tf.int64):
        for it in (tf.int32, tf.int64):
            for lo, hi in [(0, 10), (-5, 5), (3, 4), (t.min, t.max), (0, t.max), (-7, 2 ** 20)]:
                for shape in [(), (5,), (2, 3), (0,), (37,)]:
                    if it == tf.int64 and shape != (5,):
                        continue

                    def build(b):
                        y = raw.RandomUniformInt(shape=b.index(list(shape), it),
                                                 minval=b.index(lo, t),
                                                 maxval=b.index(hi, t), seed=3, seed2=4)
                        for _ in range(2):
                            b.run([y])
                    f.case('%s/%s/%s_%d_%d' % (name_of(t), name_of(it), text(shape), lo, hi), op,
                           build)
        f.case('%s/bad' % name_of(t), op, lambda b: raw.RandomUniformInt(
            shape=b.index([2]), minval=b.index(5, t, False), maxval=b.index(5, t, False), seed=1),
            error='Need minval < maxval, got 5 >= 5')


def shuffles(f):
    for t in dtypes('RandomShuffle'):
        for shape in [(), (1,), (2,), (5,), (10, 2), (0, 3), (4, 1, 2), (100,),
                      (7,)] if t == FLOAT else [(7,), (4, 3)]:
            def build(b):
                y = raw.RandomShuffle(value=b.rand(shape, t), seed=11, seed2=12)
                for _ in range(3):
                    b.run([y])
            f.case('%s/%s' % (name_of(t), text(shape)), 'RandomShuffle', build)
    for seeds in SEEDS[1:]:
        def seeded(b):
            y = raw.RandomShuffle(value=b.feed(np.arange(20), tf.int32), seed=seeds[0],
                                  seed2=seeds[1])
            for _ in range(2):
                b.run([y])
        f.case('seeds_%d_%d' % seeds, 'RandomShuffle', seeded)


SAMPLERS = ['UniformCandidateSampler', 'LogUniformCandidateSampler',
            'LearnedUnigramCandidateSampler', 'ThreadUnsafeUnigramCandidateSampler']


def candidates(f):
    def runs(b, op, true, n=3, **attrs):
        true = np.array(true, np.int64)
        ys = getattr(raw, op)(true_classes=b.feed(true, tf.int64), num_true=true.shape[1],
                              seed=attrs.pop('seed', 5), seed2=attrs.pop('seed2', 6), **attrs)
        for _ in range(n):
            b.run(list(ys))
    for op in SAMPLERS:
        most = [1, 2, 8, 11, 1000] + ([] if 'Unigram' in op else [2 ** 40, 2 ** 62 + 3])
        for top in most:
            for unique in (False, True):
                n = min(7, top) if unique else 7
                f.case('%d/%s' % (top, 'unique' if unique else 'any'), op, lambda b: runs(
                    b, op, [[0, top - 1], [top // 2, 0]], num_sampled=n, unique=unique,
                    range_max=top), 4)
        f.case('all', op, lambda b: runs(b, op, [[1], [2], [2]], num_sampled=6, unique=True,
                                         range_max=6), 4)
        f.case('empty', op, lambda b: runs(b, op, np.zeros((0, 2)), num_sampled=3, unique=False,
                                           range_max=6), 4)
        f.case('seeds', op, lambda b: runs(b, op, [[3]], num_sampled=9, unique=False,
                                           range_max=50, seed=-3, seed2=2 ** 40 + 7), 4)
        f.case('bad/range', op, lambda b: getattr(raw, op)(
            true_classes=b.feed([[1]], tf.int64), num_true=1, num_sampled=3, unique=True,
            range_max=2), error="Sampler's range is too small.")
        f.case('bad/columns', op, lambda b: getattr(raw, op)(
            true_classes=b.feed([[1, 2]], tf.int64, 'nothing'), num_true=1, num_sampled=3,
            unique=False, range_max=9), error='true_classes must have num_true columns')
        f.case('bad/rank', op, lambda b: getattr(raw, op)(
            true_classes=b.feed([1, 2], tf.int64, 'nothing'), num_true=1, num_sampled=3,
            unique=False, range_max=9), error='true_classes must be a matrix')
    op = 'FixedUnigramCandidateSampler'
    for name, weights in [('even', [1.] * 4), ('steep', [1., 2., 4., 8., 16.]),
                          ('some', [0., .3, 0., 7., 2.5, 1.]), ('one', [3.])]:
        for unique in (False, True):
            for power in (1., .75, 0.):
                n = min(2, len(weights)) if unique else 6
                f.case('%s/%s/%g' % (name, unique, power), op, lambda b: runs(
                    b, op, [[0], [len(weights) - 1], [99]], num_sampled=n, unique=unique,
                    range_max=len(weights), unigrams=weights, distortion=power), 4)
    f.case('reserved', op, lambda b: runs(b, op, [[0, 3]], num_sampled=6, unique=False,
                                          range_max=5, num_reserved_ids=2, unigrams=[1., 2., 3.]), 4)
    for shard, classes in [(0, 3), (1, 4), (2, 2)]:
        f.case('shard_%d' % shard, op, lambda b: runs(
            b, op, [[0, 1]], num_sampled=6, unique=False, range_max=classes, num_reserved_ids=2,
            num_shards=3, shard=shard, unigrams=[1., 2., 3., 4., 5., 6., 7., 8.]), 4)
    f.case('bad/none', op, lambda b: raw.FixedUnigramCandidateSampler(
        true_classes=b.feed([[1]], tf.int64), num_true=1, num_sampled=3, unique=True, range_max=2),
        error='Must provide either vocab_file or unigrams.')
    f.case('bad/both', op, lambda b: raw.FixedUnigramCandidateSampler(
        true_classes=b.feed([[1]], tf.int64), num_true=1, num_sampled=3, unique=True, range_max=2,
        vocab_file='words', unigrams=[1., 2.]),
        error='Must only provide one of vocab_file and unigrams.')
    for n in (1, 5):
        f.case('all_%d' % n, 'AllCandidateSampler', lambda b: runs(
            b, 'AllCandidateSampler', [[0, n - 1], [9, 0]], num_sampled=n, unique=True))
    op = 'ComputeAccidentalHits'
    for name, true, sampled in [('some', [[1, 2], [3, 3], [0, 9]], [3, 1, 7, 0]),
                                ('twice', [[1], [5]], [5, 1, 1, 5]), ('none', [[1]], [2, 3]),
                                ('empty', np.zeros((0, 2)), [1]), ('no_samples', [[1]], []),
                                ('many', np.arange(200).reshape(50, 4) % 37,
                                 np.arange(0, 90, 3) - 20)]:
        true = np.array(true, np.int64)
        f.case(name, op, lambda b: list(raw.ComputeAccidentalHits(
            true_classes=b.feed(true, tf.int64),
            sampled_candidates=b.feed(np.array(sampled, np.int64), tf.int64),
            num_true=true.shape[1])))
    f.case('bad/columns', op, lambda b: list(raw.ComputeAccidentalHits(
        true_classes=b.feed([[1, 2]], tf.int64, 'nothing'),
        sampled_candidates=b.feed([1], tf.int64), num_true=1)),
        error='true_candidates must be a batch_size * num_true matrix')
    f.case('bad/samples', op, lambda b: list(raw.ComputeAccidentalHits(
        true_classes=b.feed([[1]], tf.int64),
        sampled_candidates=b.feed([[1]], tf.int64, 'nothing'), num_true=1)),
        error='sampled_candidates must be a vector')


SEED_VALUES = [None, 0, 1, 42, 87654321, 2 ** 31 - 1, 2 ** 31, 2 ** 32 + 5, -1]


def seeds_text():
    """seeds.txt: get_seed for every pair and graphs of 0 and 7 nodes, then whole client calls."""
    lines = ["# What the client makes of seeds. Per line: the graph's seed, the op's seed, how",
             '# many nodes the graph has when the op asks, and the attributes seed and seed2 that',
             '# come of it (none: not set).']
    show = lambda v: 'none' if v is None else str(v)
    for g in SEED_VALUES:
        for o in SEED_VALUES:
            for n in (0, 7):
                with tf.Graph().as_default():
                    tf1.set_random_seed(g)
                    for _ in range(n):
                        tf.no_op()
                    got = random_seed.get_seed(o)
                lines.append('%s %s %d %s %s' % (show(g), show(o), n, show(got[0]), show(got[1])))
    lines += ['# Calls of the client one after another in a graph whose seed is 1234: the call,',
              "# the op's seed, the name of the random node, seed and seed2."]
    with tf.Graph().as_default() as graph:
        tf1.set_random_seed(1234)
        calls = [('random_uniform', lambda s: tf.random.uniform([2, 3], seed=s)),
                 ('random_uniform_int', lambda s: tf.random.uniform([2], 0, 10, tf.int32, seed=s)),
                 ('random_normal', lambda s: tf.random.normal([2, 3], seed=s)),
                 ('truncated_normal', lambda s: tf.random.truncated_normal(
                     [2, 3], stddev=.1, seed=s)),
                 ('random_shuffle', lambda s: tf.random.shuffle(tf.constant([1, 2, 3]), seed=s)),
                 ('glorot_uniform', lambda s: tf1.glorot_uniform_initializer(s)([2, 3]))]
        for op_seed in (None, 5):
            for name, call in calls:
                before = len(graph.get_operations())
                call(op_seed)
                for op in graph.get_operations()[before:]:
                    if 'seed2' in op.node_def.attr:
                        lines.append('%s %s %s %d %d' % (name, show(op_seed), op.name,
                                                         op.get_attr('seed'),
                                                         op.get_attr('seed2')))
    return '\n'.join(lines) + '\n'


def make(f):
    distributions(f)
    integers(f)
    shuffles(f)
    candidates(f)
