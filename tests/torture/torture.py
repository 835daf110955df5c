#!/usr/bin/env python3
"""Runs clusters of mnist_replica for a time, does things to them, and checks as it goes:

- steps of every worker go on within a stated time after each fault, and begin no earlier than at
  the newest checkpoint that there was when the fault came; after SIGTERM, no step is lost;
- the newest checkpoint is readable, and its step does not go back;
- memory, descriptors and threads of the processes that survive stay the same;
- no process ends unasked; after SIGTERM each ends with exit code 0, in time;
- no log has a line of a crash or of a sanitizer.

A failure prints the seed, all that was done, and where the logs are.
"""
import argparse, os, random, shutil, subprocess, sys, tempfile, time

import faults
from cluster import Cluster, Failed, die_with_parent, run


class Limits:
    """What is allowed; sanitized programs are slower and keep freed memory."""

    def __init__(self, build):
        with open(os.path.join(build, 'CMakeCache.txt')) as f:
            sanitized = 'LEAT_SANITIZE:STRING=\n' not in f.read()
        self.recovery = 180 if sanitized else 60  # seconds until all workers make steps again
        self.end = 120 if sanitized else 40       # seconds from SIGTERM to the end
        self.settle = 60 if sanitized else 30     # seconds until what a fault left behind is gone
        self.warm = 3                             # faults after which a process has what it needs
        memory = 400000 if sanitized else 24000
        self.growth = (lambda kb: memory + kb // 5, lambda n: 12, lambda n: 6)
        self.environment = {'ASAN_OPTIONS': 'quarantine_size_mb=8', 'UBSAN_OPTIONS': 'print_stacktrace=1'}


def own_network():
    """Runs this program again in a network namespace of its own, where links can be cut."""
    if os.environ.get('LEAT_TORTURE_NETWORK'):
        return
    unshare = ['unshare', '-n'] if os.geteuid() == 0 else ['unshare', '-rn']
    if not shutil.which('ip') or not shutil.which('nsenter') or run(unshare + ['ip', 'link']).returncode:
        print('without iproute2 and the right to make network namespaces: no fault "cut"')
        return
    os.environ['LEAT_TORTURE_NETWORK'] = '1'
    os.execvp(unshare[0], unshare + [sys.executable] + sys.argv)


def joined_namespace():
    """The process of another network namespace, joined to this one by the link v0."""
    run(['ip', 'link', 'delete', 'v0'])
    peer = subprocess.Popen(['unshare', '-n', 'sleep', '1000000'], preexec_fn=die_with_parent)
    inside = ['nsenter', '-t', str(peer.pid), '-n', '--', 'ip']
    mine = os.readlink('/proc/self/ns/net')
    while os.readlink('/proc/%d/ns/net' % peer.pid) == mine:
        time.sleep(0.01)
    for argv in (['ip', 'link', 'add', 'v0', 'type', 'veth', 'peer', 'name', 'v1', 'netns', str(peer.pid)],
                 ['ip', 'addr', 'add', '10.77.0.1/24', 'dev', 'v0'], ['ip', 'link', 'set', 'v0', 'up'],
                 inside + ['addr', 'add', '10.77.0.2/24', 'dev', 'v1'], inside + ['link', 'set', 'v1', 'up'],
                 inside + ['link', 'set', 'lo', 'up']):
        done = run(argv)
        if done.returncode:
            raise Failed('%s: %s' % (' '.join(argv), done.stdout))
    return peer


def tls(folder):
    """Flags for mutual TLS, by a certificate that signs itself; none without the openssl command."""
    cert, key = os.path.join(folder, 'task.pem'), os.path.join(folder, 'task.key')
    if not shutil.which('openssl'):
        return []
    made = run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                '-days', '2', '-subj', '/CN=torture', '-addext', 'subjectAltName=IP:127.0.0.1,IP:10.77.0.1,IP:10.77.0.2',
                '-keyout', key, '-out', cert])
    if made.returncode:
        raise Failed('openssl: ' + made.stdout)
    return ['--tls_cert', cert, '--tls_key', key, '--tls_ca', cert, '--tls_mutual']


class Soak:
    def __init__(self, options):
        self.o = options
        self.limits = Limits(options.build)
        self.begin = time.monotonic()
        self.done = []  # what was done, and when
        self.folder = tempfile.mkdtemp(prefix='leat-torture-')

    def say(self, what):
        self.done.append('%7.1f s  %s' % (time.monotonic() - self.begin, what))
        print(self.done[-1], flush=True)

    def left(self):
        return self.o.seconds - (time.monotonic() - self.begin)

    def choices(self, sync, joined):
        names = [n for n in self.o.faults.split(',') if n] or [
            n for n in faults.ALL if n not in self.o.without.split(',')]
        if sync:  # a second client would take the tokens of the replica
            names = [n for n in names if n != 'vanish']
        if not joined:
            names = [n for n in names if n != 'cut']
        return names

    def round(self, number, rng, seconds):
        sync, joined = number % 2 == 1, number % 3 == 2 and 'LEAT_TORTURE_NETWORK' in os.environ
        transports = rng.choice(['grpc,socket,shm', 'grpc,socket,shm', 'grpc,socket', 'grpc'])
        names = self.choices(sync, joined)
        if not names:
            return
        n_ps, workers = rng.randint(1, 2), rng.randint(2, 3)
        folder = os.path.join(self.folder, 'round%d' % number)
        os.makedirs(folder)
        security = tls(folder) if rng.random() < 0.3 else []
        self.say('round %d: %d ps, %d workers, %s, %s%s%s' % (
            number, n_ps, workers, 'synchronous' if sync else 'asynchronous', transports,
            ', TLS' if security else '', ', the ps in another network' if joined else ''))
        peer = joined_namespace() if joined else None
        c = Cluster(self.o.build, folder, n_ps, workers, sync, transports, security, self.limits,
                    peer.pid if peer else None)
        until = time.monotonic() + seconds
        try:
            c.start()
            turn = []  # every fault once, in any order, before one comes again
            while time.monotonic() < until:
                turn = turn or rng.sample(names, len(names))
                name = turn.pop()
                c.floor = c.checkpoint()
                began = time.monotonic()
                faults.ALL[name](c, rng)
                lasted = time.monotonic() - began
                took = c.steps_go_on(c.workers, 'after ' + name)
                c.checkpoint()
                c.flat()
                self.say('%s: %.1f s, then steps after %.1f s; global step %d'
                         % (name, lasted, took, c.workers[0].lines[-1]))
            self.say('ps0: %d KB, %d descriptors, %d threads' % c.ps[0].measure())
            c.end()
        except (Failed, OSError) as e:  # OSError: a process ended while it was measured
            self.fail(str(e), c)
        finally:
            c.abandon()
            if peer:
                peer.kill()
                peer.wait()
        shutil.rmtree(folder)

    def fail(self, why, c):
        print('\nFAILED: %s\nseed %d; what was done:' % (why, self.o.seed))
        for line in self.done:
            print('  ' + line)
        for t in c.tasks:
            if t.starts:
                print('the end of %s:' % t.path)
                with open(t.path, errors='replace') as f:
                    print(''.join('  ' + l for l in f.readlines()[-8:]))
        print('logs: %s' % self.folder)
        sys.exit(1)

    def run(self):
        rng = random.Random(self.o.seed)
        print('seed %d, %d s; steps must go on within %d s of a fault'
              % (self.o.seed, self.o.seconds, self.limits.recovery))
        length, number = max(55, self.o.seconds / 6), 0
        while self.left() > 20 or number == 0:
            self.round(number, random.Random(rng.random()), min(length, max(self.left(), 10)))
            number += 1
        shutil.rmtree(self.folder)
        self.say('%d rounds passed' % number)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--build', default='build', help='directory of the binaries')
    p.add_argument('--seconds', type=float, default=1800)
    p.add_argument('--seed', type=int, default=None)
    p.add_argument('--faults', default='', help='only these: ' + ','.join(faults.ALL))
    p.add_argument('--without', default='', help='all but these')
    o = p.parse_args()
    for name in (o.faults + ',' + o.without).split(','):
        if name and name not in faults.ALL:
            p.error('there is no fault "%s"; there are %s' % (name, ', '.join(faults.ALL)))
    own_network()
    if os.environ.get('LEAT_TORTURE_NETWORK'):
        run(['ip', 'link', 'set', 'lo', 'up'])
    o.seed = random.randrange(1 << 31) if o.seed is None else o.seed
    o.build = os.path.abspath(o.build)
    Soak(o).run()


if __name__ == '__main__':
    main()
