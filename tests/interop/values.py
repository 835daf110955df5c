"""What goes in and comes out: constants, feeds, structures of fetches, variables, strings, sizes."""
import collections
import re

import numpy as np

from harness import ONE, TF_PS, TWO, LEAT_PS, case, close, raises, tf

def same(got, want):
    # bytes: NumPy cannot compare arrays of bfloat16
    got = np.asarray(got)
    assert got.dtype == want.dtype and got.shape == want.shape, (got, want)
    assert got.tobytes() == want.tobytes(), (got, want)


DTYPES = [tf.float16, tf.float32, tf.float64, tf.bfloat16, tf.int8, tf.int16, tf.int32, tf.int64,
          tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.bool, tf.complex64, tf.complex128]


@case()
def constants(c):
    values = [np.arange(6).reshape(2, 3).astype(t.as_numpy_dtype) for t in DTYPES]
    outs = [tf.constant(v, t) for v, t in zip(values, DTYPES)]
    outs += [tf.constant([], tf.float32), tf.constant(b"caf\xc3\xa9\0"), tf.zeros([2, 0, 3]),
             tf.constant([["a", "bc"], ["", "d" * 1000]])]
    with c.session() as s:
        got = s.run(outs)
    for t, v, g in zip(DTYPES, values, got):
        same(g, v)
    assert got[-4].shape == (0,) and got[-3] == b"caf\xc3\xa9\0" and got[-2].shape == (2, 0, 3)
    assert got[-1].tolist() == [[b"a", b"bc"], [b"", b"d" * 1000]]


@case()
def feeds(c):
    feed, outs = {}, []
    for t in DTYPES:
        for v in (np.ones([2, 2]), np.ones([]), np.zeros([0, 3])):
            x = tf.placeholder(t)
            feed[x] = v.astype(t.as_numpy_dtype)
            outs.append(tf.identity(x))
    text = tf.placeholder(tf.string, [None])
    feed[text] = [b"", b"\0\xff", u"h\u00e9"]
    middle = tf.constant(1.0) + 1.0  # any tensor may be fed
    feed[middle] = 5.0
    with c.session() as s:
        got = s.run(outs + [tf.identity(text), middle * 2, text], feed)
    for o, g in zip(outs, got):
        same(g, feed[o.op.inputs[0]])
    assert got[-3].tolist() == [b"", b"\0\xff", u"h\u00e9".encode()]
    assert got[-2] == 10 and len(got[-1]) == 3


@case()
def structures(c):
    Pair = collections.namedtuple("Pair", ["a", "b"])
    one, two = tf.constant(1, name="one"), tf.constant([2.0, 3.0])
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [5, 6], [3, 4])
    slices = tf.IndexedSlices(two, tf.constant([0, 4]), tf.constant([9]))
    op = tf.no_op()
    with c.session() as s:
        got = s.run({"l": [one, (two, one)], "p": Pair(one, {"x": op}), "s": sparse, "i": slices,
                     "n": "one:0", "o": [op, "one"], "e": [], "t": ()})
        assert got["l"][0] == 1 and isinstance(got["l"][1], tuple)
        assert got["p"] == Pair(1, {"x": None}) and got["n"] == 1 and got["o"] == [None, None]
        assert got["s"].values.tolist() == [5, 6] and got["s"].dense_shape.tolist() == [3, 4]
        assert got["i"].indices.tolist() == [0, 4] and got["i"].dense_shape.tolist() == [9]
        assert s.run([one, one, one]) == [1, 1, 1] and s.run(op) is None and s.run([]) == []
        p = tf.sparse_placeholder(tf.float32)
        fed = s.run(tf.sparse_tensor_to_dense(p), {p: ([[0, 1]], [7.0], [1, 2])})
        assert fed.tolist() == [[0, 7]]


def variables(c, resource):
    v = tf.Variable([1.0, 2.0, 3.0], name="v", use_resource=resource)
    n = tf.Variable(5, name="n", use_resource=resource, dtype=tf.int64)
    text = tf.Variable(["x", "y"], name="text", use_resource=resource)
    with c.session() as s:
        e = raises(tf.errors.FailedPreconditionError, lambda: s.run(v), "v")
        assert s.run(tf.report_uninitialized_variables()).tolist() == [b"v", b"n", b"text"], e
        s.run(tf.global_variables_initializer())
        assert s.run(tf.report_uninitialized_variables()).tolist() == []
        assert s.run(v.assign_add([1, 1, 1])).tolist() == [2, 3, 4]
        assert s.run(v.assign_sub([1, 0, 0])).tolist() == [1, 3, 4]
        assert s.run(v.assign([7, 8, 9])).tolist() == [7, 8, 9]
        s.run(tf.scatter_update(v, [0, 2], [1.0, 5.0]))
        s.run(tf.scatter_add(v, [1], [10.0]))
        assert s.run(v).tolist() == [1, 18, 5]
        assert s.run(tf.gather(v, [2, 0])).tolist() == [5, 1]
        assert s.run(n.assign_add(1)) == 6
        assert s.run(text.assign(["z", ""])).tolist() == [b"z", b""]
        v.load([0.5, 0.5, 0.5], s)
    with c.session() as s:  # variables live in the server, not in the session
        assert s.run(v).tolist() == [0.5, 0.5, 0.5] and v.eval(s).tolist() == [0.5, 0.5, 0.5]


@case(on=[ONE, TWO])
def variables_ref(c):
    variables(c, False)


@case(on=[ONE, TWO])
def variables_resource(c):
    variables(c, True)


@case(limit=90)
def big_tensors(c):
    x = tf.placeholder(tf.float32, [None])
    n = 25 * 1000 * 1000
    big = np.arange(n, dtype=np.float32) % 1000
    with c.session() as s:
        got = s.run(x + 1.0, {x: big})
    assert got.nbytes == 100 * 1000 * 1000 and got[0] == 1 and got[-1] == big[-1] + 1


@case(on=[TWO, LEAT_PS, TF_PS], limit=90)
def big_tensors_between(c):
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", initializer=tf.ones([25 * 1000 * 1000]))
    with tf.device("/job:worker/task:0"):
        total = tf.reduce_sum(v[:1000]) + tf.reduce_max(v)
        more = v.assign(tf.fill([25 * 1000 * 1000], 2.0))
    with c.session() as s:
        s.run(v.initializer)
        assert s.run(total) == 1001
        s.run(more.op)
        assert s.run(total) == 2002


@case(on=[TWO, LEAT_PS, TF_PS])
def all_dtypes_between(c):
    feed, outs, want = {}, [], []
    for t in DTYPES + [tf.string]:
        for shape in ([2, 3], [], [0]):
            v = np.full(shape, b"x", object if t == tf.string else None)
            v = v if t == tf.string else np.ones(shape).astype(t.as_numpy_dtype)
            with tf.device("/job:worker/task:0"):
                x = tf.placeholder(t)
                a = tf.identity(x)
            with tf.device("/job:ps/task:0"):
                b = tf.identity(a)
            with tf.device("/job:worker/task:0"):
                outs.append(tf.identity(b))
            feed[x] = v
            want.append(v)
    with c.session() as s:
        got = s.run(outs, feed)
    for w, g in zip(want, got):
        if w.dtype == object:
            assert np.asarray(g, object).tolist() == w.tolist()
        else:
            same(g, w)


@case(on=[TWO, LEAT_PS, TF_PS])
def strings_between(c):
    texts = [b"", b"short", b"x" * 100000, bytes(bytearray(range(256)))]
    with tf.device("/job:ps/task:0"):
        a = tf.constant(texts)
    with tf.device("/job:worker/task:0"):
        b = tf.string_join([a, tf.constant(["-"] * 4)])
    with tf.device("/job:ps/task:0"):
        d = tf.string_join([b, a])
    with c.session() as s:
        assert s.run(d).tolist() == [t + b"-" + t for t in texts]
        assert s.run(tf.strings.length(d)).tolist() == [2 * len(t) + 1 for t in texts]


@case()
def patterns(c):
    texts = ["s3://a", "", "s3:/", "aab", "b", "a.b", "axb"]
    for p in ("^s3://.*", ".*", "a*b", "a+b", "a?b", "a\\.b", "^a.b$"):
        want = [re.match("(?:%s)$" % p, t) is not None for t in texts]
        with c.session() as s:
            assert s.run(tf.strings.regex_full_match(tf.constant(texts), p)).tolist() == want, p


@case()
def graph_grows(c):
    with c.session() as s:
        total = tf.constant(0)
        for i in range(20):
            total = total + i
            assert s.run(total) == i * (i + 1) // 2


@case()
def random_follows_seed(c):
    tf.set_random_seed(7)
    a = [tf.random_normal([4], seed=3), tf.random_uniform([4]), tf.truncated_normal([4], seed=1),
         tf.random_shuffle(tf.range(6), seed=2)]
    with tf.Session() as s:
        want = [s.run(a), s.run(a)]
    with c.session() as s:
        got = [s.run(a), s.run(a)]
    for w, g in zip(want[0] + want[1], got[0] + got[1]):
        close(w, g)


@case()
def media_summaries(c):
    """PNG files need not have the same bytes; their pixels do."""
    r = np.random.RandomState(1)
    images = [r.randint(0, 256, [4, 5, 7, d]).astype(np.uint8) for d in (1, 3, 4)]
    for t in (np.float16, np.float32, np.float64):
        mixed = r.randn(2, 6, 3, 3).astype(t)
        mixed[0, 1, 1, 2], mixed[1, 0, 0, 0] = np.nan, np.inf
        images += [mixed, np.abs(r.randn(1, 9, 2, 1)).astype(t), np.zeros([1, 2, 2, 3], t)]
    images.append(r.randint(0, 256, [1, 150, 200, 3]).astype(np.uint8))
    outs = [tf.summary.image("i%d" % i, x, max_outputs=1 + i % 3) for i, x in enumerate(images)]
    outs.append(tf.summary.audio("a", r.randn(2, 50, 2).astype(np.float32), 8000.0))
    outs.append(tf.summary.text("t", tf.constant(["one", "two"])))
    with tf.Session() as s:
        want = s.run(outs)
    with c.session() as s:
        got = s.run(outs)
    decoded = tf.placeholder(tf.string)
    pixels = tf.image.decode_png(decoded)
    with tf.Session() as s:
        for w, g in zip(want, got):
            w, g = tf.Summary.FromString(w), tf.Summary.FromString(g)
            for a, b in zip(w.value, g.value):
                if a.HasField("image"):
                    same(s.run(pixels, {decoded: b.image.encoded_image_string}),
                         s.run(pixels, {decoded: a.image.encoded_image_string}))
                    b.image.encoded_image_string = a.image.encoded_image_string
            assert w == g, (w, g)


@case()
def images(c):
    """What each side encodes the other decodes, to the same pixels; decode_image takes every format."""
    r = np.random.RandomState(2)
    photo = np.clip(r.randint(0, 30, [60, 80, 3]) + 90 * (1 + np.sin(np.mgrid[:60, :80].sum(0) / 9.0))[..., None], 0, 255)
    photo = photo.astype(np.uint8)
    files = [tf.image.encode_png(photo), tf.image.encode_png((photo * 200.0).astype(np.uint16)), tf.image.encode_jpeg(photo),
             tf.image.encode_jpeg(photo[..., :1]), tf.image.encode_jpeg(photo, quality=40, progressive=True)]
    contents = tf.placeholder(tf.string, [])
    decoded = [tf.image.decode_image(contents), tf.image.decode_image(contents, channels=3, dtype=tf.float32),
               tf.image.is_jpeg(contents)]
    jpeg = [tf.image.extract_jpeg_shape(contents), tf.image.decode_and_crop_jpeg(contents, [3, 5, 20, 31])]
    bmp = b"BM" + np.array([70, 0, 54, 40, 2, 2], "<u4").tobytes() + np.array([1, 24], "<u2").tobytes() + b"\0" * 24 + bytes(range(16))
    gif = (b"GIF89a\2\0\2\0\x81\0\0\1\2\3\x0a\x14\x1e\x28\x32\x3c\x46\x50\x5a,\0\0\0\0\2\0\2\0\0\2\3\x8c\x38\x14\0;")
    with tf.Session() as here, c.session() as there:
        ours, theirs = there.run(files), here.run(files)
        for i, file in enumerate(ours + theirs + [bmp, gif]):
            for w, g in zip(here.run(decoded, {contents: file}), there.run(decoded, {contents: file})):
                same(g, w)
            if file[:2] == b"\xff\xd8":
                for w, g in zip(here.run(jpeg, {contents: file}), there.run(jpeg, {contents: file})):
                    same(g, w)
        raises(tf.errors.InvalidArgumentError, lambda: there.run(decoded[0], {contents: theirs[0][:-20]}))
