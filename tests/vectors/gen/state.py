"""Variables, by reference and as resources, scatters into them, and gradient accumulators."""

import numpy as np
import tensorflow as tf

from gen.array import text
from gen.case import DOUBLE, EXACT, FLOAT, dtypes, name_of

raw = tf.raw_ops
BOTH = (False, True)


def ref_variable(b, shape, t, value=None, name='v'):
    """A VariableV2 and the op that sets it."""
    v = raw.VariableV2(shape=shape, dtype=t, name=name)
    init = raw.Assign(ref=v, value=b.rand(shape, t) if value is None else b.feed(value, t, 'known'))
    return v, init


def resource_variable(b, shape, t, value=None, name='r'):
    h = raw.VarHandleOp(dtype=t, shape=shape, shared_name=name, name=name)
    init = raw.AssignVariableOp(resource=h, value=b.rand(shape, t) if value is None else b.feed(
        value, t, 'known'))
    return h, init


def read(h, t):
    return raw.ReadVariableOp(resource=h, dtype=t)


def variables(f):
    for op in ('VariableV2', 'Variable'):
        for t in dtypes('Assign'):
            def build(b):
                v = getattr(raw, op)(shape=[2, 3], dtype=t, name='v')
                one = raw.Assign(ref=v, value=b.rand((2, 3), t))
                two = raw.Assign(ref=v, value=b.rand((2, 3), t))
                r = raw.Identity(input=v)
                b.run(targets=[one])
                b.run([v, r])
                b.run([two])
                b.run([r])
            f.case(name_of(t), op, build)

        def unset(b):
            v = getattr(raw, op)(shape=[2], dtype=FLOAT, name='weights')
            b.run([raw.Identity(input=v)], error='Attempting to use uninitialized value weights')
            b.run([raw.Neg(x=v)], error='Attempting to use uninitialized value weights')
        f.case('unset', op, unset)

        def empty(b):
            v = getattr(raw, op)(shape=[0, 3], dtype=FLOAT, name='v')
            b.run(targets=[raw.Assign(ref=v, value=b.rand((0, 3), FLOAT))])
            b.run([raw.Identity(input=v)])
        f.case('empty', op, empty)

        def grad(b):
            v = getattr(raw, op)(shape=[2, 3], dtype=FLOAT, name='v')
            init = raw.Assign(ref=v, value=b.rand((2, 3), FLOAT))
            x = b.rand((2, 3), FLOAT)
            y = raw.Mul(x=raw.Square(x=v), y=x)
            b.run(targets=[init])
            b.run([y])
            b.grad([y], [v, x])
            b.grad([y], [v], None)
        f.case('grad', op, grad)

    def shared(b):
        v, w = [raw.VariableV2(shape=[2], dtype=FLOAT, shared_name='one', name=n) for n in 'vw']
        b.run(targets=[raw.Assign(ref=v, value=b.rand((2,), FLOAT))])
        b.run([raw.Identity(input=w)])
    f.case('shared', 'VariableV2', shared)

    def initialized(b):
        v, init = ref_variable(b, (2,), FLOAT)
        q = raw.IsVariableInitialized(ref=v)
        for r in ([q], [init], [q]):
            b.run(r)
    f.case('both', 'IsVariableInitialized', initialized)


def assign(f):
    for lock in BOTH:
        tag = 'locked' if lock else 'free'
        for t in dtypes('Assign'):
            def build(b):
                v = raw.VariableV2(shape=[3], dtype=t)
                a = raw.Assign(ref=v, value=b.rand((3,), t), use_locking=lock)
                b.run([a])
                b.run([raw.Identity(input=v)])
            f.case('%s/%s' % (tag, name_of(t)), 'Assign', build)
        for op in ('AssignAdd', 'AssignSub'):
            for t in dtypes(op):
                def build(b):
                    v, init = ref_variable(b, (2, 3), t)
                    up = getattr(raw, op)(ref=v, value=b.rand((2, 3), t), use_locking=lock)
                    for r in ([init], [up], [up], [raw.Identity(input=v)]):
                        b.run(r)
                f.case('%s/%s' % (tag, name_of(t)), op, build)

            def shape(b):
                v, init = ref_variable(b, (2,), FLOAT)
                up = getattr(raw, op)(ref=v, value=b.rand((3,), FLOAT, static='nothing'),
                                      use_locking=lock)
                b.run([init])
                b.run([up], error='Parameters and update must be the same size')
            f.case(tag + '/bad/shape', op, shape)

            def unset(b):
                v = raw.VariableV2(shape=[2], dtype=FLOAT, name='v')
                b.run([getattr(raw, op)(ref=v, value=b.rand((2,), FLOAT), use_locking=lock)],
                      error='Attempting to use uninitialized value v')
            f.case(tag + '/bad/unset', op, unset)

        def other_shape(b):
            v = raw.VariableV2(shape=[2], dtype=FLOAT)
            b.run([raw.Assign(ref=v, value=b.rand((3,), FLOAT, static='nothing'),
                              use_locking=lock)],
                  error='Assign requires shapes of both tensors to match. '
                  'lhs shape= [2] rhs shape= [3]')
        f.case(tag + '/bad/shape', 'Assign', other_shape)

        def changes_shape(b):
            v = raw.VariableV2(shape=None, dtype=FLOAT)
            one = raw.Assign(ref=v, value=b.rand((2,), FLOAT), validate_shape=False,
                             use_locking=lock)
            two = raw.Assign(ref=v, value=b.rand((3, 2), FLOAT), validate_shape=False,
                             use_locking=lock)
            b.run([one])
            b.run([two])
            b.run([raw.Shape(input=v), raw.Identity(input=v)])
        f.case(tag + '/any_shape', 'Assign', changes_shape)
    def chain(b):
        v, init = ref_variable(b, (3,), FLOAT)
        one = raw.AssignAdd(ref=v, value=b.rand((3,), FLOAT))
        two = raw.AssignSub(ref=one, value=b.rand((3,), FLOAT))
        b.run([init])
        b.run([two])
        b.run([raw.Mul(x=two, y=two)])
    f.case('chain', 'AssignSub', chain)

    def ordered(b):
        v, init = ref_variable(b, (3,), FLOAT)
        old = raw.Add(x=v, y=tf.constant(0.0))
        with tf.control_dependencies([old]):
            up = raw.AssignAdd(ref=v, value=b.rand((3,), FLOAT))
        with tf.control_dependencies([up]):
            new = raw.Add(x=v, y=tf.constant(0.0))
        b.run([init])
        b.run([old, new])
    f.case('ordered', 'AssignAdd', ordered)


def resources(f):
    for t in dtypes('AssignVariableOp', 'dtype'):
        def build(b):
            h, init = resource_variable(b, (2, 3), t)
            other = raw.AssignVariableOp(resource=h, value=b.rand((2, 3), t))
            r = read(h, t)
            b.run(targets=[init])
            b.run([r])
            b.run(targets=[other])
            b.run([r])
        f.case(name_of(t), 'ReadVariableOp', build)
        f.case(name_of(t), 'AssignVariableOp', build)
        f.case(name_of(t), 'VarHandleOp', build)
    for op in ('AssignAddVariableOp', 'AssignSubVariableOp'):
        for t in dtypes(op, 'dtype'):
            def build(b):
                h, init = resource_variable(b, (2, 3), t)
                up = getattr(raw, op)(resource=h, value=b.rand((2, 3), t))
                r = read(h, t)
                b.run(targets=[init])
                b.run(targets=[up])
                b.run([r])
                b.run([r], targets=[])
                b.run(targets=[up])
                b.run([r])
            f.case(name_of(t), op, build)

        def shape(b):
            h, init = resource_variable(b, (2,), FLOAT)
            up = getattr(raw, op)(resource=h, value=b.rand((3,), FLOAT, static='nothing'))
            b.run(targets=[init])
            b.run(targets=[up], error='Cannot update variable with shape [2] using a Tensor with '
                  'shape [3], shapes must be equal.')
        f.case('bad/shape', op, shape)

    def initialized(b):
        h, init = resource_variable(b, (2,), FLOAT)
        q = raw.VarIsInitializedOp(resource=h)
        b.run([q])
        b.run(targets=[init])
        b.run([q])
    f.case('both', 'VarIsInitializedOp', initialized)

    def unset(b):
        h = raw.VarHandleOp(dtype=FLOAT, shape=[2], shared_name='weights')
        b.run([read(h, FLOAT)],
              error='Error while reading resource variable weights from Container: localhost. '
              'This could mean that the variable was uninitialized.')
    f.case('unset', 'ReadVariableOp', unset)

    def wrong_dtype(b):
        h = raw.VarHandleOp(dtype=FLOAT, shape=[2], shared_name='w')
        init = raw.AssignVariableOp(resource=h, value=b.rand((2,), FLOAT))
        again = raw.VarHandleOp(dtype=DOUBLE, shape=[2], shared_name='w')
        b.run(targets=[init])
        b.run([read(again, DOUBLE)],
              error='Trying to read variable with wrong dtype. Expected double got float')
    f.case('wrong_dtype', 'ReadVariableOp', wrong_dtype)

    def shared(b):
        one, two = [raw.VarHandleOp(dtype=FLOAT, shape=[2], shared_name='w', name=n) for n in 'ab']
        b.run(targets=[raw.AssignVariableOp(resource=one, value=b.rand((2,), FLOAT))])
        b.run([read(two, FLOAT)])
    f.case('shared', 'VarHandleOp', shared)

    def containers(b):
        hs = [raw.VarHandleOp(dtype=FLOAT, shape=[2], shared_name='w', container=c) for c in (
            'one', 'two')]
        for h in hs:
            b.run(targets=[raw.AssignVariableOp(resource=h, value=b.rand((2,), FLOAT))])
        b.run([read(h, FLOAT) for h in hs])
    f.case('containers', 'VarHandleOp', containers)

    def grad(b):
        h, init = resource_variable(b, (2, 3), FLOAT)
        x = b.rand((2, 3), FLOAT)
        y = raw.Mul(x=raw.Square(x=read(h, FLOAT)), y=x)
        b.run(targets=[init])
        b.run([y])
        b.grad([y], [h, x])
    f.case('grad', 'ReadVariableOp', grad)

    def changes_shape(b):
        h = raw.VarHandleOp(dtype=FLOAT, shape=None, shared_name='w')
        r = read(h, FLOAT)
        for s in ((2,), (3, 2)):
            b.run(targets=[raw.AssignVariableOp(resource=h, value=b.rand(s, FLOAT))])
            b.run([r])
    f.case('any_shape', 'AssignVariableOp', changes_shape)


TODO = [((4,), [2], ()), ((4,), 1, ()), ((4, 3), [3, 0], (3,)), ((4, 3), [[0, 1], [2, 3]], (3,)),
        ((4, 2, 2), [1], (2, 2)), ((4, 3), np.zeros(0), (3,)), ((4, 0), [1, 2], (0,)),
        ((5, 2), [4, 1, 3], (2,))]


def scatters(f, names, among=None):
    """ref and resource forms of Scatter<name>."""
    for name in names:
        for resource in BOTH:
            op = ('ResourceScatter' if resource else 'Scatter') + name
            attr = 'dtype' if resource else 'T'
            for t in dtypes(op, attr, among):
                for shape, idx, tail in TODO if t == FLOAT else TODO[-1:]:
                    for it in (tf.int32, tf.int64):
                        for lock in BOTH if not resource and t == FLOAT else (False,):
                            at = 'matrix' if np.ndim(idx) == 2 else np.ravel(idx).astype(
                                int).tolist()
                            n = '%s/%s/%s_%s%s' % (name_of(t), name_of(it), text(shape), at,
                                                   '_locked' if lock else '')
                            f.case(n, op, lambda b: scatter(b, op, resource, shape, idx,
                                                            np.shape(idx) + tail, t, it, lock),
                                   1 if t.is_floating and name != 'Update' else EXACT)
            twice = [1, 3, 1, 1]
            if name in ('Add', 'Sub'):
                f.case('float/twice', op, lambda b: scatter(b, op, resource, (4, 2), twice, (4, 2),
                                                            FLOAT, tf.int32, False), 2)
            f.case('float/scalar_update', op, lambda b: scatter(
                b, op, resource, (4, 2), [3, 1], (), FLOAT, tf.int32, False), 1)
            for idx, words in [([0, 4], 'indices[1] = 4 is not in [0, 4)'),
                               ([-1], 'indices[0] = -1 is not in [0, 4)')]:
                f.case('bad/%d' % idx[-1], op, lambda b: scatter(
                    b, op, resource, (4, 2), idx, (len(idx), 2), FLOAT, tf.int32, False, words))
            if not resource:  # which TensorFlow 1.15 takes, and reads the wrong elements
                f.case('bad/shape', op, lambda b: scatter(
                    b, op, resource, (4, 2), [0, 1], (2, 3), FLOAT, tf.int32, False,
                    'Must have updates.shape = indices.shape + params.shape[1:] or updates.shape '
                    '= [], got updates.shape [2,3], indices.shape [2], params.shape [4,2]'))


def scatter(b, op, resource, shape, idx, ushape, t, it, lock, words=None):
    static = 'nothing' if words else None
    lo, hi = (1, 4) if op.endswith('Div') else (None, None)
    if resource:
        h, init = resource_variable(b, shape, t)
        up = getattr(raw, op)(resource=h, indices=b.feed(idx, it),
                              updates=b.rand(ushape, t, lo, hi, static))
        b.run(targets=[init])
        b.run(targets=[up], error=words)
        if not words:
            b.run([read(h, t)])
        return
    v, init = ref_variable(b, shape, t)
    up = getattr(raw, op)(ref=v, indices=b.feed(idx, it), updates=b.rand(ushape, t, lo, hi, static),
                          use_locking=lock)
    b.run([init])
    b.run([up], error=words)
    if not words:
        b.run([raw.Identity(input=v)])


def accumulators(f):
    for resource in BOTH:
        p = 'Resource' if resource else ''
        ops = {k: getattr(raw, p + k) for k in ('ConditionalAccumulator',
                                                'AccumulatorApplyGradient',
                                                'AccumulatorNumAccumulated',
                                                'AccumulatorSetGlobalStep',
                                                'AccumulatorTakeGradient')}

        def average(b, t, kind, shape=(2, 3)):
            h = ops['ConditionalAccumulator'](dtype=t, shape=shape, reduction_type=kind)
            g = b.rand(shape, t)
            step = b.feed(0, tf.int64, 'known')
            apply = ops['AccumulatorApplyGradient'](handle=h, local_step=step, gradient=g)
            count = ops['AccumulatorNumAccumulated'](handle=h)
            take = ops['AccumulatorTakeGradient'](handle=h, num_required=tf.constant(2), dtype=t)
            set_step = ops['AccumulatorSetGlobalStep'](handle=h,
                                                       new_global_step=tf.constant(5, tf.int64))
            b.run([count])
            for _ in range(3):
                b.run(targets=[apply], feeds={g: b.data(shape, t)})
            b.run([count])
            b.run([take])            # the step is now 1
            b.run([count])
            b.run(targets=[apply])   # step 0 is stale and dropped
            b.run([count])
            b.run(targets=[set_step])
            for s in (4, 5, 6):
                b.run(targets=[apply], feeds={step: np.int64(s), g: b.data(shape, t)})
            b.run([count])
            b.run([take])
        for t in dtypes(p + 'ConditionalAccumulator', 'dtype'):
            for kind in ('MEAN', 'SUM'):
                f.case('%s/%s' % (name_of(t), kind), p + 'ConditionalAccumulator',
                       lambda b: average(b, t, kind), 2 if t in (FLOAT, DOUBLE) else 4)
        for k in sorted(ops):
            if k != 'ConditionalAccumulator':
                f.case('float', p + k, lambda b: average(b, FLOAT, 'MEAN', (4,)), 2)

        def wrong(b):
            h = ops['ConditionalAccumulator'](dtype=FLOAT, shape=[2])
            b.run(targets=[ops['AccumulatorApplyGradient'](
                handle=h, local_step=tf.constant(0, tf.int64),
                gradient=b.rand((3,), FLOAT, static='nothing'))],
                error='Shape mismatch: expected [2], got [3]')
        f.case('bad/shape', p + 'AccumulatorApplyGradient', wrong)


def make(f):
    for part in (variables, assign, resources, accumulators):
        part(f)
    scatters(f, ('Update', 'Add', 'Sub'))
