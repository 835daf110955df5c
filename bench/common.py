"""What the benchmark scripts share: arguments, peers' environments, running programs for their figures in interleaved
rounds, tables, writing the document.

    SCRIPT [BUILD [ROUNDS [SECONDS]]] [--short]

BUILD is where Leat was built ("build"), ROUNDS how often everything is measured (5), SECONDS how long a figure takes
(4). --short: one round of a second, printed but not written into docs/benchmarks.md, to see that it all works.
BENCH_VENVS names the directory of the peers' virtual environments, which are made where they are missing (BUILD);
BENCH_TF1, BENCH_TF2, BENCH_TORCH and BENCH_MXNET name a python that has the framework.
"""
import collections
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
PATIENCE = 180  # seconds
CPUS = len(os.sched_getaffinity(0))

Options = collections.namedtuple("Options", "build rounds seconds short")


def options():
    args = [a for a in sys.argv[1:] if a != "--short"]
    short = "--short" in sys.argv[1:]
    build = os.path.abspath(args[0] if args else "build")
    rounds = int(args[1]) if len(args) > 1 else 1 if short else 5
    return Options(build, rounds, float(args[2]) if len(args) > 2 else 1 if short else 4, short)


# ---- Peers ----

def python_with(variable, build, name, pythons, packages):
    """A python that has these packages: the one that the variable names, else a virtual environment."""
    if os.environ.get(variable):
        return os.environ[variable]
    venv = os.path.abspath(os.path.join(os.environ.get("BENCH_VENVS", build), "venv-" + name))
    exe = os.path.join(venv, "bin", "python")
    if not os.path.exists(os.path.join(venv, "ready")):
        for python in pythons:
            python = os.path.expanduser(python)
            try:
                if subprocess.run([python, "--version"], capture_output=True).returncode == 0:
                    break
            except FileNotFoundError:
                pass
        else:
            raise SystemExit("bench: none of %s is there for %s; %s may name a python that has it" % (
                ", ".join(pythons), " ".join(packages), variable))
        print("making", venv, flush=True)
        subprocess.run([python, "-m", "venv", venv], check=True)
        subprocess.run([exe, "-m", "pip", "install", "-q"] + packages, check=True)
        open(os.path.join(venv, "ready"), "w").close()
    return exe


def tensorflow1(build):
    return python_with("BENCH_TF1", build, "tf1", ["~/.pyenv/versions/3.7.16/bin/python", "python3.7"],
                       ["tensorflow==1.15.5", "protobuf<3.21"])


def tensorflow2(build):
    return python_with("BENCH_TF2", build, "tf2", ["python3"], ["tensorflow"])


def torch(build):
    return python_with("BENCH_TORCH", build, "torch", ["python3"], ["torch", "numpy"])


def mxnet(build):
    return python_with("BENCH_MXNET", build, "mxnet", ["~/.pyenv/versions/3.8.18/bin/python", "python3.8"],
                       ["mxnet==1.9.1", "numpy<1.24"])


# ---- Figures ----

def figures_of(text):
    """The "name value" lines of a program's output."""
    return {k: float(v) for k, v in (line.split() for line in text.splitlines() if len(line.split()) == 2)}


def figures(command, **environment):
    """The figures that a program prints, and the seconds that it took. A program that hangs is killed with its
    children, and run again; of one that fails the last lines of its output are shown."""
    words = tempfile.TemporaryFile("w+", errors="replace")
    for attempt in range(3):
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=words, text=True, start_new_session=True,
                                 env=dict(os.environ, **environment))
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
    return dict(figures_of(out), seconds=seconds)


# One way to get a figure. label: which one, if a column has several; measure(): gives figures by name. Within a round,
# runs with the same key are run once.
Run = collections.namedtuple("Run", "label measure key")
# A row of a table: its title, the name of its figure, whether more is better, and the runs by column.
Row = collections.namedtuple("Row", "title figure more columns")
# The median, the least and the most of a figure over all rounds; where a column has several runs, those of the best.
Cell = collections.namedtuple("Cell", "median least most label")


def run_of(command, label="", **environment):
    return Run(label, lambda: figures(command, **environment), (tuple(command), tuple(sorted(environment.items()))))


def both_ways(make, threads):
    """A peer's runs: with as many threads as Leat's tasks have, and with its own default. Made by make(label, **environment)."""
    return [make("%d thread%s" % (threads, "s" * (threads > 1)), BENCH_THREADS=str(threads)), make("as it comes")]


def peer(command, threads=CPUS, **environment):
    return both_ways(lambda label, **more: run_of(command, label, **dict(environment, **more)), threads)


def measure(plan, rounds):
    """The cells of a plan's rows: {(title, column): Cell}."""
    values = {}
    for r in range(rounds):
        seen = {}
        for row in plan:
            for name, runs in row.columns.items():
                for run in runs:
                    key = run.key or (run,)
                    if key not in seen:
                        seen[key] = run.measure()
                    value = seen[key][row.figure]
                    values.setdefault((row.title, name), {}).setdefault(run.label, []).append(value)
                    print("round %d: %s: %s %.4g%s" % (r + 1, row.title, name, value, run.label and " (%s)" % run.label),
                          flush=True)
    better = {row.title: max if row.more else min for row in plan}
    return {at: better[at[0]]((Cell(statistics.median(v), min(v), max(v), label) for label, v in runs.items()),
                              key=lambda c: c.median) for at, runs in values.items()}


# ---- The document ----

def show(cell):
    if not cell:
        return "-"
    return "%.4g [%.4g..%.4g]" % cell[:3] + (cell.label and " (%s)" % cell.label)


def ratio(mine, peers, more):
    """Leat's figure to that of the best peer."""
    peers = [p.median for p in peers if p]
    if not mine or not peers:
        return "-"
    best = max(peers) if more else min(peers)
    if more:
        return "%.*fx" % (2 if mine.median < 10 * best else 1, mine.median / best)
    return "1/%.*f" % (best < 100 * mine.median, best / mine.median)


def table(plan, cells, columns, ratios):
    """ratios: {heading: columns that the first one is compared to}."""
    text = "| what | %s |\n" % " | ".join(list(columns) + list(ratios)) + "|---" * (1 + len(columns) + len(ratios)) + "|\n"
    for row in plan:
        at = [cells.get((row.title, c)) for c in columns]
        to = [ratio(at[0], [cells.get((row.title, c)) for c in peers], row.more) for peers in ratios.values()]
        text += "| %s | %s |\n" % (row.title, " | ".join([show(c) for c in at] + to))
    return text.rstrip()


def cpu():
    name = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "")
    return "%s, %d cores, Linux %s" % (name, os.cpu_count(), platform.release())


def machine(rounds):
    return cpu() + "; medians [least..most] of %d interleaved rounds." % rounds


def write(what, text, short=False):
    """Puts text between the marks of this name in docs/benchmarks.md."""
    print("\n%s\n" % text, flush=True)
    if short:
        return
    begin, end = "<!-- %s: written by bench -->" % what, "<!-- end of %s -->" % what
    path = os.path.join(TOP, "docs", "benchmarks.md")
    old = open(path).read()
    head, rest = old.split(begin, 1)
    open(path, "w").write(head + begin + "\n" + text + "\n" + end + rest.split(end, 1)[1])
