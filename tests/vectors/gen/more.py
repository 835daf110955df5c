"""Ops that clients use beside the first lists: strings, sets, sparse tensors, blocks of space."""

import numpy as np
import tensorflow as tf

from gen.case import ANY, DOUBLE, FLOAT, HALF, dtypes, name_of

raw = tf.raw_ops
BOTH = (False, True)
WORDS = [b'Leat', b'', b'  mill race ', b'a,b,,c', 'm\xfchle \xc4\xd6'.encode('utf-8'),
         b'x' * 20, b'0123456789' * 4, b'wheel' * 13, b'race' * 50]


def strings(f):
    for n in range(0, 140, 7):
        f.case('len_%d' % n, 'StringToHashBucketFast', lambda b: raw.StringToHashBucketFast(
            input=b.feed([b'abcdefghij' * 14][0][:n], tf.string), num_buckets=1 << 40))
    for op, key in [('StringToHashBucketFast', {}), ('StringToHashBucket', {}),
                    ('StringToHashBucketStrong', {'key': [123, 456]})]:
        name = 'string_tensor' if op == 'StringToHashBucket' else 'input'
        f.case('words', op, lambda b: getattr(raw, op)(
            num_buckets=1000003, **dict({name: b.feed(WORDS, tf.string)}, **key)))
    for op in ('StringLower', 'StringUpper'):
        f.case('utf8', op, lambda b: getattr(raw, op)(input=b.feed(WORDS, tf.string),
                                                      encoding='utf-8'))
    for unit in ('BYTE', 'UTF8_CHAR'):
        for pos, n in [(1, 3), (-2, 1), (-4, 9), (0, 0), (2, -1)]:
            f.case('%s_%d_%d' % (unit, pos, n), 'Substr', lambda b: raw.Substr(
                input=b.feed([b'abcd', 'm\xfchle'.encode('utf-8')], tf.string),
                pos=b.index(pos, const=False), len=b.index(n, const=False), unit=unit))
    f.case('broadcast', 'Substr', lambda b: raw.Substr(
        input=b.feed([[b'abcd', b'efgh', b'ijkl']], tf.string),
        pos=b.feed([[1], [2]], tf.int32), len=b.feed([[2], [1]], tf.int32)))
    for sep in (b'', b',', b'ab'):
        for most in (-1, 0, 1):
            f.case('%s_%d' % (sep.decode(), most), 'StringSplitV2', lambda b: raw.StringSplitV2(
                input=b.feed([b'a b  c', b'', b' x,y,,z ', b'1ab2ab3'], tf.string),
                sep=b.feed(sep, tf.string), maxsplit=most))
    f.case('set', 'StringSplit', lambda b: raw.StringSplit(
        input=b.feed(WORDS, tf.string), delimiter=b.feed(b', ', tf.string), skip_empty=False))
    f.case('bytes', 'StringSplit', lambda b: raw.StringSplit(
        input=b.feed(WORDS[:3], tf.string), delimiter=b.feed(b'', tf.string)))
    for axes in ([0], [1, 0], [0, 1], [-1], [], [2, 0]):
        f.case('axes_%s' % '_'.join(map(str, axes)), 'ReduceJoin', lambda b: raw.ReduceJoin(
            inputs=b.rand((2, 3, 2), tf.string), reduction_indices=b.index(axes, const=False),
            separator='|'))
    f.case('bad', 'ReduceJoin', lambda b: raw.ReduceJoin(
        inputs=b.rand((2, 3), tf.string), reduction_indices=b.index([2], const=False)),
        error='Invalid reduction dimension 2 for input with 2 dimension(s)')
    f.case('rows', 'UnsortedSegmentJoin', lambda b: raw.UnsortedSegmentJoin(
        inputs=b.rand((3, 2), tf.string), segment_ids=b.feed([2, 0, 2], tf.int32),
        num_segments=b.index(3), separator=':'))
    for t in (FLOAT, DOUBLE, tf.int32, tf.string, tf.bool):
        for shape in [(), (3,), (2, 3), (9,), (2, 8, 2), (0,)]:
            f.case('%s_%s' % (name_of(t), '_'.join(map(str, shape))), 'StringFormat',
                   lambda b: raw.StringFormat(inputs=[b.rand(shape, t)], template='[%s] is it'))
    f.case('all', 'StringFormat', lambda b: raw.StringFormat(
        inputs=[b.rand((9,), tf.int32), b.rand((), tf.int32)], template='{} and {}',
        placeholder='{}', summarize=-1))
    data = bytes(bytearray(range(48)))
    for t in dtypes('DecodeRaw', 'out_type'):
        for little in BOTH:
            f.case('%s_%s' % (name_of(t), little), 'DecodeRaw', lambda b: raw.DecodeRaw(
                bytes=b.feed([data, data[::-1]], tf.string), out_type=t, little_endian=little))
    f.case('bad', 'DecodeRaw', lambda b: raw.DecodeRaw(
        bytes=b.feed([data[:7]], tf.string), out_type=tf.int16),
        error='Input to DecodeRaw has length 7 that is not a multiple of 2, the size of int16')
    for t in (FLOAT, tf.int64, tf.string):
        for shape in [(3,), (3, 1), (3, 2)]:
            f.case('%s_%d_%d' % (name_of(t), len(shape), shape[-1]), 'Fingerprint',
                   lambda b: raw.Fingerprint(data=b.rand(shape, t), method=tf.constant('farmhash64')))


def sparse(b, shape, t):
    """A sparse tensor of this shape: three inputs."""
    dense = b.rng.randint(0, 3, shape)
    at = np.argwhere(dense)
    return (b.feed(at.reshape(-1, len(shape)), tf.int64), b.rand((len(at),), t, 0, 4),
            b.feed(list(shape), tf.int64))


def sets(f):
    for op in ('a-b', 'b-a', 'intersection', 'union'):
        for t in (tf.int32, tf.int64, tf.int8, tf.uint16, tf.string):
            f.case('%s_%s' % (name_of(t), op), 'DenseToDenseSetOperation',
                   lambda b: raw.DenseToDenseSetOperation(
                       set1=b.rand((2, 2, 5), t, 0, 6), set2=b.rand((2, 2, 4), t, 0, 6),
                       set_operation=op))

        def dense_sparse(b):
            i, v, s = sparse(b, (3, 5), tf.int64)
            return raw.DenseToSparseSetOperation(
                set1=b.rand((3, 4), tf.int64, 0, 4), set2_indices=i, set2_values=v, set2_shape=s,
                set_operation=op)

        def sparse_sparse(b):
            i, v, s = sparse(b, (3, 5), tf.int64)
            j, w, r = sparse(b, (3, 3), tf.int64)
            return raw.SparseToSparseSetOperation(
                set1_indices=i, set1_values=v, set1_shape=s, set2_indices=j, set2_values=w,
                set2_shape=r, set_operation=op)
        f.case(op, 'DenseToSparseSetOperation', dense_sparse)
        f.case(op, 'SparseToSparseSetOperation', sparse_sparse)

    def size(b):
        i, v, s = sparse(b, (2, 3, 5), tf.int64)
        return raw.SetSize(set_indices=i, set_values=v, set_shape=s)
    f.case('int64', 'SetSize', size)
    f.case('bad', 'DenseToDenseSetOperation', lambda b: raw.DenseToDenseSetOperation(
        set1=b.rand((2, 5), tf.int32, static='nothing'), set2=b.rand((3, 4), tf.int32,
                                                                     static='nothing'),
        set_operation='union'), error='Mismatched shapes [2] vs [3]')


def sparse_products(f):
    for t in (FLOAT, DOUBLE, tf.int32, tf.complex64, tf.complex128):
        for a in BOTH:
            for c in BOTH:
                def product(b):
                    i, v, s = sparse(b, (3, 4) if not a else (4, 3), t)
                    return raw.SparseTensorDenseMatMul(
                        a_indices=i, a_values=v, a_shape=s, b=b.rand((4, 2) if not c else (2, 4), t),
                        adjoint_a=a, adjoint_b=c)
                f.case('%s_%d%d' % (name_of(t), a, c), 'SparseTensorDenseMatMul', product,
                       2 if t.is_floating or t.is_complex else 0, grad=t == FLOAT)
    for t in (FLOAT, tf.int64, tf.string, tf.bool):
        f.case('%s_rows' % name_of(t), 'SparseToDense', lambda b: raw.SparseToDense(
            sparse_indices=b.feed([1, 3], tf.int32), output_shape=b.index([5]),
            sparse_values=b.rand((2,), t), default_value=b.rand((), t)))
        f.case('%s_one' % name_of(t), 'SparseToDense', lambda b: raw.SparseToDense(
            sparse_indices=b.feed([[0, 1], [1, 0]], tf.int64), output_shape=b.index([2, 2], tf.int64),
            sparse_values=b.rand((), t), default_value=b.rand((), t)))
    for places, words in [([[0, 2]], 'indices[0] = [0,2] is out of bounds: need 0 <= index < [2,2]'),
                          ([[1, 0], [0, 1]], 'indices[1] = [0,1] is out of order'),
                          ([[1, 0], [1, 0]], 'indices[1] = [1,0] is repeated')]:
        f.case(words.split()[-1].strip('[],0123456789') + str(len(words)), 'SparseToDense', lambda b: raw.SparseToDense(
            sparse_indices=b.feed(places, tf.int64), output_shape=b.index([2, 2], tf.int64),
            sparse_values=b.rand((len(places),), FLOAT), default_value=b.rand((), FLOAT)),
            error=words)


def space(f):
    for t in (FLOAT, DOUBLE, HALF, tf.int32, tf.uint8, tf.bool):
        for shape, block, pads in [((2, 4, 6, 2), [2, 3], [[0, 0], [0, 0]]),
                                   ((1, 3, 5, 1), [2, 2], [[1, 0], [0, 1]]),
                                   ((2, 4), [4], [[2, 2]]), ((1, 2, 2, 2), [1, 2, 1],
                                                             [[0, 0], [0, 2], [1, 0]])]:
            f.case('%s_%d_%d' % (name_of(t), len(shape), sum(shape)), 'SpaceToBatchND',
                   lambda b: raw.SpaceToBatchND(input=b.rand(shape, t), block_shape=b.index(block),
                                                paddings=b.index(pads)), grad=t == FLOAT)
        for shape, block, crops in [((12, 2, 2, 2), [2, 3], [[0, 0], [0, 0]]),
                                    ((4, 2, 3, 1), [2, 2], [[1, 0], [0, 1]]),
                                    ((8, 2), [4], [[2, 2]])]:
            f.case('%s_%d_%d' % (name_of(t), len(shape), sum(shape)), 'BatchToSpaceND',
                   lambda b: raw.BatchToSpaceND(input=b.rand(shape, t), block_shape=b.index(block),
                                                crops=b.index(crops)), grad=t == FLOAT)
        f.case(name_of(t), 'SpaceToBatch', lambda b: raw.SpaceToBatch(
            input=b.rand((1, 3, 4, 2), t), paddings=b.index([[0, 1], [0, 0]]), block_size=2),
            grad=t == FLOAT)
        f.case(name_of(t), 'BatchToSpace', lambda b: raw.BatchToSpace(
            input=b.rand((8, 2, 2, 1), t), crops=b.index([[0, 1], [1, 0]]), block_size=2),
            grad=t == FLOAT)
        f.case(name_of(t), 'SpaceToDepth', lambda b: raw.SpaceToDepth(
            input=b.rand((2, 4, 6, 3), t), block_size=2), grad=t == FLOAT)
        f.case(name_of(t), 'DepthToSpace', lambda b: raw.DepthToSpace(
            input=b.rand((2, 2, 3, 8), t), block_size=2), grad=t == FLOAT)
    f.case('bad', 'SpaceToBatchND', lambda b: raw.SpaceToBatchND(
        input=b.rand((2, 5, 2), FLOAT, static='nothing'), block_shape=b.index([2]),
        paddings=b.index([[0, 0]], const=False)),
        error='padded_shape[0]=5 is not divisible by block_shape[0]=2')
    f.case('bad', 'BatchToSpaceND', lambda b: raw.BatchToSpaceND(
        input=b.rand((3, 5, 2), FLOAT, static='nothing'), block_shape=b.index([2]),
        crops=b.index([[0, 0]], const=False)),
        error='Input batch dimension (3) is not divisible by product of block sizes (2)')


def linalg(f):
    for t in (FLOAT, DOUBLE, tf.complex64, tf.complex128):
        for shape in [(3, 3), (5, 2), (2, 5), (2, 4, 3), (1, 1)]:
            for full in BOTH:
                f.case('%s_%s_%d' % (name_of(t), '_'.join(map(str, shape)), full), 'Qr',
                       lambda b: raw.Qr(input=b.rand(shape, t), full_matrices=full), 40)


def lists(f):
    def pushed(b, n, t=FLOAT, shape=(2,)):
        l = raw.EmptyTensorList(element_shape=b.index(list(shape), const=False),
                                max_num_elements=b.index(-1), element_dtype=t)
        for _ in range(n):
            l = raw.TensorListPushBack(input_handle=l, tensor=b.rand(shape, t))
        return l

    def stack(b, l, t=FLOAT, shape=(2,)):
        return raw.TensorListStack(input_handle=l, element_shape=b.index(list(shape)),
                                   element_dtype=t)
    for t in (FLOAT, tf.int64, tf.string):
        f.case(name_of(t), 'TensorListStack', lambda b: stack(b, pushed(b, 3, t), t))
        f.case(name_of(t), 'TensorListFromTensor', lambda b: stack(b, raw.TensorListFromTensor(
            tensor=b.rand((4, 2), t), element_shape=b.index([2])), t))

        def pop(b):
            l = pushed(b, 3, t)
            short, x = raw.TensorListPopBack(input_handle=l, element_shape=b.index([2]),
                                             element_dtype=t)
            return [x, stack(b, l, t), stack(b, short, t),
                    raw.TensorListLength(input_handle=short)]
        f.case(name_of(t), 'TensorListPopBack', pop)

        def items(b):
            l = raw.TensorListReserve(element_shape=b.index([2]), num_elements=b.index(3),
                                      element_dtype=t)
            m = raw.TensorListSetItem(input_handle=l, index=b.index(1), item=b.rand((2,), t))
            get = [raw.TensorListGetItem(input_handle=m, index=b.index(1),
                                         element_shape=b.index([2]), element_dtype=t)]
            if t != tf.string:
                get += [stack(b, l, t), stack(b, m, t)]
            return get
        f.case(name_of(t), 'TensorListSetItem', items)
        f.case(name_of(t), 'TensorListGather', lambda b: raw.TensorListGather(
            input_handle=pushed(b, 3, t), indices=b.feed([2, 0, 2], tf.int32),
            element_shape=b.index([2]), element_dtype=t))
        f.case(name_of(t), 'TensorListScatterV2', lambda b: stack(b, raw.TensorListScatterV2(
            tensor=b.rand((2, 2), t), indices=b.feed([1, 0], tf.int32), element_shape=b.index([2]),
            num_elements=b.index(-1)), t))

        def parts(b):
            l = raw.TensorListSplit(tensor=b.rand((5, 2), t), element_shape=b.index([-1, 2]),
                                    lengths=b.feed([2, 0, 3], tf.int64))
            return raw.TensorListConcatV2(input_handle=l, element_shape=b.index([-1, 2]),
                                          leading_dims=b.feed([], tf.int64), element_dtype=t)
        f.case(name_of(t), 'TensorListSplit', parts)
    f.case('shape', 'TensorListElementShape', lambda b: raw.TensorListElementShape(
        input_handle=raw.EmptyTensorList(element_shape=tf.constant([2, -1]),
                                         max_num_elements=tf.constant(-1), element_dtype=FLOAT),
        shape_type=tf.int64))
    f.case('resize', 'TensorListResize', lambda b: [stack(b, raw.TensorListResize(
        input_handle=pushed(b, 3), size=b.index(n))) for n in (2, 4)])
    f.case('lists', 'AddN', lambda b: stack(b, raw.AddN(inputs=[pushed(b, 2), pushed(b, 2),
                                                                pushed(b, 2)])), 2)
    f.case('lists', 'ZerosLike', lambda b: stack(b, raw.ZerosLike(x=pushed(b, 2))))
    f.case('lists', 'TensorListConcatLists', lambda b: stack(b, raw.TensorListConcatLists(
        input_a=pushed(b, 2), input_b=pushed(b, 1), element_dtype=FLOAT)))
    f.case('empty', 'TensorListPopBack', lambda b: raw.TensorListPopBack(
        input_handle=pushed(b, 0), element_shape=b.index([2]), element_dtype=FLOAT)[1],
        error='Trying to pop from an empty list')
    f.case('bad', 'TensorListGetItem', lambda b: raw.TensorListGetItem(
        input_handle=pushed(b, 1), index=b.index(1), element_shape=b.index([2]),
        element_dtype=FLOAT), error='Trying to access element 1 in a list with 1 elements.')
    f.case('bad', 'TensorListPushBack', lambda b: raw.TensorListLength(
        input_handle=raw.TensorListPushBack(input_handle=pushed(b, 1), tensor=b.rand((3,), FLOAT))),
        error='Tried to append a tensor with incompatible shape to a list. Op element shape: [3] '
        'list shape: [2]')
    unlike_lists(f)


def unlike_lists(f):
    """Lists whose items' shape is unknown, or known in part: the items differ in shape."""
    def made(b, items, shape=-1):
        l = raw.EmptyTensorList(element_shape=tf.constant(shape, tf.int32),
                                max_num_elements=b.index(-1), element_dtype=FLOAT)
        for s in items:
            l = raw.TensorListPushBack(input_handle=l, tensor=b.rand(s, FLOAT))
        return l

    def get(b, l, i):
        return raw.TensorListGetItem(input_handle=l, index=b.index(i), element_shape=-1,
                                     element_dtype=FLOAT)

    def gather(b, l, indices):
        return raw.TensorListGather(input_handle=l, indices=b.feed(indices, tf.int32),
                                    element_shape=-1, element_dtype=FLOAT)

    def stack(b, l):
        return raw.TensorListStack(input_handle=l, element_shape=-1, element_dtype=FLOAT)

    def concat(b, l):
        return raw.TensorListConcatV2(input_handle=l, element_shape=-1,
                                      leading_dims=b.feed([], tf.int64), element_dtype=FLOAT)
    f.case('unlike', 'TensorListGetItem', lambda b: [get(b, made(b, [(), (2, 1), (3,)]), i)
                                                     for i in range(3)])
    f.case('unlike', 'TensorListGather', lambda b: [
        gather(b, made(b, [(2,), (3, 1), (2,)]), [2, 0]),
        gather(b, made(b, [(2,), (3,), (2,)], [-1]), [1])])
    f.case('unlike', 'TensorListPopBack', lambda b: raw.TensorListPopBack(
        input_handle=made(b, [(2,), (3, 1)]), element_shape=-1, element_dtype=FLOAT)[1])
    f.case('unlike', 'TensorListConcatV2', lambda b: concat(b, made(b, [(1, 2), (3, 2)])))

    def items(b):
        l = raw.TensorListReserve(element_shape=-1, num_elements=b.index(2), element_dtype=FLOAT)
        l = raw.TensorListSetItem(input_handle=l, index=b.index(0), item=b.rand((2,), FLOAT))
        l = raw.TensorListSetItem(input_handle=l, index=b.index(1), item=b.rand((3, 1), FLOAT))
        return [get(b, l, 0), get(b, l, 1)]
    f.case('unlike', 'TensorListSetItem', items)
    f.case('ranks', 'TensorListStack', lambda b: stack(b, made(b, [(), (2,)])),
           error='Incompatible ranks during merge: 0 vs. 1')
    f.case('dims', 'TensorListStack', lambda b: stack(b, made(b, [(1,), (2,)], [-1])),
           error='Incompatible shapes during merge: [1] vs. [2]')
    f.case('ranks', 'TensorListGather', lambda b: gather(b, made(b, [(), (), (2,)]), [0, 2]),
           error='Incompatible ranks during merge: 0 vs. 1')
    f.case('scalars', 'TensorListConcatV2', lambda b: concat(b, made(b, [()], [])),
           error='Concat requires elements to be at least vectors, found scalars instead.')


def draws(f):
    """Exact sequences for given seeds."""
    for t in (FLOAT, DOUBLE, HALF):
        for alpha in (0.3, 1.0, 2.5, 30.):
            f.case('%s_%g' % (name_of(t), alpha), 'RandomGamma', lambda b: raw.RandomGamma(
                shape=b.index([3, 5]), alpha=b.feed([alpha, alpha + 1], t), seed=7, seed2=11), 4)
    for t in (FLOAT, tf.int32, tf.int64):
        for rate in (0.5, 4., 20., 300.):
            f.case('%s_%g' % (name_of(t), rate), 'RandomPoissonV2', lambda b: raw.RandomPoissonV2(
                shape=b.index([3, 5]), rate=b.feed([rate, rate + 1], DOUBLE), seed=7, seed2=11,
                dtype=t))
    for t in (FLOAT, DOUBLE):
        f.case(name_of(t), 'RandomGammaGrad', lambda b: raw.RandomGammaGrad(
            alpha=b.feed([0.3, 1., 2.5, 7., 30.], t), sample=b.feed([0.1, 2., 1.5, 9., 33.], t)),
            1000)
        f.case('%s_broadcast' % name_of(t), 'RandomGammaGrad', lambda b: raw.RandomGammaGrad(
            alpha=b.feed([[0.3], [1.]], t), sample=b.feed([0.1, 2., 1.5], t)), 1000)
    for t in (tf.int32, tf.int64):
        f.case(name_of(t), 'Multinomial', lambda b: raw.Multinomial(
            logits=b.rand((1, 5), FLOAT), num_samples=b.index(20), seed=7, seed2=11,
            output_dtype=t))
        f.case(name_of(t), 'StatelessMultinomial', lambda b: raw.StatelessMultinomial(
            logits=b.rand((1, 5), FLOAT), num_samples=b.index(20), seed=b.feed([3, 4], tf.int64),
            output_dtype=t))


QUANTIZED = [(tf.qint8, tf.int8), (tf.quint8, tf.uint8), (tf.qint16, tf.int16),
             (tf.quint16, tf.uint16), (tf.qint32, tf.int32)]
RANGES = [(-1., 1.), (0., 6.), (-3.7, 11.25), (-128., 127.), (1., 2.), (-5., -4.), (0., 0.),
          (.5, .5), (-1e5, 3e4)]


def quantized(f):
    modes = [('MIN_COMBINED', 'HALF_AWAY_FROM_ZERO'), ('MIN_FIRST', 'HALF_AWAY_FROM_ZERO'),
             ('SCALED', 'HALF_AWAY_FROM_ZERO'), ('SCALED', 'HALF_TO_EVEN')]
    for t, plain in QUANTIZED:
        info = np.iinfo(plain.as_numpy_dtype)
        # 32 bits are more than a float has: near the ends of the range TensorFlow's casts overflow.
        wide = t == tf.qint32
        for mode, rounding in modes:
            for low, high in [r for r in RANGES if not wide or r != (.5, .5)]:
                def quantize(b):
                    inside = b.rng.uniform(low, high, 40)
                    x = inside if wide else np.concatenate(
                        [inside, b.rng.uniform(low - 1, high + 1, 20), [low, high, 0., -0.]])
                    y = raw.QuantizeV2(input=b.feed(x.astype(np.float32), FLOAT),
                                       min_range=b.feed(low, FLOAT), max_range=b.feed(high, FLOAT),
                                       T=t, mode=mode, round_mode=rounding)
                    return [raw.Bitcast(input=y[0], type=plain), y[1], y[2]]
                name = '%s/%s/%s/%g_%g' % (name_of(t), mode, rounding, low, high)
                f.case(name, 'QuantizeV2', quantize)
                if rounding == 'HALF_TO_EVEN':
                    continue

                def dequantize(b):
                    x = b.rng.randint(info.min, info.max + 1, 40)
                    x = np.concatenate([x, [info.min, info.max - 200 * wide, 0]]).astype(plain.as_numpy_dtype)
                    return raw.Dequantize(
                        input=raw.Bitcast(input=b.feed(x, plain), type=t),
                        min_range=b.feed(low, FLOAT), max_range=b.feed(high, FLOAT), mode=mode)
                f.case(name, 'Dequantize', dequantize, 4)
    f.case('bad/ends', 'QuantizeV2', lambda b: raw.QuantizeV2(
        input=b.rand((2,), FLOAT), min_range=b.feed(2., FLOAT), max_range=b.feed(1., FLOAT),
        T=tf.qint8)[1], error='input_max_range must be larger than input_min_range.')
    f.case('bad/mode', 'QuantizeV2', lambda b: raw.QuantizeV2(
        input=b.rand((2,), FLOAT), min_range=b.feed(0., FLOAT), max_range=b.feed(1., FLOAT),
        T=tf.qint8, round_mode='HALF_TO_EVEN')[1],
        error="Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED'")


def ragged(f):
    """Numbers of rows in each of them, and rows of values."""
    for t in [tf.int32, tf.int64, FLOAT, tf.float64]:
        for splits in [tf.int32, tf.int64]:
            def ranges(b, starts, limits, deltas, *known):
                return list(raw.RaggedRange(
                    starts=b.feed(starts, t, *known), limits=b.feed(limits, t, *known), deltas=b.feed(deltas, t, *known),
                    Tsplits=splits))
            name = '%s_%s/' % (t.name, splits.name)
            f.case(name + 'rows', 'RaggedRange', lambda b: ranges(b, [0, 5, 8, 3], [4, 5, 3, 20], [1, 2, -2, 5]))
            f.case(name + 'limits', 'RaggedRange', lambda b: ranges(b, 1, [3, 0, 7], 2))
            f.case(name + 'scalars', 'RaggedRange', lambda b: ranges(b, 7, -4, -3))
            f.case(name + 'none', 'RaggedRange', lambda b: ranges(b, [], 3, 1))
            f.case(name + 'bad/zero', 'RaggedRange', lambda b: ranges(b, [0, 0], [3, 3], [1, 0]), error='Requires delta != 0')
            f.case(name + 'bad/rows', 'RaggedRange', lambda b: ranges(b, [0, 0], [3, 3, 3], 1, 'nothing'),
                   error='starts, limits, and deltas must have the same shape')
            f.case(name + 'bad/rank', 'RaggedRange', lambda b: ranges(b, [[0]], 3, 1, 'nothing'),
                   error='starts must be a scalar or vector')
    f.case('float/parts', 'RaggedRange', lambda b: list(raw.RaggedRange(
        starts=b.feed([0, -1, 2.5], FLOAT), limits=b.feed([1, 1, 1], FLOAT), deltas=b.feed([.1, .3, -.25], FLOAT))))
    for splits in [tf.int32, tf.int64]:
        for t in [FLOAT, tf.string, tf.int64]:
            def sparse(b, nested, shape):
                return list(raw.RaggedTensorToSparse(
                    rt_nested_splits=[b.feed(s, splits) for s in nested], rt_dense_values=b.rand(shape, t)))
            name = '%s_%s/' % (t.name, splits.name)
            f.case(name + 'rows', 'RaggedTensorToSparse', lambda b: sparse(b, [[0, 2, 2, 5]], (5,)))
            f.case(name + 'deep', 'RaggedTensorToSparse', lambda b: sparse(b, [[0, 1, 3], [0, 2, 2, 3]], (3, 2)))
            f.case(name + 'bad/end', 'RaggedTensorToSparse', lambda b: sparse(b, [[0, 2]], (3,)),
                   error='Final value of ragged splits must match the length the corresponding ragged values.')


def others(f):
    def optional(b):
        o = raw.OptionalFromValue(components=[b.rand((2,), FLOAT), b.rand((), tf.string)])
        return [raw.OptionalHasValue(optional=o)] + list(raw.OptionalGetValue(
            optional=o, output_types=[FLOAT, tf.string], output_shapes=[[2], []]))
    f.case('two', 'OptionalFromValue', optional)
    f.case('none', 'OptionalNone', lambda b: raw.OptionalHasValue(optional=raw.OptionalNone()))
    f.case('none', 'OptionalGetValue', lambda b: raw.OptionalGetValue(
        optional=raw.OptionalNone(), output_types=[FLOAT], output_shapes=[[]]),
        error='The given optional does not have a value.')

    for index in (0, 1, 2, 7, -1):
        def case(b):
            from tensorflow.python.framework import function

            def branch(by):
                @function.Defun(FLOAT, func_name='Branch%d' % by)
                def fn(x):
                    return x * float(by), x + 1.
                fn.add_to_graph(tf.compat.v1.get_default_graph())
                return fn
            return raw.Case(branch_index=b.feed(index, tf.int32), input=[b.rand((2,), FLOAT)],
                            Tout=[FLOAT, FLOAT], branches=[branch(2), branch(3), branch(5)])
        f.case('index_%d' % index, 'Case', case)


def make(f):
    for part in (strings, sets, sparse_products, space, linalg, lists, draws, quantized, ragged, others):
        part(f)
