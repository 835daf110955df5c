"""Complex numbers: the ops that make and take them apart, and a few others on complex dtypes."""

import tensorflow as tf

from gen.array import text
from gen.case import COMPLEX, DOUBLE, FLOAT, name_of

raw = tf.raw_ops
REAL = {tf.complex64: FLOAT, tf.complex128: DOUBLE}


def make(f):
    for t in COMPLEX:
        r = REAL[t]
        for shape in [(), (3,), (2, 3), (0,)]:
            n = '%s/%s' % (name_of(t), text(shape))
            for op in ('Real', 'Imag', 'Angle'):
                f.case(n, op, lambda b: getattr(raw, op)(input=b.rand(shape, t), Tout=r), 2,
                       grad=True)
            f.case(n, 'ComplexAbs', lambda b: raw.ComplexAbs(x=b.rand(shape, t), Tout=r), 2,
                   grad=True)
            f.case(n, 'Conj', lambda b: raw.Conj(input=b.rand(shape, t)), 2, grad=True)
            f.case(n, 'Complex', lambda b: raw.Complex(real=b.rand(shape, r), imag=b.rand(shape, r),
                                                       Tout=t), 2, grad=True)
        f.case('%s/broadcast' % name_of(t), 'Complex', lambda b: raw.Complex(
            real=b.rand((2, 3), r), imag=b.rand((3,), r), Tout=t), 2, grad=True)
        for op in ('Add', 'AddV2', 'Sub', 'Mul', 'RealDiv', 'Div'):
            f.case('%s/complex' % name_of(t), op, lambda b: getattr(raw, op)(
                x=b.rand((2, 3), t), y=b.rand((3,), t)), 4, grad=True)
        for op in ('Neg', 'Square', 'Exp', 'Log', 'Sqrt', 'Tanh', 'Sin', 'Cos', 'Sigmoid',
                   'Reciprocal', 'Sign', 'Rsqrt'):
            f.case('%s/complex' % name_of(t), op, lambda b: getattr(raw, op)(x=b.rand((2, 3), t)),
                   8, grad=True)
        for op in ('Equal', 'NotEqual'):
            f.case('%s/complex' % name_of(t), op, lambda b: getattr(raw, op)(
                x=b.feed([1 + 2j, 3j, 4], t), y=b.feed([1 + 2j, 3, 4], t)))
        for op in ('Sum', 'Mean', 'Prod', 'EuclideanNorm'):
            f.case('%s/complex' % name_of(t), op, lambda b: getattr(raw, op)(
                input=b.rand((2, 3), t), axis=b.index([1])), 4, grad=op in ('Sum', 'Mean'))
        for ta, tb in [(False, False), (True, False), (False, True)]:
            f.case('%s/complex_%d%d' % (name_of(t), ta, tb), 'MatMul', lambda b: raw.MatMul(
                a=b.rand((3, 3), t), b=b.rand((3, 3), t), transpose_a=ta, transpose_b=tb), 4,
                grad=True)
            f.case('%s/complex_%d%d' % (name_of(t), ta, tb), 'BatchMatMulV2',
                   lambda b: raw.BatchMatMulV2(
                x=b.rand((2, 3, 3), t), y=b.rand((2, 3, 3), t), adj_x=ta, adj_y=tb), 4, grad=True)
        for op, args in [('Identity', {}), ('Reshape', {'shape': [3, 2]})]:
            f.case('%s/complex' % name_of(t), op, lambda b: getattr(raw, op)(
                **dict(args, **{'tensor' if args else 'input': b.rand((2, 3), t)})), grad=True)
        f.case('%s/complex' % name_of(t), 'Transpose',
               lambda b: raw.Transpose(x=b.rand((2, 3), t), perm=b.index([1, 0])), grad=True)
        f.case('%s/complex' % name_of(t), 'ConcatV2', lambda b: raw.ConcatV2(
            values=[b.rand((2, 3), t), b.rand((1, 3), t)], axis=b.index(0)), grad=True)
        f.case('%s/complex' % name_of(t), 'Const', lambda b: tf.constant(b.data((2, 2), t)))
        for other in COMPLEX + [FLOAT, DOUBLE, tf.int32]:
            f.case('%s_to_%s' % (name_of(other), name_of(t)), 'Cast',
                   lambda b: raw.Cast(x=b.rand((2, 3), other), DstT=t))
            if other not in COMPLEX:
                f.case('%s_to_%s' % (name_of(t), name_of(other)), 'Cast',
                       lambda b: raw.Cast(x=b.rand((2, 3), t), DstT=other))
