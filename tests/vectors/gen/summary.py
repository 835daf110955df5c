"""Summaries as strings, and the names of shards."""

import numpy as np
import tensorflow as tf

from gen.case import FLOAT, dtypes, name_of

raw = tf.raw_ops


def make(f):
    for t in dtypes('ScalarSummary'):
        f.case(name_of(t), 'ScalarSummary', lambda b: raw.ScalarSummary(
            tags=b.feed('loss', tf.string), values=b.feed(3, t)))
        f.case(name_of(t), 'HistogramSummary', lambda b: raw.HistogramSummary(
            tag=b.feed('h', tf.string), values=b.feed([0, 1, 1, 2, 100], t)))
    f.case('two', 'ScalarSummary', lambda b: raw.ScalarSummary(
        tags=b.feed(['a', 'b'], tf.string), values=b.feed([1, -2.5], FLOAT)))
    f.case('none', 'ScalarSummary', lambda b: raw.ScalarSummary(
        tags=b.feed([], tf.string), values=b.feed([], FLOAT)))
    f.case('bad/shape', 'ScalarSummary', lambda b: raw.ScalarSummary(
        tags=b.feed(['a'], tf.string), values=b.feed([1, 2], FLOAT)),
        error="tags and values not the same shape: [1] != [2] (tag 'a')")
    f.case('wide', 'HistogramSummary', lambda b: raw.HistogramSummary(
        tag=b.feed('h', tf.string), values=b.feed([[-1e30, -5, -1e-20], [0, 1e-13, 3e38]], FLOAT)))
    f.case('none', 'HistogramSummary', lambda b: raw.HistogramSummary(
        tag=b.feed('h', tf.string), values=b.feed([], FLOAT)))
    f.case('bad/nan', 'HistogramSummary', lambda b: raw.HistogramSummary(
        tag=b.feed('h', tf.string), values=b.feed([float('nan')], FLOAT)), error='Nan in summary histogram for: ')
    f.case('bad/inf', 'HistogramSummary', lambda b: raw.HistogramSummary(
        tag=b.feed('h', tf.string), values=b.feed([float('-inf')], FLOAT)),
        error='Infinity in summary histogram for: ')
    f.case('bad/tag', 'HistogramSummary', lambda b: raw.HistogramSummary(
        tag=b.feed(['h', 'g'], tf.string), values=b.feed([1], FLOAT)), error='tags must be scalar')

    def value(tag, v):
        return tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(tag=tag, simple_value=v)]).SerializeToString()

    f.case('two', 'MergeSummary', lambda b: raw.MergeSummary(
        inputs=[b.feed(value('a', 1), tf.string), b.feed([value('b', 2), value('', 3)], tf.string)]))
    f.case('bad/duplicate', 'MergeSummary', lambda b: raw.MergeSummary(
        inputs=[b.feed(value('a', 1), tf.string), b.feed(value('a', 2), tf.string)]),
        error='Duplicate tag a found in summary inputs')
    f.case('bad/bytes', 'MergeSummary', lambda b: raw.MergeSummary(inputs=[b.feed('x', tf.string)]),
           error='Could not parse one of the summary inputs')
    for t, v in [(FLOAT, [[1, 2]]), (tf.int64, 5), (tf.string, ['a', 'b'])]:
        f.case(name_of(t), 'TensorSummary', lambda b: raw.TensorSummary(tensor=b.feed(v, t)))
        f.case(name_of(t), 'TensorSummaryV2', lambda b: raw.TensorSummaryV2(
            tag=b.feed('t', tf.string), tensor=b.feed(v, t), serialized_summary_metadata=b.feed(
                tf.compat.v1.SummaryMetadata(display_name='n').SerializeToString(), tf.string)))
    f.case('plain', 'AudioSummaryV2', lambda b: raw.AudioSummaryV2(
        tag=b.feed('a', tf.string), tensor=b.feed([[[0, 0.5], [-1, 1], [2, -2]]], FLOAT), sample_rate=b.feed(44100, FLOAT)))
    f.case('several', 'AudioSummaryV2', lambda b: raw.AudioSummaryV2(
        tag=b.feed('a', tf.string), tensor=b.feed([[0.25], [0.1]], FLOAT), sample_rate=b.feed(0.2, FLOAT), max_outputs=1))
    f.case('bad/rate', 'AudioSummaryV2', lambda b: raw.AudioSummaryV2(
        tag=b.feed('a', tf.string), tensor=b.feed([[0.25]], FLOAT), sample_rate=b.feed(0, FLOAT)),
        error='sample_rate must be > 0')
    f.case('bad/rank', 'AudioSummaryV2', lambda b: raw.AudioSummaryV2(
        tag=b.feed('a', tf.string), tensor=b.feed([0.25], FLOAT), sample_rate=b.feed(8, FLOAT)),
        error='Tensor must be 3-D or 2-D, got: [1]')
    f.case('bad/empty', 'AudioSummaryV2', lambda b: raw.AudioSummaryV2(
        tag=b.feed('a', tf.string), tensor=b.feed([[]], FLOAT), sample_rate=b.feed(8, FLOAT)),
        error='num_frames must be positive.')
    f.case('none', 'ImageSummary', lambda b: raw.ImageSummary(
        tag=b.feed('a', tf.string), tensor=b.feed(np.zeros([0, 2, 2, 3]), FLOAT)))
    f.case('bad/depth', 'ImageSummary', lambda b: raw.ImageSummary(
        tag=b.feed('a', tf.string), tensor=b.feed(np.zeros([1, 2, 2, 2]), FLOAT)),
        error='Tensor must be 4-D with last dim 1, 3, or 4, not [1,2,2,2]')
    f.case('bad/empty', 'ImageSummary', lambda b: raw.ImageSummary(
        tag=b.feed('a', tf.string), tensor=b.feed(np.zeros([1, 0, 2, 3]), FLOAT)),
        error='input tensor must have non-zero dims. Found: [1, 0, 2, 3].')
    f.case('bad/color', 'ImageSummary', lambda b: raw.ImageSummary(
        tag=b.feed('a', tf.string), tensor=b.feed(np.zeros([1, 2, 2, 3]), FLOAT), bad_color=tf.make_tensor_proto([1], tf.uint8)),
        error='expected depth <= bad_color.size, got depth = 3, bad_color.size = 1')
    f.case('plain', 'ShardedFilename', lambda b: raw.ShardedFilename(
        basename=b.feed('/a/b', tf.string), shard=b.feed(4, tf.int32), num_shards=b.feed(100, tf.int32)))
    f.case('large', 'ShardedFilename', lambda b: raw.ShardedFilename(
        basename=b.feed('', tf.string), shard=b.feed(123456, tf.int32), num_shards=b.feed(-1, tf.int32)))
    f.case('plain', 'ShardedFilespec', lambda b: raw.ShardedFilespec(
        basename=b.feed('foo', tf.string), num_shards=b.feed(100, tf.int32)))
