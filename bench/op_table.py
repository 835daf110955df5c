"""Where the time of a step goes, by op, against what one thread of the machine can do (the roof)."""
import collections
import json
import os
import re
import statistics
import tempfile

import common


def traced(command, seconds):
    """The figures of a program that writes traces, and the median time of each node of a step in ms: {(name, op): ms}."""
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "trace")
        roof = common.figures(command + [str(seconds), path], LEAT_NUM_THREADS="1")
        times = collections.defaultdict(list)
        for line in open(path):
            for e in json.loads(line)["traceEvents"]:
                if e.get("ph") == "X":
                    times[e["args"]["name"], e["name"]].append(e["dur"] / 1e3)
    return roof, {at: statistics.median(v) for at, v in times.items()}


def short_name(name, drop):
    for part in drop:
        name = name.replace(part, "")
    return name


def table(command, seconds, work_of, tensor_mb, drop=(), together=False):
    """work_of(name, op): GFLOP of a node, and GB that it has to read and write; None: not known. drop: parts of names that
    are left out. together: nodes whose names differ in numbers alone are one row, with the sum of their times."""
    roof, nodes = traced(command, seconds)
    groups = collections.defaultdict(lambda: [0, 0, 0, 0])
    for (name, op), ms in nodes.items():
        gflop, gb = work_of(name, op) or (0, 0)
        title = short_name(re.sub(r"_\d+(?=/|$)", "", name) if together else name, drop)
        groups[title, op] = [a + b for a, b in zip(groups[title, op], (ms, gflop, gb, 1))]
    rows = sorted(((ms, gflop, gb, n, name, op) for (name, op), (ms, gflop, gb, n) in groups.items()), reverse=True)
    whole = sum(row[0] for row in rows)
    text = "One thread; a product in cache: %.0f GFLOP/s, a sum of two tensors of %d MB: %.1f GB/s; all ops of a step: %.1f ms.\n\n" % (
        roof["product_gflops"], tensor_mb, roof["memory_gb_per_s"], whole)
    text += "| node | op |%s ms | of the step | GFLOP/s | GB/s | of the roof |\n|---|---|%s---|---|---|---|---|\n" % (
        " nodes |" * together, "---|" * together)
    for ms, gflop, gb, n, name, op in rows:
        if ms < 0.01 * whole:
            break
        best = max(gflop / roof["product_gflops"], gb / roof["memory_gb_per_s"]) * 1e3
        text += "| %s | %s |%s %.2f | %.1f %% | %s | %s | %s |\n" % (
            name, op, " %d |" % n if together else "", ms, 100 * ms / whole,
            "%.0f" % (gflop / ms * 1e3) if gflop else "-", "%.1f" % (gb / ms * 1e3) if gb else "-",
            "%.0f %%" % (100 * best / ms) if best else "-")
    return text.rstrip()
