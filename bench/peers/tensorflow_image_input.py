"""tensorflow_image_input.py SECONDS [CALLS [resize]]: what image_input_bench.c measures, by TensorFlow 1 or 2."""
import os
import resource
import sys
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import numpy as np
import tensorflow as tf

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2
calls = int(sys.argv[2]) if len(sys.argv) > 2 else 2
resized = len(sys.argv) > 3 and sys.argv[3] == 'resize'
one = tf.__version__.startswith('1')


def distort(image):
    image = tf.image.random_crop(tf.cast(image, tf.float32), [24, 24, 3])
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, max_delta=63)
    image = tf.image.random_contrast(image, lower=0.2, upper=1.8)
    return tf.image.per_image_standardization(image)


def resize(image):
    return tf.compat.v1.image.resize_images(tf.cast(image, tf.float32), [224, 224])


def pipeline():
    side = 256 if resized else 32
    images = np.random.RandomState(1).randint(0, 256, (16 if resized else 1024, side, side, 3)).astype(np.uint8)
    d = tf.data.Dataset.from_tensor_slices(images).repeat()
    d = d.map(resize if resized else distort, num_parallel_calls=calls)
    return d.batch(16 if resized else 128, drop_remainder=True).prefetch(1)


def cpu_seconds():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def measure(next_batch):
    for _ in range(5):
        next_batch()
    begin, cpu, n = time.time(), cpu_seconds(), 0
    while time.time() - begin < seconds:
        n += next_batch().shape[0]
    print('images_per_s %.0f' % (n / (time.time() - begin)))
    print('cpu_us_per_image %.2f' % ((cpu_seconds() - cpu) * 1e6 / n))


if one:
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    batch = tf.compat.v1.data.make_one_shot_iterator(pipeline()).get_next()
    with tf.compat.v1.Session() as s:
        run = s.make_callable(batch)
        measure(run)
else:
    it = iter(pipeline())
    measure(lambda: next(it))
