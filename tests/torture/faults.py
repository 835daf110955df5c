"""The faults: each does something to a cluster, and returns when all its tasks run again. The checks
that follow every fault are torture.py's."""
import os, signal, socket, subprocess, time

from cluster import Failed, Task, die_with_parent, run


def kill(c, rng, t):
    """SIGKILL; the rest goes on meanwhile, if the task is a worker and rounds need no chief."""
    others = [w for w in c.workers if w is not t]
    t.kill()
    if t not in c.ps and not (c.sync and t is c.workers[0]) and rng.random() < 0.5:
        c.steps_go_on(others, 'while %s was dead' % t.name)
    else:
        c.watch(rng.uniform(0, 3))
    t.start()


def kill_worker(c, rng):
    kill(c, rng, rng.choice(c.workers[1:]))


def kill_chief(c, rng):
    kill(c, rng, c.workers[0])


def kill_ps(c, rng):
    kill(c, rng, rng.choice(c.ps))


def kill_all(c, rng):
    for t in rng.sample(c.tasks, len(c.tasks)):
        t.kill()
    for t in rng.sample(c.tasks, len(c.tasks)):
        t.start()
        c.watch(rng.uniform(0, 1))


def pause(c, rng, t):
    """SIGSTOP, for less or for more than a lease (10 s)."""
    t.signal(signal.SIGSTOP)
    c.watch(rng.choice([rng.uniform(0, 2), rng.uniform(2, 8), rng.uniform(11, 15)]))
    t.signal(signal.SIGCONT)


def pause_worker(c, rng):
    pause(c, rng, rng.choice(c.workers[1:]))


def pause_chief(c, rng):
    pause(c, rng, c.workers[0])


def pause_ps(c, rng):
    pause(c, rng, rng.choice(c.ps))


def restart(c, rng, t):
    """SIGTERM and a new process. No step is lost: the chief saves before the ps ends."""
    c.floor = max(w.lines[-1] for w in c.workers)
    t.end(c.limits.end)
    c.watch(rng.uniform(0, 2))
    t.start()


def restart_worker(c, rng):
    restart(c, rng, rng.choice(c.workers))


def restart_ps(c, rng):
    restart(c, rng, rng.choice(c.ps))


def rolling_restart(c, rng):
    """Every task in turn gets SIGTERM and a new process, which trains before the next one's turn."""
    for t in rng.sample(c.tasks, len(c.tasks)):
        restart(c, rng, t)
        c.steps_go_on(c.workers, 'after %s was restarted' % t.name)


def vanish(c, rng):
    """A client of a worker's server, which trains there, too, and is killed at some moment."""
    extra = Task('client', c.argv('worker', 1) + ['--existing_servers'], c.env, c.folder)
    for _ in range(rng.randint(1, 3)):
        extra.start()
        begin = time.monotonic()
        until = rng.choice([0.3, 1, c.limits.recovery])
        while extra.running() and time.monotonic() - begin < until:
            c.watch(0.1)
            extra.follow()
            if extra.lines:
                break
        if not extra.running():
            raise Failed('the client ended unasked, with %d: %s' % (extra.proc.returncode, extra.path))
        extra.kill()


def ports(c):
    """Where the tasks listen: their addresses, and in a network of our own their data ports, too."""
    found = {tuple(a.rsplit(':', 1)) for a in c.addresses}
    hosts = [(c.addresses[-1], 'self')] + [(c.addresses[0], c.peer)] * (c.peer is not None)
    for address, process in hosts if os.environ.get('LEAT_TORTURE_NETWORK') else []:
        for table in ('tcp', 'tcp6'):
            with open('/proc/%s/net/%s' % (process, table)) as f:
                for line in f:
                    word = line.split()
                    if word[3] == '0A':  # it listens
                        found.add((address.rsplit(':', 1)[0], str(int(word[1].rsplit(':', 1)[1], 16))))
    return sorted(found)


def flood(c, rng):
    """Connections that send nothing, or bytes that mean nothing, to every port, and a crowd of
    programs that ask all tasks how they are; steps go on."""
    opened = []
    for host, port in ports(c):
        for i in range(rng.randint(20, 150)):
            s = socket.socket()
            s.settimeout(0.5)
            try:
                s.connect((host, int(port)))
                if i % 3 == 1:
                    s.send(rng.randbytes(rng.randint(1, 3000)))
                elif i % 3 == 2:
                    s.send(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + rng.randbytes(200))
            except OSError:
                pass
            opened.append(s)
    ask = [os.path.join(c.build, 'leat'), 'check', '--ps_hosts', c.ps_hosts, '--worker_hosts', c.worker_hosts]
    ask += c.security
    crowd = [subprocess.Popen(ask, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=c.env,
                              preexec_fn=die_with_parent) for _ in range(rng.randint(2, 12))]
    try:
        c.steps_go_on(c.workers, 'during a flood')
    finally:
        for s in opened:
            s.close()
        for p in crowd:
            if rng.random() < 0.5:
                p.kill()  # these callers vanish
            p.wait()


def cut(c, rng):
    """The link between the ps and the workers is down, for less or for more than the time after
    which a peer counts as lost (about 20 s)."""
    run(['ip', 'link', 'set', 'v0', 'down'])
    try:
        c.watch(rng.choice([rng.uniform(0, 2), rng.uniform(2, 10), rng.uniform(21, 30)]))
    finally:
        run(['ip', 'link', 'set', 'v0', 'up'])


ALL = {f.__name__: f for f in (kill_worker, kill_chief, kill_ps, kill_all, pause_worker, pause_chief, pause_ps,
                               restart_worker, restart_ps, rolling_restart, vanish, flood, cut)}
