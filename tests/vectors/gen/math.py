"""Matrix products, Cast, Range."""

import numpy as np
import tensorflow as tf

from gen.array import text
from gen.case import (BFLOAT16, DOUBLE, FLOAT, FLOATS, INTS, NUMBERS, UINTS, dtypes, name_of,
                      scaled)

raw = tf.raw_ops
PRODUCTS = [(1, 1, 1), (2, 3, 4), (1, 5, 1), (4, 1, 3), (1, 5, 6), (6, 5, 1), (7, 8, 9), (0, 3, 2),
            (2, 0, 3),
            (2, 3, 0), (17, 33, 19), (3, 4, 2)]


def matmul(f):
    for t in dtypes('MatMul'):
        for m, k, n in PRODUCTS if t == FLOAT else PRODUCTS[:3] + PRODUCTS[
                7:10] if t == DOUBLE else PRODUCTS[-1:]:
            for ta in (False, True):
                for tb in (False, True):
                    if (m, k, n) == (17, 33, 19) and ta != tb:
                        continue
                    f.case('%s/%dx%dx%d%s%s' % (name_of(t), m, k, n, '_ta' if ta else '',
                                                '_tb' if tb else ''),
                           'MatMul', lambda b: raw.MatMul(
                               a=b.rand((k, m) if ta else (m, k), t),
                               b=b.rand((n, k) if tb else (k, n), t),
                               transpose_a=ta, transpose_b=tb), scaled(4, t, 3),
                           grad=t in (FLOAT, DOUBLE) and m * k * n < 1000)
    for n, a, c, words in [
            ('size', (2, 3), (4, 2), 'Matrix size-incompatible: In[0]: [2,3], In[1]: [4,2]'),
            ('left', (2,), (2, 2), 'In[0] is not a matrix'),
            ('right', (2, 2), (2, 2, 2), 'In[1] is not a matrix')]:
        f.case('bad/' + n, 'MatMul', lambda b: raw.MatMul(a=b.rand(a, FLOAT, static='nothing'),
                                                          b=b.rand(c, FLOAT, static='nothing')),
                                                          error=words)
    for v in ('nan', 'inf'):
        f.case('float/' + v, 'MatMul', lambda b: raw.MatMul(
            a=b.feed([[1, float(v)], [2, 3]], FLOAT), b=b.feed([[1, 2], [3, 4]], FLOAT)), 1)


def batch_matmul(f):
    same = [((), 2, 3, 4), ((2,), 2, 3, 2), ((3, 2), 1, 2, 2), ((0,), 2, 2, 2), ((2,), 2, 0, 3),
            ((1, 2, 1), 2, 1, 3), ((2,), 2, 2, 3)]
    for op in ('BatchMatMul', 'BatchMatMulV2'):
        for t in dtypes(op):
            for batch, m, k, n in same if t == FLOAT else same[-1:]:
                for ax in (False, True):
                    for ay in (False, True):
                        f.case('%s/%s/%dx%dx%d%s%s' % (name_of(t), text(batch), m, k, n,
                                                       '_ax' if ax else '', '_ay' if ay else ''),
                               op, lambda b: getattr(raw, op)(
                                   x=b.rand(batch + ((k, m) if ax else (m, k)), t),
                                   y=b.rand(batch + ((n, k) if ay else (k, n)), t), adj_x=ax,
                                   adj_y=ay),
                               scaled(4, t, 3), grad=t in (FLOAT, DOUBLE))
        f.case('bad/size', op, lambda b: getattr(raw, op)(
            x=b.rand((2, 2, 3), FLOAT, static='nothing'),
            y=b.rand((2, 4, 2), FLOAT, static='nothing')),
            error='mismatch In[1] shape: 3 vs. 4: [2,2,3] [2,4,2] 0 0')
        f.case('bad/rank', op, lambda b: getattr(raw, op)(
            x=b.rand((3,), FLOAT, static='nothing'), y=b.rand((3,), FLOAT, static='nothing')),
            error='ndims must be >= 2: 1')
    f.case('bad/batch', 'BatchMatMul', lambda b: raw.BatchMatMul(
        x=b.rand((2, 2, 3), FLOAT, static='nothing'), y=b.rand((3, 3, 2), FLOAT, static='nothing')),
        error='In[0].dim(0) and In[1].dim(0) must be the same: [2,2,3] vs [3,3,2]')
    f.case('bad/batch', 'BatchMatMulV2', lambda b: raw.BatchMatMulV2(
        x=b.rand((2, 2, 3), FLOAT, static='nothing'), y=b.rand((3, 3, 2), FLOAT, static='nothing')),
        error='In[0] and In[1] must have compatible batch dimensions: [2,2,3] vs. [3,3,2]')
    for x, y in [((2, 3), (2, 3, 2)), ((3, 2, 3), (3, 2)), ((2, 1, 2, 3), (3, 3, 2)),
                 ((1, 2, 3), (4, 3, 2)),
                 ((1, 2, 1, 2, 2), (2, 1, 3, 2, 2))]:
        for t in (FLOAT, DOUBLE, tf.int32):
            f.case('%s/broadcast/%s_%s' % (name_of(t), text(x), text(y)), 'BatchMatMulV2',
                   lambda b: raw.BatchMatMulV2(
                x=b.rand(x, t), y=b.rand(y, t)), scaled(4, t, 3), grad=t.is_floating)


def cast(f):
    kinds = NUMBERS + [tf.bool]
    for s in kinds:
        for d in kinds:
            def build(b, truncate=False):
                lo = 0 if d.is_unsigned or s.is_unsigned else -9
                v = b.data((2, 5), s, lo, 9)
                if s in INTS + UINTS and d in INTS + UINTS:  # wraps
                    v = np.array([0, 1, 9, s.max, s.max // 3, s.max // 2 + 1, s.min, s.min // 2, 77,
                                  100],
                                 s.as_numpy_dtype)
                return raw.Cast(x=b.feed(v, s), DstT=d, Truncate=truncate)
            f.case('%s_to_%s' % (name_of(s), name_of(d)), 'Cast', build,
                   grad=s in FLOATS and d in FLOATS and BFLOAT16 not in (s, d))
    for s in (FLOAT, DOUBLE):
        for d in FLOATS:
            values = [0.1, -1.0 / 3, 65504, 65520, 7e4, 1e30, float('nan'), float('inf'),
                      float('-inf'), -0.0,
                      1.00048828125, 1.00146484375, 1.00390625, 1.01171875, 6.1e-5, 3.14159274]
            f.case('%s_to_%s/special' % (name_of(s), name_of(d)), 'Cast',
                   lambda b: raw.Cast(x=b.feed(values, s), DstT=d))
            f.case('%s_to_%s/truncate' % (name_of(s), name_of(d)), 'Cast', lambda b: raw.Cast(
                x=b.feed([v for v in values if abs(v) < 6e4], s), DstT=d, Truncate=True))
        f.case('%s_to_bool/special' % name_of(s), 'Cast', lambda b: raw.Cast(
            x=b.feed([float('nan'), 0.0, -0.0, 1e-30, float('inf')], s), DstT=tf.bool))
        for d in (tf.int32, tf.int64):
            f.case('%s_to_%s/toward_zero' % (name_of(s), name_of(d)), 'Cast', lambda b: raw.Cast(
                x=b.feed([1.9, -1.9, 2.5, -2.5, 1e6 + .5, -0.99, 16777217.0], s), DstT=d))
    for t in NUMBERS + [tf.bool, tf.string]:
        if t != tf.string:
            f.case('%s/same' % name_of(t), 'Cast', lambda b: raw.Cast(x=b.rand((2, 3), t), DstT=t))
    f.case('float_to_int32/0', 'Cast', lambda b: raw.Cast(x=b.rand((0, 2), FLOAT), DstT=tf.int32))
    f.case('int32_to_float/scalar', 'Cast', lambda b: raw.Cast(x=b.rand((), tf.int32), DstT=FLOAT))


def ranges(f):
    for t in dtypes('Range', 'Tidx'):
        for start, limit, delta in [(0, 5, 1), (2, 11, 3), (5, 0, -2), (3, 3, 1), (0, 1, 1),
                                    (-4, 4, 2), (0, 0, -1)]:
            f.case('%s/%s_%s_%s' % (name_of(t), start, limit, delta), 'Range', lambda b: raw.Range(
                start=b.index(start, t), limit=b.index(limit, t), delta=b.index(delta, t)))
        if t in (FLOAT, DOUBLE):
            for start, limit, delta in [(0, 1, .25), (1, 0, -.3), (.5, 2, .5), (0, 1, .1),
                                        (-1.5, 2.1, .7)]:
                f.case('%s/%s_%s_%s' % (name_of(t), start, limit, delta), 'Range',
                       lambda b: raw.Range(
                    start=b.index(start, t), limit=b.index(limit, t), delta=b.index(delta, t)), 1)
        f.case('%s/zero' % name_of(t), 'Range', lambda b: raw.Range(
            start=b.index(0, t, False), limit=b.index(5, t, False), delta=b.index(0, t, False)),
            error='Requires delta != 0: 0')
        f.case('%s/up' % name_of(t), 'Range', lambda b: raw.Range(
            start=b.index(5, t, False), limit=b.index(0, t, False), delta=b.index(1, t, False)),
            error='Requires start <= limit when delta > 0: 5/0')
        f.case('%s/down' % name_of(t), 'Range', lambda b: raw.Range(
            start=b.index(0, t, False), limit=b.index(5, t, False), delta=b.index(-1, t, False)),
            error='Requires start >= limit when delta < 0: 0/5')
    f.case('bad/rank', 'Range', lambda b: raw.Range(
        start=b.index([0], const=False, static='nothing'), limit=b.index(5, const=False),
        delta=b.index(1, const=False)),
        error='start must be a scalar, not shape [1]')


def make(f):
    for part in (matmul, batch_matmul, cast, ranges):
        part(f)
