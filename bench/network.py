"""Machines for benchmarks: this one, or several network namespaces that are joined by a switch.

A namespace has its own addresses and its own loopback device, so tasks in different ones reach each other only
through the switch, as tasks on different machines do. What they send never leaves this machine.
"""
import atexit
import os
import re
import signal
import socket
import subprocess
import sys

PREFIX = "leat-bench-"  # then the id of the process that made it, and what it is


class Unavailable(Exception):
    """Network namespaces, or a switch between them, cannot be made here; the message says why."""


class ThisMachine:
    """Every task on the loopback device."""
    def __init__(self, n):
        self.n = n

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def addresses(self):
        """host:port for each task; the ports are free, and different in each call."""
        held = [socket.socket() for _ in range(self.n)]
        for s in held:
            s.bind(("127.0.0.1", 0))
        out = ["127.0.0.1:%d" % s.getsockname()[1] for s in held]
        for s in held:
            s.close()
        return out

    def inside(self, i, command):
        """The command that runs `command` on machine i."""
        return command


class Machines:
    """n network namespaces joined by a bridge, or with a delay (ms, each way) by bench/delay_link. Use it in a with
    statement: at its end the namespaces are removed and their processes killed, also if a signal ends this program."""
    def __init__(self, n, build, delay_ms=0):
        own = PREFIX + "%d-" % os.getpid()
        self.names, self.switch = [own + str(i) for i in range(n)], own + "switch"
        self.build, self.delay_ms, self.link, self.port = build, delay_ms, None, 2222

    def __enter__(self):
        remove_left_over()
        atexit.register(self.remove)
        for s in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(s, lambda number, _: sys.exit(128 + number))  # atexit functions run
        try:
            for name in self.names:
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "lo", "up")
            if self.delay_ms:
                self.join_by_delay()
            else:
                self.join_by_bridge()
            for i, name in enumerate(self.names):
                ip("-n", name, "addr", "add", self.host(i) + "/24", "dev", "link")
                ip("-n", name, "link", "set", "dev", "link", "txqueuelen", "10000", "up")
        except Unavailable:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def join_by_bridge(self):
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "name", "bridge0", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge0", "up")
        for i, name in enumerate(self.names):
            ip("-n", self.switch, "link", "add", "name", "port%d" % i, "type", "veth", "peer", "name", "link", "netns", name)
            ip("-n", self.switch, "link", "set", "port%d" % i, "master", "bridge0", "up")

    def join_by_delay(self):
        self.link = subprocess.Popen([self.build + "/bench/delay_link", str(self.delay_ms)] + self.names, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.link.stdout.readline() != "ready\n":
            raise Unavailable(self.link.stderr.read().strip())

    def host(self, i):
        return "10.91.0.%d" % (i + 1)

    def addresses(self):
        """host:port for each machine; a different port in each call, so that no connection of an earlier run is in the way."""
        self.port += 1
        return ["%s:%d" % (self.host(i), self.port) for i in range(len(self.names))]

    def inside(self, i, command):
        return ["ip", "netns", "exec", self.names[i]] + command

    def round_trip(self):
        """Seconds that a TCP connection from machine 1 to machine 0 takes, which is one round trip; the least of several."""
        listen = "import socket; s = socket.create_server(('%s', 2222)); print('ready', flush=True)\nwhile 1: s.accept()"
        call = ("import socket, time\ndef once():\n t = time.perf_counter(); socket.create_connection(('%s', 2222)).close()\n"
                " return time.perf_counter() - t\nprint(min(once() for _ in range(10)))")
        server = subprocess.Popen(self.inside(0, [sys.executable, "-c", listen % self.host(0)]), stdout=subprocess.PIPE)
        server.stdout.readline()
        try:
            return float(subprocess.check_output(self.inside(1, [sys.executable, "-c", call % self.host(0)])))
        finally:
            server.kill()
            server.wait()

    def remove(self):
        atexit.unregister(self.remove)
        for name in self.names + [self.switch]:
            remove_namespace(name)
        if self.link:
            self.link.kill()
            self.link.wait()
            self.link = None


def ip(*args):
    try:
        done = subprocess.run(("ip",) + args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError:
        raise Unavailable("there is no command `ip` (Debian package iproute2)")
    if done.returncode != 0:
        raise Unavailable("`ip %s`: %s%s" % (" ".join(args), done.stdout.strip(),
                                             " (network namespaces need root)" if os.geteuid() else ""))
    return done.stdout


def remove_namespace(name):
    """Removes a namespace that this program has made, and kills the processes in it."""
    if not os.path.exists("/run/netns/" + name):
        return
    for pid in ip("netns", "pids", name).split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    ip("netns", "del", name)


def remove_left_over():
    """Removes namespaces of benchmarks that were killed before they could do so."""
    for name in os.listdir("/run/netns") if os.path.isdir("/run/netns") else []:
        made = re.match(PREFIX + r"(\d+)-", name)
        if made and not os.path.exists("/proc/" + made.group(1)):
            remove_namespace(name)
