"""Bytes of PNG, GIF, BMP and JPEG files, of kinds that TensorFlow cannot encode itself."""

import struct
import zlib

import numpy as np


# ---- PNG ----

def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data) & 0xffffffff)


def packed(row, depth):
    """A row of samples as the bytes of a file."""
    if depth == 16:
        return np.asarray(row, '>u2').tobytes()
    bits = ''.join(format(int(x), '0%db' % depth) for x in row)
    bits += '0' * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def png(samples, color, depth=8, interlaced=False, palette=None, trns=None, extra=b''):
    """samples: (height, width, channels); color: PNG's number of the kind of image."""
    h, w, _ = samples.shape
    raw = b''
    for y0, x0, dy, dx in (ADAM7 if interlaced else [(0, 0, 1, 1)]):
        for row in samples[y0::dy, x0::dx]:
            if row.size:
                raw += b'\0' + packed(row.ravel(), depth)
    out = b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', w, h, depth, color, 0, 0, int(interlaced)))
    if palette is not None:
        out += chunk(b'PLTE', bytes(bytearray(np.asarray(palette).ravel().tolist())))
    if trns is not None:
        out += chunk(b'tRNS', trns)
    return out + extra + chunk(b'IDAT', zlib.compress(raw)) + chunk(b'IEND', b'')


# ---- GIF ----

def lzw(indices, code_size):
    """Codes of one width: a clear code comes before the dictionary would need a longer one."""
    clear, width, bits = 1 << code_size, code_size + 1, []
    most = clear - 2
    for i, x in enumerate(indices):
        if i % most == 0:
            bits.append(clear)
        bits.append(x)
    bits.append(clear + 1)
    value = sum(int(c) << (width * i) for i, c in enumerate(bits))
    data = value.to_bytes((len(bits) * width + 7) // 8, 'little')
    blocks = b''.join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255))
    return bytes([code_size]) + blocks + b'\0'


def color_bits(colors):
    return max(1, (len(colors) - 1).bit_length())


def color_table(colors):
    n = 1 << color_bits(colors)
    return bytes(bytearray(np.asarray(colors).ravel().tolist())) + b'\0\0\0' * (n - len(colors))


def frame(indices, left=0, top=0, colors=None, interlaced=False, code_size=4):
    h, w = indices.shape
    if interlaced:
        order = [y for a, d in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(a, h, d)]
        indices = indices[order]
    flags = (0x80 | (color_bits(colors) - 1) if colors is not None else 0) | (0x40 if interlaced else 0)
    return (b',' + struct.pack('<HHHHB', left, top, w, h, flags) + (color_table(colors) if colors is not None else b'') +
            lzw(indices.ravel(), code_size))


CONTROL = b'!\xf9\x04\x09\x0a\0\x01\0'  # transparency, a delay, disposal
COMMENT = b'!\xfe\x03abc\0'


def gif(size, frames, colors=None, end=b';'):
    h, w = size
    flags = 0x80 | (color_bits(colors) - 1) if colors is not None else 0
    return (b'GIF89a' + struct.pack('<HHBBB', w, h, flags, 0, 0) + (color_table(colors) if colors is not None else b'') +
            b''.join(frames) + end)


# ---- BMP ----

def bmp(pixels, height=None, bits=None, offset=54, compression=0, palette=b''):
    """pixels: (height, width, channels) in the order of the file. height: what the header says."""
    h, w, c = pixels.shape
    row = c * w
    pad = b'\0' * (-row % 4)
    body = b''.join(r.tobytes() + pad for r in pixels)
    head = struct.pack('<2sIHHI', b'BM', offset + len(body), 0, 0, offset)
    info = struct.pack('<IiiHHIIiiII', 40, w, h if height is None else height, 1, 8 * c if bits is None else bits,
                       compression, len(body), 0, 0, 0, 0)
    return (head + info + palette).ljust(offset, b'\0') + body


# ---- JPEG, of flat blocks ----

def segment(marker, data):
    return struct.pack('>BBH', 0xff, marker, len(data) + 2) + data


def flat_jpeg(blocks, sampling=None, adobe=None, size=None, quant=8, end=b'\xff\xd9', between=b'', precision=8):
    """blocks: (rows, columns, components) of brightness, one for each unit of the image; the units of
    component i have sampling[i] = (h, v) blocks. A difference of brightness has 4 bits for its number
    of bits, all other coefficients are 0, for which there is a code of one bit."""
    rows, cols, n = blocks.shape
    sampling = sampling or [(1, 1)] * n
    hmax, vmax = max(h for h, _ in sampling), max(v for _, v in sampling)
    height, width = size or (rows * 8 * vmax, cols * 8 * hmax)
    bits, last = '', [0] * n
    for r in range(rows):
        for c in range(cols):
            for i in range(n):
                for k in range(sampling[i][0] * sampling[i][1]):
                    v = int(round((int(blocks[r, c, i]) - 128) * 8.0 / quant)) if k == 0 else last[i]
                    d, last[i] = v - last[i], v
                    m = abs(d).bit_length()
                    bits += format(m, '04b') + (format(d if d > 0 else d + (1 << m) - 1, '0%db' % m) if m else '') + '0'
    bits += '1' * (-len(bits) % 8)
    data = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8)).replace(b'\xff', b'\xff\0')
    out = b'\xff\xd8'
    if adobe is not None:
        out += segment(0xee, b'Adobe' + struct.pack('>HHHB', 100, 0, 0, adobe))
    out += segment(0xdb, b'\0' + bytes([quant]) * 64)
    out += segment(0xc0, struct.pack('>BHHB', precision, height, width, n) +
                   b''.join(bytes([i + 1, sampling[i][0] << 4 | sampling[i][1], 0]) for i in range(n)))
    out += segment(0xc4, b'\0' + bytes([0, 0, 0, 12] + [0] * 12) + bytes(range(12)))
    out += segment(0xc4, b'\x10' + bytes([1] + [0] * 15) + b'\0') + between
    out += segment(0xda, bytes([n]) + b''.join(bytes([i + 1, 0]) for i in range(n)) + b'\0\x3f\0')
    return out + data + end
