#!/usr/bin/env python3
"""Makes the conformance vectors: tests/vectors/<family>.vec and seeds.txt.

    python tests/vectors/make.py [--try] [family ...] [op ...]

Needs TensorFlow 1.15 (Python 3.7). Written again on the same processor, every file is the same byte for
byte; on another one the last bits of float sums differ, which the cases' tolerances allow. With --try
nothing is written. The vectors are replayed by tests/ops/vectors_test.c, which needs no Python.
"""

import importlib
import os
import sys

sys.dont_write_bytecode = True
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import warnings  # noqa: E402
warnings.filterwarnings('ignore')
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
np.seterr(all='ignore')
from gen.case import Family  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
FAMILIES = ['array', 'index', 'cwise', 'reduce', 'math', 'nn', 'state', 'training', 'random',
            'flow', 'string', 'complex', 'extra', 'more', 'summary', 'input', 'image_codec', 'image', 'conv', 'pool',
            'recurrent', 'sequence']


def write(name, data, trying):
    if not trying:
        with open(os.path.join(HERE, name), 'wb') as f:
            f.write(data)


def show(family, size):
    print('%-9s %3d ops %5d cases (%d values, %d errors, %d gradients) %8d bytes' % (
        family.name, len(family.ops), len(family.cases), family.values, family.errors,
        family.gradients, size))
    sys.stdout.flush()


def main(args):
    only = {a for a in args if a not in FAMILIES and not a.startswith('--')}
    trying = '--try' in args or bool(only)
    wanted = [a for a in args if a in FAMILIES] or FAMILIES
    families, static = [], Family('static')
    for name in wanted:
        family = Family(name)
        family.only = only
        module = importlib.import_module('gen.' + name)
        module.make(family)
        families.append(family)
        write(name + '.vec', family.bytes(), trying)
        if name == 'random':
            write('seeds.txt', module.seeds_text().encode(), trying)
        show(family, len(family.bytes()))
        for op, case, words in family.static:
            static.add(op, case)
            static.errors += 1
            if '--words' in args:
                print('   ', op, words)
    families.append(static)
    write('static.vec', static.bytes(), trying or wanted != FAMILIES)
    show(static, len(static.bytes()))
    print('%-9s %3d ops %5d cases %d bytes' % (
        'all', len({op for f in families for op in f.ops}), sum(len(f.cases) for f in families),
        sum(len(f.bytes()) for f in families)))
    failures = [x for f in families for x in f.failures]
    for f in failures:
        print('FAILED', f)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
