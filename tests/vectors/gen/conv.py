"""Convolutions. TensorFlow's CPU kernels have channels last only, and no gradients of dilated
convolutions: conv_test.c compares those with others that are here."""

import tensorflow as tf

from gen.array import text
from gen.case import ANY, FLOAT, HALF, dtypes, name_of, scaled

raw = tf.raw_ops
# input, filter, strides, padding, dilations
CASES_2D = [
    ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), 'SAME', (1, 1)),
    ((2, 5, 7, 3), (3, 3, 3, 4), (1, 1), 'SAME', (1, 1)),
    ((2, 5, 7, 3), (3, 3, 3, 4), (1, 1), 'VALID', (1, 1)),
    ((1, 8, 9, 2), (2, 3, 2, 5), (2, 3), 'SAME', (1, 1)),
    ((3, 9, 8, 1), (5, 4, 1, 3), (3, 2), 'VALID', (1, 1)),
    ((2, 6, 6, 16), (5, 5, 16, 9), (1, 1), 'SAME', (1, 1)),
    ((2, 6, 5, 20), (3, 3, 20, 17), (1, 1), [[0, 0], [2, 1], [0, 3], [0, 0]], (1, 1)),
    ((1, 6, 5, 4), (3, 2, 4, 3), (2, 1), [[0, 0], [1, 4], [3, 2], [0, 0]], (1, 1)),
    ((2, 4, 4, 7), (1, 1, 7, 5), (1, 1), 'SAME', (1, 1)),
    ((2, 5, 5, 7), (1, 1, 7, 5), (2, 2), 'VALID', (1, 1)),
    ((4, 3, 2, 5), (3, 2, 5, 6), (1, 1), 'VALID', (1, 1)),
    ((1, 2, 2, 3), (5, 5, 3, 2), (1, 1), 'SAME', (1, 1)),
    ((1, 4, 3, 2), (2, 2, 2, 3), (5, 4), 'SAME', (1, 1)),
    ((1, 7, 6, 3), (3, 3, 3, 33), (1, 1), 'SAME', (1, 1)),
    ((0, 5, 5, 3), (3, 3, 3, 4), (1, 1), 'SAME', (1, 1)),
    ((2, 5, 5, 3), (3, 3, 3, 0), (1, 1), 'SAME', (1, 1)),
]
DILATED = [
    ((2, 9, 9, 3), (3, 3, 3, 4), (1, 1), 'SAME', (2, 2)),
    ((1, 9, 12, 2), (3, 2, 2, 5), (1, 1), 'VALID', (3, 4)),
    ((2, 7, 8, 16), (3, 3, 16, 3), (1, 1), 'SAME', (1, 3)),
]


def window(case):
    _, _, strides, padding, dilations = case
    a = {'strides': [1] + list(strides) + [1]}
    if isinstance(padding, str):
        a['padding'] = padding
    else:
        a['padding'] = 'EXPLICIT'
        a['explicit_paddings'] = [n for pair in padding for n in pair]
    if any(d != 1 for d in dilations):
        a['dilations'] = [1] + list(dilations) + [1]
    return a


def tag(case):
    p = case[3] if isinstance(case[3], str) else 'PADS'
    return '%s_by_%s_%s_%s_%s' % (text(case[0]), text(case[1]), text(case[2]), p, text(case[4]))


def tolerance(t):
    return scaled(20, t, 10)


def out_shape(op, case, t):
    with tf.Graph().as_default():
        return getattr(raw, op)(input=tf.zeros(case[0], t), filter=tf.zeros(case[1], t),
                                **window(case)).shape.as_list()


def two(f):
    for t in dtypes('Conv2D'):
        for case in CASES_2D + DILATED if t == FLOAT else CASES_2D[1:9]:
            f.case('%s/%s' % (name_of(t), tag(case)), 'Conv2D', lambda b: raw.Conv2D(
                input=b.rand(case[0], t, -1, 1), filter=b.rand(case[1], t, -1, 1),
                **window(case)), tolerance(t), grad=case not in DILATED and case[1][3] > 0)
        for case in CASES_2D[:-1] if t == FLOAT else CASES_2D[3:8]:
            y = out_shape('Conv2D', case, t)
            # Gradients of gradients are in these.
            f.case('%s/%s' % (name_of(t), tag(case)), 'Conv2DBackpropInput',
                   lambda b: raw.Conv2DBackpropInput(
                       input_sizes=b.index(case[0]), filter=b.rand(case[1], t, -1, 1),
                       out_backprop=b.rand(y, t, -1, 1), **window(case)), tolerance(t),
                   grad=case[0][0] > 0)
            f.case('%s/%s' % (name_of(t), tag(case)), 'Conv2DBackpropFilter',
                   lambda b: raw.Conv2DBackpropFilter(
                       input=b.rand(case[0], t, -1, 1), filter_sizes=b.index(case[1]),
                       out_backprop=b.rand(y, t, -1, 1), **window(case)), tolerance(t),
                   grad=case[0][0] > 0)
    # More pixels than a part has, and more than one block of products.
    wide = ((2, 36, 37, 2), (3, 3, 2, 9), (1, 1), 'SAME', (1, 1))
    f.case('float/wide', 'Conv2D', lambda b: raw.Conv2D(
        input=b.rand(wide[0], FLOAT, -1, 1), filter=b.rand(wide[1], FLOAT, -1, 1),
        **window(wide)), 40, grad=True)


def bad_two(f):
    def build(b, x=(1, 4, 4, 2), w=(2, 2, 2, 3), strides=(1, 1, 1, 1), padding='VALID', **kw):
        return raw.Conv2D(input=b.rand(x, FLOAT, static='nothing'),
                          filter=b.rand(w, FLOAT, static='nothing'), strides=list(strides),
                          padding=padding, **kw)
    for n, kw, words in [
            ('rank', dict(x=(4, 4, 2)), 'input must be 4-dimensional[4,4,2]'),
            ('filter_rank', dict(w=(2, 2, 2)), 'filter must be 4-dimensional: [2,2,2]'),
            ('batch_stride', dict(strides=(2, 1, 1, 1)), 'does not yet support strides in the '
             'batch and depth dimensions.'),
            ('batch_dilation', dict(dilations=[1, 1, 1, 2]), 'does not yet support dilations in '
             'the batch and depth dimensions.'),
            ('large_window', dict(w=(6, 2, 2, 3)), 'Computed output size would be negative: -1 '
             '[input_size: 4, effective_filter_size: 6, stride: 1]')]:
        f.case('bad/' + n, 'Conv2D', lambda b: build(b, **kw), error=words)
    f.case('bad/depth', 'Conv2D', lambda b: build(b, x=(1, 4, 4, 3)), error=ANY)

    def by_input(b, sizes=(1, 4, 4, 2), w=(2, 2, 2, 3), y=(1, 3, 3, 3), **kw):
        return raw.Conv2DBackpropInput(
            input_sizes=b.index(sizes, const=False, static='nothing'),
            filter=b.rand(w, FLOAT, static='nothing'),
            out_backprop=b.rand(y, FLOAT, static='nothing'), strides=[1, 1, 1, 1],
            padding='VALID', **kw)
    for n, kw, words in [
            ('sizes', dict(sizes=((1, 4, 4, 2),)), 'Conv2DBackpropInput: input_sizes input must '
             'be 1-dim, not 2'),
            ('rank', dict(sizes=(4, 4, 2)), 'input must be 4-dimensional'),
            ('batch', dict(sizes=(2, 4, 4, 2)), 'input and out_backprop must have the same batch '
             'size'),
            ('depth', dict(sizes=(1, 4, 4, 3)), 'input depth must be evenly divisible by filter '
             'depth'),
            ('out_depth', dict(y=(1, 3, 3, 4)), 'filter and out_backprop must have the same '
             'out_depth'),
            ('size', dict(y=(1, 3, 4, 3)), "Size of out_backprop doesn't match computed: actual "
             "= 4, computed = 3")]:
        f.case('bad/' + n, 'Conv2DBackpropInput', lambda b: by_input(b, **kw), error=words)
    f.case('bad/size', 'Conv2DBackpropFilter', lambda b: raw.Conv2DBackpropFilter(
        input=b.rand((1, 4, 4, 2), FLOAT, static='nothing'),
        filter_sizes=b.index((3, 2, 2, 3), const=False, static='nothing'),
        out_backprop=b.rand((1, 3, 3, 3), FLOAT, static='nothing'), strides=[1, 1, 1, 1],
        padding='VALID'), error="Size of out_backprop doesn't match computed: actual = 3, "
        "computed = 2")


DEPTHWISE = [
    ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), 'SAME', (1, 1)),
    ((2, 5, 7, 3), (3, 3, 3, 1), (1, 1), 'SAME', (1, 1)),
    ((2, 5, 7, 3), (3, 3, 3, 4), (1, 1), 'VALID', (1, 1)),
    ((1, 8, 9, 20), (2, 3, 20, 1), (2, 2), 'SAME', (1, 1)),
    ((3, 9, 8, 1), (5, 4, 1, 3), (3, 3), 'VALID', (1, 1)),
    ((4, 20, 3, 9), (3, 3, 9, 2), (1, 1), 'SAME', (1, 1)),
    ((1, 2, 2, 3), (5, 5, 3, 2), (1, 1), 'SAME', (1, 1)),
]


def depthwise(f):
    op = 'DepthwiseConv2dNative'
    for t in dtypes(op):
        for case in DEPTHWISE if t == FLOAT else DEPTHWISE[1:4]:
            f.case('%s/%s' % (name_of(t), tag(case)), op, lambda b: raw.DepthwiseConv2dNative(
                input=b.rand(case[0], t, -1, 1), filter=b.rand(case[1], t, -1, 1),
                **window(case)), tolerance(t), grad=True)
            y = out_shape(op, case, t)
            f.case('%s/%s' % (name_of(t), tag(case)), op + 'BackpropInput',
                   lambda b: raw.DepthwiseConv2dNativeBackpropInput(
                       input_sizes=b.index(case[0]), filter=b.rand(case[1], t, -1, 1),
                       out_backprop=b.rand(y, t, -1, 1), **window(case)), tolerance(t), grad=True)
            f.case('%s/%s' % (name_of(t), tag(case)), op + 'BackpropFilter',
                   lambda b: raw.DepthwiseConv2dNativeBackpropFilter(
                       input=b.rand(case[0], t, -1, 1), filter_sizes=b.index(case[1]),
                       out_backprop=b.rand(y, t, -1, 1), **window(case)), tolerance(t), grad=True)
    for n, x, w, words in [
            ('rank', (4, 4, 2), (2, 2, 2, 1), 'input must be 4-dimensional[4,4,2]'),
            ('depth', (1, 4, 4, 2), (2, 2, 3, 1), 'input and filter must have the same depth: '
             '2 vs 3')]:
        f.case('bad/' + n, op, lambda b: raw.DepthwiseConv2dNative(
            input=b.rand(x, FLOAT, static='nothing'), filter=b.rand(w, FLOAT, static='nothing'),
            strides=[1, 1, 1, 1], padding='VALID'), error=words)
    for n, y, words in [
            ('rows', (1, 2, 3, 2), "Number of rows of out_backprop doesn't match computed: actual "
             "= 2, computed = 3"),
            ('depth', (1, 3, 3, 4), 'depth_multiplier * in_depth not equal to out_depth')]:
        f.case('bad/' + n, op + 'BackpropInput', lambda b: raw.DepthwiseConv2dNativeBackpropInput(
            input_sizes=b.index((1, 4, 4, 2), const=False),
            filter=b.rand((2, 2, 2, 1), FLOAT, static='nothing'),
            out_backprop=b.rand(y, FLOAT, static='nothing'), strides=[1, 1, 1, 1],
            padding='VALID'), error=words)


CASES_3D = [
    ((1, 1, 1, 1, 1), (1, 1, 1, 1, 1), (1, 1, 1), 'SAME', (1, 1, 1)),
    ((2, 4, 5, 6, 3), (3, 2, 3, 3, 4), (1, 1, 1), 'SAME', (1, 1, 1)),
    ((2, 4, 5, 6, 3), (3, 2, 3, 3, 4), (1, 1, 1), 'VALID', (1, 1, 1)),
    ((1, 5, 4, 6, 2), (2, 3, 2, 2, 3), (2, 2, 2), 'SAME', (1, 1, 1)),
    ((1, 4, 3, 3, 16), (2, 3, 3, 16, 5), (1, 1, 1), 'SAME', (1, 1, 1)),
    ((2, 5, 6, 7, 2), (2, 2, 2, 2, 3), (3, 1, 2), 'VALID', (1, 1, 1)),
]


def three(f):
    for t in dtypes('Conv3D'):
        tol = tolerance(t)
        for case in CASES_3D if t == FLOAT else CASES_3D[1:3]:
            f.case('%s/%s' % (name_of(t), tag(case)), 'Conv3D', lambda b: raw.Conv3D(
                input=b.rand(case[0], t, -1, 1), filter=b.rand(case[1], t, -1, 1),
                **window(case)), tol, grad=True)
            y = out_shape('Conv3D', case, t)
            f.case('%s/%s' % (name_of(t), tag(case)), 'Conv3DBackpropInputV2',
                   lambda b: raw.Conv3DBackpropInputV2(
                       input_sizes=b.index(case[0], tf.int64 if case[0][0] == 2 else tf.int32),
                       filter=b.rand(case[1], t, -1, 1), out_backprop=b.rand(y, t, -1, 1),
                       **window(case)), tol, grad=True)
            f.case('%s/%s' % (name_of(t), tag(case)), 'Conv3DBackpropFilterV2',
                   lambda b: raw.Conv3DBackpropFilterV2(
                       input=b.rand(case[0], t, -1, 1), filter_sizes=b.index(case[1]),
                       out_backprop=b.rand(y, t, -1, 1), **window(case)), tol, grad=True)
    f.case('bad/rank', 'Conv3D', lambda b: raw.Conv3D(
        input=b.rand((1, 4, 4, 2), FLOAT, static='nothing'),
        filter=b.rand((2, 2, 2, 2, 3), FLOAT, static='nothing'), strides=[1] * 5,
        padding='VALID'), error='input must be 5-dimensional')
    f.case('bad/size', 'Conv3DBackpropInputV2', lambda b: raw.Conv3DBackpropInputV2(
        input_sizes=b.index((1, 4, 4, 4, 2), const=False),
        filter=b.rand((2, 2, 2, 2, 3), FLOAT, static='nothing'),
        out_backprop=b.rand((1, 3, 3, 2, 3), FLOAT, static='nothing'), strides=[1] * 5,
        padding='VALID'), error="Size of out_backprop doesn't match computed: actual = 2, "
        "computed = 3")


def fused(f):
    # One image only: TensorFlow 1.15 takes lines of the first image for those of the others.
    for t in dtypes('FusedPadConv2D'):
        for mode in ('REFLECT', 'SYMMETRIC'):
            for strides, padding, pads in [((1, 1), 'VALID', (1, 2, 2, 1)),
                                           ((2, 3), 'SAME', (0, 0, 2, 2)),
                                           ((1, 2), 'SAME', (3, 1, 0, 0))]:
                kw = dict(mode=mode, strides=[1] + list(strides) + [1], padding=padding)
                rows = [[0, 0], list(pads[:2]), list(pads[2:]), [0, 0]]
                name = '%s/%s_%s_%s' % (name_of(t), mode, padding, text(pads))
                f.case(name, 'FusedPadConv2D', lambda b: raw.FusedPadConv2D(
                    input=b.rand((1, 5, 6, 3), t, -1, 1), paddings=b.index(rows),
                    filter=b.rand((3, 2, 3, 4), t, -1, 1), **kw), tolerance(t))
                for align in (False, True):
                    f.case(name + '_align' * align, 'FusedResizeAndPadConv2D',
                           lambda b: raw.FusedResizeAndPadConv2D(
                               input=b.rand((1, 4, 3, 3), t, -1, 1), size=b.index((7, 5)),
                               paddings=b.index(rows), filter=b.rand((3, 2, 3, 4), t, -1, 1),
                               resize_align_corners=align, **kw),
                           scaled(40, t, 40 if t == HALF else 10))

    def bad(b, x=(1, 4, 4, 2), pads=((0, 0), (1, 1), (1, 1), (0, 0)), w=(2, 2, 2, 3)):
        return raw.FusedPadConv2D(
            input=b.rand(x, FLOAT, static='nothing'), mode='REFLECT',
            paddings=b.index(pads, const=False, static='known'),
            filter=b.rand(w, FLOAT, static='nothing'), strides=[1, 1, 1, 1], padding='VALID')
    for n, kw, words in [
            ('empty', dict(x=(0, 4, 4, 2)), "Input tensor can't be empty"),
            ('negative', dict(pads=((0, 0), (-1, 1), (1, 1), (0, 0))), 'paddings must be '
             'non-negative: -1 1'),
            ('large', dict(pads=((0, 0), (4, 1), (1, 1), (0, 0))), 'paddings must be less than '
             'the dimension size: 4, 1 not less than 4'),
            ('channels', dict(pads=((0, 0), (1, 1), (1, 1), (1, 0))), 'Fused mirror padding only '
             'support spatial padding, not channels'),
            ('depth', dict(w=(2, 2, 3, 3)), 'input and filter must have the same depth: 2 vs 3'),
            ('window', dict(w=(6, 7, 2, 3)), "Output tensor can't be empty")]:
        f.case('bad/' + n, 'FusedPadConv2D', lambda b: bad(b, **kw), error=words)


def make(f):
    two(f)
    bad_two(f)
    depthwise(f)
    three(f)
    fused(f)
