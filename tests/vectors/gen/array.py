"""Array ops that look at shapes or move whole blocks."""

import numpy as np
import tensorflow as tf

from gen.case import ALL, DOUBLE, FLOAT, FLOATS, HALF, array, dtypes, name_of, tf1

raw = tf.raw_ops
SHAPES = [(), (1,), (5,), (2, 3), (1, 2, 1, 2, 2), (0,), (2, 0, 3)]


def text(shape):
    return 'x'.join(map(str, shape)) or 'scalar'


def each(op, shapes, attr='T', few=1):
    """All shapes for float, the first few for every other dtype."""
    for t in dtypes(op, attr):
        for shape in shapes if t == FLOAT else shapes[-few:]:
            yield t, shape


def int_types(op, attr):
    return dtypes(op, attr, among=[tf.int32, tf.int64])


def sources(f):
    for t in ALL:
        for shape in SHAPES + [(40,)] if t == FLOAT else [(), (3,), (2, 2), (0,)]:
            n = '%s/%s' % (name_of(t), text(shape))
            f.case(n, 'Const', lambda b: tf.constant(b.data(shape, t), t))
            f.case(n, 'Placeholder', lambda b: raw.Identity(input=b.rand(shape, t)))
        f.case(name_of(t) + '/same', 'Const', lambda b: tf.constant(b.data((), t), t, [2, 3]))

        def default(b):
            x = b.rand((2, 2), t)
            p = tf1.placeholder_with_default(x, [2, 2])
            y = raw.Identity(input=p)
            b.run([y, p])
            b.run([y], feeds={p: b.data((2, 2), t)})
        f.case(name_of(t), 'PlaceholderWithDefault', default)
    f.case('grad', 'PlaceholderWithDefault', lambda b: raw.Square(x=tf1.placeholder_with_default(
        b.rand((2, 2), FLOAT), [None, 2])), grad=True)

    def unfed(b):
        p = tf1.placeholder(FLOAT, [2, 3], name='image')
        b.run([raw.Neg(x=p)],
              error="You must feed a value for placeholder tensor 'image' with dtype "
              "float and shape [2,3]")
    f.case('unfed', 'Placeholder', unfed)

    def unfed_unknown(b):
        p = tf1.placeholder(tf.int64, None, name='label')
        b.run([raw.Neg(x=p)],
              error="You must feed a value for placeholder tensor 'label' with dtype int64")
    f.case('unfed_unknown', 'Placeholder', unfed_unknown)

    def any_tensor(b):
        x = raw.Add(x=b.rand((2,), FLOAT), y=b.rand((2,), FLOAT))
        b.run([raw.Neg(x=x)], feeds={x: b.data((2,), FLOAT)})
    f.case('feed_of_result', 'Add', any_tensor)


def whole(f):
    """Ops that keep or replace all elements."""
    for op, arg in [('Identity', 'input'), ('ZerosLike', 'x'), ('OnesLike', 'x'),
                    ('StopGradient', 'input'), ('PreventGradient', 'input')]:
        for t, shape in each(op, SHAPES):
            f.case('%s/%s' % (name_of(t), text(shape)), op,
                   lambda b: getattr(raw, op)(**{arg: b.rand(shape, t)}),
                   grad=t == FLOAT and shape in [(2, 3), ()] and op != 'PreventGradient')
    f.case('mixed', 'IdentityN', lambda b: raw.IdentityN(input=[
        b.rand((2, 3), FLOAT), b.rand((), tf.int64), b.rand((2,), tf.string),
        b.rand((0,), tf.bool)]))
    f.case('one', 'IdentityN', lambda b: raw.IdentityN(input=[b.rand((2, 3), HALF)]))
    f.case('grad', 'IdentityN', lambda b: raw.IdentityN(
        input=[b.rand((2, 3), FLOAT), b.rand((2,), FLOAT)]), grad=True)

    def stopped(b):
        x, y = b.rand((2, 3), FLOAT), b.rand((2, 3), FLOAT)
        return raw.Mul(x=raw.StopGradient(input=raw.Square(x=x)), y=raw.Mul(x=x, y=y))
    f.case('grad/part', 'StopGradient', stopped, grad=True)
    for t in dtypes('CheckNumerics', among=FLOATS):
        f.case('%s/fine' % name_of(t), 'CheckNumerics', lambda b: raw.CheckNumerics(
            tensor=b.rand((2, 3), t), message='all well'), grad=t in (FLOAT, DOUBLE))
        for what, words in [('nan', 'Tensor had NaN'), ('inf', 'Tensor had Inf')]:
            f.case('%s/%s' % (name_of(t), what), 'CheckNumerics', lambda b: raw.CheckNumerics(
                tensor=b.feed([1, 2, float(what), 3], t), message='the loss'),
                error='the loss : ' + words)
        f.case('%s/both' % name_of(t), 'CheckNumerics', lambda b: raw.CheckNumerics(
            tensor=b.feed([1, float('nan'), float('-inf'), 3], t), message='x'),
            error='x : Tensor had')
    f.case('float/empty', 'CheckNumerics', lambda b: raw.CheckNumerics(
        tensor=b.rand((0,), FLOAT), message='x'))


def shapes(f):
    for out in (tf.int32, tf.int64):
        for t, shape in each('Shape', SHAPES):
            if t not in (FLOAT, tf.string) and out == tf.int64:
                continue
            n = '%s/%s/%s' % (name_of(t), name_of(out), text(shape))
            f.case(n, 'Shape', lambda b: raw.Shape(input=b.rand(shape, t), out_type=out))
            f.case(n, 'Size', lambda b: raw.Size(input=b.rand(shape, t), out_type=out))
        f.case(name_of(out), 'ShapeN', lambda b: raw.ShapeN(
            input=[b.rand(s, FLOAT) for s in SHAPES], out_type=out))
    for t, shape in each('Rank', SHAPES):
        f.case('%s/%s' % (name_of(t), text(shape)), 'Rank',
               lambda b: raw.Rank(input=b.rand(shape, t)))
    for i, it in enumerate([tf.int32, tf.int64]):
        for n, s0, s1 in [('same', [2, 3], [2, 3]), ('row', [2, 3], [3]), ('col', [2, 3], [2, 1]),
                          ('both', [2, 1, 3], [1, 4, 1]), ('scalar', [], [2, 3]),
                          ('scalars', [], []), ('ones', [1, 1], [1]), ('zero', [0], [1]),
                          ('zero_inside', [2, 0, 3], [3]),
                          ('five', [2, 1, 2, 1, 3], [1, 2, 1, 2, 3]),
                          ('left', [1], [2, 3])]:
            n = '%s/%s' % (name_of(it), n)
            f.case(n, 'BroadcastGradientArgs', lambda b: raw.BroadcastGradientArgs(
                s0=b.index(s0, it), s1=b.index(s1, it)))
            f.case(n, 'BroadcastArgs', lambda b: raw.BroadcastArgs(
                s0=b.index(s0, it), s1=b.index(s1, it)))
        for op in ('BroadcastGradientArgs', 'BroadcastArgs'):
            f.case('%s/bad' % name_of(it), op, lambda b: getattr(raw, op)(
                s0=b.index([2, 3], it, False), s1=b.index([4], it, False)),
                error='Incompatible shapes: [2,3] vs. [4]')
            f.case('%s/bad_rank' % name_of(it), op, lambda b: getattr(raw, op)(
                s0=b.index([[2, 3]], it, False, 'nothing'), s1=b.index([4], it, False)),
                error='In[0] must be a vector.')


def reshape(f):
    todo = [((2, 3), [3, 2]), ((2, 3), [6]), ((2, 3), [-1]), ((2, 3), [-1, 2]),
            ((2, 3), [3, -1, 1]),
            ((1,), []), ((), [1, 1]), ((0,), [0, 3]), ((2, 0, 3), [0, -1]), ((2, 0), [0, -1]),
            ((0, 3), [-1, 3]), ((2, 0, 3), [6, 0]),
            ((2, 2, 3), [1, 2, 6])]
    for t in dtypes('Reshape'):
        for shape, to in todo if t == FLOAT else todo[-1:]:
            for it in (tf.int32, tf.int64) if t == FLOAT else (tf.int32,):
                f.case('%s/%s/%s_to_%s' % (name_of(t), name_of(it), text(shape), text(to)),
                       'Reshape',
                       lambda b: raw.Reshape(tensor=b.rand(shape, t), shape=b.index(to, it)),
                       grad=t == FLOAT)
    for n, shape, to, words in [
            ('count', (2, 3), [4],
             'Input to reshape is a tensor with 6 values, but the requested shape has 4'),
            ('two', (2, 3), [-1, -1], 'Only one input size may be -1, not both 0 and 1'),
            ('negative', (2, 3), [-2, 3], 'Size 0 must be non-negative, not -2'),
            ('multiple', (2, 3), [-1, 4],
             'Input to reshape is a tensor with 6 values, but the requested shape requires a '
             'multiple of 4'),
            ('matrix', (2, 3), [[3, 2]], 'sizes input must be 1-D')]:
        f.case('bad/' + n, 'Reshape', lambda b: raw.Reshape(
            tensor=b.rand(shape, FLOAT, static='nothing'),
            shape=b.index(to, const=False, static='nothing')),
            error=words)

    for t in dtypes('ExpandDims'):
        for shape, axis in [((), 0), ((), -1), ((5,), 1), ((2, 3), 0), ((2, 3), 1), ((2, 3), 2),
                            ((2, 3), -1), ((2, 3), -3), ((0,), 0), ((2, 3), -2)]:
            if t == FLOAT or axis == -2:
                f.case('%s/%s_%d' % (name_of(t), text(shape), axis), 'ExpandDims',
                       lambda b: raw.ExpandDims(input=b.rand(shape, t), axis=b.index(
                           axis, int_types('ExpandDims', 'Tdim')[axis % 2])), grad=t == FLOAT)
    for axis in (3, -4):
        f.case('bad/%d' % axis, 'ExpandDims', lambda b: raw.ExpandDims(
            input=b.rand((2, 3), FLOAT, static='nothing'), axis=b.index(axis, const=False)),
            error='Tried to expand dim index %d for tensor with 2 dimensions.' % axis)
    for t in dtypes('Squeeze'):
        for shape, axes in [((1, 2, 1, 3), []), ((1, 2, 1, 3), [0]), ((1, 2, 1, 3), [2]),
                            ((1, 2, 1, 3), [-2]), ((1, 2, 1, 3), [0, 2]), ((1,), []), ((), []),
                            ((1, 0), []), ((1, 1), [0, 1]), ((1, 2, 1), [0, -1])]:
            if t == FLOAT or -1 in axes:
                f.case('%s/%s_%s' % (name_of(t), text(shape), axes), 'Squeeze',
                       lambda b: raw.Squeeze(input=b.rand(shape, t), axis=axes), grad=t == FLOAT)
    f.case('bad/size', 'Squeeze', lambda b: raw.Squeeze(
        input=b.rand((1, 2), FLOAT, static='nothing'), axis=[1]),
        error='Can not squeeze dim[1], expected a dimension of 1, got 2')
    f.case('bad/range', 'Squeeze', lambda b: raw.Squeeze(
        input=b.rand((1, 2), FLOAT, static='nothing'), axis=[2]),
        error='Tried to squeeze dim index 2 for tensor with 2 dimensions.')


def concat(f):
    todo = [([(2, 3), (2, 3)], 0), ([(2, 3), (1, 3), (4, 3)], 0), ([(2,), (3,)], 0),
            ([(2, 3), (2, 3)], -1), ([(2, 3), (2, 0), (2, 2)], 1), ([(0, 3), (2, 3)], 0),
            ([(0,), (0,)], 0), ([(2, 2, 2), (2, 1, 2)], -2), ([(1, 2, 1, 2, 2)] * 3, 3),
            ([(2,)] * 20, 0), ([(2, 3), (2, 1)], 1)]
    for t in dtypes('ConcatV2'):
        for ss, axis in todo if t == FLOAT else todo[-1:]:
            for it in (tf.int32, tf.int64) if t == FLOAT else (tf.int32,):
                f.case('%s/%s/%s_%d' % (name_of(t), name_of(it), '_'.join(map(text, ss[:4])), axis),
                       'ConcatV2', lambda b: raw.ConcatV2(
                           values=[b.rand(s, t) for s in ss], axis=b.index(axis, it)),
                       grad=t == FLOAT and it == tf.int32)
            if axis >= 0:
                f.case('%s/%s_%d' % (name_of(t), '_'.join(map(text, ss[:4])), axis), 'Concat',
                       lambda b: raw.Concat(concat_dim=b.index(axis),
                                            values=[b.rand(s, t) for s in ss]), grad=t == FLOAT)
    for op, arg in [('ConcatV2', 'axis'), ('Concat', 'concat_dim')]:
        for n, ss, axis, words in [
                ('rank', [(2, 3), (3,)], 0, 'ConcatOp : Ranks of all input tensors should match: '
                 'shape[0] = [2,3] vs. shape[1] = [3]'),
                ('dims', [(2, 3), (2, 4)], 0, 'ConcatOp : Dimensions of inputs should match: '
                 'shape[0] = [2,3] vs. shape[1] = [2,4]'),
                ('axis', [(2, 3), (2, 3)], 2,
                 'ConcatOp : Expected concatenating dimensions in the range [-2, 2), but got 2')]:
            f.case('bad/' + n, op, lambda b: getattr(raw, op)(**{
                'values': [b.rand(s, FLOAT, static='nothing') for s in ss],
                arg: b.index(axis, const=False)}), error=words)
    for n, axis, ss in [('two', 0, [[2, 3], [4, 3]]), ('three', 1, [[2, 3], [2, 4], [2, 0]]),
                        ('negative', -1, [[2, 2, 5], [2, 2, 7]])]:
        f.case(n, 'ConcatOffset', lambda b: raw.ConcatOffset(
            concat_dim=b.index(axis), shape=[b.index(s) for s in ss]))
    f.case('bad', 'ConcatOffset', lambda b: raw.ConcatOffset(
        concat_dim=b.index(0), shape=[b.index([2, 3], const=False), b.index([2, 4], const=False)]),
        error='All dimensions except 0 must match. Input 1 has shape')


def pack(f):
    todo = [((2, 3), 3, 0), ((2, 3), 2, 1), ((2, 3), 2, 2), ((2, 3), 2, -1), ((2, 3), 2, -3),
            ((), 4, 0), ((5,), 1, 0), ((0,), 3, 0), ((0,), 3, 1), ((1, 2, 2, 2), 2, 2),
            ((3,), 2, 1)]
    for t in dtypes('Pack'):
        for shape, n, axis in todo if t == FLOAT else todo[-1:]:
            name = '%s/%s_%d_%d' % (name_of(t), text(shape), n, axis)
            f.case(name, 'Pack', lambda b: raw.Pack(
                values=[b.rand(shape, t) for _ in range(n)], axis=axis), grad=t == FLOAT)

            def unpack(b):
                a = axis % (len(shape) + 1)
                return raw.Unpack(value=b.rand(shape[:a] + (n,) + shape[a:], t), num=n, axis=axis)
            f.case(name, 'Unpack', unpack, grad=t == FLOAT)
    f.case('grad/one', 'Unpack', lambda b: raw.Unpack(value=b.rand((3, 2), FLOAT), num=3)[1],
           grad=True)
    f.case('float/none', 'Unpack', lambda b: [raw.Shape(input=v) for v in [b.rand((0, 2), FLOAT)]] +
           list(raw.Unpack(value=b.rand((0, 2), FLOAT), num=0) or []))
    f.case('bad', 'Pack', lambda b: raw.Pack(values=[
        b.rand((2,), FLOAT, static='nothing'), b.rand((3,), FLOAT, static='nothing')]),
        error='Shapes of all inputs must match: values[0].shape = [2] != values[1].shape = [3]')
    f.case('bad/num', 'Unpack', lambda b: raw.Unpack(value=b.rand((3, 2), FLOAT, static='nothing'),
                                                     num=2),
           error='Input shape axis 0 must equal 2, got shape [3,2]')
    f.case('bad/axis', 'Unpack', lambda b: raw.Unpack(
        value=b.rand((3,), FLOAT, static='nothing'), num=3, axis=1),
        error='axis = 1 not in [-1, 1)')


def split(f):
    todo = [((6,), 0, 3), ((2, 6), 1, 2), ((2, 6), -1, 3), ((4, 2), 0, 4), ((2, 3), 0, 1),
            ((0, 4), 1, 2),
            ((0,), 0, 2), ((2, 2, 4), 2, 2), ((4, 3), 0, 2)]
    for t in dtypes('Split'):
        for shape, axis, n in todo if t == FLOAT else todo[-1:]:
            f.case('%s/%s_%d_%d' % (name_of(t), text(shape), axis, n), 'Split', lambda b: raw.Split(
                axis=b.index(axis), value=b.rand(shape, t), num_split=n), grad=t == FLOAT)
    f.case('grad/one', 'Split', lambda b: raw.Split(
        axis=b.index(1), value=b.rand((2, 6), FLOAT), num_split=3)[2], grad=True)
    for n, shape, axis, words in [
            ('count', (5,), 0,
             'Number of ways to split should evenly divide the split dimension, '
             'but got split_dim 0 (size = 5) and num_split 2'),
            ('axis', (4,), 1, '-input rank(-1) <= split_dim < input rank (1), but got 1')]:
        f.case('bad/' + n, 'Split', lambda b: raw.Split(
            axis=b.index(axis, const=False), value=b.rand(shape, FLOAT, static='nothing'),
            num_split=2),
            error=words)
    todo = [((6,), 0, [1, 2, 3]), ((2, 6), 1, [6]), ((2, 6), -1, [1, 0, 5]), ((5, 2), 0, [2, -1]),
            ((0, 4), 1, [1, 3]), ((2, 2, 4), 2, [3, -1]), ((4, 3), 0, [3, 1])]
    for t in dtypes('SplitV'):
        for shape, axis, sizes in todo if t == FLOAT else todo[-1:]:
            for it in int_types('SplitV', 'Tlen') if t == FLOAT else (tf.int32,):
                f.case('%s/%s/%s_%d_%s' % (name_of(t), name_of(it), text(shape), axis, sizes),
                       'SplitV',
                       lambda b: raw.SplitV(value=b.rand(shape, t), size_splits=b.index(sizes, it),
                                            axis=b.index(axis), num_split=len(sizes)),
                                            grad=t == FLOAT)
    for n, shape, sizes, words in [
            ('sum', (5,), [2, 2],
             'Determined shape must either match input shape along split_dim exactly if fully '
             'specified, or be less than the size of the input along split_dim if not fully '
             'specified.  Got: 4'),
            ('two', (5,), [-1, -1], 'There can only be one -1 in the input.')]:
        f.case('bad/' + n, 'SplitV', lambda b: raw.SplitV(
            value=b.rand(shape, FLOAT, static='nothing'), size_splits=b.index(sizes, const=False),
            axis=b.index(0), num_split=2), error=words)


def repeat(f):
    """Slice, Tile, Fill, Pad, ReverseV2, Transpose, BroadcastTo."""
    todo = [((5,), [1], [3]), ((5,), [2], [-1]), ((4, 3), [1, 0], [2, 3]),
            ((4, 3), [0, 0], [-1, -1]),
            ((4, 3), [0, 1], [4, 2]), ((4, 3), [4, 0], [0, 3]), ((2, 3, 4), [0, 1, 2], [2, 2, 1]),
            ((2, 2, 2, 2, 2), [0, 1, 0, 1, 0], [2, 1, 1, 1, 2]), ((), [], []),
            ((0, 3), [0, 1], [0, 2]),
            ((3, 4), [1, 1], [2, 2])]
    for t in dtypes('Slice'):
        for shape, begin, size in todo if t == FLOAT else todo[-1:]:
            for it in (tf.int32, tf.int64) if t == FLOAT else (tf.int32,):
                f.case('%s/%s/%s_%s_%s' % (name_of(t), name_of(it), text(shape), begin, size),
                       'Slice',
                       lambda b: raw.Slice(input=b.rand(shape, t), begin=b.index(begin, it),
                                           size=b.index(size, it)),
                                           grad=t == FLOAT and it == tf.int32)
    for n, begin, size, words in [
            ('begin', [6], [1], 'Expected begin[0] in [0, 5], but got 6'),
            ('size', [3], [3], 'Expected size[0] in [0, 2], but got 3'),
            ('negative', [-1], [1], 'Expected begin[0] in [0, 5], but got -1'),
            ('rank', [0, 0], [1, 1],
             'Expected begin and size arguments to be 1-D tensors of size 1')]:
        f.case('bad/' + n, 'Slice', lambda b: raw.Slice(
            input=b.rand((5,), FLOAT, static='nothing'),
            begin=b.index(begin, const=False, static='nothing'),
            size=b.index(size, const=False, static='nothing')), error=words)

    todo = [((3,), [2]), ((2, 3), [1, 1]), ((2, 3), [2, 3]), ((2, 3), [0, 2]), ((), []),
            ((0, 2), [2, 2]),
            ((1, 2, 1, 2), [2, 1, 3, 2]), ((2, 1, 1, 2, 1), [1, 2, 2, 1, 2]), ((2, 2), [3, 2])]
    for t in dtypes('Tile'):
        if t in (tf.uint16, tf.uint32, tf.uint64):
            continue  # registered, yet UNIMPLEMENTED
        for shape, by in todo if t == FLOAT else todo[-1:]:
            for it in (tf.int32, tf.int64) if t == FLOAT else (tf.int32,):
                f.case('%s/%s/%s_%s' % (name_of(t), name_of(it), text(shape), by), 'Tile',
                       lambda b: raw.Tile(input=b.rand(shape, t), multiples=b.index(by, it)),
                       2, grad=t == FLOAT)
    f.case('bad/rank', 'Tile', lambda b: raw.Tile(
        input=b.rand((2, 3), FLOAT, static='nothing'),
        multiples=b.index([2], const=False, static='nothing')),
        error='Expected multiples argument to be a vector of length 2 but got length 1')
    f.case('bad/negative', 'Tile', lambda b: raw.Tile(
        input=b.rand((2,), FLOAT, static='nothing'), multiples=b.index([-1], const=False)),
        error='Expected multiples[0] >= 0, but got -1')

    for t in dtypes('Fill'):
        for dims in [[2, 3], [], [0], [2, 0, 1], [1, 2, 1, 2, 2]] if t == FLOAT else [[2, 3]]:
            for it in (tf.int32, tf.int64) if t == FLOAT else (tf.int32,):
                f.case('%s/%s/%s' % (name_of(t), name_of(it), text(dims)), 'Fill',
                       lambda b: raw.Fill(
                    dims=b.index(dims, it), value=b.rand((), t)), grad=t == FLOAT)
    f.case('bad/value', 'Fill', lambda b: raw.Fill(dims=b.index([2], const=False),
                                                   value=b.rand((2,), FLOAT, static='nothing')),
           error='value must be a scalar')
    f.case('bad/dims', 'Fill', lambda b: raw.Fill(dims=b.index(
        [[2]], const=False, static='nothing'),
                                                  value=b.rand((), FLOAT)),
                                                  error='dims must be a vector')

    todo = [((3,), [[1, 2]]), ((2, 3), [[0, 0], [0, 0]]), ((2, 3), [[1, 0], [0, 2]]),
            ((), np.zeros((0, 2))),
            ((0, 2), [[1, 1], [0, 1]]), ((1, 2, 1, 2), [[1, 0], [0, 1], [1, 1], [0, 0]]),
            ((2, 1, 1, 1, 2), [[0, 1]] * 5), ((2, 2), [[1, 1], [2, 0]])]
    for t in dtypes('Pad'):
        for shape, pads in todo if t == FLOAT else todo[-1:]:
            for it in (tf.int32, tf.int64) if t == FLOAT else (tf.int32,):
                n = '%s/%s/%s_%s' % (name_of(t), name_of(it), text(shape),
                                     np.ravel(pads).astype(int).tolist())
                f.case(n, 'Pad', lambda b: raw.Pad(input=b.rand(shape, t),
                                                   paddings=b.index(pads, it)),
                       grad=t == FLOAT and it == tf.int32)
    f.case('bad/shape', 'Pad', lambda b: raw.Pad(
        input=b.rand((2, 3), FLOAT, static='nothing'),
        paddings=b.index([[1, 1]], const=False, static='nothing')),
        error='The first dimension of paddings must be the rank of inputs[1,2] [2,3]')
    f.case('bad/negative', 'Pad', lambda b: raw.Pad(
        input=b.rand((2,), FLOAT, static='nothing'),
        paddings=b.index([[-1, 1]], const=False, static='nothing')),
        error='Paddings must be non-negative: -1 1')


def turn(f):
    todo = [((5,), [0]), ((2, 3), [0]), ((2, 3), [1]), ((2, 3), [0, 1]), ((2, 3), [-1]),
            ((2, 3), []),
            ((), []), ((0, 3), [0]), ((2, 3, 3), [1]), ((2, 1, 2, 2), [0, 3]),
            ((2, 2, 1, 2, 2), [4, 1]),
            ((3, 2), [0])]
    for t in dtypes('ReverseV2'):
        for shape, axes in todo if t == FLOAT else todo[-1:]:
            for it in (tf.int32, tf.int64) if t == FLOAT else (tf.int32,):
                f.case('%s/%s/%s_%s' % (name_of(t), name_of(it), text(shape), axes), 'ReverseV2',
                       lambda b: raw.ReverseV2(tensor=b.rand(shape, t), axis=b.index(axes, it)),
                       grad=t == FLOAT)
    for n, axes, words in [('range', [2], '2 is out of valid range'),
                           ('twice', [0, -2], 'axis 0 specified more than once.')]:
        f.case('bad/' + n, 'ReverseV2', lambda b: raw.ReverseV2(
            tensor=b.rand((2, 3), FLOAT, static='nothing'), axis=b.index(axes, const=False)),
            error=words)

    todo = [((2, 3), [1, 0]), ((2, 3), [0, 1]), ((5,), [0]), ((), []), ((0, 3), [1, 0]),
            ((2, 3, 4), [0, 2, 1]),
            ((2, 3, 4), [2, 1, 0]), ((2, 3, 4), [1, 0, 2]), ((2, 3, 4), [2, 0, 1]),
            ((2, 1, 3, 2), [3, 1, 0, 2]),
            ((2, 2, 1, 3, 2), [4, 0, 3, 1, 2]), ((17, 35), [1, 0]), ((3, 2), [1, 0])]
    for t in dtypes('Transpose'):
        for shape, perm in todo if t == FLOAT else todo[-1:]:
            for it in (tf.int32, tf.int64) if t == FLOAT and shape != (17, 35) else (tf.int32,):
                f.case('%s/%s/%s_%s' % (name_of(t), name_of(it), text(shape), perm), 'Transpose',
                       lambda b: raw.Transpose(x=b.rand(shape, t), perm=b.index(perm, it)),
                       grad=t == FLOAT and shape != (17, 35))
    for n, perm, words in [
            ('rank', [0],
             'transpose expects a vector of size 2. But input(1) is a vector of size 1'),
                           ('range', [0, 2], '2 is out of range [0 .. 2)'),
                           ('twice', [1, 1], '0 is missing from {1,1}.')]:
        f.case('bad/' + n, 'Transpose', lambda b: raw.Transpose(
            x=b.rand((2, 3), FLOAT, static='nothing'),
            perm=b.index(perm, const=False, static='nothing')),
            error=words)
    for t in dtypes('InvertPermutation', among=[tf.int32, tf.int64]):
        for p in ([0], [2, 0, 1], [3, 1, 0, 2, 4], []):
            f.case('%s/%s' % (name_of(t), p), 'InvertPermutation',
                   lambda b: raw.InvertPermutation(x=b.index(p, t)))
        f.case('%s/twice' % name_of(t), 'InvertPermutation',
               lambda b: raw.InvertPermutation(x=b.index([0, 0], t, False)),
               error='0 is duplicated in the input.')
        f.case('%s/range' % name_of(t), 'InvertPermutation',
               lambda b: raw.InvertPermutation(x=b.index([0, 2], t, False)),
               error='2 is not between 0 and 2')

    todo = [((3,), [2, 3]), ((), [2, 2]), ((2, 1), [2, 3]), ((2, 3), [2, 3]), ((1, 3), [4, 2, 3]),
            ((1,), [0]),
            ((1, 2, 1), [3, 2, 2]), ((2,), [2])]
    for t in dtypes('BroadcastTo'):
        for shape, to in todo if t == FLOAT else todo[:1]:
            for it in (tf.int32, tf.int64) if t == FLOAT else (tf.int32,):
                f.case('%s/%s/%s_%s' % (name_of(t), name_of(it), text(shape), text(to)),
                       'BroadcastTo',
                       lambda b: raw.BroadcastTo(input=b.rand(shape, t), shape=b.index(to, it)),
                       2, grad=t == FLOAT and it == tf.int32)
    f.case('bad', 'BroadcastTo', lambda b: raw.BroadcastTo(
        input=b.rand((2,), FLOAT, static='nothing'),
        shape=b.index([3], const=False, static='nothing')),
        error='Incompatible shapes: [2] vs. [3]')


def choose(f):
    for t in dtypes('Where'):
        if t == HALF:
            continue  # registered, yet UNIMPLEMENTED
        for shape in [(5,), (2, 3), (0,), (2, 0), (2, 2, 3), (1, 2, 2, 2), (2, 1, 2, 1, 2),
                      (40,)] if (
                t in (tf.bool, FLOAT)) else [(2, 5)]:
            def where(b):
                x = b.data(shape, t, -1, 1)
                if t.is_floating:
                    x = array(np.round(x.astype(float)), t)
                return raw.Where(condition=b.feed(x, t))
            f.case('%s/%s' % (name_of(t), text(shape)), 'Where', where)
    f.case('none', 'Where', lambda b: raw.Where(condition=b.feed(np.zeros((2, 3)), tf.bool)))
    todo = [((), ()), ((2, 3), (2, 3)), ((0,), (0,)), ((2,), (2, 3)), ((), (2, 3)),
            ((3,), (3, 2, 2)),
            ((0,), (0, 2)), ((2,), (2, 2))]
    for t in dtypes('Select'):
        for c, shape in todo if t == FLOAT else todo[-2:]:
            f.case('%s/%s_%s' % (name_of(t), text(c), text(shape)), 'Select', lambda b: raw.Select(
                condition=b.rand(c, tf.bool), x=b.rand(shape, t), y=b.rand(shape, t)),
                grad=t == FLOAT)
    f.case('float/nan', 'Select', lambda b: raw.Select(
        condition=b.feed([True, False, True]), x=b.feed([1., 2., 3.], FLOAT),
        y=b.feed([float('nan')] * 3, FLOAT)), grad=True)
    for n, c, x, y, words in [
            ('else', (2, 3), (2, 3), (3, 2),
             'must have the same size and shape.  Input 0: [2,3] != input 2: [3,2]'),
            ('condition', (3,), (2, 2), (2, 2),
             "Number of batches of 'then' must match size of 'cond', but saw: 2 vs. 3"),
            ('rank', (2, 2), (2,), (2,),
             'must have the same size and shape.  Input 0: [2,2] != input 1: [2]')]:
        f.case('bad/' + n, 'Select', lambda b: raw.Select(
            condition=b.rand(c, tf.bool, static='nothing'), x=b.rand(x, FLOAT, static='nothing'),
            y=b.rand(y, FLOAT, static='nothing')), error=words)


def make(f):
    for part in (sources, whole, shapes, reshape, concat, pack, split, repeat, turn, choose):
        part(f)
