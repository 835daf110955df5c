"""Reductions, ArgMax and ArgMin, Cumsum, L2Loss, AddN."""

import tensorflow as tf

from gen.array import text
from gen.case import BFLOAT16, DOUBLE, EXACT, FLOAT, HALF, dtypes, name_of, scaled

raw = tf.raw_ops
TODO = [((), []), ((5,), [0]), ((5,), 0), ((2, 3), [0]), ((2, 3), [1]), ((2, 3), [0, 1]),
        ((2, 3), []),
        ((2, 3), -1), ((2, 3), [-2]), ((2, 3, 4), [0, 2]), ((2, 3, 4), [1]), ((2, 3, 4), [-1, 0]),
        ((2, 1, 3, 2), [1, 3]), ((2, 2, 1, 3, 2), [0, 2, 4]), ((2, 2, 1, 3, 2), [1, 3]),
        ((0,), [0]),
        ((2, 0, 3), [1]), ((2, 0, 3), [0]), ((0, 3), [0, 1])]
LONG = [((1000,), [0]), ((7, 67), [0]), ((67, 7), [1]), ((5, 9, 7), [1])]


def reduction(f, op, types, lo, hi):
    for t in types:
        todo = TODO + LONG if t in (FLOAT, tf.bool) else TODO[3:15:3] + TODO[15:17] if t in (
            DOUBLE, tf.int32) else [TODO[9]]
        for shape, axes in todo:
            for keep in (False, True):
                if keep and (shape, axes) in LONG:
                    continue
                it = tf.int64 if (len(shape) + keep) % 3 == 0 else tf.int32
                bounds = (.8, 1.25) if op == 'Prod' and t.is_floating and (
                    shape, axes) in LONG else (
                    -1.5, 1.5) if t in (HALF, BFLOAT16) else (lo, hi)
                f.case('%s/%s_%s%s' % (name_of(t), text(shape), axes, '_keep' if keep else ''), op,
                       lambda b: getattr(raw, op)(input=b.rand(shape, t, *bounds),
                                                  axis=b.index(axes, it),
                                                  keep_dims=keep),
                       EXACT if op in ('Max', 'Min') else scaled(4, t, 3))
        if t in (FLOAT, DOUBLE) and op in ('Sum', 'Mean', 'Prod', 'Max', 'Min'):
            # a mean of nothing has a gradient of 0/0, made by an integer division in TensorFlow
            todo = [c for c in TODO if 0 not in c[0] or op == 'Sum']
            for shape, axes in todo if t == FLOAT else todo[3:6]:
                for keep in (False, True):
                    f.case('%s/grad/%s_%s%s' % (name_of(t), text(shape), axes,
                                                '_keep' if keep else ''), op,
                           lambda b: getattr(raw, op)(input=b.rand(shape, t, lo, hi),
                                                      axis=b.index(axes),
                                                      keep_dims=keep), scaled(4, t, 3), grad=True)
    t = types[0] if FLOAT not in types else FLOAT
    f.case('bad/axis', op, lambda b: getattr(raw, op)(
        input=b.rand((2, 3), t, static='nothing'), axis=b.index([2], const=False)),
        error='Invalid reduction dimension (2 for input with 2 dimension(s)')
    f.case('bad/negative', op, lambda b: getattr(raw, op)(
        input=b.rand((2, 3), t, static='nothing'), axis=b.index([0, -3], const=False)),
        error='Invalid reduction dimension (-3 for input with 2 dimension(s)')
    f.case('twice', op, lambda b: getattr(raw, op)(
        input=b.rand((2, 3), t, static='nothing'), axis=b.index([1, -1], const=False)), 4)


def reductions(f):
    for op, lo, hi in [('Sum', -3, 3), ('Mean', -3, 3), ('Prod', -2, 2), ('Max', -9, 9),
                       ('Min', -9, 9)]:
        reduction(f, op, dtypes(op), lo, hi)
    for op in ('All', 'Any'):
        reduction(f, op, [tf.bool], 0, 1)
    inf, nan = float('inf'), float('nan')
    for op in ('Sum', 'Mean', 'Max', 'Min', 'Prod'):
        for n, v in [('inf', [1, inf, 2]), ('nan_sum', [1, nan, 2]), ('infs', [inf, -inf, 1])]:
            if op in ('Max', 'Min') and n == 'nan_sum':
                continue  # depends on where the NaN stands
            f.case('float/' + n, op, lambda b: getattr(raw, op)(
                input=b.feed(v, FLOAT), axis=b.index([0])), 1)
    for op in ('Max', 'Min'):
        for t in dtypes(op):
            if t.is_integer:
                f.case('%s/limits' % name_of(t), op, lambda b: getattr(raw, op)(
                    input=b.feed([[t.min, t.max], [t.max, t.max], [t.min, t.min]], t),
                    axis=b.index([1])))
                f.case('%s/empty' % name_of(t), op, lambda b: getattr(raw, op)(
                    input=b.rand((2, 0), t), axis=b.index([1])))
        f.case('float/grad/ties', op, lambda b: getattr(raw, op)(
            input=b.feed([[1, 1, 0], [2, 2, 2]], FLOAT), axis=b.index([1])), 4, grad=True)
    for t in (tf.int8, tf.int32, tf.int64):
        if t in dtypes('Sum'):
            f.case('%s/wrap' % name_of(t), 'Sum', lambda b: raw.Sum(
                input=b.feed([t.max, t.max, 5], t), axis=b.index([0])))
    for v, n in [([[2., 0, 3], [4, 5, 0]], 'zero'), ([[0., 0, 3], [1, 0, 0]], 'zeros')]:
        f.case('float/grad/' + n, 'Prod', lambda b: raw.Prod(
            input=b.feed(v, FLOAT), axis=b.index([1])), 4, grad=True)


def arg(f):
    todo = [((5,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 3), -1), ((2, 3, 4), 1), ((2, 3, 4), -3),
            ((1, 2, 1, 3, 2), 3),
            ((0, 3), 1), ((1000,), 0), ((3, 4), 1)]
    for op in ('ArgMax', 'ArgMin'):
        for t in dtypes(op):
            for shape, axis in todo if t == FLOAT else todo[-1:]:
                for out in (tf.int32, tf.int64):
                    it = tf.int64 if len(shape) == 2 else tf.int32
                    f.case('%s/%s/%s_%d' % (name_of(t), name_of(out), text(shape), axis), op,
                           lambda b: getattr(raw, op)(input=b.rand(shape, t, -99, 99),
                                                      dimension=b.index(axis, it),
                                                      output_type=out))
            f.case('%s/ties' % name_of(t), op, lambda b: getattr(raw, op)(
                input=b.feed([[1, 2, 2, 1], [3, 3, 3, 3]], t), dimension=b.index(1)))
        f.case('bad/axis', op, lambda b: getattr(raw, op)(
            input=b.rand((2, 3), FLOAT, static='nothing'), dimension=b.index(2, const=False)),
            error='Expected dimension in the range [-2, 2), but got 2')
        f.case('bad/empty', op, lambda b: getattr(raw, op)(
            input=b.rand((2, 0), FLOAT, static='nothing'), dimension=b.index(1, const=False)),
            error='Reduction axis 1 is empty in shape [2,0]')


def cumulative(f, op, name='x'):
    for t in dtypes(op):
        for shape, axis in [((5,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3, 2), 1), ((0,), 0),
                            ((2, 0), 1), ((2, 0), 0),
                            ((1, 2, 1, 3, 2), 3), ((33,), 0), ((3, 2), 0)] if t == FLOAT else [
                                ((3, 2), 0)]:
            for exclusive in (False, True):
                for reverse in (False, True):
                    if t not in (FLOAT, DOUBLE, tf.int32) and (exclusive or not reverse):
                        continue
                    it = tf.int64 if reverse else tf.int32
                    f.case('%s/%s_%d%s%s' % (name_of(t), text(shape), axis,
                                             '_exclusive' if exclusive else '',
                                             '_reverse' if reverse else ''), op,
                           lambda b: getattr(raw, op)(x=b.rand(shape, t, -2, 2),
                                                      axis=b.index(axis, it),
                                                      exclusive=exclusive, reverse=reverse),
                           scaled(4, t, 3), grad=t in (FLOAT, DOUBLE))
    f.case('bad/axis', op, lambda b: getattr(raw, op)(x=b.rand((2, 3), FLOAT, static='nothing'),
                                                      axis=b.index(2, const=False)),
           error='Expected scan axis in the range [-2, 2), but got 2')


def sums(f):
    for t in dtypes('L2Loss'):
        for shape in [(), (5,), (2, 3), (0,), (1000,)] if t == FLOAT else [(2, 3)]:
            f.case('%s/%s' % (name_of(t), text(shape)), 'L2Loss',
                   lambda b: raw.L2Loss(t=b.rand(shape, t)),
                   scaled(4, t, 3), grad=t in (FLOAT, DOUBLE))
    for t in dtypes('AddN'):
        for n, shape in [(1, (2, 3)), (2, (2, 3)), (3, ()), (8, (5,)), (9, (5,)), (17, (2,)),
                         (2, (0,)), (3, (131,)),
                         (3, (2, 2))] if t == FLOAT else [(3, (2, 2))]:
            f.case('%s/%d_%s' % (name_of(t), n, text(shape)), 'AddN', lambda b: raw.AddN(
                inputs=[b.rand(shape, t) for _ in range(n)]), scaled(1, t, 3),
                grad=t == FLOAT and n < 9)
    f.case('bad/shape', 'AddN', lambda b: raw.AddN(inputs=[
        b.rand((2,), FLOAT, static='nothing'), b.rand((3,), FLOAT, static='nothing')]),
        error='must have the same size and shape.  Input 0: [2] != input 1: [3]')


def make(f):
    reductions(f)
    arg(f)
    cumulative(f, 'Cumsum')
    sums(f)
