#!/usr/bin/env python
"""Writes tests/proto/data: messages as TensorFlow 1.15 writes them, in bytes and in text.

    python tests/proto/make_vectors.py        (Python 3.7 with tensorflow 1.15, protobuf 3.20)
"""
import os

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import function_pb2, tensor_pb2, types_pb2
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.python.framework import function

tf.logging.set_verbosity(tf.logging.ERROR)
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data')


def save(name, message):
    with open(os.path.join(DATA, name + '.pb'), 'wb') as f:
        f.write(message.SerializeToString(deterministic=True))
    with open(os.path.join(DATA, name + '.txt'), 'w') as f:
        f.write(text_format.MessageToString(message))


def functions():
    @function.Defun(tf.float32, tf.float32, func_name='add1')
    def add1(x, y):
        return x + y, x * y

    @function.Defun(tf.float32, func_name='sq')
    def sq(x):
        return tf.square(x)

    a = tf.placeholder(tf.float32, [None, 3], name='a')
    tf.gradients(sq(add1(a, tf.constant([[1.5, 2, 3]]))[0]), a)
    ds = tf.data.Dataset.range(10).map(lambda x: x * 2).batch(3)
    ds.make_one_shot_iterator().get_next()
    with tf.device('/job:ps/task:0'):
        tf.Variable(tf.truncated_normal([3, 4], stddev=0.1))
        tf.get_variable('rv', [2], use_resource=True)


def control_flow():
    i, x = tf.while_loop(lambda i, x: i < 10, lambda i, x: [i + 1, x * 0.1],
                         [tf.constant(0), tf.constant(1.0)])
    tf.cond(i > 3, lambda: x + 1e-7, lambda: x * 3e30)
    q = tf.FIFOQueue(10, [tf.float32, tf.int64, tf.string], [[2], [], [3]])
    q.enqueue([tf.constant([1., float('nan')]), tf.constant(7, tf.int64),
               tf.constant([b'a', b'b\x00\xff', b'"\'\\\n\t\r\x7f'])])
    tf.nn.max_pool(tf.placeholder(tf.float32, [1, None, 8, 3]), [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')
    tf.parse_single_example(tf.placeholder(tf.string, []), {
        'a': tf.FixedLenFeature([2], tf.float32, [1, 2]), 'b': tf.VarLenFeature(tf.int64)})
    for v in (float('inf'), -float('inf'), float('nan'), -0.0, 1e-45, 16777216., 123456792.):
        tf.constant(v)


def dtypes():
    """A constant of every dtype in five shapes, and filled."""
    for t in (tf.float32, tf.float64, tf.int32, tf.uint8, tf.int16, tf.int8, tf.string,
              tf.complex64, tf.int64, tf.bool, tf.bfloat16, tf.uint16, tf.complex128, tf.float16,
              tf.uint32, tf.uint64, tf.qint8, tf.quint8, tf.qint32):
        for shape in ([], [1], [3], [2, 2], [0]):
            n = int(np.prod(shape))
            if t == tf.string:
                value = np.array([b's%d' % k for k in range(n)], dtype=object)
            else:
                value = np.arange(n) % 2 if t.is_bool else np.arange(n)
                if not t.is_quantized and not t.is_unsigned and not t.is_bool:
                    value = -value
                if t.is_complex:
                    value = value + 1j * (value + 0.5)
                value = value.astype(t.as_numpy_dtype)
            try:
                tf.constant(value.reshape(shape), dtype=t, shape=shape)
            except ValueError:
                assert t.is_quantized  # numpy's records of them are not understood in all shapes
        if not t.is_quantized:
            tf.constant(b'x' if t == tf.string else t == tf.bool or 1, dtype=t, shape=[5])


def defaults():
    """Attributes, list attributes and maps, at their defaults and at their limits."""
    f = function_pb2.FunctionDef()
    f.signature.name = 'f'
    f.arg_attr[0].attr['x'].i = 0
    f.arg_attr[7].attr['y'].s = b''
    f.arg_attr[3].SetInParent()
    f.ret[''] = ''
    f.ret['a'] = 'b:0'
    f.ret['B'] = ''
    f.attr['z'].list.SetInParent()
    f.attr['e'].SetInParent()
    f.attr[u'\xe9'].f = 0.0
    f.attr['func'].func.name = 'g'
    f.attr['func'].func.attr['k'].b = False
    f.attr['t'].type = 0
    f.attr['t2'].type = 77
    l = f.attr['l'].list
    l.type.extend([1, 0, 101, 77])
    l.f.extend([0.1, 1 / 3., 1e10, 1e-10, 123456.7, 1e6, 123456789., float('inf'), float('nan'),
                -0.0, 3.4028235e38])
    l.i.extend([-1, 2**63 - 1, -2**63])
    l.b.extend([True, False])
    l.s.extend([b'', b'\x00\x01\x7f\x80\xff', b'"\'\\?\n\t\r\x0b', u'\xe9'.encode('utf-8')])
    return f


def everything():
    t = tensor_pb2.TensorProto(dtype=types_pb2.DT_DOUBLE)
    t.double_val.extend([0.1, 1 / 3., 1e300, 1e-310, 1e22, 1e15, 1e16, 123456789012345680., 5e-324,
                         -0.0, float('nan'), float('inf'), 1.0, 1e5, 1e17, 0.30000000000000004])
    t.float_val.extend([0.1, 1 / 3., 1e10, 16777217, 1e-45, 3.14159265, 1e38, 2.5, 100000.,
                        1000000., 1234567., 12345678., 0.0001, 0.00001, 9999999.])
    t.half_val.extend([1, 65535, -1])
    t.int_val.append(-5)
    t.uint32_val.append(2**32 - 1)
    t.uint64_val.append(2**64 - 1)
    t.scomplex_val.extend([1, 2])
    t.dcomplex_val.extend([1, .2])
    t.bool_val.extend([True, False])
    r = t.resource_handle_val.add(name='n', hash_code=2**63)
    r.dtypes_and_shapes.add().shape.dim.add(size=-1)
    v = t.variant_val.add(type_name='tensorflow::X', metadata=b'\x00')
    v.tensors.add().tensor_shape.unknown_rank = True
    return t


def config():
    c = config_pb2.ConfigProto(allow_soft_placement=True, inter_op_parallelism_threads=-4,
                               device_count={'CPU': 2, 'GPU': 0, '': 3})
    c.gpu_options.per_process_gpu_memory_fraction = 0.333
    c.gpu_options.experimental.virtual_devices.add().memory_limit_mb.extend([1, 2.5])
    c.graph_options.optimizer_options.opt_level = -1
    rewrite = c.graph_options.rewrite_options
    rewrite.memory_optimization = rewriter_config_pb2.RewriterConfig.HEURISTICS
    rewrite.custom_optimizers.add(name='c').parameter_map['k'].i = 1
    rewrite.optimizers.append('x')
    job = c.cluster_def.job.add(name='ps')
    job.tasks.update({0: 'h:1', -1: 'h:2', 10: 'h:3', 9: 'h:4'})
    return c


def run_metadata():
    m = config_pb2.RunMetadata()
    with tf.Graph().as_default(), tf.Session() as s:
        x = tf.random_normal([10, 10])
        s.run(tf.matmul(x, x), run_metadata=m, options=config_pb2.RunOptions(
            trace_level=config_pb2.RunOptions.FULL_TRACE, output_partition_graphs=True))
    return m


for build in (functions, control_flow, dtypes):
    with tf.Graph().as_default() as g:
        build()
        save(build.__name__, g.as_graph_def(add_shapes=build is functions))
for make in (defaults, everything, config, run_metadata):
    save(make.__name__, make())
