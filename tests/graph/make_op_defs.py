#!/usr/bin/env python3
"""Writes op_defs.txt: how TensorFlow 1.15 defines the ops that Leat has, for op_defs_test.c.

Run it by a Python with TensorFlow 1.15 (`make interop` makes build/venv-tf1) after adding an op:
    build/venv-tf1/bin/python tests/graph/make_op_defs.py build/tests/op_defs_test
A line is "Name(inputs) -> outputs {attributes} flags", with the flags S stateful, C commutative,
A aggregate, U allows uninitialised input.
"""
import os
import subprocess
import sys

from tensorflow.contrib.seq2seq.ops import gen_beam_search_ops  # noqa: F401, registers its ops
from tensorflow.core.framework import op_def_pb2, types_pb2
from tensorflow.python import pywrap_tensorflow
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))


def type_name(t):
    ref = t > 100
    name = types_pb2.DataType.Name(t - 100 if ref else t)[3:].lower()
    return "Ref(%s)" % name if ref else name


def arg(a):
    t = a.type_attr or ("list(%s)" % a.type_list_attr if a.type_list_attr else type_name(a.type))
    if a.number_attr:
        t = "%s*%s" % (a.number_attr, t)
    return "%s:%s" % (a.name, "Ref(%s)" % t if a.is_ref else t)


def scalar(v):
    kind = v.WhichOneof("value")
    if kind == "type":
        return type_name(v.type)
    if kind == "s":
        return repr(v.s.decode())
    if kind == "shape":
        return "unknown" if v.shape.unknown_rank else "[%s]" % ", ".join(str(d.size) for d in v.shape.dim)
    if kind == "list":
        l = v.list
        items = ([repr(s.decode()) for s in l.s] + [str(i) for i in l.i] + [repr(f) for f in l.f] +
                 [str(b) for b in l.b] + [type_name(t) for t in l.type])
        return "[%s]" % ", ".join(items)
    if kind == "func":
        return v.func.name
    if kind == "tensor":
        return " ".join([type_name(v.tensor.dtype)] + ["%g" % x for x in tf.make_ndarray(v.tensor).flat])
    return str(getattr(v, kind))


def attr(a):
    s = "%s:%s" % (a.name, a.type)
    allowed = a.allowed_values.list
    if allowed.type:
        s += " in [%s]" % ", ".join("'%s'" % type_name(t) for t in allowed.type)
    if allowed.s:
        s += " in [%s]" % ", ".join(repr(x.decode()) for x in allowed.s)
    if a.has_minimum:
        s += ">=%d" % a.minimum
    if a.HasField("default_value"):
        s += "=" + scalar(a.default_value)
    return s


def line(op):
    s = "%s(%s) -> %s" % (op.name, ", ".join(map(arg, op.input_arg)), ", ".join(map(arg, op.output_arg)) or "()")
    if op.attr:
        s += " {%s}" % "; ".join(map(attr, op.attr))
    flags = "".join(f for f, on in (("S", op.is_stateful), ("C", op.is_commutative), ("A", op.is_aggregate),
                                    ("U", op.allows_uninitialized_input)) if on)
    return s + (" " + flags if flags else "")


def main():
    assert tf.__version__.startswith("1.15"), "needs TensorFlow 1.15, this is " + tf.__version__
    ours = set(subprocess.check_output([sys.argv[1], "--names"]).decode().split())
    # Also those that TensorFlow's Python does not offer, such as Skipgram; not internal ones.
    every = op_def_pb2.OpList.FromString(
        pywrap_tensorflow.TF_GetBuffer(pywrap_tensorflow.TF_GetAllOpList()))
    ops = {op.name: op for op in every.op if op.name[0] != '_'}
    lines = [line(ops[name]) for name in sorted(ops) if name in ours]
    with open(HERE + "/op_defs.txt", "w") as f:
        f.write("\n".join(lines) + "\n")
    print("%d ops" % len(lines))


if __name__ == "__main__":
    main()
