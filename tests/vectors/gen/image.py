"""Ops on images: resizing, cropping, colors, boxes, patches."""

import numpy as np
import tensorflow as tf

from gen.array import text
from gen.case import DOUBLE, EXACT, FLOAT, HALF, dtypes, name_of

raw = tf.raw_ops
SIZES = [((1, 4, 4, 3), (8, 8)), ((2, 5, 7, 1), (3, 11)), ((1, 6, 5, 2), (4, 3)),
         ((1, 3, 3, 5), (3, 3)), ((2, 1, 1, 3), (4, 2)), ((1, 9, 8, 3), (1, 1)),
         ((1, 13, 17, 3), (7, 29)), ((3, 8, 8, 4), (5, 5)), ((0, 4, 4, 1), (2, 2)),
         ((1, 20, 31, 3), (9, 50)), ((1, 2, 3, 70), (5, 4))]
WIDE = ((1, 1, 2, 2100), (1, 3))  # more channels than are done at a time
CORNERS = [{}, {'align_corners': True}, {'half_pixel_centers': True}]


def tag(attrs):
    return ''.join('_' + k.split('_')[0] for k in sorted(attrs) if attrs[k])


def pixels(b, shape, t, **kw):
    """Values of the whole range of a byte, or of numbers with fractions."""
    if t.is_integer:
        return b.rand(shape, t, -100 if not t.is_unsigned else 0, 127 if t.size == 1 else 250, **kw)
    return b.rand(shape, t, -50, 200, **kw)


def resize(f):
    for op, corners in [('ResizeBilinear', CORNERS), ('ResizeNearestNeighbor', CORNERS),
                        ('ResizeBicubic', CORNERS), ('ResizeArea', CORNERS[:2])]:
        for t in dtypes(op):
            for attrs in corners:
                for shape, size in SIZES + [WIDE] * (t == FLOAT and attrs == {}) if t == FLOAT \
                        else SIZES[1:3]:
                    # Double images get a gradient in float precision.
                    grad = t in (FLOAT, DOUBLE) and op != 'ResizeArea' and shape[0] > 0 and \
                        shape[3] < 100
                    f.case('%s/%s_to_%s%s' % (name_of(t), text(shape), text(size), tag(attrs)), op,
                           lambda b: getattr(raw, op)(images=pixels(b, shape, t),
                                                      size=b.index(size), **attrs),
                           EXACT, grad=grad)
        bad(f, op, corners)


def bad(f, op, corners):
    def build(b, shape=(1, 2, 2, 3), size=(2, 2), **attrs):
        return getattr(raw, op)(images=b.rand(shape, FLOAT, static='nothing'),
                                size=b.index(size, const=False, static='nothing'), **attrs)
    for n, kw, words in [
            ('rank', dict(shape=(2, 2, 3)), 'input must be 4-dimensional[2,2,3]'),
            ('size', dict(size=(2, 2, 2)), 'shape_t must have two elements[3]'),
            ('size_rank', dict(size=((2, 2),)), 'shape_t must be 1-dimensional[1,2]'),
            ('negative', dict(size=(2, -1)), 'output dimensions must be positive'),
            ('zero', dict(size=(0, 1)), 'output dimensions must be positive'),
            ('no_channel', dict(shape=(1, 2, 2, 0)), 'image must have at least one channel'),
            ('no_pixel', dict(shape=(1, 0, 2, 1)), 'input image must be of non-zero size')]:
        f.case('bad/' + n, op, lambda b: build(b, **kw), error=words)
    if len(corners) > 2:
        f.case('bad/corners', op, lambda b: build(b, align_corners=True, half_pixel_centers=True),
               error='If half_pixel_centers is True, align_corners must be False.')


def resize_grads(f):
    for op in ('ResizeBilinearGrad', 'ResizeBicubicGrad'):
        for t in dtypes(op):
            for attrs in CORNERS:
                for shape, size in SIZES[:3] + SIZES[6:8]:
                    f.case('%s/%s_to_%s%s' % (name_of(t), text(shape), text(size), tag(attrs)), op,
                           lambda b: getattr(raw, op)(
                               grads=b.rand((shape[0],) + size + shape[3:], FLOAT),
                               original_image=b.rand(shape, t), **attrs), 4 if t == HALF else EXACT)
        f.case('bad/rank', op, lambda b: getattr(raw, op)(
            grads=b.rand((2, 2, 3), FLOAT, static='nothing'),
            original_image=b.rand((1, 2, 2, 3), FLOAT, static='nothing')),
            error='input_grad must be 4-dimensional[2,2,3]')
    op = 'ResizeNearestNeighborGrad'
    for t in dtypes(op):
        for attrs in CORNERS:
            for shape, size in SIZES[:3] + SIZES[6:8]:
                f.case('%s/%s_to_%s%s' % (name_of(t), text(shape), text(size), tag(attrs)), op,
                       lambda b: raw.ResizeNearestNeighborGrad(
                           grads=b.rand((shape[0],) + size + shape[3:], t),
                           size=b.index(shape[1:3]), **attrs), 4 if t == HALF else EXACT)
    f.case('bad/size', op, lambda b: raw.ResizeNearestNeighborGrad(
        grads=b.rand((1, 2, 2, 3), FLOAT), size=b.index([0, 2])),
        error="shape_t's elements must be positive")


def quantized(f):
    op = 'QuantizedResizeBilinear'
    for t in (tf.quint8, tf.qint32, FLOAT):
        for attrs in CORNERS:
            for shape, size in SIZES[:4] + SIZES[6:8]:
                def build(b):
                    if t == FLOAT:
                        x = b.rand(shape, t, 0, 1)
                    else:
                        x = tf.bitcast(b.rand(shape, tf.uint8 if t == tf.quint8 else tf.int32,
                                              0, 255 if t == tf.quint8 else 2 ** 31 - 2), t)
                    y, lo, hi = raw.QuantizedResizeBilinear(
                        images=x, size=b.index(size), min=b.feed(0.0, FLOAT),
                        max=b.feed(1.0, FLOAT), **attrs)
                    if t != FLOAT:
                        y = tf.bitcast(y, tf.uint8 if t == tf.quint8 else tf.int32)
                    return y, lo, hi
                f.case('%s/%s_to_%s%s' % (t.name, text(shape), text(size), tag(attrs)), op, build)


def scale(f):
    op = 'ScaleAndTranslate'
    for kernel in ('lanczos1', 'lanczos3', 'lanczos5', 'gaussian', 'box', 'triangle', 'keyscubic',
                   'mitchellcubic'):
        for antialias in (True, False):
            for shape, size, by, move in [((1, 4, 6, 3), (8, 9), (2.0, 1.5), (0.0, 0.0)),
                                          ((2, 11, 9, 1), (4, 5), (.4, .55), (-.5, 1.25))]:
                f.case('%s_%d/%s_to_%s' % (kernel, antialias, text(shape), text(size)), op,
                       lambda b: raw.ScaleAndTranslate(
                           images=b.rand(shape, FLOAT, static='known'), size=b.index(size),
                           scale=tf.constant(by), translation=tf.constant(move),
                           kernel_type=kernel, antialias=antialias), 1, grad=True)
    for t in dtypes(op):
        f.case(name_of(t), op, lambda b: raw.ScaleAndTranslate(
            images=pixels(b, (2, 5, 4, 3), t), size=b.index((7, 3)), scale=b.feed([1.4, .7], FLOAT),
            translation=b.feed([.1, -.3], FLOAT)), 1)

    def build(b, shape=(1, 2, 2, 3), size=(2, 2), scale=(1., 1.), move=(0., 0.)):
        return raw.ScaleAndTranslate(
            images=b.rand(shape, FLOAT, static='nothing'), size=b.index(size, const=False),
            scale=b.feed(scale, FLOAT, static='nothing'),
            translation=b.feed(move, FLOAT, static='nothing'))
    for n, kw, words in [('rank', dict(shape=(2, 2, 3)), 'input must be 4-dimensional[2,2,3]'),
                         ('size', dict(size=(2, 0)), 'output dimensions must be positive'),
                         ('scale', dict(scale=(1., 0.)), 'Scale must be greater than zero.')]:
        f.case('bad/' + n, op, lambda b: build(b, **kw), error=words)
    f.case('bad/kernel', op, lambda b: raw.ScaleAndTranslate(
        images=b.rand((1, 2, 2, 3), FLOAT), size=[2, 2], scale=[1., 1.], translation=[0., 0.],
        kernel_type='cubic'), error='Unrecognized kernel type: cubic')


BOXES = [[0, 0, 1, 1], [.1, .2, .8, .9], [.9, .8, .1, .1], [-.2, -.3, .5, 1.4], [.5, .5, .5, .5],
         [2, 2, 3, 3]]


def crop(f):
    op = 'CropAndResize'
    for t in dtypes(op):
        for method in ('bilinear', 'nearest'):
            for shape, size in [((2, 6, 5, 3), (4, 4)), ((2, 7, 3, 1), (1, 1)), ((1, 4, 4, 9), (3, 1))]:
                f.case('%s/%s/%s_to_%s' % (name_of(t), method, text(shape), text(size)), op,
                       lambda b: raw.CropAndResize(
                           image=pixels(b, shape, t), boxes=b.feed(BOXES, FLOAT),
                           box_ind=b.index([i % shape[0] for i in range(6)]),
                           crop_size=b.index(size), method=method, extrapolation_value=-7.5),
                       EXACT if t not in (FLOAT, DOUBLE) else 1, grad=t in (FLOAT, DOUBLE))
    f.case('float/no_boxes', op, lambda b: raw.CropAndResize(
        image=b.rand((1, 2, 2, 1), FLOAT), boxes=b.feed(np.zeros((0, 4)), FLOAT),
        box_ind=b.feed(np.zeros(0), tf.int32), crop_size=[2, 2]))

    def build(b, shape=(1, 2, 2, 3), boxes=((0, 0, 1, 1),), index=(0,), size=(2, 2)):
        return raw.CropAndResize(
            image=b.rand(shape, FLOAT, static='nothing'),
            boxes=b.feed(boxes, FLOAT, static='nothing'),
            box_ind=b.feed(index, tf.int32, static='nothing'),
            crop_size=b.index(size, const=False, static='nothing'))
    for n, kw, words in [
            ('rank', dict(shape=(2, 2, 3)), 'input image must be 4-D[2,2,3]'),
            ('no_pixel', dict(shape=(1, 0, 2, 3)), 'image dimensions must be positive'),
            ('columns', dict(boxes=((0, 0, 1),)), 'boxes must have 4 columns'),
            ('index_size', dict(index=(0, 0)), 'box_index has incompatible shape'),
            ('index', dict(index=(1,)), 'box_index has values outside [0, batch_size)'),
            ('size', dict(size=(2, 2, 2)), 'crop_size must have two elements[3]'),
            ('zero', dict(size=(0, 2)), 'crop dimensions must be positive')]:
        f.case('bad/' + n, op, lambda b: build(b, **kw), error=words)
    for t in dtypes('CropAndResizeGradImage'):
        f.case(name_of(t), 'CropAndResizeGradImage', lambda b: raw.CropAndResizeGradImage(
            grads=b.rand((6, 3, 4, 2), FLOAT), boxes=b.feed(BOXES, FLOAT),
            box_ind=b.feed([1, 0, 1, 0, 0, 1], tf.int32), image_size=b.index([2, 5, 6, 2]), T=t),
            4 if t == HALF else EXACT)
    for t in dtypes('CropAndResizeGradBoxes'):
        f.case(name_of(t), 'CropAndResizeGradBoxes', lambda b: raw.CropAndResizeGradBoxes(
            grads=b.rand((6, 3, 4, 2), FLOAT), image=pixels(b, (2, 5, 6, 2), t),
            boxes=b.feed(BOXES, FLOAT), box_ind=b.feed([1, 0, 1, 0, 0, 1], tf.int32)), 1)


COLORED = [(3,), (5, 3), (4, 5, 3), (2, 3, 4, 3), (0, 3)]


def colors(f):
    for op in ('RGBToHSV', 'HSVToRGB'):
        for t in dtypes(op):
            for shape in COLORED:
                f.case('%s/%s' % (name_of(t), text(shape)), op, lambda b: getattr(raw, op)(
                    images=b.rand(shape, t, 0, 1)), EXACT,
                    grad=op == 'RGBToHSV' and t == FLOAT and len(shape) > 1 and shape[0] > 0)
            f.case('%s/edges' % name_of(t), op, lambda b: getattr(raw, op)(images=b.feed(
                [[0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [.5, .5, .2], [.2, .5, .5],
                 [.5, .2, .5], [-1, -2, -3], [2, 300, 1.5], [.1, .2, .1]], t)), EXACT)
        f.case('bad/channels', op, lambda b: getattr(raw, op)(
            images=b.rand((2, 4), FLOAT, static='nothing')),
            error='input must have 3 channels but input only has 4 channels.')
    for op, name, values in [('AdjustHue', 'delta', (0., .1, -.7, 1., 3.3, -2.)),
                             ('AdjustSaturation', 'scale', (0., .5, 1., 1.8, 10., -1.))]:
        for v in values:
            for shape in COLORED[2:4]:
                f.case('%g/%s' % (v, text(shape)), op, lambda b: getattr(raw, op)(
                    images=b.rand(shape, FLOAT, 0, 1), **{name: b.feed(v, FLOAT)}), EXACT)
        f.case('gray', op, lambda b: getattr(raw, op)(
            images=b.feed([[[0, 0, 0], [1, 1, 1], [.5, .5, .5], [1, 1, 0], [0, 1, 1], [1, 0, 1]]],
                          FLOAT), **{name: b.feed(.3, FLOAT)}), EXACT)
        f.case('bad/channels', op, lambda b: getattr(raw, op)(
            images=b.rand((2, 2, 4), FLOAT), **{name: b.feed(.3, FLOAT)}),
            error='input must have 3 channels but instead has 4 channels.')
        f.case('bad/scalar', op, lambda b: getattr(raw, op)(
            images=b.rand((2, 2, 3), FLOAT), **{name: b.feed([.3], FLOAT, static='nothing')}),
            error=name + ' must be scalar: [1]')
    for shape in [(4, 5, 3), (1, 1, 1), (2, 3, 3, 1), (7, 9, 2), (24, 23, 3), (2, 1, 3, 2, 20),
                  (0, 2, 3), (1, 2, 33)]:
        for v in (0., .4, 1., 2.5):
            f.case('%g/%s' % (v, text(shape)), 'AdjustContrastv2', lambda b: raw.AdjustContrastv2(
                images=b.rand(shape, FLOAT, 0, 255), contrast_factor=b.feed(v, FLOAT)), EXACT)
    f.case('bad/rank', 'AdjustContrastv2', lambda b: raw.AdjustContrastv2(
        images=b.rand((2, 3), FLOAT, static='nothing'), contrast_factor=b.feed(1., FLOAT)),
        error='input must be at least 3-D, got shape[2,3]')


def draw(f):
    some = [[[.1, .2, .7, .8], [0, 0, 1, 1], [-.5, .3, .5, 1.5]],
            [[.9, .9, .1, .1], [2, 2, 3, 3], [.5, .5, .5, .5]]]
    for t in (FLOAT,):
        for shape in [(2, 9, 11, 3), (2, 5, 4, 1), (2, 6, 6, 4)]:
            f.case('%s/%s' % (name_of(t), text(shape)), 'DrawBoundingBoxes',
                   lambda b: raw.DrawBoundingBoxes(images=b.rand(shape, t),
                                                   boxes=b.feed(some, FLOAT)))
            for colors in [np.zeros((0, 4)), [[1, .5, .25, .125]],
                           [[1, 2, 3, 4], [5, 6, 7, 8]]]:
                f.case('%s/%s_%d' % (name_of(t), text(shape), len(colors)), 'DrawBoundingBoxesV2',
                       lambda b: raw.DrawBoundingBoxesV2(
                           images=b.rand(shape, t), boxes=b.feed(some, FLOAT),
                           colors=b.feed(colors, FLOAT)))
    f.case('bad/depth', 'DrawBoundingBoxes', lambda b: raw.DrawBoundingBoxes(
        images=b.rand((2, 2, 2, 2), FLOAT, static='nothing'), boxes=b.feed(some, FLOAT)),
        error='Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)')
    f.case('bad/batch', 'DrawBoundingBoxes', lambda b: raw.DrawBoundingBoxes(
        images=b.rand((1, 2, 2, 3), FLOAT), boxes=b.feed(some, FLOAT)),
        error='The batch sizes should be the same')
    f.case('bad/colors', 'DrawBoundingBoxesV2', lambda b: raw.DrawBoundingBoxesV2(
        images=b.rand((2, 2, 2, 3), FLOAT), boxes=b.feed(some, FLOAT),
        colors=b.feed([[1, 2]], FLOAT, static='nothing')),
        error='colors must have equal or more channels than the image provided: [1,2]')


def random_boxes(b, n, t=FLOAT):
    corner = b.rng.uniform(0, .8, (n, 2))
    return b.feed(np.concatenate([corner, corner + b.rng.uniform(.05, .4, (n, 2))], 1), t)


def ties(b, n, t=FLOAT):
    return b.feed(b.rng.randint(0, 6, n) / 8., t)


def suppress(f):
    def args(b, n, t, version, most, iou, score=None):
        a = dict(boxes=random_boxes(b, n, t), scores=ties(b, n, t) if n % 2 else
                 b.rand((n,), t, 0, 1), max_output_size=b.index(most))
        if version > 1:
            a['iou_threshold'] = b.feed(iou, t)
        else:
            a['iou_threshold'] = iou
        if version > 2:
            a['score_threshold'] = b.feed(.2 if score is None else score, t)
        return a
    for version in (1, 2, 3, 4, 5):
        op = 'NonMaxSuppression' + ('V%d' % version if version > 1 else '')
        for t in dtypes(op, among=[HALF, FLOAT]) if version > 1 else [FLOAT]:
            for n, most, iou in [(6, 3, .5), (30, 30, .3), (31, 10, .1), (75, 100, .6), (12, 0, .5),
                                 (0, 4, .5), (40, 40, 1.), (21, 21, 0.)]:
                name = '%s/%d_%d_%g' % (name_of(t), n, most, iou)
                for pad in (False, True) if version > 3 else (False,):
                    for sigma in (0., .5) if version == 5 else (0.,):
                        def build(b):
                            a = args(b, n, t, version, most, iou)
                            if version > 3:
                                a['pad_to_max_output_size'] = pad
                            if version > 4:
                                a['soft_nms_sigma'] = b.feed(sigma, t)
                            return getattr(raw, op)(**a)
                        f.case(name + ('_pad' if pad else '') + ('_soft' if sigma else ''), op,
                               build, EXACT if not sigma else 2)

        def refused(b, boxes=(2, 4), scores=2, most=1, iou=.5):
            a = dict(boxes=b.rand(boxes, FLOAT, static='nothing'),
                     scores=b.rand((scores,), FLOAT, static='nothing'),
                     max_output_size=b.index(most, const=False),
                     iou_threshold=b.feed(iou, FLOAT) if version > 1 else iou)
            if version > 2:
                a['score_threshold'] = b.feed(0., FLOAT)
            if version > 4:
                a['soft_nms_sigma'] = b.feed(0., FLOAT)
            return getattr(raw, op)(**a)
        for n, kw, words in [('rank', dict(boxes=(4,)), 'boxes must be 2-D[4]'),
                             ('columns', dict(boxes=(2, 3)), 'boxes must have 4 columns'),
                             ('scores', dict(scores=3), 'scores has incompatible shape'),
                             ('iou', dict(iou=1.5), 'iou_threshold must be in [0, 1]')]:
            f.case('bad/' + n, op, lambda b: refused(b, **kw), error=words)
    op = 'NonMaxSuppressionV3'
    f.case('float/flat', op, lambda b: raw.NonMaxSuppressionV3(  # boxes without an area
        boxes=b.feed([[0, 0, 0, 1], [.5, .5, .5, .5], [0, 0, 1, 1]], FLOAT),
        scores=b.feed([.9, .8, .7], FLOAT), max_output_size=b.index(9),
        iou_threshold=b.feed(.5, FLOAT), score_threshold=b.feed(0., FLOAT)))
    f.case('float/turned', op, lambda b: raw.NonMaxSuppressionV3(
        boxes=b.feed([[1, 1, 0, 0], [0, 0, 1, 1], [.9, .1, .1, .9]], FLOAT),
        scores=b.feed([.7, .9, .8], FLOAT), max_output_size=b.index(3),
        iou_threshold=b.feed(.5, FLOAT), score_threshold=b.feed(-1., FLOAT)))
    op = 'NonMaxSuppressionWithOverlaps'
    for n in (5, 17, 40):
        f.case('float/%d' % n, op, lambda b: raw.NonMaxSuppressionWithOverlaps(
            overlaps=b.rand((n, n), FLOAT, 0, 1), scores=ties(b, n), max_output_size=b.index(n),
            overlap_threshold=b.feed(.8, FLOAT), score_threshold=b.feed(.1, FLOAT)))
    f.case('bad/square', op, lambda b: raw.NonMaxSuppressionWithOverlaps(
        overlaps=b.rand((2, 3), FLOAT, static='nothing'), scores=b.rand((2,), FLOAT),
        max_output_size=b.index(1), overlap_threshold=b.feed(.5, FLOAT),
        score_threshold=b.feed(0., FLOAT)), error='overlaps must be square[2,3]')
    combined(f)


def combined(f):
    op = 'CombinedNonMaxSuppression'
    for batch, n, q, classes, each, total in [(1, 6, 1, 1, 3, 5), (2, 10, 1, 3, 4, 6),
                                              (2, 12, 3, 3, 5, 40), (1, 16, 4, 4, 16, 7)]:
        for pad in (False, True):
            for clip in (True, False):
                def build(b):
                    corner = b.rng.uniform(-.2, .8, (batch, n, q, 2))
                    boxes = np.concatenate([corner, corner + b.rng.uniform(.1, .5, corner.shape)], 3)
                    return raw.CombinedNonMaxSuppression(
                        boxes=b.feed(boxes, FLOAT, static='known'),
                        scores=b.rand((batch, n, classes), FLOAT, 0, 1, static='known'),
                        max_output_size_per_class=b.index(each, const=True),
                        max_total_size=b.index(total, const=True),
                        iou_threshold=b.feed(.3, FLOAT), score_threshold=b.feed(.2, FLOAT),
                        pad_per_class=pad, clip_boxes=clip)
                f.case('%dx%dx%dx%d_%d_%d%s%s' % (batch, n, q, classes, each, total,
                                                  '_pad' * pad, '_clip' * clip), op, build)


def sample(f):
    for version in (1, 2):
        op = 'SampleDistortedBoundingBox' + ('V2' if version > 1 else '')
        for t in dtypes(op):
            for covered, ratio, area, n in [(.1, (.75, 1.33), (.05, 1.), 1),
                                            (.5, (.5, 2.), (.3, .9), 2), (0., (1., 1.), (.01, .2), 0),
                                            (1., (.9, 1.1), (.5, .6), 1)]:
                def build(b):
                    a = dict(image_size=b.feed([100, 120, 3], t),
                             bounding_boxes=b.feed(np.array([[.1, .2, .6, .9], [.3, .3, .5, .5]])[
                                 None, :n], FLOAT),
                             seed=5, seed2=b.seed % 1000, aspect_ratio_range=ratio,
                             area_range=area, use_image_if_no_bounding_boxes=n == 0)
                    if version > 1:
                        a['min_object_covered'] = b.feed(covered, FLOAT)
                    else:
                        a['min_object_covered'] = covered
                    out = getattr(raw, op)(**a)
                    for _ in range(6):
                        b.run(list(out))
                f.case('%s/%g_%d' % (name_of(t), covered, n), op, build)
        f.case('bad/none', op, lambda b: getattr(raw, op)(
            image_size=b.feed([10, 10, 3], tf.int32), bounding_boxes=b.feed(np.zeros((1, 0, 4)), FLOAT),
            **({'min_object_covered': b.feed(.1, FLOAT)} if version > 1 else {})),
            error='No bounding boxes provided as input.')
        f.case('bad/coordinate', op, lambda b: getattr(raw, op)(
            image_size=b.feed([10, 10, 3], tf.int32), bounding_boxes=b.feed([[[0, 0, 1, 1.5]]], FLOAT),
            **({'min_object_covered': b.feed(.1, FLOAT)} if version > 1 else {})),
            error='All bounding box coordinates must be in [0.0, 1.0]: 1.5')


def parts(f):
    op = 'ExtractImagePatches'
    for t in dtypes(op):
        for shape, k, stride, rate in [((2, 5, 6, 3), (2, 3), (1, 2), (1, 1)),
                                       ((1, 7, 7, 1), (3, 3), (2, 2), (2, 1)),
                                       ((1, 10, 9, 2), (1, 1), (4, 5), (1, 1)),
                                       ((1, 3, 3, 2), (3, 3), (1, 1), (1, 1)),
                                       ((0, 3, 3, 2), (2, 2), (1, 1), (1, 1))]:
            for padding in ('SAME', 'VALID'):
                f.case('%s/%s_%s_%s_%s_%s' % (name_of(t), text(shape), text(k), text(stride),
                                              text(rate), padding), op,
                       lambda b: raw.ExtractImagePatches(
                           images=b.rand(shape, t), ksizes=(1,) + k + (1,),
                           strides=(1,) + stride + (1,), rates=(1,) + rate + (1,),
                           padding=padding), EXACT, grad=t in (FLOAT, DOUBLE) and shape[0] > 0)
    f.case('bad/batch', op, lambda b: raw.ExtractImagePatches(
        images=b.rand((1, 3, 3, 1), FLOAT), ksizes=[2, 2, 2, 1], strides=[1, 1, 1, 1],
        rates=[1, 1, 1, 1], padding='VALID'), error='Only support ksizes across space.')
    op = 'ExtractVolumePatches'
    # Where sizes are not known TensorFlow infers a result of four dimensions, although it has five.
    for t in dtypes(op):
        for shape, k, stride in [((2, 4, 5, 6, 2), (2, 3, 2), (1, 2, 3)), ((1, 5, 5, 5, 1), (3, 3, 3), (2, 2, 2)),
                                 ((1, 7, 6, 5, 3), (1, 1, 1), (3, 4, 2)), ((1, 3, 3, 3, 1), (3, 3, 3), (1, 1, 1)),
                                 ((0, 3, 3, 3, 2), (2, 2, 2), (1, 1, 1))]:
            for padding in ('SAME', 'VALID'):
                f.case('%s/%s_%s_%s_%s' % (name_of(t), text(shape), text(k), text(stride), padding), op,
                       lambda b: raw.ExtractVolumePatches(
                           input=b.rand(shape, t, static='known'), ksizes=(1,) + k + (1,),
                           strides=(1,) + stride + (1,), padding=padding),
                       EXACT, grad=t in (FLOAT, DOUBLE) and shape[0] > 0)
    f.case('bad/batch', op, lambda b: raw.ExtractVolumePatches(
        input=b.rand((1, 3, 3, 3, 1), FLOAT), ksizes=[2, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1],
        padding='VALID'), error='Only support ksizes across space.')
    op = 'ExtractGlimpse'
    for size in [(3, 3), (2, 5), (8, 9), (1, 1), (0, 2)]:
        for centered in (True, False):
            for normalized in (True, False):
                f.case('%s_%d_%d' % (text(size), centered, normalized), op,
                       lambda b: raw.ExtractGlimpse(
                           input=b.rand((6, 7, 6, 2), FLOAT), size=b.index(size),
                           offsets=b.feed([[0, 0], [.5, -.4], [-1, 1], [2, 2], [3.4, 1.2], [9, -9]],
                                          FLOAT), centered=centered, normalized=normalized,
                           uniform_noise=False, noise='zero'))
    f.case('bad/noise', op, lambda b: raw.ExtractGlimpse(
        input=b.rand((1, 3, 3, 1), FLOAT), size=[2, 2], offsets=b.feed([[0, 0]], FLOAT),
        uniform_noise=False, noise='pink'),
        error='The noise could only be uniform, gaussian, or zero, gotpink')


def make(f):
    resize(f)
    resize_grads(f)
    quantized(f)
    scale(f)
    crop(f)
    colors(f)
    draw(f)
    suppress(f)
    sample(f)
    parts(f)
    old(f)


def old_op(op, inputs, **attrs):
    """A node that only graphs of old versions may have: imported from such a graph."""
    g = tf.compat.v1.GraphDef()
    g.versions.producer = 1
    node = g.node.add(name='y', op=op)
    node.attr['T'].type = inputs[0].dtype.as_datatype_enum
    for name, value in attrs.items():
        node.attr[name].i = value
    for i, t in enumerate(inputs):
        x = g.node.add(name='i%d' % i, op='Placeholder')
        x.attr['dtype'].type = t.dtype.as_datatype_enum
        node.input.append(x.name)
    return tf.import_graph_def(g, {'i%d:0' % i: t for i, t in enumerate(inputs)}, ['y:0'], name='old')[0]


def old(f):
    for t in (tf.uint8, tf.int32, FLOAT, DOUBLE):
        def crop(b, shape=(9, 11, 2), size=(4, 5)):
            y = old_op('RandomCrop', [b.rand(shape, t), b.index(size, tf.int64)], seed=3, seed2=9)
            for _ in range(4):
                b.run([y])
        f.case(name_of(t), 'RandomCrop', crop)
        f.case(name_of(t) + '/all', 'RandomCrop', lambda b: crop(b, size=(9, 11)))
        f.case(name_of(t) + '/columns', 'RandomCrop', lambda b: crop(b, size=(9, 3)))
        for shape in [(3, 4, 3), (2, 5, 5, 1)]:
            f.case('%s/%s' % (name_of(t), text(shape)), 'AdjustContrast',
                   lambda b: old_op('AdjustContrast', [pixels(b, shape, t), b.feed(1.7, FLOAT),
                                                       b.feed(-20.0, FLOAT), b.feed(90.0, FLOAT)]), 2)
    f.case('bad/size', 'RandomCrop', lambda b: old_op('RandomCrop', [
        b.rand((3, 3, 1), FLOAT, static='nothing'), b.index([4, 3], tf.int64, const=False)]),
        error='height must be >= target_height: height = 3, target_height = 4')
