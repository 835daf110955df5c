#!/usr/bin/env python3
"""Makes the conformance vectors: tests/vectors/<family>.vec and seeds.txt.

    python tests/vectors/make.py [--try] [family ...] [op ...]

Needs TensorFlow 1.15 (Python 3.7). Written again, every file is the same byte for byte. With --try
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
            'flow', 'string', 'complex', 'extra']


def main(args):
    trying = '--try' in args
    args = [a for a in args if a != '--try']
    wanted = [a for a in args if a in FAMILIES] or FAMILIES
    only = {a for a in args if a not in FAMILIES}
    ops, failures, total, size = set(), [], 0, 0
    for name in wanted:
        family = Family(name)
        family.only = only
        module = importlib.import_module('gen.' + name)
        module.make(family)
        data = family.bytes()
        if not trying and not only:
            with open(os.path.join(HERE, name + '.vec'), 'wb') as f:
                f.write(data)
        if not trying and not only and name == 'random':
            with open(os.path.join(HERE, 'seeds.txt'), 'w') as f:
                f.write(module.seeds_text())
        print('%-9s %3d ops %5d cases (%d values, %d errors, %d gradients) %8d bytes' % (
            name, len(family.ops), len(family.cases), family.values, family.errors,
            family.gradients, len(data)))
        if only:
            print('   ', family.ops)
        ops |= set(family.ops)
        failures += family.failures
        total += len(family.cases)
        size += len(data)
        sys.stdout.flush()
    print('%-9s %3d ops %5d cases %d bytes' % ('all', len(ops), total, size))
    for f in failures:
        print('FAILED', f)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
