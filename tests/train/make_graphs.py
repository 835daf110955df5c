"""Writes data/NAME.txt: the nodes of graphs that TensorFlow 1.15 builds, one a line:
name, op, inputs (control inputs last, sorted), device, colocation. graphs_test.c builds the same.
Run by hand, with TensorFlow 1.15: python make_graphs.py"""
import os
os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.FATAL)
here = os.path.dirname(os.path.abspath(__file__))


def write(name):
    with open(os.path.join(here, 'data', name + '.txt'), 'w') as f:
        for n in sorted(tf.get_default_graph().as_graph_def().node, key=lambda n: n.name):
            inputs = [i for i in n.input if i[0] != '^'] + sorted(i for i in n.input if i[0] == '^')
            groups = [s.decode() for s in n.attr['_class'].list.s] if '_class' in n.attr else []
            f.write('%s %s [%s] %s %s\n' % (n.name, n.op, ','.join(inputs), n.device or '-',
                                            ','.join(groups) or '-'))


def model(graph):
    def build():
        tf.reset_default_graph()
        graph()
        write(graph.__name__)
    build()


def net(use_resource=False):
    x = tf.placeholder(tf.float32, [None, 784], name='x')
    w = tf.Variable(tf.truncated_normal([784, 10], stddev=1.0 / 28), name='hid_w')
    b = tf.Variable(tf.zeros([10]), name='hid_b')
    h = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
    return tf.reduce_sum(h)


def adam():
    step = tf.train.get_or_create_global_step()
    tf.train.AdamOptimizer(0.01).minimize(net(), global_step=step)
    tf.global_variables_initializer()


def sgd_no_step():
    tf.train.GradientDescentOptimizer(0.01).minimize(net())


def others():
    loss = net()
    tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
    tf.train.AdagradOptimizer(0.01).minimize(loss)
    tf.train.RMSPropOptimizer(0.01, centered=True).minimize(loss)
    tf.train.RMSPropOptimizer(0.01).minimize(loss, name='second')


def scopes():
    l2 = tf.contrib.layers.l2_regularizer(0.1)
    with tf.device('/cpu:1'):
        with tf.variable_scope('h1', regularizer=l2):
            w = tf.get_variable('w', [40, 30])
            tf.get_variable('b', [3], initializer=tf.constant_initializer(0.1))
            tf.identity(w)
        with tf.variable_scope('h1', reuse=True):
            tf.identity(tf.get_variable('w', [40, 30]))
        with tf.variable_scope(None, 'h1'):
            tf.get_variable('c', [3], initializer=tf.random_normal_initializer(stddev=0.5))
            tf.get_variable('d', initializer=tf.zeros([2]))
            tf.get_variable('e', [2], dtype=tf.int32)
            tf.get_variable('f', [2], initializer=tf.truncated_normal_initializer(seed=7),
                            regularizer=tf.contrib.layers.l1_regularizer(0.2))
            tf.get_variable('g', [2], initializer=tf.random_uniform_initializer(-1, 1))
            tf.get_variable('gn', [3, 4], initializer=tf.glorot_normal_initializer())
            tf.get_variable('ones', [3, 4], initializer=tf.ones_initializer())
    tf.losses.get_regularization_loss()
    with tf.name_scope('n'):
        tf.Variable(3.0, name='s')
        v = tf.Variable(tf.zeros([2]), name='v')
        tf.Variable(v * v, name='v2')
    tf.report_uninitialized_variables


def partitioned():
    l2 = tf.contrib.layers.l2_regularizer(0.1)
    with tf.variable_scope('s', regularizer=l2):
        w = tf.get_variable('w', [10, 3], partitioner=tf.fixed_size_partitioner(3))
        tf.get_variable('b', [3])
        tf.identity(w)
    with tf.variable_scope('q', partitioner=tf.variable_axis_size_partitioner(40)) as q:
        tf.identity(tf.get_variable('v', [7, 3]))
        tf.get_variable('scalar', [], initializer=tf.zeros_initializer())
        tf.identity(tf.get_variable('given', initializer=tf.ones([4, 2]), partitioner=tf.fixed_size_partitioner(2, axis=1)))
    with tf.variable_scope('other'):
        with tf.variable_scope(q):
            tf.identity(tf.get_variable('one', [2], initializer=tf.ones_initializer()))
            with tf.variable_scope(None, 'inner'):
                tf.identity(tf.get_variable('x', [1]))
        with tf.variable_scope(q):
            with tf.variable_scope(None, 'inner'):
                tf.get_variable('y', [])


def devices():
    count = [0]

    def setter(op):
        if op.type == 'VariableV2':
            count[0] += 1
            return '/job:ps/task:%d' % ((count[0] - 1) % 2)
        return '/job:worker'
    with tf.device(setter):
        step = tf.train.get_or_create_global_step()
        tf.train.AdamOptimizer(0.01).minimize(net(), global_step=step)
        tf.global_variables_initializer()


def averages():
    loss = net()
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)
    ema = tf.train.ExponentialMovingAverage(0.99, step)
    with tf.control_dependencies([train]):
        ema.apply(tf.trainable_variables())


def sparse():
    e = tf.Variable(tf.zeros([20, 3]), name='e')
    ids = tf.placeholder(tf.int32, [None], name='ids')
    loss = tf.reduce_sum(tf.nn.embedding_lookup(e, ids))
    tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    tf.train.AdamOptimizer(0.01).minimize(loss)
    tf.train.AdagradOptimizer(0.01).minimize(loss)
    tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
    tf.train.RMSPropOptimizer(0.01).minimize(loss)


def dense():
    x = tf.placeholder(tf.float32, [None, 20], name='x')
    y = tf.layers.dense(x, 5, activation=tf.nn.relu)
    tf.layers.dense(y, 3, name='out', use_bias=False)


def conv():
    x = tf.placeholder(tf.float32, [None, 24, 24, 3], name='x')
    y = tf.layers.conv2d(x, 8, [5, 3], strides=2, padding='same', activation=tf.nn.relu)
    tf.layers.conv2d(y, 4, 3, name='out', use_bias=False)


def pool():
    x = tf.placeholder(tf.float32, [None, 24, 24, 3], name='x')
    y = tf.layers.max_pooling2d(x, [3, 2], [2, 1], padding='same')
    y = tf.layers.max_pooling2d(y, 2, 2)
    y = tf.layers.average_pooling2d(y, 2, 1)
    tf.layers.average_pooling2d(y, 2, 2, name='out')


def batch_norm():
    x = tf.placeholder(tf.float32, [None, 8, 8, 3], name='x')
    y = tf.layers.batch_normalization(x, training=True)
    y = tf.layers.batch_normalization(y, momentum=0.9, training=True)
    tf.layers.batch_normalization(y, name='out', center=False)


def setter():
    return tf.train.replica_device_setter(
        cluster={'ps': ['a:1', 'b:1'], 'worker': ['c:1', 'd:1']},
        worker_device='/job:worker/task:1')


def sync():
    with tf.device(setter()):
        step = tf.train.get_or_create_global_step()
        opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.01), 2, 3)
        opt.minimize(net(), global_step=step)
        opt.get_init_tokens_op()


def sync_rows():
    step = tf.train.get_or_create_global_step()
    e = tf.Variable(tf.zeros([20, 3]), name='e')
    ids = tf.placeholder(tf.int32, [None], name='ids')
    loss = tf.reduce_sum(tf.nn.embedding_lookup(e, ids))
    ema = tf.train.ExponentialMovingAverage(0.99)
    opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.01), 2,
                                         variable_averages=ema,
                                         variables_to_average=tf.trainable_variables())
    opt.minimize(loss, global_step=step)


def saver():
    net()
    tf.get_variable('r', initializer=tf.zeros([2]), use_resource=True)
    tf.get_variable('q', initializer=tf.zeros([3]), use_resource=True)
    tf.train.Saver()
    with tf.name_scope('a'):
        tf.summary.scalar('loss', tf.zeros([]))
    tf.summary.scalar('loss', tf.zeros([]))
    tf.summary.histogram('loss', tf.zeros([]))
    tf.summary.merge_all()


def saver_slices():
    tf.get_variable('w', initializer=tf.zeros([30, 2]), partitioner=tf.fixed_size_partitioner(12)).as_tensor()
    tf.train.Saver()


def saver_sharded():
    with tf.device('/job:ps/task:1'):
        net()
    with tf.device('/job:ps/task:0/gpu:0'):
        tf.get_variable('r', initializer=tf.zeros([2]), use_resource=True)
    with tf.device('/job:ps/task:0'):
        tf.Variable(tf.zeros([3]), name='v')
    tf.train.Saver(sharded=True)


def scaffold():
    with tf.device(setter()):
        tf.train.get_or_create_global_step()
        tf.Variable(tf.zeros([2]), name='w')
        tf.Variable(tf.zeros([2]), name='l', trainable=False,
                    collections=[tf.GraphKeys.LOCAL_VARIABLES])
    tf.summary.scalar('x', tf.placeholder(tf.float32, [], name='y'))
    tf.train.Scaffold(saver=tf.train.Saver()).finalize()


def runners_meta():
    """data/runners.meta: a MetaGraphDef with variables, a queue runner and a saver, for meta_graph_test.c."""
    tf.reset_default_graph()
    count = tf.Variable(0, name='count', trainable=False)
    tf.get_variable('w', initializer=tf.zeros([2]), use_resource=True)
    queue = tf.FIFOQueue(4, [tf.int32], [[]], name='queue')
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(count.count_up_to(10))] * 2))
    tf.add_to_collection('taken', queue.dequeue())
    tf.add_to_collection('number', 7)
    tf.add_to_collection(tf.GraphKeys.INIT_OP, tf.global_variables_initializer())
    tf.train.Saver(max_to_keep=3).export_meta_graph(os.path.join(here, 'data', 'runners.meta'))


runners_meta()
for m in (scaffold, saver, saver_slices, saver_sharded, sync, sync_rows, adam, sgd_no_step, others, scopes, partitioned, devices, averages,
          sparse, dense, conv, pool, batch_norm):
    model(m)
