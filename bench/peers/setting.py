"""Settings from the environment for the programs in bench/peers, read before the frameworks are loaded.

    BENCH_THREADS   threads that a process may compute with; unset: the framework's default
    BENCH_UNITS     hidden units of replicas (100)
    BENCH_DATA      a directory with MNIST's files (or noise in their format) for the batches; unset: noise made here
"""
import gzip
import os

THREADS, UNITS = int(os.environ.get("BENCH_THREADS", 0)), int(os.environ.get("BENCH_UNITS", 100))
if THREADS:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(THREADS)


def read_idx(name):
    import numpy as np
    path = os.path.join(os.environ["BENCH_DATA"], name)
    with gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb") as f:
        data = f.read()
    dims = np.frombuffer(data, ">i4", data[3], 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(dims)


def batches(n, size=100):
    """n batches: images (n, size, 784) from 0 to 1, labels (n, size, 10), a one in each row."""
    import numpy as np
    if os.environ.get("BENCH_DATA"):
        images = read_idx("train-images-idx3-ubyte")[:n * size].reshape(n, size, 784) / np.float32(255)
        labels = read_idx("train-labels-idx1-ubyte")[:n * size].reshape(n, size)
    else:
        images = np.random.rand(n, size, 784).astype("f")
        labels = np.random.randint(0, 10, (n, size))
    return images, np.eye(10, dtype="f")[labels]


def tensorflow_config():
    import tensorflow as tf
    return tf.ConfigProto(intra_op_parallelism_threads=THREADS, inter_op_parallelism_threads=THREADS)
