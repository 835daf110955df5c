"""The ops that optimizers add: Apply and SparseApply, on references and on resources."""

import numpy as np
import tensorflow as tf

from gen.array import text
from gen.case import ANY, FLOAT, dtypes, name_of
from gen.state import BOTH, read, ref_variable, resource_variable

raw = tf.raw_ops
# name: variables, inputs in the op's order, attributes and their values
RULES = {
    'GradientDescent': (['var'], ['alpha', 'delta'], []),
    'Momentum': (['var', 'accum'], ['lr', 'grad', 'momentum'], ['use_nesterov']),
    'Adam': (['var', 'm', 'v'], ['beta1_power', 'beta2_power', 'lr', 'beta1', 'beta2', 'epsilon',
                                 'grad'],
             ['use_nesterov']),
    'Adagrad': (['var', 'accum'], ['lr', 'grad'], ['update_slots']),
    'RMSProp': (['var', 'ms', 'mom'], ['lr', 'rho', 'momentum', 'epsilon', 'grad'], []),
}
VALUES = {'alpha': .1, 'lr': .1, 'momentum': .9, 'beta1_power': .9, 'beta2_power': .99, 'beta1': .9,
          'beta2': .99, 'epsilon': .01, 'rho': .8}


def apply(b, op, rule, resource, shape, t, attrs, indices=None, it=None, grad_shape=None,
          words=None):
    """Two steps of one rule; every variable is read after each."""
    variables, inputs, _ = RULES[rule]
    args, inits, reads = dict(attrs), [], []
    for name in variables:
        # squares' averages are not negative
        lo, hi = (-2, 2) if name in ('var', 'm', 'mom') or rule == 'Momentum' else (.1, 2)
        make = resource_variable if resource else ref_variable
        v, init = make(b, shape, t, b.data(shape, t, lo, hi), name=name)
        args[name] = v
        inits.append(init)
        reads.append(read(v, t) if resource else raw.Identity(input=v))
    grad = None
    for name in inputs:
        if name in ('grad', 'delta'):
            gs = (np.shape(indices) + shape[
                1:] if indices is not None else shape) if grad_shape is None else grad_shape
            grad = args[name] = b.rand(gs, t, -1, 1, None if grad_shape is None else 'nothing')
        else:
            args[name] = b.index(VALUES[name], t)
    if indices is not None:
        args['indices'] = b.feed(indices, it)
    up = getattr(raw, op)(**args)
    b.run(targets=inits)
    if words:
        b.run(targets=[up], error=words)
        return
    for _ in range(2):
        if resource:
            b.run(targets=[up], feeds={grad: b.data(grad_values_shape(grad, b), t, -1, 1)})
        else:
            b.run([up], feeds={grad: b.data(grad_values_shape(grad, b), t, -1, 1)})
        b.run(reads)


def grad_values_shape(grad, b):
    return [v for p, v in b.feeds if p is grad][0].shape


def attr_choices(names):
    """Each attribute alone, and both with locking."""
    yield 'plain', {}
    yield 'locked', {'use_locking': True}
    for n in names:
        v = n != 'update_slots'
        yield n, {n: v}
        yield n + '_locked', {n: v, 'use_locking': True}


def dense(f):
    for rule in RULES:
        for resource in BOTH:
            op = ('ResourceApply' if resource else 'Apply') + rule
            for t in dtypes(op):
                for shape in [(2, 3), (), (0,), (37,)] if t == FLOAT else [(3, 2)]:
                    for tag, attrs in attr_choices(RULES[rule][2]):
                        if t != FLOAT and tag.endswith('locked') or shape in [
                                (), (0,)] and tag != 'plain':
                            continue
                        f.case('%s/%s_%s' % (name_of(t), text(shape), tag), op,
                               lambda b: apply(b, op, rule, resource, shape, t, attrs), 4)
            last = 'delta' if rule == 'GradientDescent' else 'grad'
            f.case('bad/shape', op, lambda b: apply(
                b, op, rule, resource, (2,), FLOAT, {}, grad_shape=(3,),
                words='var and %s do not have the same shape[2] [3]' % last))

            def unset(b):
                args = {'grad': b.rand((2,), FLOAT), 'delta': b.rand((2,), FLOAT)}
                for n in RULES[rule][0]:
                    args[n] = (raw.VarHandleOp(dtype=FLOAT, shape=[2], shared_name=n,
                                               name=n) if resource else
                               raw.VariableV2(shape=[2], dtype=FLOAT, name=n))
                for n in RULES[rule][1]:
                    if n not in args:
                        args[n] = tf.constant(VALUES[n], FLOAT)
                args = {k: v for k, v in args.items() if k in RULES[rule][0] + RULES[rule][1]}
                b.run(targets=[getattr(raw, op)(**args)],
                      error=ANY if resource else 'Attempting to use uninitialized value')
            f.case('bad/unset', op, unset)


def sparse(f):
    for rule in ('Momentum', 'Adagrad', 'RMSProp'):
        for resource in BOTH:
            op = ('ResourceSparseApply' if resource else 'SparseApply') + rule
            for t in dtypes(op):
                for it in (tf.int32, tf.int64):
                    for shape, idx in [((5, 3), [3, 0]), ((5, 3), np.zeros(0)), ((4,), [2]),
                                       ((5, 2, 2), [4, 1, 0]), ((4, 1), [3, 0])] if (
                            t == FLOAT) else [((5, 3), [3, 0])]:
                        for tag, attrs in attr_choices(RULES[rule][2]):
                            if (t, it) != (FLOAT, tf.int32) and tag.endswith('locked') or shape != (
                                    5, 3) and tag != 'plain':
                                continue
                            f.case('%s/%s/%s_%s_%s' % (name_of(t), name_of(it), text(shape),
                                                       np.asarray(idx, int).tolist(), tag),
                                   op, lambda b: apply(b, op, rule, resource, shape, t, attrs, idx,
                                                       it), 4)
            if rule != 'RMSProp':
                f.case('float/twice', op, lambda b: apply(
                    b, op, rule, resource, (4, 2), FLOAT, {}, [1, 3, 1], tf.int32), 4)
            for idx in ([0, 4], [-1]):
                f.case('bad/%d' % idx[-1], op, lambda b: apply(
                    b, op, rule, resource, (4, 2), FLOAT, {}, idx, tf.int32,
                    words='Index %d at offset %d in indices is out of range' % (
                        idx[-1], len(idx) - 1)))
            f.case('bad/shape', op, lambda b: apply(
                b, op, rule, resource, (4, 2), FLOAT, {}, [0, 1], tf.int32, grad_shape=(2, 3),
                words='var and grad must match in dimension 1'))


def make(f):
    dense(f)
    sparse(f)
