"""Ops that take indices: StridedSlice, gathers, OneHot, DynamicStitch, segment sums, and what their
gradients add."""

import numpy as np
import tensorflow as tf

from gen.array import text
from gen.case import FLOAT, DOUBLE, dtypes, name_of

raw = tf.raw_ops
MASKS = ['begin_mask', 'end_mask', 'ellipsis_mask', 'new_axis_mask', 'shrink_axis_mask']


class Spec(object):
    """x[...] as the inputs and masks of StridedSlice."""

    def __init__(self, *items):
        self.begin, self.end, self.strides = [], [], []
        self.masks = dict.fromkeys(MASKS, 0)
        for i, item in enumerate(items):
            b, e, s = 0, 0, 1
            if item is Ellipsis:
                self.masks['ellipsis_mask'] |= 1 << i
            elif item is None:
                self.masks['new_axis_mask'] |= 1 << i
            elif isinstance(item, int):
                b, e = item, item + 1
                self.masks['shrink_axis_mask'] |= 1 << i
            else:
                s = 1 if item.step is None else item.step
                if item.start is None:
                    self.masks['begin_mask'] |= 1 << i
                else:
                    b = item.start
                if item.stop is None:
                    self.masks['end_mask'] |= 1 << i
                else:
                    e = item.stop
            self.begin.append(b)
            self.end.append(e)
            self.strides.append(s)
        self.text = ','.join('...' if i is Ellipsis else 'new' if i is None else str(
            i) if isinstance(
            i, int) else ':'.join('' if p is None else str(p) for p in (i.start, i.stop, i.step))
            for i in items)


s_ = slice
SLICES = [
    ((7,), [s_(1, 4)]), ((7,), [s_(None, None, 2)]), ((7,), [s_(None, None, -1)]),
    ((7,), [s_(5, 1, -2)]),
    ((7,), [s_(-3, None)]), ((7,), [s_(None, -2)]), ((7,), [3]), ((7,), [-1]), ((7,), [s_(5, 2)]),
    ((7,), [s_(-100, 100)]), ((7,), [s_(100, -100, -3)]), ((7,), [None]), ((7,), [Ellipsis]),
    ((7,), [Ellipsis, None]), ((7,), []), ((), []), ((), [None]), ((), [Ellipsis, None]),
    ((3, 4), [1]), ((3, 4), [s_(None), 1]), ((3, 4), [s_(0, 2), s_(1, 3)]),
    ((3, 4), [None, 2, None]),
    ((3, 4), [Ellipsis, -1]), ((3, 4), [s_(None, None, -2), s_(None, None, 3)]), ((3, 4), [2, 3]),
    ((3, 4), [s_(0, 0)]), ((0, 4), [s_(None), s_(1, 3)]), ((0, 4), [Ellipsis, 0]),
    ((2, 3, 4), [Ellipsis, 1, s_(None)]), ((2, 3, 4), [0, Ellipsis, s_(None, None, -1)]),
    ((2, 3, 4), [s_(None), None, s_(1, None), Ellipsis]), ((2, 3, 4), [None, Ellipsis, None]),
    ((2, 3, 4), [s_(1, None), s_(None), s_(0, 4, 2)]),
    ((2, 1, 3, 2), [1, None, 0, Ellipsis, s_(None, 1)]),
    ((2, 2, 2, 2, 2), [s_(1, None), 0, s_(None), s_(None, None, -1), 1]),
    ((3, 4), [s_(1, 3), s_(None, None, 2)]),
]


def strided_slice(f):
    def case(t, it, shape, items):
        spec = Spec(*items)
        n = '%s/%s/%s[%s]' % (name_of(t), name_of(it), text(shape), spec.text)
        f.case(n, 'StridedSlice', lambda b: raw.StridedSlice(
            input=b.rand(shape, t), begin=b.index(spec.begin, it), end=b.index(spec.end, it),
            strides=b.index(spec.strides, it), **spec.masks), grad=t == FLOAT)
        if t in (FLOAT, DOUBLE, tf.int32, tf.string) and t in dtypes('StridedSliceGrad'):
            np_items = tuple(np.newaxis if i is None else i for i in items)
            dy = np.zeros(shape)[np_items].shape
            f.case(n, 'StridedSliceGrad', lambda b: raw.StridedSliceGrad(
                shape=b.index(list(shape), it), begin=b.index(spec.begin, it),
                end=b.index(spec.end, it), strides=b.index(spec.strides, it),
                dy=b.rand(dy, t), **spec.masks), grad=t == FLOAT and items not in ([], ))
    for t in dtypes('StridedSlice'):
        for shape, items in SLICES if t == FLOAT else SLICES[-2:]:
            for it in (tf.int32, tf.int64) if t == FLOAT else (tf.int32,):
                case(t, it, shape, items)
    for n, shape, begin, end, strides, masks, words in [
            ('index', (7,), [7], [8], [1], dict(shrink_axis_mask=1),
             'slice index 7 of dimension 0 out of bounds.'),
            ('negative', (7,), [-8], [-7], [1], dict(shrink_axis_mask=1),
             'slice index -1 of dimension 0 out of bounds.'),
            ('stride', (7,), [0], [3], [0], {}, 'strides[0] must be non-zero'),
            ('rank', (7,), [0, 0], [1, 1], [1, 1], {},
             'Index out of range using input dim 1; input has only 1 dims'),
            ('two', (2, 3), [0, 0], [0, 0], [1, 1], dict(ellipsis_mask=3),
             'Multiple ellipses in slice spec not allowed'),
            ('shrink', (7,), [0], [3], [-1], dict(shrink_axis_mask=1),
             'only stride 1 allowed on non-range indexing.'),
            ('lengths', (7,), [0], [1, 2], [1], {},
             'Expected begin, end, and strides to be 1D equal size tensors')]:
        f.case('bad/' + n, 'StridedSlice', lambda b: raw.StridedSlice(
            input=b.rand(shape, FLOAT, static='nothing'),
            begin=b.index(begin, const=False, static='nothing'),
            end=b.index(end, const=False, static='nothing'),
            strides=b.index(strides, const=False, static='nothing'), **masks), error=words)
    f.case('bad/dy', 'StridedSliceGrad', lambda b: raw.StridedSliceGrad(
        shape=b.index([7], const=False), begin=b.index([1], const=False),
        end=b.index([4], const=False),
        strides=b.index([1], const=False), dy=b.rand((2,), FLOAT, static='nothing')),
        error='shape of dy was [2] instead of [3]')


def indices(b, shape, n, it, const=None):
    return b.index(b.rng.randint(0, n, shape), it, const)


def gather(f):
    todo = [((5,), (3,), 0), ((5,), (), 0), ((4, 3), (2, 2), 0), ((4, 3), (2,), 1),
            ((4, 3), (5,), -1),
            ((4, 3), (), 1), ((4, 3), (0,), 0), ((2, 3, 4), (2,), 1), ((2, 3, 4), (2, 2), -2),
            ((2, 0), (3,), 0), ((2, 2, 2, 3, 2), (4,), 3), ((4, 2), (3,), 0)]
    for t in dtypes('GatherV2', 'Tparams'):
        for shape, i, axis in todo if t == FLOAT else todo[-1:]:
            for it in (tf.int32, tf.int64):
                n = shape[axis]
                name = '%s/%s/%s_%s_%d' % (name_of(t), name_of(it), text(shape), text(i), axis)
                f.case(name, 'GatherV2', lambda b: raw.GatherV2(
                    params=b.rand(shape, t), indices=indices(b, i, n, it, False),
                    axis=b.index(axis, it)), 2 if t == FLOAT else 0, grad=t == FLOAT)
                if axis == 0:
                    f.case(name, 'Gather', lambda b: raw.Gather(
                        params=b.rand(shape, t), indices=indices(b, i, n, it, False),
                        validate_indices=len(i) != 1), 2 if t == FLOAT else 0, grad=t == FLOAT)
    # Without a constant axis TensorFlow infers a wrong rank; where the axis is not the first dim
    # behind the batch's, its gradient is wrong.
    for shape, i, axis, batch in [((2, 5), (2, 3), 1, 1), ((2, 3, 4), (2, 3, 2), 2, 2),
                                  ((2, 3, 4), (2, 2), 2, 1),
                                  ((2, 3, 4), (2, 2), 1, 1), ((2, 3, 4), (2, 2), -1, 1),
                                  ((3, 4), (3, 2), -1, -1)]:
        f.case('batch/%s_%s_%d_%d' % (text(shape), text(i), axis, batch), 'GatherV2',
               lambda b: raw.GatherV2(
            params=b.rand(shape, FLOAT), indices=indices(b, i, shape[axis], tf.int32, False),
            axis=b.index(axis, const=True), batch_dims=batch), 2, grad=batch == axis)
    for it in (tf.int32, tf.int64):
        f.case('bad/%s/high' % name_of(it), 'GatherV2', lambda b: raw.GatherV2(
            params=b.rand((3, 2), FLOAT), indices=b.feed([0, 3], it), axis=b.index(0)),
            error='indices[1] = 3 is not in [0, 3)')
        f.case('bad/%s/low' % name_of(it), 'GatherV2', lambda b: raw.GatherV2(
            params=b.rand((3, 2), FLOAT), indices=b.feed([[0, 1], [-1, 2]], it), axis=b.index(0)),
            error='indices[1,0] = -1 is not in [0, 3)')
        f.case('bad/%s/high' % name_of(it), 'Gather', lambda b: raw.Gather(
            params=b.rand((3, 2), tf.string), indices=b.feed(7, it)),
            error='indices = 7 is not in [0, 3)')
    f.case('bad/axis', 'GatherV2', lambda b: raw.GatherV2(
        params=b.rand((3, 2), FLOAT, static='nothing'), indices=b.feed([0], tf.int32),
        axis=b.index(2, const=False)),
        error='Expected axis in the range [-2, 2), but got 2')
    f.case('bad/scalar', 'GatherV2', lambda b: raw.GatherV2(
        params=b.rand((), FLOAT, static='nothing'), indices=b.feed([0], tf.int32),
        axis=b.index(0, const=False)),
        error='params must be at least 1 dimensional')

    todo = [((4, 3), [[0, 1], [3, 2]]), ((4, 3), [[0], [3], [3]]), ((4, 3), [[[1], [2]]]),
            ((5,), [[2], [4]]), ((5,), [3]),
            ((2, 3, 2), [[1, 2]]), ((2, 3, 2), [1, 2, 1]), ((4, 3), np.zeros((0, 2))),
            ((4, 3), np.zeros((2, 0))),
            ((2, 2, 2, 2, 2), [[1, 0, 1, 0, 1], [0, 0, 0, 0, 0]]), ((0, 3), np.zeros((0, 1))),
            ((3, 2), [[2], [0]])]
    for t in dtypes('GatherNd', 'Tparams'):
        for shape, i in todo if t == FLOAT else todo[-1:]:
            for it in (tf.int32, tf.int64):
                ok = shape != (2, 2, 2, 2, 2) and np.shape(i) != (2, 0) and np.ndim(i) > 1
                f.case('%s/%s/%s_%s' % (name_of(t), name_of(it), text(shape),
                                        text(np.shape(i)) + str(
                    np.sum(i).astype(int))), 'GatherNd', lambda b: raw.GatherNd(
                        params=b.rand(shape, t), indices=b.feed(i, it)), 2 if t == FLOAT else 0,
                    grad=t == FLOAT and ok)
    f.case('bad/range', 'GatherNd', lambda b: raw.GatherNd(
        params=b.rand((4, 3), FLOAT), indices=b.feed([[0, 1], [4, 0]], tf.int32)),
        error='indices[1] = [4, 0] does not index into param shape [4,3]')
    f.case('bad/negative', 'GatherNd', lambda b: raw.GatherNd(
        params=b.rand((4, 3), FLOAT), indices=b.feed([[0], [-1]], tf.int64)),
        error='indices[1] = [-1] does not index into param shape [4,3]')
    f.case('bad/depth', 'GatherNd', lambda b: raw.GatherNd(
        params=b.rand((4,), FLOAT, static='nothing'),
        indices=b.feed([[0, 0]], tf.int32, 'nothing')),
        error='index innermost dimension length must be <= params rank; saw: 2 vs. 1')


def one_hot(f):
    for t in dtypes('OneHot'):
        for i, depth, axis in [((), 3, -1), ((4,), 3, -1), ((4,), 3, 0), ((4,), 3, 1),
                               ((2, 3), 4, 1), ((2, 3), 4, 0),
                               ((2, 3), 4, 2), ((0,), 3, -1), ((4,), 0, -1),
                               ((3,), 4, -1)] if t == FLOAT else [((3,), 4, -1)]:
            for it in (tf.uint8, tf.int32, tf.int64):
                f.case('%s/%s/%s_%d_%d' % (name_of(t), name_of(it), text(i), depth, axis), 'OneHot',
                       lambda b: raw.OneHot(
                           indices=b.feed(b.rng.randint(0 if it == tf.uint8 else -1, depth + 2, i),
                                          it),
                           depth=b.index(depth), on_value=b.rand((), t), off_value=b.rand((), t),
                           axis=axis))
    f.case('bad/depth', 'OneHot', lambda b: raw.OneHot(
        indices=b.feed([0], tf.int32), depth=b.index(-1, const=False), on_value=b.rand((), FLOAT),
        off_value=b.rand((), FLOAT)), error='depth must be non-negative, got: -1')
    f.case('bad/on', 'OneHot', lambda b: raw.OneHot(
        indices=b.feed([0], tf.int32), depth=b.index(2, const=False),
        on_value=b.rand((2,), FLOAT, static='nothing'),
        off_value=b.rand((), FLOAT)), error='on_value must be a scalar')


def stitch(f):
    todo = [([[0, 2], [1]], ()), ([[1, 0], [2, 1]], ()), ([[0, 4]], ()), ([0, 1, 2], (2,)),
            ([[[0, 2], [1, 3]], 4], (3,)),
            ([np.zeros(0), [0]], (2,)), ([[0, 1], [2, 3]], (2, 2)), ([[3, 0], [1], [2, 3]], (2,))]
    for t in dtypes('DynamicStitch'):
        for idx, tail in todo if t == FLOAT else todo[-1:]:
            holes = idx == [[0, 4]]  # what is not named is not set

            def build(b):
                i = [b.index(k) for k in idx]
                d = [b.rand(np.shape(k) + tail, t) for k in idx]
                y = raw.DynamicStitch(indices=i, data=d)
                return raw.GatherV2(params=y, indices=tf.constant([0, 4]), axis=0) if holes else y
            f.case('%s/%s_%s' % (name_of(t), text(tail), '_'.join(
                str(np.ravel(k).astype(int).tolist()) for k in idx)), 'DynamicStitch', build,
                2 if t == FLOAT else 0, grad=t == FLOAT and not holes)
    f.case('bad/shape', 'DynamicStitch', lambda b: raw.DynamicStitch(
        indices=[b.index([0, 1], const=False, static='nothing')],
        data=[b.rand((3,), FLOAT, static='nothing')]),
        error='data[0].shape = [3] does not start with indices[0].shape = [2]')
    f.case('bad/index', 'DynamicStitch', lambda b: raw.DynamicStitch(
        indices=[b.index([0, -1], const=False)], data=[b.rand((2,), FLOAT)]),
        error='indices[1] is out of range')
    f.case('bad/tails', 'DynamicStitch', lambda b: raw.DynamicStitch(
        indices=[b.index([0], const=False), b.index([1], const=False)],
        data=[b.rand((1, 2), FLOAT, static='nothing'), b.rand((1, 3), FLOAT, static='nothing')]),
        error='Need data[0].shape[1:] = data[1].shape[1:]')


def segments(f):
    for t in dtypes('UnsortedSegmentSum'):
        for shape, ids, n in [((4,), [0, 1, 0, 2], 3), ((4, 3), [2, 2, 0, 0], 4),
                              ((2, 2, 3), [[0, 1], [1, 0]], 2),
                              ((4,), [0, -1, 1, -1], 2), ((0, 3), np.zeros(0), 2),
                              ((3,), [0, 0, 0], 1), ((), 1, 3),
                              ((5, 2), [0, 1, 0, 3, 3], 4)] if t == FLOAT else [
                                  ((5, 2), [0, 1, 0, 3, 3], 4)]:
            for it in (tf.int32, tf.int64):
                for nt in (tf.int32, tf.int64) if t == FLOAT else (tf.int32,):
                    f.case('%s/%s/%s/%s_%s' % (name_of(t), name_of(it), name_of(nt), text(shape),
                                               np.ravel(ids).astype(int).tolist()),
                           'UnsortedSegmentSum', lambda b: raw.UnsortedSegmentSum(
                               data=b.rand(shape, t, static='rank'),
                               segment_ids=b.feed(ids, it, 'known'),
                               num_segments=b.index(n, nt)),
                           2 if t.is_floating else 0, grad=t in (FLOAT, DOUBLE))
    f.case('bad/id', 'UnsortedSegmentSum', lambda b: raw.UnsortedSegmentSum(
        data=b.rand((2,), FLOAT), segment_ids=b.feed([0, 5], tf.int32), num_segments=b.index(3)),
        error='segment_ids[1] = 5 is out of range [0, 3)')
    f.case('bad/shape', 'UnsortedSegmentSum', lambda b: raw.UnsortedSegmentSum(
        data=b.rand((2,), FLOAT, static='nothing'),
        segment_ids=b.feed([0, 1, 2], tf.int32, 'nothing'), num_segments=b.index(3)),
        error='data.shape = [2] does not start with segment_ids.shape = [3]')


def make(f):
    for part in (strided_slice, gather, one_hot, stitch, segments):
        part(f)
