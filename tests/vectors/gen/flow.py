"""Control flow: switches and merges, cond, while_loop, loops written by hand, asserts, functions;
with gradients through all of them."""

import tensorflow as tf
from tensorflow.python.framework import function

from gen.case import ALL, DOUBLE, FLOAT, HALF, name_of, tf1
from gen.state import ref_variable, resource_variable, read

raw = tf.raw_ops
BOTH = (False, True)


def switches(f):
    for t in ALL:
        for taken in BOTH:
            def build(b):
                no, yes = raw.Switch(data=b.rand((2, 2), t), pred=b.feed(taken, tf.bool))
                out, index = raw.Merge(inputs=[raw.Identity(input=no), raw.Identity(input=yes)])
                return [out, index, yes if taken else no]
            f.case('%s/%s' % (name_of(t), taken), 'Switch', build)
            f.case('%s/%s' % (name_of(t), taken), 'Merge', build)
    for taken in BOTH:
        def dead(b):
            no, yes = raw.Switch(data=b.rand((2,), FLOAT), pred=b.feed(taken, tf.bool))
            b.run([raw.Neg(x=no if taken else yes)], error='does not have value')
        f.case('dead/%s' % taken, 'Switch', dead)

        def control(b):  # a control edge from what is dead makes dead, too
            x, y, z = [b.rand((2,), FLOAT) for _ in range(3)]
            no, yes = raw.Switch(data=x, pred=b.feed(taken, tf.bool))
            with tf.control_dependencies([raw.Identity(input=yes)]):
                one = raw.Neg(x=y)
            with tf.control_dependencies([raw.Identity(input=no)]):
                two = raw.Square(x=z)
            return raw.Merge(inputs=[one, two])
        f.case('control/%s' % taken, 'Merge', control)

        def three(b):
            p, q = b.feed(taken, tf.bool), b.feed(not taken, tf.bool)
            x = b.rand((2,), FLOAT)
            no, yes = raw.Switch(data=x, pred=p)
            inner_no, inner_yes = raw.Switch(data=yes, pred=q)
            return raw.Merge(inputs=[raw.Neg(x=no), raw.Square(x=inner_no), raw.Exp(x=inner_yes)])
        f.case('three/%s' % taken, 'Merge', three, 1)

        def unequal(b):
            p = b.feed(taken, tf.bool)
            x, y = b.rand((2,), FLOAT), b.rand((3, 1), FLOAT)
            return raw.Merge(inputs=[raw.Switch(data=x, pred=p)[0], raw.Switch(data=y, pred=p)[1]])
        f.case('unequal/%s' % taken, 'Merge', unequal)

        def trigger(b):
            x, y = b.rand((2,), FLOAT), b.rand((2,), FLOAT)
            no, yes = raw.Switch(data=x, pred=b.feed(taken, tf.bool))
            with tf.control_dependencies([raw.Neg(x=yes)]):
                t = raw.ControlTrigger()
            with tf.control_dependencies([t]):  # lives although an input of it is dead
                return raw.Neg(x=y)
        f.case('%s' % taken, 'ControlTrigger', trigger)

        def ref_switch(b):
            v, init = ref_variable(b, (3,), FLOAT)
            no, yes = raw.RefSwitch(data=v, pred=b.feed(taken, tf.bool))
            one = raw.AssignAdd(ref=no, value=b.rand((3,), FLOAT))
            two = raw.AssignSub(ref=yes, value=b.rand((3,), FLOAT))
            out, index = raw.RefMerge(inputs=[one, two])
            b.run([init])
            b.run([out, index])
            b.run([raw.Identity(input=v)])
        f.case('%s' % taken, 'RefSwitch', ref_switch)
        f.case('%s' % taken, 'RefMerge', ref_switch)

    def ref_identity(b):
        v, init = ref_variable(b, (3,), FLOAT)
        up = raw.AssignAdd(ref=raw.RefIdentity(input=v), value=b.rand((3,), FLOAT))
        b.run([init])
        b.run([up])
        b.run([raw.Identity(input=v)])
    f.case('update', 'RefIdentity', ref_identity)

    def no_op(b):
        v, init = ref_variable(b, (3,), FLOAT)
        with tf.control_dependencies([raw.AssignAdd(ref=v, value=b.rand((3,), FLOAT))]):
            n = raw.NoOp()
        b.run([init])
        b.run(targets=[n])
        b.run([raw.Identity(input=v)], targets=[])
    f.case('group', 'NoOp', no_op)
    f.case('alone', 'NoOp', lambda b: b.run(targets=[raw.NoOp()]))


# ---- cond ----

def conds(f):
    for taken in BOTH:
        def simple(b):
            x, y = b.rand((2, 3), FLOAT), b.rand((3,), FLOAT)
            return tf.cond(b.feed(taken, tf.bool), lambda: x * y, lambda: x - tf.exp(y))

        def one_side(b):  # y is used in one branch only
            x, y = b.rand((2, 3), FLOAT), b.rand((3,), FLOAT)
            return tf.cond(b.feed(taken, tf.bool), lambda: x * y, lambda: tf.square(x))

        def several(b):
            x, y = b.rand((2,), FLOAT), b.rand((2,), FLOAT)
            return tf.cond(b.feed(taken, tf.bool), lambda: [x * y, x, tf.constant(1)],
                           lambda: [y, tf.square(x) + y, tf.constant(2)])

        def nested(b):
            p, q = b.feed(taken, tf.bool), b.feed(True, tf.bool)
            x, y = b.rand((2,), FLOAT), b.rand((2,), FLOAT)
            return tf.cond(p, lambda: tf.cond(q, lambda: x * x * y, lambda: x + y) * 3.,
                           lambda: tf.cond(q, lambda: tf.sin(x), lambda: y) - y)

        def from_data(b):
            x, y = b.rand((), FLOAT), b.rand((), FLOAT)
            return tf.cond(tf.less(x, y), lambda: x * x + y, lambda: y * y + x)

        def gathers(b):
            x = b.rand((5, 2), FLOAT)
            return tf.cond(b.feed(taken, tf.bool), lambda: tf.gather(x, [0, 2, 2]),
                           lambda: x[1:4] * 2.)

        def shared(b):  # used inside and outside
            x = b.rand((2,), FLOAT)
            return x * tf.cond(b.feed(taken, tf.bool), lambda: tf.square(x), lambda: x * 4.)
        for build in (simple, one_side, several, nested, from_data, gathers, shared):
            f.case('cond/%s/%s' % (build.__name__, taken), 'Merge', build, 2, grad=True)

        def variables(b):
            v, init = ref_variable(b, (2,), FLOAT)
            x = b.rand((2,), FLOAT)
            y = tf.cond(b.feed(taken, tf.bool), lambda: raw.Identity(input=v) * x, lambda: x)
            b.run([init])
            b.run([y])
            b.grad([y], [v, x])
        f.case('cond/variable/%s' % taken, 'Merge', variables, 2)

        def resource(b):
            h, init = resource_variable(b, (2,), FLOAT)
            x = b.rand((2,), FLOAT)
            y = tf.cond(b.feed(taken, tf.bool), lambda: read(h, FLOAT) * x,
                        lambda: tf.square(read(h, FLOAT)))
            b.run(targets=[init])
            b.run([y])
            b.grad([y], [h, x])
        f.case('cond/resource/%s' % taken, 'Merge', resource, 2)

        def effects(b):  # only the branch taken is run
            v, init = ref_variable(b, (2,), FLOAT)
            c = tf.cond(b.feed(taken, tf.bool), lambda: raw.AssignAdd(ref=v, value=[1., 1.]) + 0.,
                        lambda: raw.AssignSub(ref=v, value=[2., 2.]) + 0.)
            b.run([init])
            b.run([c])
            b.run([raw.Identity(input=v)])
        f.case('cond/effects/%s' % taken, 'Merge', effects)


# ---- while ----

def whiles(f):
    def counted(b, n=4, **kw):
        x, y = b.rand((2, 2), FLOAT, -1, 1), b.rand((2, 2), FLOAT, -1, 1)
        limit = b.index(n, const=False)
        i, out = tf.while_loop(lambda i, a: i < limit, lambda i, a: [i + 1, tf.matmul(a, y) + x],
                               [tf.constant(0), x], **kw)
        return [out, i]
    for n in (0, 1, 4):
        for par in (1, 10):
            f.case('while/counted_%d_%d' % (n, par), 'Enter',
                   lambda b: counted(b, n, parallel_iterations=par), 4, grad=True)
    f.case('while/maximum', 'LoopCond', lambda b: counted(b, 100, maximum_iterations=3), 4,
           grad=True)
    f.case('while/swap', 'NextIteration', lambda b: counted(b, 3, swap_memory=True), 4, grad=True)
    f.case('while/no_backprop', 'Exit', lambda b: counted(b, 3, back_prop=False), 4)
    f.case('while/long', 'NextIteration', lambda b: tf.while_loop(
        lambda i, s: i < 1000, lambda i, s: [i + 1, s + tf.cast(i, tf.int64)],
        [tf.constant(0), b.feed(0, tf.int64, 'known')]))

    def until(b):
        x = b.rand((), FLOAT, 1, 2)
        return tf.while_loop(lambda a: a < 100., lambda a: a * x, [x])
    f.case('while/until', 'LoopCond', until, 4, grad=True)

    def several(b):
        x, y, z = [b.rand((3,), FLOAT, -1, 1) for _ in range(3)]
        _, p, q, r = tf.while_loop(lambda i, *_: i < 3, lambda i, p, q,
                                   r: [i + 1, p * q, q + r * z, r],
                                   [tf.constant(0), x, y, z])
        return [p, q, r]
    f.case('while/several', 'Enter', several, 4, grad=True)

    def unused(b):  # y does not reach the result
        x, y = b.rand((3,), FLOAT), b.rand((3,), FLOAT)
        _, p, q = tf.while_loop(lambda i, *_: i < 3, lambda i, p, q: [i + 1, p * 2., q * p],
                                [tf.constant(0), x, y])
        return p
    f.case('while/unused', 'Exit', unused, 4, grad=True)

    def nested(b):
        x, y = b.rand((2,), FLOAT, -1, 1), b.rand((2,), FLOAT, -1, 1)

        def outer(i, a):
            _, c = tf.while_loop(lambda j, c: j < i + 1, lambda j, c: [j + 1, c * y + a],
                                 [tf.constant(0), a])
            return [i + 1, c + x]
        return tf.while_loop(lambda i, a: i < 3, outer, [tf.constant(0), x])[1]
    f.case('while/nested', 'Enter', nested, 4, grad=True)

    def nested_constant(b):
        x = b.rand((2,), FLOAT, -1, 1)

        def outer(i, a):
            _, c = tf.while_loop(lambda j, c: j < 2, lambda j, c: [j + 1, c * x],
                                 [tf.constant(0), a])
            return [i + 1, c]
        return tf.while_loop(lambda i, a: i < 2, outer, [tf.constant(0), tf.ones([2])])[1]
    f.case('while/nested_constant', 'NextIteration', nested_constant, 4, grad=True)

    def cond_inside(b):
        x, y = b.rand((2,), FLOAT), b.rand((2,), FLOAT)

        def body(i, a):
            return [i + 1, tf.cond(tf.equal(i % 2, 0), lambda: a * y, lambda: a + x)]
        return tf.while_loop(lambda i, a: i < 5, body, [tf.constant(0), x])[1]
    f.case('while/cond_inside', 'Switch', cond_inside, 4, grad=True)

    for taken in BOTH:
        def inside_cond(b):
            x, y = b.rand((2,), FLOAT), b.rand((2,), FLOAT)

            def loop():
                return tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, a * y],
                                     [tf.constant(0), x])[1]
            return tf.cond(b.feed(taken, tf.bool), loop, lambda: x + y)
        f.case('while/inside_cond_%s' % taken, 'Enter', inside_cond, 4, grad=True)

    def grows(b):
        x = b.rand((1, 2), FLOAT)
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, tf.concat([a, a * x], 0)],
                             [tf.constant(0), x],
                             shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])])[1]
    f.case('while/grows', 'NextIteration', grows, 4)

    def gathers(b):
        x = b.rand((4, 2), FLOAT)
        return tf.while_loop(lambda i, a: i < 4, lambda i, a: [i + 1, a + tf.gather(x, i) * a],
                             [tf.constant(0), tf.ones([2])])[1]
    f.case('while/gathers', 'Enter', gathers, 4, grad=True)

    def twice(b):  # two loops in a row, and one over the result
        x = b.rand((2,), FLOAT, -1, 1)
        a = tf.while_loop(lambda i, a: i < 2, lambda i, a: [i + 1, a * a + x], [tf.constant(0), x])[
            1]
        c = tf.while_loop(lambda i, c: i < 3, lambda i, c: [i + 1, tf.sin(c) * a],
                          [tf.constant(0), a])[1]
        return [a, c]
    f.case('while/twice', 'Exit', twice, 4, grad=True)

    def variable(b):
        v, init = ref_variable(b, (2,), FLOAT)
        x = b.rand((2,), FLOAT)
        y = tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, a * v], [tf.constant(0), x])[1]
        b.run([init])
        b.run([y])
        b.grad([y], [v, x])
    f.case('while/variable', 'Enter', variable, 4)

    def resource(b):
        h, init = resource_variable(b, (2,), FLOAT)
        x = b.rand((2,), FLOAT)
        y = tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, a * read(h, FLOAT)],
                          [tf.constant(0), x])[1]
        b.run(targets=[init])
        b.run([y])
        b.grad([y], [h, x])
    f.case('while/resource', 'Enter', resource, 4)

    def updates(b):
        v, init = ref_variable(b, (), FLOAT)

        def body(i):
            with tf.control_dependencies([raw.AssignAdd(ref=v, value=1.5)]):
                return i + 1
        out = tf.while_loop(lambda i: i < 4, body, [tf.constant(0)], parallel_iterations=1)
        b.run([init])
        b.run([out])
        b.run([raw.Identity(input=v)])
    f.case('while/updates', 'Enter', updates)
    for t in (HALF, DOUBLE, tf.int64, tf.bool, tf.string):
        def rotate(b):
            x, y = b.rand((2,), t), b.rand((2,), t)
            return tf.while_loop(lambda i, p, q: i < 3, lambda i, p, q: [i + 1, q, p],
                                 [tf.constant(0), x, y])[1:]
        f.case('while/rotate_%s' % name_of(t), 'NextIteration', rotate, grad=t == DOUBLE)

    def error_inside(b):
        x = b.feed([1, 2, 3], tf.int32)
        return tf.while_loop(lambda i, a: i < 5, lambda i, a: [i + 1, a + tf.gather(x, i)],
                             [tf.constant(0), tf.constant(0)])[1]
    f.case('while/error', 'Enter', error_inside, error='indices = 3 is not in [0, 3)')

    def second(b):  # the gradient of a gradient-free path beside one with
        x, y = b.rand((2,), FLOAT), b.rand((2,), FLOAT)
        _, p = tf.while_loop(lambda i, a: i < 3, lambda i, a: [i + 1, tf.stop_gradient(a) * y + a],
                             [tf.constant(0), x])
        return p
    f.case('while/stopped', 'Exit', second, 4, grad=True)


def by_hand(f):
    """Loops over references, and frames without a client's help."""
    def loop(b, ref):
        v, init = ref_variable(b, (), FLOAT, 1.0)
        enter = (raw.RefEnter if ref else raw.Enter)(data=v, frame_name='loop', is_constant=False,
                                                     parallel_iterations=1)
        merge = raw.RefMerge if ref else raw.Merge
        value, _ = merge(inputs=[enter, enter])
        limit = raw.Enter(data=b.rand((), FLOAT, 20, 30), frame_name='loop', is_constant=True)
        # the condition looks at a copy, made before the update
        go = raw.LoopCond(input=raw.Less(x=raw.Identity(input=value), y=limit))
        no, yes = (raw.RefSwitch if ref else raw.Switch)(data=value, pred=go)
        with tf.control_dependencies([yes]):
            two = tf.constant(2.0)
        step = raw.AssignAdd(ref=yes, value=two) if ref else raw.Add(x=yes, y=two)
        again = (raw.RefNextIteration if ref else raw.NextIteration)(data=step)
        value.op._update_input(1, again)
        out = (raw.RefExit if ref else raw.Exit)(data=no)
        b.run([init])
        b.run([out])
        b.run([raw.Identity(input=v)])
    for op in ('RefEnter', 'RefExit', 'RefNextIteration'):
        f.case('loop', op, lambda b: loop(b, True))
    f.case('loop', 'LoopCond', lambda b: loop(b, False))

    def through(b):  # a frame that is entered and left, without an iteration
        x = raw.Enter(data=b.rand((2,), FLOAT), frame_name='once')
        y = raw.Enter(data=b.rand((2,), FLOAT), frame_name='once', is_constant=True)
        return raw.Exit(data=raw.Add(x=x, y=y))
    f.case('through', 'Exit', through)


def asserts(f):
    f.case('true', 'Assert', lambda b: b.run(targets=[raw.Assert(
        condition=b.feed(True, tf.bool), data=[b.rand((2,), FLOAT)])]))
    for n, data, summarize, words in [
            ('ints', lambda b: [tf.constant('x is'), b.feed([1, 2, 3, 4, 5], tf.int32)], 3,
             'assertion failed: [x is] [1 2 3...]'),
            ('all', lambda b: [b.feed([[1, 2], [3, 4]], tf.int64)], -1,
             'assertion failed: [[1 2][3 4]]'),
            ('floats', lambda b: [b.feed([.5, 1e10, -2], FLOAT), b.feed(7, tf.int32)], 3,
             'assertion failed: [0.5 1e+10 -2] [7]'),
            ('bools', lambda b: [b.feed([True, False], tf.bool), b.feed([b'a', b'bc'], tf.string)],
             3,
             'assertion failed: [1 0] [a bc]'),
            ('none', lambda b: [b.rand((0,), FLOAT)], 3, 'assertion failed: []'),
            ('matrix', lambda b: [b.feed([[1, 2, 3], [4, 5, 6]], tf.int32)], 4,
             'assertion failed: [[1 2 3][4...]')]:
        f.case('false/' + n, 'Assert', lambda b: b.run(targets=[raw.Assert(
            condition=b.feed(False, tf.bool), data=data(b), summarize=summarize)], error=words))

    def guards(b):
        x = b.rand((3,), FLOAT)
        with tf.control_dependencies([raw.Assert(condition=raw.All(
                input=raw.Less(x=x, y=100.), axis=[0]), data=[x])]):
            return raw.Square(x=x)
    f.case('guards', 'Assert', guards, grad=True)
    f.case('bad/rank', 'Assert', lambda b: b.run(targets=[raw.Assert(
        condition=b.feed([True], tf.bool, 'nothing'), data=[tf.constant(1)])],
        error='In[0] should be a scalar: [1]'))
    for t in (FLOAT, tf.int32, tf.string):
        f.case(name_of(t), 'Print', lambda b: raw.Print(
            input=b.rand((2, 2), t), data=[b.rand((2,), t), tf.constant([1, 2, 3, 4])],
            message='seen: ', first_n=1))
    f.case('grad', 'Print', lambda b: raw.Square(x=raw.Print(
        input=b.rand((2, 2), FLOAT), data=[b.rand((2,), FLOAT)], message='', first_n=0)), 1,
        grad=True)


def functions(f):
    def library(b):
        @function.Defun(FLOAT, FLOAT, func_name='ScaledSum')
        def scaled(x, y):
            return x * y + x, tf.reduce_sum(y)

        @function.Defun(FLOAT, func_name='Twice')
        def twice(x):
            return x * scaled(x, x)[0]
        return scaled, twice

    def by_name(b):
        scaled, _ = library(b)
        return scaled(b.rand((2, 3), FLOAT, static='known'), b.rand((2, 3), FLOAT, static='known'))
    f.case('call', 'ScaledSum', by_name, 2, grad=True)

    def nested(b):
        _, twice = library(b)
        x = b.rand((3,), FLOAT, static='known')
        return twice(twice(x)) + x
    f.case('call', 'Twice', nested, 2, grad=True)

    def part(b):  # one of two results
        scaled, _ = library(b)
        return scaled(b.rand((2,), FLOAT, static='known'), b.rand((2,), FLOAT, static='known'))[1]
    f.case('part', 'ScaledSum', part, 2, grad=True)
    for op in ('PartitionedCall', 'StatefulPartitionedCall'):
        def call(b):
            scaled, _ = library(b)
            scaled.add_to_graph(tf1.get_default_graph())
            x, y = b.rand((2, 3), FLOAT, static='known'), b.rand((2, 3), FLOAT, static='known')
            return getattr(raw, op)(args=[x, y], Tout=[FLOAT, FLOAT], f=scaled)
        f.case('two', op, call, 2, grad=True)

        def inside(b):  # a function that calls a function
            _, twice = library(b)
            twice.add_to_graph(tf1.get_default_graph())
            return getattr(raw, op)(args=[b.rand((4,), FLOAT, static='known')], Tout=[FLOAT],
                                    f=twice)
        f.case('nested', op, inside, 2, grad=True)

        def error(b):
            @function.Defun(tf.int32, tf.int32, func_name='Divide')
            def divide(x, y):
                return tf.floordiv(x, y)
            divide.add_to_graph(tf1.get_default_graph())
            return getattr(raw, op)(args=[b.feed(4, tf.int32, 'known'),
                                          b.feed(0, tf.int32, 'known')], Tout=[tf.int32], f=divide)
        f.case('error', op, error, error='Integer division by zero')

    def stateful(b):
        @function.Defun(tf.resource, FLOAT, func_name='AddTo')
        def add_to(h, x):
            with tf.control_dependencies([raw.AssignAddVariableOp(resource=h, value=x)]):
                return raw.ReadVariableOp(resource=h, dtype=FLOAT)
        add_to.add_to_graph(tf1.get_default_graph())
        h, init = resource_variable(b, (2,), FLOAT)
        y = raw.StatefulPartitionedCall(args=[h, b.rand((2,), FLOAT, static='known')], Tout=[FLOAT],
                                        f=add_to)
        b.run(targets=[init])
        b.run([y[0]])
        b.run([y[0]])
    f.case('stateful', 'StatefulPartitionedCall', stateful)


def make(f):
    for part in (switches, conds, whiles, by_hand, asserts, functions):
        part(f)
