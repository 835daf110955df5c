"""One case: a graph, what is fed, what is run, what TensorFlow answers; and the file of a family.

A case is written by a build function that gets a Builder. It is called once for the stored graph,
and once more, in a graph of its own, where tf.gradients adds its nodes: the stored graph holds
forward ops only.

File: "LEATVEC1", then per case (little-endian; str is a u32 length and bytes):
  u32 bytes of the rest of the case
  str name, str op under test, str GraphDef
  u32 tolerance (0 exact, 1 relative, 2 exact but for the sign of zeros), f32 scale of the second
  u32 n, n feeds of every run: str tensor name, str TensorProto
  u32 n, n runs in one session, in this order:
      u32 n, n feeds of this run only, as above
      u32 n, n targets: str node name
      u32 n, n fetches: str tensor name, str TensorProto expected, str TensorShapeProto inferred
      u32 code expected (0xffffffff: any error), str words that the error message holds
  u32 n, n gradients, run after the runs in the same session:
      u32 n, n ys: str tensor name
      u32 n, n xs: str tensor name, u32 kind (0 none, 1 dense, 2 IndexedSlices made dense),
                   str TensorProto expected
      u32 n, n grad_ys: str TensorProto (n is 0 for ones)
The TensorProtos of a run that fails, and of a gradient that is none, are empty. The cases of the
family static fail already when the graph is imported.
"""

import struct
import zlib

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.framework import kernels, op_def_registry

tf1 = tf.compat.v1
EXACT = 0.0     # bit by bit, but that one NaN is as good as another
VALUES = -1.0   # the same, but zeros may have either sign: TensorFlow's packet loops differ in it
ANY = object()  # an error of any code and wording: TensorFlow's own is not worth keeping

HALF, BFLOAT16, FLOAT, DOUBLE = tf.float16, tf.bfloat16, tf.float32, tf.float64
INTS = [tf.int8, tf.int16, tf.int32, tf.int64]
UINTS = [tf.uint8, tf.uint16, tf.uint32, tf.uint64]
FLOATS = [HALF, BFLOAT16, FLOAT, DOUBLE]
NUMBERS = FLOATS + INTS + UINTS
ALL = NUMBERS + [tf.bool, tf.string]
COMPLEX = [tf.complex64, tf.complex128]


def name_of(dtype):
    """The short name of a dtype, as in the names of cases."""
    return tf.as_dtype(dtype).base_dtype.name.replace('float32', 'float').replace(
        'float64', 'double').replace('float16', 'half').replace('bhalf', 'bfloat16')


# ---- which dtypes TensorFlow has ----

def has_kernel(op, **types):
    """Does a CPU kernel of op take these type attributes?"""
    for k in kernels.get_registered_kernels_for_op(op).kernel:
        if k.device_type != 'CPU' or k.label:
            continue
        allowed = {c.name: c.allowed_values.list.type for c in k.constraint}
        if all(a not in allowed or tf.as_dtype(t).as_datatype_enum in allowed[a]
               for a, t in types.items()):
            return True
    return False


def allowed_by_definition(op, attr, dtype):
    for a in op_def_registry.get_registered_ops()[op].attr:
        if a.name == attr:
            types = a.allowed_values.list.type
            return not types or dtype.as_datatype_enum in types
    raise KeyError('%s has no attribute %s' % (op, attr))


def dtypes(op, attr='T', among=None, **others):
    """The dtypes among `among` that op's definition allows and a CPU kernel takes."""
    return [t for t in (ALL if among is None else among)
            if allowed_by_definition(op, attr, t) and has_kernel(op, **dict(others, **{attr: t}))]


def scaled(tol, t, small=2):
    """The tolerance for dtype t: wider by `small` for half and bfloat16, exact for integers."""
    if not (t.is_floating or t.is_complex):
        return EXACT
    return tol if tol in (EXACT, VALUES) else tol * (small if t in (HALF, BFLOAT16) else 1)


# ---- numbers ----

STRINGS = [b'', b'a', b'leat', b'\x00\xff', 'm\xfchle'.encode('utf-8'),
           b'a longer string, of 33 characters']


def array(value, dtype):
    dtype = tf.as_dtype(dtype).base_dtype
    if dtype == tf.string:
        return np.array(value, dtype=object)
    return np.asarray(value).astype(dtype.as_numpy_dtype)


def tensor_proto(value, dtype):
    """The elements as they lie in memory, whatever their number; strings one by one."""
    dtype = tf.as_dtype(dtype).base_dtype
    value = array(value, dtype)
    p = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum)
    p.tensor_shape.SetInParent()
    for d in value.shape:
        p.tensor_shape.dim.add().size = d
    if dtype == tf.string:
        p.string_val.extend(s if isinstance(s, bytes) else s.encode() for s in value.ravel())
    else:
        p.tensor_content = np.ascontiguousarray(value).tobytes()
    return p.SerializeToString(deterministic=True)


class Builder(object):
    """Handed to a case's build function."""

    def __init__(self, name):
        self.seed = zlib.crc32(name.encode())
        self.rng = np.random.RandomState(self.seed)
        self.feeds = []  # (placeholder, value)
        self.indices = set()  # names of the nodes fed by index()
        self.runs = []   # dicts: fetches, targets, feeds, error
        self.grads = []  # (ys, xs, grad_ys kind)

    def data(self, shape, dtype, lo=None, hi=None):
        """Random values; floats lie in [lo, hi), integers too, both ends rounded inwards."""
        dtype = tf.as_dtype(dtype)
        n = int(np.prod(shape, dtype=np.int64))
        if dtype == tf.string:
            v = np.empty(n, dtype=object)
            for i in range(n):
                v[i] = STRINGS[self.rng.randint(len(STRINGS))]
            return v.reshape(shape)
        if dtype == tf.bool:
            return self.rng.randint(0, 2, shape).astype(bool)
        if dtype.is_complex:
            lo, hi = (-2 if lo is None else lo), (2 if hi is None else hi)
            return array(self.rng.uniform(lo, hi, shape) + 1j * self.rng.uniform(lo, hi, shape),
                         dtype)
        if dtype.is_integer:
            lo = (0 if dtype.is_unsigned else -9) if lo is None else int(np.ceil(lo))
            hi = 10 if hi is None else int(np.floor(hi)) + 1
            if dtype.is_unsigned:
                lo = max(lo, 0)
            return array(self.rng.randint(lo, max(hi, lo + 1), shape), dtype)
        lo, hi = (-3 if lo is None else lo), (3 if hi is None else hi)
        return array(self.rng.uniform(lo, hi, shape), dtype)

    def feed(self, value, dtype=None, static=None):
        """A placeholder that is fed value. static is what the graph knows of its shape:
        'known', 'rank' (no dims), 'some' (every second dim), 'nothing', or a list."""
        if dtype is None:
            dtype = tf.as_dtype(np.asarray(value).dtype)
        value = array(value, dtype)
        if static is None:
            static = ['known', 'known', 'rank', 'some', 'nothing'][
                (self.seed >> 3) % 5]
        dims = {'known': lambda: list(value.shape),
                'rank': lambda: [None] * value.ndim,
                'some': lambda: [d if (i + self.seed) % 2 else None
                                 for i, d in enumerate(value.shape)],
                'nothing': lambda: None}
        shape = dims[static]() if isinstance(static, str) else static
        p = tf1.placeholder(dtype, shape, name='x')
        self.feeds.append((p, value))
        return p

    def rand(self, shape, dtype, lo=None, hi=None, static=None):
        return self.feed(self.data(shape, dtype, lo, hi), dtype, static)

    def index(self, value, dtype=tf.int32, const=None, static=None):
        """An axis, a shape, paddings: a constant or fed, by turns unless const says."""
        if const is None:
            const = (self.seed >> 7) % 3 != 0
        value = array(value, dtype)
        if const:
            return tf.constant(value, dtype, name='c')
        p = self.feed(value, dtype, 'known' if static is None else static)
        self.indices.add(p.op.name)
        return p

    def run(self, fetches=(), targets=(), feeds=None, error=None):
        """One session.run. error: words of the message that is expected, or ANY."""
        self.runs.append(dict(fetches=list(fetches), targets=list(targets),
                              feeds=list((feeds or {}).items()), error=error))

    def grad(self, ys, xs, grad_ys='random'):
        """tf.gradients(ys, xs): grad_ys 'random' values, or None for ones."""
        self.grads.append((list(ys), list(xs), grad_ys))

    def float_feeds(self):
        return [p for p, _ in self.feeds if p.dtype.is_floating or p.dtype.is_complex]


# ---- running and writing ----

CONFIG = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1,
                         device_count={'GPU': 0})
CONFIG.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
CONFIG.graph_options.rewrite_options.disable_meta_optimizer = True
CONFIG.graph_options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF


def _str(b):
    b = b if isinstance(b, bytes) else b.encode()
    return struct.pack('<I', len(b)) + b


def _list(items):
    items = list(items)
    return struct.pack('<I', len(items)) + b''.join(items)


def _feed_list(feeds):
    return _list(_str(p.name) + _str(tensor_proto(v, p.dtype)) for p, v in feeds)


def inferred_shapes(graph, b):
    """The fetches' shapes, inferred from the GraphDef alone: the client knows more of loops."""
    names = sorted({t.name for r in b.runs for t in r['fetches']})
    with tf.Graph().as_default():
        out = tf.import_graph_def(graph, return_elements=names, name='')
    return {n: t.shape for n, t in zip(names, out)}


def shape_proto(shape, actual):
    """The inferred shape; unknown where it contradicts what came (batches of GatherV2 do)."""
    if actual is not None and not shape.is_compatible_with(actual):
        shape = tf.TensorShape(None)
    return shape.as_proto().SerializeToString(deterministic=True)


def static_error(graph, b):
    """The graph with all fed shapes known and all fed indices constant, and what shape inference
    then says against it when it is imported: None if nothing."""
    g = tf1.GraphDef()
    g.CopyFrom(graph)
    values = {p.op.name: (v, p.dtype) for p, v in b.feeds}
    for n in g.node:
        if n.name not in values or n.op != 'Placeholder':
            continue
        v, dtype = values[n.name]
        if n.name in b.indices:
            n.op = 'Const'
            del n.attr['shape']
            n.attr['value'].tensor.ParseFromString(tensor_proto(v, dtype))
        else:
            n.attr['shape'].shape.CopyFrom(tf.TensorShape(v.shape).as_proto())
    try:
        with tf.Graph().as_default():
            tf.import_graph_def(g, name='')
    except ValueError as e:
        return g, str(e).split(" for '")[0].split('\n')[0]
    return None


class Family(object):
    """One file of vectors."""

    def __init__(self, name):
        self.name = name
        self.cases = []
        self.names = set()
        self.ops = {}     # op -> number of cases
        self.values = self.errors = self.gradients = 0
        self.failures = []
        self.only = None  # op names to restrict to, for trying things out
        self.static = []  # for the family of errors that shape inference finds

    def add(self, op, case):
        self.cases.append(case)
        self.ops[op] = self.ops.get(op, 0) + 1

    def case(self, name, op, build, tol=EXACT, error=None, grad=False):
        """build(b) -> the tensors to fetch, or none if it called b.run itself. tol is EXACT,
        VALUES, or the scale of the relative tolerance. grad: of all fetched floats by all that
        are fed."""
        if self.only and op not in self.only:
            return
        name = '%s/%s' % (op, name)
        try:
            if name in self.names:
                raise ValueError('two cases of this name')
            self.names.add(name)
            self.add(op, self._make(name, op, build, tol, error, grad))
        except Exception as e:  # reported together at the end
            self.failures.append('%s %s: %s: %s' % (self.name, name, type(e).__name__,
                                                    str(e).split('\n')[0][:400]))

    def _add_static(self, name, op, graph, b):
        found = static_error(graph, b)
        if found is None:
            return
        feeds = [(p, v) for p, v in b.feeds if p.op.name not in b.indices]
        fetches = [_str(t.name) + _str(b'') + _str(b'') for t in b.runs[0]['fetches']]
        targets = [_str(t.op.name if isinstance(t, tf.Tensor) else t.name)
                   for t in b.runs[0]['targets']]
        run = _list([]) + _list(targets) + _list(fetches) + struct.pack('<I', 3) + _str(found[1])
        body = (_str(name + '/static') + _str(op) +
                _str(found[0].SerializeToString(deterministic=True)) + struct.pack('<If', 0, 1.0) +
                _feed_list(feeds) + _list([run]) + _list([]))
        self.static.append((op, struct.pack('<I', len(body)) + body, found[1]))

    def _build(self, name, build, error, grad):
        b = Builder(name)
        tf1.set_random_seed(None)
        out = build(b)
        if out is not None:
            out = list(out) if isinstance(out, (list, tuple)) else [out]
            if grad:
                b.grad([t for t in out if t.dtype.is_floating or t.dtype.is_complex],
                       b.float_feeds())
            b.run(out, error=error)
        return b

    def _make(self, name, op, build, tol, error, grad):
        with tf.Graph().as_default() as g:
            b = self._build(name, build, error, grad)
            graph = g.as_graph_def()
            if not any(n.op == op for n in graph.node) and not any(
                    n.op == op for f in graph.library.function for n in f.node_def):
                raise ValueError('the graph does not hold the op')
            shapes = inferred_shapes(graph, b)
            runs, values = self._run_all(g, b, shapes)
            if error and len(b.runs) == 1:
                self._add_static(name, op, graph, b)
        grads = self._gradients(name, build, grad, b, values) if b.grads else []
        body = (_str(name) + _str(op) + _str(graph.SerializeToString(deterministic=True)) +
                struct.pack('<If', {EXACT: 0, VALUES: 2}.get(tol, 1), max(tol, 1.0)) +
                _feed_list(b.feeds) + _list(runs) + _list(grads))
        return struct.pack('<I', len(body)) + body

    def _run_all(self, g, b, shapes):
        """Runs the case's runs. Gives their records, and each fetched tensor's last value."""
        records, values = [], {}
        with tf1.Session(graph=g, config=CONFIG) as s:
            for r in b.runs:
                feed = dict(b.feeds)
                feed.update(r['feeds'])
                words, code, got, targets = b'', 0, None, []
                for t in r['targets']:
                    t = t.op if isinstance(t, tf.Tensor) else t
                    targets.append(t)
                try:
                    got = s.run(r['fetches'] + targets, {p: v for p, v in feed.items()})
                except tf.errors.OpError as e:
                    if r['error'] is None:
                        raise
                    code, message = e.error_code, e.message
                if r['error'] is not None:
                    if code == 0:
                        raise ValueError('expected an error (%s), got %s' % (r['error'], got))
                    w = r['error']
                    if w is ANY:
                        w, code = '', 0xffffffff
                    if w not in message:
                        raise ValueError('expected "%s" in code %d: %s' % (w, code, message))
                    words = w.encode()
                    self.errors += 1
                else:
                    self.values += len(r['fetches'])
                fetches = []
                for i, t in enumerate(r['fetches']):
                    if code == 0:
                        values[t.name] = got[i]
                    proto = tensor_proto(got[i], t.dtype) if code == 0 else b''
                    fetches.append(_str(t.name) + _str(proto) + _str(shape_proto(
                        shapes[t.name], None if code else np.shape(got[i]))))
                records.append(_feed_list(r['feeds']) + _list(_str(t.name) for t in targets) +
                               _list(fetches) + struct.pack('<I', code) + _str(words))
        return records, values

    def _gradients(self, name, build, grad, first, values):
        """tf.gradients in a second copy of the graph, run after the same runs."""
        with tf.Graph().as_default() as g:
            b = self._build(name, build, None, grad)
            plan, feed = [], dict(b.feeds)
            for ys, xs, how in b.grads:
                grad_ys, values_of = None, []
                if how is not None:
                    values_of = [array(b.rng.uniform(-1, 1, np.shape(values[y.name])), y.dtype)
                                 if how == 'random' else array(h, y.dtype)
                                 for y, h in zip(ys, ys if how == 'random' else how)]
                    grad_ys = [tf1.placeholder(y.dtype, v.shape) for y, v in zip(ys, values_of)]
                    feed.update(zip(grad_ys, values_of))
                gs = tf1.gradients(ys, xs, grad_ys)
                kinds = [0 if x is None else 2 if isinstance(x,
                                                             tf.IndexedSlices) else 1 for x in gs]
                dense = [x if x is None else tf.convert_to_tensor(x) for x in gs]
                plan.append((ys, xs, values_of, kinds, dense))
            records = []
            with tf1.Session(graph=g, config=CONFIG) as s:
                for r in b.runs:
                    f = dict(b.feeds)
                    f.update(r['feeds'])
                    s.run(r['fetches'] + r['targets'], f)
                for ys, xs, values_of, kinds, dense in plan:
                    got = s.run([d for d in dense if d is not None], feed)
                    out = []
                    for x, kind, d in zip(xs, kinds, dense):
                        proto = b'' if d is None else tensor_proto(got.pop(0), d.dtype)
                        out.append(_str(x.name) + struct.pack('<I', kind) + _str(proto))
                    self.gradients += sum(k != 0 for k in kinds)
                    records.append(_list(_str(y.name) for y in ys) + _list(out) +
                                   _list(_str(tensor_proto(v, y.dtype))
                                         for v, y in zip(values_of, ys)))
        return records

    def bytes(self):
        return b'LEATVEC1' + b''.join(self.cases)
