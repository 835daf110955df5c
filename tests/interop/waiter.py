"""A client that waits at an empty queue: waiter.py TARGET JOB. It is there to be killed."""
import sys

from harness import tf

with tf.device("/job:%s/task:0" % sys.argv[2]):
    q = tf.FIFOQueue(3, tf.float32, shapes=[[]], shared_name="q")
    take, size = q.dequeue(), q.size()
with tf.Session(sys.argv[1]) as s:
    s.run(size)
    print("waiting", flush=True)
    s.run(take)
