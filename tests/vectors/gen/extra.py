"""Ops beyond the first list: some cases each, for the time when Leat has them."""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function

from gen import cwise, nn, state
from gen.array import text
from gen.case import BFLOAT16, DOUBLE, EXACT, FLOAT, HALF, array, dtypes, name_of, tf1

raw = tf.raw_ops
FEW = [FLOAT, DOUBLE, tf.int32, tf.int64, tf.string, tf.bool, HALF]
BOTH = (False, True)


def few(op, attr='T'):
    return dtypes(op, attr, among=FEW)


def arrays(f):
    for t in few('SelectV2'):
        for c, x, y in [((2, 3), (2, 3), (2, 3)), ((3,), (2, 3), ()), ((2, 1), (3,), (2, 3)),
                        ((), (2,), (2,))]:
            f.case('%s/%s_%s_%s' % (name_of(t), text(c), text(x), text(y)), 'SelectV2',
                   lambda b: raw.SelectV2(
                condition=b.rand(c, tf.bool), t=b.rand(x, t), e=b.rand(y, t)),
                2 if t == FLOAT else 0, grad=t == FLOAT)
    for t in few('PadV2'):
        f.case(name_of(t), 'PadV2', lambda b: raw.PadV2(
            input=b.rand((2, 3), t), paddings=b.index([[1, 0], [2, 1]]),
            constant_values=b.rand((), t)))
    for mode in ('REFLECT', 'SYMMETRIC'):
        for t in few('MirrorPad'):
            f.case('%s/%s' % (name_of(t), mode), 'MirrorPad', lambda b: raw.MirrorPad(
                input=b.rand((3, 4), t), paddings=b.index([[2, 1], [0, 2]]), mode=mode),
                2 if t == FLOAT else 0, grad=t == FLOAT)
        f.case(mode, 'MirrorPadGrad', lambda b: raw.MirrorPadGrad(
            input=b.rand((6, 6), FLOAT), paddings=b.index([[2, 1], [0, 2]]), mode=mode), 2)
    for t in few('ScatterNd'):
        for it in (tf.int32, tf.int64):
            f.case('%s/%s' % (name_of(t), name_of(it)), 'ScatterNd', lambda b: raw.ScatterNd(
                indices=b.feed([[1], [3]], it), updates=b.rand((2, 3), t),
                shape=b.index([5, 3], it)), grad=t == FLOAT)
    f.case('float/twice', 'ScatterNd', lambda b: raw.ScatterNd(
        indices=b.feed([[0, 1], [1, 0], [0, 1]], tf.int32), updates=b.rand((3,), FLOAT),
        shape=b.index([2, 2])), 2, grad=True)
    f.case('bad', 'ScatterNd', lambda b: raw.ScatterNd(
        indices=b.feed([[5]], tf.int32), updates=b.rand((1, 3), FLOAT), shape=b.index([5, 3])),
        error='indices[0] = [5] does not index into shape [5,3]')
    for op in ('TensorScatterUpdate', 'TensorScatterAdd', 'TensorScatterSub'):
        for t in few(op):
            f.case(name_of(t), op, lambda b: getattr(raw, op)(
                tensor=b.rand((4, 2), t), indices=b.feed([[3], [0]], tf.int32),
                updates=b.rand((2, 2), t)), grad=t == FLOAT)
    for t in few('ReverseSequence'):
        f.case(name_of(t), 'ReverseSequence', lambda b: raw.ReverseSequence(
            input=b.rand((3, 4, 2), t), seq_lengths=b.feed([2, 4, 0], tf.int32), seq_dim=1,
            batch_dim=0), grad=t == FLOAT)
    f.case('float', 'ConjugateTranspose', lambda b: raw.ConjugateTranspose(
        x=b.rand((2, 3), FLOAT), perm=b.index([1, 0])), grad=True)
    for op in ('Snapshot', 'DeepCopy', 'GuaranteeConst'):
        f.case('float', op, lambda b: getattr(raw, op)(
            **{'x' if op == 'DeepCopy' else 'input': b.rand((2, 3), FLOAT)}))
    f.case('float', 'EnsureShape', lambda b: raw.EnsureShape(input=b.rand((2, 3), FLOAT),
                                                             shape=[None, 3]), grad=True)
    f.case('bad', 'EnsureShape', lambda b: raw.EnsureShape(
        input=b.rand((2, 3), FLOAT, static='nothing'), shape=[None, 4]),
           error='Shape of tensor')
    for t in few('DynamicPartition'):
        f.case(name_of(t), 'DynamicPartition', lambda b: raw.DynamicPartition(
            data=b.rand((5, 2), t), partitions=b.feed([0, 2, 0, 1, 2], tf.int32), num_partitions=4),
            grad=t == FLOAT)
    f.case('bad', 'DynamicPartition', lambda b: raw.DynamicPartition(
        data=b.rand((2,), FLOAT), partitions=b.feed([0, 4], tf.int32), num_partitions=2),
        error='partitions[1] = 4 is not in [0, 2)')
    for t in few('Diag'):
        f.case(name_of(t), 'Diag', lambda b: raw.Diag(diagonal=b.rand((3,), t)), grad=t == FLOAT)
        f.case(name_of(t), 'DiagPart', lambda b: raw.DiagPart(input=b.rand((3, 3), t)),
               grad=t == FLOAT)
    for t in few('MatrixDiag'):
        f.case(name_of(t), 'MatrixDiag', lambda b: raw.MatrixDiag(diagonal=b.rand((2, 3), t)),
               grad=t == FLOAT)
        f.case(name_of(t), 'MatrixDiagPart', lambda b: raw.MatrixDiagPart(
            input=b.rand((2, 3, 4), t)), grad=t == FLOAT)
        f.case(name_of(t), 'MatrixSetDiag', lambda b: raw.MatrixSetDiag(
            input=b.rand((2, 3, 4), t), diagonal=b.rand((2, 3), t)), grad=t == FLOAT)
    for t in few('MatrixBandPart'):
        for lo, hi in [(0, 0), (-1, 0), (1, -1), (1, 2)]:
            f.case('%s/%d_%d' % (name_of(t), lo, hi), 'MatrixBandPart',
                   lambda b: raw.MatrixBandPart(
                input=b.rand((2, 3, 4), t), num_lower=b.index(lo), num_upper=b.index(hi)),
                grad=t == FLOAT)


def searches(f):
    for t in few('Unique'):
        def values(b):
            v = b.data((9,), t, 0, 4)
            return b.feed(array(np.round(v.astype(float)), t) if t.is_floating else v, t)
        f.case(name_of(t), 'Unique', lambda b: raw.Unique(x=values(b)))
        f.case(name_of(t), 'UniqueWithCounts', lambda b: raw.UniqueWithCounts(
            x=values(b), out_idx=tf.int64))
    for t in few('ListDiff'):
        f.case(name_of(t), 'ListDiff', lambda b: raw.ListDiff(
            x=b.feed(np.arange(8) % 5, t), y=b.feed([1, 3], t)) if (
            t not in (tf.string, tf.bool)) else raw.ListDiff(x=b.rand((5,), t), y=b.rand((2,), t)))
    for t in dtypes('Bincount', among=FEW):
        f.case(name_of(t), 'Bincount', lambda b: raw.Bincount(
            arr=b.feed([0, 2, 2, 4, 1], tf.int32), size=b.index(4),
            weights=b.feed(b.data((5,), t), t)))
    for t in few('Bucketize'):
        f.case(name_of(t), 'Bucketize', lambda b: raw.Bucketize(
            input=b.rand((2, 5), t), boundaries=[-2., 0., 1.5]))
    for op in ('LowerBound', 'UpperBound'):
        for t in few(op):
            f.case(name_of(t), op, lambda b: getattr(raw, op)(
                sorted_inputs=b.feed([[1, 3, 5, 5, 9]], t), values=b.feed([[0, 3, 4, 5, 10]], t)))
    f.case('float', 'SparseToDense', lambda b: raw.SparseToDense(
        sparse_indices=b.feed([[0, 1], [1, 0]], tf.int64), output_shape=b.index([2, 3], tf.int64),
        sparse_values=b.rand((2,), FLOAT), default_value=b.rand((), FLOAT)))
    f.case('float', 'HistogramFixedWidth', lambda b: raw.HistogramFixedWidth(
        values=b.rand((20,), FLOAT), value_range=b.feed([-2, 2], FLOAT), nbins=b.index(5)))


def maths(f):
    cwise.make_bits(f)
    nn.activations(f, [('Selu', {}), ('Softsign', {})],
                   [('SeluGrad', 'outputs', {}), ('SoftsignGrad', 'features', {})])
    for t in few('Cumprod'):
        for ex in BOTH:
            for rev in BOTH:
                f.case('%s/%d%d' % (name_of(t), ex, rev), 'Cumprod', lambda b: raw.Cumprod(
                    x=b.rand((3, 4), t, 1, 3), axis=b.index(1), exclusive=ex, reverse=rev), 4,
                    grad=t == FLOAT)
    for t in few('EuclideanNorm'):
        f.case(name_of(t), 'EuclideanNorm', lambda b: raw.EuclideanNorm(
            input=b.rand((2, 3), t), axis=b.index([1])), 8, grad=t == FLOAT)
    for t in few('LinSpace'):
        for n in (1, 2, 7):
            f.case('%s/%d' % (name_of(t), n), 'LinSpace', lambda b: raw.LinSpace(
                start=b.feed(-1, t), stop=b.feed(2, t), num=b.index(n)), 2)
    f.case('bad', 'LinSpace', lambda b: raw.LinSpace(start=b.feed(-1, FLOAT), stop=b.feed(2, FLOAT),
                                                     num=b.index(0, const=False)),
           error='Requires num > 0: 0')
    for t in few('Cross'):
        f.case(name_of(t), 'Cross', lambda b: raw.Cross(a=b.rand((2, 3), t), b=b.rand((2, 3), t)),
               4, grad=t == FLOAT)
    for op in ('SegmentSum', 'SegmentMean', 'SegmentMax', 'SegmentMin', 'SegmentProd'):
        for t in few(op):
            f.case(name_of(t), op, lambda b: getattr(raw, op)(
                data=b.rand((5, 2), t, 1, 4), segment_ids=b.feed([0, 0, 1, 3, 3], tf.int32)), 2,
                grad=t == FLOAT and op != 'SegmentProd')
    for op in ('UnsortedSegmentMax', 'UnsortedSegmentMin', 'UnsortedSegmentProd'):
        for t in few(op):
            f.case(name_of(t), op, lambda b: getattr(raw, op)(
                data=b.rand((5, 2), t, 1, 4, 'known'),
                segment_ids=b.feed([3, 0, 1, 3, 0], tf.int32, 'known'),
                num_segments=b.index(4)), 2, grad=t == FLOAT)
    for op in ('SparseSegmentSum', 'SparseSegmentMean', 'SparseSegmentSqrtN'):
        for t in few(op):
            f.case(name_of(t), op, lambda b: getattr(raw, op)(
                data=b.rand((5, 2), t), indices=b.feed([4, 0, 1], tf.int32),
                segment_ids=b.feed([0, 0, 1], tf.int32)), 2,
                grad=t == FLOAT)
    for t in few('AccumulateNV2'):
        f.case(name_of(t), 'AccumulateNV2', lambda b: raw.AccumulateNV2(
            inputs=[b.rand((2, 3), t, static='known') for _ in range(3)], shape=[2, 3]), 2,
            grad=t == FLOAT)
    for op in ('StatelessRandomUniform', 'StatelessRandomNormal', 'StatelessTruncatedNormal'):
        for t in dtypes(op, 'dtype', among=[HALF, BFLOAT16, FLOAT, DOUBLE]):
            f.case(name_of(t), op, lambda b: getattr(raw, op)(
                shape=b.index([3, 5]), seed=b.feed([12, 34], tf.int64), dtype=t),
                EXACT if 'Uniform' in op else 4)


def states(f):
    state.scatters(f, ('Mul', 'Div', 'Min', 'Max'), [DOUBLE, tf.int32])
    for op in ('ScatterNdUpdate', 'ScatterNdAdd', 'ScatterNdSub'):
        for resource in BOTH:
            def build(b):
                make = state.resource_variable if resource else state.ref_variable
                v, init = make(b, (4, 2), FLOAT)
                name = ('Resource' if resource else '') + op
                up = getattr(raw, name)(ref=v, indices=b.feed([[1], [3]], tf.int32),
                                        updates=b.rand((2, 2), FLOAT))
                b.run(targets=[init])
                b.run(targets=[up])
                b.run([state.read(v, FLOAT) if resource else raw.Identity(input=v)])
            f.case('float', ('Resource' if resource else '') + op, build)

    def gather(b):
        h, init = state.resource_variable(b, (4, 2), FLOAT)
        y = raw.ResourceGather(resource=h, indices=b.feed([3, 0, 3], tf.int32), dtype=FLOAT)
        b.run(targets=[init])
        b.run([y, raw.VariableShape(input=h)])
        b.grad([y], [h])
    f.case('float', 'ResourceGather', gather, 2)

    def shape(b):
        h, init = state.resource_variable(b, (4, 2), FLOAT)
        b.run(targets=[init])
        b.run([raw.VariableShape(input=h), raw.VariableShape(input=h, out_type=tf.int64)])
    f.case('float', 'VariableShape', shape)

    def destroy(b):
        h, init = state.resource_variable(b, (4, 2), FLOAT)
        gone = raw.DestroyResourceOp(resource=h, ignore_lookup_error=False)
        b.run(targets=[init])
        b.run(targets=[gone])
        b.run(targets=[gone], error='does not exist')
        b.run([raw.VarIsInitializedOp(resource=h)])
    f.case('twice', 'DestroyResourceOp', destroy)
    for t in (tf.int32, tf.int64):
        def count(b):
            v, init = state.ref_variable(b, (), t, 0)
            c = raw.CountUpTo(ref=v, limit=2)
            b.run([init])
            b.run([c])
            b.run([c])
            b.run([c], error='Reached limit of 2')
        f.case(name_of(t), 'CountUpTo', count)

    def select(b):
        vs = [state.ref_variable(b, (2,), FLOAT, name='v%d' % i) for i in range(3)]
        for _, init in vs:
            b.run([init])
        i = b.feed(0, tf.int32, 'known')
        y = raw.RefSelect(index=i, inputs=[v for v, _ in vs])
        for k in (2, 0):
            b.run([y], feeds={i: np.int32(k)})
        b.run([y], feeds={i: np.int32(3)}, error='Index must be in the range [0, 3) but got 3')
    f.case('float', 'RefSelect', select)

    def stack(b):
        h = raw.StackV2(max_size=tf.constant(-1), elem_type=FLOAT, stack_name='s')
        x = b.rand((2,), FLOAT)
        one = raw.StackPushV2(handle=h, elem=x)
        with tf.control_dependencies([one]):
            two = raw.StackPushV2(handle=h, elem=tf.square(x))
        with tf.control_dependencies([two]):
            p = raw.StackPopV2(handle=h, elem_type=FLOAT)
        with tf.control_dependencies([p]):
            q = raw.StackPopV2(handle=h, elem_type=FLOAT)
        with tf.control_dependencies([q]):
            r = raw.StackPopV2(handle=h, elem_type=FLOAT)
        b.run([p, q])
        b.run([r], error='is empty when calling Pop().')
    for op in ('StackV2', 'StackPushV2', 'StackPopV2'):
        f.case('two', op, stack)


def tensor_arrays(f):
    def loop(b):
        x = b.rand((4, 2), FLOAT)
        ta = tf.TensorArray(FLOAT, 4, element_shape=[2], clear_after_read=False).unstack(x)
        out = tf.TensorArray(FLOAT, 4, element_shape=[2])
        _, _, out = tf.while_loop(lambda i, a, o: i < 4,
                                  lambda i, a, o: [i + 1, a * ta.read(i),
                                                   o.write(i, a + ta.read(i))],
                                  [tf.constant(0), tf.ones([2]), out])
        return out.stack()
    for op in ('TensorArrayV3', 'TensorArrayReadV3', 'TensorArrayWriteV3', 'TensorArrayScatterV3',
               'TensorArrayGatherV3'):
        f.case('loop', op, loop, 4, grad=op == 'TensorArrayV3')

    def sizes(b):
        ta = tf.TensorArray(FLOAT, 2, dynamic_size=True, infer_shape=False)
        ta = ta.write(0, b.rand((2, 3), FLOAT)).write(3, b.rand((1, 3), FLOAT)).write(
            1, b.rand((1, 3), FLOAT)).write(
            2, b.rand((0, 3), FLOAT))
        return [ta.size(), ta.concat()]
    f.case('dynamic', 'TensorArraySizeV3', sizes)
    f.case('dynamic', 'TensorArrayConcatV3', sizes)

    def split(b):
        ta = tf.TensorArray(FLOAT, 3, infer_shape=False).split(b.rand((6, 2), FLOAT), [1, 3, 2])
        return [ta.read(1), ta.read(0)]
    f.case('three', 'TensorArraySplitV3', split)
    f.case('bad/twice', 'TensorArrayWriteV3', lambda b: tf.TensorArray(FLOAT, 2).write(
        0, b.rand((2,), FLOAT)).write(0, b.rand((2,), FLOAT)).read(0),
        error='Could not write to TensorArray index 0')
    f.case('unwritten', 'TensorArrayReadV3', lambda b: tf.TensorArray(FLOAT, 2).write(
        0, b.rand((2,), FLOAT)).read(1))
    f.case('bad/range', 'TensorArrayWriteV3', lambda b: tf.TensorArray(FLOAT, 2).write(
        2, b.rand((2,), FLOAT)).read(0),
        error='Tried to write to index 2 but array is not resizeable and size is: 2')


def functional(f):
    for taken in BOTH:
        for op in ('If', 'StatelessIf'):
            def build(b):
                @function.Defun(FLOAT, func_name='Then')
                def then(x):
                    return x * x

                @function.Defun(FLOAT, func_name='Else')
                def other(x):
                    return x - 1.
                for d in (then, other):
                    d.add_to_graph(tf1.get_default_graph())
                return getattr(raw, op)(cond=b.feed(taken, tf.bool), input=[b.rand((2,), FLOAT)],
                                        Tout=[FLOAT],
                                        then_branch=then, else_branch=other)
            f.case(str(taken), op, build)
    for op in ('While', 'StatelessWhile'):
        def loop(b):
            @function.Defun(tf.int32, FLOAT, func_name='Cond')
            def cond(i, x):
                return i < 3

            @function.Defun(tf.int32, FLOAT, func_name='Body')
            def body(i, x):
                return i + 1, x * 2.
            for d in (cond, body):
                d.add_to_graph(tf1.get_default_graph())
            return getattr(raw, op)(input=[tf.constant(0), b.rand((2,), FLOAT)], cond=cond,
                                    body=body)
        f.case('three', op, loop)


def strings(f):
    words = [b'Leat', b'', b'  mill race ', b'a,b,,c', 'm\xfchle'.encode('utf-8')]
    for op, args in [('StringLength', {}), ('StringLength', {'unit': 'UTF8_CHAR'}),
                     ('StringStrip', {}), ('StringLower', {}),
                     ('StringUpper', {})]:
        f.case(args.get('unit', 'plain'), op, lambda b: getattr(raw, op)(
            input=b.feed(words, tf.string), **args))
    f.case('plain', 'Substr', lambda b: raw.Substr(input=b.feed(words[::2], tf.string),
                                                   pos=b.index(1), len=b.index(3)))
    f.case('bad', 'Substr', lambda b: raw.Substr(input=b.feed(words, tf.string),
                                                 pos=b.index(7, const=False), len=b.index(3)),
           error='pos 7 out of range for string')
    for skip in BOTH:
        f.case('comma_%s' % skip, 'StringSplit', lambda b: raw.StringSplit(
            input=b.feed(words, tf.string), delimiter=tf.constant(','), skip_empty=skip))
    for keep in BOTH:
        f.case('keep_%s' % keep, 'ReduceJoin', lambda b: raw.ReduceJoin(
            inputs=b.rand((2, 3), tf.string), reduction_indices=b.index([1]), keep_dims=keep,
            separator='-'))
    for t in dtypes('StringToNumber', 'out_type', among=FEW):
        f.case(name_of(t), 'StringToNumber', lambda b: raw.StringToNumber(
            string_tensor=b.feed([b'12', b'-7', b'0'], tf.string), out_type=t))
    f.case('bad', 'StringToNumber', lambda b: raw.StringToNumber(
        string_tensor=b.feed([b'mill'], tf.string), out_type=FLOAT),
           error='StringToNumberOp could not correctly convert string: mill')
    for op in ('StringToHashBucketFast', 'StringToHashBucket'):
        f.case('plain', op, lambda b: getattr(raw, op)(**{
            'input' if op.endswith('Fast') else 'string_tensor': b.feed(words, tf.string),
            'num_buckets': 1000}))
    f.case('plain', 'EncodeBase64', lambda b: raw.EncodeBase64(input=b.feed(words, tf.string)))
    f.case('pad', 'EncodeBase64', lambda b: raw.EncodeBase64(input=b.feed(words, tf.string),
                                                             pad=True))
    f.case('plain', 'DecodeBase64', lambda b: raw.DecodeBase64(
        input=raw.EncodeBase64(input=b.feed(words, tf.string))))


def make(f):
    for part in (arrays, searches, maths, states, tensor_arrays, functional, strings):
        part(f)
