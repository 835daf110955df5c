"""Makes the files in tests/io/data with TensorFlow 1.15: python make_files.py

bundle_test.c and the others here make the same tensors and must write the same bytes; they read TensorFlow's, too."""
import glob
import os
import shutil
import zlib

import numpy as np
import tensorflow as tf

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data')
os.chdir(here)
tf.compat.v1.disable_eager_execution()

NUMBERS = [np.float32, np.float64, np.int32, np.uint8, np.int16, np.int8, np.int64, np.uint16, np.float16]
WIDE = ['%d/%s' % (i * 7919 % 100003, 'x' * (100 + i % 37)) for i in range(3000)]


def save(prefix, names, values, slices=None):
    with tf.Graph().as_default(), tf.compat.v1.Session() as s:
        s.run(tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=slices or [''] * len(names),
                                tensors=[tf.constant(v) for v in values]))


def ramp(dtype, *shape):
    return (np.arange(int(np.prod(shape))) % 100).astype(dtype).reshape(shape)


def checkpoints():
    names = ['%s/v' % np.dtype(t).name for t in NUMBERS]
    values = [ramp(t, 3, 4) for t in NUMBERS]
    names += ['bool', 'complex', 'scalar', 'empty', 'strings', 'no_strings', 'empty_string', 'bfloat16']
    values += [ramp(np.int32, 5) % 2 == 1, ramp(np.complex64, 2, 2), np.int64(7), np.zeros([0, 3], np.float32),
               np.array([['', 'a'], ['b\0c', 'd' * 300]], dtype=object), np.zeros([0], dtype=object),
               np.array('', dtype=object), ramp(np.float32, 3).astype(tf.bfloat16.as_numpy_dtype)]
    save('kinds', names, values)
    save('scopes', ['layer_%d/kernel/Adam_%d' % (i // 4, i % 4) for i in range(40)],
         [ramp(np.float32, i + 1) for i in range(40)])
    # Parts of two tensors, in two bundles, then merged.
    whole = ramp(np.float32, 10, 4)
    save('shard0', ['part', 'a'], [whole[:5], ramp(np.int32, 3)], ['10 4 0,5:-', ''])
    save('shard1', ['part', 'part', 'b'], [whole[5:, :1], whole[5:, 1:], ramp(np.int32, 4)],
         ['10 4 5,5:0,1', '10 4 5,5:1,3', ''])
    for f in glob.glob('shard[01].*'):
        shutil.copy(f, 'm' + f)
    with tf.Graph().as_default(), tf.compat.v1.Session() as s:
        s.run(tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=['mshard0', 'mshard1'], destination_prefix='merged'))
    # An index of several blocks: only what it comes to is kept.
    save('wide', WIDE, [np.float32(i) for i in range(len(WIDE))])
    with open('wide.sums', 'w') as out:
        for f in ['wide.index', 'wide.data-00000-of-00001']:
            data = open(f, 'rb').read()
            out.write('%s %d %08x\n' % (f, len(data), zlib.crc32(data) & 0xffffffff))
            os.remove(f)
    # V1
    with tf.Graph().as_default(), tf.compat.v1.Session() as s:
        s.run(tf.raw_ops.SaveSlices(filename='v1', tensor_names=['part', 'ints', 's', 'half'],
                                    shapes_and_slices=['10 4 0,5:-', '', '', ''],
                                    data=[tf.constant(whole[:5]), tf.constant(ramp(np.int32, 3) - 1),
                                          tf.constant(['x', '']), tf.constant(ramp(np.float16, 2))]))


def records():
    rows = [b'', b'x', b'hello', bytes(range(256)) * 5]
    for name, kind in [('plain', ''), ('gzip', 'GZIP'), ('zlib', 'ZLIB')]:
        with tf.io.TFRecordWriter('%s.tfrecord' % name, kind) as w:
            for r in rows:
                w.write(r)


def events():
    for f in glob.glob('events.*'):
        os.remove(f)
    with tf.Graph().as_default():
        w = tf.compat.v1.summary.FileWriter('.')
        s = tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(tag='loss', simple_value=0.5)])
        w.add_summary(s, 3)
        w.add_session_log(tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START), 4)
        w.add_graph(tf.compat.v1.GraphDef(), 5)
        w.close()
    os.rename(glob.glob('events.*')[0], 'events.out.tfevents.0000000001.host')


checkpoints()
records()
events()
