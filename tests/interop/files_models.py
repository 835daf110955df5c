"""What the programs of models/ write, in TensorFlow: python files_models.py BUILD_DIR

TensorFlow reads the records of convert_to_records, restores the moving averages of mnist_towers, and
reads its summaries."""
import glob
import os
import shutil
import struct
import subprocess
import sys
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import warnings
warnings.filterwarnings('ignore')
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
models = os.path.join(os.path.abspath(sys.argv[1]), 'models')


def run(folder, *command):
    env = dict(os.environ, LEAT_DATA_URL='none', LEAT_DATA_CACHE=os.path.join(folder, 'cache'))
    return subprocess.run((os.path.join(models, command[0]),) + command[1:], check=True, cwd=folder, env=env,
                          stdout=subprocess.PIPE, universal_newlines=True).stdout


def write_mnist(folder):
    """300 images and labels for training and for tests, as idx files."""
    rng = np.random.RandomState(2)
    images, labels = rng.randint(0, 256, (300, 28, 28)).astype(np.uint8), np.arange(300) % 10
    for name in 'train', 't10k':
        with open(os.path.join(folder, name + '-images-idx3-ubyte'), 'wb') as f:
            f.write(struct.pack('>IIII', 0x803, 300, 28, 28) + images.tobytes())
        with open(os.path.join(folder, name + '-labels-idx1-ubyte'), 'wb') as f:
            f.write(struct.pack('>II', 0x801, 300) + labels.astype(np.uint8).tobytes())
    return images, labels


def read(path, options=None):
    features = {'image_raw': tf.FixedLenFeature([], tf.string), 'label': tf.FixedLenFeature([], tf.int64),
                'height': tf.FixedLenFeature([], tf.int64), 'width': tf.FixedLenFeature([], tf.int64),
                'depth': tf.FixedLenFeature([], tf.int64)}
    records = list(tf.python_io.tf_record_iterator(path, options))
    with tf.Graph().as_default(), tf.Session() as s:
        got = s.run(tf.parse_example(records, features))
    size = got['height'][0], got['width'][0], got['depth'][0]
    return np.array([np.frombuffer(x, np.uint8).reshape(size) for x in got['image_raw']]), got['label']


def mnist_records(folder, images, labels):
    run(folder, 'convert_to_records', '--data_dir', '.', '--compression', 'GZIP')
    options = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP)
    for name in 'train', 'test':
        x, y = read(os.path.join(folder, 'mnist_%s.tfrecords.gz' % name), options)
        assert (x[..., 0] == images).all() and (y == labels).all()


def cifar10_records(folder):
    """Of small batches in the binary form."""
    rng = np.random.RandomState(3)
    rows = rng.randint(0, 256, (6, 20, 3073)).astype(np.uint8)
    rows[:, :, 0] %= 10
    for i in range(6):
        rows[i].tofile(os.path.join(folder, 'data_batch_%d.bin' % (i + 1) if i < 5 else 'test_batch.bin'))
    run(folder, 'convert_to_records', '--data', 'cifar10', '--data_dir', '.')
    for name, want in (('train', rows[:5].reshape(100, 3073)), ('test', rows[5])):
        x, y = read(os.path.join(folder, 'cifar10_%s.tfrecords' % name))
        assert (x == want[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)).all() and (y == want[:, 0]).all()


def towers(folder, images, labels):
    """A model that TensorFlow builds and restores gives the precision that mnist_eval prints."""
    run(folder, 'mnist_towers', '--data_dir', '.', '--log_dir', 'log', '--train_steps', '60', '--hidden_units', '30',
        '--batch_size', '30')
    said = run(folder, 'mnist_eval', '--data_dir', '.', '--log_dir', 'log')
    precision = float(said.split('precision @ 1 = ')[1].split()[0])
    with tf.Graph().as_default(), tf.Session() as s:
        x = tf.placeholder(tf.float32, [None, 784])
        with tf.variable_scope('layer1'):
            h = tf.nn.relu(tf.matmul(x, tf.get_variable('weights', [784, 30])) + tf.get_variable('biases', [30]))
        with tf.variable_scope('layer2'):
            y = tf.matmul(h, tf.get_variable('weights', [30, 10])) + tf.get_variable('biases', [10])
        averages = tf.train.ExponentialMovingAverage(0.99)
        saver = tf.train.Saver(averages.variables_to_restore(tf.trainable_variables()))
        saver.restore(s, tf.train.latest_checkpoint(os.path.join(folder, 'log')))
        got = s.run(tf.argmax(y, 1), {x: images.reshape(300, 784) / np.float32(255)})
    assert abs(np.mean(got == labels) - precision) < 0.004, (np.mean(got == labels), precision)
    steps, tags = [], set()
    for path in sorted(glob.glob(os.path.join(folder, 'log', 'events*'))):
        for e in tf.train.summary_iterator(path):
            tags |= {v.tag for v in e.summary.value}
            if any(v.tag == 'total_loss' for v in e.summary.value):
                steps.append(e.step)
    assert {'total_loss', 'learning_rate', 'layer1/weights_1', 'layer2/biases_1'} <= tags, tags
    assert len(steps) >= 6 and {b - a for a, b in zip(steps, steps[1:])} == {10}, steps


folder = tempfile.mkdtemp(prefix='interop-models-')
try:
    images, labels = write_mnist(folder)
    mnist_records(folder, images, labels)
    cifar10_records(folder)
    towers(folder, images, labels)
finally:
    shutil.rmtree(folder)
print('ok   %s files_models' % tf.__version__)
