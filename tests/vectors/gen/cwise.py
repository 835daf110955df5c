"""Element-wise ops: unary, binary with broadcasting, comparisons, logic, bits, *Grad ops."""

import math

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops as tf_ops

from gen.case import (ANY, CONFIG, DOUBLE, FLOAT, FLOATS, HALF, VALUES, array, dtypes, name_of,
                      scaled, tf1)

raw = tf.raw_ops
# op: (lo, hi of the random inputs, tolerance, a reference for special values)
UNARY = {
    'Abs': (-3, 3, VALUES, np.abs), 'Acos': (-1, 1, 2, np.arccos), 'Acosh': (1, 9, 4, np.arccosh),
    'Asin': (-1, 1, 2, np.arcsin), 'Asinh': (-9, 9, 4, np.arcsinh), 'Atan': (-9, 9, 1, np.arctan),
    'Atanh': (-.9, .9, 4, np.arctanh), 'BesselI0e': (-9, 9, 2, None), 'BesselI1e': (-9, 9, 2, None),
    'Ceil': (-5, 5, VALUES, np.ceil), 'Cos': (-9, 9, 4, np.cos), 'Cosh': (-5, 5, 1, np.cosh),
    'Digamma': (.3, 9, 4, None), 'Erf': (-3, 3, 2, np.vectorize(math.erf)),
    'Erfc': (-3, 3, 4, np.vectorize(math.erfc)), 'Exp': (-9, 9, 1, np.exp),
    'Expm1': (-3, 3, 2, np.expm1), 'Floor': (-5, 5, VALUES, np.floor), 'Inv': (.3, 4, 1, None),
    'Lgamma': (.3, 9, 8, None), 'Log': (.1, 9, 1, np.log), 'Log1p': (-.9, 9, 2, np.log1p),
    'Neg': (-3, 3, VALUES, np.negative), 'Reciprocal': (.3, 4, 1, np.reciprocal),
    'Rint': (-5, 5, VALUES, np.rint), 'Round': (-5, 5, VALUES, np.rint),
    'Rsqrt': (.1, 9, 1, None), 'Sigmoid': (-9, 9, 1, lambda x: 1 / (1 + np.exp(-x))),
    'Sign': (-3, 3, VALUES, np.sign), 'Sin': (-9, 9, 4, np.sin), 'Sinh': (-5, 5, 2, np.sinh),
    'Sqrt': (.1, 9, 1, np.sqrt), 'Square': (-3, 3, VALUES, np.square),
    'Tan': (-1.4, 1.4, 4, np.tan),
    'Tanh': (-4, 4, 1, np.tanh), 'IsFinite': (-3, 3, VALUES, np.isfinite),
    'IsInf': (-3, 3, VALUES, np.isinf), 'IsNan': (-3, 3, VALUES, np.isnan),
    'Invert': (None, None, VALUES, None), 'PopulationCount': (None, None, VALUES, None),
}
SHAPES = [(), (7,), (2, 3), (1, 2, 1, 2, 2), (0,), (2, 0, 3)]


def has_gradient(op):
    try:
        return tf_ops._gradient_registry.lookup(op) is not None
    except LookupError:
        return False


def call(op, **args):
    return getattr(raw, op)(**args)


def unary(op, x):
    return call(op, **{'y' if op == 'Invert_' else 'x': x})


def text(shape):
    return 'x'.join(map(str, shape)) or 'scalar'


def value_shapes(t):
    """A long one for each kind of vector loop; most shapes once, not for every dtype."""
    if t == FLOAT:
        return SHAPES + [(1003,)]
    return {DOUBLE: [(), (2, 3), (131,)], HALF: [(2, 3), (37,)]}.get(t, [(5,), (2, 3)])


# ---- special values ----

SPECIALS = [float('nan'), float('inf'), float('-inf'), -0.0, 0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5,
            -2.5, 80.0, -80.0, 1e-4, -1e-4, 2.0, 5e4, -5e4]


def evaluate(op, t, *values):
    """op on 16 copies of the values: the vector loop as well as its tail."""
    with tf.Graph().as_default() as g, tf1.Session(graph=g, config=CONFIG) as s:
        args = [array(np.repeat(np.asarray(v)[None], 17, 0), t) for v in values]
        holders = [tf1.placeholder(t, a.shape) for a in args]
        names = ['x', 'y'] if len(args) == 2 else ['x']
        out = s.run(call(op, **dict(zip(names, holders))), dict(zip(holders, args)))
        return np.asarray(out)


def specials(op, t, reference, *values):
    """Those of the values for which TensorFlow's approximations agree with mathematics."""
    values = [array(v, t) for v in values]
    want = np.asarray(reference(*[v.astype(np.float64) for v in values]))
    want = want if want.dtype == bool else array(want, t).astype(np.float64)
    got = evaluate(op, t, *values)
    got = got if got.dtype == bool else got.astype(np.float64)
    near = (got == want) | (np.isnan(got.astype(float)) & np.isnan(want.astype(float))) | (
        np.abs(got.astype(float) - want) <= .01 * np.abs(want.astype(float)))
    keep = near.all(0)
    return [v[keep] for v in values]


def make_unary(f, op, lo, hi, tol, reference):
    for t in dtypes(op):
        scale = scaled(tol, t)
        for shape in value_shapes(t):
            f.case('%s/%s' % (name_of(t), text(shape)), op,
                   lambda b: call(op, x=b.rand(shape, t, lo, hi)), scale)
        if reference and t.is_floating:
            v, = specials(op, t, reference, SPECIALS)
            f.case('%s/special' % name_of(t), op, lambda b: call(op, x=b.feed(v, t)), scale)
        if t.is_integer and op not in ('Acos', 'Asin', 'Tan', 'Cos', 'Sin', 'Atan', 'Inv',
                                       'Reciprocal'):
            v = np.array([t.min, t.min + 1, 0, 1, t.max - 1, t.max], t.as_numpy_dtype)
            f.case('%s/limits' % name_of(t), op, lambda b: call(op, x=b.feed(v, t)))
        if t in (FLOAT, DOUBLE) and has_gradient(op):
            for shape in [(), (2, 3), (2, 0), (33,)] if t == FLOAT else [(3, 2)]:
                f.case('%s/grad/%s' % (name_of(t), text(shape)), op,
                       lambda b: call(op, x=b.rand(shape, t, lo, hi)), max(scale, 2), grad=True)


# ---- binary ----

PAIRS = [((), ()), ((5,), (5,)), ((2, 3), (3,)), ((3,), (2, 3)), ((), (2, 3)), ((2, 3), ()),
         ((2, 1, 3), (1, 4, 1)), ((2, 3), (2, 1)), ((1, 3), (2, 3)), ((0,), (1,)),
         ((2, 0, 3), (3,)), ((2, 1, 2, 1, 3), (1, 2, 1, 2, 3)), ((2, 3, 2, 2), (3, 1, 2)),
         ((1,), (2, 3, 2)), ((1003,), (1003,)), ((1003,), ()), ((), (257,)), ((7, 33), (33,)),
         ((7, 33), (7, 1)), ((33, 7), (1, 7))]
GRAD_PAIRS = [((), ()), ((2, 3), (2, 3)), ((2, 3), (3,)), ((1,), (2, 3)), ((2, 1, 3), (1, 4, 1)),
              ((2, 0), (1,))]
# op: (lo, hi of x), (lo, hi of y), tolerance
BINARY = {
    'Add': (None, None, VALUES), 'AddV2': (None, None, VALUES), 'Sub': (None, None, VALUES),
    'Mul': (None, None, VALUES), 'Div': (None, (1, 7), VALUES), 'RealDiv': (None, (1, 7), VALUES),
    'FloorDiv': (None, (1, 7), VALUES), 'TruncateDiv': (None, (1, 7), VALUES),
    'FloorMod': (None, (1, 7), 1), 'Mod': (None, (1, 7), 1), 'TruncateMod': (None, (1, 7), 1),
    'Maximum': (None, None, VALUES), 'Minimum': (None, None, VALUES), 'Pow': ((.2, 4), (-2, 3), 2),
    'SquaredDifference': (None, None, VALUES), 'Atan2': (None, None, 1),
    'Xdivy': (None, (1, 7), VALUES), 'Xlogy': (None, (.2, 7), 1),
    'DivNoNan': (None, (1, 7), VALUES),
    'MulNoNan': (None, (1, 7), VALUES), 'Igamma': ((.3, 4), (.3, 4), 20),
    'Igammac': ((.3, 4), (.3, 4), 20), 'Zeta': ((1.2, 5), (.4, 5), 20),
    'Polygamma': ((1, 3.9), (.5, 5), 50), 'NextAfter': (None, None, VALUES),
    'Equal': ((-2, 2), (-2, 2), VALUES), 'NotEqual': ((-2, 2), (-2, 2), VALUES),
    'Less': ((-2, 2), (-2, 2), VALUES), 'LessEqual': ((-2, 2), (-2, 2), VALUES),
    'Greater': ((-2, 2), (-2, 2), VALUES), 'GreaterEqual': ((-2, 2), (-2, 2), VALUES),
    'LogicalAnd': (None, None, VALUES), 'LogicalOr': (None, None, VALUES),
    'BitwiseAnd': ((-99, 99), (-99, 99), VALUES), 'BitwiseOr': ((-99, 99), (-99, 99), VALUES),
    'BitwiseXor': ((-99, 99), (-99, 99), VALUES), 'LeftShift': ((-99, 99), (0, 7), VALUES),
    'RightShift': ((-99, 99), (0, 7), VALUES), 'IgammaGradA': ((.3, 4), (.3, 4), 100),
}
NAMES = {'Igamma': 'ax', 'Igammac': 'ax', 'IgammaGradA': 'ax', 'Polygamma': 'ax', 'Zeta': 'xq',
         'Atan2': 'yx'}
CORE = ['Add', 'Sub', 'Mul', 'RealDiv', 'Maximum', 'SquaredDifference', 'Pow', 'Less', 'FloorMod']
BITS = ['Invert', 'PopulationCount', 'BitwiseAnd', 'BitwiseOr', 'BitwiseXor', 'LeftShift',
        'RightShift']
DIVISIONS = ['Div', 'FloorDiv', 'TruncateDiv', 'FloorMod', 'Mod', 'TruncateMod']


def binary(op, x, y):
    if op == 'NextAfter':
        return raw.NextAfter(x1=x, x2=y)
    return call(op, **dict(zip(NAMES.get(op, 'xy'), (x, y))))


def pair_data(b, op, shape, t, bounds):
    """Random values; for Polygamma's order and comparisons small whole numbers."""
    lo, hi = bounds or (None, None)
    v = b.data(shape, t, 0 if op == 'Pow' and t.is_integer else lo, hi)
    if t.is_floating and bounds == (-2, 2) or op == 'Polygamma' and bounds == (1, 3.9):
        v = array(np.floor(v.astype(np.float64)), t)
    return v


def pairs_of(op, t):
    """All the ways of broadcasting for some ops and dtypes, a choice for the others."""
    if t == FLOAT and op in CORE or t == tf.bool:
        return PAIRS
    if t == FLOAT or t in (DOUBLE, tf.int32) and op in CORE:
        return PAIRS[:13] + [((131,), (131,))]
    if t in (DOUBLE, tf.int32):
        return PAIRS[1:9:2] + [PAIRS[10], ((37,), (37,))]
    if t == HALF:
        return [PAIRS[1], PAIRS[2], PAIRS[4], PAIRS[6], ((37,), (37,))]
    return [PAIRS[2], PAIRS[6], PAIRS[8]]


def make_binary(f, op, xs, ys, tol):
    types = [tf.bool] if op.startswith('Logical') else dtypes(op)
    for t in types:
        # TensorFlow rounds the difference of halves before it squares it
        scale = scaled(1 if op == 'SquaredDifference' and t == HALF else tol, t)
        for p, q in pairs_of(op, t):
            f.case('%s/%s_%s' % (name_of(t), text(p), text(q)), op,
                   lambda b: binary(op, b.feed(pair_data(b, op, p, t, xs), t),
                                    b.feed(pair_data(b, op, q, t, ys), t)), scale)
        if t in (FLOAT, DOUBLE) and has_gradient(op) and op not in ('Less', 'Greater', 'Equal'):
            # whose gradient in TensorFlow 1.15 does not sum what was broadcast
            same = op == 'Atan2'
            for p, q in GRAD_PAIRS[:2] if same else GRAD_PAIRS if t == FLOAT else GRAD_PAIRS[2:5]:
                f.case('%s/grad/%s_%s' % (name_of(t), text(p), text(q)), op,
                       lambda b: binary(op, b.feed(pair_data(b, op, p, t, xs or (-3, 3)), t),
                                        b.feed(pair_data(b, op, q, t, ys or (.5, 4)), t)),
                       max(tol, 2) * 2, grad=True)
    t = types[-1] if tf.float32 not in types else FLOAT
    for p, q in [((2, 3), (4,)), ((2, 3), (3, 2)), ((0,), (2,))]:
        f.case('bad/%s_%s' % (text(p), text(q)), op,
               lambda b: binary(op, b.rand(p, t, 1, 2, 'nothing'), b.rand(q, t, 1, 2, 'nothing')),
               error='Incompatible shapes: [%s] vs. [%s]' % (
                   ','.join(map(str, p)), ','.join(map(str, q))))


def make_binary_specials(f):
    inf, nan = float('inf'), float('nan')
    v = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 2.5, -7.5]
    x, y = [a.ravel() for a in np.meshgrid(v, v)]
    keep = ~((x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y)))  # max(-0, 0) is free
    for op, ref in [('Add', np.add), ('AddV2', np.add), ('Sub', np.subtract), ('Mul', np.multiply),
                    ('Div', np.divide), ('RealDiv', np.divide), ('Maximum', np.maximum),
                    ('Minimum', np.minimum), ('SquaredDifference', lambda a, b: (a - b) ** 2),
                    ('Equal', np.equal), ('NotEqual', np.not_equal), ('Less', np.less),
                    ('LessEqual', np.less_equal), ('Greater', np.greater),
                    ('GreaterEqual', np.greater_equal), ('Pow', np.power),
                    ('FloorDiv', lambda a, b: np.floor(a / b)), ('FloorMod', np.mod)]:
        for t in dtypes(op, among=FLOATS):
            p, q = specials(op, t, ref, x[keep], y[keep])
            f.case('%s/special' % name_of(t), op,
                   lambda b: binary(op, b.feed(p, t), b.feed(q, t)),
                   1 if op in ('Pow', 'FloorMod') else VALUES)
    for op in ('DivNoNan', 'MulNoNan', 'Xdivy', 'Xlogy', 'Atan2'):
        for t in dtypes(op, among=[FLOAT, DOUBLE, HALF]):
            p, q = [a.ravel() for a in np.meshgrid([0.0, 1.0, -2.0], [0.0, 1.0, 2.0])]
            if op == 'MulNoNan':
                p, q = np.append(p, [nan, inf]), np.append(q, [0.0, 0.0])
            if op.startswith('X'):
                p, q = np.append(p, [0.0]), np.append(q, [nan])
            f.case('%s/special' % name_of(t), op, lambda b: binary(op, b.feed(p, t), b.feed(q, t)),
                   1)


def make_binary_integers(f):
    for op in DIVISIONS:
        for t in dtypes(op):
            if not t.is_integer:
                continue
            n = name_of(t)
            for shapes in [((4,), (4,)), ((4,), ()), ((), (4,)), ((2, 3), (3,))]:
                def by_zero(b):
                    y = b.data(shapes[1], t, 1, 5)
                    y[...] = y
                    y = np.where(np.arange(y.size).reshape(y.shape) == y.size - 1, 0, y)
                    return binary(op, b.rand(shapes[0], t), b.feed(y, t))
                if t in (tf.int32, tf.int64) or shapes == ((4,), (4,)):
                    f.case('%s/zero/%s_%s' % (n, text(shapes[0]), text(shapes[1])), op, by_zero,
                           error=ANY if op.startswith('Truncate') else 'Integer division by zero')
            if not t.is_unsigned:
                f.case('%s/signs' % n, op, lambda b: binary(
                    op, b.feed([7, -7, 7, -7, 6, -6, 6, -6, 0], t),
                    b.feed([3, 3, -3, -3, 3, 3, -3, -3, -3], t)))
    for op in ('Add', 'AddV2', 'Sub', 'Mul', 'Maximum', 'Minimum', 'Less', 'GreaterEqual', 'Equal',
               'SquaredDifference'):
        for t in dtypes(op):
            if t.is_integer:
                x, y = [a.ravel() for a in np.meshgrid(*[np.array(
                    [t.min, t.max, 0, 1, t.max - 1], t.as_numpy_dtype)] * 2)]
                f.case('%s/limits' % name_of(t), op,
                       lambda b: binary(op, b.feed(x, t), b.feed(y, t)))
    for t in dtypes('Pow'):
        if t.is_integer:
            f.case('%s/negative' % name_of(t), 'Pow',
                   lambda b: binary('Pow', b.feed([2, 3], t), b.feed([2, -1], t)),
                   error='Integers to negative integer powers are not allowed')
            f.case('%s/whole' % name_of(t), 'Pow', lambda b: binary(
                'Pow', b.feed([2, -3, 0, 1, 7, -1], t), b.feed([5, 3, 0, 9, 0, 3], t)))


# ---- the ops that gradients add, and the ones with three inputs ----

def make_grads(f):
    for op in ('SigmoidGrad', 'TanhGrad', 'InvGrad', 'ReciprocalGrad', 'SqrtGrad', 'RsqrtGrad'):
        for t in dtypes(op):
            for shape in [(), (7,), (2, 3), (0,), (131,)] if t == FLOAT else [(2, 3)]:
                f.case('%s/%s' % (name_of(t), text(shape)), op,
                       lambda b: call(op, y=b.rand(shape, t, .2, 2), dy=b.rand(shape, t)),
                       2 if t in (FLOAT, DOUBLE) else 4)
            if t in (FLOAT, DOUBLE) and has_gradient(op):
                f.case('%s/grad' % name_of(t), op,
                       lambda b: call(op, y=b.rand((2, 3), t, .2, 2), dy=b.rand((2, 3), t)), 4,
                       grad=True)
        f.case('double/2x1', op,  # a scalar is not spread: both have the one shape
               lambda b: call(op, y=b.rand((2, 1), DOUBLE, .2, 2), dy=b.rand((2, 1), DOUBLE)), 2)


def make_three(f):
    for t in dtypes('Betainc'):
        for shapes in [((4,), (4,), (4,)), ((), (), ()), ((), (), (2, 3)), ((2, 3), (), (2, 3))]:
            f.case('%s/%s' % (name_of(t), '_'.join(map(text, shapes))), 'Betainc',
                   lambda b: raw.Betainc(a=b.rand(shapes[0], t, .5, 4),
                                         b=b.rand(shapes[1], t, .5, 4),
                                         x=b.rand(shapes[2], t, .05, .95)), 50)
    f.case('bad', 'Betainc', lambda b: raw.Betainc(
        a=b.rand((2,), FLOAT, 1, 2, 'nothing'), b=b.rand((3,), FLOAT, 1, 2, 'nothing'),
        x=b.rand((2,), FLOAT, 0, 1, 'nothing')), error='Shapes of')
    for t in dtypes('ClipByValue'):
        for shapes in [((2, 3), (), ()), ((7,), (7,), ()), ((7,), (), (7,)),
                       ((2, 3), (2, 3), (2, 3)),
                       ((0,), (), ())]:
            if t not in (FLOAT, DOUBLE, tf.int32) and shapes[0] != (2, 3):
                continue
            f.case('%s/%s' % (name_of(t), '_'.join(map(text, shapes))), 'ClipByValue',
                   lambda b: raw.ClipByValue(t=b.rand(shapes[0], t),
                                             clip_value_min=b.rand(shapes[1], t, -1, 2),
                                             clip_value_max=b.rand(shapes[2], t, 2, 3)))
    f.case('bad', 'ClipByValue', lambda b: raw.ClipByValue(
        t=b.rand((2,), FLOAT, static='nothing'), clip_value_min=b.rand(
            (3,), FLOAT, static='nothing'),
        clip_value_max=b.rand((), FLOAT, static='nothing')),
        error='clip_value_min and clip_value_max must be either of the same shape as input, '
        'or a scalar')
    for t in dtypes('ApproximateEqual'):
        f.case('%s/default' % name_of(t), 'ApproximateEqual', lambda b: raw.ApproximateEqual(
            x=b.feed([1, 2, 3, 4], t), y=b.feed([1, 2, 4, 5], t)))
        f.case('%s/wide' % name_of(t), 'ApproximateEqual', lambda b: raw.ApproximateEqual(
            x=b.feed([1, 2, 3, 4], t), y=b.feed([1, 3, 6, 9], t), tolerance=2.5))


def make_logic(f):
    for shape in SHAPES + [(131,)]:
        f.case('bool/' + text(shape), 'LogicalNot',
               lambda b: call('LogicalNot', x=b.rand(shape, tf.bool)))
    for op in ('Equal', 'NotEqual'):
        for t in (FLOAT, tf.string):
            f.case('%s/shapes_differ' % name_of(t), op, lambda b: call(
                op, x=b.rand((2, 3), t, static='nothing'), y=b.rand((4,), t, static='nothing'),
                incompatible_shape_error=False))
            f.case('%s/shapes_agree' % name_of(t), op, lambda b: call(
                op, x=b.rand((2, 3), t), y=b.rand((3,), t), incompatible_shape_error=False))
    for t in (tf.bool, tf.string):
        f.case('%s/constants' % name_of(t), 'Equal', lambda b: call(
            'Equal', x=tf.constant(b.data((4,), t)), y=tf.constant(b.data((4,), t))))


def make_all(f, ops):
    for op in ops:
        if op in UNARY:
            make_unary(f, op, *UNARY[op])
        else:
            make_binary(f, op, *BINARY[op])


def make_bits(f):
    make_all(f, BITS)
    for op in ('LeftShift', 'RightShift'):
        for t in dtypes(op):
            f.case('%s/far' % name_of(t), op, lambda b: binary(
                op, b.feed(b.data((6,), t, -99, 99), t),
                b.feed([0, 1, t.size * 8 - 1, t.size * 8, 100, 7], t)))


def make(f):
    make_all(f, [op for op in list(UNARY) + list(BINARY) if op not in BITS])
    make_binary_specials(f)
    make_binary_integers(f)
    make_grads(f)
    make_three(f)
    make_logic(f)
