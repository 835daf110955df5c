"""Clusters of real servers on free ports, cases with a time limit, one line a case.

A cluster is named by the kind of each task: Cluster(ps=["leat"], worker=["tf", "leat"]); words after
"leat" are more arguments of its server, and "leat-gpus" is a server with four GPUs, made by PoCL. Cases that
want the same cluster one after the other share it; their variables are reset in between. A case
that takes too long has its servers killed, so that whatever it waits for fails.
"""
import atexit
import faulthandler
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LEAT = os.environ.get("INTEROP_LEAT", os.path.join(ROOT, "build", "leat"))
# The Python that has the TensorFlow of tf_server.py: the real peers are 1.15.
TF_PYTHON = os.environ.get("INTEROP_TF1", sys.executable)

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import warnings

warnings.filterwarnings("ignore")
import numpy as np
import tensorflow

if tensorflow.__version__.startswith("1."):
    tf = tensorflow
    TF2 = False
else:
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    TF2 = True
tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)

# More than one: a case that failed is shown, and gets a second try, as the tests of `make test` do.
TRIES = int(os.environ.get("TRIES") or 1)

_running = set()
_claims = []  # the sockets of free_ports


def free_ports(n):
    """n ports that nobody uses now, and that no other test is given while this process lives: it
    holds a Unix socket whose name says which port (tests/port.h). They are below those that
    outgoing connections take."""
    ports = []
    at = 20000 + os.getpid() * 37 % 10000
    while len(ports) < n:
        at = at + 1 if at < 31000 else 20000
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind("\0leat-test-port-%d" % at)
            with socket.socket() as s:
                s.bind(("127.0.0.1", at))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        ports.append(at)
    return ports


class Cluster(object):
    def __init__(self, **jobs):
        self.jobs = jobs
        self.dir = tempfile.mkdtemp(prefix="interop-")
        ports = iter(free_ports(sum(len(kinds) for kinds in jobs.values())))
        self.address = {job: ["localhost:%d" % next(ports) for _ in kinds]
                        for job, kinds in jobs.items()}
        self.process = {}
        for job, kinds in jobs.items():
            for i in range(len(kinds)):
                self.start(job, i)
        for job, kinds in jobs.items():
            for i in range(len(kinds)):
                self.wait(job, i)

    def start(self, job, i):
        spec = ";".join("%s=%s" % (j, ",".join(a)) for j, a in sorted(self.address.items()))
        kind = self.jobs[job][i].split()
        env = dict(os.environ)
        if kind[0] == "leat-gpus":
            env.update(POCL_DEVICES="basic basic basic basic", LEAT_VISIBLE_DEVICES="0,1,2,3",
                       TF_CPP_MIN_LOG_LEVEL="1")
        if kind[0] in ("leat", "leat-gpus"):
            argv = [LEAT, "server", "--cluster", spec, "--job_name", job, "--task_index", str(i)]
            argv += kind[1:]
        else:
            argv = [TF_PYTHON, os.path.join(HERE, "tf_server.py"), spec, job, str(i)]
        log = open(self.log(job, i), "ab")
        p = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env)
        log.close()
        _running.add(p)
        self.process[job, i] = p

    def wait(self, job, i, seconds=60):
        host, port = self.address[job][i].split(":")
        end = time.time() + seconds
        while time.time() < end:
            if self.process[job, i].poll() is not None:
                break
            try:
                socket.create_connection((host, int(port)), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("%s %d does not listen: %s" % (job, i, self.words()))

    def log(self, job, i):
        return os.path.join(self.dir, "%s-%d.log" % (job, i))

    def target(self, job="worker", i=0):
        return "grpc://" + self.address[job][i]

    def kill(self, job, i):
        p = self.process.pop((job, i))
        p.kill()
        p.wait()
        _running.discard(p)

    def alive(self):
        return all(p.poll() is None for p in self.process.values())

    def words(self):
        """What the servers said, for a failed case."""
        said = ""
        for job, kinds in self.jobs.items():
            for i in range(len(kinds)):
                with open(self.log(job, i), errors="replace") as f:
                    text = f.read()[-1500:]
                p = self.process.get((job, i))
                said += "--- %s %d (%s, exit %s)\n%s\n" % (job, i, kinds[i],
                                                          p.poll() if p else "killed", text)
        return said

    def stop(self):
        for job, i in list(self.process):
            self.kill(job, i)

    def end(self):
        """Asks Leat's servers to end, so that sanitizers look for leaks. What was wrong, or None."""
        wrong = ""
        mine = [k for k, p in self.process.items() if self.jobs[k[0]][k[1]].startswith("leat")]
        for k in mine:
            self.process[k].terminate()
        for k in mine:
            try:
                code = self.process[k].wait(30)
            except subprocess.TimeoutExpired:
                code = "none, 30 s after SIGTERM"
            with open(self.log(*k), errors="replace") as f:
                text = f.read()
            if code or "Sanitizer" in text or "runtime error:" in text:
                wrong += "%s %d ended with exit code %s\n%s\n" % (k + (code, text[-6000:]))
        self.stop()
        return wrong or None

    def session(self, job="worker", i=0, **config):
        """A session whose operations end after 25 s unless told otherwise."""
        config.setdefault("operation_timeout_in_ms", 25000)
        return tf.Session(self.target(job, i), config=tf.ConfigProto(**config))


def client(script, *args):
    """A client process of the same TensorFlow that runs a script beside this file."""
    p = subprocess.Popen([sys.executable, os.path.join(HERE, script)] + [str(a) for a in args],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                         universal_newlines=True)
    _running.add(p)
    return p


def finish(p, seconds=60):
    """The lines a client printed; a RuntimeError with its words if it failed."""
    try:
        out, err = p.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
        err += "\n(killed after %d s)" % seconds
    _running.discard(p)
    if p.returncode:
        raise RuntimeError("client ended with %d\n%s\n%s" % (p.returncode, out, err[-3000:]))
    return out.splitlines()


@atexit.register
def kill_all():
    for p in list(_running):
        if p.poll() is None:
            p.kill()


# ---- Cases ----

ONE = {"worker": ["leat"]}
THREE_DEVICES = {"worker": ["leat --devices cpu:3"]}
TWO = {"ps": ["leat"], "worker": ["leat"]}
LEAT_PS = {"ps": ["leat"], "worker": ["tf"]}
TF_PS = {"ps": ["tf"], "worker": ["leat"]}

_cases = []


def case(on=ONE, limit=60, fresh=False):
    """Registers a case: fn(cluster), on each of the clusters `on`. Clients of 2.x get those without
    tasks of TensorFlow 1.15, which refuse attributes that 2.x gives to old ops."""

    def register(fn):
        for jobs in on if isinstance(on, (list, tuple)) else [on]:
            if not TF2 or not any("tf" in kinds for kinds in jobs.values()):
                _cases.append((fn, jobs, limit, fresh))
        return fn

    return register


def raises(kind, fn, *words):
    """fn() fails with exactly this exception, whose message has the words."""
    try:
        got = fn()
    except tf.errors.OpError as e:
        assert type(e) is kind, "%s instead of %s: %s" % (type(e).__name__, kind.__name__, e)
        for w in words:
            assert w in str(e), "no %r in: %s" % (w, e)
        return e
    raise AssertionError("no %s, but %r" % (kind.__name__, got))


def close(a, b, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64),
                               rtol=tolerance, atol=tolerance)


def _name(fn, jobs):
    kinds = ["%s:%s" % (j, "+".join(k)) for j, k in sorted(jobs.items())]
    return "%s.%s [%s]" % (fn.__module__, fn.__name__, " ".join(kinds))


class _Watch(object):
    """Kills the servers of a case that takes too long, and all of us if that does not help."""

    def __init__(self, cluster, limit):
        self.over, self.late = threading.Event(), False
        self.thread = threading.Thread(target=self._watch, args=(cluster, limit))
        self.thread.daemon = True
        self.thread.start()

    def _watch(self, cluster, limit):
        if self.over.wait(limit):
            return
        self.late = True
        cluster.stop()
        if not self.over.wait(20):
            print("FAIL the case does not end even without its servers", flush=True)
            faulthandler.dump_traceback(sys.stdout)
            kill_all()
            os._exit(1)

    def end(self):
        self.over.set()
        self.thread.join()


def _run(fn, cluster, limit):
    """None, or what went wrong."""
    watch = _Watch(cluster, limit)
    wrong = None
    try:
        with tf.Graph().as_default():
            fn(cluster)
    except BaseException as e:  # a failed case is a line, whatever it raised
        if isinstance(e, KeyboardInterrupt):
            raise
        wrong = traceback.format_exc()
    watch.end()
    if watch.late:
        return "no end after %d s\n%s" % (limit, wrong)
    if not wrong and not cluster.alive():
        return "a server died"
    return wrong


def _chosen(words):
    """Cases whose name has one of the words, those on the same cluster one after the other."""
    chosen = [(c, _name(c[0], c[1])) for c in _cases]
    chosen = [(c, n) for c, n in chosen if not words or any(w in n for w in words)]
    order = []
    for c, _ in chosen:
        if c[1] not in order:
            order.append(c[1])
    return sorted(chosen, key=lambda x: order.index(x[0][1]))


def _end(cluster):
    """Ends its servers; 1 if one of them did not end well."""
    wrong = cluster.end()
    if wrong:
        print("FAIL %s\n%s" % (tensorflow.__version__, wrong.rstrip()), flush=True)
    return 1 if wrong else 0


def _start(jobs):
    """A cluster. Somebody may have taken a port in the meantime: it gets a second try."""
    try:
        return Cluster(**jobs)
    except RuntimeError as e:
        print("again %s" % e, flush=True)
        kill_all()
        return Cluster(**jobs)


def main(words):
    """Runs the cases whose name has one of the words; all without words."""
    cluster, jobs, failed, ran = None, None, 0, 0
    version = tensorflow.__version__
    for (fn, want, limit, fresh), name in _chosen(words):
        begin = time.time()
        if cluster and (fresh or jobs != want):
            failed += _end(cluster)
            cluster = None
        if not cluster:
            cluster, jobs = _start(want), want
        else:
            tf.Session.reset(cluster.target(sorted(want)[-1]))
        wrong = _run(fn, cluster, limit)
        if wrong and (TRIES > 1 or any("tf" in kinds for kinds in want.values())):
            # TensorFlow's servers wedge now and then (so they do among themselves): once more.
            print("again %s %s\n%s" % (version, name, wrong.rstrip()), flush=True)
            print(cluster.words(), flush=True)
            cluster.stop()
            cluster = _start(want)
            wrong = _run(fn, cluster, limit)
        ran += 1
        print("%s %s %s %.1f s" % ("FAIL" if wrong else "ok  ", version, name,
                                   time.time() - begin), flush=True)
        if wrong:
            failed += 1
            print(wrong.rstrip() + "\n" + cluster.words(), flush=True)
        if wrong or fresh or len(cluster.process) < sum(len(k) for k in want.values()):
            failed += _end(cluster) if not wrong else 0
            cluster.stop()
            cluster = None
    if cluster:
        failed += _end(cluster)
    print("%s: %d cases, %d failed" % (version, ran, failed), flush=True)
    return 1 if failed or not ran else 0
