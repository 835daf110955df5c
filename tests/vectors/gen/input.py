"""Readers without files, parsing of Examples and SequenceExamples, decoding of text and bytes."""

import gzip
import io
import zlib

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

from gen.case import FLOAT

tf1 = tf.compat.v1
raw = tf.raw_ops
STRING, INT64 = tf.string, tf.int64


# ---- messages ----

def feature(v):
    """Of floats, ints or bytes, by the first; None: without a kind; (kind, []): empty."""
    if v is None:
        return tf.train.Feature()
    if isinstance(v, tuple):
        return tf.train.Feature(**{v[0]: {'float_list': tf.train.FloatList, 'int64_list': tf.train.Int64List,
                                          'bytes_list': tf.train.BytesList}[v[0]](value=v[1])})
    if isinstance(v[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=v))
    if isinstance(v[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=v))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=v))


def features(d):
    return tf.train.Features(feature={k: feature(v) for k, v in d.items()})


def example(**d):
    return tf.train.Example(features=features(d)).SerializeToString(deterministic=True)


def sequence(context, **lists):
    return tf.train.SequenceExample(
        context=features(context),
        feature_lists=tf.train.FeatureLists(feature_list={
            k: tf.train.FeatureList(feature=[feature(f) for f in v]) for k, v in lists.items()
        })).SerializeToString(deterministic=True)


def unpacked(floats, ints):
    """An Example as proto2 writes it: numbers one by one, each with its tag."""
    def field(tag, b):
        return bytes([tag, len(b)]) + b
    f = b''.join(b'\x0d' + np.float32(x).tobytes() for x in floats)
    i = b''.join(b'\x08' + bytes([x]) for x in ints)
    entries = [field(10, b'a') + field(18, field(18, f)), field(10, b'b') + field(18, field(26, i))]
    return field(10, b''.join(field(10, e) for e in entries))


FULL = example(a=[1., 2., -3.5], b=[1, -2, 1 << 40], c=[b'x', b'', b'\x00\xff'])
EXAMPLES = {
    'none': [],
    'one': [FULL],
    'three': [FULL, example(a=[4., 5., 6.], b=[7], c=[b'only one']), example(a=[7., 8., 9.], z=[1.])],
    'empty': [b'', example(b=None), example(b=('int64_list', []))],
    'unpacked': [unpacked([1.5, 2.5, 3.5], [5, 6, 7])],
    'unknown_fields': [b'\x10\x07' + FULL + b'\x1a\x02hi\x2d\x01\x02\x03\x04\x31\x01\x02\x03\x04\x05\x06\x07\x08'],
    'concatenated': [FULL + example(a=[9., 9., 9.])],
}
# Of ASCII characters: the client crashes on other bytes in a message. TensorFlow takes some messages
# that are cut off for whole ones, Leat does not; they are not here.
BROKEN = [b'\x0a', b'\x0a\x02\x0a\x05', b'\x0b', example(b=[1, 2])[:-1], b'\x0a\x03\x12\x01a']


# ---- ParseExample, ParseSingleExample ----

def parse(b, messages, sparse=(), dense=(), names=()):
    """sparse: (key, dtype); dense: (key, shape, default)."""
    return [x for x in raw.ParseExample(
        serialized=b.feed(np.array(messages, dtype=object), STRING),
        names=tf.constant(list(names), STRING),
        sparse_keys=[tf.constant(k) for k, _ in sparse],
        dense_keys=[tf.constant(d[0]) for d in dense],
        dense_defaults=[d[2] for d in dense],
        sparse_types=[t for _, t in sparse], dense_shapes=[d[1] for d in dense]) for x in x]


def parse_single(b, message, sparse=(), dense=()):
    return [x for x in raw.ParseSingleExample(
        serialized=b.feed(np.array(message, dtype=object), STRING, 'known'),
        num_sparse=len(sparse), sparse_keys=[k for k, _ in sparse], dense_keys=[d[0] for d in dense],
        dense_defaults=[d[2] for d in dense],
        sparse_types=[t for _, t in sparse], dense_shapes=[d[1] for d in dense]) for x in x]


SPARSE = [('b', INT64), ('c', STRING), ('nowhere', FLOAT)]
FLOATS = np.array([.5, .25, .125], np.float32)


def dense(default=True):
    none = np.zeros((0,), np.float32)
    return [('a', [3], FLOATS if default else none)]


VARIABLE = [('a', [None, 3], np.float32(0)), ('b', [None], np.int64(-1)), ('c', [None], b'pad')]


def examples(f):
    for name, messages in sorted(EXAMPLES.items()):
        f.case('sparse/' + name, 'ParseExample', lambda b: parse(b, messages, SPARSE))
        f.case('dense/' + name, 'ParseExample', lambda b: parse(b, messages, (), dense()))
        f.case('both/' + name, 'ParseExample', lambda b: parse(b, messages, SPARSE[:1], dense()))
        f.case('variable/' + name, 'ParseExample', lambda b: parse(b, messages, (), VARIABLE))
        for i, m in enumerate(messages):
            n = '%s/%d' % (name, i)
            f.case('sparse/' + n, 'ParseSingleExample', lambda b: parse_single(b, m, SPARSE))
            f.case('dense/' + n, 'ParseSingleExample', lambda b: parse_single(b, m, (), dense()))
            f.case('variable/' + n, 'ParseSingleExample', lambda b: parse_single(b, m, (), VARIABLE))
    many = [example(a=[float(i), 0., 1.], b=list(range(i % 5)) if i % 5 else None) for i in range(100)]
    f.case('many', 'ParseExample', lambda b: parse(b, many, [('b', INT64)], dense()))
    f.case('strings', 'ParseExample', lambda b: parse(
        b, [example(s=[b'a', b'bb']), example(s=[b'', b'c'])], (), [('s', [1, 2], np.zeros((0,), object))]))
    f.case('scalar', 'ParseExample', lambda b: parse(
        b, [example(i=[5]), example()], (), [('i', [], np.int64(9))]))
    for i, m in enumerate(BROKEN):
        f.case('broken/%d' % i, 'ParseExample', lambda b: parse(b, [FULL, m], (), dense()),
               error='Could not parse example input, value: ')
        f.case('broken/%d' % i, 'ParseSingleExample', lambda b: parse_single(b, m, (), dense()),
               error='Could not parse example input, value: ')
    bad_examples(f)


def bad_examples(f):
    for n, m, sparse, d, words in [
            ('missing', example(), (), dense(False),
             'Name: two, Feature: a (data type: float) is required but could not be found.'),
            ('size', example(a=[1.]), (), dense(),
             'Name: two, Key: a, Index: 1.  Number of float values != expected.  Values size: 1 but output shape: [3]'),
            ('int_size', example(a=[1]), (), [('a', [2], np.zeros(0, np.int64))],
             'Number of int64 values != expected.  Values size: 1 but output shape: [2]'),
            ('type', example(a=[1]), (), dense(),
             "Name: two, Key: a, Index: 1.  Data types don't match. Data type: int64 but expected type: float"),
            ('sparse_type', example(b=[1.]), SPARSE, (),
             "Name: two, Key: b, Index: 1.  Data types don't match. Expected type: int64, Actual type: float"),
            ('stride', example(a=[1., 2.]), (), VARIABLE[:1],
             'Number of float values is not a multiple of stride length. Saw 2 values but output shape is: [?,3]')]:
        ok = example(a=[1., 2., 3.]) if n not in ('int_size', 'stride') else example()
        first = [ok] if n != 'int_size' else [example(a=[1, 2])]
        f.case('bad/' + n, 'ParseExample', lambda b: parse(b, first + [m], sparse, d, ['one', 'two']), error=words)
    f.case('bad/missing', 'ParseSingleExample', lambda b: parse_single(b, example(), (), dense(False)),
           error='Feature: a (data type: float) is required but could not be found.')
    f.case('bad/type', 'ParseSingleExample', lambda b: parse_single(b, example(a=[1]), (), dense()),
           error="Key: a.  Data types don't match. Data type: int64 but expected type: float")
    f.case('bad/size', 'ParseSingleExample', lambda b: parse_single(b, example(a=[1.]), (), dense()), error='Key: a.  ')
    f.case('bad/names', 'ParseExample', lambda b: parse(b, [FULL], SPARSE, (), ['x', 'y']),
           error='Expected len(names) == len(serialized), but got: 2 vs. 1')
    f.case('bad/default', 'ParseExample', lambda b: parse(b, [FULL], (), [('a', [3], np.zeros(2, np.float32))]),
           error='def_value[0].shape() == [2] is not compatible with dense_shapes_[0] == [3]')
    f.case('bad/padding', 'ParseExample', lambda b: parse(b, [FULL], (), [('a', [None, 3], np.zeros(2, np.float32))]),
           error='dense_shape[0] is a variable length shape: [?,3], therefore def_value[0] must contain a single element')


# ---- ParseSequenceExample, ParseSingleSequenceExample ----

CONTEXT_SPARSE = [('cs', STRING), ('nowhere', FLOAT)]
CONTEXT_DENSE = [('cd', [2], INT64, np.array([8, 9], np.int64))]
LIST_SPARSE = [('ls', INT64)]
LIST_DENSE = [('ld', [2], FLOAT)]
SEQUENCES = [
    sequence(dict(cs=[b'a', b'b'], cd=[1, 2]), ls=[[1], [2, 3], None], ld=[[1., 2.], [3., 4.]]),
    sequence({}, ls=[], ld=[[5., 6.]]),
    sequence(dict(cd=[3, 4], cs=('bytes_list', [])), ls=[('int64_list', []), [7, 8, 9]], ld=[]),
]


def parse_sequence(b, messages, names=(), missing=('ld',)):
    return [x for x in raw.ParseSequenceExample(
        serialized=b.feed(np.array(messages, dtype=object), STRING), debug_name=tf.constant(list(names), STRING),
        context_dense_defaults=[d[3] for d in CONTEXT_DENSE],
        feature_list_dense_missing_assumed_empty=list(missing),
        context_sparse_keys=[k for k, _ in CONTEXT_SPARSE], context_dense_keys=[d[0] for d in CONTEXT_DENSE],
        feature_list_sparse_keys=[k for k, _ in LIST_SPARSE], feature_list_dense_keys=[d[0] for d in LIST_DENSE],
        Ncontext_sparse=len(CONTEXT_SPARSE), Ncontext_dense=len(CONTEXT_DENSE),
        Nfeature_list_sparse=len(LIST_SPARSE), Nfeature_list_dense=len(LIST_DENSE),
        context_sparse_types=[t for _, t in CONTEXT_SPARSE], context_dense_shapes=[d[1] for d in CONTEXT_DENSE],
        feature_list_sparse_types=[t for _, t in LIST_SPARSE],
        feature_list_dense_types=[d[2] for d in LIST_DENSE],
        feature_list_dense_shapes=[d[1] for d in LIST_DENSE]) for x in x]


def parse_single_sequence(b, message, missing=('ld',), context_dense=CONTEXT_DENSE):
    return [x for x in raw.ParseSingleSequenceExample(
        serialized=b.feed(np.array(message, dtype=object), STRING, 'known'),
        feature_list_dense_missing_assumed_empty=tf.constant(list(missing), STRING),
        context_sparse_keys=[tf.constant(k) for k, _ in CONTEXT_SPARSE],
        context_dense_keys=[tf.constant(d[0]) for d in context_dense],
        feature_list_sparse_keys=[tf.constant(k) for k, _ in LIST_SPARSE],
        feature_list_dense_keys=[tf.constant(d[0]) for d in LIST_DENSE],
        context_dense_defaults=[d[3] for d in context_dense], debug_name=tf.constant('the name'),
        context_sparse_types=[t for _, t in CONTEXT_SPARSE], context_dense_shapes=[d[1] for d in context_dense],
        feature_list_sparse_types=[t for _, t in LIST_SPARSE],
        feature_list_dense_types=[d[2] for d in LIST_DENSE],
        feature_list_dense_shapes=[d[1] for d in LIST_DENSE]) for x in x]


def sequences(f):
    f.case('batch', 'ParseSequenceExample', lambda b: parse_sequence(b, SEQUENCES))
    f.case('missing', 'ParseSequenceExample', lambda b: parse_sequence(b, [sequence({}), SEQUENCES[0]]))
    for i, m in enumerate(SEQUENCES + [sequence({})]):
        f.case('one/%d' % i, 'ParseSequenceExample', lambda b: parse_sequence(b, [m]))
        f.case('one/%d' % i, 'ParseSingleSequenceExample', lambda b: parse_single_sequence(b, m))
    for n, m, words, words1 in [
            ('broken', b'\x0b', 'Invalid protocol message input, example id: two', 'Could not parse example input'),
            ('context_type', sequence(dict(cs=[1.])), 'Error in context feature cs in example two',
             "Name: the name, Context feature: cs.  Data types don't match. Expected type: string  Feature is: float_list"),
            ('list_type', sequence({}, ls=[[1.]]), 'Error in sequence feature ls in example two',
             "Name: the name, Feature List: ls, Index: 0.  Data types don't match. Expected type: int64"),
            ('dense_type', sequence({}, ld=[[1., 2.], [1, 2]]), 'Error in sequence feature ld in example two',
             "Name: the name, Feature list: ld, Index: 1.  Data types don't match. Expected type: float"),
            ('context_size', sequence(dict(cd=[1, 2, 3])), 'Inconsistent number of elements for feature cd: 3 vs ',
             'Name: the name, Key: cd, Index: 0.  Number of int64 values != expected.  values size: 3 but output shape: [2]'),
            ('list_size', sequence({}, ld=[[1., 2.], [1., 2., 3., 4.]]), 'Unexpected number of elements in feature ld, example two',
             'Name: the name, Key: ld, Index: 1.  Number of float values != expected.  values size: 4 but output shape: [2]')]:
        f.case('bad/' + n, 'ParseSequenceExample', lambda b: parse_sequence(b, [SEQUENCES[0], m], ['one', 'two']), error=words)
        f.case('bad/' + n, 'ParseSingleSequenceExample', lambda b: parse_single_sequence(b, m), error=words1)
    f.case('bad/missing', 'ParseSequenceExample', lambda b: parse_sequence(b, [sequence({})], ['one'], ()),
           error='Missing feature ld in example one')
    f.case('bad/missing', 'ParseSingleSequenceExample', lambda b: parse_single_sequence(b, sequence({}), ()),
           error="Name: the name, Feature list 'ld' is required but could not be found.")
    f.case('bad/context', 'ParseSingleSequenceExample', lambda b: parse_single_sequence(
        b, sequence({}), context_dense=[('cd', [2], INT64, np.zeros(0, np.int64))]),
           error="Name: the name, Context feature 'cd' is required but could not be found.")


# ---- text and bytes ----

def csv(f):
    rows = ['1,2.5,x', '-7,,"a ""quoted"", one"', '3,1e3,', '4,-0.5,  spaces  ', '\n5,1,"two\nlines"\r\n']

    def run(b, records, defaults, **attrs):
        return raw.DecodeCSV(records=b.feed(np.array(records, dtype=object), STRING), record_defaults=defaults, **attrs)
    d = [[0], [9.5], ['none']]
    f.case('rows', 'DecodeCSV', lambda b: run(b, rows[:4], [tf.constant(x) for x in d]))
    f.case('lines', 'DecodeCSV', lambda b: run(b, ['\n1,2,3\r\n'], [tf.constant(x) for x in [[1], [1.], [1]]]),
           error='Unquoted fields cannot have quotes/CRLFs inside')
    f.case('shape', 'DecodeCSV', lambda b: run(b, [rows[:2], rows[2:4]], [tf.constant(x) for x in d]))
    for t, values in [(tf.int32, ['1', '-5', ' 7 ']), (INT64, ['1', '%d' % (1 << 40), '-1']),
                      (FLOAT, ['1', 'nan', '-inf', '1e-3']), (tf.float64, ['0.1', '1e300']), (STRING, ['a', '""', '"q"'])]:
        f.case('one/' + t.name, 'DecodeCSV', lambda b: run(b, values, [tf.constant([7 if t != STRING else '7'], t)]))
    f.case('select', 'DecodeCSV', lambda b: run(b, ['a,b,c,d', 'e,f,g,h'], [tf.constant(['']), tf.constant([''])],
                                                select_cols=[1, 3]))
    f.case('last_empty', 'DecodeCSV', lambda b: run(b, ['a,', ','], [tf.constant(['x']), tf.constant(['y'])]))
    f.case('delim', 'DecodeCSV', lambda b: run(b, ['a\tb', '"q\t"\tz'], [tf.constant(['x']), tf.constant(['y'])],
                                               field_delim='\t'))
    f.case('no_quotes', 'DecodeCSV', lambda b: run(b, ['"a,b"'], [tf.constant(['x']), tf.constant(['y'])],
                                                   use_quote_delim=False))
    f.case('na', 'DecodeCSV', lambda b: run(b, ['NA', '2'], [tf.constant([5])], na_value='NA'))
    for n, record, words in [
            ('few', '1', 'Expect 2 fields but have 1 in record 0'), ('many', '1,2,3', 'Expect 2 fields but have 3 in record 0'),
            ('empty', '', 'Expect 2 fields but have 0 in record 0'), ('int', 'x,2', 'Field 0 in record 0 is not a valid int32: x'),
            ('large', '3000000000,2', 'Field 0 in record 0 is not a valid int32: 3000000000'),
            ('float', '1,2.5z', 'Field 1 in record 0 is not a valid float: 2.5z'),
            ('required', ',2', 'Field 0 is required but missing in record 0!'),
            ('quote', 'a"b,2', 'Unquoted fields cannot have quotes/CRLFs inside'),
            ('inner', '"a"b",2', 'Quote inside a string has to be escaped by another quote'),
            ('open', '"ab', 'Quoted field has to end with quote followed by delim or end')]:
        f.case('bad/' + n, 'DecodeCSV', lambda b: run(b, [record], [tf.constant([], tf.int32), tf.constant([0.])]), error=words)
    for n, attrs, words in [('cols', dict(select_cols=[0]), 'select_cols should match output size'),
                            ('order', dict(select_cols=[1, 0]), 'select_cols should be strictly increasing indices'),
                            ('negative', dict(select_cols=[-1, 0]), 'select_cols should be non-negative indices'),
                            ('delim', dict(field_delim=',,'), 'field_delim should be only 1 char')]:
        f.case('bad_attr/' + n, 'DecodeCSV', lambda b: run(b, ['1,2'], [tf.constant([1]), tf.constant([1])], **attrs), error=words)


def compressed(f):
    data = [b'', b'text', bytes(range(256)) * 20]

    def gz(d):
        out = io.BytesIO()
        with gzip.GzipFile(fileobj=out, mode='wb', mtime=0) as g:
            g.write(d)
        return out.getvalue()
    for name, fn in [('', lambda d: d), ('ZLIB', zlib.compress), ('GZIP', gz)]:
        f.case(name or 'NONE', 'DecodeCompressed', lambda b: raw.DecodeCompressed(
            bytes=b.feed(np.array([fn(d) for d in data], dtype=object), STRING), compression_type=name))
    f.case('bad/type', 'DecodeCompressed', lambda b: raw.DecodeCompressed(
        bytes=b.feed(np.array([b'x'], dtype=object), STRING), compression_type='BZIP'),
        error='Only ZLIB, GZIP or NONE are supported compressions')
    f.case('bad/data', 'DecodeCompressed', lambda b: raw.DecodeCompressed(
        bytes=b.feed(np.array([b'no zlib data'], dtype=object), STRING), compression_type='ZLIB'), error='inflate() failed with error -3')


def tensors(f):
    for t in [tf.float32, tf.float64, tf.float16, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.bool, tf.string]:
        for shape in [(), (0,), (2, 3)]:
            f.case('%s/%s' % (t.name, len(shape)), 'SerializeTensor',
                   lambda b: raw.SerializeTensor(tensor=b.rand(shape, t)))
            f.case('%s/%s' % (t.name, len(shape)), 'ParseTensor', lambda b: raw.ParseTensor(
                serialized=raw.SerializeTensor(tensor=b.rand(shape, t)), out_type=t))
    for n, v, words in [('bytes', b'bogus', "Could not parse `serialized` as TensorProto: 'bogus'"),
                        ('type', tf.make_tensor_proto(1.).SerializeToString(),
                         'Type mismatch between parsed tensor (float) and dtype (int32)')]:
        f.case('bad/' + n, 'ParseTensor', lambda b: raw.ParseTensor(
            serialized=b.feed(np.array(v, dtype=object), STRING), out_type=tf.int32), error=words)
    f.case('bad/shape', 'ParseTensor', lambda b: raw.ParseTensor(
        serialized=b.feed(np.array([b'a'], dtype=object), STRING, 'nothing'), out_type=tf.int32),
        error='Expected `serialized` to be a scalar, got shape: [1]')


def json(f):
    """The bytes are parsed again: TensorFlow writes keys in the order of the text."""
    texts = ['{}', '{"features": {"feature": {"a": {"floatList": {"value": [1, 2.5, -3]}}}}}',
             '{"features": {"feature": {"a": {"float_list": {"value": [1e3]}}, "b": {"bytes_list": {"value": ["aGk=", ""]}}}}}',
             '{"features": {"feature": {"b": {"int64List": {"value": ["5", 6, "-7"]}}}}}', '{"features": null}']
    f.case('texts', 'DecodeJSONExample', lambda b: parse_json(b, texts[:3], [('a', FLOAT), ('b', STRING)]))
    f.case('ints', 'DecodeJSONExample', lambda b: parse_json(b, texts[3:], [('b', INT64)]))
    f.case('message', 'DecodeJSONExample', lambda b: parse_json(
        b, [json_format.MessageToJson(tf.train.Example.FromString(FULL), sort_keys=True)], [('a', FLOAT), ('b', INT64), ('c', STRING)]))
    f.case('empty', 'DecodeJSONExample', lambda b: raw.DecodeJSONExample(
        json_examples=b.feed(np.zeros((2, 0), object), STRING)))
    for i, t in enumerate(['{]', '', '{"features": 5}', '{"nothing": 1}', '[]',
                           '{"features": {"feature": {"a": {"floatList": {"value": ["x"]}}}}}',
                           '{"features": {"feature": {"a": {"bytesList": {"value": ["*"]}}}}}']):
        f.case('bad/%d' % i, 'DecodeJSONExample', lambda b: raw.DecodeJSONExample(
            json_examples=b.feed(np.array([t], dtype=object), STRING)), error='Error while parsing JSON')


def parse_json(b, texts, sparse):
    binary = raw.DecodeJSONExample(json_examples=b.feed(np.array(texts, dtype=object), STRING))
    return [x for x in raw.ParseExample(
        serialized=binary, names=tf.constant([], STRING), sparse_keys=[tf.constant(k) for k, _ in sparse],
        dense_keys=[], dense_defaults=[], sparse_types=[t for _, t in sparse], dense_shapes=[]) for x in x]


# ---- readers ----

def readers(f):
    def build(b):
        names = b.feed(np.array([b'x', b'yy', b'z'], dtype=object), STRING, 'known')
        q = raw.FIFOQueueV2(component_types=[STRING], shapes=[[]])
        put, close = raw.QueueEnqueueManyV2(handle=q, components=[names]), raw.QueueCloseV2(handle=q)
        r = raw.IdentityReaderV2(name='rd')
        read = raw.ReaderReadV2(reader_handle=r, queue_handle=q)
        many = raw.ReaderReadUpToV2(reader_handle=r, queue_handle=q, num_records=tf.constant(5, INT64))
        state = [raw.ReaderNumRecordsProducedV2(reader_handle=r), raw.ReaderNumWorkUnitsCompletedV2(reader_handle=r),
                 raw.ReaderSerializeStateV2(reader_handle=r)]
        b.run(targets=[put])
        b.run(list(read))
        b.run(state)
        b.run(list(many))
        b.run(state)
        b.run(targets=[raw.ReaderResetV2(reader_handle=r)])
        b.run(state)
        b.run(list(read))
        b.run(targets=[close])
        b.run(list(read), error='is closed and has insufficient elements (requested 1, current size 0)')
    f.case('identity', 'ReaderReadV2', build)


def make(f):
    examples(f)
    sequences(f)
    csv(f)
    compressed(f)
    tensors(f)
    json(f)
    readers(f)
