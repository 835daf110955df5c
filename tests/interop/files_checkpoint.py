"""Files of Leat in TensorFlow 1.15, and the other way round: python files_checkpoint.py BUILD_DIR

Leat's own tests write checkpoints, meta graphs, event files and records; TensorFlow reads, restores
and continues them. What TensorFlow saves, `leat show` reads."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import warnings
warnings.filterwarnings('ignore')
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
build = os.path.abspath(sys.argv[1])
files = os.path.join(build, 'io_files')


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def leat_writes():
    run(os.path.join(build, 'tests', 'saver_test'), 'keeps', 'sharded', 'summaries')
    run(os.path.join(build, 'tests', 'bundle_test'), 'kinds', 'shards')
    run(os.path.join(build, 'tests', 'record_test'), 'records')


def checkpoint():
    newest = tf.train.latest_checkpoint(os.path.join(files, 'saver'))
    assert newest.endswith('model.ckpt-9'), newest
    reader = tf.train.load_checkpoint(newest)
    assert reader.get_variable_to_shape_map() == {'w': [3], 'b': [2]}
    old = os.path.join(files, 'saver', 'model.ckpt-4')
    assert (tf.train.load_variable(old, 'w') == 4).all()
    with tf.Graph().as_default(), tf.Session() as s:
        w = tf.get_variable('w', [3])
        tf.get_variable('b', [2], use_resource=True)
        tf.train.Saver().restore(s, old)
        assert (s.run(w) == 4).all()


def meta_graph():
    prefix = os.path.join(files, 'saver', 'model.ckpt-4')
    with tf.Graph().as_default() as g, tf.Session() as s:
        saver = tf.train.import_meta_graph(prefix + '.meta')
        assert sorted(v.op.name for v in tf.global_variables()) == ['b', 'w']
        assert len(tf.trainable_variables()) == 2
        saver.restore(s, prefix)
        assert (s.run('w:0') == 4).all()
        s.run(g.get_operation_by_name('group_deps'))  # Leat's graph goes on counting
        for v in tf.global_variables():
            assert (s.run(v) == 5).all(), v
        assert saver.save(s, os.path.join(files, 'theirs', 'model'))


def sharded():
    prefix = os.path.join(files, 'saver_shards', 'm-7')
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={'CPU': 2})) as s:
        saver = tf.train.import_meta_graph(prefix + '.meta')
        saver.restore(s, prefix)
        assert (s.run('w:0') == 1).all()


def kinds():
    reader = tf.train.load_checkpoint(os.path.join(files, 'kinds'))
    assert reader.get_tensor('strings').tolist() == [[b'', b'a'], [b'b\0c', b'd' * 300]]
    assert reader.get_tensor('float16/v').dtype == np.float16
    part = tf.train.load_checkpoint(os.path.join(files, 'merged')).get_tensor('part')
    assert (part == np.arange(40).reshape(10, 4)).all()


def events():
    path, = glob.glob(os.path.join(files, 'summaries', 'events*'))
    seen = list(tf.train.summary_iterator(path))
    assert seen[0].file_version == 'brain.Event:2' and seen[0].wall_time > 1e9
    assert seen[1].session_log.status == tf.SessionLog.START
    graph = tf.GraphDef.FromString(seen[2].graph_def)
    assert any(n.op == 'HistogramSummary' for n in graph.node)
    assert [v.tag for v in seen[3].summary.value] == ['loss', 'h']
    assert seen[3].summary.value[0].simple_value == 2.5 and seen[3].step == 7
    assert seen[4].summary.value[0].simple_value == 0.5


def records():
    want = [b'', b'x', b'hello', bytes(bytearray(range(256))) * 5]
    for kind in ('', 'GZIP', 'ZLIB'):
        options = tf.python_io.TFRecordOptions(getattr(tf.python_io.TFRecordCompressionType, kind or 'NONE'))
        path = os.path.join(files, '%s.tfrecord' % (kind.lower() or 'plain'))
        assert list(tf.python_io.tf_record_iterator(path, options)) == want, kind


def theirs():
    show = lambda *args: run(os.path.join(build, 'leat'), 'show', *args)
    with tempfile.TemporaryDirectory() as d, tf.Graph().as_default(), tf.Session() as s:
        tf.get_variable('w', initializer=tf.constant([1.5, -2]), partitioner=tf.fixed_size_partitioner(2))
        tf.get_variable('n', initializer=tf.constant(7, tf.int64), use_resource=True)
        s.run(tf.global_variables_initializer())
        tf.train.Saver(sharded=True).save(s, os.path.join(d, 'm'), global_step=3)
        assert show(d, '--tensor', 'w') == 'w  float [2]\n[1.5 -2]\n'
        assert 'n  int64 []\n' in show(os.path.join(d, 'm-3'))
        tf.train.Saver(write_version=tf.train.SaverDef.V1).save(s, os.path.join(d, 'v1'))
        assert show(os.path.join(d, 'v1'), '--tensor', 'w') == 'w  float [2]\n[1.5 -2]\n'
        with tf.summary.FileWriter(d) as w:
            w.add_graph(s.graph)
            w.add_summary(s.run(tf.summary.scalar('loss', 0.25)), 5)
        assert 'loss  scalar, 1 times, steps 5 to 5, last: 0.25' in show(glob.glob(d + '/events*')[0])


shutil.rmtree(os.path.join(files, 'theirs'), ignore_errors=True)
os.makedirs(os.path.join(files, 'theirs'))
leat_writes()
for check in (checkpoint, meta_graph, sharded, kinds, events, records, theirs):
    check()
    print('ok', check.__name__)
