"""The MNIST net on MXNet 1.9's parameter server, one server and two workers; prints "steps_per_s".

    replica async|sync S      (the same net and batch as models/mnist_replica.c)
"""
import os
import socket
import subprocess
import sys
import time


def spawn(role, port, args):
    env = dict(os.environ, DMLC_ROLE=role, DMLC_PS_ROOT_URI="127.0.0.1", DMLC_PS_ROOT_PORT=str(port),
               DMLC_NUM_SERVER="1", DMLC_NUM_WORKER="2", OMP_NUM_THREADS="1")
    return subprocess.Popen([sys.executable, "-W", "ignore", os.path.abspath(__file__)] + args, env=env,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def worker(kind, seconds):
    import mxnet as mx
    from mxnet import autograd, gluon, nd
    kv = mx.kv.create("dist_sync" if kind == "sync" else "dist_async")
    net = gluon.nn.Sequential()
    net.add(gluon.nn.Dense(100, activation="relu"), gluon.nn.Dense(10))
    net.initialize(mx.init.Normal(0.03))
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01}, kvstore=kv,
                            update_on_kvstore=True)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    images = [nd.random.uniform(shape=(100, 784)) for _ in range(20)]
    labels = nd.array([i % 10 for i in range(100)])

    def step(i):
        with autograd.record():
            out = loss(net(images[i % 20]), labels)
        out.backward()
        trainer.step(100)
        nd.waitall()
    for i in range(50):
        step(i)
    n, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        step(n)
        n += 1
    rate = n / (time.perf_counter() - begin)
    print("steps_per_s", rate * (1 if kind == "sync" else 2))
    sys.stdout.flush()
    os._exit(0)


def main():
    if os.environ.get("DMLC_ROLE") == "worker":
        worker(sys.argv[2], float(sys.argv[3]))
    elif os.environ.get("DMLC_ROLE"):
        import mxnet  # runs the server or the scheduler, and ends
    else:
        with socket.socket() as k:
            k.bind(("127.0.0.1", 0))
            port = k.getsockname()[1]
        roles = [spawn(r, port, sys.argv[1:]) for r in ("scheduler", "server", "worker", "worker")]
        out, _ = roles[2].communicate(timeout=120)
        print(out.decode().strip())
        for r in roles:
            r.kill()


main()
