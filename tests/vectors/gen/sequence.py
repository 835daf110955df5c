"""Sequences: connectionist temporal classification, beam search, words."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib.seq2seq.ops import gen_beam_search_ops
from tensorflow.core.framework import versions_pb2

from gen.case import ANY, DOUBLE, FLOAT, name_of
from gen.state import ref_variable

raw, tf1 = tf.raw_ops, tf.compat.v1


def sparse(rows):
    """Rows of labels as the indices and values of a sparse tensor."""
    indices = [[b, i] for b, row in enumerate(rows) for i in range(len(row))]
    return (np.array(indices, np.int64).reshape(-1, 2),
            np.array([v for row in rows for v in row], np.int32))


def loss(b, rows, lengths, time, classes, t=FLOAT, x=None, spread=2,
         static=None, **attrs):
    indices, values = sparse(rows)
    lengths = np.array(lengths, np.int32)
    x = b.data((time, len(lengths), classes), t, -spread, spread) if x is None else x
    p = b.feed(x, t, static)
    y = raw.CTCLoss(inputs=p, labels_indices=b.feed(indices, tf.int64),
                    labels_values=b.feed(values, tf.int32),
                    sequence_length=b.feed(lengths, tf.int32), **attrs)
    return [y.loss, y.gradient], p


def ctc_loss(f):
    op = 'CTCLoss'

    # TensorFlow computes the exponentials of doubles in float.
    def case(name, *args, t=FLOAT, grad=True, tol=20, **attrs):
        def build(b):
            ys, p = loss(b, *args, t=t, **attrs)
            if grad:
                b.grad(ys[:1], [p])
            return ys
        f.case('%s/%s' % (name_of(t), name), op, build, tol if t == FLOAT else 3e7)
    some = [[0, 1, 2, 1], [3], [2, 2, 0]]
    for t in (FLOAT, DOUBLE):
        case('plain', some, [5, 7, 6], 7, 6, t=t)
        case('repeated', [[1, 1, 2], [0, 0, 0]], [5, 8], 8, 4, t=t)
        case('collapsed', [[1, 1, 2], [0, 0, 0]], [5, 8], 8, 4, t=t,
             preprocess_collapse_repeated=True)
        case('kept', [[1, 1, 2], [0, 0, 0]], [5, 8], 8, 4, t=t, ctc_merge_repeated=False)
        case('both', [[1, 1, 2], [0, 0, 0]], [5, 8], 8, 4, t=t, ctc_merge_repeated=False,
             preprocess_collapse_repeated=True)
        case('no_path', [[1, 1, 1]], [4], 4, 3, t=t, grad=False)
        case('longer', [[1, 2, 1, 0], [1]], [3, 0], 5, 4, t=t,
             ignore_longer_outputs_than_inputs=True)
        case('null', [[1, 3, 3], [0]], [4, 4], 4, 4, t=t)
        case('one_time', [[1], [0]], [1, 1], 1, 3, t=t)
        case('long', [[(7 * i) % 11 for i in range(40)], [3] * 20, [0]], [120, 97, 120], 120, 12,
             t=t, tol=60)  # TensorFlow's sums of large logarithms lose digits
        case('steep', some, [5, 7, 6], 7, 6, t=t, spread=30)
        case('many', [[b % 3, 1, 2] for b in range(40)], [4 + b % 5 for b in range(40)], 8, 5, t=t)

    def second(b):
        ys, p = loss(b, [[0, 1]], [4], 4, 3)
        y = tf.sqrt(ys[0])
        b.grad([y], [p])
        return [y]
    f.case('through', op, second, 20)

    def bad(name, words, rows, lengths, time=4, classes=4, x=None, **attrs):
        f.case('bad/' + name, op, lambda b: loss(b, rows, lengths, time, classes, x=x, **attrs)[0],
               error=words)
    # No times or sequences at all end TensorFlow's process.
    bad('empty', 'Labels length is zero in batch 1', [[0], [], [1]], [4, 4, 4])
    bad('beyond', 'sequence_length(1) <= 4', [[0], [1]], [4, 5])
    bad('negative_length', ANY, [[0], [1]], [4, -1])
    bad('negative_label', 'All labels must be nonnegative integers, batch: 0', [[0, -1]], [4])
    bad('after_null', 'Saw a non-null label (index >= num_classes - 1) following a null label, '
        'batch: 0 num_classes: 4', [[0, 3, 1]], [4])
    bad('short', 'Not enough time for target transition sequence (required: 3, available: 2)',
        [[0, 1, 2]], [2])
    bad('lengths', 'len(sequence_length) != batch_size.  len(sequence_length):  2 batch_size: 1',
        [[0]], [4, 4], x=np.zeros((4, 1, 4), np.float32), static='nothing')
    bad('rank', 'inputs is not a 3-Tensor', [[0]], [4], x=np.zeros((4, 1), np.float32),
        static='nothing')
    for name, indices, words in [
            ('sequence', [[0, 0], [2, 0]], 'label SparseTensor is not valid: indices[1] = [2,0] is '
             'out of bounds: need 0 <= index < [2,1]'),
            ('order', [[1, 0], [0, 0]], 'label SparseTensor is not valid: indices[1] = [0,0] is '
             'out of order'),
            ('twice', [[0, 0], [0, 0]], 'label SparseTensor is not valid: indices[1] = [0,0] is '
             'repeated')]:
        f.case('bad/' + name, op, lambda b: raw.CTCLoss(
            inputs=b.rand((4, 2, 4), FLOAT), labels_indices=b.feed(indices, tf.int64),
            labels_values=b.feed([1, 2], tf.int32),
            sequence_length=b.feed([4, 4], tf.int32)).loss, error=words)


def flat(y):
    return [t for part in y for t in (part if isinstance(part, list) else [part])]


def decoders(f):
    inputs = [('some', (6, 3, 5), [6, 4, 0]), ('one', (1, 1, 2), [1]), ('blank', (3, 2, 1), [3, 2]),
              ('many', (9, 12, 5), [b % 10 for b in range(12)]), ('long', (50, 2, 12), [50, 39]),
              ('none', (2, 0, 3), [])]
    bads = [('time', (0, 1, 3), [0], 'max_time is 0'),
            ('beyond', (4, 2, 3), [4, 5], 'sequence_length(1) <= 4'),
            ('lengths', (4, 1, 3), [4, 4], 'len(sequence_length) != batch_size.'),
            ('rank', (4, 1), [4], 'inputs is not a 3-Tensor')]

    def greedy(b, shape, lengths, t, merge, static=None):
        return list(raw.CTCGreedyDecoder(inputs=b.rand(shape, t, static=static),
                                         sequence_length=b.feed(np.array(lengths), tf.int32),
                                         merge_repeated=merge))

    def beam(b, shape, lengths, t, width, paths, merge, spread=3, static=None):
        return flat(raw.CTCBeamSearchDecoder(
            inputs=b.rand(shape, t, -spread, spread, static),
            sequence_length=b.feed(np.array(lengths), tf.int32),
            beam_width=width, top_paths=paths, merge_repeated=merge))
    for t in (FLOAT, DOUBLE):
        for name, shape, lengths in inputs:
            for merge in (False, True):
                of = '%s/%s/%s' % (name_of(t), name, 'merged' if merge else 'plain')
                f.case(of, 'CTCGreedyDecoder', lambda b: greedy(b, shape, lengths, t, merge), 4)
                for width, paths in [(1, 1), (3, 3), (20, 1), (20, 8), (200, 1)]:
                    if (paths > 1) != (name == 'long'):
                        continue  # an empty sequence has one path
                    f.case('%s/%d_%d' % (of, width, paths), 'CTCBeamSearchDecoder', lambda b: beam(
                        b, shape, lengths, t, width, paths, merge), 20 if t == FLOAT else 3e7)
                f.case(of + '/steep', 'CTCBeamSearchDecoder', lambda b: beam(
                    b, shape, lengths, t, 30, 1, merge, 40), 20 if t == FLOAT else 3e7)
    for name, shape, lengths, words in bads:
        f.case('bad/' + name, 'CTCGreedyDecoder', lambda b: greedy(
            b, shape, lengths, FLOAT, False, 'nothing'), error=words)
        f.case('bad/' + name, 'CTCBeamSearchDecoder', lambda b: beam(
            b, shape, lengths, FLOAT, 3, 1, True, static='nothing'), error=words)
    f.case('bad/paths', 'CTCBeamSearchDecoder', lambda b: beam(
        b, (4, 1, 3), [4], FLOAT, 3, 4, True), error='requested more paths than the beam width.')
    f.case('bad/leaves', 'CTCBeamSearchDecoder', lambda b: beam(
        b, (4, 2, 3), [4, 0], FLOAT, 3, 2, True),
        error='Less leaves in the beam search than requested.')


def gather_tree(f):
    op = 'GatherTree'

    def tree(b, step, parent, lengths, end=5, static=None):
        return gen_beam_search_ops.gather_tree(
            b.feed(step, tf.int32, static), b.feed(parent, tf.int32, static),
            b.feed(lengths, tf.int32, static), b.feed(end, tf.int32, static))
    for time, batch, beams in [(1, 1, 1), (4, 1, 3), (6, 3, 2), (20, 4, 5), (0, 2, 3), (3, 0, 2), (3, 2, 0)]:
        for name, lengths in [('full', [time] * batch), ('short', [b % (time + 1) for b in range(batch)]),
                              ('odd', [(-1, time + 3)[b % 2] for b in range(batch)])]:
            f.case('%d_%d_%d/%s' % (time, batch, beams, name), op, lambda b: tree(
                b, b.data((time, batch, beams), tf.int32, 0, 7),
                b.data((time, batch, beams), tf.int32, 0, max(beams - 1, 0)), lengths))
    ones = np.ones((3, 2, 2), np.int32)
    # A parent that is the number of beams itself is read by TensorFlow, from beyond the beams.
    for name, parent in [('negative', -1), ('beyond', 3)]:
        bad = np.zeros((3, 2, 2), np.int32)
        bad[2, 1, 0] = parent
        f.case('bad/' + name, op, lambda b: tree(b, ones, bad, [3, 3]),
               error='Saw invalid parent id %d at (batch, time, beam) == (1, 1, 0)' % parent)
    f.case('bad/rank', op, lambda b: tree(b, ones[0], ones[0], [3, 3], static='nothing'),
           error='step_ids must be a 3-tensor, saw shape: [2,2]')
    f.case('bad/parents', op, lambda b: tree(b, ones, ones[:2], [3, 3], static='nothing'),
           error='step_ids.shape must match parent_ids.shape.  but shapes are: [3,2,2] and [2,2,2]')
    f.case('bad/lengths', op, lambda b: tree(b, ones, ones, [3], static='nothing'),
           error='batch size dimensions step_ids.shape[1] and max_sequence_lengths.shape[0] must match.')
    f.case('bad/end', op, lambda b: tree(b, ones, ones, [3, 3], [1], static='nothing'),
           error='end_token must be a scalar, saw shape: [1]')


def neg_train(f):
    op = 'NegTrain'

    def ints(v):
        a = tf.AttrValue()
        a.list.i.extend(v)
        return a

    def train(b, shape, examples, labels, counts, samples, rate=.1, error=None, other=None):
        """Two steps. Which words are drawn has no seed, so only one word can be. The op was removed in
        version 19 of graphs."""
        tf.import_graph_def(tf1.GraphDef(versions=versions_pb2.VersionDef(producer=18)), name='')
        w_in, init_in = ref_variable(b, shape, FLOAT, name='a')
        w_out, init_out = ref_variable(b, other or shape, FLOAT, name='b')
        node = tf.get_default_graph().create_op(
            op, [w_in, w_out, b.feed(examples, tf.int32, 'nothing'), b.feed(labels, tf.int32, 'nothing'),
                 b.feed(rate, FLOAT, 'nothing')], [],
            input_types=[w_in.dtype, w_out.dtype, tf.int32, tf.int32, FLOAT],
            attrs={'vocab_count': ints(counts), 'num_negative_samples': tf.AttrValue(i=samples)})
        b.run(targets=[init_in, init_out])
        b.run(targets=[node], error=error)
        if not error:
            b.run(targets=[node])
            b.run([w_in, w_out])
    for name, size in (('small', 3), ('wide', 40)):
        f.case(name, op, lambda b: train(b, (5, size), [0, 3, 3], [1, 2, 4], [1, 0, 4, 0, 2], 0), 20)
        f.case(name + '_samples', op, lambda b: train(b, (5, size), [0, 3, 3], [1, 2, 4], [0, 0, 4, 0, 0], 3), 20)
    f.case('empty', op, lambda b: train(b, (5, 2), np.zeros(0), np.zeros(0), [1] * 5, 2), 20)
    for name, words, args in [
            ('matrix', 'Must be a matrix', dict(shape=(5,))),
            ('shapes', 'w_in.shape == w_out.shape', dict(other=(5, 3))),
            ('vector', 'Must be a vector', dict(examples=[[1]], labels=[[1]])),
            ('labels', 'examples.shape == labels.shape', dict(labels=[1])),
            ('rate', 'Must be a scalar', dict(rate=[.1])),
            ('counts', 'vocab_size mismatches: 5 vs. 4', dict(counts=[1, 2, 3, 4]))]:
        f.case('bad/' + name, op, lambda b: train(b, **dict(dict(
            shape=(5, 2), examples=[0, 1], labels=[1, 2], counts=[1] * 5, samples=1, error=words), **args)))


def make(f):
    ctc_loss(f)
    decoders(f)
    gather_tree(f)
    neg_train(f)
