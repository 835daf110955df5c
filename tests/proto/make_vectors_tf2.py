#!/usr/bin/env python
"""Writes tests/proto/data/worker_session: CreateWorkerSession as TensorFlow 2's masters send it.

    python tests/proto/make_vectors_tf2.py        (tensorflow 2.21)

TensorFlow's Python package has no class for the message: the descriptor is taken from its library.
"""
import glob
import os

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.internal import decoder
from tensorflow.core.protobuf import named_tensor_pb2, tensorflow_server_pb2  # that worker.proto imports

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data')
FILE = b'tensorflow/core/protobuf/worker.proto'


def find_descriptor():
    """A library has the descriptor of a .proto file as the bytes of a FileDescriptorProto, which
    begins with the file's name and ends with the field `syntax`."""
    SYNTAX = 12
    for path in glob.glob(os.path.join(os.path.dirname(tf.__file__), 'libtensorflow_cc.so*')):
        with open(path, 'rb') as f:
            data = f.read()
        begin = end = data.find(b'\x0a' + bytes([len(FILE)]) + FILE)
        number = 0
        while begin >= 0 and number != SYNTAX:
            tag, at = decoder._DecodeVarint(data, end)
            size, at = decoder._DecodeVarint(data, at)
            number, end = tag >> 3, at + size
        if begin >= 0:
            return descriptor_pb2.FileDescriptorProto.FromString(data[begin:end])
    raise SystemExit('no descriptor of ' + FILE.decode())


pool = descriptor_pool.Default()
pool.Add(find_descriptor())
request = message_factory.GetMessageClass(
    pool.FindMessageTypeByName('tensorflow.CreateWorkerSessionRequest'))()
request.session_handle = '0123456789abcdef'
request.server_def.cluster.job.add(name='ps').tasks.update({0: 'h:1'})
request.server_def.job_name = 'ps'
request.server_def.protocol = 'grpc'
request.isolate_session_state = True
request.cluster_device_attributes.add(name='/job:ps/replica:0/task:0/device:CPU:0',
                                      device_type='CPU', incarnation=2 ** 63 + 5)
request.master_task = '/job:worker/replica:0/task:0'
request.master_incarnation = -(2 ** 63) + 7
with open(os.path.join(DATA, 'worker_session.pb'), 'wb') as f:
    f.write(request.SerializeToString(deterministic=True))
with open(os.path.join(DATA, 'worker_session.txt'), 'w') as f:
    f.write(text_format.MessageToString(request))
