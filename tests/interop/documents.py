"""The documents' programs, written as they are published, on a Leat server: MNIST as TFRecords by
tf.data with towers whose gradients are averaged; CIFAR-10's distorted inputs with queues, threads and
a coordinator; its inputs for evaluation. What is deterministic is compared with TensorFlow's own run
of the same graph."""
import os

import numpy as np

from harness import ONE, TWO, case, close, tf
from input import BYTES, cifar_files, read_cifar10, with_files

PLACE = "/job:worker/task:0"


def both(c, build, run):
    """What run(session, tensors) gives on the cluster and in this process, of the same graph."""
    got = []
    for place, session in ((PLACE, c.session), (None, tf.Session)):
        with tf.Graph().as_default(), tf.device(place):
            tf.set_random_seed(11)
            tensors = build()
            with session() as s:
                got.append(run(s, tensors))
    return got


# ---- MNIST: TFRecords, a one-shot iterator, towers ----

def write_mnist(path, n):
    rng = np.random.RandomState(1)
    with tf.python_io.TFRecordWriter(path) as w:
        for i in range(n):
            image = rng.randint(0, 256, 784).astype(np.uint8)
            image[28 * (i % 10):28 * (i % 10) + 56] = 255
            w.write(tf.train.Example(features=tf.train.Features(feature={
                "pixels": tf.train.Feature(int64_list=tf.train.Int64List(value=[784])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 10])),
                "image_raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
            })).SerializeToString())


def parser(record):
    features = tf.parse_single_example(record, features={
        "image_raw": tf.FixedLenFeature([], tf.string),
        "pixels": tf.FixedLenFeature([], tf.int64),
        "label": tf.FixedLenFeature([], tf.int64)})
    image = tf.reshape(tf.cast(tf.decode_raw(features["image_raw"], tf.uint8), tf.float32) / 255, [784])
    return image, tf.cast(features["label"], tf.int32)


def get_input(path, batch):
    dataset = tf.data.TFRecordDataset([path])
    dataset = dataset.map(parser)
    dataset = dataset.shuffle(buffer_size=50, seed=3)
    # Directly after shuffle, repeat would be fused with it by TensorFlow 1.15, which changes the order.
    dataset = dataset.batch(batch)
    dataset = dataset.repeat(4)
    return tf.data.make_one_shot_iterator(dataset).get_next()


def inference(x, regularizer):
    with tf.variable_scope("layer1"):
        w = tf.get_variable("weights", [784, 30], initializer=tf.truncated_normal_initializer(stddev=0.1, seed=5))
        b = tf.get_variable("biases", [30], initializer=tf.constant_initializer(0.0))
        tf.add_to_collection("losses", regularizer * tf.nn.l2_loss(w))
        hidden = tf.nn.relu(tf.matmul(x, w) + b)
    with tf.variable_scope("layer2"):
        w = tf.get_variable("weights", [30, 10], initializer=tf.truncated_normal_initializer(stddev=0.1, seed=6))
        b = tf.get_variable("biases", [10], initializer=tf.constant_initializer(0.0))
        tf.add_to_collection("losses", regularizer * tf.nn.l2_loss(w))
        return tf.matmul(hidden, w) + b


def get_loss(x, y_, scope, reuse):
    with tf.variable_scope(tf.get_variable_scope(), reuse=reuse):
        y = inference(x, 0.0001)
    cross_entropy = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=y, labels=y_))
    return cross_entropy + tf.add_n(tf.get_collection("losses", scope))


def average_gradients(tower_grads):
    average = []
    for grad_and_vars in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in grad_and_vars]
        average.append((tf.reduce_mean(tf.concat(grads, 0), 0), grad_and_vars[0][1]))
    return average


def towers(path):
    global_step = tf.get_variable("global_step", [], initializer=tf.constant_initializer(0), trainable=False)
    rate = tf.train.exponential_decay(0.1, global_step, 10, 0.99)
    opt = tf.train.GradientDescentOptimizer(rate)
    tower_grads = []
    reuse = False
    # One iterator for both towers would give them their batches in any order.
    for i in range(2):
        with tf.name_scope("TOWER_%d" % i) as scope:
            x, y_ = get_input(path, 10)
            loss = get_loss(x, y_, scope, reuse)
            reuse = True
            tower_grads.append(opt.compute_gradients(loss))
    grads = average_gradients(tower_grads)
    for grad, var in grads:
        tf.summary.histogram("gradients_on_average/%s" % var.op.name, grad)
    apply_gradient = opt.apply_gradients(grads, global_step=global_step)
    averages = tf.train.ExponentialMovingAverage(0.99, global_step)
    with tf.control_dependencies([apply_gradient]):  # else the averages may be of either step
        train = averages.apply(tf.trainable_variables())
    return train, loss, tf.summary.merge_all(), global_step


def train_towers(s, t):
    train, loss, summary, step = t
    s.run(tf.global_variables_initializer())
    losses = []
    try:
        while True:
            _, value, text = s.run([train, loss, summary])
            losses.append(value)
            assert len(tf.Summary.FromString(text).value) == 4
    except tf.errors.OutOfRangeError:
        pass
    names = sorted(v.op.name for v in tf.global_variables())
    assert "layer1/weights/ExponentialMovingAverage" in names, names
    values = s.run({v.op.name: v for v in tf.global_variables()})
    return losses, [values[n] for n in names]


@case(on=[ONE, TWO])
def mnist_towers(c):
    def run(folder):
        path = os.path.join(folder, "output.tfrecords")
        write_mnist(path, 100)
        (losses, variables), (want, want_variables) = both(c, lambda: towers(path), train_towers)
        assert len(losses) == len(want) == 40, (len(losses), len(want))
        assert losses[-1] < losses[0] - 0.5, losses
        close(losses, want, 1e-4)
        for a, b in zip(variables, want_variables):
            close(a, b, 1e-4)
    with_files(run)


# ---- CIFAR-10 ----

def distort(image):
    """distorted_inputs of cifar10_input.py."""
    image = tf.cast(image, tf.float32)
    image = tf.random_crop(image, [24, 24, 3], seed=1)
    image = tf.image.random_flip_left_right(image, seed=2)
    image = tf.image.random_brightness(image, max_delta=63, seed=3)
    image = tf.image.random_contrast(image, lower=0.2, upper=1.8, seed=4)
    image = tf.image.per_image_standardization(image)
    image.set_shape([24, 24, 3])
    return image


def with_runners(s, fetch, most=None):
    """Values until the epochs end, or so many, as a program with a coordinator gets them."""
    values = []
    s.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=s, coord=coord)
    try:
        while not coord.should_stop() and (most is None or len(values) < most):
            values.append(s.run(fetch))
    except tf.errors.OutOfRangeError:
        pass
    coord.request_stop()
    coord.join(threads, stop_grace_period_secs=10)
    return values


@case(on=[ONE, TWO])
def cifar10_distorted(c):
    """One thread and a queue in order: every image is distorted as TensorFlow does it."""
    def run(folder):
        paths, _ = cifar_files(folder, 2, 20)

        def build():
            queue = tf.train.string_input_producer(paths, num_epochs=1, shuffle=False)
            _, label, image = read_cifar10(queue)
            label.set_shape([1])
            return tf.train.batch([distort(image), label], batch_size=8, num_threads=1)

        got, want = both(c, build, with_runners)
        assert len(got) == len(want) == 5, (len(got), len(want))
        for (images, labels), (want_images, want_labels) in zip(got, want):
            assert images.shape == (8, 24, 24, 3)
            close(images, want_images, 1e-4)
            assert (labels == want_labels).all()
    with_files(run)


@case(on=[ONE])
def cifar10_input(c):
    """distorted_inputs as published: 16 threads, a shuffled queue, summaries of images; for ever."""
    def run(folder):
        paths, _ = cifar_files(folder, 3, 40)
        with tf.Graph().as_default(), tf.device(PLACE):
            queue = tf.train.string_input_producer(paths)
            _, label, image = read_cifar10(queue)
            label.set_shape([1])
            images, labels = tf.train.shuffle_batch([distort(image), label], batch_size=32, num_threads=16,
                                                    capacity=60 + 3 * 32, min_after_dequeue=60)
            labels = tf.reshape(labels, [32])
            summary = tf.summary.image("images", images, max_outputs=2)
            with c.session() as s:
                values = with_runners(s, [images, labels, summary], 12)
        assert len(values) == 12
        for x, y, text in values:
            assert x.shape == (32, 24, 24, 3) and y.shape == (32,) and 0 <= y.min() and y.max() < 10
            close(x.mean(axis=(1, 2, 3)), np.zeros(32), 1e-4)
            close(x.std(axis=(1, 2, 3)), np.ones(32), 1e-3)
            assert len(tf.Summary.FromString(text).value) == 2
    with_files(run)


@case(on=[ONE, TWO])
def cifar10_eval_input(c):
    """inputs() of cifar10_input.py: the middle of each image, standardised, in the order of the file."""
    def run(folder):
        paths, _ = cifar_files(folder, 1, 24)

        def build():
            queue = tf.train.string_input_producer(paths, num_epochs=1, shuffle=False)
            _, label, image = read_cifar10(queue)
            resized = tf.image.resize_image_with_crop_or_pad(tf.cast(image, tf.float32), 24, 24)
            image = tf.image.per_image_standardization(resized)
            image.set_shape([24, 24, 3])
            label.set_shape([1])
            return tf.train.batch([image, label], batch_size=12, num_threads=1)

        got, want = both(c, build, with_runners)
        assert len(got) == len(want) == 2
        for (images, labels), (want_images, want_labels) in zip(got, want):
            close(images, want_images, 1e-5)
            assert (labels == want_labels).all()
        rows = np.fromfile(paths[0], np.uint8).reshape(24, BYTES)
        assert [int(y[0]) for _, labels in got for y in labels] == [int(r[0]) for r in rows]
    with_files(run)
