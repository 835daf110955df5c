"""MNIST replicas, one ps and two workers, of Leat and of TensorFlow 1.15, on this machine or on several: global steps/s.

Both are measured alike: by the global step that worker 0 fetches with its training step, from the moment on at which
both workers train: one worker alone does fewer async steps, and more sync ones, than two.
"""
import contextlib
import functools
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading

import common

WORKERS = 2
THREADS = max(1, common.CPUS // WORKERS)  # of each task, as `leat launch` deals the cores out
MNIST = os.path.join(common.TOP, "..", "shared", "data", "mnist")


class Tasks:
    """Processes of a cluster on the machines of a place (network.py). All end with the with statement."""
    def __init__(self, place=None):
        self.place, self.children = place, []
        self.words = tempfile.TemporaryFile("w+", errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for child in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        for child in self.children:
            child.wait()
        if kind:
            self.words.seek(0)
            print("".join(self.words.readlines()[-10:]), file=sys.stderr, flush=True)

    def start(self, machine, command, read=False, **environment):
        """Starts a process. read: its output is read by lines()."""
        command = self.place.inside(machine, command) if self.place else command
        child = subprocess.Popen(command, stdout=subprocess.PIPE if read else subprocess.DEVNULL, stderr=self.words, text=True,
                                 start_new_session=True, env=dict(os.environ, **environment))
        self.children.append(child)
        return child

    def lines(self, child):
        """The lines that the process prints. A process that takes too long is killed, which ends its lines."""
        timer = threading.Timer(common.PATIENCE, child.kill)
        timer.start()
        try:
            yield from child.stdout
        finally:
            timer.cancel()
        raise RuntimeError("%s ended early, or took more than %d s" % (" ".join(child.args), common.PATIENCE))


# ---- Leat ----

LINE = re.compile(r"([0-9.]+): Worker 0: training step (\d+) done \(global step: (\d+)\)")


def rate(lines, sync, seconds):
    """From the lines that worker 0 prints about every second: (time, its steps, global steps). Counting begins with
    two lines between which the other worker has trained as well. A global step is one worker's, or both workers' if sync."""
    first = last = None
    for m in filter(None, map(LINE.search, lines)):
        now = float(m.group(1)), int(m.group(2)), int(m.group(3))
        if first:
            if now[0] - first[0] >= seconds:
                return {"steps_per_s": (now[2] - first[2]) / (now[0] - first[0])}
        elif last:
            own, others = now[1] - last[1], (now[2] - last[2]) * (2 if sync else 1) - (now[1] - last[1])
            if others >= own / 2:
                first = now
        last = now


def program(build, sync, data):
    return ([build + "/models/mnist_replica", "--train_steps", "1000000000"] + ["--sync_replicas"] * sync +
            (["--data_dir", data] if data else []))


def leat_launched(build, sync, seconds, flags, data=None):
    """Started by `leat launch`, on this machine."""
    with Tasks() as tasks:
        command = [build + "/leat", "launch", "--ps", "1", "--workers", str(WORKERS), "--"] + program(build, sync, data) + flags
        return rate(tasks.lines(tasks.start(0, command, read=True)), sync, seconds)


def leat(place, build, sync, seconds, flags, data=None):
    """Started task by task, one on each machine of the place."""
    with Tasks(place) as tasks:
        at = place.addresses()
        command = program(build, sync, data) + flags + ["--ps_hosts", at[0], "--worker_hosts", ",".join(at[1:])]
        threads = {"LEAT_NUM_THREADS": str(THREADS)}
        tasks.start(0, command + ["--job_name", "ps", "--task_index", "0"], **threads)
        first = tasks.start(1, command + ["--job_name", "worker", "--task_index", "0"], read=True, **threads)
        tasks.start(2, command + ["--job_name", "worker", "--task_index", "1"], **threads)
        return rate(tasks.lines(first), sync, seconds)


NAMES = {"grpc": "gRPC", "socket": "socket", "shm": "shared memory"}


@functools.lru_cache(None)
def transports(build, *wanted):
    """(name, flags) for each of the wanted transports that mnist_replica knows. gRPC is always among the allowed ones,
    because tasks find each other by it. A build without the flag uses the last one that is not the socket."""
    own = program(build, False, None)
    if "--transports" not in subprocess.run(own + ["--help"], stdout=subprocess.PIPE, text=True).stdout:
        return [(NAMES[[t for t in wanted if t != "socket"][-1]], [])]
    out = []
    for transport in wanted:
        flags = ["--transports", transport if transport == "grpc" else "grpc," + transport]
        ps = subprocess.Popen(own + flags + ["--job_name=ps", "--task_index=0", "--ps_hosts=127.0.0.1:0",
                                             "--worker_hosts=127.0.0.1:1"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            print("no rows for %s: %s" % (transport, ps.communicate(timeout=2)[1].strip()), flush=True)
        except subprocess.TimeoutExpired:  # it serves, so it knows the flag
            out.append((NAMES[transport], flags))
            ps.kill()
            ps.communicate()
    return out


# ---- TensorFlow ----

def tensorflow(place, python, sync, seconds, **environment):
    with Tasks(place) as tasks:
        at = place.addresses()
        own = [python, "-W", "ignore", common.HERE + "/peers/tensorflow1_cluster.py"]
        text, kind = "ps=%s;worker=%s" % (at[0], ",".join(at[1:])), "sync" if sync else "async"
        tasks.start(0, own + ["serve", text, "ps", "0"], **environment)
        first = tasks.start(1, own + ["worker", text, "0", kind, str(seconds)], read=True, **environment)
        # A worker that finds the variables uninitialised sleeps for 30 s: worker 1 is started when they are.
        second = None
        for line in tasks.lines(first):
            if line.strip() == "initialised" and not second:
                second = tasks.start(2, own + ["worker", text, "1", kind, str(seconds)], **environment)
            elif line.startswith("steps_per_s"):
                return common.figures_of(line)


def tensorflow_both_ways(place, python, sync, seconds, data, units="100"):
    where = dict({"BENCH_DATA": data} if is_there(data) else {}, BENCH_UNITS=units)

    def make(label, **environment):
        return common.Run(label, lambda: tensorflow(place, python, sync, seconds, **dict(environment, **where)),
                          ("tensorflow", place, sync, seconds, data, units, label))
    return common.both_ways(make, THREADS)


# ---- Data ----

def is_there(data):
    """Whether MNIST's files are there; if not, Leat trains on digits that it draws, and peers on noise."""
    return os.path.isdir(data)


@contextlib.contextmanager
def noise():
    """A directory with files in MNIST's format whose images are noise that has no zeros."""
    with tempfile.TemporaryDirectory(prefix="leat-bench-noise-") as path:
        for name, n in (("train", 10000), ("t10k", 1000)):
            pixels = os.urandom(n * 784).replace(b"\0", b"\1")
            with open("%s/%s-images-idx3-ubyte" % (path, name), "wb") as f:
                f.write(struct.pack(">4i", 0x803, n, 28, 28) + pixels)
            with open("%s/%s-labels-idx1-ubyte" % (path, name), "wb") as f:
                f.write(struct.pack(">2i", 0x801, n) + bytes(b % 10 for b in os.urandom(n)))
        yield path
