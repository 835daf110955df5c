"""One cluster of mnist_replica processes: starts, follows, measures and ends its tasks."""
import ctypes, os, re, signal, socket, subprocess, time

BAD = re.compile(r'AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|SUMMARY: |Segmentation fault'
                 r'|Assertion .* failed|stack smashing|double free|corrupted|free\(\): invalid|malloc\(\): ')
LINE = re.compile(r'training step (\d+) done \(global step: (\d+)\)')


class Failed(Exception):
    """A check did not hold."""


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def run(argv, **more):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


class Task:
    """A task, and the process that serves it now."""

    def __init__(self, name, argv, env, folder):
        self.name, self.argv, self.env, self.folder = name, argv, env, folder
        self.proc, self.starts = None, 0

    def start(self):
        self.starts += 1
        self.path = os.path.join(self.folder, '%s.%d.log' % (self.name, self.starts))
        log = open(self.path, 'wb')
        self.proc = subprocess.Popen(self.argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                     env=self.env, preexec_fn=die_with_parent)
        log.close()
        self.read, self.lines, self.rest, self.samples = 0, [], '', []

    def running(self):
        return self.proc is not None and self.proc.poll() is None

    def follow(self):
        """Reads what the process has printed since the last time."""
        with open(self.path, 'rb') as f:
            f.seek(self.read)
            new = f.read()
        self.read += len(new)
        whole = (self.rest + new.decode('utf-8', 'replace')).split('\n')
        self.rest = whole.pop()
        for line in whole:
            if BAD.search(line):
                raise Failed('%s printed: %s' % (self.name, line))
            m = LINE.search(line)
            if m:
                self.lines.append(int(m.group(2)))

    def signal(self, number):
        if self.running():
            self.proc.send_signal(number)

    def kill(self):
        """Ends the process by SIGKILL."""
        self.signal(signal.SIGKILL)
        self.proc.wait()
        self.follow()
        self.proc = None

    def end(self, seconds):
        """Ends the process by SIGTERM, which it must follow with exit code 0."""
        self.signal(signal.SIGTERM)
        try:
            code = self.proc.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failed('%s did not end within %d s of SIGTERM' % (self.name, seconds))
        self.follow()
        self.proc = None
        if code != 0:
            raise Failed('%s ended with %d after SIGTERM' % (self.name, code))

    def measure(self):
        """Resident memory in KB, descriptors, threads."""
        pid = self.proc.pid
        with open('/proc/%d/status' % pid) as f:
            rss = int(re.search(r'VmRSS:\s+(\d+)', f.read()).group(1))
        return rss, len(os.listdir('/proc/%d/fd' % pid)), len(os.listdir('/proc/%d/task' % pid))


class Cluster:
    """ps tasks and workers that train without end and save to a directory."""

    def __init__(self, build, folder, n_ps, workers, sync, transports, security, limits, peer=None):
        self.build, self.folder, self.limits, self.sync, self.peer = build, folder, limits, sync, peer
        self.security, self.model = security, os.path.join(folder, 'model')
        os.makedirs(self.model)
        self.env = dict(os.environ, LEAT_NUM_THREADS='1', LEAT_TOKEN='torture', **limits.environment)
        ps = free_ports(n_ps, '10.77.0.2' if peer else '127.0.0.1', peer)
        hosts = free_ports(workers, '10.77.0.1' if peer else '127.0.0.1', None)
        self.ps_hosts, self.worker_hosts, self.addresses = ','.join(ps), ','.join(hosts), ps + hosts
        self.common = [os.path.join(build, 'models/mnist_replica'), '--ps_hosts', self.ps_hosts,
                       '--worker_hosts', self.worker_hosts, '--train_steps', '1000000000',
                       '--batch_size', '20', '--hidden_units', '32', '--learning_rate', '0.0001',
                       '--log_dir', self.model, '--save_secs', '2', '--transports', transports] + security
        if sync:
            self.common.append('--sync_replicas')
        inside = ['nsenter', '-t', str(peer), '-n', '--'] if peer else []
        self.ps = [Task('ps%d' % i, inside + self.argv('ps', i), self.env, folder) for i in range(n_ps)]
        self.workers = [Task('worker%d' % i, self.argv('worker', i), self.env, folder)
                        for i in range(workers)]
        self.tasks = self.ps + self.workers
        self.floor = 0  # no step that begins from now on may be below this one
        self.saved = 0  # the step of the newest checkpoint that was seen

    def argv(self, job, index):
        return self.common + ['--job_name', job, '--task_index', str(index)]

    def start(self):
        for t in self.tasks:
            t.start()
        self.steps_go_on(self.workers, 'after the start')

    def watch(self, seconds=0.2, absent=()):
        """Lets time pass. A process that ends meanwhile, but those of `absent`, is a failure."""
        time.sleep(seconds)
        for t in self.tasks:
            if t.proc is None or t in absent:
                continue
            t.follow()
            if not t.running():
                raise Failed('%s ended unasked, with %d' % (t.name, t.proc.returncode))

    def steps_go_on(self, workers, when):
        """Waits until each of the workers has printed two lines more: the second is of a step that
        began after now, and must not be behind the floor."""
        seen = {t: len(t.lines) for t in workers}
        begin = time.monotonic()
        while any(len(t.lines) < seen[t] + 2 for t in workers):
            self.watch()
            if time.monotonic() - begin > self.limits.recovery:
                slow = [t.name for t in workers if len(t.lines) < seen[t] + 2]
                raise Failed('no steps of %s within %d s %s' % (', '.join(slow), self.limits.recovery, when))
        for t in workers:
            if t.lines[-1] < self.floor:
                raise Failed('%s is at global step %d, but step %d was done or saved before, %s'
                             % (t.name, t.lines[-1], self.floor, when))
        return time.monotonic() - begin

    def checkpoint(self):
        """The step of the newest checkpoint, which must be readable; 0 while there is none."""
        try:
            with open(os.path.join(self.model, 'checkpoint')) as f:
                prefix = re.search(r'model_checkpoint_path: "([^"]*)"', f.read()).group(1)
        except FileNotFoundError:
            return 0
        prefix = os.path.join(self.model, prefix)
        shown = run([os.path.join(self.build, 'leat'), 'show', prefix, '--tensor', 'global_step'], env=self.env)
        step = int(prefix.rsplit('-', 1)[1])
        # The chief may have removed the file meanwhile, after it wrote newer ones.
        if shown.returncode != 0 and os.path.exists(prefix + '.index'):
            raise Failed('checkpoint %s is not readable: %s' % (prefix, shown.stdout))
        if step < self.saved:
            raise Failed('the newest checkpoint is of step %d, after one of step %d' % (step, self.saved))
        self.saved = step
        return step

    def flat(self):
        """Checks that no process uses more than it did after its first faults; what a fault left
        behind has some seconds to go."""
        begin = time.monotonic()
        while True:
            fat = None
            now = {t: t.measure() for t in self.tasks}
            for t in self.tasks:
                if len(t.samples) < self.limits.warm:
                    continue
                for what, i in (('KB of memory', 0), ('descriptors', 1), ('threads', 2)):
                    base = max(s[i] for s in t.samples[:self.limits.warm])
                    if now[t][i] > base + self.limits.growth[i](base):
                        fat = '%s has %d %s; it had %d' % (t.name, now[t][i], what, base)
            if not fat:
                break
            if time.monotonic() - begin > self.limits.settle:
                raise Failed(fat)
            self.watch()
        for t in self.tasks:
            t.samples.append(now[t])

    def end(self):
        """Ends the workers, the chief last of them, then the ps tasks."""
        for t in self.workers[::-1] + self.ps:
            if t in self.ps and not t.running() and t.proc.returncode == 0:
                t.follow()  # a ps may end by itself when all who used it have ended
                continue
            t.end(self.limits.end)
        self.checkpoint()

    def abandon(self):
        for t in self.tasks:
            if t.running():
                t.proc.kill()
                t.proc.wait()


def free_ports(n, host, peer):
    """Addresses of ports that nobody uses. Another namespace has all of them free."""
    if peer:
        return ['%s:%d' % (host, 20000 + i) for i in range(n)]
    held = []
    for _ in range(n):
        s = socket.socket()
        s.bind((host, 0))
        held.append(s)
    found = ['%s:%d' % s.getsockname() for s in held]
    for s in held:
        s.close()
    return found
