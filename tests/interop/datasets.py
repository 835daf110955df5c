"""tf.data by the real clients on a Leat server: each transformation gives what it gives in the client's
own process, and iterators are saved and restored with the variables."""
import os
import shutil
import tempfile

import numpy as np

from tensorflow.python.data.ops import multi_device_iterator_ops

from harness import ONE, TF2, THREE_DEVICES, TWO, case, raises, tf

D = tf.data.Dataset
X = tf.data.experimental


def write_files(folder):
    """Small files of each kind; gives their paths by name."""
    path = {name: os.path.join(folder, name) for name in ("records", "examples", "text", "csv")}
    with tf.python_io.TFRecordWriter(path["records"]) as w:
        for i in range(5):
            w.write(b"record %d" % i)
    with tf.python_io.TFRecordWriter(path["examples"]) as w:
        for i in range(4):
            feature = {"a": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
                       "b": tf.train.Feature(float_list=tf.train.FloatList(value=[1.5] * i))}
            w.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    with open(path["text"], "w") as f:
        f.write("ab\ncd\nef\n")
    with open(path["csv"], "w") as f:
        f.write('1.5,2\n"3",4\n')
    return path


def varying(n):
    """0, 1, 2 ... elements in a vector."""
    return D.range(n).map(lambda x: tf.fill([tf.cast(x, tf.int32)], x))


def features():
    return {"a": tf.io.FixedLenFeature([], tf.int64), "b": tf.io.VarLenFeature(tf.float32)}


def running_list():
    """A TensorArray that goes from element to element, and begins again after each third."""
    def empty():
        return tf.TensorArray(tf.int64, size=0, element_shape=[], dynamic_size=True)

    def step(array, x):
        array = array.write(array.size(), x)
        return tf.cond(tf.equal(x % 3, 0), empty, lambda: array), array.stack()

    return D.range(6).apply(X.scan(empty().write(0, -1), step))


def pipelines(path):
    """(name, function that makes a dataset); all have the same elements in each run."""
    yield "range", lambda: D.range(5)
    yield "tensors", lambda: D.from_tensors((tf.constant(1), tf.constant([2., 3.])))
    yield "slices", lambda: D.from_tensor_slices({"a": np.arange(6), "b": np.ones((6, 2), np.float32)})
    yield "map", lambda: D.range(5).map(lambda x: x * 2)
    yield "parallel_map", lambda: D.range(9).map(lambda x: x * 2, num_parallel_calls=2)
    yield "map_cond", lambda: D.range(5).map(lambda x: tf.cond(x > 2, lambda: x, lambda: -x))
    yield "batch", lambda: D.range(5).batch(2)
    yield "padded_batch", lambda: varying(5).padded_batch(2, padded_shapes=[None])
    yield "shuffle", lambda: D.range(20).shuffle(5, seed=3)
    yield "shuffle_same", lambda: D.range(9).shuffle(5, seed=3, reshuffle_each_iteration=False)
    yield "repeat", lambda: D.range(3).repeat(2)
    yield "take_skip_shard", lambda: D.range(30).skip(3).take(20).shard(3, 1)
    yield "zip_concatenate", lambda: D.zip((D.range(3).concatenate(D.range(2)), D.range(9)))
    yield "cache", lambda: D.range(3).cache().repeat(2)
    yield "prefetch", lambda: D.range(3).prefetch(1)
    yield "prefetch_auto", lambda: D.range(3).prefetch(X.AUTOTUNE)
    yield "filter", lambda: D.range(6).filter(lambda x: tf.equal(x % 2, 0))
    yield "flat_map", lambda: D.range(4).flat_map(D.range)
    yield "interleave", lambda: D.range(4).interleave(D.range, cycle_length=2)
    yield "parallel_interleave", lambda: D.range(5).interleave(D.range, 2, 2, num_parallel_calls=2)
    yield "window", lambda: D.range(6).window(2).flat_map(lambda w: w.batch(2))
    yield "unbatch", lambda: D.range(6).batch(2).apply(X.unbatch())
    yield "enumerate", lambda: D.range(3).apply(X.enumerate_dataset())
    yield "scan", lambda: D.range(4).apply(X.scan(np.int64(0), lambda s, x: (s + x, s + x)))
    yield "take_while", lambda: D.range(9).apply(X.take_while(lambda x: x < 4))
    yield "group_by_window", lambda: D.range(8).apply(
        X.group_by_window(lambda x: x % 2, lambda k, d: d.batch(2), window_size=2))
    yield "bucket", lambda: varying(8).apply(
        X.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [4], [2, 2]))
    yield "unique", lambda: D.range(8).map(lambda x: x % 3).apply(X.unique())
    yield "choose", lambda: X.choose_from_datasets([D.range(3), D.range(9)], D.range(2).repeat(3))
    yield "sample", lambda: X.sample_from_datasets([D.range(3), D.range(9)], [0.5, 0.5], seed=2)
    yield "ignore_errors", lambda: D.range(4).map(
        lambda x: tf.debugging.check_numerics(1. / tf.cast(x, tf.float32), "e")).apply(X.ignore_errors())
    yield "records", lambda: tf.data.TFRecordDataset(path["records"])
    yield "records_twice", lambda: tf.data.TFRecordDataset([path["records"]] * 2, num_parallel_reads=2)
    yield "text", lambda: tf.data.TextLineDataset(path["text"])
    yield "fixed_length", lambda: tf.data.FixedLengthRecordDataset(path["text"], 3)
    yield "list_files", lambda: D.list_files(path["text"][:-1] + "*", shuffle=False)
    yield "csv", lambda: X.CsvDataset(path["csv"], [tf.float32, tf.int32])
    yield "csv_column", lambda: X.CsvDataset(path["csv"], [tf.int32], select_cols=[1])
    yield "parse_example", lambda: tf.data.TFRecordDataset(path["examples"]).batch(2).apply(
        X.parse_example_dataset(features()))
    yield "sparse", lambda: D.from_tensors(tf.SparseTensor([[0, 1]], [5], [2, 3]))
    yield "dense_to_sparse", lambda: varying(4).apply(X.dense_to_sparse_batch(2, [6]))
    yield "ragged", lambda: D.from_tensors(tf.ragged.constant([[[1], [2, 3]], [[4]]]))
    yield "ragged_slices", lambda: D.from_tensor_slices(tf.ragged.constant([[[1], [2, 3]], [[4]]]))
    if not TF2:
        yield "scan_array", running_list
        return
    yield "any_order", lambda: D.range(9).map(
        lambda x: x * 2, num_parallel_calls=X.AUTOTUNE, deterministic=True)
    yield "parallel_batch", lambda: D.range(5).batch(2, num_parallel_calls=2, drop_remainder=True)
    yield "ragged_batch", lambda: varying(4).apply(X.dense_to_ragged_batch(2))
    yield "ragged_rows", lambda: D.from_tensor_slices(tf.ragged.constant([[1, 2], [3]]))
    yield "rebatch", lambda: D.range(8).batch(3).rebatch([2, 1])
    yield "rejection", lambda: D.range(40).map(lambda x: x % 2).rejection_resample(
        lambda x: tf.cast(x, tf.int32), [0.5, 0.5], seed=1).take(3).map(lambda k, x: x >= 0)
    yield "cardinality", lambda: D.range(8).apply(X.assert_cardinality(8))
    yield "options", lambda: D.range(3).with_options(tf.data.Options())


def elements(target, make):
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        iterator = tf.data.make_initializable_iterator(make())
        one, got = iterator.get_next(), []
        with tf.Session(target) as s:
            s.run(iterator.initializer)
            try:
                while len(got) < 100:
                    got.append(repr(s.run(one)))
            except tf.errors.OutOfRangeError:
                return got
    raise AssertionError("no end")


@case(on=[ONE], limit=240)
def transformations(c):
    folder = tempfile.mkdtemp(prefix="interop-datasets-")
    try:
        wrong = []
        for name, make in pipelines(write_files(folder)):
            want = elements("", make)
            try:
                got = elements(c.target(), make)
                if got != want:
                    wrong.append("%s: %s instead of %s" % (name, got[:3], want[:3]))
            except tf.errors.OpError as e:
                wrong.append("%s: %s" % (name, e.message[-300:]))
        assert not wrong, "\n".join(wrong)
    finally:
        shutil.rmtree(folder)


def training(folder):
    """A dataset that shuffles and works ahead, and a variable that counts how often each number came."""
    dataset = D.range(20).shuffle(7).repeat(3).map(lambda x: x, num_parallel_calls=2).batch(4).prefetch(2)
    iterator = tf.data.make_initializable_iterator(dataset)
    count = tf.get_variable("count", [20], tf.int32, tf.zeros_initializer(), use_resource=False)
    step = tf.train.get_or_create_global_step()
    numbers = iterator.get_next()
    with tf.control_dependencies([tf.scatter_add(count, numbers, tf.ones_like(numbers, tf.int32))]):
        train = tf.assign_add(step, 1)
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, X.make_saveable_from_iterator(iterator))
    return iterator, count, train, tf.train.Saver()


@case(on=[ONE], limit=120)
def saved_iterator(c):
    """Sessions that end in the middle of an epoch, each with new state on the server: with what Saver
    has saved, each number is counted once in each epoch."""
    folder = tempfile.mkdtemp(prefix="interop-datasets-")
    try:
        ends = False
        while not ends:
            with tf.Graph().as_default():
                iterator, count, train, saver = training(folder)
                config = tf.ConfigProto(isolate_session_state=True)
                with tf.Session(c.target(), config=config) as s:
                    s.run([tf.global_variables_initializer(), iterator.initializer])
                    last = tf.train.latest_checkpoint(folder)
                    if last:
                        saver.restore(s, last)
                    try:
                        for _ in range(4):
                            step = s.run(train)
                        saver.save(s, os.path.join(folder, "model"), step)
                        s.run(train)  # is forgotten
                    except tf.errors.OutOfRangeError:
                        ends = True
                        assert list(s.run(count)) == [3] * 20, s.run(count)
    finally:
        shutil.rmtree(folder)


def placed(elements):
    """An operation on each element, on a device of its own."""
    result = []
    for i, x in enumerate(elements):
        with tf.device("/cpu:%d" % i):
            result.append(x * 10 + i)
    return result


@case(on=[THREE_DEVICES])
def several_devices(c):
    """The elements are dealt out to three devices, with and without elements ready on the devices; the
    last round is not whole; initialising again begins anew."""
    names = ["/cpu:0", "/cpu:1", "/cpu:2"]
    for ready in (0, 1, 4):
        with tf.Graph().as_default():
            iterator = multi_device_iterator_ops.MultiDeviceIterator(
                D.range(11), names, max_buffer_size=2, prefetch_buffer_size=ready)
            one = placed(iterator.get_next())
            with c.session() as s:
                for _ in range(3):
                    s.run(iterator.initializer)
                    for i in range(0, 9, 3):
                        assert s.run(one) == [10 * i, 10 * i + 11, 10 * i + 22], i
                    assert s.run(one[:2]) == [90, 101]
                    for x in one:
                        raises(tf.errors.OutOfRangeError, lambda: s.run(x), "End of sequence")
                s.run(iterator.initializer)  # and is closed while it works ahead


@case(on=[THREE_DEVICES])
def several_devices_errors(c):
    """An element that fails belongs to one device, and the others go on."""
    dataset = D.range(6).map(lambda x: 6 // (x - 2))
    iterator = multi_device_iterator_ops.MultiDeviceIterator(
        dataset, ["/cpu:1", "/cpu:2"], prefetch_buffer_size=0)
    first, second = iterator.get_next()
    with c.session() as s:
        raises(tf.errors.FailedPreconditionError, lambda: s.run(first), "not been initialized")
        s.run(iterator.initializer)
        assert s.run([first, second]) == [-3, -6]
        raises(tf.errors.InvalidArgumentError, lambda: s.run(first), "element 2]]")
        assert s.run(second) == 6
        assert s.run([first, second]) == [3, 2]
        raises(tf.errors.OutOfRangeError, lambda: s.run(second))


@case(on=[THREE_DEVICES])
def copied_to_device(c):
    """Elements of a dataset on one device, asked for on another by the string handle of an iterator."""
    for prefetched in (False, True):
        with tf.Graph().as_default():
            dataset = D.range(5).apply(X.copy_to_device("/cpu:1", source_device="/cpu:0"))
            with tf.device("/cpu:1"):
                iterator = tf.data.make_initializable_iterator(
                    dataset.prefetch(2) if prefetched else dataset)
                one = iterator.get_next()
            with c.session() as s:
                for _ in range(3):
                    s.run(iterator.initializer)
                    assert [s.run(one) for _ in range(5)] == list(range(5))
                    raises(tf.errors.OutOfRangeError, lambda: s.run(one))
                s.run(iterator.initializer)
                assert s.run(one) == 0


def draw(*_):
    return tf.random.uniform([], maxval=1000, dtype=tf.int32, seed=11)


def drawn(target, make):
    """What an iterator gives that is initialised twice."""
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        iterator = tf.data.make_initializable_iterator(make())
        one, got = iterator.get_next(), []
        with tf.Session(target) as s:
            for _ in range(2):
                s.run(iterator.initializer)
                got.append([s.run(one) for _ in range(6)])
    return got


@case(on=[ONE, TWO])
def seeds(c):
    """Random ops with seeds in functions of datasets begin again with each iterator."""
    for make in (lambda: D.range(3).map(draw).repeat(2),
                 lambda: D.range(3).flat_map(lambda x: D.range(2).map(draw)),
                 lambda: D.range(6).map(lambda x: D.range(2).map(draw).reduce(0, lambda a, b: 1000 * a + b))):
        want = drawn("", make)
        assert want[0] == want[1] and drawn(c.target(), make) == want, want
