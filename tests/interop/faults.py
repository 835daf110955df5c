"""What goes wrong: clients that vanish, tasks that are not there, die or come back."""
import os
import signal
import time

from harness import LEAT_PS, ONE, TF_PS, TWO, case, client, finish, raises, tf


@case(on=[ONE, TWO])
def client_killed(c):
    """In the middle of a step that waits; the server stays usable and the queue whole."""
    with tf.device("/job:%s/task:0" % sorted(c.jobs)[0]):
        q = tf.FIFOQueue(3, tf.float32, shapes=[[]], shared_name="q")
        put, take, size = q.enqueue(1.0), q.dequeue(), q.size()
    with c.session() as s:
        s.run(size)
        p = client("waiter.py", c.target(), sorted(c.jobs)[0])
        assert p.stdout.readline().strip() == "waiting"
        time.sleep(0.5)
        p.send_signal(signal.SIGKILL)
        p.communicate()
        time.sleep(0.5)  # its step is cancelled; what comes now is not for it
        s.run(put)
        assert s.run(size) == 1
        assert s.run(take, options=tf.RunOptions(timeout_in_ms=5000)) == 1


@case(on=[TWO, LEAT_PS, TF_PS], fresh=True, limit=90)
def ps_killed(c):
    """A step that needs it fails with a word; when it is back, a new session works."""
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0, name="v")
    with tf.device("/job:worker/task:0"):
        y = v * 2.0
    s = c.session(operation_timeout_in_ms=10000)
    s.run(v.initializer)
    assert s.run(y) == 2
    c.kill("ps", 0)
    gone = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)
    begin = time.time()
    try:
        s.run(y)
        raise AssertionError("a step ran without its ps")
    except gone:
        assert time.time() - begin < 15
    c.start("ps", 0)
    c.wait("ps", 0)
    try:
        s.close()
    except gone:
        pass
    for _ in range(20):
        try:
            with c.session(operation_timeout_in_ms=10000) as t:
                t.run(v.initializer)
                assert t.run(y) == 2
                return
        except gone:
            time.sleep(0.5)
    raise AssertionError("no session after the ps came back")


@case(on=[TWO], fresh=True)
def absent_task(c):
    """A session that needs a task which is not there ends in time and names it."""
    c.kill("ps", 0)
    with tf.Graph().as_default():
        x = tf.constant(1)
        begin = time.time()
        try:
            with c.session(operation_timeout_in_ms=1500) as s:
                s.run(x)
            raise AssertionError("a session opened without its ps")
        except (tf.errors.DeadlineExceededError, tf.errors.UnavailableError) as e:
            assert time.time() - begin < 15
        with c.session(device_filters=["/job:worker"]) as s:
            assert s.run(x) == 1


@case()
def many_sessions(c):
    x = tf.Variable(1.0)
    for i in range(30):
        with c.session() as s:
            s.run(x.initializer)
            assert s.run(x) == 1
