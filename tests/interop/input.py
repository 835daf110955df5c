"""Input by readers, queues and queue runners: the tutorials of CIFAR-10 and of TFRecords, on a Leat
server. The client only builds the graph and starts the runs; the server reads the files."""
import os
import shutil
import tempfile

import numpy as np

from harness import ONE, TF_PS, TWO, case, tf

HEIGHT = WIDTH = 32
DEPTH = 3
BYTES = 1 + HEIGHT * WIDTH * DEPTH


def cifar_files(folder, n_files, records):
    """Batches in CIFAR-10's binary format. Gives the paths, and the images by label and first pixel."""
    rng = np.random.RandomState(3)
    paths, want = [], {}
    for i in range(n_files):
        rows = rng.randint(0, 256, (records, BYTES)).astype(np.uint8)
        rows[:, 0] %= 10
        for r in rows:
            want[r.tobytes()] = 0
        path = os.path.join(folder, "data_batch_%d.bin" % (i + 1))
        rows.tofile(path)
        paths.append(path)
    return paths, want


def read_cifar10(queue):
    """As in the tutorial (cifar10_input.py)."""
    reader = tf.FixedLengthRecordReader(record_bytes=BYTES)
    key, value = reader.read(queue)
    record = tf.decode_raw(value, tf.uint8)
    label = tf.cast(tf.strided_slice(record, [0], [1]), tf.int32)
    depth_major = tf.reshape(tf.strided_slice(record, [1], [BYTES]), [DEPTH, HEIGHT, WIDTH])
    return key, label, tf.transpose(depth_major, [1, 2, 0])


def with_files(run):
    folder = tempfile.mkdtemp(prefix="interop-input-")
    try:
        run(folder)
    finally:
        shutil.rmtree(folder)


def cifar(c, folder, threads):
    paths, want = cifar_files(folder, 3, 40)
    with tf.Graph().as_default(), tf.device("/job:worker/task:0"):
        queue = tf.train.string_input_producer(paths, num_epochs=2)
        key, label, image = read_cifar10(queue)
        image.set_shape([HEIGHT, WIDTH, DEPTH])
        label.set_shape([1])
        images, labels, keys = tf.train.shuffle_batch(
            [image, label, key], batch_size=16, num_threads=threads, capacity=100, min_after_dequeue=30)
        first = []
        with c.session() as s:
            s.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coord = tf.train.Coordinator()
            runners = tf.train.start_queue_runners(s, coord)
            try:
                while not coord.should_stop():
                    xs, ys, ks = s.run([images, labels, keys])
                    assert xs.shape == (16, HEIGHT, WIDTH, DEPTH) and ys.shape == (16, 1), (xs.shape, ys.shape)
                    for x, y, k in zip(xs, ys, ks):
                        row = bytes(bytearray([int(y[0])])) + x.transpose(2, 0, 1).tobytes()
                        want[row] += 1  # a KeyError: an image that no file has
                        path, number = k.decode().rsplit(":", 1)
                        assert path in paths and 0 <= int(number) < 40, k
                        first.append(k)
            except tf.errors.OutOfRangeError:
                pass
            coord.request_stop()
            coord.join(runners)
        # Two epochs of 120 images are 15 batches of 16: each image twice.
        assert sorted(set(want.values())) == [2], sorted(set(want.values()))
        assert first != sorted(first)


@case(on=[ONE, TWO, TF_PS])
def cifar10(c):
    with_files(lambda folder: cifar(c, folder, 1))


@case(on=[ONE])
def cifar10_threads(c):
    with_files(lambda folder: cifar(c, folder, 4))


@case(on=[ONE, TWO])
def examples(c):
    """TFRecords of Examples, parsed in batches."""
    def run(folder):
        path = os.path.join(folder, "a.tfrecord")
        options = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP)
        with tf.python_io.TFRecordWriter(path, options) as w:
            for i in range(50):
                w.write(tf.train.Example(features=tf.train.Features(feature={
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=[i, i + 0.5])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 10])),
                    "words": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"w"] * (i % 4))),
                })).SerializeToString())
        with tf.Graph().as_default(), tf.device("/job:worker/task:0"):
            queue = tf.train.string_input_producer([path], num_epochs=1)
            _, records = tf.TFRecordReader(options=options).read_up_to(queue, 10)
            batch = tf.train.batch([records], 20, enqueue_many=True, shapes=[[]], allow_smaller_final_batch=True)
            parsed = tf.parse_example(batch, {
                "x": tf.FixedLenFeature([2], tf.float32), "label": tf.FixedLenFeature([], tf.int64),
                "words": tf.VarLenFeature(tf.string), "none": tf.FixedLenFeature([], tf.int64, 7)})
            seen = []
            with c.session() as s:
                s.run(tf.local_variables_initializer())
                coord = tf.train.Coordinator()
                runners = tf.train.start_queue_runners(s, coord)
                try:
                    while True:
                        got = s.run(parsed)
                        for j, x in enumerate(got["x"]):
                            i = int(x[0])
                            assert x[1] == i + 0.5 and got["label"][j] == i % 10 and got["none"][j] == 7
                            assert sum(r == j for r, _ in got["words"].indices) == i % 4
                            seen.append(i)
                except tf.errors.OutOfRangeError:
                    pass
                coord.request_stop()
                coord.join(runners)
            assert sorted(seen) == list(range(50)), seen
    with_files(run)


def drawn_records(target, paths, batches, **options):
    with tf.Graph().as_default():
        records = tf.raw_ops.RecordInput(file_pattern=",".join(paths), file_parallelism=1, **options)
        with tf.Session(target) as s:
            return [list(s.run(records)) for _ in range(batches)]


@case(on=[ONE])
def record_input(c):
    """The order of RecordInput, where the client's own threads do not matter: a buffer of one record
    for two epochs, and one that has all records."""

    def run(folder):
        paths = [os.path.join(folder, "records-%d" % i) for i in range(9)]
        for i, path in enumerate(paths):
            with tf.io.TFRecordWriter(path) as w:
                for j in range(3 * i):
                    w.write(b"%d of %d" % (j, i))
        for batches, options in [
                (216, dict(file_buffer_size=1, batch_size=1, file_random_seed=5)),
                (27, dict(file_buffer_size=1, batch_size=8, file_shuffle_shift_ratio=0.4)),
                (1, dict(file_buffer_size=1000, batch_size=108, file_random_seed=-1))]:
            want = drawn_records("", paths, batches, **options)
            assert drawn_records(c.target(), paths, batches, **options) == want, want

    with_files(run)
