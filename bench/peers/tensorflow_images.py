"""The side of TensorFlow, 1.15 or 2.x, of bench/images: the same figure as bench/image_bench.c prints.

    tensorflow_images.py decode FILE SECONDS
"""
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import warnings
warnings.filterwarnings("ignore")
import setting
import tensorflow as tf
tf = tf.compat.v1

WARM, ROUND = 20, 16


def decode(path, seconds):
    data = open(path, "rb").read()
    with tf.Graph().as_default():
        x = tf.placeholder(tf.string, [])
        image = tf.image.decode_jpeg(x)
        config = tf.ConfigProto(intra_op_parallelism_threads=setting.THREADS, inter_op_parallelism_threads=setting.THREADS)
        with tf.Session(config=config) as s:
            run = s.make_callable(image.op, [x])  # the least that a run costs there
            start, runs = 0, -WARM
            while runs < ROUND or runs % ROUND or time.process_time() - start < seconds:
                if runs == 0:
                    start = time.process_time()
                run(data)
                runs += 1
            print("images_per_cpu_s %.1f" % (runs / (time.process_time() - start)))


if sys.argv[1] == "decode":
    decode(sys.argv[2], float(sys.argv[3]))
