"""Files of images: decoding, encoding, and files that are damaged.

All are compared bit for bit, JPEG as well: TensorFlow has another version of libjpeg-turbo than Debian 12 (2.1.5), but both
gave the same in 2,000 random comparisons: baseline, progressive, gray and subsampled files, whole, cropped, scaled, cut off
and with flipped bits; and both encode to the same bytes. So there is no tolerance. What is left out: cropping without fancy upscaling, and
recovery of files that end with 0xff, at which TensorFlow's process crashes or does not end.
"""

import numpy as np
import tensorflow as tf

from gen import image_files as files

raw = tf.raw_ops
UINT8, UINT16 = tf.uint8, tf.uint16
R = np.random.RandomState(7)
COLORS = R.randint(0, 256, (16, 3))


def run(op, **kw):
    with tf.Graph().as_default(), tf.compat.v1.Session() as s:
        return s.run(op(**kw))


def noise(*shape, **kw):
    return R.randint(0, kw.get('most', 256), shape)


def photo(h, w, c):
    """Smooth, with edges and some noise."""
    y, x = np.mgrid[:h, :w]
    v = [127 + 90 * np.sin(x / (3.0 + i) + i) * np.cos(y / (5.0 - i)) + 30 * ((x + 2 * y) % 17 < 6) +
         R.randint(0, 12, (h, w)) for i in range(c)]
    return np.clip(np.stack(v, -1), 0, 255).astype(np.uint8)


# ---- PNG ----

def pngs():
    for depth in (1, 2, 4, 8, 16):
        yield 'gray%d' % depth, files.png(noise(5, 13, 1, most=1 << depth), 0, depth)
        yield 'gray%d/trns' % depth, files.png(noise(5, 13, 1, most=1 << depth), 0, depth, trns=b'\0\1')
    for depth in (1, 2, 4, 8):
        n = min(1 << depth, 16)
        yield 'palette%d' % depth, files.png(noise(5, 13, 1, most=n), 3, depth, palette=COLORS[:n])
        yield 'palette%d/trns' % depth, files.png(noise(5, 13, 1, most=n), 3, depth, palette=COLORS[:n], trns=b'\x80\x10')
    for depth in (8, 16):
        most = 1 << depth
        yield 'gray_alpha%d' % depth, files.png(noise(4, 5, 2, most=most), 4, depth)
        yield 'rgb%d' % depth, files.png(noise(4, 5, 3, most=most), 2, depth)
        yield 'rgb%d/trns' % depth, files.png(noise(4, 5, 3, most=most), 2, depth, trns=b'\0\1\0\2\0\3')
        yield 'rgba%d' % depth, files.png(noise(4, 5, 4, most=most), 6, depth)
        yield 'interlaced%d' % depth, files.png(noise(9, 11, 3, most=most), 2, depth, True)
    yield 'interlaced4', files.png(noise(11, 9, 1, most=16), 0, 4, True)
    yield 'text', files.png(noise(2, 3, 3), 2, extra=files.chunk(b'tEXt', b'Title\0x') + files.chunk(b'gAMA', b'\0\0\xb1\x8f'))


def make_png(f):
    for name, data in pngs():
        for channels in (0, 1, 3, 4):
            for t in (UINT8, UINT16):
                f.case('%s/%d/%s' % (name, channels, t.name), 'DecodePng', lambda b: raw.DecodePng(
                    contents=b.feed(data, tf.string), channels=channels, dtype=t))
    good = files.png(noise(3, 4, 3), 2)
    bad = {'header': good[:20], 'magic': b'x' + good[1:], 'crc': good[:30] + b'\1' + good[31:], 'rows': good[:-25],
           'end': good[:-12], 'flipped': good[:45] + bytes([good[45] ^ 0x55]) + good[46:],
           'wide': b'\x89PNG\r\n\x1a\n' + files.chunk(b'IHDR', b'\0\0\xea\x60\0\0\xea\x60\x08\6\0\0\0') +
                   files.chunk(b'IDAT', b'x'),
           'palette': files.png(noise(2, 2, 1, most=4), 3, 2), 'size': good[:16] + b'\0' * 4 + good[20:]}
    words = {'header': 'Invalid PNG header, data size 20', 'magic': "Expected image (JPEG, PNG, or GIF), got unknown format "
             "starting with 'xPNG", 'wide': 'PNG size too large for int: 60000 by 60000'}
    for name in sorted(bad):
        f.case('bad/' + name, 'DecodePng', lambda b: raw.DecodePng(contents=b.feed(bad[name], tf.string)),
               error=words.get(name, 'Invalid PNG'))
    f.case('bad/empty', 'DecodePng', lambda b: raw.DecodePng(contents=b.feed(b'', tf.string)),
           error='Expected image (JPEG, PNG, or GIF), got empty file')
    f.case('bad/rank', 'DecodePng', lambda b: raw.DecodePng(contents=b.feed([good], tf.string, static='nothing')),
           error='contents must be scalar, got shape [1]')
    f.case('bad/channels', 'DecodePng', lambda b: raw.DecodePng(contents=b.feed(good, tf.string), channels=2),
           error='channels must be 0, 1, 3, or 4, got 2')
    f.case('long', 'DecodePng', lambda b: raw.DecodePng(contents=b.feed(good + b'more', tf.string)))
    for t in (UINT8, UINT16):
        for c in (1, 2, 3, 4):
            for level in (-1, 0, 9):
                f.case('%s/%d/%d' % (t.name, c, level), 'EncodePng', lambda b: raw.EncodePng(
                    image=b.feed(noise(7, 9, c, most=1 << 8 * t.size), t), compression=level))
    f.case('photo', 'EncodePng', lambda b: raw.EncodePng(image=b.feed(photo(40, 50, 3), UINT8)))
    for name, shape, words in [('none', (0, 4, 3), 'PNG encoding failed'), ('rank', (2, 2), 'image must be 3-dimensional[2,2]'),
                               ('channels', (2, 2, 5), 'image must have 1, 2, 3, or 4 channels, got 5')]:
        f.case('bad/' + name, 'EncodePng', lambda b: raw.EncodePng(image=b.feed(np.zeros(shape), UINT8, 'nothing')),
               error=words)
    f.case('bad/compression', 'EncodePng', lambda b: raw.EncodePng(image=b.feed(np.zeros((1, 1, 1)), UINT8), compression=10),
           error='compression should be in [-1,9], got 10')


# ---- GIF ----

def gifs():
    full = noise(6, 7, most=16)
    yield 'one', files.gif((6, 7), [files.frame(full)], COLORS)
    yield 'interlaced', files.gif((6, 7), [files.frame(full, interlaced=True)], COLORS)
    yield 'local', files.gif((6, 7), [files.frame(full, colors=COLORS[::-1])])
    yield 'three', files.gif((6, 7), [files.COMMENT, files.CONTROL, files.frame(full), files.CONTROL,
                                      files.frame(noise(2, 3, most=16), 1, 2), files.frame(noise(6, 7, most=16))], COLORS)
    yield 'outside', files.gif((6, 7), [files.frame(full), files.frame(noise(4, 4, most=16), 5, 4),
                                        files.frame(noise(2, 2, most=16), 300, 400)], COLORS)
    yield 'screen', files.gif((60, 70), [files.frame(full)], COLORS)
    yield 'two_colors', files.gif((3, 4), [files.frame(noise(3, 4, most=2), code_size=2)], COLORS[:2])


def make_gif(f):
    for name, data in gifs():
        f.case(name, 'DecodeGif', lambda b: raw.DecodeGif(contents=b.feed(data, tf.string)))
        frames = data.count(b',') > 1 and name in ('three', 'outside')
        for op in ('DecodePng', 'DecodeJpeg'):
            f.case('gif/' + name, op, lambda b: getattr(raw, op)(contents=b.feed(data, tf.string)),
                   error='Got 3 frames, but animated gifs' if frames else None)
    full, good = noise(6, 7, most=16), dict(gifs())['three']
    f.case('png', 'DecodeGif', lambda b: raw.DecodeGif(contents=b.feed(files.png(noise(3, 4, 3), 2), tf.string)))
    f.case('jpeg', 'DecodeGif', lambda b: raw.DecodeGif(contents=b.feed(files.flat_jpeg(noise(1, 2, 3)), tf.string)))
    bad = {'header': (good[:9], 'failed to open gif file'), 'cut': (good[:-9], 'failed to slurp gif file'),
           'end': (good[:-1], 'failed to slurp gif file'), 'none': (files.gif((6, 7), [], COLORS), 'failed to slurp gif file'),
           'colors': (files.gif((6, 7), [files.frame(full)]), 'missing color map for frame 0'),
           'index': (files.gif((6, 7), [files.frame(full | 8)], COLORS[:2]), 'outside of color map range'),
           'first': (files.gif((6, 7), [files.frame(full, 1, 0)], COLORS), 'the first frame does not fill the canvas'),
           'second': (files.gif((6, 7), [files.frame(full[:3]), files.frame(full)], COLORS),
                      'the first frame does not fill the canvas'),
           'flat': (files.gif((6, 7), [files.frame(full[:0])], COLORS), 'Invalid GIF data')}
    for name in sorted(bad):
        f.case('bad/' + name, 'DecodeGif', lambda b: raw.DecodeGif(contents=b.feed(bad[name][0], tf.string)),
               error=bad[name][1])
    for channels in (1, 4):
        f.case('gif/bad/channels%d' % channels, 'DecodePng', lambda b: raw.DecodePng(
            contents=b.feed(good, tf.string), channels=channels), error='channels must be 0 or 3 for GIF, got ')
    f.case('gif/bad/uint16', 'DecodePng', lambda b: raw.DecodePng(contents=b.feed(good, tf.string), dtype=UINT16),
           error='GIF does not support uint16 output')


# ---- BMP ----

def make_bmp(f):
    for c in (1, 3, 4):
        pixels = noise(5, 7, c).astype(np.uint8)
        for channels in (0, c):
            for name, data in [('up', files.bmp(pixels)), ('down', files.bmp(pixels, height=-5)),
                               ('offset', files.bmp(pixels, offset=100)), ('palette', files.bmp(pixels, palette=b'x' * 1024, offset=1078))]:
                f.case('%s/%d/%d' % (name, c, channels), 'DecodeBmp', lambda b: raw.DecodeBmp(
                    contents=b.feed(data, tf.string), channels=channels))
    pixels = noise(3, 2, 3).astype(np.uint8)
    good = files.bmp(pixels)
    f.case('unpadded', 'DecodeBmp', lambda b: raw.DecodeBmp(contents=b.feed(good[:-2], tf.string)))
    f.case('unsigned', 'DecodeBmp', lambda b: raw.DecodeBmp(contents=b.feed(b'xx' + good[2:], tf.string)))
    f.case('early', 'DecodeBmp', lambda b: raw.DecodeBmp(contents=b.feed(files.bmp(pixels)[:10] + b'\0' * 4 + good[14:], tf.string)))
    bad = {'short': (good[:31], 'Incomplete bmp content, requires at least 32 bytes'),
           'cut': (good[:-3], 'Incomplete bmp content, requires at least 76 bytes, got 75 bytes'),
           'offset': (good[:10] + b'\xff\xff\0\0' + good[14:], 'Incomplete bmp content'),
           'negative': (good[:10] + b'\xff\xff\xff\xff' + good[14:], 'header size must be nonnegative'),
           'width': (good[:18] + b'\0' * 4 + good[22:], 'Width must be positive'),
           'minus': (good[:18] + b'\xfe\xff\xff\xff' + good[22:], 'Width must be positive'),
           'height': (files.bmp(pixels, height=0)[:76] , 'Height must be nonzero'),
           'least': (good[:22] + b'\0\0\0\x80' + good[26:], 'Total possible pixel bytes must be less than 2^30'),
           'large': (good[:18] + b'\xff\xff\xff\x7f' + good[22:], 'Total possible pixel bytes must be less than 2^30'),
           'bits': (files.bmp(pixels, bits=16), 'Number of channels must be 1, 3 or 4, was 2'),
           'one_bit': (files.bmp(pixels, bits=1), 'Number of channels must be 1, 3 or 4, was 0'),
           'compressed': (files.bmp(pixels, compression=3), 'must')}
    for name in sorted(bad):
        f.case('bad/' + name, 'DecodeBmp', lambda b: raw.DecodeBmp(contents=b.feed(bad[name][0], tf.string)),
               error=bad[name][1])
    f.case('bad/mismatch', 'DecodeBmp', lambda b: raw.DecodeBmp(contents=b.feed(good, tf.string), channels=4),
           error='channels attribute 4 does not match bits per pixel from file 3')
    f.case('bad/channels', 'DecodeBmp', lambda b: raw.DecodeBmp(contents=b.feed(good, tf.string), channels=2),
           error='channels must be 0, 1, 3')


# ---- JPEG ----

def jpegs():
    for name, shape, kw in [
            ('rgb', (37, 45, 3), {}), ('gray', (37, 45, 1), {}), ('full_chroma', (19, 25, 3), dict(chroma_downsampling=False)),
            ('progressive', (33, 40, 3), dict(progressive=True)), ('optimized', (16, 16, 3), dict(optimize_size=True, quality=40)),
            ('coarse', (50, 30, 3), dict(quality=5)), ('fine', (24, 31, 3), dict(quality=100)), ('small', (1, 1, 3), {})]:
        yield name, run(raw.EncodeJpeg, image=photo(*shape), **kw)
    yield 'flat', files.flat_jpeg(noise(2, 3, 3))
    yield 'half', files.flat_jpeg(noise(2, 3, 3), [(2, 1), (1, 1), (1, 1)])
    yield 'quarter', files.flat_jpeg(noise(2, 2, 3), [(2, 2), (1, 1), (1, 1)], size=(29, 27))
    yield 'cmyk', files.flat_jpeg(noise(2, 2, 4))
    yield 'cmyk_adobe', files.flat_jpeg(noise(2, 2, 4), adobe=0)
    yield 'ycck', files.flat_jpeg(noise(2, 2, 4), adobe=2)
    yield 'rgb_adobe', files.flat_jpeg(noise(2, 2, 3), adobe=0)


def make_jpeg_decode(f):
    all_jpegs = list(jpegs())
    for name, data in all_jpegs:
        four = name in ('cmyk', 'cmyk_adobe', 'ycck')
        for channels in (0, 1, 3):
            f.case('%s/%d' % (name, channels), 'DecodeJpeg', lambda b: raw.DecodeJpeg(
                contents=b.feed(data, tf.string), channels=channels),
                error='Invalid JPEG data or crop window' if four and channels == 1 else None)
        for ratio in (2, 4, 8):
            f.case('%s/ratio%d' % (name, ratio), 'DecodeJpeg', lambda b: raw.DecodeJpeg(
                contents=b.feed(data, tf.string), ratio=ratio))
        f.case(name + '/plain', 'DecodeJpeg', lambda b: raw.DecodeJpeg(
            contents=b.feed(data, tf.string), fancy_upscaling=False))
        for method in ('INTEGER_FAST', 'INTEGER_ACCURATE'):
            f.case('%s/%s' % (name, method), 'DecodeJpeg', lambda b: raw.DecodeJpeg(
                contents=b.feed(data, tf.string), dct_method=method))
        for t in (tf.int32, tf.int64):
            f.case('%s/%s' % (name, t.name), 'ExtractJpegShape', lambda b: raw.ExtractJpegShape(
                contents=b.feed(data, tf.string), output_type=t))
        f.case('jpeg/' + name, 'DecodePng', lambda b: raw.DecodePng(contents=b.feed(data, tf.string)))
    of = dict(all_jpegs)
    rgb = of['rgb']
    f.case('png', 'DecodeJpeg', lambda b: raw.DecodeJpeg(contents=b.feed(files.png(noise(3, 4, 4), 6), tf.string)))
    f.case('png/4', 'DecodeJpeg', lambda b: raw.DecodeJpeg(contents=b.feed(files.png(noise(3, 4, 3), 2), tf.string), channels=4))
    large = {name: run(raw.EncodeJpeg, image=photo(64, 70, c), **kw) for name, c, kw in [
        ('rgb', 3, {}), ('gray', 1, {}), ('full_chroma', 3, dict(chroma_downsampling=False))]}
    for name in ('rgb', 'gray', 'full_chroma'):
        data = large[name]
        for part in (0.5, 0.7, 0.95):
            cut = data[:int(len(data) * part)]
            f.case('%s/cut%g' % (name, part), 'DecodeJpeg', lambda b: raw.DecodeJpeg(contents=b.feed(cut, tf.string)),
                   error='Invalid JPEG data or crop window, data size %d' % len(cut))
            # Of a recovered image, the rows that the file has: the others are made of coefficients that are out of range,
            # with which the code for x86 and that for ARM do not do the same.
            rows = max(8, int(64 * (part - 0.3)) // 8 * 8)
            f.case('%s/cut%g/recover' % (name, part), 'DecodeJpeg', lambda b: (lambda y: [y[:rows], tf.shape(y)])(raw.DecodeJpeg(
                contents=b.feed(cut, tf.string), try_recover_truncated=True)))
            f.case('%s/cut%g/some' % (name, part), 'DecodeJpeg', lambda b: raw.DecodeJpeg(
                contents=b.feed(cut, tf.string), acceptable_fraction=0.1))
    f.case('few', 'DecodeJpeg', lambda b: raw.DecodeJpeg(contents=b.feed(rgb[:len(rgb) // 2], tf.string), acceptable_fraction=0.9),
           error='Invalid JPEG data or crop window')
    f.case('no_end', 'DecodeJpeg', lambda b: raw.DecodeJpeg(contents=b.feed(rgb[:-2], tf.string)),
           error='Invalid JPEG data or crop window')
    f.case('long', 'DecodeJpeg', lambda b: raw.DecodeJpeg(contents=b.feed(rgb + b'more', tf.string)))
    flat = of['flat']
    bad = {'header': rgb[:100], 'soi': rgb[:3], 'two': files.flat_jpeg(noise(1, 1, 2)), 'five': files.flat_jpeg(noise(1, 1, 5)),
           'empty': files.flat_jpeg(noise(1, 1, 3), size=(0, 8)), 'large': files.flat_jpeg(noise(1, 1, 3), size=(60000, 60000)),
           'precision': files.flat_jpeg(noise(1, 1, 3), precision=12), 'tables': flat.replace(b'\xff\xdb', b'\xff\xfe')}
    for name in sorted(bad):
        f.case('bad/' + name, 'DecodeJpeg', lambda b: raw.DecodeJpeg(contents=b.feed(bad[name], tf.string)),
               error='Invalid JPEG data or crop window, data size %d' % len(bad[name]))
    f.case('bad/header', 'ExtractJpegShape', lambda b: raw.ExtractJpegShape(contents=b.feed(rgb[:100], tf.string)),
           error='Invalid JPEG data, size 100')
    f.case('bad/empty', 'ExtractJpegShape', lambda b: raw.ExtractJpegShape(contents=b.feed(b'', tf.string)),
           error='Invalid JPEG data, size 0')
    for name, kw, words in [('channels', dict(channels=4), 'channels must be 0, 1, or 3 for JPEG, got 4'),
                            ('ratio', dict(ratio=3), 'ratio must be 1, 2, 4, or 8, got 3'),
                            ('dct_method', dict(dct_method='FLOAT'), 'dct_method must be one of')]:
        f.case('bad/' + name, 'DecodeJpeg', lambda b: raw.DecodeJpeg(contents=b.feed(rgb, tf.string), **kw), error=words)
    f.case('jpeg/bad/uint16', 'DecodePng', lambda b: raw.DecodePng(contents=b.feed(rgb, tf.string), dtype=UINT16),
           error='JPEG does not support uint16 output')


def make_crop(f):
    of = dict(jpegs())
    windows = [(0, 0, 37, 45), (0, 0, 1, 1), (3, 5, 10, 20), (17, 0, 20, 45), (8, 16, 16, 16), (36, 44, 1, 1), (20, 7, 9, 31)]
    for name in ('rgb', 'gray', 'full_chroma', 'progressive', 'cmyk', 'half'):
        data = of[name]
        h, w, _ = run(raw.ExtractJpegShape, contents=data)
        for i, (y, x, ch, cw) in enumerate(windows):
            y, x = min(y, h - 1), min(x, w - 1)
            window = [y, x, min(ch, h - y), min(cw, w - x)]
            f.case('%s/%d' % (name, i), 'DecodeAndCropJpeg', lambda b: raw.DecodeAndCropJpeg(
                contents=b.feed(data, tf.string), crop_window=b.index(window)))
    f.case('ratio', 'DecodeAndCropJpeg', lambda b: raw.DecodeAndCropJpeg(
        contents=b.feed(of['rgb'], tf.string), crop_window=b.index([2, 3, 9, 10]), ratio=2, channels=1))
    for i, window in enumerate([[0, 0, 0, 5], [0, 0, 5, 0], [-1, 0, 5, 5], [0, -1, 5, 5], [30, 0, 8, 5], [0, 41, 5, 5],
                                [0, 0, 2147483647, 5]]):
        f.case('bad/%d' % i, 'DecodeAndCropJpeg', lambda b: raw.DecodeAndCropJpeg(
            contents=b.feed(of['rgb'], tf.string), crop_window=b.index(window)), error='Invalid JPEG data or crop window')
    f.case('bad/three', 'DecodeAndCropJpeg', lambda b: raw.DecodeAndCropJpeg(
        contents=b.feed(of['rgb'], tf.string), crop_window=b.index([1, 2, 3], const=False, static='nothing')),
        error='crop_size must have four elements [3]')


def make_jpeg_encode(f):
    for name, kw in [('default', {}), ('q0', dict(quality=0)), ('q100', dict(quality=100)), ('progressive', dict(progressive=True)),
                     ('optimized', dict(optimize_size=True)), ('full_chroma', dict(chroma_downsampling=False)),
                     ('density', dict(density_unit='cm', x_density=7, y_density=70000)), ('xmp', dict(xmp_metadata='<x/>'))]:
        for c, form in [(1, ''), (3, ''), (1, 'grayscale'), (3, 'rgb')]:
            f.case('%s/%d%s' % (name, c, form), 'EncodeJpeg', lambda b: raw.EncodeJpeg(
                image=b.feed(photo(21, 34, c), UINT8), format=form, **kw))
    for q in (-5, 0, 50, 100, 101):
        f.case('q%d' % q, 'EncodeJpegVariableQuality', lambda b: raw.EncodeJpegVariableQuality(
            images=b.feed(photo(21, 34, 3), UINT8), quality=b.feed(q, tf.int32)))
    for name, shape, kw, words in [
            ('rank', (2, 2), {}, 'image must be 3-dimensional[2,2]'), ('channels', (2, 2, 2), {}, 'image must have 1 or 3 channels, got [2,2,2]'),
            ('gray', (2, 2, 3), dict(format='grayscale'), 'format grayscale expects 1 channels, got [2,2,3]'),
            ('rgb', (2, 2, 1), dict(format='rgb'), 'format rgb expects 3 channels, got [2,2,1]'),
            ('quality', (2, 2, 3), dict(quality=101), 'quality must be in [0,100], got 101'),
            ('none', (0, 2, 3), {}, 'JPEG encoding failed'), ('wide', (1, 65536, 1), {}, 'JPEG encoding failed'),
            ('xmp', (2, 2, 3), dict(xmp_metadata='x' * 65510), 'JPEG encoding failed')]:
        f.case('bad/' + name, 'EncodeJpeg', lambda b: raw.EncodeJpeg(image=b.feed(np.zeros(shape), UINT8, 'nothing'), **kw),
               error=words)
    f.case('bad/quality', 'EncodeJpegVariableQuality', lambda b: raw.EncodeJpegVariableQuality(
        images=b.feed(photo(2, 3, 3), UINT8), quality=b.feed([1], tf.int32, 'nothing')), error='quality must be scalar: [1]')


def make(f):
    make_png(f)
    make_gif(f)
    make_bmp(f)
    make_jpeg_decode(f)
    make_crop(f)
    make_jpeg_encode(f)
