"""The MNIST net on MXNet 1.9's parameter server, one server and two workers; prints "steps_per_s".

    replica async|sync S      (the same net and batch as models/mnist_replica.c)
"""
import os
import socket
import subprocess
import sys
import time

import setting


def spawn(role, port, args, reports=False):
    env = dict(os.environ, BENCH_REPORTS="1" if reports else "", DMLC_ROLE=role, DMLC_PS_ROOT_URI="127.0.0.1",
               DMLC_PS_ROOT_PORT=str(port), DMLC_NUM_SERVER="1", DMLC_NUM_WORKER="2")
    return subprocess.Popen([sys.executable, "-W", "ignore", os.path.abspath(__file__)] + args, env=env,
                            stdout=subprocess.PIPE)


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
    images, labels = setting.batches(20)
    images, labels = [nd.array(b) for b in images], [nd.array(b.argmax(1)) for b in labels]

    def step(i):
        with autograd.record():
            out = loss(net(images[i % 20]), labels[i % 20])
        out.backward()
        trainer.step(100)
        nd.waitall()
    for i in range(50):
        step(i)
    n, begin = 0, time.perf_counter()
    # Only worker 0 ends, and prints figures. The other one runs until it is killed: if it ended, worker 0 would wait for it.
    while not os.environ["BENCH_REPORTS"] or time.perf_counter() - begin < seconds:
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
        roles = [spawn(r, port, sys.argv[1:], i == 2) for i, r in enumerate(("scheduler", "server", "worker", "worker"))]
        try:
            out, _ = roles[2].communicate(timeout=120)
            print(out.decode().strip())
            if roles[2].returncode:
                sys.exit(1)
        finally:
            for r in roles:
                r.kill()


main()
