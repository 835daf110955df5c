"""What clusters of TensorFlow 1.15 on this machine take; prints "name value" lines.

    rtt S | hop S | big S | first | replica async|sync S   (see bench/cluster_bench.c and models/mnist_replica.c)
"""
import os
import socket
import subprocess
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import warnings
warnings.filterwarnings("ignore")


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
    return tf.train.ClusterSpec({job: ["127.0.0.1:%s" % p for p in ps.split(",")]
                                 for job, ps in (part.split("=") for part in text.split(";"))})


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
    text = "ps=%d;worker=%d" % tuple(p)
    begin = time.perf_counter()
    ps = spawn("serve", text, "ps", "0")
    others = [ps]
    import tensorflow as tf
    target = "grpc://127.0.0.1:%d" % p[1]
    if mode == "rtt":
        others.append(spawn("serve", text, "worker", "0"))
    else:
        server = tf.train.Server(cluster(text), job_name="worker", task_index=0)
        target = server.target
    with tf.device("/job:ps/task:0"):
        w = tf.Variable(tf.zeros([25000000 if mode == "big" else 1]))
    x = tf.placeholder(tf.float32, [])
    with tf.device("/job:worker/task:0" if mode != "hop" else "/job:ps/task:0"):
        y = tf.slice(w, [0], [1]) if mode in ("big", "first") else x + 1.0
    with tf.Session(target) as s:
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
    import numpy as np
    import tensorflow as tf
    spec = cluster(text)
    server = tf.train.Server(spec, job_name="worker", task_index=index)
    with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:%d" % index, cluster=spec)):
        step = tf.train.get_or_create_global_step()
        x, y_ = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
        w1 = tf.Variable(tf.truncated_normal([784, 100], stddev=1.0 / 28))
        b1, b2 = tf.Variable(tf.zeros([100])), tf.Variable(tf.zeros([10]))
        w2 = tf.Variable(tf.truncated_normal([100, 10], stddev=0.1))
        h = tf.nn.relu(tf.nn.xw_plus_b(x, w1, b1))
        y = tf.nn.softmax(tf.nn.xw_plus_b(h, w2, b2))
        loss = -tf.reduce_sum(y_ * tf.log(tf.clip_by_value(y, 1e-10, 1.0)))
        opt = tf.train.AdamOptimizer(0.01)
        hooks = []
        if sync:
            opt = tf.train.SyncReplicasOptimizer(opt, replicas_to_aggregate=2, total_num_replicas=2)
            hooks.append(opt.make_session_run_hook(index == 0))
        train = opt.minimize(loss, global_step=step)
    images = [np.random.rand(100, 784).astype(np.float32) for _ in range(20)]
    labels = np.eye(10, dtype=np.float32)[np.random.randint(0, 10, 100)]
    with tf.train.MonitoredTrainingSession(master=server.target, is_chief=index == 0, hooks=hooks,
                                           save_checkpoint_secs=None, save_summaries_steps=None,
                                           log_step_count_steps=None) as s:
        for i in range(50):
            s.run([train, step], {x: images[i % 20], y_: labels})
        begin, first = time.perf_counter(), None
        while True:
            g = s.run([train, step], {x: images[i % 20], y_: labels})[1]
            i += 1
            if first is None:
                first, t0 = g, time.perf_counter()
            t = time.perf_counter() - t0
            if t > seconds and index == 0:  # the other one goes on until it is killed, or this one would wait for it
                break
        print("steps_per_s", (g - first) / t)
        sys.stdout.flush()
        os._exit(0)


def replica(kind, seconds):
    p = ports(3)
    text = "ps=%d;worker=%d,%d" % tuple(p)
    ps = spawn("serve", text, "ps", "0")
    workers = [spawn("worker", text, str(i), kind, str(seconds)) for i in range(2)]
    out, _ = workers[0].communicate()
    print(out.decode().strip())
    print("first_child_mb", memory(ps.pid))
    for k in workers + [ps]:
        k.kill()


mode = sys.argv[1]
if mode == "serve":
    import tensorflow as tf
    tf.train.Server(cluster(sys.argv[2]), job_name=sys.argv[3], task_index=int(sys.argv[4])).join()
elif mode == "worker":
    worker(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "sync", float(sys.argv[5]))
elif mode == "replica":
    replica(sys.argv[2], float(sys.argv[3]))
else:
    steps(mode, float(sys.argv[2]) if len(sys.argv) > 2 else 0)
