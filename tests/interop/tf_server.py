"""A task of TensorFlow's own: tf_server.py CLUSTER JOB TASK, the cluster as `leat server` takes it."""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import tensorflow as tf

if not tf.__version__.startswith("1."):
    import tensorflow.compat.v1 as tf

spec = {}
for job in sys.argv[1].split(";"):
    name, tasks = job.split("=")
    spec[name] = tasks.split(",")
tf.train.Server(tf.train.ClusterSpec(spec), job_name=sys.argv[2],
                task_index=int(sys.argv[3])).join()
