"""What clusters of TensorFlow 1.15 on this machine take; prints "name value" lines.

    rtt S | hop S | big S | first             as bench/cluster_bench.c
    serve CLUSTER JOB TASK                    a task that serves until it is killed
    worker CLUSTER TASK async|sync S          a worker that trains as models/mnist_replica.c. Worker 0 prints
                                              "initialised" when the variables are, and worker 1 should be started
                                              (earlier it would sleep for 30 s); then global steps a second

CLUSTER is "ps=HOST:PORT;worker=HOST:PORT,HOST:PORT".
"""
import os
import socket
import subprocess
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import warnings
warnings.filterwarnings("ignore")

import setting


def ports(n):
    held = [socket.socket() for _ in range(n)]
    for k in held:
        k.bind(("127.0.0.1", 0))
    out = [k.getsockname()[1] for k in held]
    for k in held:
        k.close()
    return out


def cluster(text):
    import tensorflow as tf
    tf.compat.v1.logging.set_verbosity("ERROR")
    return tf.train.ClusterSpec({job: tasks.split(",") for job, tasks in (part.split("=") for part in text.split(";"))})


def server_of(text, job, index):
    import tensorflow as tf
    return tf.train.Server(cluster(text), job_name=job, task_index=index, config=setting.tensorflow_config())


def spawn(*args):
    return subprocess.Popen([sys.executable, "-W", "ignore", os.path.abspath(__file__)] + list(args),
                            stderr=subprocess.DEVNULL, stdout=subprocess.PIPE)


def measure(run, seconds):
    times, begin = [], time.perf_counter()
    last = begin
    while last - begin < seconds:
        run()
        at = time.perf_counter()
        if at - begin > seconds * 0.1:
            times.append(at - last)
        last = at
    times.sort()
    return times[len(times) // 2], times[int((len(times) - 1) * 0.99)]


def memory(pid):
    return next(int(l.split()[1]) / 1024 for l in open("/proc/%d/status" % pid) if l.startswith("VmHWM"))


def steps(mode, seconds):
    p = ports(2)
    text = "ps=127.0.0.1:%d;worker=127.0.0.1:%d" % tuple(p)
    begin = time.perf_counter()
    ps = spawn("serve", text, "ps", "0")
    others = [ps]
    import tensorflow as tf
    target = "grpc://127.0.0.1:%d" % p[1]
    if mode == "rtt":
        others.append(spawn("serve", text, "worker", "0"))
    else:
        server = server_of(text, "worker", 0)
        target = server.target
    with tf.device("/job:ps/task:0"):
        w = tf.Variable(tf.zeros([25000000 if mode == "big" else 1]))
    x = tf.placeholder(tf.float32, [])
    with tf.device("/job:worker/task:0" if mode != "hop" else "/job:ps/task:0"):
        y = tf.slice(w, [0], [1]) if mode in ("big", "first") else x + 1.0
    with tf.Session(target, config=setting.tensorflow_config()) as s:
        s.run(tf.global_variables_initializer())
        if mode == "first":
            s.run(y)
            print("first_s", time.perf_counter() - begin)
        elif mode == "big":
            print("gb_per_s", 0.1 / measure(lambda: s.run(y), seconds)[0])
        else:
            mid, p99 = measure(lambda: s.run(y, {x: 1.0}), seconds)
            print("rtt_us", mid * 1e6)
            print("rtt_p99_us", p99 * 1e6)
        print("first_child_mb", memory(ps.pid))
    sys.stdout.flush()
    for k in others:
        k.kill()
    os._exit(0)


def worker(text, index, sync, seconds):
    import tensorflow as tf
    spec, server = cluster(text), server_of(text, "worker", index)
    with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % index, cluster=spec)):
        step = tf.train.get_or_create_global_step()
        x, y_ = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
        w1 = tf.Variable(tf.truncated_normal([784, setting.UNITS], stddev=1.0 / 28))
        b1, b2 = tf.Variable(tf.zeros([setting.UNITS])), tf.Variable(tf.zeros([10]))
        w2 = tf.Variable(tf.truncated_normal([setting.UNITS, 10], stddev=0.1))
        h = tf.nn.relu(tf.nn.xw_plus_b(x, w1, b1))
        y = tf.nn.softmax(tf.nn.xw_plus_b(h, w2, b2))
        loss = -tf.reduce_sum(y_ * tf.log(tf.clip_by_value(y, 1e-10, 1.0)))
        opt = tf.train.AdamOptimizer(0.01)
        hooks = []
        if sync:
            opt = tf.train.SyncReplicasOptimizer(opt, replicas_to_aggregate=2, total_num_replicas=2)
            hooks.append(opt.make_session_run_hook(index == 0))
        train = opt.minimize(loss, global_step=step)
    images, labels = setting.batches(20)
    config = setting.tensorflow_config()  # workers need not wait for each other's sessions
    config.device_filters.extend(["/job:ps", "/job:worker/task:%d" % index])
    with tf.train.MonitoredTrainingSession(master=server.target, is_chief=index == 0, hooks=hooks,
                                           config=config, save_checkpoint_secs=None,
                                           save_summaries_steps=None, log_step_count_steps=None) as s:
        print("initialised", flush=True)
        i, history, first = 0, [0] * 51, None
        while True:
            g = s.run([train, step], {x: images[i % 20], y_: labels[i % 20]})[1]
            i += 1
            history = history[1:] + [g]
            if first is None:  # until the other worker has done its part of the last steps
                if i > 50 and (g - history[0]) * (2 if sync else 1) - 50 >= 25:
                    first, begin = g, time.perf_counter()
            elif index == 0 and time.perf_counter() - begin > seconds:
                break  # the other worker runs until it is killed: if it ended, this one would wait for it
        print("steps_per_s", (g - first) / (time.perf_counter() - begin))
        sys.stdout.flush()
        os._exit(0)


mode = sys.argv[1]
if mode == "serve":
    server_of(sys.argv[2], sys.argv[3], int(sys.argv[4])).join()
elif mode == "worker":
    worker(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "sync", float(sys.argv[5]))
else:
    steps(mode, float(sys.argv[2]) if len(sys.argv) > 2 else 0)
