"""What the benchmark scripts share: peers' environments, running a program for its figures, writing the document."""
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
PATIENCE = 180  # seconds


def python_with(variable, build, name, pythons, packages):
    """A python that has these packages: the one that the variable names, else a virtual environment beside the build."""
    if os.environ.get(variable):
        return os.environ[variable]
    venv = os.path.abspath(os.path.join(build, "venv-" + name))
    exe = os.path.join(venv, "bin", "python")
    if not os.path.exists(os.path.join(venv, "ready")):
        for python in pythons:
            python = os.path.expanduser(python)
            if subprocess.run([python, "--version"], capture_output=True).returncode == 0:
                break
        print("making", venv, flush=True)
        subprocess.run([python, "-m", "venv", venv], check=True)
        subprocess.run([exe, "-m", "pip", "install", "-q"] + packages, check=True)
        open(os.path.join(venv, "ready"), "w").close()
    return exe


def tensorflow1(build):
    return python_with("BENCH_TF1", build, "tf1", ["~/.pyenv/versions/3.7.16/bin/python", "python3.7"],
                       ["tensorflow==1.15.5", "protobuf<3.21"])


def figures(command):
    """The "name value" lines that a program prints, and the seconds that it took. One that hangs is ended with
    what it started, and run again; of one that fails the last words are shown."""
    words = tempfile.TemporaryFile("w+", errors="replace")
    for attempt in range(3):
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=words, text=True, start_new_session=True)
        try:
            out = child.communicate(timeout=PATIENCE)[0]
            break
        except subprocess.TimeoutExpired:
            print("hangs:", " ".join(command), flush=True)
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    seconds = time.perf_counter() - start
    if child.returncode != 0:
        words.seek(0)
        print("".join(words.readlines()[-10:]), file=sys.stderr, flush=True)
        raise subprocess.CalledProcessError(child.returncode, command)
    return dict([(k, float(v)) for k, v in (line.split() for line in out.splitlines() if len(line.split()) == 2)],
                seconds=seconds)


def cpu():
    name = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "")
    return "%s, %d cores, Linux %s" % (name, os.cpu_count(), platform.release())


def machine(rounds):
    return cpu() + "; medians [least..most] of %d interleaved rounds." % rounds


def write(what, text):
    """Puts text between the marks of this name in docs/benchmarks.md."""
    begin, end = "<!-- %s: written by bench -->" % what, "<!-- end of %s -->" % what
    path = os.path.join(TOP, "docs", "benchmarks.md")
    old = open(path).read()
    head, rest = old.split(begin, 1)
    open(path, "w").write(head + begin + "\n" + text + "\n" + end + rest.split(end, 1)[1])
    print(text)
