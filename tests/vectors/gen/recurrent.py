"""Recurrent cells as one op: LSTMBlockCell, BlockLSTM, BlockLSTMV2, GRUBlockCell, and the ops of their
gradients.

TensorFlow 1.15 registers BlockLSTM's gradient for BlockLSTMV2, whose gates are in another order, so
that what tf.gradients gives there is wrong: BlockLSTMGradV2 has cases, the gradient of BlockLSTMV2 has
none. What BlockLSTM leaves undefined after seq_len_max is not fetched, and clipping of the state is
no part of the gradient."""

import tensorflow as tf

from gen.case import FLOAT, HALF, name_of

import tensorflow.contrib.rnn  # noqa: F401, registers the gradients of both cells

raw = tf.raw_ops
WEIGHTS = 0.5
# TensorFlow divides by the number of inputs, and by the batch, so that none can be 0.
SIZES = ((2, 3, 4), (1, 1, 1), (5, 7, 19), (33, 2, 5))


def weights(b, inputs, units, t, gates=4):
    """w and b of a cell; peepholes."""
    w = b.rand((inputs + units, gates * units), t, -WEIGHTS, WEIGHTS, static='known')
    bias = b.rand((gates * units,), t, -WEIGHTS, WEIGHTS, static='known')
    return w, bias


def lstm_inputs(b, x, units, t):
    w, bias = weights(b, x[-1], units, t)
    batch = x[-2]
    peepholes = {n: b.rand((units,), t, -1, 1, static='known') for n in ('wci', 'wcf', 'wco')}
    return dict(x=b.rand(x, t, -1, 1, static='known'), w=w, b=bias,
                cs_prev=b.rand((batch, units), t, -1, 1, static='known'),
                h_prev=b.rand((batch, units), t, -1, 1, static='known'), **peepholes)


OUTPUTS = ('i', 'cs', 'f', 'o', 'ci', 'co', 'h')


def states(b, shape, t):
    """What a forward op might have given: gates in (0, 1), states in (-1, 1)."""
    return {n: b.rand(shape, t, 0.1 if n in 'ifo' else -0.9, 0.9, static='known') for n in OUTPUTS}


def cells(f):
    for t in (FLOAT, HALF):
        tol = 4 if t == FLOAT else 2
        for batch, inputs, units in SIZES:
            for peephole in (False, True):
                name = '%s/%d_%d_%d%s' % (name_of(t), batch, inputs, units, '_peephole' * peephole)

                def cell(b, **more):
                    args = lstm_inputs(b, (batch, inputs), units, t)
                    args.update(more)
                    return raw.LSTMBlockCell(use_peephole=peephole, **args)
                f.case(name, 'LSTMBlockCell', lambda b: cell(b, cell_clip=-1.0), tol)
                f.case(name + '_clip', 'LSTMBlockCell',
                       lambda b: cell(b, forget_bias=0.25, cell_clip=0.5), tol)
                if t == FLOAT:
                    def gradient(b):
                        args = lstm_inputs(b, (batch, inputs), units, t)
                        out = raw.LSTMBlockCell(use_peephole=peephole, cell_clip=-1.0, **args)
                        xs = [v for n, v in sorted(args.items()) if n not in ('wci', 'wcf', 'wco')]
                        b.grad([out.h, out.cs], xs)
                        b.grad([out.h], xs)
                        b.run([out.h, out.cs])
                    f.case(name + '_gradient', 'LSTMBlockCell', gradient, 8)

                def grad(b):
                    args = lstm_inputs(b, (batch, inputs), units, t)
                    args.update(states(b, (batch, units), t))
                    del args['h']
                    return raw.LSTMBlockCellGrad(
                        use_peephole=peephole, cs_grad=b.rand((batch, units), t, -1, 1),
                        h_grad=b.rand((batch, units), t, -1, 1), **args)
                f.case(name, 'LSTMBlockCellGrad', grad, tol)


def blocks(f):
    for v2 in ('', 'V2'):
        op, grad_op = 'BlockLSTM' + v2, 'BlockLSTMGrad' + v2
        for t in (FLOAT, HALF):
            tol = 8 if t == FLOAT else 8
            for x, units, steps in (((3, 2, 4), 4, 3), ((4, 3, 2), 17, 3), ((4, 1, 1), 1, 0),
                                    ((1, 34, 2), 5, 1)):
                for peephole in (False, True):
                    name = '%s/%d_%d_%d_%d%s' % ((name_of(t),) + x + (units, '_peephole' * peephole))
                    clips = {} if v2 else dict(forget_bias=0.5)

                    def block(b):
                        length = b.index(steps, tf.int64)
                        out = getattr(raw, op)(seq_len_max=length, use_peephole=peephole,
                                               cell_clip=0.8, **dict(lstm_inputs(b, x, units, t), **clips))
                        b.run([out.cs, out.h] + [
                            v[:steps] for n, v in sorted(out._asdict().items())
                            if n not in ('cs', 'h')])
                    f.case(name, op, block, tol)

                    def gradient(b):
                        args = lstm_inputs(b, x, units, t)
                        out = getattr(raw, op)(seq_len_max=b.index(steps, tf.int64), cell_clip=-1.0,
                                               use_peephole=peephole, **args)
                        b.grad([out.cs, out.h], [v for _, v in sorted(args.items())])
                        b.grad([out.h], [v for _, v in sorted(args.items())])
                        b.run([out.h, out.cs])
                    if t == FLOAT and not v2:
                        f.case(name + '_gradient', op, gradient, 16)

                    def grad(b):
                        args = lstm_inputs(b, x, units, t)
                        shape = x[:2] + (units,)
                        args.update(states(b, shape, t))
                        return getattr(raw, grad_op)(
                            seq_len_max=b.index(steps, tf.int64), use_peephole=peephole,
                            cs_grad=b.rand(shape, t, -1, 1), h_grad=b.rand(shape, t, -1, 1), **args)
                    f.case(name, grad_op, grad, 2 * tol)


def gru(f):
    for batch, inputs, units in SIZES:
        def inputs_of(b):
            w_ru, b_ru = weights(b, inputs, units, FLOAT, 2)
            w_c, b_c = weights(b, inputs, units, FLOAT, 1)
            return dict(x=b.rand((batch, inputs), FLOAT, -1, 1, static='known'), w_ru=w_ru, w_c=w_c,
                        h_prev=b.rand((batch, units), FLOAT, -1, 1, static='known'), b_ru=b_ru, b_c=b_c)
        name = '%d_%d_%d' % (batch, inputs, units)
        f.case(name, 'GRUBlockCell', lambda b: raw.GRUBlockCell(**inputs_of(b)), 4)

        def gradient(b):
            args = inputs_of(b)
            out = raw.GRUBlockCell(**args)
            b.grad([out.h], [v for _, v in sorted(args.items())])
            b.run([out.h])
        f.case(name + '_gradient', 'GRUBlockCell', gradient, 8)

        def grad(b):
            args = inputs_of(b)
            for n in ('r', 'u', 'c', 'd_h'):
                args[n] = b.rand((batch, units), FLOAT, 0.1 if n in 'ru' else -0.9, 0.9, static='known')
            return raw.GRUBlockCellGrad(**args)
        f.case(name, 'GRUBlockCellGrad', grad, 4)


def bad(f):
    """Sizes that do not fit."""
    shapes = dict(x=(2, 3), cs_prev=(2, 4), h_prev=(2, 4), w=(7, 16), wci=(4,), wcf=(4,), wco=(4,), b=(16,))

    def of(b, shapes):
        return {n: b.rand(s, FLOAT, static='nothing') for n, s in sorted(shapes.items())}
    for name, shape, words in (('h_prev', (3, 4), '!= batch_size: 3 vs. 2'),
                               ('h_prev', (2, 5), '!= cell_size: 5 vs. 4'),
                               ('w', (6, 16), 'w.dim_size(0) != input_size + cell_size: 6 vs. 7'),
                               ('w', (7, 12), 'w.dim_size(1) != cell_size * 4: 12 vs. 16'),
                               ('b', (12,), 'b.dim_size(0) != cell_size * 4: 12 vs. 16')):
        case = '%s_%s' % (name, 'x'.join(map(str, shape)))
        f.case(case, 'LSTMBlockCell', lambda b: raw.LSTMBlockCell(
            **of(b, dict(shapes, **{name: shape}))), error=words)
        f.case(case, 'BlockLSTM', lambda b: raw.BlockLSTM(
            seq_len_max=b.index(1, tf.int64), **of(b, dict(shapes, x=(1, 2, 3), **{name: shape}))),
            error=words)
    for name, shape, words in (('wci', (3,), 'wci.dim_size(0) != cell_size: 3 vs. 4'),
                               ('w', (7,), 'w must be 2D'),
                               ('wco', (4, 1), 'wco must be 1D')):
        f.case('%s_%dD' % (name, len(shape)), 'BlockLSTM', lambda b: raw.BlockLSTM(
            seq_len_max=b.index(1, tf.int64), **of(b, dict(shapes, **dict([('x', (1, 2, 3)), (name, shape)])))),
            error=words)
    shapes = dict(x=(2, 3), h_prev=(2, 4), w_ru=(7, 8), w_c=(7, 4), b_ru=(8,), b_c=(4,))
    for name, shape, words in (('h_prev', (3, 4), '!= batch_size: 3 vs. 2'),
                               ('w_ru', (6, 8), 'w_ru.dim_size(0) != input_size + cell_size: 6 vs. 7'),
                               ('w_c', (7, 5), 'w_c.dim_size(1) != cell_size: 5 vs. 4'),
                               ('b_ru', (7,), 'b_ru.dim_size(0) != cell_size * 2: 7 vs. 8')):
        f.case('%s_%s' % (name, 'x'.join(map(str, shape))), 'GRUBlockCell', lambda b: raw.GRUBlockCell(
            **of(b, dict(shapes, **{name: shape}))), error=words)


def make(f):
    cells(f)
    blocks(f)
    gru(f)
    bad(f)
