"""StringJoin and AsString."""

import tensorflow as tf

from gen.array import text
from gen.case import FLOAT, dtypes, name_of

raw = tf.raw_ops


def join(f):
    for shapes in [[()], [(3,)], [(3,), (3,)], [(2, 2), ()], [(), (2, 2), ()], [(), ()],
                   [(0,), (0,)], [(2, 1, 2)] * 3]:
        for sep in ('', '/', ', '):
            f.case('%s_%r' % ('_'.join(map(text, shapes)), sep), 'StringJoin',
                   lambda b: raw.StringJoin(
                inputs=[b.rand(s, tf.string) for s in shapes], separator=sep))
    f.case('bad/shape', 'StringJoin', lambda b: raw.StringJoin(
        inputs=[b.rand((2,), tf.string, static='nothing'),
                b.rand((3,), tf.string, static='nothing')]),
        error='Input shapes do not match')


def as_string(f):
    for t in dtypes('AsString'):
        if t.is_integer:
            v = [0, 1, -1, 42, t.max, t.min]
        elif t == tf.bool:
            v = [True, False]
        else:
            v = [0.0, -0.0, 1.0, -1.5, 1 / 3., 1e10, -1e-5, 123456.789, float('nan'), float('inf'),
                 float('-inf')]
        todo = [{}]
        if t != tf.bool:
            todo += [dict(width=6), dict(width=6, fill='0'), dict(width=6, fill='-'),
                     dict(width=8, fill=' '), dict(fill='+'),
                     dict(width=4, fill='+')]
        else:
            todo += [dict(width=8)]
        if t.is_floating:
            todo += [dict(precision=0), dict(precision=3), dict(scientific=True),
                     dict(scientific=True, precision=2),
                     dict(shortest=True), dict(shortest=True, precision=3),
                     dict(precision=2, width=12, fill='0'),
                     dict(precision=1, width=9, fill='-')]
        for attrs in todo:
            f.case('%s/%s' % (name_of(t), '_'.join(
                '%s=%s' % k for k in sorted(attrs.items())) or 'plain'), 'AsString',
                   lambda b: raw.AsString(input=b.feed(v, t), **attrs))
    for shape in [(), (0,), (2, 3)]:
        f.case('float/' + text(shape), 'AsString', lambda b: raw.AsString(
            input=b.rand(shape, FLOAT)))
    for n, t, attrs, words in [
            ('both', FLOAT, dict(scientific=True, shortest=True),
             'Cannot select both scientific and shortest notation'),
            ('precision', tf.int32, dict(precision=2),
             'precision not supported for datatype int32'),
            ('scientific', tf.int32, dict(scientific=True),
             'scientific and shortest format not supported for datatype int32'),
            ('fill', tf.int32, dict(width=3, fill='ab'),
             'Fill string must be one or fewer characters'),
            ('fill_kind', tf.int32, dict(width=3, fill='x'), 'Fill argument not supported')]:
        f.case('bad/' + n, 'AsString', lambda b: raw.AsString(input=b.rand((2,), t), **attrs),
               error=words)


def make(f):
    join(f)
    as_string(f)
