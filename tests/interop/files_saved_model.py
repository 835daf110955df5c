"""SavedModels of Leat in TensorFlow, and TensorFlow's in Leat: python files_saved_model.py BUILD_DIR

Runs by TensorFlow 1.15 and by 2.x. What Leat's saved_model_test wrote is loaded, run and trained on; what TensorFlow
exports, from graphs with tables and assets and, by 2.x, from a Keras model, is shown, run and frozen by `leat`."""
import os
import subprocess
import sys
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ['CUDA_VISIBLE_DEVICES'] = '-1'
import warnings
warnings.filterwarnings('ignore')
import numpy as np
import tensorflow
import tensorflow.compat.v1 as tf

tf.logging.set_verbosity(tf.logging.ERROR)
build = os.path.abspath(sys.argv[1])
model = os.path.join(build, 'io_files', 'model')
leat = os.path.join(build, 'leat')
X = np.array([[1, 1], [0, 2]], np.float32)


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def leat_writes():
    run(os.path.join(build, 'tests', 'saved_model_test'), 'written')


def loaded():
    with tf.Graph().as_default(), tf.Session() as s:
        m = tf.saved_model.loader.load(s, ['serve'], model)
        sig = m.signature_def['serving_default']
        y = s.run(sig.outputs['y'].name, {sig.inputs['x'].name: X})
        assert y.tolist() == [[14, 26], [16, 28]], y
        words = m.signature_def['words']
        ids = s.run(words.outputs['ids'].name, {words.inputs['words'].name: ['cherry', 'no', 'apple']})
        assert ids.tolist() == [2, -1, 0], ids
        assert sorted(v.op.name for v in tf.global_variables()) == ['b', 'w']


def loaded_by_2():
    with tensorflow.Graph().as_default():
        pass
    m = tensorflow.saved_model.load(model)
    y = m.signatures['serving_default'](tensorflow.constant(X))['y']
    assert y.numpy().tolist() == [[14, 26], [16, 28]], y


def graph_model(d):
    """References, handles, embeddings, a table whose vocabulary is an asset."""
    vocabulary = os.path.join(d, 'words.txt')
    with open(vocabulary, 'w') as f:
        f.write('apple\nbanana\ncherry\n')
    with tf.Graph().as_default(), tf.Session() as s:
        x = tf.placeholder(tf.float32, [None, 2], name='x')
        w = tf.get_variable('w', [2, 3], initializer=tf.random_normal_initializer(seed=1), use_resource=False)
        b = tf.get_variable('b', [3], initializer=tf.ones_initializer(), use_resource=True)
        table = tf.lookup.StaticVocabularyTable(tf.lookup.TextFileInitializer(
            vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 1)
        rows = tf.get_variable('rows', [4, 3], initializer=tf.random_normal_initializer(seed=2), use_resource=True)
        row = tf.nn.embedding_lookup(rows, table.lookup(tf.constant(['cherry'])))
        y = tf.add(tf.matmul(x, w) + b, row, name='y')
        s.run([tf.global_variables_initializer(), tf.tables_initializer()])
        want = s.run(y, {x: X})
        builder = tf.saved_model.builder.SavedModelBuilder(os.path.join(d, 'graph'))
        builder.add_meta_graph_and_variables(
            s, ['serve'], {'serving_default': tf.saved_model.predict_signature_def({'x': x}, {'y': y})},
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS), main_op=tf.tables_initializer())
        builder.save()
    os.remove(vocabulary)  # the model has its own
    return os.path.join(d, 'graph'), 'x', 'y', X, want


def keras_model(d):
    keras = tensorflow.keras
    tensorflow.random.set_seed(1)
    m = keras.Sequential([keras.layers.Input((5,), name='x'), keras.layers.Dense(7, 'relu'), keras.layers.Dropout(.3),
                          keras.layers.Dense(3, 'softmax')])
    m.compile('adam', 'sparse_categorical_crossentropy')
    x = np.random.RandomState(0).rand(8, 5).astype(np.float32)
    m.fit(x, np.arange(8) % 3, verbose=0)
    m.export(os.path.join(d, 'keras'), verbose=False)
    return os.path.join(d, 'keras'), 'x', 'output_0', x, m(x).numpy()


def check(make):
    with tempfile.TemporaryDirectory() as d:
        path, name, out, x, want = make(d)
        np.save(os.path.join(d, 'x.npy'), x)
        shown = run(leat, 'show', path)
        assert 'input %s: float' % name in shown and 'output %s: float' % out in shown, shown
        feed = ['--feed', '%s=%s' % (name, os.path.join(d, 'x.npy')), '--out', d]
        run(leat, 'run', '--saved_model', path, *feed)
        got = np.load(os.path.join(d, out + '.npy'))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        frozen(d, path, shown, name, x, want)


def frozen(d, path, shown, name, x, want):
    """What leat freezes runs in TensorFlow, if it has no table, which would have to be initialized."""
    pb = os.path.join(d, 'frozen.pb')
    run(leat, 'freeze', pb, '--saved_model', path)
    section = shown[shown.index('signature serving_default'):].split('\n')
    inside, outside = (line.split(', ')[-1] for line in section[1:3])
    g = tf.GraphDef()
    with open(pb, 'rb') as f:
        g.ParseFromString(f.read())
    assert not [n.name for n in g.node if n.op in ('VariableV2', 'VarHandleOp', 'ReadVariableOp', 'StatefulPartitionedCall')]
    if any(n.op == 'HashTableV2' for n in g.node):
        return
    with tf.Graph().as_default(), tf.Session() as s:
        tf.import_graph_def(g, name='')
        np.testing.assert_allclose(s.run(outside, {inside: x}), want, rtol=1e-5, atol=1e-6)


def theirs():
    check(graph_model)


def theirs_keras():
    check(keras_model)


leat_writes()
two = not tensorflow.__version__.startswith('1.')
for f in (loaded, theirs) + ((loaded_by_2, theirs_keras) if two else ()):
    f()
    print('ok', 'files_saved_model', f.__name__, flush=True)
