"""A worker of between-graph replication: replica.py TARGET TASK WORKERS sync|async."""
import sys

import numpy as np

from harness import tf

# A worker looks every 30 s whether the chief has begun; here it looks more often.
_init = tf.train.SessionManager.__init__
tf.train.SessionManager.__init__ = lambda self, *a, **k: _init(
    self, *a, **dict(k, recovery_wait_secs=1))

target, task, n, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
rng = np.random.RandomState(task)
with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:%d" % task)):
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [None, 3])
    y = tf.placeholder(tf.float32, [None, 1])
    w = tf.get_variable("w", initializer=np.zeros([3, 1], np.float32))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    opt = tf.train.AdamOptimizer(0.1)
    hooks = [tf.train.StopAtStepHook(last_step=20)]
    if mode == "sync":
        opt = tf.train.SyncReplicasOptimizer(opt, replicas_to_aggregate=n, total_num_replicas=n)
    train = opt.minimize(loss, global_step=step)
    if mode == "sync":
        hooks.append(opt.make_session_run_hook(task == 0, num_tokens=0))
config = tf.ConfigProto(operation_timeout_in_ms=25000,
                        device_filters=["/job:ps", "/job:worker/task:%d" % task])
with tf.train.MonitoredTrainingSession(target, is_chief=task == 0, hooks=hooks, config=config,
                                       stop_grace_period_secs=5) as s:
    while not s.should_stop():
        a = rng.randn(16, 3)
        b = a.dot([[1.0], [-2.0], [0.5]])
        now, value, _ = s.run([step, loss, train], {x: a, y: b})
        print("step", max(now + 1, now), "loss", value, flush=True)
