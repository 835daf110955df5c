"""What convolutional nets need besides convolutions: pooling, local response normalisation, batch
normalisation, dilation. TensorFlow's CPU kernels take only channels-last data."""

import numpy as np
import tensorflow as tf

from gen.array import text
from gen.case import DOUBLE, EXACT, FLOAT, HALF, dtypes, name_of, scaled

raw = tf.raw_ops
# shape, window, strides
WINDOWS = [((2, 5, 6, 3), (3, 3), (2, 2)), ((1, 4, 4, 1), (2, 2), (2, 2)),
           ((2, 7, 5, 2), (2, 3), (1, 2)), ((1, 6, 6, 70), (3, 3), (2, 2)),
           ((1, 5, 5, 64), (3, 2), (1, 1)), ((3, 4, 3, 2), (1, 1), (2, 2)),
           ((1, 3, 3, 130), (3, 3), (1, 1)), ((0, 4, 4, 2), (2, 2), (2, 2))]
VOLUMES = [((1, 3, 4, 5, 2), (2, 2, 2), (1, 2, 2)), ((2, 4, 4, 4, 1), (3, 2, 1), (2, 2, 2)),
           ((1, 2, 3, 3, 17), (1, 3, 3), (1, 1, 1))]
FORMATS = ('SAME', 'VALID')


def attrs(window, strides, padding):
    return dict(ksize=[1] + list(window) + [1], strides=[1] + list(strides) + [1], padding=padding)


def tag(shape, window, strides, padding):
    return '%s_by_%s_%s_%s' % (text(shape), text(window), text(strides), padding.lower())


def out_shape(shape, window, strides, padding):
    out = [(n + s - 1) // s if padding == 'SAME' else (n - w + s) // s
           for n, w, s in zip(shape[1:-1], window, strides)]
    return (shape[0],) + tuple(out) + (shape[-1],)


def cases(windows):
    return [w + (p,) for w in windows for p in FORMATS]


def of_pooling(f, op, pool, windows, tol=EXACT, arg='input', grad=True):
    """pool(x, attributes) for all dtypes; floats have gradients."""
    for t in dtypes(op):
        for shape, w, s, p in cases(windows if t == FLOAT else windows[:3]):
            f.case('%s/%s' % (name_of(t), tag(shape, w, s, p)), op,
                   lambda b: pool(b, b.rand(shape, t), attrs(w, s, p)), scaled(tol, t),
                   grad=grad and t in (FLOAT, DOUBLE) and shape[0] > 0)


def max_pool(f):
    of_pooling(f, 'MaxPool', lambda b, x, a: raw.MaxPool(input=x, **a), WINDOWS)
    of_pooling(f, 'MaxPoolV2', lambda b, x, a: raw.MaxPoolV2(
        input=x, ksize=b.index(a['ksize']), strides=b.index(a['strides']), padding=a['padding']),
        WINDOWS[:4])
    for batch in (False, True):
        def pool(b, x, a):
            return raw.MaxPoolWithArgmax(input=x, include_batch_in_index=batch, **a)
        for t in dtypes('MaxPoolWithArgmax'):
            for shape, w, s, p in cases(WINDOWS[:7] if t == FLOAT else WINDOWS[:2]):
                f.case('%s/%s_%d' % (name_of(t), tag(shape, w, s, p), batch), 'MaxPoolWithArgmax',
                       lambda b: pool(b, b.rand(shape, t), attrs(w, s, p)))
    for depth in (2, 3, 6):
        f.case('depth/%d' % depth, 'MaxPool', lambda b: raw.MaxPool(
            input=b.rand((2, 3, 2, 6), FLOAT), ksize=[1, 1, 1, depth], strides=[1, 1, 1, depth],
            padding='SAME'))
    # Equal elements: the first gets the gradient.
    f.case('ties', 'MaxPool', lambda b: raw.MaxPool(
        input=b.feed(b.data((2, 6, 6, 3), tf.int32, 0, 2), FLOAT), ksize=[1, 3, 3, 1],
        strides=[1, 2, 2, 1], padding='SAME'), grad=True)


def max_grads(f):
    for op, second in (('MaxPoolGrad', False), ('MaxPoolGradGrad', True)):
        for t in dtypes(op):
            for shape, w, s, p in cases(WINDOWS[:7] if t == FLOAT else WINDOWS[:2]):
                def build(b):
                    x = b.rand(shape, t)
                    small = out_shape(shape, w, s, p)
                    y = raw.MaxPool(input=x, **attrs(w, s, p)) if t not in (
                        tf.uint32, tf.uint64) else b.rand(small, t)
                    return getattr(raw, op)(orig_input=x, orig_output=y,
                                            grad=b.rand(shape if second else small, t),
                                            **attrs(w, s, p))
                f.case('%s/%s' % (name_of(t), tag(shape, w, s, p)), op, build, scaled(1, t, 4))
    for op, second in (('MaxPoolGradV2', False), ('MaxPoolGradGradV2', True)):
        for shape, w, s, p in cases(WINDOWS[:3]):
            def build(b):
                x = b.rand(shape, FLOAT)
                a = attrs(w, s, p)
                return getattr(raw, op)(
                    orig_input=x, orig_output=raw.MaxPool(input=x, **a),
                    grad=b.rand(shape if second else out_shape(shape, w, s, p), FLOAT),
                    ksize=b.index(a['ksize']), strides=b.index(a['strides']), padding=p)
            f.case(tag(shape, w, s, p), op, build, 1)
    for batch in (False, True):
        for shape, w, s, p in cases(WINDOWS[:4]):
            def build(b):
                x = b.rand(shape, FLOAT)
                a = attrs(w, s, p)
                _, index = raw.MaxPoolWithArgmax(input=x, include_batch_in_index=batch, **a)
                return raw.MaxPoolGradWithArgmax(
                    input=x, grad=b.rand(out_shape(shape, w, s, p), FLOAT), argmax=index,
                    include_batch_in_index=batch, **a)
            f.case('%s_%d' % (tag(shape, w, s, p), batch), 'MaxPoolGradWithArgmax', build, 1)
            f.case('grad/%s_%d' % (tag(shape, w, s, p), batch), 'MaxPoolWithArgmax',
                   lambda b: raw.MaxPoolWithArgmax(input=b.rand(shape, FLOAT),
                                                   include_batch_in_index=batch,
                                                   **attrs(w, s, p))[0], 1, grad=True)


def avg_pool(f):
    of_pooling(f, 'AvgPool', lambda b, x, a: raw.AvgPool(value=x, **a), WINDOWS, 2)
    for t in dtypes('AvgPoolGrad'):
        for shape, w, s, p in cases(WINDOWS[:7] if t == FLOAT else WINDOWS[:2]):
            f.case('%s/%s' % (name_of(t), tag(shape, w, s, p)), 'AvgPoolGrad',
                   lambda b: raw.AvgPoolGrad(orig_input_shape=b.index(shape),
                                             grad=b.rand(out_shape(shape, w, s, p), t),
                                             **attrs(w, s, p)), scaled(2, t, 4))


def volumes(f):
    of_pooling(f, 'MaxPool3D', lambda b, x, a: raw.MaxPool3D(input=x, **a), VOLUMES, EXACT)
    of_pooling(f, 'AvgPool3D', lambda b, x, a: raw.AvgPool3D(input=x, **a), VOLUMES, 2)
    for shape, w, s, p in cases(VOLUMES):
        small = out_shape(shape, w, s, p)
        f.case(tag(shape, w, s, p), 'AvgPool3DGrad', lambda b: raw.AvgPool3DGrad(
            orig_input_shape=b.index(shape), grad=b.rand(small, FLOAT), **attrs(w, s, p)), 2)

        def build(b, op, grad, ties):
            x = b.feed(b.data(shape, tf.int32, 0, 2), FLOAT) if ties else b.rand(shape, FLOAT)
            return op(orig_input=x, orig_output=raw.MaxPool3D(input=x, **attrs(w, s, p)),
                      grad=b.rand(grad, FLOAT), **attrs(w, s, p))
        for ties in (False, True):
            f.case('%s_%d' % (tag(shape, w, s, p), ties), 'MaxPool3DGrad',
                   lambda b: build(b, raw.MaxPool3DGrad, small, ties), 2)
            f.case('%s_%d' % (tag(shape, w, s, p), ties), 'MaxPool3DGradGrad',
                   lambda b: build(b, raw.MaxPool3DGradGrad, shape, ties), 2)


def bad(f):
    def pool(b, op, shape, size=(1, 2, 2, 1), strides=(1, 1, 1, 1)):
        arg = {'value' if op == 'AvgPool' else 'input': b.rand(shape, FLOAT, static='nothing')}
        return getattr(raw, op)(ksize=list(size), strides=list(strides), padding='VALID', **arg)
    for op in ('MaxPool', 'AvgPool'):
        for n, kw, words in [
                ('batch', dict(shape=(1, 2, 2, 1), size=(2, 1, 1, 1)),
                 'Pooling is not yet supported on the batch dimension.'),
                ('both', dict(shape=(1, 2, 2, 2), size=(1, 2, 2, 2)), ''),
                ('large', dict(shape=(1, 2, 2, 1), size=(1, 9, 1, 1)),
                 'Computed output size would be negative: -6 [input_size: 2, '
                 'effective_filter_size: 9, stride: 1]')]:
            f.case('bad/' + n, op, lambda b: pool(b, op, **kw), error=words)
    f.case('bad/depth', 'MaxPool', lambda b: pool(
        b, 'MaxPool', (1, 2, 2, 3), (1, 1, 1, 2), (1, 1, 1, 2)),
        error='Depthwise max pooling requires the depth window to evenly divide the input depth')
    f.case('bad/depth_stride', 'MaxPool', lambda b: pool(
        b, 'MaxPool', (1, 2, 2, 4), (1, 1, 1, 2), (1, 1, 1, 1)),
        error='Depthwise max pooling requires the depth window to equal the depth stride')
    f.case('empty', 'MaxPoolWithArgmax', lambda b: pool(b, 'MaxPoolWithArgmax', (0, 2, 2, 1)))


def lrn(f):
    for t in dtypes('LRN'):
        for shape, radius, bias, alpha, beta in [
                ((2, 3, 2, 8), 2, 1.0, .5, .5), ((1, 2, 3, 64), 4, 1.0, .001 / 9, .75),
                ((1, 2, 2, 17), 4, 2.0, .1, .75), ((1, 1, 2, 5), 7, 1.0, 1.0, 1.0),
                ((1, 2, 1, 12), 3, .5, .3, .62), ((2, 1, 2, 3), 0, 1.0, 1.0, .75),
                ((1, 1, 3, 300), 100, 1.0, .01, .75), ((0, 2, 2, 4), 2, 1.0, 1.0, .5)]:
            f.case('%s/%s_%d_%g' % (name_of(t), text(shape), radius, beta), 'LRN',
                   lambda b: raw.LRN(input=b.rand(shape, t), depth_radius=radius, bias=bias,
                                     alpha=alpha, beta=beta),
                   scaled(4, t, 4), grad=t == FLOAT and shape[0] > 0)
    f.case('bad/rank', 'LRN', lambda b: raw.LRN(input=b.rand((2, 3), FLOAT, static='nothing')),
           error='in must be 4-dimensional')


def batch_norm(f):
    shapes = [(2, 3, 4, 5), (1, 1, 1, 3), (3, 8, 8, 1), (1, 2, 2, 70), (4, 16, 16, 6)]
    for version, op in (('', raw.FusedBatchNorm), ('V2', raw.FusedBatchNormV2),
                        ('V3', raw.FusedBatchNormV3)):
        name = 'FusedBatchNorm' + version
        for t in [FLOAT] if not version else [FLOAT, HALF]:
            for training in (True, False):
                for shape in shapes if t == FLOAT else shapes[:2]:
                    def build(b, static=None):
                        c = shape[-1]
                        empty = tf.constant([], FLOAT)
                        out = op(x=b.rand(shape, t, -2, 5), scale=b.rand((c,), FLOAT),
                                 offset=b.rand((c,), FLOAT),
                                 mean=empty if training else b.rand((c,), FLOAT),
                                 variance=empty if training else b.rand((c,), FLOAT, .1, 4),
                                 epsilon=.001, is_training=training)
                        return (out[0], out[1], out[2]) if training else out[0]
                    f.case('%s/%s_%d' % (name_of(t), text(shape), training), name, build,
                           scaled(8, t, 4))

                    def graded(b):
                        y = build(b)
                        return y[0] if training else y
                    if t == FLOAT and shape != (1, 1, 1, 3):
                        f.case('grad/%s_%d' % (text(shape), training), name, graded, 40, grad=True)
    f.case('bad/rank', 'FusedBatchNorm', lambda b: raw.FusedBatchNorm(
        x=b.rand((2, 3), FLOAT, static='nothing'), scale=b.rand((3,), FLOAT),
        offset=b.rand((3,), FLOAT), mean=tf.constant([], FLOAT),
        variance=tf.constant([], FLOAT)).y, error='input must be 4-dimensional')


def old_norm(op, inputs, scale):
    """BatchNormWithGlobalNormalization or its gradient, which only graphs of old versions may have:
    imported from such a graph."""
    g = tf.compat.v1.GraphDef()
    g.versions.producer = 1
    node = g.node.add(name='y', op=op)
    node.attr['T'].type = inputs[0].dtype.as_datatype_enum
    node.attr['variance_epsilon'].f = .001
    node.attr['scale_after_normalization'].b = scale
    for i, t in enumerate(inputs):
        x = g.node.add(name='i%d' % i, op='Placeholder')
        x.attr['dtype'].type = t.dtype.as_datatype_enum
        node.input.append(x.name)
    outputs = 5 if op.endswith('Grad') else 1
    return tf.import_graph_def(g, {'i%d:0' % i: t for i, t in enumerate(inputs)},
                               ['y:%d' % i for i in range(outputs)], name='old')


def global_norm(f):
    op, c = 'BatchNormWithGlobalNormalization', 5
    for t in dtypes(op, among=[HALF, FLOAT, DOUBLE]):
        for scale in (True, False):
            def forward(b):
                return old_norm(op, [b.rand((2, 3, 2, c), t), b.rand((c,), t),
                                     b.rand((c,), t, .5, 3), b.rand((c,), t), b.rand((c,), t)],
                                scale)

            def backward(b):
                return old_norm(op + 'Grad', [b.rand((2, 3, 2, c), t), b.rand((c,), t),
                                              b.rand((c,), t, .5, 3), b.rand((c,), t),
                                              b.rand((2, 3, 2, c), t)], scale)
            f.case('%s_%d' % (name_of(t), scale), op, forward, scaled(4, t, 8),
                   grad=t == FLOAT)
            if t != HALF:
                f.case('%s_%d' % (name_of(t), scale), op + 'Grad', backward, 8)


def dilation(f):
    for t in dtypes('Dilation2D'):
        for shape, filters, stride, rate in [
                ((2, 5, 6, 3), (3, 2), 1, 1), ((1, 7, 5, 2), (2, 3), 2, 2),
                ((1, 4, 4, 70), (2, 2), 1, 1), ((1, 1, 1, 2), (2, 2), 1, 2)][:4 if t == FLOAT else 2]:
            for p in FORMATS:
                if shape[1] == 1 and p == 'VALID':
                    continue

                def build(b):
                    # Halves that are multiples of 1/8 have exact sums.
                    x = b.feed(b.data(shape, tf.int32, 0, 40) / (8. if t.is_floating else 1), t)
                    w = b.feed(b.data(filters + shape[3:], tf.int32, 0, 20) /
                               (8. if t.is_floating else 1), t)
                    return raw.Dilation2D(input=x, filter=w, strides=[1, stride, stride, 1],
                                          rates=[1, rate, rate, 1], padding=p)
                f.case('%s/%s_%s_%d_%d' % (name_of(t), text(shape), text(filters), stride, rate) +
                       p.lower(), 'Dilation2D', build, grad=t == FLOAT)
    f.case('bad/depth', 'Dilation2D', lambda b: raw.Dilation2D(
        input=b.rand((1, 3, 3, 2), FLOAT, static='nothing'),
        filter=b.rand((2, 2, 3), FLOAT, static='nothing'), strides=[1] * 4, rates=[1] * 4,
        padding='SAME'), error='input and filter must have the same depth: 2 vs 3')


def fractional(f):
    for op in ('FractionalMaxPool', 'FractionalAvgPool'):
        for t in dtypes(op):
            for pseudo in (False, True):
                for overlapping in (False, True):
                    f.case('%s_%d_%d' % (name_of(t), pseudo, overlapping), op,
                           lambda b: getattr(raw, op)(
                               value=b.rand((2, 11, 17, 3), t, static='nothing'),
                               pooling_ratio=[1.0, 1.44, 1.73, 1.0], pseudo_random=pseudo,
                               overlapping=overlapping, deterministic=True, seed=4, seed2=7),
                           scaled(2, t))
        f.case('bad/seed', op, lambda b: getattr(raw, op)(
            value=b.rand((1, 4, 4, 1), FLOAT, static='nothing'), pooling_ratio=[1., 2., 2., 1.],
            seed=3), error='Both seed and seed2 should be 0 if deterministic is false.')
    for overlapping in (False, True):
        def windows(b):
            return (b.index([0, 2, 3, 5], tf.int64), b.index([0, 1, 4], tf.int64))

        def max_grad(b):
            rows, columns = windows(b)
            return raw.FractionalMaxPoolGrad(
                orig_input=b.feed(x(b), FLOAT), orig_output=b.feed(pooled(x(b)), FLOAT),
                out_backprop=b.rand((1, 3, 2, 2), FLOAT), row_pooling_sequence=rows,
                col_pooling_sequence=columns, overlapping=overlapping)

        def x(b):
            return np.random.RandomState(b.seed).uniform(-1, 1, (1, 5, 4, 2)).astype('f')

        def pooled(v):
            rows, columns, o = [0, 2, 3, 5], [0, 1, 4], int(overlapping)
            return np.array([[[v[0, r:r2 + o, c:c2 + o].max((0, 1)) for c, c2 in zip(
                columns, columns[1:])] for r, r2 in zip(rows, rows[1:])]])

        def avg_grad(b):
            rows, columns = windows(b)
            return raw.FractionalAvgPoolGrad(
                orig_input_tensor_shape=b.index([1, 5, 4, 2], tf.int64),
                out_backprop=b.rand((1, 3, 2, 2), FLOAT), row_pooling_sequence=rows,
                col_pooling_sequence=columns, overlapping=overlapping)
        f.case('float_%d' % overlapping, 'FractionalMaxPoolGrad', max_grad, 2)
        f.case('float_%d' % overlapping, 'FractionalAvgPoolGrad', avg_grad, 2)


def make(f):
    max_pool(f)
    max_grads(f)
    avg_pool(f)
    volumes(f)
    bad(f)
    lrn(f)
    batch_norm(f)
    global_norm(f)
    dilation(f)
    fractional(f)
