"""The benchmarks of input, summaries and checkpoints of TensorFlow 1.15 and 2.x; the same figures as bench/input_bench.c
prints, from the files that it wrote.

    tensorflow_input.py dataset DIR HOW SECONDS

HOW is single (records are parsed one by one, then shuffled and batched) or batched (records are shuffled and batched,
then parsed). In 2.x the program goes through the dataset eagerly; in 1.15 a session gets the batches.
"""
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import warnings
warnings.filterwarnings("ignore")
import setting
import tensorflow as tf
TWO = tf.__version__.startswith("2.")
v1 = tf.compat.v1
v1.logging.set_verbosity(v1.logging.ERROR)
if TWO and setting.THREADS:
    tf.config.threading.set_inter_op_parallelism_threads(setting.THREADS)
    tf.config.threading.set_intra_op_parallelism_threads(setting.THREADS)

FILES, PIXELS, BATCH, BUFFER, STRING, IMAGE = 4, 784, 100, 10000, 1000, 32 * 32 * 3
FEATURES = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def session():
    return v1.Session(config=v1.ConfigProto(intra_op_parallelism_threads=setting.THREADS,
                                            inter_op_parallelism_threads=setting.THREADS))


def files(folder, kind="mnist", n=FILES):
    return [os.path.join(folder, "%s-%d.tfrecord" % (kind, i)) for i in range(n)]


def decode(parsed):
    return tf.cast(tf.io.decode_raw(parsed["image"], tf.uint8), tf.float32), parsed["label"]


def measure(get, seconds):
    """Records/s of batches, and the CPU time of a record, after the first ones."""
    i = -BUFFER // BATCH
    while True:
        if i == 0:
            start, used = time.perf_counter(), time.process_time()
        if i > 0 and i % 16 == 0 and time.perf_counter() - start >= seconds:
            print("records_per_s %.0f" % (i * BATCH / (time.perf_counter() - start)))
            print("cpu_us %.3f" % ((time.process_time() - used) / (i * BATCH) * 1e6))
            return
        images, labels = get()
        assert images.shape == (BATCH, PIXELS) and labels.shape == (BATCH,)
        i += 1


def dataset(folder, how, seconds):
    def single(record):
        return decode(tf.io.parse_single_example(record, FEATURES))

    def many(records):
        return decode(tf.io.parse_example(records, FEATURES))
    d = tf.data.TFRecordDataset(files(folder))
    if how == "single":
        d = d.map(single, num_parallel_calls=2).shuffle(BUFFER, 1).repeat().batch(BATCH)
    else:
        d = d.shuffle(BUFFER, 1).repeat().batch(BATCH).map(many, num_parallel_calls=2)
    d = d.prefetch(2)
    if TWO:
        elements = iter(d)
        return measure(lambda: next(elements), seconds)
    batch = v1.data.make_one_shot_iterator(d).get_next()
    with session() as s:
        get = s.make_callable(batch)
        measure(get, seconds)


def classic(folder, readers, seconds):
    with tf.Graph().as_default(), session() as s:
        names = v1.train.string_input_producer(files(folder))
        examples = []
        for _ in range(readers):
            _, record = v1.TFRecordReader().read(names)
            image, label = decode(tf.io.parse_single_example(record, FEATURES))
            image.set_shape([PIXELS])
            examples.append((image, label))
        batch = v1.train.shuffle_batch_join(examples, BATCH, BUFFER + 3 * BATCH, BUFFER)
        coordinator = v1.train.Coordinator()
        threads = v1.train.start_queue_runners(s, coordinator)
        measure(s.make_callable(batch), seconds)
        coordinator.request_stop()
        coordinator.join(threads)


def scalars(folder, n):
    folder = os.path.join(folder, "events")
    start = time.perf_counter()
    if TWO:  # tf.summary.scalar does this and more, and needs TensorBoard
        with tf.summary.create_file_writer(folder).as_default():
            for i in range(n):
                tf.summary.write("loss", float(i), step=i)
    else:
        w = tf.summary.FileWriter(folder)
        for i in range(n):
            w.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=float(i))]), i)
        w.close()
    print("scalars_per_s %.0f" % (n / (time.perf_counter() - start)))


def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")


def memory(folder, kind, n):
    def elements(size):
        d = tf.data.TFRecordDataset(files(folder, kind, 1)).repeat()
        if kind == "image":
            d = d.map(lambda x: tf.reshape(tf.io.decode_raw(x, tf.uint8), [32, 32, 3]))
        return d.shuffle(size, 1)

    def filled(size):
        """The memory while a buffer of so many elements is full."""
        if TWO:
            iterator = iter(elements(size))
            next(iterator)
            return resident()
        with tf.Graph().as_default(), session() as s:
            s.run(v1.data.make_one_shot_iterator(elements(size)).get_next())
            return resident()
    before = filled(100)
    print("bytes_to_payload %.3f" % ((filled(n) - before) / (n * (IMAGE if kind == "image" else STRING))))


def checkpoint(folder, save):
    path = os.path.join(folder, "model.ckpt")
    with tf.Graph().as_default(), session() as s:
        for i in range(4):
            v1.get_variable("v%d" % i, [25, 1000, 1000], initializer=v1.zeros_initializer())
        saver = v1.train.Saver()
        s.run(v1.global_variables_initializer())
        took = []
        for _ in range(3):
            start = time.perf_counter()
            saver.save(s, path) if save else saver.restore(s, path)
            took.append(time.perf_counter() - start)
        print("%s_s %.4f" % ("save" if save else "restore", min(took)))


what, folder, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
if what == "dataset":
    dataset(folder, rest[0], float(rest[1]))
elif what == "classic":
    classic(folder, int(rest[0]), float(rest[1]))
elif what == "scalars":
    scalars(folder, int(rest[0]))
elif what == "memory":
    memory(folder, rest[0], int(rest[1]))
else:
    checkpoint(folder, what == "save")
