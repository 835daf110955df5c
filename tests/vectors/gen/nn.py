"""Ops of neural nets: bias, activations and their gradients, softmax and cross entropy, top k."""

import numpy as np
import tensorflow as tf

from gen.array import text
from gen.case import DOUBLE, EXACT, FLOAT, VALUES, array, dtypes, name_of, scaled

raw = tf.raw_ops


def bias(f):
    for t in dtypes('BiasAdd'):
        todo = [((2, 3), 'NHWC'), ((2, 2, 3), 'NHWC'), ((2, 2, 2, 3), 'NHWC'),
                ((1, 2, 2, 2, 3), 'NHWC'),
                ((2, 3, 2, 2), 'NCHW'), ((2, 3, 4), 'NCHW'), ((1, 3, 2, 1, 2), 'NCHW'),
                ((0, 3), 'NHWC'),
                ((7, 33), 'NHWC'), ((4, 3), 'NHWC')]
        for shape, fmt in todo if t == FLOAT else todo[4:5] + todo[-1:]:
            c = shape[1 if fmt == 'NCHW' else -1]
            grad = t in (FLOAT, DOUBLE)
            f.case('%s/%s_%s' % (name_of(t), text(shape), fmt), 'BiasAdd', lambda b: raw.BiasAdd(
                value=b.rand(shape, t), bias=b.rand((c,), t), data_format=fmt),
                VALUES if not grad else 2, grad=grad)
            f.case('%s/%s_%s' % (name_of(t), text(shape), fmt), 'BiasAddGrad',
                   lambda b: raw.BiasAddGrad(
                out_backprop=b.rand(shape, t), data_format=fmt), scaled(4, t, 3),
                grad=grad and not (fmt == 'NCHW' and len(shape) != 4))
    for t in (FLOAT, tf.int32):
        f.case('%s/4x3' % name_of(t), 'BiasAddV1', lambda b: raw.BiasAddV1(
            value=b.rand((4, 3), t), bias=b.rand((3,), t)), EXACT if t == tf.int32 else 2,
            grad=t == FLOAT)
    for n, shape, c, words in [
            ('size', (2, 3), (2,),
             'Must provide as many biases as the last dimension of the input tensor: '
             '[2] vs. [2,3]'),
            ('rank', (3,), (3,), 'Input tensor must be at least 2D: [3]'),
            ('bias', (2, 3), (1, 3), 'Biases must be 1D: [1,3]')]:
        f.case('bad/' + n, 'BiasAdd', lambda b: raw.BiasAdd(
            value=b.rand(shape, FLOAT, static='nothing'), bias=b.rand(c, FLOAT, static='nothing')),
            error=words)
    f.case('bad/rank', 'BiasAddGrad', lambda b: raw.BiasAddGrad(
        out_backprop=b.rand((3,), FLOAT, static='nothing')),
           error='Input tensor must be at least 2D: [3]')


ACTIVATIONS = [('Relu', {}), ('Relu6', {}), ('Elu', {}), ('Softplus', {}), ('LeakyRelu', {}),
               ('LeakyRelu', {'alpha': .1}), ('LeakyRelu', {'alpha': 0.0})]
ACTIVATION_GRADS = [('ReluGrad', 'features', {}), ('Relu6Grad', 'features', {}),
                    ('EluGrad', 'outputs', {}),
                    ('SoftplusGrad', 'features', {}), ('LeakyReluGrad', 'features', {}),
                    ('LeakyReluGrad', 'features', {'alpha': .3})]


def activations(f, ops, grads):
    shapes = [(), (7,), (2, 3), (1, 2, 1, 2, 2), (0,), (1003,)]
    special = [float('inf'), float('-inf'), 0.0, -0.0, 6.0, 5.9, 6.1, 90.0, -90.0, 1e-4]
    for op, attrs in ops:
        tag = '_%g' % attrs['alpha'] if attrs else ''
        tol = VALUES if op in ('Relu', 'Relu6') else 2
        for t in dtypes(op):
            scale = scaled(tol, t)
            for shape in shapes if t == FLOAT and not attrs else [(2, 5)]:
                f.case('%s/%s%s' % (name_of(t), text(shape), tag), op, lambda b: getattr(raw, op)(
                    features=b.rand(shape, t, -8, 8), **attrs), scale)
            if t.is_floating:
                v = [x for x in special if op in ('Relu', 'Relu6', 'LeakyRelu') or np.isfinite(x)]
                f.case('%s/special%s' % (name_of(t), tag), op, lambda b: getattr(raw, op)(
                    features=b.feed(v, t), **attrs), scale)
            if t in (FLOAT, DOUBLE):
                for shape in [(), (2, 3), (0,), (33,)]:
                    f.case('%s/grad/%s%s' % (name_of(t), text(shape), tag), op,
                           lambda b: getattr(raw, op)(features=b.rand(shape, t, -8, 8), **attrs),
                           2, grad=True)
    for op, second, attrs in grads:
        tag = '_%g' % attrs['alpha'] if attrs else ''

        def backprop(b, dy, x):
            return getattr(raw, op)(**dict(attrs, **{'gradients': dy, second: x}))
        for t in dtypes(op):
            scale = scaled(VALUES if op in ('ReluGrad', 'Relu6Grad') else 2, t)
            lo = -1 if second == 'outputs' else -8
            for shape in [(), (7,), (2, 3), (0,), (131,)] if t == FLOAT else [(2, 5)]:
                f.case('%s/%s%s' % (name_of(t), text(shape), tag), op,
                       lambda b: backprop(b, b.rand(shape, t), b.rand(shape, t, lo, 8)), scale)
            if t in (FLOAT, DOUBLE) and op != 'SoftsignGrad':
                f.case('%s/grad%s' % (name_of(t), tag), op,
                       lambda b: backprop(b, b.rand((2, 3), t), b.rand((2, 3), t, -.9, 4)), 4,
                       grad=True)
        f.case('bad/shape' + tag, op,
               lambda b: backprop(b, b.rand((2, 3), FLOAT, static='nothing'),
                                  b.rand((4,), FLOAT, static='nothing')),
               error='must have the same size and shape')


def softmax(f):
    shapes = [(1, 1), (2, 3), (5,), (2, 2, 3), (1, 2, 1, 2, 3), (0, 3), (7, 33), (3, 4)]
    for op in ('Softmax', 'LogSoftmax'):
        for t in dtypes(op):
            for shape in shapes if t == FLOAT else shapes[-1:]:
                f.case('%s/%s' % (name_of(t), text(shape)), op,
                       lambda b: getattr(raw, op)(logits=b.rand(shape, t)),
                       scaled(2, t, 3), grad=t in (FLOAT, DOUBLE))
            f.case('%s/far' % name_of(t), op, lambda b: getattr(raw, op)(
                logits=b.feed([[90, -90, 0], [1000, 1000, 1000], [-1000, -1001, -1000]], t)),
                scaled(2, t, 3))
        f.case('bad/scalar', op, lambda b: getattr(raw, op)(
            logits=b.rand((), FLOAT, static='nothing')),
               error='logits must have >= 1 dimension, got []')


def labels(b, shape, t):
    """Rows that sum to 1."""
    v = b.rng.uniform(0, 1, shape)
    return array(v / v.sum(-1, keepdims=True), t)


def cross_entropy(f):
    op = 'SoftmaxCrossEntropyWithLogits'
    for t in dtypes(op):
        for n, d in [(1, 2), (2, 3), (5, 1), (7, 33), (3, 4)] if t == FLOAT else [(3, 4)]:
            f.case('%s/%dx%d' % (name_of(t), n, d), op, lambda b: raw.SoftmaxCrossEntropyWithLogits(
                features=b.rand((n, d), t), labels=b.feed(labels(b, (n, d), t), t)),
                scaled(4, t, 3))
        if t in (FLOAT, DOUBLE):
            f.case('%s/grad' % name_of(t), op, lambda b: raw.SoftmaxCrossEntropyWithLogits(
                features=b.rand((3, 4), t), labels=b.feed(labels(b, (3, 4), t), t))[0], 4,
                grad=True)
            f.case('%s/far' % name_of(t), op, lambda b: raw.SoftmaxCrossEntropyWithLogits(
                features=b.feed([[1000, 0], [-1000, 0], [5, 5]], t),
                labels=b.feed([[1, 0], [1, 0], [.5, .5]], t)), 4)
        f.case('%s/broadcast' % name_of(t), op, lambda b: raw.SoftmaxCrossEntropyWithLogits(
            features=b.rand((3, 4), t), labels=b.feed(labels(b, (1, 4), t), t)), scaled(4, t, 3))
    f.case('float/empty', op, lambda b: raw.SoftmaxCrossEntropyWithLogits(
        features=b.rand((0, 3), FLOAT), labels=b.rand((0, 3), FLOAT)), 1)
    f.case('bad/shape', op, lambda b: raw.SoftmaxCrossEntropyWithLogits(
        features=b.rand((2, 3), FLOAT, static='nothing'),
        labels=b.rand((2, 4), FLOAT, static='nothing')),
        error='logits and labels must be broadcastable: logits_size=[2,3] labels_size=[2,4]')
    f.case('bad/rank', op, lambda b: raw.SoftmaxCrossEntropyWithLogits(
        features=b.rand((2, 2, 3), FLOAT, static='nothing'),
        labels=b.rand((2, 2, 3), FLOAT, static='nothing')),
        error='logits and labels must be either 2-dimensional')

    op = 'SparseSoftmaxCrossEntropyWithLogits'
    for t in dtypes(op):
        for it in (tf.int32, tf.int64):
            for n, d in [(1, 2), (2, 3), (5, 1), (7, 33), (0, 3), (3, 4)] if t == FLOAT else [
                    (3, 4)]:
                f.case('%s/%s/%dx%d' % (name_of(t), name_of(it), n, d), op,
                       lambda b: raw.SparseSoftmaxCrossEntropyWithLogits(
                           features=b.rand((n, d), t), labels=b.feed(b.rng.randint(0, d, n), it)),
                           scaled(4, t, 3))
            if t in (FLOAT, DOUBLE):
                f.case('%s/%s/grad' % (name_of(t), name_of(it)), op,
                       lambda b: raw.SparseSoftmaxCrossEntropyWithLogits(
                    features=b.rand((3, 4), t), labels=b.feed(b.rng.randint(0, 4, 3), it))[0], 4,
                    grad=True)
    for n, shape, l, words in [
            ('label', (2, 3), [0, 3],
             'Received a label value of 3 which is outside the valid range of [0, 3).  '
             'Label values: 0 3'),
            ('negative', (2, 3), [-1, 0],
             'Received a label value of -1 which is outside the valid range of [0, 3)'),
            ('count', (2, 3), [0, 1, 2],
             'logits and labels must have the same first dimension, got logits shape [2,3] and '
             'labels shape [3]'),
            ('rank', (3,), [0], 'logits must be 2-D, but got shape [3]'),
            ('labels', (2, 3), [[0, 1]], 'labels must be 1-D, but got shape [1,2]'),
            ('classes', (2, 0), [0, 1],
             'Must have at least one class, but got logits shape [2,0]')]:
        f.case('bad/' + n, op, lambda b: raw.SparseSoftmaxCrossEntropyWithLogits(
            features=b.rand(shape, FLOAT, static='nothing'), labels=b.feed(l, tf.int32, 'nothing')),
            error=words)


def top(f):
    for it in (tf.int32, tf.int64):
        for k in (1, 2, 4, 9):
            f.case('%s/%d' % (name_of(it), k), 'InTopK', lambda b: raw.InTopK(
                predictions=b.rand((5, 4), FLOAT), targets=b.feed(b.rng.randint(0, 4, 5), it), k=k))
            f.case('%s/%d' % (name_of(it), k), 'InTopKV2', lambda b: raw.InTopKV2(
                predictions=b.rand((5, 4), FLOAT), targets=b.feed(b.rng.randint(0, 4, 5), it),
                k=b.index(k, it)))
        for op in ('InTopK', 'InTopKV2'):
            def call(b, p, t, k):
                k = k if op == 'InTopK' else b.index(k, it)
                return getattr(raw, op)(predictions=b.feed(p, FLOAT), targets=b.feed(t, it), k=k)
            nan, inf = float('nan'), float('inf')
            f.case('%s/ties' % name_of(it), op, lambda b: call(
                b, [[1, 1, 1, 0], [2, 3, 3, 3], [5, 5, 5, 5]], [2, 0, 3], 2))
            f.case('%s/nan' % name_of(it), op, lambda b: call(
                b, [[1, nan, 2], [nan, 1, 2], [1, inf, 3]], [1, 2, 1], 2))
            f.case('%s/out' % name_of(it), op, lambda b: call(b, [[1, 2], [3, 4]], [-1, 2], 1))
            f.case('%s/none' % name_of(it), op, lambda b: call(b, np.zeros((0, 3)), np.zeros(0), 1))
    f.case('bad/count', 'InTopK', lambda b: raw.InTopK(
        predictions=b.rand((2, 3), FLOAT, static='nothing'),
        targets=b.feed([0], tf.int32, 'nothing'), k=1),
        error='First dimension of predictions 2 must match length of targets 1')
    f.case('bad/rank', 'InTopK', lambda b: raw.InTopK(
        predictions=b.rand((3,), FLOAT, static='nothing'), targets=b.feed([0], tf.int32, 'nothing'),
        k=1),
        error='predictions must be 2-dimensional')

    def distinct(b, shape, t):
        n = int(np.prod(shape))
        v = b.rng.permutation(n) - (0 if t.is_unsigned else n // 2)
        return b.feed(array(v.reshape(shape), t), t)
    for t in dtypes('TopKV2'):
        for shape, k in [((5,), 1), ((5,), 5), ((2, 6), 3), ((2, 3, 4), 2), ((5,), 0), ((0, 3), 2),
                         ((2, 40), 7),
                         ((200,), 150), ((3, 4), 2)] if t == FLOAT else [((3, 4), 2)]:
            for s in (True, False):
                def build(b):
                    y = raw.TopKV2(input=distinct(b, shape, t), k=b.index(k), sorted=s)
                    # not sorted: any order will do
                    return y if s else [raw.Max(input=y[0], axis=-1), raw.Min(input=y[0], axis=-1)]
                if s or 0 < k and t in (FLOAT, DOUBLE, tf.int32):
                    f.case('%s/%s_%d%s' % (name_of(t), text(shape), k, '' if s else '_unsorted'),
                           'TopKV2', build)
        if t in (FLOAT, DOUBLE):
            for shape, k in [((5,), 2), ((2, 6), 3), ((2, 2, 4), 1)]:
                f.case('%s/grad/%s_%d' % (name_of(t), text(shape), k), 'TopKV2',
                       lambda b: raw.TopKV2(
                    input=distinct(b, shape, t), k=b.index(k))[0], grad=True)
    for k in (1, 2, 5):
        f.case('ties/%d' % k, 'TopKV2', lambda b: raw.TopKV2(
            input=b.feed([[1, 3, 3, 2, 3], [7, 7, 7, 7, 7]], FLOAT), k=b.index(k)))
    f.case('bad/k', 'TopKV2', lambda b: raw.TopKV2(input=b.rand((3,), FLOAT, static='nothing'),
                                                   k=b.index(4, const=False)),
           error='input must have at least k columns. Had 3, needed 4')
    f.case('bad/negative', 'TopKV2', lambda b: raw.TopKV2(
        input=b.rand((3,), FLOAT, static='nothing'), k=b.index(-1, const=False)),
           error='Need k >= 0, got -1')
    f.case('bad/scalar', 'TopKV2', lambda b: raw.TopKV2(input=b.rand((), FLOAT, static='nothing'),
                                                        k=b.index(1, const=False)),
           error='input must be >= 1-D, got shape []')


def make(f):
    for part in (bias, softmax, cross_entropy, top):
        part(f)
    activations(f, ACTIVATIONS, ACTIVATION_GRADS)
